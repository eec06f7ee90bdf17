//! Server events. Each becomes one JSON text frame; none has a field for a vector or for audio.

use matcher_core::{Explanation, Policy};
use serde::Serialize;

use crate::explain::Told;

/// What a voice and its lane have left.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BudgetLeft {
    /// Attempts left for this voice in this generation.
    pub voice_attempts_left: u32,
    /// Tokens of the socket, with the part of the next one.
    pub socket_tokens: f64,
}

/// Denials by cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DeniedTotals {
    /// The voice's attempts were spent.
    pub voice: u64,
    /// The socket's bucket was empty.
    pub socket: u64,
    /// Both.
    pub both: u64,
}

/// The books of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TotalBudget {
    /// Reservations made.
    pub reserved: u64,
    /// ... settled with a vector.
    pub succeeded: u64,
    /// ... settled without.
    pub failed: u64,
    /// Denials.
    pub denied: DeniedTotals,
}

impl From<matcher_core::budget::Books> for TotalBudget {
    fn from(books: matcher_core::budget::Books) -> Self {
        let denied = DeniedTotals { voice: books.denied_voice, socket: books.denied_socket, both: books.denied_both };
        Self { reserved: books.reserved, succeeded: books.succeeded, failed: books.failed, denied }
    }
}

/// The limits that a client should know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limits {
    /// Attempts a voice.
    pub voice_attempts: u32,
    /// Tokens of a full bucket.
    pub socket_burst: u32,
    /// Tokens that return in an hour.
    pub refill_per_hour: u32,
    /// Tokens now: a continued recording does not start with a full bucket.
    pub socket_tokens: f64,
    /// Bytes of a binary frame.
    pub frame_bytes: usize,
    /// Bytes of a text frame.
    pub text_bytes: usize,
    /// Segments in one message.
    pub segments_per_message: usize,
    /// Seconds of audio that are kept.
    pub ring_seconds: f64,
    /// Voices of a conversation.
    pub voices: usize,
}

/// The model behind the verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// SHA-256 of its file.
    pub fingerprint: String,
    /// Distance below which a voice is a person.
    pub threshold: f64,
    /// How much farther the next person must be.
    pub margin: f64,
}

/// One voice, as `identify`, the goodbye and the view of a conversation tell it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VoiceSummary {
    /// Its number.
    pub speaker: u32,
    /// The client's label for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its provider stream, where there can be several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// What is known.
    pub status: &'static str,
    /// Who it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person_id: Option<String>,
    /// The name to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person_name: Option<String>,
    /// Cosine distance to the best print.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// ... and to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_up_distance: Option<f64>,
    /// Seconds of speech behind the verdict.
    pub evidence_seconds: f64,
    /// Attempts spent.
    pub attempts: u32,
    /// Where in the audio, in seconds, the newest verdict came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<f64>,
}

impl VoiceSummary {
    /// What the scheduler knows; label, scope and time of the verdict are the caller's to add.
    #[must_use]
    pub fn of(voice: &Explanation) -> Self {
        let state = &voice.state;
        Self {
            speaker: state.speaker.0,
            label: None,
            scope: None,
            status: state.status.as_str(),
            person_id: state.identity.as_ref().map(|identity| identity.person.to_string()),
            person_name: state.identity.as_ref().map(|identity| identity.name.to_string()),
            distance: state.distance,
            runner_up_distance: state.runner_up,
            evidence_seconds: state.evidence_seconds,
            attempts: voice.attempts,
            decided_at: None,
        }
    }
}

/// A candidate of an explanation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// The person.
    pub person_id: String,
    /// Cosine distance.
    pub distance: f64,
    /// 3 (near) to 1 (far); 0 beyond.
    pub level: u8,
}

impl Candidate {
    /// The nearest people of a voice, nearest first.
    #[must_use]
    pub fn all_of(voice: &Explanation, policy: &Policy) -> Vec<Self> {
        let all = voice.candidates.iter().map(|(person, distance)| Self {
            person_id: person.as_str().to_owned(),
            distance: *distance,
            level: policy.level(*distance),
        });
        all.collect()
    }
}

