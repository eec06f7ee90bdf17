//! One client's socket as an actor: its audio, its labels, its right to spend.
//!
//! Family: started by the WebSocket endpoint for each connection (or by a test, without one); ends with its connection.
//! In: frames from the client; `Reserve`, `Publish` and releases from its conversation; drain and take-over from the
//! registry. Out: events to the client through a bounded outlet; offers and answers to its conversation.
//!
//! It owns the ring, the clock of its audio and the table of its voices, and it alone reserves in its lane's ledger: in
//! one handler, with nothing awaited, it clamps to the ring, picks the audio, reserves, and answers.

mod commands;
mod joining;
mod live;
mod outlet;
mod reserve;

use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use bytes::Bytes;
use matcher_core::{Dispatch, Event, LaneId, Speaker};
use telemetry::{Share, TraceContext};

use super::conversation::{Conversation, Released};
use super::protocol::{self, Refused};
use super::registry::ConversationKey;
use super::service::Service;
use live::Live;

pub use outlet::{Outbound, Outflow, Outlet, Room, outlet};

/// Messages that may wait: a full outlet of events and the dispatches of all places. Frames wait with their sender.
const MAILBOX: usize = 2048;

/// How long a connection may take to send its `start`, so that idle ones do not hold the places of others.
const START_WITHIN: Duration = Duration::from_secs(30);

/// What the client sent.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum Frame {
    /// Audio.
    Binary(Bytes),
    /// A message.
    Text(String),
    /// The connection is gone.
    Closed,
}

/// The service stops: say goodbye.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct Drain;

/// Another socket took this recording over.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub(super) struct TakenOver;

/// An event found the mailbox full: this client does not keep up.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub(super) struct Overwhelmed;

/// A slot became a query: pick the audio, reserve, answer.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Reserve {
    pub(super) dispatch: Dispatch,
    /// Of the query, when it is traced.
    pub(super) trace: Option<TraceContext>,
    pub(super) conversation: Addr<Conversation>,
}

/// Something about a voice of this socket changed.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Publish(pub(super) Event);

/// A number of the lane's former conversation is free; the current conversation is told.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub(super) struct ForwardRelease {
    pub(super) speaker: Speaker,
}

/// The conversation's actor was lost.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct ConversationLost {
    pub(super) key: ConversationKey,
    pub(super) may_rejoin: bool,
}

enum Phase {
    /// Before `start`.
    Waiting,
    /// After `start`.
    Live(Box<Live>),
    /// After `stop`: the last verdicts come, the client is not heard any more.
    Stopping(Box<Live>),
    /// After the goodbye.
    Closed,
}

/// See the module's text.
pub struct Socket {
    service: Arc<Service>,
    id: String,
    account: String,
    outlet: Outlet,
    phase: Phase,
    _one: Share,
}

impl Socket {
    /// A socket of `account`, whose events go to `outlet`.
    #[must_use]
    pub fn new(service: Arc<Service>, account: &str, id: String, outlet: Outlet) -> Self {
        let one = service.telemetry.metrics().levels().sockets.one();
        Self { service, id, account: account.to_owned(), outlet, phase: Phase::Waiting, _one: one }
    }

    fn live(&self) -> Option<&Live> {
        match &self.phase {
            Phase::Live(live) | Phase::Stopping(live) => Some(live),
            Phase::Waiting | Phase::Closed => None,
        }
    }

    fn live_mut(&mut self) -> Option<&mut Live> {
        match &mut self.phase {
            Phase::Live(live) | Phase::Stopping(live) => Some(live),
            Phase::Waiting | Phase::Closed => None,
        }
    }

    fn send(&self, event: &protocol::Event) {
        self.outlet.send(event);
    }

    fn refuse(&self, refused: Refused) {
        self.service.telemetry.metrics().refused(refused.reason);
        let Refused { code, message, field, .. } = refused;
        self.send(&protocol::Event::Error { code, message, field, speaker: None, label: None, segment_id: None });
    }

