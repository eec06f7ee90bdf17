//! `rollcall simulate`: the scheduler and the budgets in simulated time, printed as words, a table, or one JSON object, or
//! drawn.
//!
//! What is simulated, and what is measured, is [`crate::simulate`]'s; here are the arguments, the printing and the files.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{CliError, Context, print};
use crate::serve;
use crate::simulate::{Drawing, Policy, Scenario, Setup, Summary, Table, Trace, drawings, simulate_within};

/// Seeds of a summary or a drawing, unless another number is asked for: the quarters of a distribution stand still from there.
const SEEDS: u64 = 40;

/// Arguments of `rollcall simulate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples: rollcall simulate seed --policy fifo\n          \
                        rollcall simulate household --options\n          \
                        rollcall simulate --trace recorded.jsonl --policy fifo\n\
                        Without a scenario it says what each is, and plays them all. The same seed gives the same output \
                        on every machine. --set budget.… and queue.… hold in scenarios, too; a trace brings its own.")]
pub(super) struct Args {
    /// What happens; left out, everything
    scenario: Option<Scenario>,
    /// Who is examined next; left out, fair, or several beside each other when every scenario is played
    #[arg(long)]
    policy: Option<Policy>,
    /// Where the pseudo-random numbers begin
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Play so many seeds, and sum up what came of them under each policy
    #[arg(long, value_name = "N", conflicts_with = "trace", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Sum up the service's order under each option of the budget and the queue that is off by default
    #[arg(long, conflicts_with_all = ["trace", "policy"])]
    options: bool,
    /// What a server recorded (`rollcall serve --record FILE`), instead of a scenario
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    trace: Option<PathBuf>,
    /// Draw instead of printing: all drawings into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["trace", "json", "options", "policy"])]
    plot: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    if let Some(path) = &args.trace {
        return show(args.json, &Trace::read(path).map_err(CliError::input)?.replay(args.policy));
    }
    let setup = Setup { limits: serve::limits(&context.config), budget: serve::budget_limits(&context.config) };
    let scenarios = args.scenario.map_or(Scenario::ALL.to_vec(), |scenario| vec![scenario]);
    setup.check(&scenarios).map_err(CliError::input)?;
    let seeds = (args.seed, args.seeds.unwrap_or(SEEDS));
    if let Some(folder) = &args.plot {
        return draw(folder, &drawings(&scenarios, seeds, &setup));
    }
    if args.options {
        return show(args.json, &Summary::of_options(&scenarios, seeds, &setup));
    }
    if args.seeds.is_some() {
        let policies = args.policy.map_or(Policy::ALL.to_vec(), |policy| vec![policy]);
        return show(args.json, &Summary::of_policies(&scenarios, &policies, seeds, &setup));
    }
    match args.scenario {
        Some(scenario) => {
            let policy = args.policy.unwrap_or(Policy::Fair);
            show(args.json, &simulate_within(scenario, policy, args.seed, &setup))
        }
        None => show(args.json, &all(args.policy, args.seed, &setup)),
    }
}

fn all(policy: Option<Policy>, seed: u64, setup: &Setup) -> Table {
    let policies = policy.map_or(vec![Policy::Fair, Policy::Fifo], |policy| vec![policy]);
    let of = |scenario| policies.iter().map(move |policy| simulate_within(scenario, *policy, seed, setup));
    Table { reports: Scenario::ALL.into_iter().flat_map(of).collect() }
}

fn draw(folder: &Path, drawings: &[Drawing]) -> Result<(), CliError> {
    let unwritable = |path: &Path, error: std::io::Error| {
        CliError::input(format!("--plot {}: cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    for Drawing { name, svg } in drawings {
        let path = folder.join(name);
        std::fs::write(&path, svg).map_err(|error| unwritable(&path, error))?;
        print(&format!("{}\n", path.display()))?;
    }
    Ok(())
}

fn show(json: bool, report: &(impl Serialize + std::fmt::Display)) -> Result<(), CliError> {
    if json {
        return print(&format!("{}\n", serde_json::to_string(report).map_err(CliError::failed)?));
    }
    print(&report.to_string())
}
