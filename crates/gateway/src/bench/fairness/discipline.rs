//! Ways to give turns, behind one face: the service's own, and the two that it is held against.
//!
//! They say who is next and nothing else: places, workers and time are the simulation's.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use gpu_worker::turns::{COST_MIN, Turns, Wish};
use serde::Serialize;

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Name {
    /// What the service does: accounts of audio.
    Accounts,
    /// Deficit round robin as in the textbook: a round gives each conversation two seconds of audio for each of its weight.
    Rounds,
    /// First come, first served.
    Arrival,
}

impl Name {
    pub(super) const ALL: [Self; 3] = [Self::Accounts, Self::Rounds, Self::Arrival];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Accounts => "accounts",
            Self::Rounds => "rounds",
            Self::Arrival => "arrival",
        }
    }

    pub(super) fn start(self, places: usize) -> Box<dyn Discipline> {
        match self {
            Self::Accounts => Box::new(Turns::new(places)),
            Self::Rounds => Box::new(Rounds::default()),
            Self::Arrival => Box::new(Arrival::default()),
        }
    }
}

/// Who is next. Asked only when a place is free; what a turn uses is known at once.
pub(super) trait Discipline {
    /// What a conversation wants now, in all.
    fn want(&mut self, key: usize, wish: Wish);
    /// Who gets a place.
    fn grant(&mut self) -> Option<usize>;
    /// What the turn just given uses.
    fn charge(&mut self, key: usize, audio: Duration);
    /// A place came back.
    fn give_back(&mut self);
}

impl Discipline for Turns<usize> {
    fn want(&mut self, key: usize, wish: Wish) {
        self.handle_wanted(key, wish);
    }

    fn grant(&mut self) -> Option<usize> {
        self.poll_grant()
    }

    fn charge(&mut self, key: usize, audio: Duration) {
        self.handle_charged(key, audio.saturating_sub(COST_MIN));
    }

    fn give_back(&mut self) {
        self.handle_returned();
    }
}

/// Seconds that a round gives, by weight: one first clip.
const QUANTUM_MS: i64 = 2_000;

/// One conversation in the round.
#[derive(Debug, Default)]
struct Flow {
    wanted: usize,
    weight: i64,
    /// Milliseconds of audio that it may still have; below nothing it waits.
    credit_ms: i64,
}

#[derive(Debug, Default)]
struct Rounds {
    flows: BTreeMap<usize, Flow>,
    round: VecDeque<usize>,
}

impl Discipline for Rounds {
    fn want(&mut self, key: usize, wish: Wish) {
        let flow = self.flows.entry(key).or_default();
        let was_in = flow.wanted > 0;
        flow.wanted = wish.firsts + wish.repeats;
        flow.weight = i64::from(wish.weight.get());
        if flow.wanted == 0 {
            self.round.retain(|other| *other != key);
        } else if !was_in {
            flow.credit_ms = flow.credit_ms.min(0) + QUANTUM_MS * flow.weight;
            self.round.push_back(key);
        }
    }

    fn grant(&mut self) -> Option<usize> {
        loop {
            let key = *self.round.front()?;
            let flow = self.flows.get_mut(&key)?;
            if flow.credit_ms > 0 {
                flow.wanted -= 1;
                if flow.wanted == 0 {
                    self.round.pop_front();
                }
                return Some(key);
            }
            flow.credit_ms += QUANTUM_MS * flow.weight;
            self.round.rotate_left(1);
        }
    }

    fn charge(&mut self, key: usize, audio: Duration) {
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.credit_ms -= i64::try_from(audio.as_millis()).unwrap_or(i64::MAX);
        }
    }

    fn give_back(&mut self) {}
}

#[derive(Debug, Default)]
struct Arrival {
    line: VecDeque<usize>,
    /// How often each stands in the line.
    counts: BTreeMap<usize, usize>,
}

impl Discipline for Arrival {
    fn want(&mut self, key: usize, wish: Wish) {
        let wanted = wish.firsts + wish.repeats;
        if wanted == 0 {
            self.line.retain(|other| *other != key);
        }
        let had = self.counts.insert(key, wanted).unwrap_or(0);
        self.line.extend(std::iter::repeat_n(key, wanted.saturating_sub(had)));
    }

    fn grant(&mut self) -> Option<usize> {
        let key = self.line.pop_front()?;
        *self.counts.get_mut(&key)? -= 1;
        Some(key)
    }

    fn charge(&mut self, _: usize, _: Duration) {}

    fn give_back(&mut self) {}
}
