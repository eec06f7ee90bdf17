//! A client of `GET /v1/listen`: what `rollcall stream` and `rollcall bench sockets` speak to a server with.
//!
//! Owns the handshake, the writing of messages and the reading of events. A [`Sender`] waits for the network, so that a
//! server that takes its time slows its client down and no memory grows; every wait has an end. Events stay JSON: what
//! they mean is the caller's business. When what is sent belongs to [`play`].

pub mod play;

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

/// The subprotocol.
const PROTOCOL: &str = "rollcall.v1";

/// Somebody listens there, or nobody does.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// A server that takes nothing for so long is gone, or hangs.
const SEND_MAX: Duration = Duration::from_secs(30);

/// A goodbye with all voices of a recording stays far below.
const EVENT_BYTES_MAX: usize = 4 << 20;

/// Events are a few hundred bytes, and a load generator holds many connections.
const READ_BUFFER_BYTES: usize = 8 << 10;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Why a client could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL is none.
    #[error("{url}: is not like http://127.0.0.1:8700; for a server behind TLS, open a tunnel and name its local end")]
    Url {
        /// What was given.
        url: String,
    },
    /// Nobody listens there.
    #[error("no server at {url}: {source}; start one with: rollcall serve --listen {authority}")]
    NoServer {
        /// What was given.
        url: String,
        /// Host and port.
        authority: String,
        /// Why.
        source: io::Error,
    },
    /// Somebody answers, and does not take the socket.
    #[error("{url} does not take the socket: {reason}")]
    Refused {
        /// What was given.
        url: String,
        /// What the server said.
        reason: String,
    },
    /// The connection broke.
    #[error("the connection to the server broke: {0}")]
    Broken(String),
    /// The server does not read.
    #[error("the server has taken nothing for {} s", SEND_MAX.as_secs())]
    Stuck,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    url: String,
    authority: String,
}

impl Address {
    /// The server at a plain HTTP URL, such as `http://127.0.0.1:8700`.
    ///
    /// # Errors
    /// When the URL is something else.
    pub fn parse(url: &str) -> Result<Self, ClientError> {
        let base = url.trim_end_matches('/');
        let authority = base.strip_prefix("http://").unwrap_or_default();
        if authority.is_empty() || authority.contains(['/', '?', '#', '@', ' ']) {
            return Err(ClientError::Url { url: url.to_owned() });
        }
        Ok(Self { url: base.to_owned(), authority: authority.to_owned() })
    }

    /// The URL, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Opens a socket.
    ///
    /// # Errors
    /// When nobody listens there, or whoever does refuses.
    pub async fn connect(&self) -> Result<(Sender, Events), ClientError> {
        let mut request = format!("ws://{}/v1/listen", self.authority)
            .into_client_request()
            .map_err(|_| ClientError::Url { url: self.url.clone() })?;
        request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static(PROTOCOL));
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(EVENT_BYTES_MAX));
        let connecting = connect_async_with_config(request, Some(config), true);
        let (socket, _) = match timeout(CONNECT_MAX, connecting).await {
            Ok(connected) => connected.map_err(|error| self.refusal(error))?,
            Err(_) => return Err(self.no_server(io::ErrorKind::TimedOut.into())),
        };
        let (sink, stream) = socket.split();
        Ok((Sender { sink }, Events { stream }))
    }

    fn refusal(&self, error: Error) -> ClientError {
        let reason = match error {
            Error::Io(source) => return self.no_server(source),
            Error::Http(response) => {
                let detail = response.body().as_deref().and_then(problem);
                detail.unwrap_or_else(|| status_text(response.status()))
            }
            other @ (Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Tls(_)
            | Error::Capacity(_)
            | Error::Protocol(_)
            | Error::WriteBufferFull(_)
            | Error::Utf8(_)
            | Error::AttackAttempt
            | Error::Url(_)
            | Error::HttpFormat(_)) => other.to_string(),
        };
        ClientError::Refused { url: self.url.clone(), reason }
    }

    fn no_server(&self, source: io::Error) -> ClientError {
        ClientError::NoServer { url: self.url.clone(), authority: self.authority.clone(), source }
    }
}

/// The reason in a problem document.
fn problem(body: &[u8]) -> Option<String> {
    let problem: Value = serde_json::from_slice(body).ok()?;
    problem.get("detail").and_then(Value::as_str).map(str::to_owned)
}

fn status_text(status: StatusCode) -> String {
    format!("it answers {status}; is it Rollcall?")
}

/// What a recording is called, and how its samples come: mono, 16-bit little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Starting the same one again continues its budget.
    pub recording: String,
    /// Several sockets can be in one.
    pub conversation: String,
    /// Samples per second.
    pub sample_rate: u32,
    /// Whether updates without a verdict are told as well.
    pub verbose: bool,
}

