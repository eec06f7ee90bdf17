//! One query's course, noted while it lives, and handed to its trace when it ends.
//!
//! It travels with the query: from its dispatch through the reservation and the run to the judgement, or to wherever it is
//! given up. A query that is not traced costs nothing: there is no box, and every note is skipped. Dropped without an
//! ending it says that its scheduler was lost, as a lease settles itself.
//!
//! Does not own what happens to a query; it only watches. It notes ids, numbers, reasons and moments: no vector, no audio,
//! no words and no names. What the notes look like as a trace is [`told`]'s, on the exporting thread.

mod told;

use std::collections::VecDeque;
use std::sync::Arc;

use gpu_worker::Course;
use matcher_core::{Dispatch, Event, Generation, LaneId, Monotonic, Refusal, Scope, SegmentId, Speaker};
use telemetry::traces::{Ending, Examined, Verdict};
use telemetry::{Class, FailureKind, TraceContext, Violation};

use super::LaneLink;
use crate::live::clock::{Reading, before};
use crate::live::labels;
use crate::live::registry::ConversationKey;
use crate::live::service::Service;

/// Messages of a lane whose way here is remembered for the traces of queries that they bring about. A voice whose slot
/// waits for longer than it takes that many messages to come begins its trace with its slot.
const ARRIVALS_MAX: usize = 64;

/// The latest messages of a lane: when each came to its socket, and when the scheduler took it.
#[derive(Debug, Default)]
pub(super) struct Arrivals(VecDeque<(Monotonic, Monotonic)>);

impl Arrivals {
    pub(super) fn note(&mut self, received: Monotonic, taken: Monotonic) {
        if self.0.len() == ARRIVALS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((received, taken));
    }

    /// When the message came that the scheduler took at this moment.
    fn of(&self, taken: Monotonic) -> Option<Monotonic> {
        self.0.iter().rev().find(|(_, at)| *at == taken).map(|(received, _)| *received)
    }
}

/// Where a query comes from.
pub(super) struct Origin<'a> {
    pub(super) conversation: &'a str,
    pub(super) recording: &'a str,
    pub(super) arrivals: &'a Arrivals,
    /// Samples a second.
    pub(super) hertz: f64,
    /// Attempts that its number has spent.
    pub(super) attempts: u32,
}

impl LaneLink {
    /// Where a query of this lane comes from.
    pub(super) fn origin<'a>(&'a self, key: &'a ConversationKey, speaker: Speaker, attempts_max: u32) -> Origin<'a> {
        Origin {
            conversation: &key.conversation,
            recording: &self.recording,
            arrivals: &self.arrivals,
            hertz: self.hertz,
            attempts: attempts_max.saturating_sub(self.lineage.ledger.left(speaker).voice_attempts),
        }
    }
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Traced(Option<Box<Noted>>);

struct Noted {
    /// Until the end.
    service: Option<Arc<Service>>,
    context: TraceContext,
    conversation: String,
    recording: String,
    segment: SegmentId,
    lane: LaneId,
    generation: Generation,
    speaker: Speaker,
    scope: Scope,
    class: Class,
    attempts: u32,
    evidence_seconds: f64,
    pending_seconds: f64,
    audio_seconds: Option<f64>,
    /// When the message came to its socket that made the voice queueable.
    received: Option<Monotonic>,
    queued: Monotonic,
    dispatched: Monotonic,
    reserved: Option<Monotonic>,
    run: Option<Arc<Course>>,
    answered: Option<Monotonic>,
    examined: Examined,
    ended: Option<(Reading, Ending)>,
}

impl Traced {
    /// Notes the context that [`telemetry::Tracer::begin`] gave, if it gave one.
    pub(super) fn begin<'a>(
        (service, context): (&Arc<Service>, Option<TraceContext>),
        dispatch: &Dispatch,
        origin: impl FnOnce() -> Origin<'a>,
        now: Monotonic,
    ) -> Self {
        let Some(context) = context else { return Self(None) };
        let origin = origin();
        let queued = before(now, dispatch.waited);
        let seconds = |samples: u64| samples as f64 / origin.hertz;
        Self(Some(Box::new(Noted {
            service: Some(Arc::clone(service)),
            context,
            conversation: origin.conversation.to_owned(),
            recording: origin.recording.to_owned(),
            segment: dispatch.segment.clone(),
            generation: dispatch.generation,
            lane: dispatch.lane,
            speaker: dispatch.speaker,
            scope: dispatch.scope.clone(),
            class: labels::class(dispatch.tried),
            attempts: origin.attempts,
            evidence_seconds: seconds(dispatch.evidence),
            pending_seconds: seconds(dispatch.pending),
            audio_seconds: None,
            received: origin.arrivals.of(queued),
            queued,
            dispatched: now,
            reserved: None,
            run: None,
            answered: None,
            examined: Examined::default(),
            ended: None,
        })))
    }

