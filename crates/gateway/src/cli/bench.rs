//! `rollcall bench`: the measurements that the README quotes, each printed as a table or as one JSON object.
//!
//! What is measured, and how, is [`crate::bench`]'s and the worker's; here are the arguments and the printing.

mod extract;
mod faults;
mod soak;

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use gpu_worker::bench::BenchError;
use gpu_worker::front_end::measure;
use gpu_worker::scripted;
use serde::Serialize;

use super::{CliError, Context, Progress, print};
use crate::bench::sockets::{self, Plan, SocketsError, traces};
use crate::bench::{fairness, queue};

/// Arguments of `rollcall bench`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// What an extraction costs, beside the bare model session, sherpa-onnx and ONNX Runtime in Python
    Extract(extract::Args),
    /// What the front ends cost, beside kaldi-native-fbank and librosa
    Frontend(Frontend),
    /// What a conversation's scheduler costs with every slot full
    Queue(Queue),
    /// Whether one conversation's burst costs the others their turns, in virtual time
    Fairness(Fairness),
    /// What becomes of queries when workers and extraction servers misbehave
    Faults(faults::Args),
    /// Whether the engine's memory stays flat at full load for a long time
    Soak(soak::Args),
    /// What the service costs with many real-time sockets from a second process
    Sockets(Sockets),
    /// What sending metrics, traces and logs to a collector costs the service
    Traces(Traces),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall bench frontend --python peers/bin/python\n\
                        To measure the libraries too: python3 -m venv peers && \
                        peers/bin/pip install kaldi-native-fbank librosa")]
struct Frontend {
    /// Runs of each front end
    #[arg(long, value_name = "N", default_value = "100")]
    rounds: NonZeroUsize,
    /// A Python that has kaldi-native-fbank and librosa; a library that it lacks is left out
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall bench queue --json")]
struct Queue {
    /// Seconds to count updates, and as many to count queries
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall bench fairness\n\
                        The same seed gives the same numbers on every machine.")]
struct Fairness {
    /// Where the pseudo-random moments begin
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// More do not fit in the ports of one loopback address.
const SOCKETS_MAX: i64 = 20_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall bench sockets --sockets 100 --seconds 20\n\
                        The load runs here and the server in a child process. It takes a ramp of 15 s, \
                        the time that the rings need to fill, and the time measured: 107 s with the defaults.")]
struct Sockets {
    /// Real-time sockets at once
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=SOCKETS_MAX))]
    sockets: u32,
    /// Seconds of steady state to measure
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Open pages of the console whose cost is measured as well; takes three times the seconds more
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=64))]
    pages: u32,
    /// Seconds of audio in a socket's ring, as sockets.ring_seconds
    #[arg(long, value_name = "S")]
    ring_seconds: Option<f64>,
    /// Model of the server; left out, `scripted`, whatever the settings say: the service's own cost
    #[arg(long, value_name = "NAME|DIR")]
    model: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall bench traces --rounds 12\n\
                        The same load in turns on a server that exports to a sink in this process and on one that does \
                        not. It takes about three quarters of a minute a round with the defaults.")]
struct Traces {
    /// Pairs of measurements
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Seconds of load in each measurement
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Seconds of audio that come with each query. With 15, the time in which a token comes back, sockets ask all that
    /// their budget lets them; 2 is the least that a query takes
    #[arg(long, value_name = "S", default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..=30))]
    audio_seconds: u32,
    /// Sockets at once; each brings about five queries a second
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    sockets: u32,
    /// Model of the server; left out, `scripted`: the service's own cost
    #[arg(long, value_name = "NAME|DIR")]
    model: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    // What a fault run does on purpose is no news.
    context.start_logs(if matches!(args.what, What::Faults(_)) { "error" } else { "warn" })?;
    match &args.what {
        What::Faults(args) => faults::run(args),
        What::Soak(args) => soak::run(args, context),
        What::Extract(args) => extract::run(args, context),
        What::Frontend(args) => frontend(args),
        What::Queue(args) => queue(args),
        What::Fairness(args) => fairness(args),
        What::Sockets(args) => sockets(args, context),
        What::Traces(args) => traces(args, context),
    }
}

