//! The WebSocket endpoint `GET /v1/listen`: a connection on one side, a [`Socket`] actor on the other.
//!
//! Owns the handshake, the gate that cuts a frame at its header, pings, time-outs and close codes. What a frame means is
//! the actor's business. Two tasks a connection: a reader that waits for the actor to take each frame, and for the client
//! to take its answers, so that a busy socket stops reading and TCP pushes back; and a writer whose every send has an end.

mod connection;
mod gate;

use std::pin::Pin;
use std::time::Duration;

use actix::{Actor, Addr};
use actix_web::error::PayloadError;
use actix_web::http::StatusCode;
use actix_web::{FromRequest, HttpRequest, HttpResponse, web};
use actix_ws::{AggregatedMessage, AggregatedMessageStream, CloseCode, CloseReason, ProtocolError, Session};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use telemetry::{FrameKind, Metrics, Refusal};
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::http::problem::Problem;
use crate::live::{Capacity, Frame, Outbound, Outflow, Room, Service, Socket, outlet};
use crate::store::LOCAL_ACCOUNT;
pub use connection::{Connection, remember};
use gate::{Gate, Gated};

/// The subprotocol.
const PROTOCOL: &str = "rollcall.v1";

/// How often a ping goes out: below the idle time-out of common proxies (60 s).
const PING_EVERY: Duration = Duration::from_secs(20);

/// How long one frame may take to leave: a client that reads nothing for so long is gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the connection stays after our close frame, for the client's answer.
const LINGER: Duration = Duration::from_millis(500);

/// Upgrades a request, unless the server is full or about to stop.
pub async fn listen(request: HttpRequest, body: web::Payload, service: web::Data<Service>) -> HttpResponse {
    let service = service.into_inner();
    let (limits, metrics) = (service.settings.sockets, service.telemetry.metrics().clone());
    if !request.headers().contains_key("sec-websocket-key") {
        return bad_request(&metrics, "this is a WebSocket endpoint; connect with a WebSocket client");
    }
    let registry = &service.registry;
    if registry.is_draining() {
        return unavailable(&metrics, Capacity::Draining);
    }
    if registry.socket_count() >= service.settings.sockets_max {
        return unavailable(&metrics, Capacity::Sockets);
    }
    if !speaks_protocol(&request) {
        return bad_request(&metrics, &format!("the subprotocols offered do not include {PROTOCOL}"));
    }
    let gate = Gate::new(limits.frame_bytes as u64, limits.text_bytes as u64);
    let (gated, behind) = Gated::new(body.into_inner(), gate);
    let gated: Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>> = Box::pin(gated);
    let mut gated = actix_web::dev::Payload::from(gated);
    let body = web::Payload::from_request(&request, &mut gated).await.expect("any body is a payload");
    let (response, session, stream) = match actix_ws::handle_with_protocols(&request, body, &[PROTOCOL]) {
        Ok(upgraded) => upgraded,
        Err(error) => return bad_request(&metrics, &error.to_string()),
    };
    let stream =
        stream.max_frame_size(limits.frame_bytes).aggregate_continuations().max_continuation_size(limits.frame_bytes);

    let (outlet, outflow) = outlet(limits.outbound_events);
    let room = outlet.room();
    let id = service.ids.next("socket-");
    let socket = Socket::new(service.clone(), LOCAL_ACCOUNT, id.clone(), outlet).start();
    if let Err(full) = registry.admit(&id, socket.clone(), service.settings.sockets_max) {
        return unavailable(&metrics, full);
    }
    let connection = request.conn_data::<Connection>().cloned();
    let (written, done) = oneshot::channel();
    actix_web::rt::spawn(write(session.clone(), outflow, written, metrics.clone()));
    let reader =
        Reader { socket, room, session, stream, behind, text_bytes: limits.text_bytes, idle: limits.idle, metrics };
    actix_web::rt::spawn(reader.run(done, connection));
    response
}

fn unavailable(metrics: &Metrics, capacity: Capacity) -> HttpResponse {
    let (code, reason) = match capacity {
        Capacity::Draining => ("draining", Refusal::Draining),
        Capacity::Sockets | Capacity::Conversations | Capacity::Recordings => ("capacity", Refusal::Capacity),
    };
    metrics.refused(reason);
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, capacity.to_string()).answer()
}

fn bad_request(metrics: &Metrics, detail: &str) -> HttpResponse {
    metrics.refused(Refusal::Handshake);
    Problem::new(StatusCode::BAD_REQUEST, "bad_handshake", detail).answer()
}

/// No subprotocol at all is taken as ours; a list must include it.
fn speaks_protocol(request: &HttpRequest) -> bool {
    let mut offered = request.headers().get_all("sec-websocket-protocol").peekable();
    offered.peek().is_none()
        || offered
            .filter_map(|list| list.to_str().ok())
            .any(|list| list.split(',').any(|protocol| protocol.trim() == PROTOCOL))
}

/// Sends what the socket has to say until it closes, the client is gone, or a send takes too long.
async fn write(mut session: Session, mut outflow: Outflow, written: oneshot::Sender<()>, metrics: Metrics) {
    let mut is_slow = false;
    while let Some(outbound) = outflow.next().await {
        match outbound {
            Outbound::Text(text) => match timeout(WRITE_TIMEOUT, session.text(text)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => break,
                Err(_) => {
                    is_slow = true;
                    break;
                }
            },
            Outbound::Close { code, reason } => {
                close(session, CloseCode::from(code), reason).await;
                break;
            }
        }
    }
    if is_slow || outflow.has_overflown() {
        metrics.refused(Refusal::SlowClient);
    }
    // The reader may have ended first.
    written.send(()).ok();
}

