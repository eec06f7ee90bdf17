//! `rollcall stream`: a recording played to a running server, and its events as they come, one JSON line each.
//!
//! Reads the files and decides what the end means; the protocol is [`crate::client`]'s.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::{CliError, Context, Progress, print};
use crate::audio::{self, Audio, Limits};
use crate::client::play::Recording;
use crate::client::{Address, ClientError, Events, Heard, Segment, Start};
use crate::formats;

/// A server joins a conversation within milliseconds; one that is silent for so long is no Rollcall.
const READY_MAX: Duration = Duration::from_secs(30);

/// After `stop` the server waits for its last verdicts within its drain time, at most 300 s.
const GOODBYE_MAX: Duration = Duration::from_secs(310);

/// Beyond a thousandfold the network is measured and nothing is streamed.
const SPEED_MAX: f64 = 1000.0;

/// Bytes of a file of segments: the most segments at their longest stay below.
const SEGMENTS_BYTES_MAX: u64 = 64 << 20;

/// Arguments of `rollcall stream`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: rollcall stream talk.wav --segments talk.rttm --server http://127.0.0.1:8700\n\
                        Starting the same --recording again continues its budget.")]
pub(super) struct Args {
    /// Audio file: WAV, FLAC, MP3, Ogg (Vorbis, Opus) or M4A
    #[arg(value_name = "AUDIO")]
    audio: PathBuf,
    /// Who spoke when, with anonymous labels: RTTM, or pyannote's JSON
    #[arg(long, value_name = "FILE")]
    segments: PathBuf,
    /// The running server
    #[arg(long, value_name = "URL")]
    server: String,
    /// How many times as fast as it was spoken
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    speed: f64,
    /// Names the recording; left out, the file's name and a random number
    #[arg(long, value_name = "ID")]
    recording: Option<String>,
    /// Names the conversation; left out, as the recording
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Print an event as well when an update led to no verdict
    #[arg(long)]
    verbose: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    if !(args.speed > 0.0 && args.speed <= SPEED_MAX) {
        return Err(CliError::input(format!(
            "--speed {}: must be more than 0 and at most {SPEED_MAX}; 1 is real time",
            args.speed
        )));
    }
    context.start_logs("warn")?;
    let address = Address::parse(&args.server)?;
    let segments = segments(&args.segments)?;
    let audio = audio(&args.audio)?;
    let start = args.start(&audio);
    let recording = Recording { pcm: audio.pcm.clone(), sample_rate: audio.sample_rate.get(), segments };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::failed(format!("cannot start the runtime: {error}")))?;
    Progress::new().say(&format!("streaming {:.0} s of audio as {}", audio.seconds(), start.recording));
    runtime.block_on(stream(&address, &start, &recording, args.speed))
}

impl Args {
    fn start(&self, audio: &Audio) -> Start {
        let recording = self.recording.clone().unwrap_or_else(|| fresh_id(&self.audio));
        Start {
            conversation: self.conversation.clone().unwrap_or_else(|| recording.clone()),
            recording,
            sample_rate: audio.sample_rate.get(),
            verbose: self.verbose,
        }
    }
}

/// The file's name for people, a random number because a known recording would continue its budget.
fn fresh_id(file: &Path) -> String {
    let mut bytes = [0_u8; 4];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    let name = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let name: String = name.chars().filter(|c| !c.is_control()).take(40).collect();
    format!("{name}-{:08x}", u32::from_be_bytes(bytes))
}

fn audio(file: &Path) -> Result<Audio, CliError> {
    let wrong = |reason: String| CliError::input(format!("{}: {reason}", file.display()));
    let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
    let (length, most) = (std::fs::metadata(file).map_err(unreadable)?.len(), Limits::RECORDING.bytes_max);
    if usize::try_from(length).map_or(true, |length| length > most) {
        return Err(wrong(format!("has {length} bytes; at most {most} are taken")));
    }
    let bytes = std::fs::read(file).map_err(unreadable)?;
    audio::decode(bytes, Limits::RECORDING).map_err(|error| wrong(error.to_string()))
}

