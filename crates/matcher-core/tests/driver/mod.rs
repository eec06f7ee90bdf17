//! Plays everything around the core, synchronously: sockets (ring, budget), the pool, the clock and the counters.
//!
//! Owns the loop of the crate's documentation and books what the service would book. Decides nothing: every rule under
//! test lives in the core. Scripted answers stand in for the model; a query can be held open, failed, or left to its
//! deadline.

#![allow(dead_code, reason = "each test file uses another part of the driver")]

mod fixture;
pub(crate) mod moves;
pub(crate) mod people;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use matcher_core::budget::{self, Denied, Outcome, Refused, Reservation, Seen, Settled};
use matcher_core::{
    Batch, Budget, Cap, Device, Dispatch, Embedding, Event, ExitReason, Gallery, Generation, Join, Keepsake, LaneId,
    Limits, Monotonic, Refusal, RequestId, Scheduler, Scope, Selection, Speaker, Timeline,
};

pub(crate) use fixture::*;

/// What the scripted model does with one query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    /// A voiceprint.
    Vector([f32; 2]),
    /// An ending without one.
    Fails(Outcome),
    /// Nothing, until the test says so.
    Held,
}

/// One recording's socket.
pub(crate) struct Lane {
    pub(crate) conversation: usize,
    pub(crate) generation: Generation,
    pub(crate) timeline: Timeline,
    pub(crate) budget: Budget,
    /// The provider stream that is current.
    pub(crate) scope: Scope,
    /// What its socket knows of its device, from here on.
    pub(crate) device: Device,
}

/// A query in work.
pub(crate) struct Open {
    pub(crate) conversation: usize,
    pub(crate) request: RequestId,
    pub(crate) lane: LaneId,
    pub(crate) generation: Generation,
    pub(crate) speaker: Speaker,
    pub(crate) scope: Scope,
    pub(crate) selection: Selection,
    reservation: Reservation,
}

/// What the service would count; never reset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) exits: BTreeMap<ExitReason, u64>,
    pub(crate) budget_exits: BTreeMap<Cap, u64>,
    pub(crate) budget_voices: BTreeMap<Cap, u64>,
    pub(crate) budget_sockets: BTreeMap<Cap, u64>,
    pub(crate) first_blocks: u64,
    pub(crate) reserved: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
}

/// What became of one turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Turn {
    /// A query runs.
    Reserved(Dispatch),
    /// A slot went without one.
    Refused(Dispatch, Refusal),
}

pub(crate) struct Driver {
    pub(crate) now: Monotonic,
    pub(crate) conversations: Vec<Scheduler>,
    pub(crate) lanes: BTreeMap<LaneId, Lane>,
    pub(crate) open: Vec<Open>,
    pub(crate) events: Vec<Event>,
    pub(crate) counters: Counters,
    pub(crate) limits: Limits,
    /// Every keepsake of a device's owner, and every withdrawal.
    pub(crate) kept: Vec<(LaneId, Keepsake)>,
    /// Every query that reached the model.
    pub(crate) queries: Vec<(Speaker, Selection)>,
    scripts: BTreeMap<Speaker, VecDeque<Answer>>,
    default: Answer,
}

impl Driver {
    /// The fixture: one lane, sixty seconds of audio in the ring, the owner and Sarah, a frozen clock.
    pub(crate) fn new() -> Self {
        Self::with(Limits::default(), gallery(), ring_of(60))
    }

    /// The fixture without Sarah.
    pub(crate) fn owner_only() -> Self {
        Self::with(Limits::default(), owner_only(), ring_of(60))
    }

    pub(crate) fn with(limits: Limits, gallery: Gallery, timeline: Timeline) -> Self {
        let mut driver = Self {
            now: Monotonic::ZERO,
            conversations: vec![Scheduler::new(limits.clone(), policy())],
            lanes: BTreeMap::new(),
            open: Vec::new(),
            events: Vec::new(),
            counters: Counters::default(),
            limits,
            kept: Vec::new(),
            queries: Vec::new(),
            scripts: BTreeMap::new(),
            default: Answer::Vector(OWNER),
        };
        driver.join(LANE, gallery, timeline, budget::Limits::default());
        driver
    }

    /// Another socket enters the first conversation.
    pub(crate) fn join(&mut self, id: LaneId, gallery: Gallery, timeline: Timeline, limits: budget::Limits) {
        let generation = Generation(1);
        let join = Join::new(generation, timeline.rate(), gallery);
        self.conversations[0].handle_joined(id, join).expect("the lane is new");
        let (budget, device) = (Budget::new(limits, generation, self.now), Device::Unknown);
        self.lanes.insert(id, Lane { conversation: 0, generation, timeline, budget, scope: Scope::new(""), device });
    }

    /// What the model says to `speaker`, in order; after that the default.
    pub(crate) fn script(&mut self, speaker: u32, answers: impl IntoIterator<Item = Answer>) {
        self.scripts.entry(Speaker(speaker)).or_default().extend(answers);
    }

