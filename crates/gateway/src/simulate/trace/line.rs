//! The lines of a recording: one JSON object a line, the first of which says what it is ([`super::header`]).
//!
//! ```text
//! {"rollcall_trace":1,"workers":2,"settings":{…}}
//! {"t":1204000,"lane":1,"joined":{"rate":16000,"tokens":16,"resumed":false}}
//! {"t":5204000,"lane":1,"heard":{"ring":[0,80000],"segments":[[1,0,0,64000,64000]]}}
//! {"t":5205000,"lane":1,"selected":{"voice":1,"stream":0,"waited":1000}}
//! {"t":5205400,"lane":1,"reserved":{"voice":1,"stream":0,"spans":[[0,64000]]}}
//! {"t":5310000,"lane":1,"ran":{"voice":1,"stream":0,"took":104600,"brought":true}}
//! {"t":5310900,"lane":1,"judged":{"voice":1,"stream":0,"class":"pending"}}
//! {"t":5310900,"lane":1,"moved":{"voice":2,"stream":0,"class":"nobody"}}
//! ```
//! `t`, `waited` and `took` are nanoseconds, positions and lengths of audio are samples. Lanes, voices and streams are
//! numbered anew, from the first that is heard; voices from 1, streams from 0. A segment is voice, stream, start, end and
//! samples of speech. What is not here cannot be found out from a recording: ids, names, words, audio, voiceprints.

use std::num::NonZeroU32;

use matcher_core::{Sample, Span};
use serde::{Deserialize, Serialize};

pub use super::super::voices::Class;

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
    /// What is said of a voice changed because another one was judged: both claim the same person.
    Moved {
        /// The voice.
        voice: u32,
        /// Its stream.
        stream: u16,
        /// What is said of it from then on.
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

/// No position and no time is larger: 36 years in nanoseconds. Sums of a few of these fit into 64 bits.
const MOST: u64 = 1 << 60;

impl Line {
    /// What a type alone cannot know of a line.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.t > MOST {
            return Err(format!("t is {} ns, and no recording is longer than {MOST}", self.t));
        }
        self.event.check()
    }
}

impl Event {
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Heard(heard) => {
                if heard.ring.iter().any(|ring| !is_span(ring)) {
                    return Err(format!("heard.ring ends before it begins, or beyond {MOST}"));
                }
                match heard.segments.iter().position(|segment| !is_segment(*segment)) {
                    Some(at) => Err(format!("heard.segments[{at}] is no segment: voice, stream, start, end, speech")),
                    None => Ok(()),
                }
            }
            Self::Reserved { spans, .. } if spans.is_empty() || !spans.iter().all(is_span) => {
                Err(format!("reserved.spans holds a stretch that ends before it begins, or beyond {MOST}, or none"))
            }
            Self::Ran { took, .. } if *took > MOST => Err(format!("ran.took is {took} ns, and no run is that long")),
            Self::Joined(_)
            | Self::Selected(_)
            | Self::Reserved { .. }
            | Self::Denied(_)
            | Self::Refused(_)
            | Self::Undelivered(_)
            | Self::Ran { .. }
            | Self::Judged { .. }
            | Self::Moved { .. }
            | Self::Changed {}
            | Self::Left {}
            | Self::Lost { .. }
            | Self::Full {} => Ok(()),
        }
    }
}

fn is_span([start, end]: &[u64; 2]) -> bool {
    start < end && *end <= MOST
}

fn is_segment([voice, stream, start, end, speech]: [u64; 5]) -> bool {
    let is_voice = u32::try_from(voice).is_ok() && u16::try_from(stream).is_ok();
    is_voice && is_span(&[start, end]) && (1..=MOST).contains(&speech)
}

/// A stretch of audio as a line has it.
pub(super) fn span([start, end]: [u64; 2]) -> Option<Span> {
    Span::new(Sample(start), Sample(end)).ok()
}
