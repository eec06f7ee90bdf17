//! What a simulated scenario came to under one policy, in words and as JSON, beside the bounds that the module's text proves.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use matcher_core::Speaker;
use serde::Serialize;

use super::Policy;
use super::fairness::jain;
use super::meter::Outcome;
use super::scenario::Scenario;
use super::script::Machine;
use super::setup::Bounds;

/// What was measured, whatever was played. Times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Whether the owner was examined, and no token went to a voice examined before while they waited for it.
    pub owner_examined_first: bool,
    /// From the moment when the owner had said enough to the one when they were examined; null when they never were.
    pub owner_examined_after_s: Option<f64>,
    /// From the same moment to the one when they had their name; null when they never had.
    pub owner_named_after_s: Option<f64>,
    /// Tokens spent since the owner had said enough.
    pub queries: Queries,
    /// The longest time from a slot's beginning to its selection.
    pub worst_wait_s: f64,
    /// No slot waits longer in the service's order. Endless, and null in JSON, where nothing is proved: a trace with several
    /// provider streams.
    pub bound_s: f64,
    /// The longest such time of a slot of a number that was never examined.
    pub worst_first_wait_s: f64,
    /// No such slot waits longer in the service's order; the same holds of it.
    pub first_bound_s: f64,
    /// Half of the first examinations waited no longer for their selection.
    pub first_wait_p50_s: f64,
    /// ... and 99 of 100.
    pub first_wait_p99_s: f64,
    /// Selections that went by age alone, as a share of all.
    pub override_share: f64,
    /// Tokens spent on voices whose latest verdict was that they are nobody, as a share of all.
    pub rejected_share: f64,
    /// Tokens that went to an examined voice, and not for its age, while one never examined waited.
    pub untried_passed_over: u64,
    /// Jain's index of what each voice got of its fair share of the queries.
    pub jain: f64,
    /// Numbers that could be examined at some moment.
    pub voices: usize,
    /// ... and those that were.
    pub examined: usize,
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

/// What a scenario came to under one policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What happened.
    pub scenario: Scenario,
    /// Who was examined next.
    pub policy: Policy,
    /// Where the pseudo-random numbers began.
    pub seed: u64,
    /// What was measured.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Figures {
    pub(super) fn new(outcome: &Outcome, demand: &BTreeMap<Speaker, u32>, machine: Machine, bounds: Bounds) -> Self {
        let since_owner = |moment: Option<matcher_core::Monotonic>| {
            outcome.owner_since.zip(moment).map(|(since, moment)| moment.since(since).as_secs_f64())
        };
        let after = since_owner(outcome.owner_examined);
        let reserved = outcome.grants.len() as u64;
        let mut first_waits = outcome.first_waits.clone();
        first_waits.sort_unstable();
        Self {
            owner_examined_first: after.is_some() && outcome.before_owner == 0,
            owner_examined_after_s: after,
            owner_named_after_s: since_owner(outcome.owner_named),
            queries: Queries { owner: outcome.of_owner, rejector: outcome.of_strangers, person: outcome.of_others },
            worst_wait_s: outcome.worst_wait.as_secs_f64(),
            bound_s: bounds.any,
            worst_first_wait_s: outcome.worst_first_wait.as_secs_f64(),
            first_bound_s: bounds.first,
            first_wait_p50_s: percentile(&first_waits, 50),
            first_wait_p99_s: percentile(&first_waits, 99),
            override_share: share(outcome.overrides, outcome.selected.len() as u64),
            rejected_share: share(outcome.on_rejected, reserved),
            untried_passed_over: outcome.passed_over,
            jain: jain(&outcome.served, demand),
            voices: outcome.heard.len(),
            examined: outcome.served.len(),
            idle_s: outcome.idle.as_secs_f64(),
            reserved,
            denied: outcome.denied,
            updates: outcome.updates,
            workers: machine.workers,
            run_at_most_s: machine.slowest.as_secs_f64(),
        }
    }
}

impl Figures {
    /// Whether a wait exceeded the bound that the service's order keeps.
    pub(super) fn breaks_a_bound(&self) -> bool {
        self.worst_wait_s > self.bound_s || self.worst_first_wait_s > self.first_bound_s
    }
}

