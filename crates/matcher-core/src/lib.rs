//! Who is speaker 3? The rules of live, open-set speaker naming, and nothing but the rules.
//!
//! This crate decides and performs nothing: no async, no clock, no log, no metric, no I/O. Time and audio positions are
//! arguments, everything is bounded, and what follows from an event comes back as values. Three state machines stand at
//! the front:
//!
//! - [`Budget`]: how many model queries one lane may make, and the books over them;
//! - [`Scheduler`]: one conversation: queue, locks, evidence, decisions, arbitration, publication;
//! - [`Timeline`]: where a lane's audio lies in time, and which of it a query gets.
//!
//! # The loop
//! 1. `scheduler.handle_batch(..)` with the segments of a message;
//! 2. when the pool grants a turn, `scheduler.poll_dispatch(now)` names one voice and its fresh speech;
//! 3. `timeline.pick(..)` chooses the audio, and then, with nothing awaited between, `budget.reserve(..)` spends;
//! 4. `scheduler.handle_reserved(..)` or `handle_refused(..)` takes the answer;
//! 5. a worker computes the voiceprint; `budget.settle(..)` closes the reservation, once;
//! 6. `scheduler.handle_extracted(..)` or `handle_failed(..)`; the events that come out are published.
//!
//! Between steps, `scheduler.poll_timeout()` says when `handle_timeout(now)` is due.

pub mod arbitration;
pub mod budget;
mod collapse;
mod continuity;
mod embedding;
mod event;
pub mod evidence;
mod exit;
mod ids;
mod lane;
mod limits;
mod memory;
pub mod policy;
pub mod queue;
pub mod receipt;
mod scheduler;
mod span;
mod time;
mod timeline;
pub mod translator;

pub use budget::Budget;
pub use continuity::{Device, Hint, Keepsake, Kept, Reconnect};
pub use embedding::{BadVector, Centroid, Embedding};
pub use event::{Batch, Change, Dispatch, Ending, Event, Identity, Join, Offer, Origin, Status, Target, VoiceState};
pub use exit::{Cap, ExitReason};
pub use ids::{Generation, LaneId, PersonId, RequestId, Scope, SegmentId, Speaker};
pub use lane::{Explanation, Waiting};
pub use limits::{Floors, Limits};
pub use memory::{Carried, Carry, CarryReason, Donor, Ground, HandOver, Memory};
pub use policy::{Gallery, Policy, Print, Role, Suggestions};
pub use queue::SpeakerMatchQueue;
pub use receipt::Receipt;
pub use scheduler::{JoinRefused, Over, Refusal, Scheduler};
pub use span::{EmptySpan, Rate, Sample, Span, Spans};
pub use time::Monotonic;
pub use timeline::{BadTime, STRETCHES_MAX, Selection, Timeline};
pub use translator::{Translator, Unmapped};
