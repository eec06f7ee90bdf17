//! `rollcall bench faults`: workers and extraction servers that misbehave on purpose, and what became of the queries.
//!
//! The run is the worker's; here are its arguments and the printing. Nothing of the settings is used: workers and servers
//! are the run's own.

use gpu_worker::faults;

use super::super::{CliError, Progress, print};
use crate::bench;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall bench faults --queries 2000\n\
                        Exit code 0 when every query was answered, the books balance, everything came back in time and \
                        nothing was left behind; 1 otherwise. 10000 queries take half a minute.")]
pub(super) struct Args {
    /// Queries at least, over all faults
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    queries: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let progress = Progress::new();
    let queries = usize::try_from(args.queries).unwrap_or(usize::MAX);
    let report = faults::run(queries, &mut |row| progress.say(&row.fault)).map_err(CliError::failed)?;
    if args.json {
        print(&format!("{}\n", bench::faults::json(&report)))?;
    } else {
        print(&report.to_string())?;
    }
    let troubles = report.troubles();
    if troubles.is_empty() { Ok(()) } else { Err(CliError::failed(troubles.join("; "))) }
}
