//! Under which limits a scenario is played, and the bounds that follow from them.

use matcher_core::{Limits, budget};

use super::scenario::Scenario;
use super::script::Machine;

/// The limits of a run: the service's defaults, or what is set instead of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Setup {
    /// The scheduler's.
    pub limits: Limits,
    /// The budget's.
    pub budget: budget::Limits,
}

impl Setup {
    /// The pool as one lane may use it.
    pub(super) fn machine(&self, machine: Machine) -> Machine {
        Machine { workers: machine.workers.min(self.limits.queries_max.get()), ..machine }
    }

    /// Whether these scenarios can be played: no run of theirs passes its deadline.
    ///
    /// # Errors
    /// When one takes longer, in one line with the setting and the mend.
    pub fn check(&self, scenarios: &[Scenario]) -> Result<(), String> {
        let deadline = self.limits.reservation_deadline;
        let slowest = |scenario: &Scenario| scenario.script(0).machine.slowest;
        match scenarios.iter().find(|scenario| slowest(scenario) >= deadline) {
            None => Ok(()),
            Some(scenario) => Err(format!(
                "extraction.reservation_deadline_seconds: {} s pass before the runs of the scenario {} end, which take up to \
                 {} s; set more, or play another scenario",
                deadline.as_secs_f64(),
                scenario.as_str(),
                slowest(scenario).as_secs_f64(),
            )),
        }
    }
}

/// What [`crate::simulate`] proves, in seconds; endless where it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    pub(super) any: f64,
    pub(super) first: f64,
}

impl Bounds {
    /// Where one number speaks in several streams, two of its slots wait for each other: nothing is proved then.
    pub(super) const NONE: Self = Self { any: f64::INFINITY, first: f64::INFINITY };

    /// For so many numbers in one stream.
    pub(super) fn of(machine: Machine, numbers: usize, setup: &Setup) -> Self {
        let (Setup { limits, .. }, machine) = (setup, setup.machine(machine));
        let slowest = machine.slowest.as_secs_f64();
        // A handful: exact in an f64.
        let workers = machine.workers as f64;
        let by_order = |count: f64| slowest * (workers + count - 1.0) / workers;
        let slots = numbers.min(limits.slots_max.get()) as f64 * f64::from(limits.override_every.get());
        let voices = numbers.min(limits.voices_max.get()) as f64;
        let by_budget = by_budget(machine, &setup.budget);
        // A query that holds the slot's own number may last beyond the age.
        let aged = limits.age_override.as_secs_f64().max(slowest);
        Self { any: (aged + by_order(slots)).min(slowest + by_budget), first: by_order(voices).min(by_budget) }
    }
}

/// Endless where tokens return faster than the workers can use them.
fn by_budget(machine: Machine, budget: &budget::Limits) -> f64 {
    let (slowest, workers) = (machine.slowest.as_secs_f64(), machine.workers as f64);
    let refill = 3_600.0 / f64::from(budget.refill_per_hour.get());
    let relaxed = budget.relaxation.map_or(0, |relaxation| relaxation.tokens.get());
    let tokens = f64::from(budget.burst.get()) + f64::from(relaxed);
    let spare = workers - slowest / refill;
    if spare > 0.0 { slowest * (workers + tokens) / spare } else { f64::INFINITY }
}
