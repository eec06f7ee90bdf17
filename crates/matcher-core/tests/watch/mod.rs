//! Watches a driver from outside and checks, after every step, everything that must always hold.
//!
//! Keeps a naive account of its own (grants, tokens, attempts, offered speech) and compares; it shares no rule with the
//! core, only the interval arithmetic, which has its own test against one bit a sample.

mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use matcher_core::queue::Voice;
use matcher_core::{
    Cap, Event, ExitReason, LaneId, Monotonic, Refusal, Sample, Scope, Span, Spans, Speaker, VoiceState,
};

use crate::driver::{Driver, Segment, Turn};

/// What a lane did so far, told without the core.
#[derive(Debug, Default)]
pub(crate) struct LaneWatch {
    grants: Vec<Monotonic>,
    bucket: Bucket,
    /// Attempts since the last rollover.
    attempts: BTreeMap<Speaker, u32>,
    scopes: Vec<Scope>,
    admitted: BTreeSet<Voice>,
    /// Speech that the ring held when it was offered, in this generation.
    offered: BTreeMap<Voice, Spans>,
    /// Speech behind voiceprints, in this generation.
    used: BTreeMap<Voice, Spans>,
    /// How often an aged, ready slot was passed over.
    passed: BTreeMap<Voice, usize>,
    /// Whether each selection of this generation went by age.
    by_age: Vec<bool>,
}

/// The token bucket, once more: nanoseconds of refill, at most sixteen times fifteen seconds of it.
#[derive(Debug)]
struct Bucket {
    nanos: u128,
    last: Monotonic,
}

const TOKEN: u128 = 15_000_000_000;
const BURST: usize = 16;
const ATTEMPTS: u32 = 12;

impl Default for Bucket {
    fn default() -> Self {
        Self { nanos: BURST as u128 * TOKEN, last: Monotonic::ZERO }
    }
}

impl Bucket {
    fn refill(&mut self, now: Monotonic) {
        self.nanos = (self.nanos + now.since(self.last).as_nanos()).min(BURST as u128 * TOKEN);
        self.last = now;
    }
}

pub(crate) struct Watch {
    pub(crate) driver: Driver,
    pub(crate) lanes: BTreeMap<LaneId, LaneWatch>,
    last_served: BTreeMap<usize, LaneId>,
    denials: u64,
}

impl Watch {
    pub(crate) fn new(driver: Driver) -> Self {
        let lanes = driver.lanes.keys().map(|id| (*id, LaneWatch::default())).collect();
        Self { driver, lanes, last_served: BTreeMap::new(), denials: 0 }
    }

    /// One segment at a time, so that a voice that gives way to another is seen to go.
    pub(crate) fn offer(&mut self, id: LaneId, segments: &[Segment]) {
        let generation = self.driver.lanes[&id].generation;
        for segment in segments {
            let mapped = self.mapped(id);
            self.driver.offer_to(id, generation, std::slice::from_ref(segment));
            self.note_offer(id, segment, &mapped);
        }
        self.check();
    }

    fn note_offer(&mut self, id: LaneId, segment: &Segment, mapped: &BTreeSet<(Speaker, Scope)>) {
        let held = &self.driver.lanes[&id];
        let queue = self.driver.conversations[held.conversation].queue(id).expect("the lane is here");
        let lane = self.lanes.get_mut(&id).expect("the lane is watched");
        let offer = segment.offer(&held.timeline);
        let known = lane.scopes.iter().position(|scope| *scope == offer.scope);
        let index = u16::try_from(known.unwrap_or(lane.scopes.len())).expect("few scopes are offered");
        let voice = Voice { speaker: offer.speaker, scope: index };
        if !queue.is_admitted(voice) {
            return;
        }
        lane.admitted.insert(voice);
        if known.is_none() {
            lane.scopes.push(offer.scope.clone());
        }
        for gone in lane.admitted.iter().copied().filter(|voice| !queue.is_admitted(*voice)).collect::<Vec<_>>() {
            let newer = lane.admitted.iter().any(|voice| voice.speaker == gone.speaker && voice.scope > gone.scope);
            assert!(newer, "{gone:?} gave way, and no newer scope has its number");
            lane.admitted.remove(&gone);
            lane.offered.remove(&gone);
            lane.used.remove(&gone);
        }
        let end = Sample(offer.window.start().0 + offer.speech.min(offer.window.samples()));
        let claimed = Span::new(offer.window.start(), end).expect("test segments claim some speech");
        let window = held.timeline.range().and_then(|ring| claimed.overlap(ring));
        if let Some(window) = window.filter(|_| !mapped.contains(&(offer.speaker, offer.scope))) {
            lane.offered.entry(voice).or_default().insert(window);
        }
    }

