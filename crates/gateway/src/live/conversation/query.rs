//! One query's life in its conversation: a turn becomes a dispatch, the socket's answer a reservation and a run, and the
//! run a voiceprint to be judged, unless it fails or is given up on the way. Each part holds what the next one needs, the
//! lease and the trace among it.
//!
//! Does not own what a voiceprint means (`authority` lets the core judge it).

use std::time::Duration;

use actix::prelude::*;
use gpu_worker::Failure;
use gpu_worker::turnstile::Turn;
use matcher_core::budget::Outcome;
use matcher_core::queue::Tried;
use matcher_core::{Embedding, LaneId, Monotonic, RequestId, Speaker};
use telemetry::{FailureKind, TraceContext};

use super::traced::Traced;
use super::{Answer, Conversation, Left, authority};
use crate::live::journal::Brought;
use crate::live::labels;
use crate::live::ledger::Lease;
use crate::live::socket::Reserve;

/// How soon a dispatch is tried again that found its socket's mailbox full.
const RETRY_DELIVERY: Duration = Duration::from_millis(50);

/// A dispatched slot before its socket's answer.
pub(super) struct Asked {
    pub(super) lane: LaneId,
    pub(super) speaker: Speaker,
    pub(super) turn: Turn,
    pub(super) received: Option<Monotonic>,
    pub(super) traced: Traced,
}

/// A settled query whose vector waits for what people decided to be read.
pub(super) struct Returned {
    pub(super) lane: LaneId,
    pub(super) speaker: Speaker,
    pub(super) received: Option<Monotonic>,
    pub(super) traced: Traced,
}

/// A query between its reservation and its settlement.
pub(super) struct OpenQuery {
    pub(super) lane: LaneId,
    pub(super) speaker: Speaker,
    pub(super) lease: Lease,
    pub(super) reserved_at: Monotonic,
    pub(super) received: Option<Monotonic>,
    pub(super) traced: Traced,
    pub(super) future: SpawnHandle,
}

/// What the step that judges a result knows of its query.
#[derive(Default)]
pub(super) struct Judging {
    /// When the segment behind it arrived.
    pub(super) received: Option<Monotonic>,
    pub(super) traced: Traced,
}

impl Conversation {
    /// The slot is back with its age, and is tried again a little later.
    pub(super) fn undelivered(&mut self, request: RequestId, ctx: &mut Context<Self>) {
        if let Some(asked) = self.asked.remove(&request) {
            asked.traced.forget();
        }
        self.retry_in(RETRY_DELIVERY, ctx);
        self.recorder.undelivered(request, self.now());
        self.step(ctx, |core, _, out| core.handle_undelivered(request, out));
    }

    /// Turns a granted turn into a query, or gives it back.
    pub(super) fn dispatch(&mut self, turn: Turn, ctx: &mut Context<Self>) {
        let now = self.now();
        let Some(dispatch) = self.scheduler.poll_dispatch(now) else {
            drop(turn);
            return self.settle_down(ctx);
        };
        self.recorder.selected(&dispatch, now);
        let class = labels::class(dispatch.tried);
        let (by_age, waited) = (labels::by_age(dispatch.by_age), dispatch.waited);
        let context = self.service.telemetry.tracer().begin();
        let (request, lane, speaker) = (dispatch.request, dispatch.lane, dispatch.speaker);
        let Some(link) = self.lanes.get_mut(&lane) else { unreachable!("the core dispatches for its lanes only") };
        if dispatch.tried == Tried::Before {
            // A recording that goes on: its first query was on a socket before.
            link.unexamined.remove(&speaker);
        }
        let received = link.received.get(&speaker).copied();
        let origin = || link.origin(&self.key, speaker, self.service.settings.budget.attempts_max.get());
        let traced = Traced::begin((&self.service, context), &dispatch, origin, now);
        self.asked.insert(request, Asked { lane, speaker, turn, received, traced });
        match link.socket.try_send(Reserve { dispatch, trace: context, conversation: ctx.address() }) {
            Ok(()) => {
                self.service.telemetry.metrics().selected(class, by_age, waited, context);
                self.settle_down(ctx);
            }
            Err(SendError::Full(_)) => {
                self.undelivered(request, ctx);
            }
            Err(SendError::Closed(_)) => {
                self.leave(lane, Left::Gone, ctx);
            }
        }
    }