    /// For records and exemplars.
    pub(super) fn context(&self) -> Option<TraceContext> {
        self.0.as_ref().map(|noted| noted.context)
    }

    /// The query goes to the engine with `seconds` of audio. What comes back is where the engine notes its part.
    pub(super) fn reserved(&mut self, now: Monotonic, seconds: f64) -> Option<Arc<Course>> {
        let noted = self.0.as_mut()?;
        let run = Arc::new(Course::traced(noted.context.request()));
        noted.reserved = Some(now);
        noted.audio_seconds = Some(seconds);
        noted.run = Some(Arc::clone(&run));
        Some(run)
    }

    /// The engine answered with a voiceprint.
    pub(super) fn answered(&mut self, now: Monotonic) {
        if let Some(noted) = self.0.as_mut() {
            noted.answered = Some(now);
        }
    }

    /// An event of the step in which the query is judged.
    pub(super) fn note(&mut self, event: &Event) {
        let Some(noted) = self.0.as_mut() else { return };
        match event {
            Event::Decided { lane, speaker, target, ending } if noted.is_about(*lane, *speaker) => {
                noted.examined.decision = Some((labels::target(*target), labels::decision(*ending)));
            }
            Event::Exited { lane, speaker, reason, .. } if noted.is_about(*lane, *speaker) => {
                noted.examined.exit = Some(labels::exit(*reason));
            }
            Event::Published { lane, state, .. }
                if noted.is_about(*lane, state.speaker) && state.scope == noted.scope =>
            {
                let (status, distance, runner_up) = (state.status.as_str(), state.distance, state.runner_up);
                noted.examined.verdict = Some(Verdict { status, distance, runner_up });
            }
            Event::Decided { .. }
            | Event::Exited { .. }
            | Event::Published { .. }
            | Event::Failed { .. }
            | Event::Retracted { .. }
            | Event::Suggested { .. }
            | Event::RolledOver { .. }
            | Event::Reconnected { .. }
            | Event::Collapsed { .. }
            | Event::Released { .. }
            | Event::Overdue { .. } => {}
        }
    }

    /// The step in which it was judged is done, and what changed is published.
    pub(super) fn judged(mut self) {
        if let Some(noted) = self.0.take() {
            let examined = noted.examined;
            noted.end(Ending::Examined(examined));
        }
    }

    /// Nothing was reserved.
    pub(super) fn refused(mut self, refusal: Refusal) {
        if let Some(noted) = self.0.take() {
            noted.end(match refusal {
                Refusal::Denied(cap) => Ending::Denied(labels::cap(cap)),
                Refusal::Exit(reason) => Ending::Exited(labels::exit(reason)),
            });
        }
    }

    /// It brought no voiceprint, or was given up before it could.
    pub(super) fn failed(mut self, kind: FailureKind) {
        if let Some(noted) = self.0.take() {
            noted.end(Ending::Failed(kind.as_str()));
        }
    }

    /// It was no query after all: its slot is back in the queue with its age, and its next turn has a trace.
    pub(super) fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if let Some(noted) = self.0.take() {
            noted.end(Ending::Failed(Violation::SchedulerLost.as_str()));
        }
    }
}

impl Noted {
    /// The step in which it is judged may change other voices as well.
    fn is_about(&self, lane: LaneId, speaker: Speaker) -> bool {
        lane == self.lane && speaker == self.speaker
    }

    fn end(mut self: Box<Self>, ending: Ending) {
        // What waits for the exporter must not keep the service.
        let Some(service) = self.service.take() else { return };
        self.ended = Some((service.clock.read(), ending));
        service.telemetry.tracer().finish(self);
    }
}