    fn mapped(&self, id: LaneId) -> BTreeSet<(Speaker, Scope)> {
        let voices = self.states(id).into_iter().filter(|voice| voice.identity.is_some());
        voices.map(|voice| (voice.speaker, voice.scope)).collect()
    }

    pub(crate) fn states(&self, id: LaneId) -> Vec<VoiceState> {
        self.driver.conversations[self.driver.lanes[&id].conversation].voices(id)
    }

    /// Who stands first in each lane's queue, as people are shown it.
    fn shown_first(&self, conversation: usize) -> BTreeMap<LaneId, (Speaker, Scope)> {
        let scheduler = &self.driver.conversations[conversation];
        let first = |id: LaneId| {
            let slot = scheduler.waiting(id, self.driver.now).into_iter().next()?;
            Some((id, (slot.speaker, slot.scope)))
        };
        scheduler.lanes().filter_map(first).collect()
    }

    /// One turn, which must go to the slot that the naive order puts first.
    pub(crate) fn turn(&mut self, conversation: usize) -> bool {
        let expected = self.best(conversation);
        let shown = self.shown_first(conversation);
        let turn = self.driver.turn_in(conversation);
        let Some(turn) = turn else {
            assert_eq!(expected, None, "a ready slot got no turn");
            return false;
        };
        let (Turn::Reserved(dispatch) | Turn::Refused(dispatch, _)) = &turn;
        let found = (dispatch.lane, dispatch.speaker, dispatch.scope.clone());
        assert_eq!(expected, Some(found), "the naive order puts another slot first");
        let id = dispatch.lane;
        assert_eq!(
            shown.get(&id),
            Some(&(dispatch.speaker, dispatch.scope.clone())),
            "the queue was shown in another order"
        );
        self.last_served.insert(conversation, id);
        self.note_passed(id, dispatch.speaker, &dispatch.scope.clone());
        self.note_aged(id, dispatch.waited);
        match turn {
            Turn::Reserved(dispatch) => self.note_grant(id, dispatch.speaker),
            Turn::Refused(dispatch, Refusal::Denied(cap)) => self.note_denial(id, dispatch.speaker, cap),
            Turn::Refused(_, Refusal::Exit(reason)) => {
                let is_pick = matches!(reason, ExitReason::NoPcm | ExitReason::WindowShorterThanMinimum);
                assert!(is_pick, "{reason:?} is no reason of picking audio");
            }
        }
        self.check();
        true
    }

    /// A turn that reaches nobody is none: whose it was by age has it again.
    pub(crate) fn lose_turn(&mut self, conversation: usize) {
        if let Some(dispatch) = self.driver.lose_turn_in(conversation) {
            self.last_served.insert(conversation, dispatch.lane);
        }
        self.check();
    }

    fn note_grant(&mut self, id: LaneId, speaker: Speaker) {
        let now = self.driver.now;
        let lane = self.lanes.get_mut(&id).expect("the lane is watched");
        lane.bucket.refill(now);
        lane.bucket.nanos = lane.bucket.nanos.checked_sub(TOKEN).expect("a grant without a token");
        let spent = lane.attempts.entry(speaker).or_default();
        *spent += 1;
        assert!(*spent <= ATTEMPTS, "voice {speaker} spent {spent} attempts in one generation");
        lane.grants.push(now);
        for (before, from) in lane.grants.iter().rev().enumerate() {
            let allowed = BURST as u128 + now.since(*from).as_nanos() / TOKEN;
            assert!((before + 1) as u128 <= allowed, "{} grants since {from:?}, {allowed} allowed", before + 1);
        }
    }

