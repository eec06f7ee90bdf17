//! The scheduler and the budgets in simulated time: `rollcall simulate`.
//!
//! Puts the very [`matcher_core::Scheduler`], [`matcher_core::Budget`] and [`matcher_core::Timeline`] that the service runs
//! on a virtual clock, with scripted voices and a pool of workers whose runs take pseudo-random times, beside a plain queue
//! of updates in order of arrival, which shows what the numbers would be without them. The same seed gives the same report
//! on every machine. It prints nothing, and measures neither actors nor the model; turns between conversations are
//! [`crate::bench::fairness`]'s.
//!
//! # The bounds
//! One lane and one provider stream have the pool to themselves: `m` workers, at most as many as the lane may query at once,
//! and no run takes longer than `S`. `A` is the age override, `N` the slots that can wait at once, `V` the numbers that are
//! admitted, `B` the bucket's tokens and `R` the time in which one returns; `S ≤ A`, `S < m·R`. Then a slot waits for its
//! selection
//!
//! ```text
//!   any slot                  at most  A + S·(m + N − 1)/m  and  S + S·(m + B)/(m − S/R)      (`bound_s`: the less)
//!   a number never examined   at most      S·(m + V − 1)/m  and      S·(m + B)/(m − S/R)      (`first_bound_s`: the less)
//! ```
//! Why the left ones, by the order: a query that holds the slot's own number was there before the slot and ends within `S`,
//! so from the age `A` on the slot is eligible, and while it waits every worker is busy. Only older slots go before it then,
//! at most `N − 1`, each once, because whoever is served comes back younger. With at most `m` runs under way that is
//! `m + N − 1` runs on `m` workers. A number never examined is eligible at once, and nobody who was examined goes before it,
//! except older slots at the age `A`: each other number goes before it at most once, whether as an older slot or untried.
//!
//! Why the right ones, by the budget: a selection that is denied takes no time, and in a time `t` no more than `B + t/R` are
//! not. A slot that is eligible while all workers are busy for `t` so waits with `m·t ≤ S·(m + B + t/R)`.
//!
//! The bounds are on selection. How long a voice waits for a token when the budget is spent, they do not say.

mod discipline;
mod fifo;
mod meter;
mod random;
mod report;
mod scenario;
mod voices;
mod world;

pub use report::{Queries, Report, Table};
pub use scenario::Scenario;

/// Who is examined next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The service's order: one slot a voice, the untried first, from five seconds of age the oldest
    Fair,
    /// A plain queue: every update a job of its own, in order of arrival
    Fifo,
}

impl Policy {
    /// The name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::Fifo => "fifo",
        }
    }
}

/// Runs a scenario to its end.
#[must_use]
pub fn simulate(scenario: Scenario, policy: Policy, seed: u64) -> Report {
    let script = scenario.script(seed);
    let numbers = script.numbers();
    let machine = script.machine;
    let outcome = world::run(script, policy, seed);
    Report::new((scenario, policy, seed), machine, numbers, &outcome)
}

#[cfg(test)]
mod tests;