    /// What the model says to everybody else.
    pub(crate) fn by_default(&mut self, answer: Answer) {
        self.default = answer;
    }

    pub(crate) fn lane(&self) -> &Lane {
        &self.lanes[&LANE]
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.conversations[self.lane().conversation]
    }

    pub(crate) fn pass(&mut self, seconds: f64) {
        self.now = self.now.after(Duration::from_secs_f64(seconds));
    }

    /// One message of segments, and nothing more.
    pub(crate) fn offer(&mut self, segments: &[Segment]) {
        let generation = self.lane().generation;
        self.offer_to(LANE, generation, segments);
    }

    pub(crate) fn offer_to(&mut self, lane: LaneId, generation: Generation, segments: &[Segment]) {
        let held = &self.lanes[&lane];
        let offers = segments.iter().map(|segment| segment.offer(&held.timeline)).collect();
        let batch = Batch { generation, scope: held.scope.clone(), ring: held.timeline.range(), offers };
        let mut out = Vec::new();
        self.conversations[held.conversation].handle_batch(lane, batch, self.now, &mut out);
        self.perform(held.conversation, out);
    }

    /// One message of segments, and then every query that follows from it.
    pub(crate) fn update(&mut self, segments: &[Segment]) {
        self.offer(segments);
        self.drain();
    }

    /// A turn whose dispatch never reaches its socket.
    pub(crate) fn lose_turn_in(&mut self, conversation: usize) -> Option<Dispatch> {
        let dispatch = self.conversations[conversation].poll_dispatch(self.now)?;
        let mut out = Vec::new();
        self.conversations[conversation].handle_undelivered(dispatch.request, &mut out);
        self.perform(conversation, out);
        Some(dispatch)
    }

    /// Turns until nothing is dispatchable. Each query is answered before the next turn, unless it is held.
    pub(crate) fn drain(&mut self) {
        while self.turn().is_some() {
            self.answer_scripted();
        }
    }

    /// One turn in the first lane's conversation; a query that it starts stays open.
    pub(crate) fn turn(&mut self) -> Option<Turn> {
        self.turn_in(self.lane().conversation)
    }

    pub(crate) fn turn_in(&mut self, conversation: usize) -> Option<Turn> {
        let dispatch = self.conversations[conversation].poll_dispatch(self.now)?;
        Some(match self.reserve(&dispatch) {
            Ok((selection, reservation)) => {
                let (spans, samples) = (&selection.spans, selection.samples);
                let reserved = self.conversations[conversation].handle_reserved(dispatch.request, spans, samples);
                reserved.expect("nothing happened between dispatch and reservation");
                self.counters.reserved += 1;
                self.queries.push((dispatch.speaker, selection.clone()));
                let Dispatch { request, lane, generation, speaker, ref scope, .. } = dispatch;
                let scope = scope.clone();
                self.open.push(Open {
                    conversation,
                    request,
                    lane,
                    generation,
                    speaker,
                    scope,
                    selection,
                    reservation,
                });
                Turn::Reserved(dispatch)
            }
            Err(refusal) => {
                let mut out = Vec::new();
                self.conversations[conversation].handle_refused(dispatch.request, refusal, &mut out);
                self.perform(conversation, out);
                Turn::Refused(dispatch, refusal)
            }
        })
    }

    /// What the lane's socket does with a dispatch, with nothing awaited between picking and spending.
    fn reserve(&mut self, dispatch: &Dispatch) -> Result<(Selection, Reservation), Refusal> {
        let lane = self.lanes.get_mut(&dispatch.lane).expect("the lane is here");
        let picked = lane.timeline.pick(&dispatch.fresh, dispatch.needed, dispatch.query_max);
        let selection = picked.map_err(Refusal::Exit)?;
        match lane.budget.reserve(dispatch.generation, dispatch.speaker, self.now) {
            Ok(reservation) => Ok((selection, reservation)),
            Err(Refused::Denied(denied)) => {
                self.counters.deny(&denied);
                Err(Refusal::Denied(denied.cap))
            }
            Err(other) => panic!("the scheduler dispatched what the ledger refuses: {other:?}"),
        }
    }

    fn answer_scripted(&mut self) {
        let Some(open) = self.open.last() else { return };
        let scripted = self.scripts.get_mut(&open.speaker).and_then(VecDeque::pop_front).unwrap_or(self.default);
        let last = self.open.len() - 1;
        match scripted {
            Answer::Held => {}
            Answer::Vector(vector) => self.extract(last, vector),
            Answer::Fails(outcome) => self.fail(last, outcome),
        }
    }

    /// The open query at this position brings a voiceprint.
    pub(crate) fn extract(&mut self, at: usize, vector: [f32; 2]) {
        let Open { conversation, request, lane, reservation, .. } = self.open.remove(at);
        self.settle(lane, reservation, Outcome::Extracted);
        let mut out = Vec::new();
        let embedding = Embedding::new(&vector).expect("scripted vectors are voiceprints");
        self.conversations[conversation].handle_extracted(request, embedding, self.now, &mut out);
        self.perform(conversation, out);
    }