/// The least time that so many of a hundred do not exceed.
pub(super) fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map_or(0.0, Duration::as_secs_f64)
}

/// Counts of a simulation are far below 2^52: exact in an f64.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A wait and its bound, when it has one.
pub(super) fn beside_bound(wait: f64, bound: f64) -> String {
    if bound.is_finite() { format!("{wait:.2} / {bound:.2} s") } else { format!("{wait:.2} s / none") }
}

pub(super) fn seconds_or_never(seconds: Option<f64>, decimals: usize) -> String {
    seconds.map_or(String::from("never"), |seconds| format!("{seconds:.decimals$} s"))
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workers, run_at_most_s, updates, voices, examined, .. } = self;
        let Queries { owner, rejector, person } = self.queries;
        let after = |seconds: Option<f64>| match seconds {
            Some(seconds) => format!("{seconds:.3} s after they had said enough"),
            None => String::from("never"),
        };
        let first = if self.owner_examined_first { "yes" } else { "no" };
        writeln!(f, "  {updates} updates; runs of at most {run_at_most_s:.3} s, workers: {workers}")?;
        writeln!(f, "owner examined              {}", after(self.owner_examined_after_s))?;
        writeln!(f, "... before the tried        {first}")?;
        writeln!(f, "... and named               {}", after(self.owner_named_after_s))?;
        writeln!(f, "queries from then on        owner {owner}, strangers {rejector}, other people {person}")?;
        let bound = |bound: f64| if bound.is_finite() { format!("{bound:.3} s") } else { String::from("none") };
        let (any, of_first) = (bound(self.bound_s), bound(self.first_bound_s));
        writeln!(f, "longest wait                {:.3} s, bound {any}", self.worst_wait_s)?;
        writeln!(f, "... of a first examination  {:.3} s, bound {of_first}", self.worst_first_wait_s)?;
        writeln!(f, "... p50 and p99             {:.3} s, {:.3} s", self.first_wait_p50_s, self.first_wait_p99_s)?;
        writeln!(f, "voices examined             {examined} of {voices}")?;
        writeln!(f, "untried passed over         {} times", self.untried_passed_over)?;
        writeln!(f, "selected by age             {:.1} %", self.override_share * 100.0)?;
        writeln!(f, "tokens                      {} spent, {} denied", self.reserved, self.denied)?;
        writeln!(f, "... on rejected voices      {:.1} %", self.rejected_share * 100.0)?;
        writeln!(f, "Jain's index of shares      {:.3}", self.jain)?;
        writeln!(f, "idle while somebody waited  {:.3} s", self.idle_s)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {} (seed {})", self.scenario.as_str(), self.policy.as_str(), self.seed)?;
        writeln!(f, "  {}", self.scenario.about())?;
        self.figures.fmt(f)
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
            "\n{:<10} {:<14} {:>8} {:>5}  {:>17}  {:>17}  {:>6}  {:>6}  {:>8}  {:>5}  {:>8}",
            "scenario",
            "policy",
            "owner",
            "first",
            "wait / bound",
            "first / bound",
            "passed",
            "by age",
            "rejected",
            "Jain",
            "idle"
        )?;
        for Report { scenario, policy, figures, .. } in &self.reports {
            let owner = seconds_or_never(figures.owner_examined_after_s, 1);
            let first = if figures.owner_examined_first { "yes" } else { "no" };
            let wait = beside_bound(figures.worst_wait_s, figures.bound_s);
            let first_wait = beside_bound(figures.worst_first_wait_s, figures.first_bound_s);
            writeln!(
                f,
                "{:<10} {:<14} {owner:>8} {first:>5}  {wait:>17}  {first_wait:>17}  {:>6}  {:>4.0} %  {:>6.0} %  {:>5.2}  {:>6.1} s",
                scenario.as_str(),
                policy.as_str(),
                figures.untried_passed_over,
                figures.override_share * 100.0,
                figures.rejected_share * 100.0,
                figures.jain,
                figures.idle_s
            )?;
        }
        Ok(())
    }
}