/// A server event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The recording is live.
    Ready {
        /// This socket.
        socket_id: String,
        /// Its conversation.
        conversation_id: String,
        /// Its generation.
        generation: u64,
        /// Continues this recording on another socket.
        resume: String,
        /// How many people the recording is compared with. With none, nothing is asked of the model.
        people: usize,
        /// The limits.
        limits: Limits,
        /// The model.
        model: Model,
    },
    /// A voice's status or identity changed.
    Speaker {
        /// Its number.
        speaker: u32,
        /// The client's label for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// Its provider stream.
        scope: String,
        /// The generation.
        generation: u64,
        /// What is known.
        status: &'static str,
        /// Who it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        person_id: Option<String>,
        /// The name to show.
        #[serde(skip_serializing_if = "Option::is_none")]
        person_name: Option<String>,
        /// Where this comes from.
        origin: &'static str,
        /// Distance to the best print.
        #[serde(skip_serializing_if = "Option::is_none")]
        distance: Option<f64>,
        /// Distance to the next.
        #[serde(skip_serializing_if = "Option::is_none")]
        runner_up_distance: Option<f64>,
        /// Seconds of speech behind it.
        evidence_seconds: f64,
        /// The voice's latest segment.
        segment_id: Option<String>,
        /// What is left.
        budget: BudgetLeft,
    },
    /// A name is taken back.
    Retract {
        /// The voice's number.
        speaker: u32,
        /// The client's label for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// Its provider stream.
        scope: String,
        /// The generation.
        generation: u64,
        /// The latest segment with the name.
        segment_id: Option<String>,
        /// Why.
        reason: &'static str,
    },
    /// A pinned person comes close to a voice that has no name. Never a name.
    Suggestion {
        /// The voice's number.
        speaker: u32,
        /// The client's label for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// Who.
        person_id: String,
        /// 3 (near) to 1 (far).
        level: u8,
        /// Whether this takes the suggestion back.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        retracted: bool,
    },
    /// An update led to no verdict (with `"verbose":true`).
    Exit {
        /// The voice's number.
        speaker: u32,
        /// The client's label for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// The segment.
        #[serde(skip_serializing_if = "Option::is_none")]
        segment_id: Option<String>,
        /// Why.
        reason: &'static str,
        /// The cap, when the reason is the budget.
        #[serde(skip_serializing_if = "Option::is_none")]
        cap: Option<&'static str>,
    },
    /// The answer to `explain`.
    Explained {
        /// The voice's number.
        speaker: u32,
        /// The client's label for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// Its provider stream.
        scope: String,
        /// What is known.
        status: &'static str,
        /// The nearest people.
        candidates: Vec<Candidate>,
        /// Seconds of each clip of evidence.
        clips: Vec<f64>,
        /// Seconds of speech that wait.
        pending_seconds: f64,
        /// Seconds that the next query needs.
        needed_seconds: f64,
        /// Whether it waits in the queue, or is in work.
        waiting: bool,
        /// What is left.
        budget: BudgetLeft,
        /// The latest exit.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_exit: Option<&'static str>,
        /// All of it in plain words.
        explanation: Told,
    },
    /// A correction is written down and holds.
    Corrected {
        /// The voice's number.
        speaker: u32,
        /// The client's label for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// The generation of the conversation's receipt.
        receipt_generation: u64,
    },
    /// Something was refused or failed.
    Error {
        /// A short, stable name.
        code: &'static str,
        /// What is wrong, and how to mend it.
        message: String,
        /// The field.
        #[serde(skip_serializing_if = "Option::is_none")]
        field: Option<String>,
        /// The voice's number, when the error is about one.
        #[serde(skip_serializing_if = "Option::is_none")]
        speaker: Option<u32>,
        /// The client's label for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// The segment, when the error is about one.
        #[serde(skip_serializing_if = "Option::is_none")]
        segment_id: Option<String>,
    },
    /// The end.
    Goodbye {
        /// Why.
        reason: &'static str,
        /// All voices.
        voices: Vec<VoiceSummary>,
        /// The books.
        budget: TotalBudget,
    },
}

impl Event {
    /// The event as a text frame.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("an event has only text, numbers and lists")
    }
}