    /// The socket reserved: the clip goes to the engine, within what remains of its deadline.
    pub(super) fn extract(&mut self, request: RequestId, answer: Answer, ctx: &mut Context<Self>) {
        let asked = self.asked.remove(&request);
        let reserved = self.scheduler.handle_reserved(request, &answer.selection.spans, answer.selection.samples);
        self.recorder.reserved(request, &answer.selection.spans, self.now());
        match (asked, reserved) {
            (Some(asked), Ok(())) => self.submit(request, asked, answer, ctx),
            (asked, _) => {
                // The query was given up meanwhile: the lease settles as cancelled, and the clip is never run.
                drop(answer);
                self.recorder.ran(request, Brought::Nothing, self.now());
                if let Some(asked) = asked {
                    asked.traced.failed(FailureKind::Cancelled);
                }
                self.step(ctx, |core, _, out| core.handle_failed(request, out));
            }
        }
    }

    fn submit(&mut self, request: RequestId, asked: Asked, answer: Answer, ctx: &mut Context<Self>) {
        let Asked { lane, speaker, mut turn, received, mut traced } = asked;
        let Answer { clip, lease, .. } = answer;
        let seconds = clip.seconds();
        turn.charge(Duration::from_secs_f64(seconds));
        let reserved_at = self.now();
        if let Some(heard) = self.lanes.get_mut(&lane).and_then(|link| link.unexamined.remove(&speaker)) {
            self.service.telemetry.metrics().first_examined(reserved_at.since(heard), traced.context());
        }
        let patience = self.service.settings.limits.reservation_deadline;
        let ticket = match traced.reserved(reserved_at, seconds) {
            Some(course) => self.service.engine.submit_noted(clip, patience, course),
            None => self.service.engine.submit(clip, patience),
        };
        let answered = ticket.into_actor(self).map(move |result, this, ctx| {
            drop(turn);
            this.handle_result(request, result, ctx);
        });
        let future = ctx.spawn(answered);
        self.open.insert(request, OpenQuery { lane, speaker, lease, reserved_at, received, traced, future });
        self.settle_down(ctx);
    }

    fn handle_result(&mut self, request: RequestId, result: Result<Embedding, Failure>, ctx: &mut Context<Self>) {
        let Some(mut query) = self.open.remove(&request) else { return };
        let (metrics, now, trace) = (self.service.telemetry.metrics(), self.now(), query.traced.context());
        metrics.extracted(now.since(query.reserved_at), trace);
        self.recorder.ran(request, if result.is_ok() { Brought::Voiceprint } else { Brought::Nothing }, now);
        match result {
            Ok(embedding) => {
                query.lease.settle(Outcome::Extracted);
                query.traced.answered(now);
                let OpenQuery { lane, speaker, received, traced, .. } = query;
                self.returned.insert(request, Returned { lane, speaker, received, traced });
                self.judge(request, embedding, authority::HEARINGS, ctx);
            }
            Err(failure) => {
                let (outcome, kind) = labels::failure(&failure);
                metrics.extraction_failed(kind);
                let (trace_id, span_id) = (trace.map(TraceContext::trace_id), trace.map(TraceContext::span_id));
                let (conversation, kind_name) = (&self.key.conversation, kind.as_str());
                tracing::warn!(%conversation, kind = kind_name, trace_id, span_id, "a query brought no voiceprint");
                query.traced.failed(kind);
                query.lease.settle(outcome);
                self.step(ctx, |core, _, out| core.handle_failed(request, out));
            }
        }
    }

    /// Ends a query from this side: its lease settles, its future is dropped, which tells the engine.
    pub(super) fn give_up(&mut self, request: RequestId, outcome: Outcome, ctx: &mut Context<Self>) {
        self.recorder.ran(request, Brought::Nothing, self.now());
        let kind = match outcome {
            Outcome::DeadlinePassed => FailureKind::DeadlinePassed,
            Outcome::Extracted
            | Outcome::EncodingFailed
            | Outcome::ExtractionFailed
            | Outcome::Cancelled
            | Outcome::WorkerLost => FailureKind::Cancelled,
        };
        if let Some(asked) = self.asked.remove(&request) {
            asked.traced.failed(kind);
        }
        // It has its voiceprint, and what people decided is still being read.
        if let Some(returned) = self.returned.remove(&request) {
            returned.traced.failed(kind);
        }
        if let Some(query) = self.open.remove(&request) {
            ctx.cancel_future(query.future);
            self.service.telemetry.metrics().extraction_failed(kind);
            query.traced.failed(kind);
            query.lease.settle(outcome);
        }
    }
}
