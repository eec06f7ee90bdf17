//! `rollcall model`: what can be installed, installing it, adding one's own, and checking what lies there.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use gpu_worker::FrontEnd;
use gpu_worker::install::{self, AddError, Added, Addition, Check, InstallError, State};
use gpu_worker::runtime;

use super::{CliError, Context, Progress, print};
use crate::engine::EngineError;

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
    /// Add a model of one's own: look at an ONNX file, say what it would be fed and why, try it, write its manifest
    #[command(after_help = "Example: rollcall model add speaker.onnx --name ours\n         \
                            rollcall calibrate --model ours --people people\n         \
                            rollcall model add ours --distance threshold=0.52 --distance margin=0.08\n\
                            A model is used when its manifest has every distance: threshold, margin, near_miss_bound, \
                            suggestion_bound, suggestion_margin, near_owner_bound, grouping, reconnect and levels \
                            (three, with commas).")]
    Add(Add),
    /// Check the checksums of what is installed
    #[command(after_help = "Example: rollcall model verify")]
    Verify,
}

#[derive(Debug, clap::Args)]
struct Add {
    /// An ONNX file, a folder with one, or the name of a model that was added before
    #[arg(value_name = "DIR|FILE")]
    source: PathBuf,
    /// The model's name; without it, that of its manifest or of its file
    #[arg(long, value_name = "N")]
    name: Option<String>,
    /// What the model is fed, when you know better: a name, or JSON as in a manifest
    #[arg(long, value_name = "KIND", value_parser = front_end)]
    front_end: Option<FrontEnd>,
    /// A distance of the model, measured on its own voiceprints
    #[arg(long, value_name = "FIELD=VALUE", value_parser = pair)]
    distance: Vec<(String, String)>,
}

/// A name stands for itself; anything else is JSON.
fn front_end(text: &str) -> Result<FrontEnd, String> {
    let is_json = text.trim_start().starts_with(['{', '"']);
    let value = if is_json { serde_json::from_str(text) } else { serde_json::from_value(text.into()) };
    value.map_err(|error| error.to_string())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (field, value) = text.split_once('=').ok_or("it must be FIELD=VALUE, as in threshold=0.5")?;
    Ok((field.trim().to_owned(), value.trim().to_owned()))
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    match &args.action {
        Action::List => print(&list(context)),
        Action::Install { name } => install(context, name),
        Action::Add(args) => add(context, args),
        Action::Verify => verify(context),
    }
}

fn list(context: &Context) -> String {
    let items = install::list();
    let line = |check: &Check| {
        let what = items.iter().find(|item| item.name == check.name).map_or_else(
            || format!("added ({})", check.path.display()),
            |item| format!("{} ({}, {})", item.what, item.package, item.licence),
        );
        format!("{}\t{}\t{what}\n", check.name, state_of(check))
    };
    install::inventory(context.home.path()).iter().map(line).collect()
}

fn state_of(check: &Check) -> &'static str {
    match check.state {
        State::Good => "installed",
        State::Missing => "not installed",
        State::Uncalibrated => "without distances",
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

fn add(context: &Context, args: &Add) -> Result<(), CliError> {
    let home = context.home.path();
    let library = context.config.extraction.runtime.as_deref().map(Path::new);
    let runtime = runtime::open(library, home).map_err(EngineError::from)?;
    let addition = Addition {
        source: &args.source,
        name: args.name.as_deref(),
        front_end: args.front_end,
        distances: &args.distance,
    };
    print(&added(&install::add(home, runtime, &addition)?))
}

/// What was found out, and what is still to be done.
fn added(Added { folder, findings, draft }: &Added) -> String {
    let name = &draft.manifest().name;
    let kind = serde_json::to_value(findings.front_end).unwrap_or_default();
    let mut text = format!("{}\nfront end\t{kind}\n", folder.display());
    for port in &findings.inputs {
        text.push_str(&format!("takes\t{port}\n"));
    }
    for port in &findings.outputs {
        text.push_str(&format!("gives\t{port}\n"));
    }
    for (key, value) in &findings.metadata {
        text.push_str(&format!("says\t{key}: {value}\n"));
    }
    for reason in &findings.reasons {
        text.push_str(&format!("because\t{reason}\n"));
    }
    text.push_str(&match draft.missing() {
        [] => format!("ready\trollcall serve --model {name}\n"),
        missing => format!(
            "missing\t{}\nnext\trollcall calibrate --model {name} --people DIR, then rollcall model add {name} --distance \
             FIELD=VALUE for each\n",
            missing.join(", ")
        ),
    });
    text
}

fn verify(context: &Context) -> Result<(), CliError> {
    let checks = install::verify(context.home.path());
    let mut wrong = Vec::new();
    for check in &checks {
        print(&format!("{}\t{}\t{}\n", check.name, state_of(check), check.path.display()))?;
        match &check.state {
            State::Good | State::Uncalibrated => {}
            State::Missing => wrong.push(format!("{} is missing", check.name)),
            State::Wrong { reason } => wrong.push(format!("{}: {reason}", check.name)),
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let mend = "install what `rollcall model list` shows with `rollcall model install NAME`";
    Err(CliError::failed(format!("{}; {mend}", wrong.join("; "))))
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

impl From<AddError> for CliError {
    fn from(error: AddError) -> Self {
        match error {
            AddError::Home(error) => error.into(),
            AddError::NotThere { .. }
            | AddError::NotOne { .. }
            | AddError::Name { .. }
            | AddError::AnotherGraph { .. }
            | AddError::Unreadable { .. }
            | AddError::Inspect(_)
            | AddError::Distance(_)
            | AddError::Manifest(_) => Self::input(error),
        }
    }
}
