//! The scheduler and the budgets in simulated time: `rollcall simulate`.
//!
//! Puts the very [`matcher_core::Scheduler`], [`matcher_core::Budget`] and [`matcher_core::Timeline`] that the service runs
//! on a virtual clock, with scripted voices and a pool of workers whose runs take pseudo-random times, beside ideal orders and
//! controls that each lack one thing ([`Policy`]). The same seed gives the same report on every machine. A trace that a server
//! recorded is played in the same world ([`trace`]). It prints nothing, and measures neither actors nor the model; turns
//! between conversations are [`crate::bench::fairness`]'s.
//!
//! # The bounds
//! One lane and one provider stream have the pool to themselves: `m` workers, at most as many as the lane may query at once,
//! and no run takes longer than `S`. `A` is the age override, or `S` if that is longer, `N` the slots that can wait at once,
//! `V` the numbers that are admitted, `B` the tokens that can be spent at once (the bucket's, and those of a relaxation) and
//! `R` the time in which one returns; age decides one of `k` selections in a row. Then a slot waits, from its beginning, for
//! its selection
//!
//! ```text
//!   any slot                      at most  A + S·(m + k·N − 1)/m  and  S + S·(m + B)/(m − S/R)   (`bound_s`: the less)
//!   that of a number never tried  at most        S·(m + V − 1)/m  and      S·(m + B)/(m − S/R)   (`first_bound_s`: the less)
//! ```
//! The right ones hold where `S < m·R`. A voice has a slot as soon as it has said enough, unless all slots are taken: then its
//! next update asks again, and nothing bounds how long it does. In several streams one number can hold several slots, of which
//! one waits for the other; nothing is proved for that, and no bound is told.
//!
//! Why the left ones, by the order: a query that holds the slot's own number was there before the slot and ends within `S`,
//! so from the age `A` on the slot is eligible, and while it waits every worker is busy. Only older slots go before it then,
//! at most `N − 1`, each once, because whoever is served comes back younger; and with each of them, and before its own turn, at
//! most `k − 1` others. With at most `m` runs under way that is `m + k·N − 1` runs on `m` workers. A number never examined is eligible at once, and nobody who was examined goes before it,
//! except older slots at the age `A`: each other number goes before it at most once, whether as an older slot or untried.
//!
//! Why the right ones, by the budget: a selection that is denied takes no time, and in a time `t` no more than `B + t/R` are
//! not. A slot that is eligible while all workers are busy for `t` so waits with `m·t ≤ S·(m + B + t/R)`.
//!
//! The bounds are on selection. How long a voice waits for a token when the budget is spent, they do not say.

mod book;
mod discipline;
mod fairness;
mod jobs;
mod meter;
mod plot;
mod policy;
mod random;
mod report;
mod scenario;
mod script;
mod setup;
mod slots;
mod summary;
pub mod trace;
mod variant;
mod voices;
mod world;

use std::collections::BTreeMap;

use matcher_core::Speaker;

pub use plot::{Drawing, drawings};
pub use policy::Policy;
pub use report::{Figures, Queries, Report, Table};
pub use scenario::Scenario;
use script::Script;
use setup::Bounds;
pub use setup::Setup;
pub use summary::{Row, Summary};
pub use trace::{Trace, TraceReport};
pub use variant::Variant;
pub(crate) use voices::POLICY;

/// Runs a scenario to its end under the service's defaults.
#[must_use]
pub fn simulate(scenario: Scenario, policy: Policy, seed: u64) -> Report {
    simulate_within(scenario, policy, seed, &Setup::default())
}

/// Runs a scenario to its end.
#[must_use]
pub fn simulate_within(scenario: Scenario, policy: Policy, seed: u64, setup: &Setup) -> Report {
    let script = scenario.script(seed);
    let demand = demand(&script, setup);
    Report { scenario, policy, seed, figures: figures(script, policy, setup, &demand) }
}

fn figures(script: Script, policy: Policy, setup: &Setup, demand: &BTreeMap<Speaker, u32>) -> Figures {
    let (machine, bounds) = (setup.machine(script.machine), bounds(&script, setup));
    Figures::new(&world::run(script, policy, setup), demand, machine, bounds)
}

fn bounds(script: &Script, setup: &Setup) -> Bounds {
    if script.is_one_stream() {
        Bounds::of(script.machine, script.numbers(), &script.within(setup))
    } else {
        Bounds::NONE
    }
}

/// The queries that each number makes when no other hinders it: there is a worker for everybody and always a token. The
/// attempts of a voice stay what the setup says.
fn demand(script: &Script, setup: &Setup) -> BTreeMap<Speaker, u32> {
    let mut setup = setup.clone();
    setup.budget.burst = std::num::NonZeroU32::MAX;
    world::run(script.unhindered(), Policy::Fair, &setup).served
}

#[cfg(test)]
mod tests;