    fn note_denial(&mut self, id: LaneId, speaker: Speaker, cap: Cap) {
        let lane = self.lanes.get_mut(&id).expect("the lane is watched");
        lane.bucket.refill(self.driver.now);
        let voice_spent = lane.attempts.get(&speaker).copied().unwrap_or(0) >= ATTEMPTS;
        let expected = match (voice_spent, lane.bucket.nanos < TOKEN) {
            (true, false) => Cap::Voice,
            (false, true) => Cap::Socket,
            (true, true) => Cap::Both,
            (false, false) => panic!("voice {speaker} was denied for no reason"),
        };
        assert_eq!(cap, expected);
        self.denials += 1;
    }

    pub(crate) fn extract(&mut self, at: usize, vector: [f32; 2]) {
        let open = &self.driver.open[at];
        let (id, speaker, scope, generation) = (open.lane, open.speaker, open.scope.clone(), open.generation);
        let selection = open.selection.spans.clone();
        let is_current = self.driver.lanes[&id].generation == generation;
        let is_mapped = self.mapped(id).contains(&(speaker, scope.clone()));
        self.driver.extract(at, vector);
        if is_current && !is_mapped {
            let lane = self.lanes.get_mut(&id).expect("the lane is watched");
            let used = lane.used.entry(lane.voice(speaker, &scope)).or_default();
            assert_eq!(selection.without(used), selection, "speech was examined twice");
            used.insert_all(&selection);
        }
        self.check();
    }

    /// The lane starts anew: what it offered is gone; its attempts are, too, when the conversation is another.
    pub(crate) fn note_new_generation(&mut self, id: LaneId, attempts: Attempts) {
        let lane = self.lanes.get_mut(&id).expect("the lane is watched");
        let kept = std::mem::take(lane);
        lane.grants = kept.grants;
        lane.bucket = kept.bucket;
        if attempts == Attempts::Kept {
            lane.attempts = kept.attempts;
        }
        self.check();
    }

    pub(crate) fn check(&mut self) {
        self.check_events();
        let ids: Vec<LaneId> = self.lanes.keys().copied().collect();
        for id in ids {
            self.check_books(id);
            self.check_bounds(id);
            self.check_locks(id);
            self.check_nothing_is_lost(id);
        }
        let exits = &self.driver.counters.budget_exits;
        assert_eq!(exits.values().sum::<u64>(), self.denials, "one cap for one denial");
        assert_eq!(self.driver.exited(ExitReason::EmbeddingBudget), self.denials, "one exit for one denial");
    }

    /// No verdict of a generation that is over. Events are performed as they come, so the lane is where they found it.
    fn check_events(&mut self) {
        for event in std::mem::take(&mut self.driver.events) {
            let (Event::Published { lane, generation, .. } | Event::Retracted { lane, generation, .. }) = event else {
                continue;
            };
            assert_eq!(generation, self.driver.lanes[&lane].generation, "a verdict of a stale generation");
        }
    }

    fn check_books(&self, id: LaneId) {
        let budget = &self.driver.lanes[&id].budget;
        let (books, open) = (budget.books(), budget.open());
        assert_eq!(books.reserved, books.succeeded + books.failed + open as u64);
        assert_eq!(books.reserved, self.lanes[&id].grants.len() as u64);
        assert_eq!(open, self.driver.open.iter().filter(|work| work.lane == id).count());
    }