fn frontend(args: &Frontend) -> Result<(), CliError> {
    #[derive(Serialize)]
    struct Report {
        rows: Vec<measure::Row>,
    }
    Progress::new().say(&format!("measuring the front ends with {} rounds each", args.rounds));
    let rows = measure::measure(args.rounds, &args.python).map_err(CliError::failed)?;
    let mut table = String::from("front end           CPU for 10 s   audio a CPU second   beside\n");
    for row in &rows {
        let beside = match (row.peer, row.peer_cpu_ms, row.times_faster) {
            (None, ..) => String::from("nothing"),
            (Some(peer), Some(ms), Some(times)) => format!("{peer}: {ms:.2} ms, {times:.1} times as long"),
            (Some(peer), ..) => format!("{peer}: not installed in {}", args.python.display()),
        };
        let (ms, audio) = (row.cpu_ms, row.audio_s_per_cpu_s);
        table.push_str(&format!("{:<17}   {ms:>9.3} ms   {audio:>16.0} s   {beside}\n", row.front_end));
    }
    show(args.json, &Report { rows }, table)
}

fn queue(args: &Queue) -> Result<(), CliError> {
    let plan = queue::Plan { time: Duration::from_secs(args.seconds), ..queue::Plan::default() };
    Progress::new().say("measuring memory, then updates, then queries");
    let report = queue::measure(&plan).map_err(CliError::failed)?;
    show(args.json, &report, report)
}

fn fairness(args: &Fairness) -> Result<(), CliError> {
    let report = fairness::measure(args.seed);
    show(args.json, &report, &report)
}

fn sockets(args: &Sockets, context: &Context) -> Result<(), CliError> {
    let mut config = context.config.clone();
    config.extraction.model = args.model.clone().unwrap_or_else(|| scripted::NAME.to_owned());
    if let Some(seconds) = args.ring_seconds {
        config.sockets.ring_seconds = seconds;
    }
    config.validate()?;
    let binary = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("this program cannot find itself: {error}")))?;
    let steady = Duration::from_secs(args.seconds);
    let plan = Plan { sockets: args.sockets, pages: args.pages, steady, config, binary, environment: Vec::new() };
    let progress = Progress::new();
    let report = sockets::sockets(&plan, &|step| progress.say(step))?;
    show(args.json, &report, &report)
}

fn traces(args: &Traces, context: &Context) -> Result<(), CliError> {
    let mut config = context.config.clone();
    config.extraction.model = args.model.clone().unwrap_or_else(|| scripted::NAME.to_owned());
    // Nothing is denied: every query runs.
    config.budget.socket_burst = 10_000;
    config.budget.voice_attempts = 1_000;
    config.validate()?;
    let binary = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("this program cannot find itself: {error}")))?;
    let steady = Duration::from_secs(args.seconds);
    let plan = Plan { sockets: args.sockets, pages: 0, steady, config, binary, environment: Vec::new() };
    let progress = Progress::new();
    let turns = traces::Turns { rounds: args.rounds, audio_seconds: args.audio_seconds };
    let report = traces::traces(&plan, turns, &|step| progress.say(step))?;
    show(args.json, &report, &report)
}

fn show(json: bool, report: &impl Serialize, table: impl Display) -> Result<(), CliError> {
    if json {
        return print(&format!("{}\n", serde_json::to_string(report).map_err(CliError::failed)?));
    }
    print(&table.to_string())
}

impl From<BenchError> for CliError {
    fn from(error: BenchError) -> Self {
        Self::failed(error)
    }
}

impl From<SocketsError> for CliError {
    fn from(error: SocketsError) -> Self {
        Self::failed(error)
    }
}
