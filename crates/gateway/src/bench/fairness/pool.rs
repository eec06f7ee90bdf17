//! The pool in virtual time: places that a discipline gives, workers that run what is started in order, and what came of
//! it. Handing over takes no time here; what it takes is measured with real threads.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::num::NonZeroU16;
use std::time::Duration;

use gpu_worker::turns::Wish;

use super::discipline::{Discipline, Name};
use super::scenario::{Ask, Kind, Load};

/// What a run takes of a second of audio: ten seconds in 0.125 s, as the shipped model on one core.
const RUN_PER_SECOND: u32 = 80;

/// The machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    pub(super) workers: usize,
    /// Queries for each worker that may be started while it runs another.
    pub(super) prefetch: usize,
}

/// What came of a load.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// From a query's possibility to its answer, by conversation.
    pub(super) waits: BTreeMap<usize, Vec<Duration>>,
    /// Audio that was examined, by conversation.
    pub(super) audio: BTreeMap<usize, Duration>,
    /// Time of workers that stood idle while somebody waited.
    pub(super) idle: Duration,
}

/// What happens next, besides the asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ended,
    Left(usize),
}

struct Simulation {
    discipline: Box<dyn Discipline>,
    places: usize,
    idle_workers: usize,
    /// What each conversation could start, first tries apart.
    pending: BTreeMap<usize, [VecDeque<Ask>; 2]>,
    load: Load,
    started: VecDeque<Ask>,
    events: BinaryHeap<Reverse<(Duration, Event)>>,
    outcome: Outcome,
}

/// Runs a load to its end.
pub(super) fn run(name: Name, machine: Machine, mut load: Load) -> Outcome {
    let places = machine.workers * (1 + machine.prefetch);
    let asks = std::mem::take(&mut load.asks);
    let mut simulation = Simulation {
        discipline: name.start(places),
        places,
        idle_workers: machine.workers,
        pending: BTreeMap::new(),
        started: VecDeque::new(),
        events: load.leaves.iter().map(|(at, key)| Reverse((*at, Event::Left(*key)))).collect(),
        outcome: Outcome::default(),
        load,
    };
    simulation.run(&asks);
    simulation.outcome
}

impl Simulation {
    fn run(&mut self, asks: &[Ask]) {
        let mut asks = asks.iter().copied().peekable();
        let mut now = Duration::ZERO;
        loop {
            let ask = asks.peek().map(|ask| ask.at);
            let event = self.events.peek().map(|Reverse((at, _))| *at);
            let Some(next) = ask.into_iter().chain(event).min() else { return };
            if self.load.until.is_some_and(|until| next > until) {
                return;
            }
            self.stand_idle(next.saturating_sub(now));
            now = next;
            let mut askers = BTreeSet::new();
            while let Some(ask) = asks.next_if(|ask| ask.at == now) {
                askers.insert(ask.key);
                self.asked(ask);
            }
            askers.into_iter().for_each(|key| self.tell(key));
            while self.events.peek().is_some_and(|Reverse((at, _))| *at <= now) {
                let Some(Reverse((_, event))) = self.events.pop() else { break };
                self.happened(event);
            }
            self.give(now);
        }
    }

    fn asked(&mut self, ask: Ask) {
        let [firsts, repeats] = self.pending.entry(ask.key).or_default();
        match ask.kind {
            Kind::First => firsts.push_back(ask),
            Kind::Repeat => repeats.push_back(ask),
        }
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Ended => {
                self.idle_workers += 1;
                self.places += 1;
                self.discipline.give_back();
            }
            Event::Left(key) => {
                self.pending.remove(&key);
                self.tell(key);
            }
        }
    }

    /// Says what a conversation wants now.
    fn tell(&mut self, key: usize) {
        let wish =
            self.pending.get(&key).map_or(Wish::NOTHING, |[firsts, repeats]| Wish::new(firsts.len(), repeats.len()));
        let weight = self.load.weights.get(key).copied().unwrap_or(NonZeroU16::MIN);
        self.discipline.want(key, wish.weighing(weight));
    }

    /// Gives every free place, and every idle worker what was started first.
    fn give(&mut self, now: Duration) {
        while self.places > 0 {
            let Some(key) = self.discipline.grant() else { break };
            let [firsts, repeats] = self.pending.get_mut(&key).expect("only who wants something is given a place");
            let ask = firsts.pop_front().or_else(|| repeats.pop_front()).expect("only as often as it wants something");
            self.places -= 1;
            self.discipline.charge(key, ask.clip);
            self.started.push_back(ask);
        }
        while self.idle_workers > 0 {
            let Some(ask) = self.started.pop_front() else { break };
            self.idle_workers -= 1;
            let ends = now + ask.clip / RUN_PER_SECOND;
            self.events.push(Reverse((ends, Event::Ended)));
            self.outcome.waits.entry(ask.key).or_default().push(ends - ask.at);
            *self.outcome.audio.entry(ask.key).or_default() += ask.clip;
        }
    }

    fn stand_idle(&mut self, time: Duration) {
        if self.idle_workers > 0 && self.pending.values().flatten().any(|asks| !asks.is_empty()) {
            self.outcome.idle += time * u32::try_from(self.idle_workers).unwrap_or(u32::MAX);
        }
    }
}
