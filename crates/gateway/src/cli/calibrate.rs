//! `rollcall calibrate`: which threshold and margin fit this model and these clips.
//!
//! Reads the files, prints and writes the plot; what is compared, and the arithmetic, is [`crate::calibrate`]'s.

use std::path::{Path, PathBuf};

use super::output::complain;
use super::{CliError, Context, Progress, print};
use crate::calibrate::{ClipError, ClipTrouble, Kind, List, ListError, PeopleTrials, RatesError, Report, Source};
use crate::calibrate::{Trial, svg};

/// Progress is told every so many clips.
const PROGRESS_CLIPS: usize = 10;

/// Arguments of `rollcall calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall calibrate --people people --plot curves.svg\n\
                        A list has one trial a line: `anna/1.wav ben/2.wav nontarget`, paths relative to the list.")]
#[command(group = clap::ArgGroup::new("clips").required(true))]
pub(super) struct Args {
    /// List of trials as in Kaldi: <enrol> <test> target|nontarget
    #[arg(long, value_name = "FILE", group = "clips")]
    trials: Option<PathBuf>,
    /// Directory with one folder a person, each with audio clips; at least two people
    #[arg(long, value_name = "DIR", group = "clips")]
    people: Option<PathBuf>,
    /// Write the curves to this SVG file
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What is to be compared, listed and not yet heard.
enum Plan {
    Trials(List),
    People(PeopleTrials),
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    context.start_logs("warn")?;
    // Whatever can be wrong with the input is said before the model is loaded.
    let plan = Plan::read(args)?;
    args.plot.as_deref().map_or(Ok(()), check_plot)?;
    let engine = context.open_engine_to_calibrate()?;
    let present = context.config.matching.over(gpu_worker::Engine::manifest(&engine));
    let heard = plan.compare(&engine);
    engine.shutdown();
    let (trials, short) = heard?;
    let report = Report::new(&present, plan.source(), &trials, short)?;
    for warning in report.warnings() {
        complain(warning);
    }
    if let Some(path) = &args.plot {
        std::fs::write(path, svg(&report, &trials)?).map_err(|error| unwritable(path, &error))?;
    }
    if args.json {
        return print(&format!("{}\n", serde_json::to_string_pretty(&report).map_err(CliError::failed)?));
    }
    print(&report.to_string())
}

impl Plan {
    fn read(args: &Args) -> Result<Self, CliError> {
        match (&args.trials, &args.people) {
            (Some(path), None) => {
                let list = List::read(path)?;
                for (kind, name) in [(Kind::Target, "target"), (Kind::Nontarget, "nontarget")] {
                    if list.count(kind) == 0 {
                        let path = path.display();
                        return Err(CliError::input(format!(
                            "--trials {path}: holds no {name} trial; both are needed"
                        )));
                    }
                }
                if list.repeated() > 0 {
                    complain(&format!("{} trials are listed again; each counts once", list.repeated()));
                }
                Ok(Self::Trials(list))
            }
            (None, Some(path)) => Ok(Self::People(PeopleTrials::list(path)?)),
            (Some(_), Some(_)) | (None, None) => Err(CliError::input("give either --trials or --people")),
        }
    }

    fn source(&self) -> Source {
        match self {
            Self::Trials(_) => Source::Trials,
            Self::People(_) => Source::People,
        }
    }

    fn compare(&self, engine: &dyn gpu_worker::Engine) -> Result<(Vec<Trial>, usize), CliError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| CliError::failed(format!("cannot start the runtime: {error}")))?;
        let progress = Progress::new();
        let told = |done: usize, of: usize| {
            if done.is_multiple_of(PROGRESS_CLIPS) || done == of {
                progress.say(&format!("{done} of {of} clips"));
            }
        };
        match self {
            Self::Trials(list) => runtime
                .block_on(list.compare(engine, &told))
                .map_err(|error| clip_error(&error, &format!("--trials {}: ", list.place(&error.path)))),
            Self::People(people) => {
                runtime.block_on(people.compare(engine, &told)).map_err(|error| clip_error(&error, "--people "))
            }
        }
    }
}

/// Bad audio is the user's; a model that fails is not.
fn clip_error(error: &ClipError, place: &str) -> CliError {
    let message = format!("{place}{error}");
    match &error.trouble {
        ClipTrouble::Unreadable(_)
        | ClipTrouble::Audio(_)
        | ClipTrouble::Extraction(gpu_worker::Failure::Encoding(_)) => CliError::Input(message),
        ClipTrouble::Extraction(_) => CliError::Failed(message),
    }
}

/// A plot that cannot be written is said before the clips are heard. Nothing is written yet: a run that fails later must
/// leave an earlier plot as it is.
fn check_plot(path: &Path) -> Result<(), CliError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match std::fs::metadata(parent) {
        Err(error) => Err(unwritable(path, &error)),
        Ok(found) if !found.is_dir() || path.is_dir() => {
            Err(CliError::input(format!("--plot {}: is not a file in a directory", path.display())))
        }
        Ok(_) => Ok(()),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::input(format!("--plot {}: cannot be written: {error}", path.display()))
}

impl From<ListError> for CliError {
    fn from(error: ListError) -> Self {
        Self::input(format!("--trials {error}"))
    }
}

impl From<RatesError> for CliError {
    fn from(error: RatesError) -> Self {
        match error {
            RatesError::NoTargets | RatesError::NoNontargets => Self::input(error),
            RatesError::NotFinite => Self::failed(error),
        }
    }
}
