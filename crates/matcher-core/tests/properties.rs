//! Goal: nothing bad under any interleaving, and in the end something good: everything queued is served.
//! Method: random offers, turns, endings, rollovers, losses and clocks over one to three lanes, watched after every step.
//!
//! A failure prints the fewest steps that lead to it; they become a named test. `PROPTEST_CASES` sets how many cases each property tries.

#![cfg(test)]

mod driver;
mod watch;

use std::num::{NonZeroU32, NonZeroUsize};

use driver::*;
use matcher_core::budget::{self, Outcome};
use matcher_core::{Gallery, LaneId, Limits};
use proptest::prelude::*;
use watch::{Attempts, Watch};

/// One thing that happens. Lanes and queries are chosen modulo how many there are.
#[derive(Debug, Clone)]
enum Step {
    Offer { lane: u64, segments: Vec<Said> },
    Turn { lane: u64 },
    LoseTurn { lane: u64 },
    Extract { query: usize, vector: usize },
    Fail { query: usize, outcome: Outcome },
    WorkersDie,
    RollOver { lane: u64, to: usize },
    Clear { lane: u64 },
    Reconnect { lane: u64 },
    People { lane: u64, which: usize },
    Pass { milliseconds: u32 },
    Audio { lane: u64, gap: u8, seconds: u8 },
}

/// A segment in quarters of a second, back from the newest sample.
#[derive(Debug, Clone)]
struct Said {
    speaker: u32,
    scope: usize,
    back: u16,
    length: u8,
    speech: Option<u8>,
}

const SCOPES: [&str; 3] = ["", "a:0", "b:0"];
const CONVERSATIONS_MAX: usize = 4;

fn vectors() -> [[f32; 2]; 6] {
    [OWNER, SARAH, BETWEEN, at(0.7), mirrored(0.62), at(1.9)]
}

fn galleries() -> [Gallery; 4] {
    [gallery(), owner_only(), sarah_only(), Gallery::default()]
}

fn said() -> impl Strategy<Value = Said> {
    let speech = prop::option::weighted(0.1, 1_u8..40);
    (0_u32..7, 0_usize..SCOPES.len(), 0_u16..300, 1_u8..100, speech)
        .prop_map(|(speaker, scope, back, length, speech)| Said { speaker, scope, back, length, speech })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop::sample::select(vec![Outcome::EncodingFailed, Outcome::ExtractionFailed, Outcome::Cancelled])
}

fn step() -> impl Strategy<Value = Step> {
    let lane = || 0_u64..3;
    prop_oneof![
        8 => (lane(), prop::collection::vec(said(), 1..6)).prop_map(|(lane, segments)| Step::Offer { lane, segments }),
        10 => lane().prop_map(|lane| Step::Turn { lane }),
        1 => lane().prop_map(|lane| Step::LoseTurn { lane }),
        6 => (any::<usize>(), any::<usize>()).prop_map(|(query, vector)| Step::Extract { query, vector }),
        2 => (any::<usize>(), outcome()).prop_map(|(query, outcome)| Step::Fail { query, outcome }),
        1 => Just(Step::WorkersDie),
        1 => (lane(), 0..CONVERSATIONS_MAX).prop_map(|(lane, to)| Step::RollOver { lane, to }),
        1 => lane().prop_map(|lane| Step::Clear { lane }),
        1 => lane().prop_map(|lane| Step::Reconnect { lane }),
        1 => (lane(), any::<usize>()).prop_map(|(lane, which)| Step::People { lane, which }),
        3 => (1_u32..9_000).prop_map(|milliseconds| Step::Pass { milliseconds }),
        2 => (lane(), 0_u8..8, 1_u8..30).prop_map(|(lane, gap, seconds)| Step::Audio { lane, gap, seconds }),
    ]
}

fn tight() -> Limits {
    let count = |value| NonZeroUsize::new(value).unwrap();
    Limits {
        slots_max: count(4),
        ranges_max: count(2),
        slots_of_number_max: count(2),
        voices_max: count(9),
        queries_max: count(2),
        ..Limits::default()
    }
}

/// With age that decides every third selection.
fn every_third(limits: Limits) -> Limits {
    Limits { override_every: NonZeroU32::new(3).unwrap(), ..limits }
}

fn start(limits: Limits, lanes: u64) -> Watch {
    let mut driver = Driver::with(limits, gallery(), ring_of(60));
    for id in 2..=lanes {
        driver.join(LaneId(id), gallery(), ring_of(60), budget::Limits::default());
    }
    Watch::new(driver)
}

