//! `rollcall simulate`: the scheduler and the budgets in simulated time, printed as words, a table, or one JSON object.
//!
//! What is simulated, and what is measured, is [`crate::simulate`]'s; here are the arguments and the printing.

use serde::Serialize;

use super::{CliError, print};
use crate::simulate::{Policy, Scenario, Table, simulate};

/// Arguments of `rollcall simulate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall simulate seed --policy fifo\n\
                        Without a scenario it says what each is, and plays them all. The same seed gives the same output \
                        on every machine.")]
pub(super) struct Args {
    /// What happens; left out, everything
    scenario: Option<Scenario>,
    /// Who is examined next; left out, fair, or both beside each other when every scenario is played
    #[arg(long)]
    policy: Option<Policy>,
    /// Where the pseudo-random numbers begin
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    match args.scenario {
        Some(scenario) => show(args.json, &simulate(scenario, args.policy.unwrap_or(Policy::Fair), args.seed)),
        None => show(args.json, &all(args.policy, args.seed)),
    }
}

fn all(policy: Option<Policy>, seed: u64) -> Table {
    let policies = policy.map_or(vec![Policy::Fair, Policy::Fifo], |policy| vec![policy]);
    let of = |scenario| policies.iter().map(move |policy| simulate(scenario, *policy, seed));
    Table { reports: Scenario::ALL.into_iter().flat_map(of).collect() }
}

fn show(json: bool, report: &(impl Serialize + std::fmt::Display)) -> Result<(), CliError> {
    if json {
        return print(&format!("{}\n", serde_json::to_string(report).map_err(CliError::failed)?));
    }
    print(&report.to_string())
}