fn segments(file: &Path) -> Result<Vec<Segment>, CliError> {
    let wrong = |reason: String| CliError::input(format!("{}: {reason}", file.display()));
    let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
    let length = std::fs::metadata(file).map_err(unreadable)?.len();
    if length > SEGMENTS_BYTES_MAX {
        return Err(wrong(format!("has {length} bytes; at most {SEGMENTS_BYTES_MAX} are read")));
    }
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    let segments = formats::read(&text).map_err(|error| wrong(error.to_string()))?;
    let named = (0_usize..).zip(segments).map(|(index, segment)| Segment {
        id: format!("segment-{index}"),
        speaker: Value::String(segment.label),
        start: segment.start,
        end: segment.end,
    });
    Ok(named.collect())
}

async fn stream(address: &Address, start: &Start, recording: &Recording, speed: f64) -> Result<(), CliError> {
    let (mut sender, mut events) = address.connect().await?;
    sender.start(start).await?;
    let ready = timeout(READY_MAX, until_ready(&mut events)).await;
    ready.map_err(|_| CliError::failed(format!("the server was silent for {} s", READY_MAX.as_secs())))??;
    // The events end first: with the goodbye, or because the server closed. Then playing on is pointless.
    let playing = async {
        recording.play(&mut sender, speed).await?;
        tokio::time::sleep(GOODBYE_MAX).await;
        Err::<Infallible, _>(CliError::failed(format!("the server said no goodbye within {} s", GOODBYE_MAX.as_secs())))
    };
    tokio::select! {
        biased;
        ended = until_goodbye(&mut events) => ended,
        played = playing => {
            let Err(error) = played;
            // What the server said before it closed tells more than a broken connection.
            Err(said_before(&mut events).await.unwrap_or(error))
        }
    }
}

/// How long the last words of a server whose connection broke are waited for.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

async fn said_before(events: &mut Events) -> Option<CliError> {
    timeout(LAST_WORDS_MAX, until_goodbye(events)).await.ok()?.err()
}

/// An error before `ready` means that the start was refused.
async fn until_ready(events: &mut Events) -> Result<(), CliError> {
    loop {
        let event = next(events).await?;
        match kind(&event) {
            Some("ready") => return Ok(()),
            Some("error") => return Err(refused(&event)),
            Some(_) | None => {}
        }
    }
}

async fn until_goodbye(events: &mut Events) -> Result<(), CliError> {
    loop {
        let event = next(events).await?;
        if kind(&event) == Some("goodbye") {
            return match event.get("reason").and_then(Value::as_str) {
                Some("stopped") => Ok(()),
                reason => Err(CliError::failed(format!(
                    "the server ended the recording early: {}",
                    reason.unwrap_or("it did not say why")
                ))),
            };
        }
    }
}

/// The next event, printed.
async fn next(events: &mut Events) -> Result<Value, CliError> {
    match events.next().await? {
        Heard::Event(text) => {
            let event = serde_json::from_str(&text)
                .map_err(|error| CliError::failed(format!("the server sent what is no JSON: {error}")))?;
            print(&format!("{text}\n"))?;
            Ok(event)
        }
        Heard::Closed(Some(frame)) => {
            Err(CliError::failed(format!("the server closed the socket: {} {}", frame.code, frame.reason)))
        }
        Heard::Closed(None) => Err(CliError::failed("the server is gone: the connection ended without a goodbye")),
    }
}

fn kind(event: &Value) -> Option<&str> {
    event.get("type").and_then(Value::as_str)
}

fn refused(event: &Value) -> CliError {
    let text = |field| event.get(field).and_then(Value::as_str);
    let message = text("message").unwrap_or("the start was refused");
    match (text("code"), text("field")) {
        (Some("invalid_field"), Some(field)) => CliError::input(format!("{field}: {message}")),
        (Some("invalid_field"), None) => CliError::input(message),
        (Some(_) | None, _) => CliError::failed(message),
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Url { .. } => Self::input(format!("--server {error}")),
            ClientError::NoServer { .. }
            | ClientError::Refused { .. }
            | ClientError::Broken(_)
            | ClientError::Stuck => Self::failed(error),
        }
    }
}