/// One stretch of one speaker.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The client's id.
    pub id: String,
    /// A number or a label, as the protocol takes it.
    pub speaker: Value,
    /// Seconds of the audio.
    pub start: f64,
    /// Seconds of the audio.
    pub end: f64,
}

/// The way to the server.
#[derive(Debug)]
pub struct Sender {
    sink: SplitSink<Socket, Message>,
}

impl Sender {
    /// Begins the recording.
    ///
    /// # Errors
    /// When the connection broke, or the server does not read.
    pub async fn start(&mut self, start: &Start) -> Result<(), ClientError> {
        self.text(&json!({
            "type": "start",
            "recording_id": start.recording,
            "conversation_id": start.conversation,
            "audio": {"encoding": "pcm_s16le", "sample_rate": start.sample_rate, "channels": 1},
            "verbose": start.verbose,
        }))
        .await
    }

    /// Sends audio, encoded as the start said. Returns when the network has taken it.
    ///
    /// # Errors
    /// When the connection broke, or the server does not read.
    pub async fn audio(&mut self, bytes: Bytes) -> Result<(), ClientError> {
        self.send(Message::Binary(bytes)).await
    }

    /// Sends segments in one message; none sends nothing.
    ///
    /// # Errors
    /// When the connection broke, or the server does not read.
    pub async fn segments(&mut self, segments: &[Segment]) -> Result<(), ClientError> {
        if segments.is_empty() {
            return Ok(());
        }
        let segments: Vec<Value> = segments
            .iter()
            .map(|segment| {
                json!({"id": segment.id, "speaker": segment.speaker, "start": segment.start, "end": segment.end})
            })
            .collect();
        self.text(&json!({"type": "segments", "segments": segments})).await
    }

    /// Asks for the last verdicts and the goodbye.
    ///
    /// # Errors
    /// When the connection broke, or the server does not read.
    pub async fn stop(&mut self) -> Result<(), ClientError> {
        self.text(&json!({"type": "stop"})).await
    }

    async fn text(&mut self, message: &Value) -> Result<(), ClientError> {
        self.send(Message::text(message.to_string())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), ClientError> {
        match timeout(SEND_MAX, self.sink.send(message)).await {
            Ok(sent) => sent.map_err(|error| ClientError::Broken(error.to_string())),
            Err(_) => Err(ClientError::Stuck),
        }
    }
}

/// What came from the server.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// An event, as its JSON text.
    Event(Utf8Bytes),
    /// The server closed the socket; the code and reason, when it gave them.
    Closed(Option<CloseFrame>),
}

/// The way from the server. Pings are answered while it is read.
#[derive(Debug)]
pub struct Events {
    stream: SplitStream<Socket>,
}

impl Events {
    /// The next event. After [`Heard::Closed`] nothing comes any more.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn next(&mut self) -> Result<Heard, ClientError> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => return Ok(Heard::Event(text)),
                Some(Ok(Message::Close(frame))) => return Ok(Heard::Closed(frame)),
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                None | Some(Err(Error::ConnectionClosed | Error::AlreadyClosed)) => return Ok(Heard::Closed(None)),
                Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) => {
                    return Ok(Heard::Closed(None));
                }
                Some(Err(error)) => return Err(ClientError::Broken(error.to_string())),
            }
        }
    }
}

/// Samples as they go over the wire.
#[must_use]
pub fn encoded(samples: &[i16]) -> Bytes {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    //! Goal: a URL that cannot work is refused before anything is sent, and a refusal tells the server's own reason.
    //! Method: values by hand; a connection to a port where nobody listens.

    use super::*;

    #[test]
    fn a_server_is_named_by_a_plain_http_url() {
        assert_eq!(Address::parse("http://127.0.0.1:8700/").unwrap().authority, "127.0.0.1:8700");
        for url in ["", "127.0.0.1:8700", "https://example.org", "ws://a", "http://", "http://a/b", "http://u@h"] {
            assert!(matches!(Address::parse(url), Err(ClientError::Url { .. })), "{url}");
        }
    }

    #[tokio::test]
    async fn a_port_where_nobody_listens_is_told_with_the_mend() {
        // Bound and not listened on: nobody else can take the port meanwhile.
        let port = tokio::net::TcpSocket::new_v4().unwrap();
        port.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("http://{}", port.local_addr().unwrap());
        let error = Address::parse(&url).unwrap().connect().await.err().unwrap().to_string();
        assert!(
            error.contains(&url) && error.contains("start one with: rollcall serve --listen 127.0.0.1:"),
            "{error}"
        );
    }

    #[test]
    fn a_problem_document_gives_its_reason() {
        assert_eq!(problem(br#"{"detail":"this server is draining"}"#).unwrap(), "this server is draining");
        assert_eq!(problem(b"<html>"), None);
    }

    #[test]
    fn samples_are_little_endian() {
        assert_eq!(encoded(&[1, -2]).as_ref(), [1, 0, 254, 255]);
    }
}
