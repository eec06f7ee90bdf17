//! Client messages: parsed, checked, and refused with the name of the field.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use matcher_core::receipt::{Reach, Rejection, Ruling, Subject};
use matcher_core::{PersonId, SegmentId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use telemetry::Refusal;

use crate::live::corrections::Wish;
use crate::live::intake::Encoding;

/// Why a message was not taken. It goes to the client as an `error` event; the socket goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refused {
    /// A short, stable name of the trouble.
    pub code: &'static str,
    /// What is wrong, and how to mend it.
    pub message: String,
    /// The field, as a path into the message.
    pub field: Option<String>,
    /// How it is counted.
    pub reason: Refusal,
}

impl Refused {
    /// A refusal of one field.
    pub(crate) fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: "invalid_field",
            message: message.into(),
            field: Some(field.into()),
            reason: Refusal::InvalidField,
        }
    }

    /// A refusal of the whole message.
    pub(crate) fn whole(code: &'static str, reason: Refusal, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), field: None, reason }
    }
}

/// The audio that follows as binary frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioFormat {
    /// How samples are written.
    pub encoding: Encoding,
    /// Samples per second, 8000 to 48000.
    pub sample_rate: NonZeroU32,
    /// Interleaved channels, 1 to 8; mixed to mono.
    pub channels: NonZeroUsize,
}

/// The first message.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Names the recording; starting it again continues its budget.
    pub recording: String,
    /// Names the conversation; several sockets can be in one.
    pub conversation: String,
    /// The device, if the client says it.
    pub device: Option<String>,
    /// The token of a former `ready`.
    pub resume: Option<String>,
    /// The audio.
    pub audio: AudioFormat,
    /// The provider stream of the segments, if the client names it.
    pub scope: Option<String>,
    /// Where the provider's time 0 lies in the audio, seconds.
    pub audio_offset: f64,
    /// The people to recognise; everyone when absent.
    pub people: Option<Arc<BTreeSet<String>>>,
    /// Whether the client wants `exit` events.
    pub verbose: bool,
}

/// How a client names a voice.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum SpeakerName {
    /// A number, taken verbatim.
    Number(u32),
    /// A label, which gets a number.
    Label(String),
}

/// One segment of speech.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The client's id.
    pub id: String,
    /// The voice.
    pub speaker: SpeakerName,
    /// Seconds of the provider's clock.
    pub start: f64,
    /// Seconds of the provider's clock.
    pub end: f64,
    /// The provider stream, when it is not the socket's current one.
    pub scope: Option<String>,
}

/// A client's message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// `start`
    Start(Box<Start>),
    /// `segments`: each taken or refused on its own.
    Segments(Vec<Result<Segment, Refused>>),
    /// `provider`: its stream started, or started again.
    Provider {
        /// The new stream's name; one is made up without it.
        scope: Option<String>,
        /// Where the provider's time 0 lies in the audio, seconds.
        audio_offset: f64,
    },
    /// `audio_gap`: audio was lost before it reached us.
    AudioGap {
        /// How much, seconds.
        seconds: f64,
    },
    /// `rollover`
    Rollover {
        /// The next conversation.
        conversation: String,
        /// Whether the owner is to be carried along.
        carry: bool,
    },
    /// `label` and `reject`
    Correct {
        /// The voice.
        speaker: SpeakerName,
        /// The decision.
        wish: Wish,
        /// All of the voice, or some of its segments.
        subject: Subject,
    },
    /// `explain`
    Explain {
        /// The voice.
        speaker: SpeakerName,
    },
    /// `stop`
    Stop,
}

/// The limits of a message that come from the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of an id.
    pub id_bytes: usize,
    /// Segments in one message.
    pub segments: usize,
}

/// Message types of the protocol that this server knows by name and does not serve yet.
const NOT_SERVED: [&str; 1] = ["provider_message"];