    fn check_bounds(&self, id: LaneId) {
        let limits = &self.driver.limits;
        let conversation = self.driver.lanes[&id].conversation;
        let queue = self.driver.conversations[conversation].queue(id).expect("the lane is here");
        assert!(queue.len() <= limits.slots_max.get() && queue.voices() <= limits.voices_max.get());
        assert_eq!(queue.len(), queue.waiting().count());
        let mut of_number: BTreeMap<Speaker, usize> = BTreeMap::new();
        for (voice, ..) in queue.waiting() {
            *of_number.entry(voice.speaker).or_default() += 1;
        }
        assert!(of_number.values().all(|slots| *slots <= limits.slots_of_number_max.get()));
        for voice in &self.lanes[&id].admitted {
            let fresh = queue.fresh(*voice).expect("the watch admits the same voices");
            assert!(fresh.len() <= limits.ranges_max.get());
        }
        let is_here = |conversation_of: usize, lane: LaneId| conversation_of == conversation && lane == id;
        let works = self.driver.open.iter().filter(|open| is_here(open.conversation, open.lane));
        assert!(works.count() <= limits.queries_max.get() + self.left_behind(id), "more queries than places");
    }

    /// Queries of this lane's earlier generations; they hold no place here.
    fn left_behind(&self, id: LaneId) -> usize {
        let generation = self.driver.lanes[&id].generation;
        self.driver.open.iter().filter(|open| open.lane == id && open.generation != generation).count()
    }

    /// One query a number, also across generations, and a lock for each.
    fn check_locks(&self, id: LaneId) {
        let mut open: Vec<Speaker> =
            self.driver.open.iter().filter(|open| open.lane == id).map(|open| open.speaker).collect();
        open.sort_unstable();
        assert!(open.windows(2).all(|pair| pair[0] != pair[1]), "a number is in work twice: {open:?}");
        let conversation = self.driver.lanes[&id].conversation;
        assert_eq!(self.driver.conversations[conversation].in_work(id), open);
    }

    /// Speech in the ring that was offered is fresh, in work, or examined; or it was evicted, and that is counted.
    fn check_nothing_is_lost(&self, id: LaneId) {
        let held = &self.driver.lanes[&id];
        let queue = self.driver.conversations[held.conversation].queue(id).expect("the lane is here");
        let lane = &self.lanes[&id];
        let Some(ring) = held.timeline.range() else { return };
        let mut missing = 0;
        for (voice, offered) in &lane.offered {
            let fresh = queue.fresh(*voice).expect("an offered voice is admitted");
            assert!(fresh.without(offered).is_empty(), "speech of {voice:?} that nobody offered");
            let mut known = fresh.clone();
            known.insert_all(queue.covered(*voice).expect("an offered voice is admitted"));
            for open in self.driver.open.iter().filter(|open| (open.lane, open.generation) == (id, held.generation)) {
                if lane.voice(open.speaker, &open.scope) == *voice {
                    assert!(open.selection.spans.without(&known) == open.selection.spans, "speech in two states");
                    known.insert_all(&open.selection.spans);
                }
            }
            let mut lost = offered.without(&known);
            lost.clip(ring);
            missing += lost.samples();
        }
        assert!(missing <= queue.evicted(), "{missing} samples lost, {} evicted", queue.evicted());
    }
}

/// Whether attempts outlive a change of generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempts {
    Kept,
    Cleared,
}

impl LaneWatch {
    fn voice(&self, speaker: Speaker, scope: &Scope) -> Voice {
        let index = self.scopes.iter().position(|held| held == scope).expect("the watch interns the same scopes");
        Voice { speaker, scope: u16::try_from(index).expect("few scopes are offered") }
    }

    /// Of so many selections in a row one at most goes by age.
    fn may_go_by_age(&self, every: usize) -> bool {
        self.by_age.iter().rev().take(every - 1).all(|by_age| !by_age)
    }

    fn is_tried(&self, speaker: Speaker) -> bool {
        self.attempts.get(&speaker).is_some_and(|spent| *spent > 0)
    }
}

/// From this age on, a slot goes before every preference.
const AGED: Duration = Duration::from_secs(5);
