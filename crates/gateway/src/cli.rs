//! The `rollcall` command: its arguments, its exit codes, and what every subcommand is given.
//!
//! Each subcommand has a file: an `Args` struct and a `run`. To add one, declare its module, add a variant to
//! [`Command`], and an arm to [`Command::run`]. Results go to standard output alone; errors are one line on standard
//! error.

mod bench;
mod calibrate;
mod client;
mod context;
mod doctor;
mod enroll;
mod identify;
mod model;
mod output;
mod people;
mod serve;
mod simulate;
mod stream;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

pub use client::Client;
pub use context::Context;
pub use output::{Progress, print};

/// Why a command did not do its work. The message is one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CliError {
    /// The input was wrong: exit code 2. The message names the file or the field and the reason.
    #[error("{0}")]
    Input(String),
    /// Anything else: exit code 1.
    #[error("{0}")]
    Failed(String),
}

impl CliError {
    /// The input was wrong.
    pub fn input(reason: impl std::fmt::Display) -> Self {
        Self::Input(reason.to_string())
    }

    /// Something failed.
    pub fn failed(reason: impl std::fmt::Display) -> Self {
        Self::Failed(reason.to_string())
    }

    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Input(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::from(1),
        }
    }
}

/// Names the speakers of live conversations by their voices, under a hard budget of model queries.
#[derive(Debug, Parser)]
#[command(name = "rollcall", version, max_term_width = 120)]
#[command(after_help = "Models and runtime live in ROLLCALL_HOME, else .rollcall here, else ~/.local/share/rollcall. \
                        `rollcall doctor` says what is missing on this machine.")]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// What every subcommand takes.
#[derive(Debug, Clone, Default, Args)]
pub struct Common {
    /// Settings file; without it `rollcall.toml` in the working directory is read, if there is one
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting, such as budget.voice_attempts=8; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Directory of the store
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Installed model, a directory with a manifest, or `scripted`
    #[arg(long, global = true, value_name = "NAME|DIR")]
    pub model: Option<String>,
    /// How log records look on standard error: text or json
    #[arg(long, global = true, value_name = "FORMAT")]
    pub log: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service: sockets, matching, extraction, people and metrics in one process
    Serve(serve::Args),
    /// Play a recording to a running server, and print every event as one JSON line
    Stream(stream::Args),
    /// Say who speaks where in one recording, by a folder of people
    Identify(identify::Args),
    /// Enrol a person from audio files, here or on a running server
    Enroll(enroll::Args),
    /// List, show or delete enrolled people, here or on a running server
    People(people::Args),
    /// List, install, add or verify models and the inference runtime
    Model(model::Args),
    /// Say which threshold and margin fit this model and these clips
    Calibrate(calibrate::Args),
    /// Play scenarios to the scheduler and the budgets in simulated time, beside first come, first served
    Simulate(simulate::Args),
    /// Measure what the README quotes: an extraction, many sockets
    Bench(bench::Args),
    /// Say what is missing or wrong on this machine, and how to mend it
    Doctor(doctor::Args),
}

impl Command {
    fn run(&self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Serve(args) => serve::run(args, context),
            Self::Stream(args) => stream::run(args, context),
            Self::Identify(args) => identify::run(args, context),
            Self::Enroll(args) => enroll::run(args, context),
            Self::People(args) => people::run(args, context),
            Self::Model(args) => model::run(args, context),
            Self::Calibrate(args) => calibrate::run(args, context),
            Self::Simulate(args) => simulate::run(args, context),
            Self::Bench(args) => bench::run(args, context),
            Self::Doctor(args) => doctor::run(args, context),
        }
    }
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let done = Context::new(&cli.common).and_then(|context| cli.command.run(&context));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error.to_string());
            error.exit_code()
        }
    }
}

/// Help and version go to standard output with exit code 0; a wrong command line is one line with exit code 2.
fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, ExitCode> {
    Cli::try_parse_from(arguments).map_err(|error| {
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            return print(&error.to_string()).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
        }
        output::complain(&complaint(&error.to_string()));
        ExitCode::from(2)
    })
}

/// The reason alone, on one line: the usage that follows it is what `--help` is for.
fn complaint(rendered: &str) -> String {
    let reason = rendered.split("\n\nUsage:").next().unwrap_or(rendered);
    let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    format!("{line} (see rollcall --help)")
}

#[cfg(test)]
mod tests;
