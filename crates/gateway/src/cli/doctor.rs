//! `rollcall doctor`: every check, a line each, and how to mend what is not well. Exit code 0 only when all is well.

mod checks;
mod servers;

use super::{CliError, Context, print};
use checks::Check;

/// Arguments of `rollcall doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall doctor --model campplus --data ./data\n\
                        Exit code 0 when all is well, 1 when something is missing or wrong.")]
pub(super) struct Args {}

pub(super) fn run(_args: &Args, context: &Context) -> Result<(), CliError> {
    let checks = checks::all(context);
    print(&checks.iter().map(Check::line).collect::<String>())?;
    let wrong: Vec<&str> = checks.iter().filter(|check| check.is_wrong()).map(|check| check.what).collect();
    if wrong.is_empty() { Ok(()) } else { Err(CliError::failed(format!("not well: {}", wrong.join(", ")))) }
}