/// Reads one text frame.
///
/// # Errors
/// When it is no JSON object with a known `type`, or a field is wrong.
pub fn parse(text: &str, bounds: Bounds) -> Result<Message, Refused> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        Refused::whole("malformed", Refusal::Malformed, format!("not a JSON object: {error}; send {{\"type\":…}}"))
    })?;
    let kind = value.get("type").and_then(Value::as_str).map(str::to_owned);
    match kind.as_deref() {
        Some("start") => start(value, bounds).map(Box::new).map(Message::Start),
        Some("segments") => segments(value, bounds),
        Some("rollover") => rollover(value, bounds),
        Some("explain") => {
            let Explain { speaker } = read(value)?;
            Ok(Message::Explain { speaker })
        }
        Some("provider") => provider(value, bounds),
        Some("audio_gap") => audio_gap(value),
        Some("label") => label(value, bounds),
        Some("reject") => reject(value, bounds),
        Some("stop") => Ok(Message::Stop),
        Some(known) if NOT_SERVED.contains(&known) => Err(Refused::whole(
            "not_supported",
            Refusal::Unsupported,
            format!("this server does not serve `{known}` messages yet"),
        )),
        Some(unknown) => Err(Refused {
            code: "unknown_type",
            message: format!(
                "unknown message type {:?}; known are start, provider, segments, audio_gap, label, reject, rollover, explain and stop",
                shortened(unknown)
            ),
            field: Some("type".to_owned()),
            reason: Refusal::UnknownType,
        }),
        None => Err(Refused {
            code: "malformed",
            message: "every message is a JSON object with a text field `type`".to_owned(),
            field: Some("type".to_owned()),
            reason: Refusal::Malformed,
        }),
    }
}

#[derive(Deserialize)]
struct WireStart {
    recording_id: String,
    conversation_id: String,
    device_id: Option<String>,
    resume: Option<String>,
    audio: WireAudio,
    provider: Option<WireProvider>,
    people: Option<Vec<String>>,
    #[serde(default)]
    verbose: bool,
}

#[derive(Deserialize)]
struct WireAudio {
    encoding: String,
    sample_rate: i64,
    channels: i64,
}

#[derive(Deserialize)]
struct WireProvider {
    #[serde(rename = "name")]
    _name: String,
    scope: Option<String>,
    audio_offset: Option<f64>,
}

#[derive(Deserialize)]
struct WireSegments {
    segments: Vec<Value>,
}

#[derive(Deserialize)]
struct WireSegment {
    id: String,
    speaker: Value,
    start: f64,
    end: f64,
    scope: Option<String>,
}

#[derive(Deserialize)]
struct WireRollover {
    conversation_id: String,
    #[serde(default)]
    carry: bool,
}

#[derive(Deserialize)]
struct Explain {
    speaker: SpeakerName,
}

fn start(value: Value, bounds: Bounds) -> Result<Start, Refused> {
    let wire: WireStart = read(value)?;
    let (scope, audio_offset) = wire.provider.map_or((None, None), |it| (it.scope, it.audio_offset));
    check_id("recording_id", &wire.recording_id, bounds)?;
    check_id("conversation_id", &wire.conversation_id, bounds)?;
    for (field, id) in [("device_id", &wire.device_id), ("provider.scope", &scope)] {
        id.iter().try_for_each(|id| check_id(field, id, bounds))?;
    }
    if wire.people.as_ref().is_some_and(|people| people.len() > PEOPLE_MAX) {
        return Err(Refused::field("people", format!("names more than {PEOPLE_MAX} people; leave it out for all")));
    }
    for (index, id) in wire.people.iter().flatten().enumerate() {
        check_id(&format!("people[{index}]"), id, bounds)?;
    }
    let audio_offset = audio_offset.unwrap_or(0.0);
    check_offset("provider.audio_offset", audio_offset)?;
    Ok(Start {
        recording: wire.recording_id,
        conversation: wire.conversation_id,
        device: wire.device_id,
        resume: wire.resume,
        audio: audio(&wire.audio)?,
        scope,
        audio_offset,
        people: wire.people.map(|people| Arc::new(people.into_iter().collect())),
        verbose: wire.verbose,
    })
}

/// A list of people scopes the gallery of one recording; beyond this, leaving it out does the same.
const PEOPLE_MAX: usize = 10_000;