impl Watch {
    fn lane_at(&self, index: u64) -> LaneId {
        LaneId(index % self.driver.lanes.len() as u64 + 1)
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Offer { lane, segments } => self.say(self.lane_at(*lane), segments),
            Step::Turn { lane } => {
                self.turn(self.driver.lanes[&self.lane_at(*lane)].conversation);
            }
            Step::LoseTurn { lane } => self.lose_turn(self.driver.lanes[&self.lane_at(*lane)].conversation),
            Step::Extract { query, vector } => {
                if let Some(at) = query.checked_rem(self.driver.open.len()) {
                    self.extract(at, vectors()[vector % vectors().len()]);
                }
            }
            Step::Fail { query, outcome } => {
                if let Some(at) = query.checked_rem(self.driver.open.len()) {
                    self.driver.fail(at, *outcome);
                }
            }
            Step::WorkersDie => self.fail_all(None, Outcome::WorkerLost),
            Step::RollOver { lane, to } => {
                let (id, to) = (self.lane_at(*lane), to % (self.driver.conversations.len() + 1).min(CONVERSATIONS_MAX));
                self.driver.roll_over_lane(id, to);
                self.note_new_generation(id, Attempts::Cleared);
            }
            Step::Clear { lane } => {
                let id = self.lane_at(*lane);
                self.driver.clear_lane(id);
                self.note_new_generation(id, Attempts::Kept);
            }
            Step::Reconnect { lane } => self.reconnect(self.lane_at(*lane)),
            Step::People { lane, which } => {
                let people = galleries()[which % galleries().len()].clone();
                self.driver.enrol_for(self.lane_at(*lane), people);
            }
            Step::Pass { milliseconds } => self.pass(f64::from(*milliseconds) / 1000.0),
            Step::Audio { lane, gap, seconds } => self.record(self.lane_at(*lane), *gap, *seconds),
        }
        self.check();
    }

    fn say(&mut self, id: LaneId, segments: &[Said]) {
        let newest = self.driver.lanes[&id].timeline.now().0 as f64 / HERTZ as f64;
        let segment = |said: &Said| {
            let start = (newest - f64::from(said.back) / 4.0).max(0.0);
            let segment = says(said.speaker, start, start + f64::from(said.length) / 4.0).in_scope(SCOPES[said.scope]);
            said.speech.map_or(segment.clone(), |speech| segment.lasting(f64::from(speech) / 4.0))
        };
        self.offer(id, &segments.iter().map(segment).collect::<Vec<_>>());
    }

    fn record(&mut self, id: LaneId, gap: u8, seconds: u8) {
        let timeline = &mut self.driver.lanes.get_mut(&id).unwrap().timeline;
        let at = matcher_core::Sample(timeline.now().0 + u64::from(gap) * HERTZ / 4);
        timeline.handle_samples_at(at, u64::from(seconds) * HERTZ / 4);
    }

    fn pass(&mut self, seconds: f64) {
        self.driver.pass(seconds);
        self.driver.expire();
        let late = self.driver.conversations.iter().filter_map(|conversation| conversation.poll_timeout());
        assert!(late.min().is_none_or(|due| due > self.driver.now), "a deadline was left over");
    }

    fn fail_all(&mut self, of: Option<LaneId>, outcome: Outcome) {
        while let Some(at) = self.driver.open.iter().position(|open| of.is_none_or(|id| open.lane == id)) {
            self.driver.fail(at, outcome);
        }
    }

    /// The socket goes, its queries are cancelled, and another takes the lane over with an empty ring.
    fn reconnect(&mut self, id: LaneId) {
        self.driver.clear_lane(id);
        let timeline = &mut self.driver.lanes.get_mut(&id).unwrap().timeline;
        *timeline = matcher_core::Timeline::new(rate(), 60 * HERTZ);
        self.note_new_generation(id, Attempts::Kept);
        self.fail_all(Some(id), Outcome::Cancelled);
    }

    /// With people, time and turns, and nothing new, every queue runs empty. Each slot of each voice is served at most
    /// as often as it has attempts, and once more to be denied.
    fn finish(&mut self) {
        self.fail_all(None, Outcome::Cancelled);
        for lane in 0..self.driver.lanes.len() as u64 {
            self.driver.enrol_for(self.lane_at(lane), owner_only());
        }
        let conversations = self.driver.conversations.len();
        for _ in 0..7 * SCOPES.len() * 13 {
            let served = (0..conversations).filter(|conversation| self.turn(*conversation)).count();
            if served == 0 {
                break;
            }
            while !self.driver.open.is_empty() {
                self.extract(0, SARAH);
            }
            self.pass(15.0);
        }
        for (id, lane) in &self.driver.lanes {
            let queue = self.driver.conversations[lane.conversation].queue(*id).unwrap();
            assert!(queue.is_empty(), "lane {id} still waits for {} slots", queue.len());
        }
    }
}

fn runs(limits: &Limits, lanes: u64, steps: &[Step]) {
    let mut watch = start(limits.clone(), lanes);
    steps.iter().for_each(|step| watch.apply(step));
    watch.finish();
}

/// Four times the usual number, so that `PROPTEST_CASES` still scales it.
fn many() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases * 4, max_shrink_iters: 4096, failure_persistence: None, ..usual }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..100)
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn one_lane_within_the_usual_limits_keeps_every_promise(steps in steps()) {
        runs(&Limits::default(), 1, &steps);
    }

    #[test]
    fn one_lane_within_tight_limits_keeps_every_promise(steps in steps()) {
        runs(&tight(), 1, &steps);
    }

    #[test]
    fn three_lanes_within_the_usual_limits_keep_every_promise(steps in steps()) {
        runs(&Limits::default(), 3, &steps);
    }

    #[test]
    fn three_lanes_within_tight_limits_keep_every_promise(steps in steps()) {
        runs(&tight(), 3, &steps);
    }

    #[test]
    fn one_lane_whose_age_decides_every_third_selection_keeps_every_promise(steps in steps()) {
        runs(&every_third(Limits::default()), 1, &steps);
    }

    #[test]
    fn two_tight_lanes_whose_age_decides_every_third_selection_keep_every_promise(steps in steps()) {
        runs(&every_third(tight()), 2, &steps);
    }
}
