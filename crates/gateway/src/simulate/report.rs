//! What a simulated scenario came to, in words and as JSON, beside the bounds that the module's text proves.

use std::fmt;

use matcher_core::{Limits, budget};
use serde::Serialize;

use super::Policy;
use super::meter::Outcome;
use super::scenario::{Machine, Scenario};

/// What a scenario came to under one policy. Times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What happened.
    pub scenario: Scenario,
    /// Who was examined next.
    pub policy: Policy,
    /// Where the pseudo-random numbers began.
    pub seed: u64,
    /// Whether the owner was examined, and no token went to a voice examined before while they waited for it.
    pub owner_examined_first: bool,
    /// From the moment when the owner had said enough to the one when they were examined; null when they never were.
    pub owner_examined_after_s: Option<f64>,
    /// Tokens spent since the owner had said enough.
    pub queries: Queries,
    /// The longest time from a slot's beginning to its selection.
    pub worst_wait_s: f64,
    /// No slot waits longer in the service's order.
    pub bound_s: f64,
    /// The longest such time of a number that was never examined.
    pub worst_first_wait_s: f64,
    /// No such number waits longer in the service's order.
    pub first_bound_s: f64,
    /// Selections that went by age alone, as a share of all.
    pub override_share: f64,
    /// Tokens spent on voices whose latest verdict was that they are nobody, as a share of all.
    pub rejected_share: f64,
    /// Tokens that went to an examined voice, and not for its age, while one never examined waited.
    pub untried_passed_over: u64,
    /// Time of workers that stood idle while somebody could be examined.
    pub idle_s: f64,
    /// Tokens spent.
    pub reserved: u64,
    /// Selections that the budget denied.
    pub denied: u64,
    /// Updates that arrived.
    pub updates: u64,
    /// Extraction threads.
    pub workers: usize,
    /// No run took longer.
    pub run_at_most_s: f64,
}

/// Queries by whose voice they examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Queries {
    /// The owner's.
    pub owner: u64,
    /// A stranger's, whom every examination rejects.
    pub rejector: u64,
    /// Somebody else's who is enrolled.
    pub person: u64,
}

impl Report {
    pub(super) fn new(
        (scenario, policy, seed): (Scenario, Policy, u64),
        machine: Machine,
        numbers: usize,
        outcome: &Outcome,
    ) -> Self {
        let after = outcome.owner_since.zip(outcome.owner_examined).map(|(since, examined)| examined.since(since));
        let reserved = outcome.grants.len() as u64;
        let bounds = Bounds::of(machine, numbers);
        Self {
            scenario,
            policy,
            seed,
            owner_examined_first: after.is_some() && outcome.before_owner == 0,
            owner_examined_after_s: after.map(|after| after.as_secs_f64()),
            queries: Queries { owner: outcome.of_owner, rejector: outcome.of_strangers, person: outcome.of_others },
            worst_wait_s: outcome.worst_wait.as_secs_f64(),
            bound_s: bounds.any,
            worst_first_wait_s: outcome.worst_first_wait.as_secs_f64(),
            first_bound_s: bounds.first,
            override_share: share(outcome.overrides, outcome.selections),
            rejected_share: share(outcome.on_rejected, reserved),
            untried_passed_over: outcome.passed_over,
            idle_s: outcome.idle.as_secs_f64(),
            reserved,
            denied: outcome.denied,
            updates: outcome.updates,
            workers: machine.workers,
            run_at_most_s: machine.slowest.as_secs_f64(),
        }
    }
}

/// What the module's text proves, in seconds.
struct Bounds {
    any: f64,
    first: f64,
}

impl Bounds {
    fn of(machine: Machine, numbers: usize) -> Self {
        let (limits, budget) = (Limits::default(), budget::Limits::default());
        let slowest = machine.slowest.as_secs_f64();
        // A handful: exact in an f64.
        let workers = machine.workers as f64;
        let by_order = |count: usize| slowest * (workers + count as f64 - 1.0) / workers;
        let refill = 3_600.0 / f64::from(budget.refill_per_hour.get());
        let by_budget = slowest * (workers + f64::from(budget.burst.get())) / (workers - slowest / refill);
        let slots = by_order(numbers.min(limits.slots_max.get()));
        let voices = by_order(numbers.min(limits.voices_max.get()));
        Self { any: (limits.age_override.as_secs_f64() + slots).min(slowest + by_budget), first: voices.min(by_budget) }
    }
}

/// Counts of a simulation are far below 2^52: exact in an f64.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workers, run_at_most_s, updates, .. } = self;
        let Queries { owner, rejector, person } = self.queries;
        let examined = match self.owner_examined_after_s {
            Some(after) => format!("{after:.3} s after they had said enough"),
            None => String::from("never"),
        };
        let first = if self.owner_examined_first { "yes" } else { "no" };
        writeln!(f, "{}, {} (seed {})", self.scenario.as_str(), self.policy.as_str(), self.seed)?;
        writeln!(f, "  {}", self.scenario.about())?;
        writeln!(f, "  {updates} updates; runs of at most {run_at_most_s:.3} s, workers: {workers}")?;
        writeln!(f, "owner examined              {examined}")?;
        writeln!(f, "... before the tried        {first}")?;
        writeln!(f, "queries from then on        owner {owner}, strangers {rejector}, other people {person}")?;
        writeln!(f, "longest wait                {:.3} s, bound {:.3} s", self.worst_wait_s, self.bound_s)?;
        writeln!(f, "... of a first examination  {:.3} s, bound {:.3} s", self.worst_first_wait_s, self.first_bound_s)?;
        writeln!(f, "untried passed over         {} times", self.untried_passed_over)?;
        writeln!(f, "selected by age             {:.1} %", self.override_share * 100.0)?;
        writeln!(f, "tokens                      {} spent, {} denied", self.reserved, self.denied)?;
        writeln!(f, "... on rejected voices      {:.1} %", self.rejected_share * 100.0)?;
        writeln!(f, "idle while somebody waited  {:.3} s", self.idle_s)
    }
}

/// Several reports, one a line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// The reports.
    pub reports: Vec<Report>,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for scenario in Scenario::ALL {
            writeln!(f, "{:<10} {}", scenario.as_str(), scenario.about())?;
        }
        writeln!(
            f,
            "\n{:<10} {:<6} {:>7} {:>5}  {:>17}  {:>17}  {:>6}  {:>6}  {:>8}  {:>8}",
            "scenario",
            "policy",
            "owner",
            "first",
            "wait / bound",
            "first / bound",
            "passed",
            "by age",
            "rejected",
            "idle"
        )?;
        for row in &self.reports {
            let owner = row.owner_examined_after_s.map_or(String::from("never"), |after| format!("{after:.1} s"));
            let first = if row.owner_examined_first { "yes" } else { "no" };
            let wait = format!("{:.2} / {:.2} s", row.worst_wait_s, row.bound_s);
            let first_wait = format!("{:.2} / {:.2} s", row.worst_first_wait_s, row.first_bound_s);
            writeln!(
                f,
                "{:<10} {:<6} {owner:>7} {first:>5}  {wait:>17}  {first_wait:>17}  {:>6}  {:>4.0} %  {:>6.0} %  {:>6.1} s",
                row.scenario.as_str(),
                row.policy.as_str(),
                row.untried_passed_over,
                row.override_share * 100.0,
                row.rejected_share * 100.0,
                row.idle_s
            )?;
        }
        Ok(())
    }
}
