//! `rollcall identify`: one recording and a folder of people in, who speaks where out.
//!
//! Reads the files and prints; the matching is [`crate::identify`]'s. Nothing is stored.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gpu_worker::Engine;
use matcher_core::Gallery;

use super::{CliError, Context, Progress, print};
use crate::audio::{Audio, Limits, decode};
use crate::formats;
use crate::identify::{FolderError, Folders, IdentifyError, Report, Request, identify};
use crate::serve;

/// Bytes of a file of segments: the most segments at their longest stay below.
const SEGMENTS_BYTES_MAX: u64 = 64 << 20;

/// Progress is told every so many seconds of audio.
const PROGRESS_SECONDS: f64 = 60.0;

/// Arguments of `rollcall identify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall identify talk.wav --people people --owner anna --segments talk.rttm\n\
                        where people/anna and people/ben hold clips of each.")]
pub(super) struct Args {
    /// Audio file: WAV, FLAC, MP3, Ogg (Vorbis, Opus) or M4A
    #[arg(value_name = "AUDIO")]
    audio: PathBuf,
    /// Directory with one folder a person, each with audio clips
    #[arg(long, value_name = "DIR")]
    people: PathBuf,
    /// The folder that is the owner
    #[arg(long, value_name = "ID")]
    owner: Option<String>,
    /// Who spoke when, with anonymous labels: RTTM, or pyannote's JSON; left out, the whole file is one voice
    #[arg(long, value_name = "FILE")]
    segments: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Json)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Everything: voices, segments, budget, exits
    Json,
    /// Segments by person, for evaluation
    Rttm,
    /// Captions by person
    Vtt,
    /// Subtitles by person
    Srt,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    context.start_logs("warn")?;
    // Whatever can be wrong with the input is said before the model is loaded.
    let audio = read_audio(&args.audio)?;
    let segments = args.segments.as_deref().map(read_segments).transpose()?;
    let folders = Folders::list(&args.people, args.owner.as_deref())?;
    let engine = context.open_engine()?;
    let done = enrol(&folders, &engine).and_then(|gallery| {
        let request = request(context, &engine, audio, segments, gallery);
        hear(&engine, request)
    });
    engine.shutdown();
    print(&rendered(&done?, args)?)
}

fn enrol(folders: &Folders, engine: &dyn Engine) -> Result<Gallery, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| CliError::failed(format!("cannot start the runtime: {error}")))?;
    let progress = Progress::new();
    Ok(runtime.block_on(folders.gallery(engine, &|person| progress.say(&format!("{person}: enrolling"))))?)
}

fn request(
    context: &Context,
    engine: &dyn Engine,
    audio: Audio,
    segments: Option<Vec<formats::Segment>>,
    gallery: Gallery,
) -> Request {
    let config = &context.config;
    Request {
        audio,
        segments,
        gallery,
        policy: serve::policy(&config.matching.over(engine.manifest())),
        limits: serve::limits(config),
        budget: serve::budget_limits(config),
        ring: Duration::from_secs_f64(config.sockets.ring_seconds),
        clip_gate: config.matching.clip_gate,
    }
}

fn hear(engine: &dyn Engine, request: Request) -> Result<Report, CliError> {
    let progress = Progress::new();
    let seconds = request.audio.seconds();
    let mut told = 0.0;
    let report = identify(engine, request, &mut |done| {
        if done - told >= PROGRESS_SECONDS {
            told = done;
            progress.say(&format!("{done:.0} s of {seconds:.0} s"));
        }
    });
    Ok(report?)
}

fn rendered(report: &Report, args: &Args) -> Result<String, CliError> {
    let file = args.audio.file_stem().and_then(|stem| stem.to_str()).unwrap_or("audio");
    Ok(match args.format {
        Format::Json => format!("{}\n", serde_json::to_string_pretty(report).map_err(CliError::failed)?),
        Format::Rttm => report.to_rttm(file),
        Format::Vtt => report.to_vtt(),
        Format::Srt => report.to_srt(),
    })
}

fn read_audio(path: &Path) -> Result<Audio, CliError> {
    let most = u64::try_from(Limits::RECORDING.bytes_max).unwrap_or(u64::MAX);
    decode(read(path, most)?, Limits::RECORDING)
        .map_err(|error| CliError::input(format!("{}: {error}", path.display())))
}

fn read_segments(path: &Path) -> Result<Vec<formats::Segment>, CliError> {
    let wrong = |reason: String| CliError::input(format!("--segments {}: {reason}", path.display()));
    let text = String::from_utf8(read(path, SEGMENTS_BYTES_MAX)?).map_err(|_| wrong("is not UTF-8 text".into()))?;
    formats::read(&text).map_err(|error| wrong(error.to_string()))
}

/// The size is looked at first, so that what is far too large is refused and not read.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, CliError> {
    let unreadable = |error: std::io::Error| CliError::input(format!("{}: cannot be read: {error}", path.display()));
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > most {
        return Err(CliError::input(format!("{}: has {length} bytes; at most {most} are taken", path.display())));
    }
    std::fs::read(path).map_err(unreadable)
}

impl From<FolderError> for CliError {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::Extraction { failure: gpu_worker::Failure::Encoding(_), .. } => Self::input(error),
            FolderError::Extraction { .. } => Self::failed(error),
            FolderError::Unreadable { .. }
            | FolderError::Content { .. }
            | FolderError::Name { .. }
            | FolderError::Audio { .. } => Self::input(format!("--people {error}")),
            FolderError::NoOwner { .. } => Self::input(error),
        }
    }
}

impl From<IdentifyError> for CliError {
    fn from(error: IdentifyError) -> Self {
        match error {
            IdentifyError::Time { .. } | IdentifyError::Labels { .. } => Self::input(format!("--segments: {error}")),
            IdentifyError::Runtime(_) => Self::failed(error),
        }
    }
}