    /// Leaves the lane, closes the connection with an RFC 6455 code, and ends.
    fn close(&mut self, code: u16, reason: &'static str, ctx: &mut Context<Self>) {
        self.phase = Phase::Closed;
        self.outlet.close(code, reason);
        self.service.registry.socket_left(&self.id);
        ctx.stop();
    }
}

impl Actor for Socket {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        ctx.run_later(START_WITHIN, |this, ctx| {
            if matches!(this.phase, Phase::Waiting) {
                this.close(1008, "no start came in time", ctx);
            }
        });
    }
}

/// Also after a panic: the connection closes with 1011, and the lane is left by [`Live`]'s own drop.
impl Drop for Socket {
    fn drop(&mut self) {
        self.service.registry.socket_left(&self.id);
        if std::thread::panicking() {
            self.service.telemetry.metrics().violated(telemetry::Violation::SocketLost);
            self.outlet.close(1011, "internal error");
        }
    }
}

/// The answer to a frame waits until all of it was taken, by the conversation too: a client that sends faster than that
/// is slowed down, and the events of one message come before the next message is read.
impl Handler<Frame> for Socket {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, frame: Frame, ctx: &mut Self::Context) -> Self::Result {
        let work = match frame {
            Frame::Closed => {
                self.phase = Phase::Closed;
                ctx.stop();
                None
            }
            Frame::Binary(bytes) => {
                self.handle_audio(&bytes);
                None
            }
            Frame::Text(text) => match protocol::parse(&text, self.service.settings.sockets.bounds) {
                Ok(message) => self.handle_message(message, ctx),
                Err(refused) => {
                    self.refuse(refused);
                    None
                }
            },
        };
        AtomicResponse::new(work.unwrap_or_else(|| Box::pin(actix::fut::ready(()))))
    }
}

/// What remains of a message: the socket does nothing else before it is done.
type Work = std::pin::Pin<Box<dyn ActorFuture<Socket, Output = ()>>>;

impl Handler<Reserve> for Socket {
    type Result = ();

    fn handle(&mut self, Reserve { dispatch, trace, conversation }: Reserve, _: &mut Self::Context) {
        let request = dispatch.request;
        let answer = self.reserve(&dispatch, trace);
        #[expect(
            clippy::disallowed_methods,
            reason = "a lost answer would leak a lock and a lease; one an open query"
        )]
        conversation.do_send(super::conversation::Answered { request, answer });
    }
}

impl Handler<Publish> for Socket {
    type Result = ();

    fn handle(&mut self, Publish(event): Publish, _: &mut Self::Context) {
        let Some(live) = self.live_mut().filter(|live| live.is_current(&event)) else { return };
        live.note(&event);
        if let Some(event) = live.event(event) {
            self.send(&event);
        }
    }
}

impl Handler<ForwardRelease> for Socket {
    type Result = ();

    fn handle(&mut self, ForwardRelease { speaker }: ForwardRelease, _: &mut Self::Context) {
        let Some(live) = self.live() else { return };
        let lane: LaneId = live.lane();
        #[expect(clippy::disallowed_methods, reason = "a lost message would leak a lock; one an open query")]
        live.conversation().do_send(Released { lane, speaker });
    }
}

impl Handler<Overwhelmed> for Socket {
    type Result = ();

    fn handle(&mut self, _: Overwhelmed, ctx: &mut Self::Context) {
        self.service.telemetry.metrics().refused(telemetry::Refusal::SlowClient);
        self.close(1008, "too slow: events were not read in time", ctx);
    }
}

impl Handler<TakenOver> for Socket {
    type Result = ();

    fn handle(&mut self, _: TakenOver, ctx: &mut Self::Context) {
        self.goodbye("taken_over", Vec::new());
        self.close(1000, "taken over by another socket of this recording", ctx);
    }
}

impl Handler<Drain> for Socket {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) {
        self.say_goodbye("draining", 1001, ctx);
    }
}

impl Handler<ConversationLost> for Socket {
    type Result = ();

    fn handle(&mut self, lost: ConversationLost, ctx: &mut Self::Context) {
        if self.live().is_none_or(|live| *live.key() != lost.key) {
            return;
        }
        if lost.may_rejoin { self.rejoin(ctx) } else { self.close(1011, "this conversation keeps failing", ctx) }
    }
}