    /// The open query at this position ends without one.
    pub(crate) fn fail(&mut self, at: usize, outcome: Outcome) {
        let Open { conversation, request, lane, reservation, .. } = self.open.remove(at);
        self.settle(lane, reservation, outcome);
        let mut out = Vec::new();
        self.conversations[conversation].handle_failed(request, &mut out);
        self.perform(conversation, out);
    }

    /// Deadlines that have passed take effect.
    pub(crate) fn expire(&mut self) {
        for conversation in 0..self.conversations.len() {
            let mut out = Vec::new();
            self.conversations[conversation].handle_timeout(self.now, &mut out);
            self.perform(conversation, out);
        }
    }

    /// The lane goes on in a new conversation of its own.
    pub(crate) fn roll_over(&mut self) {
        self.roll_over_lane(LANE, self.conversations.len());
    }

    /// The lane goes on in this conversation, which is a new one when the number is.
    pub(crate) fn roll_over_lane(&mut self, id: LaneId, to: usize) {
        if to == self.conversations.len() {
            self.conversations.push(Scheduler::new(self.limits.clone(), policy()));
        }
        self.move_lane(id, to, Budget::handle_rollover);
    }

    /// The matcher is cleared and the same conversation goes on: attempts stay, the generation moves.
    pub(crate) fn clear(&mut self) {
        self.clear_lane(LANE);
    }

    pub(crate) fn clear_lane(&mut self, id: LaneId) {
        let to = self.lanes[&id].conversation;
        self.move_lane(id, to, Budget::handle_resumption);
    }

    /// The ledger hears of it first: what it holds is what the lane brings along.
    fn move_lane(&mut self, id: LaneId, to: usize, tell: impl FnOnce(&mut Budget, Generation)) {
        let lane = self.lanes.get_mut(&id).expect("the lane is here");
        let from = std::mem::replace(&mut lane.conversation, to);
        lane.generation = Generation(lane.generation.0 + 1);
        tell(&mut lane.budget, lane.generation);
        let attempts = lane.budget.attempted().collect();
        let (generation, rate) = (lane.generation, lane.timeline.rate());
        let gallery = self.conversations[from].gallery(id).expect("the lane was here").clone();
        let mut out = Vec::new();
        let held = self.conversations[from].handle_left(id, &mut out).held;
        let join = Join { attempts, held, ..Join::new(generation, rate, gallery) };
        self.conversations[to].handle_joined(id, join).expect("the lane has left");
        self.perform(from, out);
    }

    /// The enrolled people change.
    pub(crate) fn enrol(&mut self, gallery: Gallery) {
        self.enrol_for(LANE, gallery);
    }

    pub(crate) fn enrol_for(&mut self, id: LaneId, gallery: Gallery) {
        let conversation = self.lanes[&id].conversation;
        let mut out = Vec::new();
        self.conversations[conversation].handle_gallery(id, gallery, &mut out);
        self.perform(conversation, out);
    }

    fn settle(&mut self, lane: LaneId, reservation: Reservation, outcome: Outcome) {
        let lane = self.lanes.get_mut(&lane).expect("a ledger outlives its socket");
        match lane.budget.settle(reservation, outcome) {
            Settled::Succeeded => self.counters.succeeded += 1,
            Settled::Failed => self.counters.failed += 1,
        }
    }

    fn perform(&mut self, conversation: usize, out: Vec<Event>) {
        for event in out {
            match &event {
                Event::Exited { reason, .. } => *self.counters.exits.entry(*reason).or_default() += 1,
                Event::Released { lane, speaker } => {
                    let current = self.lanes[lane].conversation;
                    self.conversations[current].handle_released(*lane, *speaker);
                }
                Event::Overdue { request } => {
                    let is_it = |open: &Open| (open.conversation, open.request) == (conversation, *request);
                    let at = self.open.iter().position(is_it).expect("an overdue query is open");
                    let open = self.open.remove(at);
                    self.settle(open.lane, open.reservation, Outcome::DeadlinePassed);
                }
                Event::Failed { .. }
                | Event::Decided { .. }
                | Event::Published { .. }
                | Event::Retracted { .. }
                | Event::Suggested { .. }
                | Event::RolledOver { .. }
                | Event::Reconnected { .. }
                | Event::Collapsed { .. } => {}
            }
            self.events.push(event);
        }
        self.keepsakes(conversation);
    }
}

impl Counters {
    fn deny(&mut self, denied: &Denied) {
        *self.budget_exits.entry(denied.cap).or_default() += 1;
        if denied.voice == Seen::First {
            *self.budget_voices.entry(denied.cap).or_default() += 1;
            self.first_blocks += 1;
        }
        if denied.lane == Seen::First {
            *self.budget_sockets.entry(denied.cap).or_default() += 1;
        }
    }

    pub(crate) fn exited(&self, reason: ExitReason) -> u64 {
        self.exits.get(&reason).copied().unwrap_or(0)
    }
}
