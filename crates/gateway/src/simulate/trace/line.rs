//! The lines of a recording: one JSON object a line, the first of which says what it is.
//!
//! ```text
//! {"rollcall_trace":1,"workers":2,"settings":{…}}
//! {"t":1204000,"lane":1,"joined":{"rate":16000,"tokens":16,"resumed":false}}
//! {"t":5204000,"lane":1,"heard":{"ring":[0,80000],"segments":[[1,0,0,64000,64000]]}}
//! {"t":5205000,"lane":1,"selected":{"voice":1,"stream":0,"waited":1000}}
//! {"t":5205400,"lane":1,"reserved":{"voice":1,"stream":0,"spans":[[0,64000]]}}
//! {"t":5310000,"lane":1,"ran":{"voice":1,"stream":0,"took":104600,"brought":true}}
//! {"t":5310900,"lane":1,"judged":{"voice":1,"stream":0,"class":"pending"}}
//! ```
//! `t`, `waited` and `took` are nanoseconds, positions and lengths of audio are samples. Lanes, voices and streams are
//! numbered anew, from the first that is heard; voices from 1, streams from 0. A segment is voice, stream, start, end and
//! samples of speech. What is not here cannot be found out from a recording: ids, names, words, audio, voiceprints.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use matcher_core::budget::{self, Relaxation, Renewal};
use matcher_core::{Limits, Span};
use serde::{Deserialize, Serialize};

use super::super::setup::Setup;
pub use super::super::voices::Class;

/// The version of these lines. A reader takes no other.
pub const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version.
    pub rollcall_trace: u32,
    /// Queries that the pool ran at once.
    pub workers: NonZeroUsize,
    /// The limits that held.
    pub settings: Settings,
}

impl Header {
    /// Reads the first line.
    ///
    /// # Errors
    /// When it is no recording's, or one of another version.
    pub fn parse(line: &str) -> Result<Self, String> {
        let header: Self =
            serde_json::from_str(line).map_err(|error| format!("is not the first line of a recording: {error}"))?;
        match header.rollcall_trace {
            VERSION => Ok(header),
            other => Err(format!("is a recording of version {other}, and this command reads version {VERSION}")),
        }
    }
}

/// The limits under which a recording was made, as a replay needs them. Times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is the setting of its name")]
pub struct Settings {
    pub voice_attempts: NonZeroU32,
    pub socket_burst: NonZeroU32,
    pub refill_per_hour: NonZeroU32,
    pub relaxed_tokens: u32,
    pub relaxed_speech_seconds: f64,
    pub renewal_speech_seconds: f64,
    pub slots: NonZeroUsize,
    pub ranges: NonZeroUsize,
    pub slots_per_number: NonZeroUsize,
    pub voices: NonZeroUsize,
    pub queries_per_lane: NonZeroUsize,
    pub age_override_seconds: f64,
    pub override_every: NonZeroU32,
    pub clips_kept: NonZeroU32,
    pub clip_minimum_seconds: f64,
    pub clip_hard_minimum_seconds: f64,
    pub evidence_seconds: f64,
    pub query_seconds_max: f64,
}

impl Settings {
    /// Of these limits.
    #[must_use]
    pub fn of(limits: &Limits, budget: &budget::Limits) -> Self {
        let relaxation = budget.relaxation;
        Self {
            voice_attempts: budget.attempts_max,
            socket_burst: budget.burst,
            refill_per_hour: budget.refill_per_hour,
            relaxed_tokens: relaxation.map_or(0, |relaxation| relaxation.tokens.get()),
            relaxed_speech_seconds: relaxation.map_or(0.0, |relaxation| relaxation.speech.as_secs_f64()),
            renewal_speech_seconds: budget.renewal.map_or(0.0, |renewal| renewal.speech.as_secs_f64()),
            slots: limits.slots_max,
            ranges: limits.ranges_max,
            slots_per_number: limits.slots_of_number_max,
            voices: limits.voices_max,
            queries_per_lane: limits.queries_max,
            age_override_seconds: limits.age_override.as_secs_f64(),
            override_every: limits.override_every,
            clips_kept: limits.clips_kept,
            clip_minimum_seconds: limits.clip_minimum.as_secs_f64(),
            clip_hard_minimum_seconds: limits.clip_hard_minimum.as_secs_f64(),
            evidence_seconds: limits.evidence_floor.as_secs_f64(),
            query_seconds_max: limits.query_max.as_secs_f64(),
        }
    }

