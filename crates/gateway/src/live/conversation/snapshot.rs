//! A conversation as people look at it: voices, verdicts, queue, budgets. No vector and no audio.

use matcher_core::{Explanation, LaneId, Monotonic};
use serde::Serialize;

use super::{Conversation, LaneLink};
use crate::live::protocol::{TotalBudget, VoiceSummary};

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConversationSnapshot {
    /// The client's id.
    pub conversation_id: String,
    /// Its lanes.
    pub lanes: Vec<LaneSnapshot>,
}

/// One lane.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneSnapshot {
    /// The lane's number in this process.
    pub lane: u64,
    /// Its generation.
    pub generation: u64,
    /// Its voices.
    pub voices: Vec<VoiceSnapshot>,
    /// Who waits, in order of number.
    pub queue: Vec<QueuedSnapshot>,
    /// Numbers with a query under way.
    pub in_work: Vec<u32>,
    /// Its books.
    pub budget: TotalBudget,
    /// Tokens now.
    pub socket_tokens: f64,
}

/// One voice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VoiceSnapshot {
    /// What is known of it.
    #[serde(flatten)]
    pub voice: VoiceSummary,
    /// Seconds of fresh speech.
    pub pending_seconds: f64,
    /// Seconds that its next query needs.
    pub needed_seconds: f64,
    /// The latest exit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_exit: Option<&'static str>,
}

/// One slot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueuedSnapshot {
    /// The voice's number.
    pub speaker: u32,
    /// How long it waits, seconds.
    pub age_seconds: f64,
    /// Fresh speech, seconds.
    pub pending_seconds: f64,
    /// The latest segment.
    pub segment_id: String,
}

impl Conversation {
    pub(super) fn snapshot(&self) -> ConversationSnapshot {
        let now = self.now();
        let lanes = self.scheduler.lanes().filter_map(|lane| self.lane_snapshot(lane, now)).collect();
        ConversationSnapshot { conversation_id: self.key.conversation.clone(), lanes }
    }

    fn lane_snapshot(&self, lane: LaneId, now: Monotonic) -> Option<LaneSnapshot> {
        let link = self.lanes.get(&lane)?;
        let queue = self.scheduler.queue(lane)?;
        let waiting = queue.waiting().map(|(voice, slot, samples)| QueuedSnapshot {
            speaker: voice.speaker.0,
            age_seconds: now.since(slot.since).as_secs_f64(),
            pending_seconds: samples as f64 / link.hertz,
            segment_id: slot.segment.as_str().to_owned(),
        });
        Some(LaneSnapshot {
            lane: lane.0,
            generation: self.scheduler.generation(lane)?.0,
            voices: self.scheduler.explain_all(lane).into_iter().map(|voice| link.voice(voice)).collect(),
            queue: waiting.collect(),
            in_work: self.scheduler.in_work(lane).into_iter().map(|speaker| speaker.0).collect(),
            budget: TotalBudget::from(link.lineage.ledger.books().0),
            socket_tokens: link.lineage.ledger.tokens(),
        })
    }
}

impl LaneLink {
    fn voice(&self, explained: Explanation) -> VoiceSnapshot {
        let state = &explained.state;
        let label = self.lineage.names().label(state.speaker).map(str::to_owned);
        VoiceSnapshot {
            voice: VoiceSummary { label, scope: Some(state.scope.to_string()), ..VoiceSummary::of(&explained) },
            pending_seconds: explained.pending_seconds,
            needed_seconds: explained.needed_seconds,
            last_exit: explained.last_exit.map(matcher_core::ExitReason::as_str),
        }
    }
}
