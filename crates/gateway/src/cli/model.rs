//! `rollcall model`: what can be installed, installing it, and checking what lies there.

use clap::Subcommand;
use gpu_worker::install::{self, Check, InstallError, State};

use super::{CliError, Context, Progress, print};

/// Arguments of `rollcall model`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall model install campplus")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// What can be installed, where it comes from, and whether it is there
    #[command(after_help = "Example: rollcall model list")]
    List,
    /// Install a model, and the inference runtime with it
    #[command(after_help = "Example: rollcall model install campplus")]
    Install {
        /// The model's name, as in the list
        name: String,
    },
    /// Check the checksums of what is installed
    #[command(after_help = "Example: rollcall model verify")]
    Verify,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    match &args.action {
        Action::List => print(&list(context)),
        Action::Install { name } => install(context, name),
        Action::Verify => verify(context),
    }
}

fn list(context: &Context) -> String {
    let checks = install::verify(context.home.path());
    let state = |name| checks.iter().find(|check| check.name == name).map_or("unknown", state_of);
    install::list()
        .iter()
        .map(|item| {
            format!("{}\t{}\t{} ({}, {})\n", item.name, state(item.name), item.what, item.package, item.licence)
        })
        .collect()
}

fn state_of(check: &Check) -> &'static str {
    match check.state {
        State::Good => "installed",
        State::Missing => "not installed",
        State::Wrong { .. } => "damaged",
    }
}

/// The model first: a wrong name then costs no download.
fn install(context: &Context, name: &str) -> Result<(), CliError> {
    let progress = Progress::new();
    let mut say = |step: &str| progress.say(step);
    let folder = install::model(context.home.path(), name, &mut say)?;
    let library = install::runtime(context.home.path(), &mut say)?;
    print(&format!("{}\n{}\n", folder.display(), library.display()))
}

fn verify(context: &Context) -> Result<(), CliError> {
    let checks = install::verify(context.home.path());
    let mut wrong = Vec::new();
    for check in &checks {
        print(&format!("{}\t{}\t{}\n", check.name, state_of(check), check.path.display()))?;
        match &check.state {
            State::Good => {}
            State::Missing => wrong.push(format!("{} is missing", check.name)),
            State::Wrong { reason } => wrong.push(format!("{}: {reason}", check.name)),
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(CliError::failed(format!("{}; run: rollcall model install campplus", wrong.join("; "))))
}

impl From<InstallError> for CliError {
    fn from(error: InstallError) -> Self {
        match error {
            InstallError::UnknownModel { .. } => Self::input(error),
            InstallError::Python { .. }
            | InstallError::Platform { .. }
            | InstallError::Step { .. }
            | InstallError::TooSlow { .. }
            | InstallError::Checksum { .. }
            | InstallError::Home { .. } => Self::failed(error),
        }
    }
}
