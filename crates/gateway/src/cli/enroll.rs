//! `rollcall enroll`: audio files become samples of one person, in the store here or on a running server.

use std::path::{Path, PathBuf};

use gpu_worker::pool::Pool;
use serde_json::Value;

use super::{CliError, Client, Context, Progress, print};
use crate::audio::{Limits, decode};
use crate::people::{Enrolment, Force, People, PeopleError, SampleReport, check_id, check_name};
use crate::store::{PersonChange, StoreError};

/// Arguments of `rollcall enroll`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall enroll --person anna --name \"Anna Meier\" --owner anna1.wav anna2.flac")]
pub(super) struct Args {
    /// The person's id, made if missing
    #[arg(long, value_name = "ID")]
    person: String,
    /// The name that people read; left out, a new person is named after the id
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// This person is the owner
    #[arg(long)]
    owner: bool,
    /// Pin this person: suggested where a voice comes close and does not suffice for a name, if matching.suggestions is true
    #[arg(long)]
    pin: bool,
    /// Take samples that do not sound like the earlier ones
    #[arg(long)]
    force: bool,
    /// Enrol on a running server instead of in --data
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Audio files: WAV, FLAC, MP3, Ogg (Vorbis, Opus) or M4A, each with at least two seconds of speech
    #[arg(required = true, value_name = "AUDIO")]
    audio: Vec<PathBuf>,
}

/// Where samples go.
enum Place {
    Store { people: People, engine: Pool, runtime: tokio::runtime::Runtime },
    Server { client: Client, made: bool },
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    check_id(&args.person).map_err(|error| CliError::input(format!("--person: {error}")))?;
    if let Some(name) = &args.name {
        check_name(name).map_err(|error| CliError::input(format!("--name: {error}")))?;
    }
    context.start_logs("warn")?;
    let place = Place::open(args, context)?;
    let (mut kept, mut refused) = (0_usize, Vec::new());
    for file in &args.audio {
        Progress::new().say(&format!("{}: enrolling", file.display()));
        match place.add(args, file) {
            Ok(report) => {
                kept += 1;
                print(&line(file, &report))?;
            }
            Err(CliError::Input(reason)) => refused.push(format!("{}: {reason}", file.display())),
            Err(CliError::Failed(reason)) => {
                return Err(CliError::failed(format!("{}: {reason}", file.display())));
            }
        }
    }
    place.close(args, kept)?;
    if refused.is_empty() { Ok(()) } else { Err(CliError::input(refused.join("; "))) }
}

impl Args {
    fn change(&self) -> PersonChange {
        PersonChange {
            name: self.name.clone(),
            is_owner: self.owner.then_some(true),
            is_pinned: self.pin.then_some(true),
        }
    }
}

impl Place {
    fn open(args: &Args, context: &Context) -> Result<Self, CliError> {
        if let Some(url) = &args.server {
            let client = Client::new(url)?;
            let made = client.put_person(&args.person, &args.change())?;
            return Ok(Self::Server { client, made });
        }
        let engine = context.open_engine()?;
        let people = context.open_people(gpu_worker::Engine::manifest(&engine))?;
        refuse_second_owner(args, &people)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| CliError::failed(format!("cannot start the runtime: {error}")))?;
        Ok(Self::Store { people, engine, runtime })
    }

    fn add(&self, args: &Args, file: &Path) -> Result<Value, CliError> {
        let bytes = read(file)?;
        match self {
            Self::Server { client, .. } => client.add_sample(&args.person, &bytes, args.force),
            Self::Store { people, engine, runtime } => {
                let audio = decode(bytes, Limits::UPLOAD).map_err(CliError::input)?;
                let force = if args.force { Force::Yes } else { Force::No };
                let enrolment = Enrolment { person: args.person.clone(), change: args.change(), force };
                accepted(runtime.block_on(people.enrol(engine, enrolment, &audio))?)
            }
        }
    }

    /// A person that the server made for samples of which none was taken goes again.
    fn close(self, args: &Args, kept: usize) -> Result<(), CliError> {
        match self {
            Self::Server { client, made: true } if kept == 0 => client.delete_person(&args.person),
            Self::Server { .. } => Ok(()),
            Self::Store { engine, .. } => {
                engine.shutdown();
                Ok(())
            }
        }
    }
}

/// Said once and before any work; otherwise every file would be refused for it.
fn refuse_second_owner(args: &Args, people: &People) -> Result<(), CliError> {
    let snapshot = people.snapshot();
    let owner = snapshot.iter().find(|person| person.is_owner && person.id != args.person);
    match owner.filter(|_| args.owner) {
        Some(owner) => Err(StoreError::OwnerExists(owner.id.clone()).into()),
        None => Ok(()),
    }
}

/// The size is looked at first, so that a film is refused and not read.
fn read(file: &Path) -> Result<Vec<u8>, CliError> {
    let unreadable = |error: std::io::Error| CliError::input(format!("cannot be read: {error}"));
    let length = std::fs::metadata(file).map_err(unreadable)?.len();
    let most = Limits::UPLOAD.bytes_max;
    if usize::try_from(length).is_ok_and(|length| length <= most) {
        return std::fs::read(file).map_err(unreadable);
    }
    Err(CliError::input(format!("has {length} bytes; at most {most} are taken")))
}

fn accepted(report: SampleReport) -> Result<Value, CliError> {
    match &report.reason {
        Some(reason) => Err(CliError::input(reason)),
        None => serde_json::to_value(report).map_err(CliError::failed),
    }
}

fn line(file: &Path, report: &Value) -> String {
    let number = |field| report.get(field).and_then(Value::as_f64);
    let mut line = format!(
        "{}: kept, {:.1} s of speech, quality {:.2}",
        file.display(),
        number("seconds_of_speech").unwrap_or_default(),
        number("quality").unwrap_or_default()
    );
    if let Some(distance) = number("cohesion") {
        line.push_str(&format!(", distance {distance:.2} to earlier samples"));
    }
    if let Some(other) = report.get("sounds_like").and_then(Value::as_str) {
        line.push_str(&format!("; it also sounds like {other}"));
    }
    line + "\n"
}

impl From<PeopleError> for CliError {
    fn from(error: PeopleError) -> Self {
        match error {
            PeopleError::Store(error) => error.into(),
            PeopleError::Extraction(gpu_worker::Failure::Encoding(_)) => Self::input(error),
            PeopleError::Extraction(_) | PeopleError::Interrupted => Self::failed(error),
        }
    }
}