fn audio(wire: &WireAudio) -> Result<AudioFormat, Refused> {
    let encoding = match wire.encoding.as_str() {
        "pcm_s16le" => Encoding::PcmS16Le,
        "pcm_f32le" => Encoding::PcmF32Le,
        known @ ("mulaw" | "alaw" | "opus") => {
            return Err(Refused::field(
                "audio.encoding",
                format!("{known} is not served yet; send pcm_s16le or pcm_f32le"),
            ));
        }
        other => {
            return Err(Refused::field(
                "audio.encoding",
                format!("unknown encoding {:?}; send pcm_s16le or pcm_f32le", shortened(other)),
            ));
        }
    };
    let sample_rate = u32::try_from(wire.sample_rate).ok().filter(|rate| (8_000..=48_000).contains(rate));
    let channels = usize::try_from(wire.channels).ok().filter(|channels| (1..=8).contains(channels));
    let out_of_range = |field, found, allowed| Refused::field(field, format!("is {found}, must be {allowed}"));
    Ok(AudioFormat {
        encoding,
        sample_rate: sample_rate
            .and_then(NonZeroU32::new)
            .ok_or_else(|| out_of_range("audio.sample_rate", wire.sample_rate, "from 8000 to 48000"))?,
        channels: channels
            .and_then(NonZeroUsize::new)
            .ok_or_else(|| out_of_range("audio.channels", wire.channels, "from 1 to 8"))?,
    })
}

fn segments(value: Value, bounds: Bounds) -> Result<Message, Refused> {
    let WireSegments { segments } = read(value)?;
    if segments.len() > bounds.segments {
        return Err(Refused {
            code: "too_large",
            message: format!(
                "{} segments in one message, at most {} are taken; send several messages",
                segments.len(),
                bounds.segments
            ),
            field: Some("segments".to_owned()),
            reason: Refusal::TooLarge,
        });
    }
    let checked = segments.into_iter().enumerate().map(|(index, value)| {
        segment(value, bounds).map_err(|refused| Refused {
            field: refused.field.map(|field| format!("segments[{index}].{field}")),
            ..refused
        })
    });
    Ok(Message::Segments(checked.collect()))
}

fn segment(value: Value, bounds: Bounds) -> Result<Segment, Refused> {
    let wire: WireSegment = read(value)?;
    check_id("id", &wire.id, bounds)?;
    wire.scope.iter().try_for_each(|scope| check_id("scope", scope, bounds))?;
    let speaker = SpeakerName::deserialize(&wire.speaker)
        .map_err(|_| Refused::field("speaker", "must be a whole number from 0 to 4294967295, or a label"))?;
    if let SpeakerName::Label(label) = &speaker {
        check_id("speaker", label, bounds)?;
    }
    Ok(Segment { id: wire.id, speaker, start: wire.start, end: wire.end, scope: wire.scope })
}

fn rollover(value: Value, bounds: Bounds) -> Result<Message, Refused> {
    let wire: WireRollover = read(value)?;
    check_id("conversation_id", &wire.conversation_id, bounds)?;
    Ok(Message::Rollover { conversation: wire.conversation_id, carry: wire.carry })
}

#[derive(Deserialize)]
struct WireRestart {
    #[serde(rename = "name")]
    _name: String,
    scope: Option<String>,
    audio_offset: f64,
}

#[derive(Deserialize)]
struct WireGap {
    seconds: f64,
}

fn provider(value: Value, bounds: Bounds) -> Result<Message, Refused> {
    let wire: WireRestart = read(value)?;
    wire.scope.iter().try_for_each(|scope| check_id("scope", scope, bounds))?;
    check_offset("audio_offset", wire.audio_offset)?;
    Ok(Message::Provider { scope: wire.scope, audio_offset: wire.audio_offset })
}

fn audio_gap(value: Value) -> Result<Message, Refused> {
    let WireGap { seconds } = read(value)?;
    if seconds > 0.0 && seconds <= GAP_SECONDS_MAX {
        return Ok(Message::AudioGap { seconds });
    }
    Err(Refused::field(
        "seconds",
        format!("must be above 0 and at most {GAP_SECONDS_MAX}; start anew after a longer gap"),
    ))
}

/// A day: whoever was away for longer has another recording.
const GAP_SECONDS_MAX: f64 = 86_400.0;

fn check_offset(field: &str, seconds: f64) -> Result<(), Refused> {
    if seconds.is_finite() && seconds.abs() <= matcher_core::Rate::SECONDS_MAX {
        return Ok(());
    }
    Err(Refused::field(field, "must be a number of seconds of at most 1000000000"))
}

#[derive(Deserialize)]
struct WireLabel {
    speaker: SpeakerName,
    #[serde(deserialize_with = "present")]
    person_id: Option<String>,
    segment_ids: Option<Vec<String>>,
    #[serde(default)]
    segment_only: bool,
}

