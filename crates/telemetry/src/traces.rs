//! One trace a query: from the message that made its voice queueable to what was published.
//!
//! ```text
//!   Tracer::begin ─▶ TraceContext (two numbers) travels with the query
//!                                                   the query ends ─▶ QueryTrace ─▶ Tracer::finish ─▶ queue ─▶ collector
//! ```
//! Nothing is kept in a thread's locals and no span is open while a query waits: its moments are noted by whoever holds
//! it, and its spans are made after its end, on the exporting thread. Without a collector, or for a query that the sampler
//! leaves out, there is no context and nothing is built.
//!
//! Does not own what a query is (the gateway's), or how spans are sent (see `otlp`). There is no field here for a vector,
//! for audio, for a transcript or for a person.

mod context;
mod sampler;
mod spans;

use std::sync::Arc;
use std::time::SystemTime;

pub use context::TraceContext;
pub use sampler::Sampler;
pub(crate) use spans::encode;

use crate::labels::{Cap, Class, Decision, ExitReason, Target};
use crate::otlp::Queue;

/// Begins and ends traces. Clones share their queue.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Traced>>);

struct Traced {
    sampler: Sampler,
    queue: Queue<Ended>,
}

/// A query that has ended. Its trace is made on the exporting thread, so that the query's own pays for nothing but notes.
pub trait Query: Send {
    /// The trace. Asked for again when the collector did not take it.
    fn trace(&self) -> QueryTrace;
}

/// As it waits.
pub(crate) type Ended = Box<dyn Query>;

impl Tracer {
    pub(crate) fn new(sampler: Sampler, queue: Queue<Ended>) -> Self {
        Self(Some(Arc::new(Traced { sampler, queue })))
    }

    /// A context for a new query. `None` when traces are off, or the sampler leaves this one out.
    #[must_use]
    pub fn begin(&self) -> Option<TraceContext> {
        let traced = self.0.as_ref()?;
        let context = TraceContext::random();
        traced.sampler.takes(context).then_some(context)
    }

    /// Whether any query is traced at all.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Hands over a query that has ended. It never waits: when the collector is behind, the trace is dropped and counted.
    pub fn finish(&self, query: Box<dyn Query>) {
        if let Some(traced) = &self.0 {
            traced.queue.offer(query);
        }
    }
}

/// A query that has ended, as its trace tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTrace {
    /// As it was begun.
    pub context: TraceContext,
    /// When the message came that made the voice queueable.
    pub started: SystemTime,
    /// When what came out was published, or the query was given up.
    pub ended: SystemTime,
    /// What was examined.
    pub subject: Subject,
    /// What came out.
    pub ending: Ending,
    /// What the query went through, in order.
    pub steps: Vec<Step>,
}

/// What a query examines.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// The conversation's id, as the client gave it.
    pub conversation: String,
    /// The recording's id, as the client gave it.
    pub recording: String,
    /// The client's id of the latest segment that the query stands for.
    pub segment: String,
    /// The generation of the voice's lane.
    pub generation: u64,
    /// The voice's number.
    pub speaker: i64,
    /// Whether a query was spent on the number before.
    pub class: Class,
    /// Attempts that the number had spent before this query.
    pub attempts: u32,
    /// Seconds of speech that its voiceprints stand on.
    pub evidence_seconds: f64,
    /// Seconds of speech that waited to be examined.
    pub pending_seconds: f64,
    /// Seconds of audio that the model was given; none when nothing was reserved.
    pub audio_seconds: Option<f64>,
}

/// What came out of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// The model gave a voiceprint.
    Examined(Examined),
    /// The budget denied the query.
    Denied(Cap),
    /// There was nothing to reserve for.
    Exited(ExitReason),
    /// A reservation was spent, or the query was given up before, for this reason.
    Failed(&'static str),
}

/// What followed from a voiceprint.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Examined {
    /// The decision and whom it is about; none when the query led to none.
    pub decision: Option<(Target, Decision)>,
    /// Why there was no decision.
    pub exit: Option<ExitReason>,
    /// What was published of the voice, when that changed.
    pub verdict: Option<Verdict>,
}

/// What was published of a voice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The status, as on the wire.
    pub status: &'static str,
    /// Cosine distance to the nearest person.
    pub distance: Option<f64>,
    /// Cosine distance to the next.
    pub runner_up: Option<f64>,
}

/// One span below the query's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it is.
    pub stage: Stage,
    /// When it began.
    pub from: SystemTime,
    /// When it ended.
    pub to: SystemTime,
    /// Why it failed, when it did.
    pub error: Option<&'static str>,
}

/// What a query goes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// The message with the segments travels from its socket to the scheduler.
    Offer,
    /// The voice waits in the queue for its turn.
    Queue,
    /// The socket picks the audio and reserves.
    Reserve,
    /// The clip waits for a worker.
    Batch,
    /// The worker makes the voiceprint.
    Extract,
    /// ... by asking another machine. It lies within [`Stage::Extract`].
    Request {
        /// Host and port, as configured.
        server: String,
        /// The status that came back, when one did.
        status: Option<u16>,
    },
    /// What people decided is read, the voice is judged, and what changed is published.
    Decide,
}
