//! The simulated world: the clock jumps from one event to the next, audio goes on with it, and a pool of workers runs what
//! a policy selects and the budget allows.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use matcher_core::budget::{self, Refused, Reservation};
use matcher_core::{
    Budget, Dispatch, ExitReason, Limits, Monotonic, Offer, Rate, Refusal, RequestId, Scope, SegmentId, Selection,
    Span, Speaker, Timeline,
};

use super::Policy;
use super::discipline::{Discipline, Fair, GENERATION};
use super::fifo::Fifo;
use super::meter::{Outcome, Selected, Tried};
use super::random::Random;
use super::scenario::{Machine, Message, Script, Update};
use super::voices;

/// As in the service.
const RING: Duration = Duration::from_secs(60);

fn rate() -> Rate {
    Rate::new(NonZeroU32::new(16_000).expect("the rate is not zero"))
}

struct World {
    machine: Machine,
    discipline: Box<dyn Discipline>,
    budget: Budget,
    timeline: Timeline,
    /// How long runs take.
    random: Random,
    now: Monotonic,
    free: usize,
    /// By the moment of their end, then in order of selection.
    running: BTreeMap<(Monotonic, RequestId), Reservation>,
    segments: u64,
    outcome: Outcome,
}

/// Plays a script to its end: until nobody says anything more and every worker is idle.
pub(super) fn run(script: Script, policy: Policy, seed: u64) -> Outcome {
    let limits = Limits::default();
    assert!(script.machine.slowest < limits.reservation_deadline, "no run of a scenario passes its deadline");
    let discipline: Box<dyn Discipline> = match policy {
        Policy::Fair => Box::new(Fair::new(rate(), limits)),
        Policy::Fifo => Box::new(Fifo::new(rate(), limits)),
    };
    let mut world = World {
        machine: script.machine,
        discipline,
        budget: Budget::new(budget::Limits::default(), GENERATION, Monotonic::ZERO),
        timeline: Timeline::new(rate(), rate().samples_in(RING)),
        // Another sequence than the script's, which is drawn from the seed itself.
        random: Random::new(!seed),
        now: Monotonic::ZERO,
        free: script.machine.workers,
        running: BTreeMap::new(),
        segments: 0,
        outcome: Outcome::default(),
    };
    world.play(script.messages);
    world.outcome
}

impl World {
    fn play(&mut self, messages: Vec<Message>) {
        let mut messages = messages.into_iter().peekable();
        loop {
            let said = messages.peek().map(|message| Monotonic::from_origin(message.at));
            let ended = self.running.keys().next().map(|(at, _)| *at);
            let Some(next) = said.into_iter().chain(ended).min() else { return };
            self.advance(next);
            self.end_runs();
            while let Some(message) = messages.next_if(|message| Monotonic::from_origin(message.at) <= next) {
                self.hear(message);
            }
            self.outcome.note_eligible(&self.discipline.eligible(), self.now);
            self.give_turns();
        }
    }

    fn advance(&mut self, to: Monotonic) {
        let passed = to.since(self.now);
        if self.free > 0 {
            self.outcome.note_idle(self.free, self.discipline.eligible().len(), passed);
        }
        self.now = to;
        let heard = rate().samples_in(to.since(Monotonic::ZERO));
        self.timeline.handle_samples(heard.saturating_sub(self.timeline.now().0));
    }

    fn hear(&mut self, message: Message) {
        let offers: Vec<Offer> = message.updates.into_iter().map(|update| self.offer(update)).collect();
        self.outcome.updates += offers.len() as u64;
        self.discipline.handle_message(offers, self.timeline.range(), self.now);
    }

    fn offer(&mut self, update: Update) -> Offer {
        self.segments += 1;
        let [start, end] = [update.start, update.end].map(|at| matcher_core::Sample(rate().samples_in(at)));
        let window = Span::new(start, end).expect("an update of a script is not empty");
        let segment = SegmentId::new(&self.segments.to_string());
        Offer { speaker: Speaker(update.speaker), scope: Scope::new(""), window, speech: window.samples(), segment }
    }

    fn end_runs(&mut self) {
        while let Some(entry) = self.running.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let ((_, request), reservation) = entry.remove_entry();
            let speaker = reservation.speaker();
            self.budget.settle(reservation, budget::Outcome::Extracted);
            self.free += 1;
            self.discipline.handle_extracted(request, voices::heard(speaker), self.now);
        }
    }

    fn give_turns(&mut self) {
        while self.free > 0 {
            let Some(dispatch) = self.discipline.poll_dispatch(self.now, self.free) else { return };
            let selected = self.selected(&dispatch);
            self.outcome.note_selected(&selected);
            match self.reserve(&dispatch) {
                Err(refusal) => self.discipline.handle_refused(dispatch.request, refusal),
                Ok((selection, reservation)) => {
                    self.discipline.handle_reserved(dispatch.request, &selection);
                    self.start_run(dispatch.request, reservation, &selected);
                }
            }
        }
    }

    fn selected(&self, dispatch: &Dispatch) -> Selected {
        let Dispatch { speaker, waited, .. } = *dispatch;
        let tried = if self.budget.attempts(speaker) == 0 { Tried::Never } else { Tried::Before };
        let is_override = self.discipline.age_override().is_some_and(|age| waited >= age);
        Selected { speaker, tried, waited, is_override }
    }

    /// First the audio, then the budget, and nothing between.
    fn reserve(&mut self, dispatch: &Dispatch) -> Result<(Selection, Reservation), Refusal> {
        let picked = self.timeline.pick(&dispatch.fresh, dispatch.needed, dispatch.query_max);
        let selection = picked.map_err(Refusal::Exit)?;
        match self.budget.reserve(dispatch.generation, dispatch.speaker, self.now) {
            Ok(reservation) => Ok((selection, reservation)),
            Err(Refused::Denied(denied)) => {
                self.outcome.denied += 1;
                Err(Refusal::Denied(denied.cap))
            }
            Err(Refused::VoiceCapacity) => Err(Refusal::Exit(ExitReason::VoiceCapacity)),
            Err(Refused::StaleGeneration) => unreachable!("a scenario has one generation"),
            Err(Refused::NumberInWork) => unreachable!("no policy selects a number that is in work"),
        }
    }

    fn start_run(&mut self, request: RequestId, reservation: Reservation, selected: &Selected) {
        let eligible = self.discipline.eligible();
        let untried_waits = self.waits_untried(&eligible);
        self.outcome.note_granted(selected, untried_waits, self.now);
        self.outcome.on_rejected += u64::from(self.discipline.is_rejected(selected.speaker));
        self.outcome.attempts_most = self.outcome.attempts_most.max(self.budget.attempts(selected.speaker));
        self.free -= 1;
        let slowest = u64::try_from(self.machine.slowest.as_millis()).unwrap_or(u64::MAX);
        let takes = self.random.millis((slowest * 3 / 5, slowest));
        self.running.insert((self.now.after(takes), request), reservation);
    }

    fn waits_untried(&self, eligible: &BTreeSet<Speaker>) -> bool {
        eligible.iter().any(|speaker| self.budget.attempts(*speaker) == 0)
    }
}