    /// The limits. A time that is none counts as none at all.
    pub(in crate::simulate) fn setup(&self) -> Setup {
        let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let tokens = NonZeroU32::new(self.relaxed_tokens);
        let renewal = time(self.renewal_speech_seconds);
        Setup {
            limits: Limits {
                slots_max: self.slots,
                ranges_max: self.ranges,
                slots_of_number_max: self.slots_per_number,
                voices_max: self.voices,
                queries_max: self.queries_per_lane,
                age_override: time(self.age_override_seconds),
                override_every: self.override_every,
                clips_kept: self.clips_kept,
                clip_minimum: time(self.clip_minimum_seconds),
                clip_hard_minimum: time(self.clip_hard_minimum_seconds),
                evidence_floor: time(self.evidence_seconds),
                query_max: time(self.query_seconds_max),
                ..Limits::default()
            },
            budget: budget::Limits {
                attempts_max: self.voice_attempts,
                burst: self.socket_burst,
                refill_per_hour: self.refill_per_hour,
                voices_max: u32::try_from(self.voices.get()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX),
                relaxation: tokens.map(|tokens| Relaxation { tokens, speech: time(self.relaxed_speech_seconds) }),
                renewal: (!renewal.is_zero()).then_some(Renewal { speech: renewal }),
            },
        }
    }
}

/// One line after the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Nanoseconds since the recording began.
    pub t: u64,
    /// Which lane; 0 when it is about the recording itself.
    pub lane: u32,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened to a lane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It entered a conversation.
    Joined(Joined),
    /// Segments came.
    Heard(Heard),
    /// A voice was selected for a query.
    Selected(Selected),
    /// A token was spent on these stretches of audio.
    Reserved {
        /// The voice.
        voice: u32,
        /// Its stream.
        stream: u16,
        /// First sample and the one after the last, each.
        spans: Vec<[u64; 2]>,
    },
    /// The budget denied it.
    Denied(Reason),
    /// There was another reason not to.
    Refused(Reason),
    /// The selection did not reach the audio; the slot is back.
    Undelivered(Of),
    /// The query ended.
    Ran {
        /// The voice.
        voice: u32,
        /// Its stream.
        stream: u16,
        /// Nanoseconds since the reservation.
        took: u64,
        /// Whether it brought a voiceprint.
        brought: bool,
    },
    /// The voiceprint was judged.
    Judged {
        /// The voice.
        voice: u32,
        /// Its stream.
        stream: u16,
        /// What is said of the voice from then on.
        class: Class,
    },
    /// People decided something, or changed: what a voice is no longer follows from what a recording tells.
    Changed {},
    /// It left.
    Left {},
    /// So many entries came faster than the disk took them.
    Lost {
        /// How many.
        entries: u64,
    },
    /// The recording has its full size, and ends here.
    Full {},
}

/// A lane's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Samples a second.
    pub rate: NonZeroU32,
    /// Whole tokens that it had.
    pub tokens: u32,
    /// Whether it brought voices along, of which a recording does not tell.
    pub resumed: bool,
}

/// Segments of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// What the lane's ring held: its first sample and the one after the last.
    pub ring: Option<[u64; 2]>,
    /// Voice, stream, start, end, samples of speech; each.
    pub segments: Vec<[u64; 5]>,
}

/// Who was selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selected {
    /// The voice.
    pub voice: u32,
    /// Its stream.
    pub stream: u16,
    /// Nanoseconds since its slot began.
    pub waited: u64,
}

/// A voice and a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The voice.
    pub voice: u32,
    /// Its stream.
    pub stream: u16,
    /// The reason, in the words of the metrics.
    pub reason: String,
}

/// A voice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Of {
    /// The voice.
    pub voice: u32,
    /// Its stream.
    pub stream: u16,
}

impl Event {
    /// What a type alone cannot know of a line.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_span = |[start, end]: &[u64; 2]| start < end;
        match self {
            Self::Heard(heard) => {
                if heard.ring.iter().any(|ring| !is_span(ring)) {
                    return Err("heard.ring ends before it begins".to_owned());
                }
                let is_segment = |segment: &&[u64; 5]| {
                    let [voice, stream, start, end, speech] = **segment;
                    u32::try_from(voice).is_ok() && u16::try_from(stream).is_ok() && start < end && speech > 0
                };
                match heard.segments.iter().position(|segment| !is_segment(&segment)) {
                    Some(at) => Err(format!("heard.segments[{at}] is no segment: voice, stream, start, end, speech")),
                    None => Ok(()),
                }
            }
            Self::Reserved { spans, .. } if spans.is_empty() || !spans.iter().all(is_span) => {
                Err("reserved.spans holds a stretch that ends before it begins, or none".to_owned())
            }
            Self::Joined(_)
            | Self::Selected(_)
            | Self::Reserved { .. }
            | Self::Denied(_)
            | Self::Refused(_)
            | Self::Undelivered(_)
            | Self::Ran { .. }
            | Self::Judged { .. }
            | Self::Changed {}
            | Self::Left {}
            | Self::Lost { .. }
            | Self::Full {} => Ok(()),
        }
    }
}

/// A stretch of audio as a line has it.
pub(super) fn span([start, end]: [u64; 2]) -> Option<Span> {
    Span::new(matcher_core::Sample(start), matcher_core::Sample(end)).ok()
}
