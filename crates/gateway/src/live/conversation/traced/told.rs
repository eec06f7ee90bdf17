//! An ended query's notes as its trace: which step lies where, and which of them failed. Runs on the exporting thread.

use std::ops::Range;

use gpu_worker::Course;
use matcher_core::Monotonic;
use telemetry::traces::{Ending, Query, QueryTrace, Stage, Step, Subject};

use super::Noted;
use crate::live::clock::Reading;

impl Query for Noted {
    fn trace(&self) -> QueryTrace {
        let (read, ending) = self.ended.as_ref().expect("a query is handed over at its end");
        let (read, now) = (*read, read.now());
        let error = if let Ending::Failed(error) = ending { Some(*error) } else { None };
        let mut steps = Vec::with_capacity(7);
        if let Some(received) = self.received {
            steps.push(step(read, Stage::Offer, received..self.queued));
        }
        steps.push(step(read, Stage::Queue, self.queued..self.dispatched));
        steps.push(step(read, Stage::Reserve, self.dispatched..self.reserved.unwrap_or(now)));
        if let Some(reserved) = self.reserved {
            self.extraction(read, reserved..self.answered.unwrap_or(now), error, &mut steps);
        }
        if let Some(answered) = self.answered {
            steps.push(Step { error, ..step(read, Stage::Decide, answered..now) });
        }
        QueryTrace {
            context: self.context,
            started: read.wall(self.received.unwrap_or(self.queued)),
            ended: read.wall(now),
            subject: self.subject(),
            ending: ending.clone(),
            steps,
        }
    }
}

impl Noted {
    fn subject(&self) -> Subject {
        Subject {
            conversation: self.conversation.clone(),
            recording: self.recording.clone(),
            segment: self.segment.as_str().to_owned(),
            generation: self.generation.0,
            speaker: self.speaker.0.into(),
            class: self.class,
            attempts: self.attempts,
            evidence_seconds: self.evidence_seconds,
            pending_seconds: self.pending_seconds,
            audio_seconds: self.audio_seconds,
        }
    }

    /// The wait for a worker and the run, as far as the engine told. One that tells nothing has run all the time.
    fn extraction(&self, read: Reading, during: Range<Monotonic>, error: Option<&'static str>, steps: &mut Vec<Step>) {
        let run = self.run.as_deref();
        let error = error.filter(|_| self.answered.is_none());
        // A worker may take up a query after its caller has left; that is no part of it.
        let began = run.and_then(Course::started).filter(|instant| read.has_passed(*instant));
        let Some(began) = began.map(|instant| read.past(instant)) else {
            let stage = if self.answered.is_some() { Stage::Extract } else { Stage::Batch };
            return steps.push(Step { error, ..step(read, stage, during) });
        };
        let over = run.and_then(Course::over).map_or(during.end, |instant| read.past(instant));
        steps.push(step(read, Stage::Batch, during.start..began));
        steps.push(Step { error, ..step(read, Stage::Extract, began..over) });
        if let Some(request) = run.and_then(Course::request) {
            let stage = Stage::Request { server: request.server.clone(), status: request.status };
            let error = request.fault;
            steps.push(Step { error, ..step(read, stage, read.past(request.sent)..read.past(request.over)) });
        }
    }
}

fn step(read: Reading, stage: Stage, during: Range<Monotonic>) -> Step {
    let from = read.wall(during.start);
    // Two clocks meet here; a step that seems to end before it begins has taken no time.
    Step { stage, from, to: from + during.end.since(during.start), error: None }
}
