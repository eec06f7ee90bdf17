//! The simulated world: the clock jumps from one event to the next, audio goes on with it, and a pool of workers runs what
//! a policy selects and the budget allows.

use std::collections::BTreeMap;
use std::time::Duration;

use matcher_core::budget::{self, Refused, Reservation};
use matcher_core::queue::Tried;
use matcher_core::{
    Budget, Dispatch, Embedding, ExitReason, Generation, Limits, Monotonic, Offer, Refusal, RequestId, Sample, Scope,
    SegmentId, Selection, Span, Speaker, Timeline,
};

use super::Policy;
use super::discipline::{Discipline, GENERATION};
use super::meter::{Outcome, Selected};
use super::script::{Arrival, Brings, Ring, Said, Script};
use super::setup::Setup;
use super::voices;

/// As in the service.
const RING: Duration = Duration::from_secs(60);

/// A run between its beginning and its end.
struct Running {
    reservation: Reservation,
    /// What it will bring.
    voiceprint: Option<Embedding>,
}

struct World {
    script: Script,
    discipline: Box<dyn Discipline>,
    budget: Budget,
    timeline: Timeline,
    /// Where the audio was when the clock last agreed with it.
    heard: (Monotonic, u64),
    now: Monotonic,
    free: usize,
    /// By the moment of their end, then in order of selection.
    running: BTreeMap<(Monotonic, RequestId), Running>,
    segments: u64,
    outcome: Outcome,
}

/// Plays a script to its end: until nobody says anything more and every worker is idle.
pub(super) fn run(script: Script, policy: Policy, setup: &Setup) -> Outcome {
    run_with(script, |script, limits| policy.discipline(script, limits), setup)
}

/// The same, under a policy of one's own.
pub(super) fn run_with(
    mut script: Script,
    discipline: impl FnOnce(&Script, Limits) -> Box<dyn Discipline>,
    setup: &Setup,
) -> Outcome {
    let setup = script.within(setup);
    let arrivals = std::mem::take(&mut script.arrivals);
    let mut budget = Budget::new(setup.budget, GENERATION, Monotonic::ZERO);
    spend(&mut budget, script.spent);
    let free = setup.machine(script.machine).workers;
    let mut world = World {
        discipline: discipline(&script, setup.limits),
        budget,
        timeline: Timeline::new(script.rate, script.rate.samples_in(RING)),
        heard: (Monotonic::ZERO, 0),
        now: Monotonic::ZERO,
        free,
        running: BTreeMap::new(),
        segments: 0,
        outcome: Outcome::of(script.cast.owners()),
        script,
    };
    world.play(arrivals);
    world.outcome
}

/// Whole tokens that were gone before: conversations before this one spent them, on one voice, each until its attempts were
/// spent as well.
fn spend(budget: &mut Budget, tokens: u32) {
    const SOMEBODY: Speaker = Speaker(0);
    let next = |budget: &mut Budget| budget.handle_rollover(Generation(budget.generation().0 + 1));
    for _ in 0..tokens.min(budget.limits().burst.get()) {
        if budget.attempts_left(SOMEBODY) == 0 {
            next(budget);
        }
        let spent = budget.reserve(budget.generation(), SOMEBODY, Monotonic::ZERO);
        budget.settle(spent.expect("a full bucket holds its burst"), budget::Outcome::Extracted);
    }
    next(budget);
}

impl World {
    fn play(&mut self, arrivals: Vec<Arrival>) {
        let mut arrivals = arrivals.into_iter().peekable();
        loop {
            let said = arrivals.peek().map(|arrival| Monotonic::from_origin(arrival.at));
            let ended = self.running.keys().next().map(|(at, _)| *at);
            let Some(next) = said.into_iter().chain(ended).min() else {
                self.outcome.forgotten = self.discipline.eligible();
                return;
            };
            self.advance(next);
            self.end_runs();
            if said == Some(next) {
                while let Some(arrival) = arrivals.next_if(|arrival| Monotonic::from_origin(arrival.at) <= next) {
                    self.hear(arrival);
                }
                // Nobody is heard for the first time without a message.
                self.outcome.note_eligible(&self.discipline.eligible(), self.now);
            }
            self.outcome.note_waiting(&self.discipline.waiting(), self.now);
            self.give_turns();
        }
    }

    fn advance(&mut self, to: Monotonic) {
        let passed = to.since(self.now);
        if self.free > 0 && !passed.is_zero() {
            self.outcome.note_idle(self.free, self.discipline.eligible().len(), passed);
        }
        self.now = to;
        let (since, samples) = self.heard;
        self.listen_until(samples.saturating_add(self.script.rate.samples_in(to.since(since))));
    }

