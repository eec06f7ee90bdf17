//! What goes into a store and what comes out of it, as values. They hold no rule; whoever makes them has checked them.

use matcher_core::{Embedding, Origin, Receipt, Status};

/// Somebody who is enrolled, or about to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The id by which clients name the person.
    pub id: String,
    /// The name that people read.
    pub name: String,
    /// Whether this is the account's owner. At most one is.
    pub is_owner: bool,
    /// Whether this person is suggested where a voice comes close and does not suffice for a name.
    pub is_pinned: bool,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970, of the latest change to the person or its samples.
    pub updated_ms: i64,
}

/// One enrolment clip, as it is kept: never the audio, only what the model made of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Numbered by the store.
    pub id: i64,
    /// Whose voice it is.
    pub person: String,
    /// What was measured.
    pub features: SampleFeatures,
    /// Milliseconds since 1970.
    pub created_ms: i64,
}

/// What is measured on a clip and kept.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleFeatures {
    /// Seconds of speech in the clip.
    pub seconds: f64,
    /// From 0 (hardly usable) to 1 (clean).
    pub quality: f64,
    /// The model that made the vector. Vectors of two models are never compared.
    pub fingerprint: String,
    /// The voiceprint.
    pub vector: Embedding,
}

/// How a person is made or changed. What is `None` stays as it is; a new person is named after its id and owns nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonChange {
    /// A new name.
    pub name: Option<String>,
    /// Whether this is the owner.
    pub is_owner: Option<bool>,
    /// Whether this person is suggested.
    pub is_pinned: Option<bool>,
}

/// What people decided about a conversation, as one reading found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filed {
    /// The receipt; an empty one when nobody decided anything.
    Kept(Receipt),
    /// The conversation was deleted: nothing of it may be relied on.
    Deleted,
}

/// One segment of speech as it is kept for the time after its conversation: whose and when, never what was said.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentRecord {
    /// The client's id. It names one segment of its provider stream: clients number anew for each.
    pub id: String,
    /// The provider's number.
    pub speaker: u32,
    /// The provider stream.
    pub scope: String,
    /// Seconds into the recording.
    pub start: f64,
    /// Seconds into the recording, after `start`.
    pub end: f64,
}

/// What was known of one voice at the latest change.
#[derive(Debug, Clone, PartialEq)]
pub struct VoiceRecord {
    /// The provider's number.
    pub speaker: u32,
    /// The provider stream.
    pub scope: String,
    /// The client's label, when it uses labels.
    pub label: Option<String>,
    /// The status on the wire.
    pub status: String,
    /// Who it is. Their name is never kept here: it may change, and goes with them.
    pub person: Option<String>,
    /// Where the name comes from, as on the wire.
    pub origin: String,
    /// Cosine distance to the best print.
    pub distance: Option<f64>,
    /// ... and to the next.
    pub runner_up: Option<f64>,
    /// Seconds of speech behind it.
    pub evidence_seconds: f64,
    /// Attempts spent.
    pub attempts: u32,
}

impl VoiceRecord {
    /// What is left of a voice when its person was deleted. How near it was to their print goes as well.
    #[must_use]
    pub fn into_nobody(self) -> Self {
        Self {
            status: Status::NoMatch.as_str().to_owned(),
            person: None,
            origin: Origin::Automatic.as_str().to_owned(),
            distance: None,
            runner_up: None,
            ..self
        }
    }
}

/// News of one recording in one conversation: what is there already is replaced.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// The client's id of the recording.
    pub recording: String,
    /// Segments that came or grew.
    pub segments: Vec<SegmentRecord>,
    /// Voices that changed.
    pub voices: Vec<VoiceRecord>,
}

/// All that is kept of a conversation but its receipt.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// When it began and when its newest news came.
    pub record: ConversationRecord,
    /// One page a recording, in order of their names; segments in order of their starts, voices by stream and number.
    pub pages: Vec<Page>,
    /// How often news of a further segment or voice was left out, because the conversation holds its most. Zero: all is
    /// here.
    pub left_out: u64,
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationRecord {
    /// The client's id.
    pub id: String,
    /// Milliseconds since 1970.
    pub started_ms: i64,
    /// Milliseconds since 1970, of the newest page or opening.
    pub updated_ms: i64,
}

/// An account's device, hashed: the store never learns what a client calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceKey(pub [u8; 32]);

/// What became of a write of a device's capsule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapsuleWrite {
    /// It is on disk.
    Written,
    /// A newer socket has the device, or a newer revision is there; nothing was changed.
    Superseded,
}