async fn close(session: Session, code: CloseCode, reason: &str) {
    let reason = CloseReason { code, description: Some(reason.to_owned()) };
    // A client that does not even take the close frame is cut by whoever called.
    timeout(WRITE_TIMEOUT, session.close(Some(reason))).await.ok();
}

struct Reader {
    socket: Addr<Socket>,
    room: Room,
    session: Session,
    stream: AggregatedMessageStream,
    behind: gate::Behind,
    text_bytes: usize,
    idle: Duration,
    metrics: Metrics,
}

/// Why reading ended.
enum Ended {
    /// The client closed, vanished, or our writer is done.
    Over,
    /// We close, with a code.
    Close(CloseCode, &'static str),
}

impl Reader {
    async fn run(mut self, done: oneshot::Receiver<()>, connection: Option<Connection>) {
        let ended = self.read(done).await;
        // The actor may have ended first.
        self.socket.send(Frame::Closed).await.ok();
        if let Ended::Close(code, reason) = ended {
            close(self.session.clone(), code, reason).await;
        }
        timeout(LINGER, self.behind.discard()).await.ok();
        if let Some(connection) = connection {
            connection.shut();
        }
    }

    async fn read(&mut self, mut done: oneshot::Receiver<()>) -> Ended {
        let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                biased;
                _ = &mut done => return Ended::Over,
                message = self.stream.next() => {
                    heard = Instant::now();
                    if let Some(ended) = self.take(message).await {
                        return ended;
                    }
                }
                _ = pings.tick() => {
                    if heard.elapsed() >= self.idle {
                        return Ended::Close(CloseCode::Policy, "idle: nothing was received");
                    }
                    // A full pipe is the writer's to judge.
                    timeout(WRITE_TIMEOUT, self.session.ping(b"")).await.ok();
                }
            }
        }
    }

    /// Hands one message on; the answer is `Some` when it was the last.
    async fn take(&mut self, message: Option<Result<AggregatedMessage, ProtocolError>>) -> Option<Ended> {
        let frame = match message {
            Some(Ok(AggregatedMessage::Binary(bytes))) => {
                self.metrics.frame(FrameKind::Audio);
                Frame::Binary(bytes)
            }
            Some(Ok(AggregatedMessage::Text(text))) if text.len() > self.text_bytes => {
                self.refused(Refusal::TooLarge);
                return Some(Ended::Close(CloseCode::Size, "text message too long"));
            }
            Some(Ok(AggregatedMessage::Text(text))) => {
                self.metrics.frame(FrameKind::Message);
                Frame::Text(text.to_string())
            }
            Some(Ok(AggregatedMessage::Ping(bytes))) => {
                timeout(WRITE_TIMEOUT, self.session.pong(&bytes)).await.ok();
                return None;
            }
            Some(Ok(AggregatedMessage::Pong(_))) => return None,
            Some(Ok(AggregatedMessage::Close(reason))) => {
                let code = reason.map_or(CloseCode::Normal, |reason| reason.code);
                return Some(Ended::Close(code, ""));
            }
            Some(Err(error)) => return Some(self.broken(&error)),
            None if self.behind.is_too_long() => return Some(self.broken(&ProtocolError::Overflow)),
            None => return Some(Ended::Over),
        };
        // A client that does not read its answers stops here, until the writer's time is up.
        self.room.wait().await;
        self.socket.send(frame).await.err().map(|_| Ended::Over)
    }

    fn broken(&self, error: &ProtocolError) -> Ended {
        let code = if self.behind.is_too_long() { Some(CloseCode::Size) } else { close_code(error) };
        let Some(code) = code else { return Ended::Over };
        let (reason, told) = if code == CloseCode::Size {
            (Refusal::TooLarge, "frame too long")
        } else if code == CloseCode::Invalid {
            (Refusal::ProtocolViolation, "text that is not UTF-8")
        } else {
            (Refusal::ProtocolViolation, "protocol violation")
        };
        self.refused(reason);
        Ended::Close(code, told)
    }

    fn refused(&self, reason: Refusal) {
        self.metrics.refused(reason);
    }
}

/// The RFC 6455 code for a broken stream; `None` when the peer just vanished.
fn close_code(error: &ProtocolError) -> Option<CloseCode> {
    match error {
        ProtocolError::Overflow => Some(CloseCode::Size),
        ProtocolError::Io(io) if io.to_string().contains("maximum continuation size") => Some(CloseCode::Size),
        ProtocolError::Io(io) if io.get_ref().is_some_and(is_bad_text) => Some(CloseCode::Invalid),
        ProtocolError::Io(io) if io.kind() == std::io::ErrorKind::InvalidData => Some(CloseCode::Protocol),
        ProtocolError::Io(_) => None,
        ProtocolError::UnmaskedFrame
        | ProtocolError::MaskedFrame
        | ProtocolError::InvalidOpcode(_)
        | ProtocolError::InvalidLength(_)
        | ProtocolError::BadOpCode
        | ProtocolError::ContinuationNotStarted
        | ProtocolError::ContinuationStarted
        | ProtocolError::ContinuationFragment(_) => Some(CloseCode::Protocol),
    }
}

fn is_bad_text(inner: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    inner.is::<std::str::Utf8Error>() || inner.to_string().starts_with("invalid utf-8")
}