    fn listen_until(&mut self, end: u64) {
        self.timeline.handle_samples(end.saturating_sub(self.timeline.now().0));
    }

    fn hear(&mut self, arrival: Arrival) {
        let ring = match arrival.ring {
            Ring::Live => self.timeline.range(),
            Ring::Held(ring) => {
                let end = ring.map_or(Sample(0), Span::end).0;
                self.heard = (self.now, end);
                self.listen_until(end);
                ring
            }
        };
        let offers: Vec<Offer> = arrival.said.into_iter().map(|said| self.offer(said)).collect();
        self.outcome.updates += offers.len() as u64;
        self.discipline.handle_message(offers, ring, self.now);
    }

    fn offer(&mut self, said: Said) -> Offer {
        self.segments += 1;
        let segment = SegmentId::new(&self.segments.to_string());
        offer(said, segment)
    }

    fn end_runs(&mut self) {
        while let Some(entry) = self.running.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let ((_, request), Running { reservation, voiceprint }) = entry.remove_entry();
            let speaker = reservation.speaker();
            self.free += 1;
            match voiceprint {
                Some(voiceprint) => {
                    self.budget.settle(reservation, budget::Outcome::Extracted);
                    self.discipline.handle_extracted(request, voiceprint, self.now);
                }
                None => {
                    self.budget.settle(reservation, budget::Outcome::ExtractionFailed);
                    self.discipline.handle_failed(request);
                }
            }
            if self.discipline.is_named(speaker) {
                self.outcome.note_named(speaker, self.now);
            }
        }
    }

    fn give_turns(&mut self) {
        while self.free > 0 {
            let Some(dispatch) = self.discipline.poll_dispatch(self.now, self.free) else {
                return;
            };
            // They differ where a number has several jobs, or a queue gives a slot another age.
            let waited = self.outcome.end_wait(dispatch.speaker, self.now).max(dispatch.waited);
            let selected = Selected { waited, ..self.selected(&dispatch) };
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
        let Dispatch { speaker, waited, by_age, .. } = *dispatch;
        Selected {
            speaker,
            part: self.script.cast.part(speaker),
            tried: self.tried(speaker),
            waited,
            is_override: by_age,
        }
    }

    fn tried(&self, speaker: Speaker) -> Tried {
        if self.outcome.served.contains_key(&speaker) { Tried::Before } else { Tried::Never }
    }

    /// First the audio, then the budget, and nothing between.
    fn reserve(&mut self, dispatch: &Dispatch) -> Result<(Selection, Reservation), Refusal> {
        let picked = self.timeline.pick(&dispatch.fresh, dispatch.needed, dispatch.query_max);
        let selection = picked.map_err(Refusal::Exit)?;
        let fresh = self.script.rate.duration(dispatch.pending);
        match self.budget.reserve_for(self.budget.generation(), dispatch.speaker, fresh, self.now) {
            Ok(reservation) => Ok((selection, reservation)),
            Err(Refused::Denied(denied)) => {
                self.outcome.denied += 1;
                Err(Refusal::Denied(denied.cap))
            }
            Err(Refused::VoiceCapacity) => Err(Refusal::Exit(ExitReason::VoiceCapacity)),
            Err(Refused::StaleGeneration) => unreachable!("a script has one generation"),
            Err(Refused::NumberInWork) => {
                unreachable!("no policy selects a number that is in work")
            }
        }
    }

    fn start_run(&mut self, request: RequestId, reservation: Reservation, selected: &Selected) {
        let speaker = selected.speaker;
        self.outcome.on_rejected += u64::from(self.discipline.is_rejected(speaker));
        if selected.is_by_preference() && self.waits_untried() {
            self.outcome.passed_over += 1;
        }
        self.outcome.note_granted(selected, self.now);
        self.outcome.attempts_most = self.outcome.attempts_most.max(self.budget.attempts(speaker));
        self.free -= 1;
        let run = self.script.runs.next(speaker, self.script.machine.slowest);
        let hearing = self.script.hearing(speaker, self.now.since(Monotonic::ZERO));
        let voiceprint = (run.brings == Brings::Voiceprint).then(|| voices::heard(speaker, hearing));
        self.running.insert((self.now.after(run.takes), request), Running { reservation, voiceprint });
    }

    fn waits_untried(&self) -> bool {
        self.discipline.eligible().iter().any(|speaker| self.tried(*speaker) == Tried::Never)
    }
}

/// A segment as the core is offered it.
pub(super) fn offer(said: Said, segment: SegmentId) -> Offer {
    let Said { speaker, stream, window, speech } = said;
    let scope = if stream == 0 { Scope::new("") } else { Scope::new(&stream.to_string()) };
    Offer { speaker, scope, window, speech, segment }
}
