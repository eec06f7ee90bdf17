//! The one record: a voice was denied a query for the first time in its generation.
//!
//! It carries ids, so that an operator can find the socket and the conversation, and that is why it is a log record and
//! not a metric. It carries no transcript, no audio and no vector; it has no field for them. Whether a denial is the
//! first is the budget's to know.

use crate::labels::Cap;
use crate::traces::TraceContext;

/// What the record says. All ids are as the client or the server gave them.
#[derive(Debug, Clone, PartialEq)]
pub struct FirstBlock {
    /// The account.
    pub uid: String,
    /// The socket.
    pub socket: String,
    /// The recording.
    pub recording: String,
    /// The conversation.
    pub conversation: String,
    /// The generation of the voice's lane.
    pub generation: u64,
    /// The provider stream that numbered the speaker.
    pub scope: String,
    /// The speaker's number in that scope.
    pub speaker: i64,
    /// Attempts that the voice has spent.
    pub attempts: u32,
    /// Tokens of the lane after the refill, with their fraction.
    pub tokens: f64,
    /// Seconds of speech that the voice's voiceprints stand on.
    pub evidence_seconds: f64,
    /// Seconds of speech that wait to be examined.
    pub pending_seconds: f64,
    /// The one cap that denied it.
    pub cap: Cap,
    /// The query's trace, when it has one.
    pub trace: Option<TraceContext>,
}

impl FirstBlock {
    /// Writes the record as one event.
    pub fn emit(&self) {
        // Ids go in as strings and not through `Display`: the readable format then quotes and escapes them, so that an
        // id with a line break cannot forge a second record.
        tracing::info!(
            target: "rollcall::budget",
            uid = self.uid.as_str(),
            socket = self.socket.as_str(),
            recording = self.recording.as_str(),
            conversation = self.conversation.as_str(),
            generation = self.generation,
            scope = self.scope.as_str(),
            speaker = self.speaker,
            attempts = self.attempts,
            tokens = self.tokens,
            evidence_seconds = self.evidence_seconds,
            pending_seconds = self.pending_seconds,
            cap = self.cap.as_str(),
            trace_id = self.trace.map(TraceContext::trace_id),
            span_id = self.trace.map(TraceContext::span_id),
            "speaker_id_budget_first_block"
        );
    }
}
