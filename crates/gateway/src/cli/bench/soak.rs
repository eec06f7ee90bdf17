//! `rollcall bench soak`: the engine at full load for a long time, and whether what the process holds stays flat.

use std::time::Duration;

use super::super::{CliError, Context, Progress};
use super::show;
use crate::bench::soak;

/// A week.
const MINUTES_MAX: f64 = 10_080.0;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall bench soak --minutes 5 --model scripted\n\
                        It loads the engine of the settings, as `rollcall serve` would. Exit code 0 when memory, threads \
                        and descriptors are flat after the warm-up, 1 otherwise.")]
pub(super) struct Args {
    /// How long, in minutes; parts of one are taken
    #[arg(long, value_name = "M", default_value_t = 60.0, value_parser = minutes)]
    minutes: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse::<f64>().ok().filter(|minutes| *minutes > 0.0 && *minutes <= MINUTES_MAX);
    minutes.ok_or_else(|| format!("must be a number above 0 and up to {MINUTES_MAX}"))
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let engine = context.open_engine()?;
    let progress = Progress::new();
    let time = Duration::from_secs_f64(args.minutes * 60.0);
    let measured = soak::measure(&engine, time, &|step| progress.say(step));
    engine.shutdown();
    let report = measured.map_err(CliError::failed)?;
    show(args.json, &report, &report)?;
    if report.flat { Ok(()) } else { Err(CliError::failed(format!("not flat: {}", report.troubles.join("; ")))) }
}
