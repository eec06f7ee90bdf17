//! What the simulated world asks of a policy, and the service's own: a thin coat over [`Scheduler`].

use std::collections::BTreeSet;

use matcher_core::{
    Batch, Dispatch, Embedding, Event, Generation, Join, LaneId, Limits, Monotonic, Offer, Rate, Refusal, RequestId,
    Scheduler, Scope, Selection, Span, Speaker, Status,
};

use super::voices;

/// Everything happens in one lane, and it never rolls over.
pub(super) const LANE: LaneId = LaneId(1);
pub(super) const GENERATION: Generation = Generation(1);

/// Who is examined next.
pub(super) trait Discipline {
    /// A message of updates came.
    fn handle_message(&mut self, offers: Vec<Offer>, ring: Option<Span>, now: Monotonic);
    /// The next voice to examine, when so many workers are free.
    fn poll_dispatch(&mut self, now: Monotonic, free: usize) -> Option<Dispatch>;
    /// A token was spent, and this audio goes to a worker.
    fn handle_reserved(&mut self, request: RequestId, selection: &Selection);
    /// No token was spent.
    fn handle_refused(&mut self, request: RequestId, refusal: Refusal);
    /// The worker answered.
    fn handle_extracted(&mut self, request: RequestId, embedding: Embedding, now: Monotonic);
    /// The worker brought nothing.
    fn handle_failed(&mut self, request: RequestId);
    /// Every number that waits, in work or not.
    fn waiting(&self) -> BTreeSet<Speaker>;
    /// Every number that could be examined now, if a worker were free for it.
    fn eligible(&self) -> BTreeSet<Speaker>;
    /// Whether the latest verdict on a voice is that it is nobody who is enrolled.
    fn is_rejected(&self, speaker: Speaker) -> bool;
    /// Whether the latest verdict on a voice is a name.
    fn is_named(&self, speaker: Speaker) -> bool;
}

/// The service's.
pub(super) struct Fair {
    scheduler: Scheduler,
    rejected: BTreeSet<Speaker>,
    named: BTreeSet<Speaker>,
}

impl Fair {
    pub(super) fn new(rate: Rate, limits: Limits) -> Self {
        let mut scheduler = Scheduler::new(limits, voices::POLICY);
        let join = Join::new(GENERATION, rate, voices::gallery());
        scheduler.handle_joined(LANE, join).expect("an empty conversation has room");
        Self { scheduler, rejected: BTreeSet::new(), named: BTreeSet::new() }
    }

    fn note(&mut self, events: Vec<Event>) {
        for event in events {
            if let Event::Published { state, .. } = event {
                self.rejected.remove(&state.speaker);
                self.named.remove(&state.speaker);
                match state.status {
                    Status::NoMatch => self.rejected.insert(state.speaker),
                    Status::User | Status::NotUser => self.named.insert(state.speaker),
                    Status::Ambiguous | Status::Unknown | Status::Pending => continue,
                };
            }
        }
    }
}

impl Discipline for Fair {
    fn handle_message(&mut self, offers: Vec<Offer>, ring: Option<Span>, now: Monotonic) {
        let mut out = Vec::new();
        let batch = Batch { generation: GENERATION, scope: Scope::new(""), ring, offers };
        self.scheduler.handle_batch(LANE, batch, now, &mut out);
        self.note(out);
    }

    fn poll_dispatch(&mut self, now: Monotonic, _free: usize) -> Option<Dispatch> {
        self.scheduler.poll_dispatch(now)
    }

    fn handle_reserved(&mut self, request: RequestId, selection: &Selection) {
        let reserved = self.scheduler.handle_reserved(request, &selection.spans, selection.samples);
        reserved.expect("nothing ended the query that was just dispatched");
    }

    fn handle_refused(&mut self, request: RequestId, refusal: Refusal) {
        let mut out = Vec::new();
        self.scheduler.handle_refused(request, refusal, &mut out);
        self.note(out);
    }

    fn handle_extracted(&mut self, request: RequestId, embedding: Embedding, now: Monotonic) {
        let mut out = Vec::new();
        self.scheduler.handle_extracted(request, embedding, now, &mut out);
        self.note(out);
    }

    fn handle_failed(&mut self, request: RequestId) {
        let mut out = Vec::new();
        self.scheduler.handle_failed(request, &mut out);
        self.note(out);
    }

    fn waiting(&self) -> BTreeSet<Speaker> {
        let waiting = self.scheduler.queue(LANE).into_iter().flat_map(|queue| queue.waiting());
        waiting.map(|(voice, ..)| voice.speaker).collect()
    }

    fn eligible(&self) -> BTreeSet<Speaker> {
        let mut waiting = self.waiting();
        self.scheduler.in_work(LANE).iter().for_each(|speaker| {
            waiting.remove(speaker);
        });
        waiting
    }

    fn is_rejected(&self, speaker: Speaker) -> bool {
        self.rejected.contains(&speaker)
    }

    fn is_named(&self, speaker: Speaker) -> bool {
        self.named.contains(&speaker)
    }
}