/// A person or null, but not left out: a label that names nobody is a decision, and must be meant.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(value)
}

#[derive(Deserialize)]
struct WireReject {
    speaker: SpeakerName,
    kind: RejectKind,
    person_id: Option<String>,
    segment_ids: Option<Vec<String>>,
    #[serde(default)]
    segment_only: bool,
}

#[derive(Deserialize)]
enum RejectKind {
    #[serde(rename = "not_me")]
    Me,
    #[serde(rename = "not_person")]
    ThatPerson,
    #[serde(rename = "not_a_person")]
    AnyPerson,
}

fn label(value: Value, bounds: Bounds) -> Result<Message, Refused> {
    let wire: WireLabel = read(value)?;
    let subject = subject(wire.segment_ids, wire.segment_only, bounds)?;
    let wish = match wire.person_id {
        Some(id) => {
            check_id("person_id", &id, bounds)?;
            Wish::Is(id)
        }
        None => Wish::Ruling(Ruling::IsNobody),
    };
    Ok(Message::Correct { speaker: wire.speaker, wish, subject })
}

fn reject(value: Value, bounds: Bounds) -> Result<Message, Refused> {
    let wire: WireReject = read(value)?;
    let subject = subject(wire.segment_ids, wire.segment_only, bounds)?;
    let rejection = match (wire.kind, wire.person_id) {
        (RejectKind::Me, _) => Rejection::NotMe,
        (RejectKind::AnyPerson, _) => Rejection::NotAPerson,
        (RejectKind::ThatPerson, Some(id)) => {
            check_id("person_id", &id, bounds)?;
            Rejection::NotPerson(PersonId::new(&id))
        }
        (RejectKind::ThatPerson, None) => {
            return Err(Refused::field("person_id", "must say who it is not; or send kind not_me or not_a_person"));
        }
    };
    Ok(Message::Correct { speaker: wire.speaker, wish: Wish::Ruling(Ruling::Not(rejection)), subject })
}

fn subject(segments: Option<Vec<String>>, segment_only: bool, bounds: Bounds) -> Result<Subject, Refused> {
    let Some(ids) = segments else {
        if segment_only {
            return Err(Refused::field("segment_ids", "must name the segments when segment_only is true"));
        }
        return Ok(Subject::Voice);
    };
    if ids.is_empty() || ids.len() > bounds.segments {
        return Err(Refused::field("segment_ids", format!("must name from 1 to {} segments", bounds.segments)));
    }
    for (index, id) in ids.iter().enumerate() {
        check_id(&format!("segment_ids[{index}]"), id, bounds)?;
    }
    let reach = if segment_only { Reach::SegmentOnly } else { Reach::Voice };
    Ok(Subject::Segments(ids.iter().map(|id| SegmentId::new(id)).collect(), reach))
}

fn check_id(field: &str, id: &str, bounds: Bounds) -> Result<(), Refused> {
    if id.is_empty() || id.len() > bounds.id_bytes {
        return Err(Refused::field(
            field,
            format!("is {} bytes long, must be from 1 to {} bytes", id.len(), bounds.id_bytes),
        ));
    }
    if id.chars().any(char::is_control) {
        return Err(Refused::field(field, "holds a control character"));
    }
    Ok(())
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Refused> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let message = plain(&error.into_inner().to_string());
        // A missing field has no path of its own; its name stands in the message.
        let field = if path == "." || path.bytes().all(|byte| byte.is_ascii_digit()) {
            message.split('`').nth(1).map(str::to_owned)
        } else {
            Some(path)
        };
        Refused { code: "invalid_field", message, field, reason: Refusal::InvalidField }
    })
}

/// The library speaks of types; a client reads of JSON.
fn plain(message: &str) -> String {
    let words = [
        ("expected f64", "expected a number"),
        ("expected i64", "expected a whole number"),
        ("expected u32", "expected a whole number from 0"),
        ("expected a string", "expected a text"),
        ("expected a sequence", "expected a list"),
        ("data did not match any variant of untagged enum SpeakerName", "expected a whole number from 0, or a label"),
    ];
    let message = words.iter().fold(message.to_owned(), |message, (theirs, ours)| message.replace(theirs, ours));
    match message.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected an object"),
        None => message,
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
