//! A conversation as people look at it: voices, verdicts, queue, budgets, who spoke when. No vector and no audio.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use matcher_core::{Explanation, Gallery, LaneId, Monotonic, Speaker, Waiting};
use serde::Serialize;

use super::{Conversation, LaneLink};
use crate::explain::{self, Around, Rules, Told};
use crate::live::ledger::Left;
use crate::live::protocol::{BudgetLeft, Candidate, TotalBudget, VoiceSummary};
use crate::live::service::Service;

/// Segments of a lane that are shown, the newest: several minutes of lively talk, in a few kilobytes.
pub(super) const SEGMENTS_SHOWN: usize = 128;

/// How long one look at a conversation serves everybody who watches it: the largest takes milliseconds of its thread.
const SHARED: Duration = Duration::from_millis(400);

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConversationSnapshot {
    /// The client's id.
    pub conversation_id: String,
    /// The receipt's generation: it rises with every correction.
    pub receipt_generation: u64,
    /// Its lanes.
    pub lanes: Vec<LaneSnapshot>,
}

/// One lane.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneSnapshot {
    /// The lane's number in this process.
    pub lane: u64,
    /// The client's id of the recording.
    pub recording_id: String,
    /// Its generation.
    pub generation: u64,
    /// The end of its latest segment in the recording, seconds.
    pub heard_seconds: f64,
    /// The rules that its verdicts and questions follow.
    pub limits: LaneLimits,
    /// Its voices.
    pub voices: Vec<VoiceSnapshot>,
    /// Who waits, in the order in which they would be examined now.
    pub queue: Vec<QueuedSnapshot>,
    /// Numbers with a query under way.
    pub in_work: Vec<u32>,
    /// Its newest segments, in order of arrival.
    pub segments: Vec<SegmentSnapshot>,
    /// Its books.
    pub budget: TotalBudget,
    /// Tokens now.
    pub socket_tokens: f64,
}

/// The rules of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LaneLimits {
    /// Questions for each number.
    pub voice_attempts: u32,
    /// Tokens of a full bucket.
    pub socket_burst: u32,
    /// Tokens that return in an hour.
    pub refill_per_hour: u32,
    /// The age at which the oldest slot goes first, seconds.
    pub age_override_seconds: f64,
    /// Seconds of speech that a verdict needs.
    pub evidence_seconds: f64,
    /// A name needs a distance below this.
    pub threshold: f64,
    /// ... and the next person this much farther.
    pub margin: f64,
}

/// One voice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VoiceSnapshot {
    /// What is known of it.
    #[serde(flatten)]
    pub voice: VoiceSummary,
    /// Where its name comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<&'static str>,
    /// Seconds of fresh speech.
    pub pending_seconds: f64,
    /// Seconds that its next query needs.
    pub needed_seconds: f64,
    /// The latest exit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_exit: Option<&'static str>,
    /// The latest exit in plain words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_exit_text: Option<&'static str>,
    /// Whether a query is under way.
    pub in_work: bool,
    /// How long it waits in the queue, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_seconds: Option<f64>,
    /// Why it has its name, or none, in one sentence.
    pub summary: String,
}

/// One slot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueuedSnapshot {
    /// 1 is the next.
    pub place: usize,
    /// The voice's number.
    pub speaker: u32,
    /// Its provider stream.
    pub scope: String,
    /// Why it goes before the one behind it.
    pub why: &'static str,
    /// ... in plain words.
    pub why_text: &'static str,
    /// How long it waits, seconds.
    pub age_seconds: f64,
    /// Fresh speech, seconds.
    pub pending_seconds: f64,
    /// The latest segment.
    pub segment_id: String,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SegmentSnapshot {
    /// The client's id.
    pub segment_id: String,
    /// Whose.
    pub speaker: u32,
    /// Its provider stream.
    pub scope: String,
    /// Where it begins in the recording, seconds.
    pub start: f64,
    /// Where it ends.
    pub end: f64,
}

/// Everything that can be told of one voice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VoiceExplained {
    /// The client's id of the recording.
    pub recording_id: String,
    /// The voice.
    #[serde(flatten)]
    pub voice: VoiceSnapshot,
    /// The nearest people.
    pub candidates: Vec<Candidate>,
    /// Seconds of each clip of evidence.
    pub clips: Vec<f64>,
    /// What is left.
    pub budget: BudgetLeft,
    /// All of it in plain words.
    pub explanation: Told,
}

/// What everybody who watches at the same moment shares.
#[derive(Debug)]
pub struct Seen {
    snapshot: ConversationSnapshot,
    json: OnceLock<String>,
}

impl Seen {
    /// What there is.
    #[must_use]
    pub const fn snapshot(&self) -> &ConversationSnapshot {
        &self.snapshot
    }

    /// As `write` puts it; done once for all who watch, and not on the conversation's thread.
    pub fn json(&self, write: impl FnOnce(&ConversationSnapshot) -> String) -> &str {
        self.json.get_or_init(|| write(&self.snapshot))
    }
}

/// What of a lane all its voices share when they are told.
struct Telling<'a> {
    link: &'a LaneLink,
    gallery: Gallery,
    rules: Rules,
    is_engine_ready: bool,
    now: Monotonic,
}

impl Conversation {
    pub(super) fn snapshot(&self) -> ConversationSnapshot {
        let lanes = self.lanes.keys().filter_map(|lane| self.lane_snapshot(*lane)).collect();
        let receipt_generation = self.scheduler.receipt().generation();
        ConversationSnapshot { conversation_id: self.key.conversation.clone(), receipt_generation, lanes }
    }

    /// As [`Conversation::snapshot`]; whoever looks within [`SHARED`] of another sees what that one saw.
    pub(super) fn glance(&mut self) -> Arc<Seen> {
        let now = self.now();
        let recent = self.glanced.as_ref().filter(|(at, _)| now.since(*at) < SHARED);
        if let Some((_, seen)) = recent {
            return Arc::clone(seen);
        }
        let seen = Arc::new(Seen { snapshot: self.snapshot(), json: OnceLock::new() });
        self.glanced = Some((now, Arc::clone(&seen)));
        seen
    }

    /// Every voice with this number, in every lane and provider stream.
    pub(super) fn tell_of(&self, speaker: Speaker) -> Vec<VoiceExplained> {
        let of_lane = |lane: &LaneId| {
            let telling = self.telling(*lane);
            let voices = self.scheduler.explain(*lane, speaker).into_iter();
            let explained = voices.filter_map(|voice| Some(telling.as_ref()?.explained(voice, &self.service)));
            explained.collect::<Vec<_>>()
        };
        self.lanes.keys().flat_map(of_lane).collect()
    }

    fn telling(&self, lane: LaneId) -> Option<Telling<'_>> {
        let settings = &self.service.settings;
        Some(Telling {
            link: self.lanes.get(&lane)?,
            gallery: self.scheduler.gallery(lane)?.clone(),
            rules: Rules::of(&settings.policy, &settings.limits, &settings.budget),
            is_engine_ready: self.service.engine.health().is_ready(),
            now: self.now(),
        })
    }

    fn lane_snapshot(&self, lane: LaneId) -> Option<LaneSnapshot> {
        let telling = self.telling(lane)?;
        let (link, now) = (telling.link, telling.now);
        let voices = self.scheduler.explain_all(lane);
        let waiting = self.scheduler.waiting(lane, now);
        Some(LaneSnapshot {
            lane: lane.0,
            recording_id: link.recording.clone(),
            generation: self.scheduler.generation(lane)?.0,
            heard_seconds: link.reached,
            limits: self.lane_limits(),
            voices: voices.iter().map(|voice| telling.voice(voice)).collect(),
            queue: waiting.iter().zip(1..).map(|(slot, place)| queued(slot, place, now)).collect(),
            in_work: self.scheduler.in_work(lane).into_iter().map(|speaker| speaker.0).collect(),
            segments: link.shown.iter().cloned().collect(),
            budget: TotalBudget::from(link.lineage.ledger.books().0),
            socket_tokens: link.lineage.ledger.tokens(),
        })
    }

    fn lane_limits(&self) -> LaneLimits {
        let settings = &self.service.settings;
        LaneLimits {
            voice_attempts: settings.budget.attempts_max.get(),
            socket_burst: settings.budget.burst.get(),
            refill_per_hour: settings.budget.refill_per_hour.get(),
            age_override_seconds: settings.limits.age_override.as_secs_f64(),
            evidence_seconds: settings.limits.evidence_floor.as_secs_f64(),
            threshold: settings.policy.threshold,
            margin: settings.policy.margin,
        }
    }
}

impl Telling<'_> {
    fn around(&self, left: Left) -> Around<'_> {
        Around {
            rules: self.rules,
            gallery: &self.gallery,
            attempts_left: left.voice_attempts,
            tokens: left.tokens,
            next_token: left.next_token,
            is_engine_ready: self.is_engine_ready,
        }
    }

    fn voice(&self, voice: &Explanation) -> VoiceSnapshot {
        let state = &voice.state;
        let label = self.link.lineage.names().label(state.speaker).map(str::to_owned);
        let left = self.link.lineage.ledger.left(state.speaker);
        // The ledger's count: it alone knows of attempts that came back.
        let attempts = self.rules.attempts.saturating_sub(left.voice_attempts);
        VoiceSnapshot {
            voice: VoiceSummary { label, scope: Some(state.scope.to_string()), attempts, ..VoiceSummary::of(voice) },
            origin: state.identity.as_ref().map(|identity| identity.origin.as_str()),
            pending_seconds: voice.pending_seconds,
            needed_seconds: voice.needed_seconds,
            last_exit: voice.last_exit.map(matcher_core::ExitReason::as_str),
            last_exit_text: voice.last_exit.map(explain::exit),
            in_work: voice.in_work,
            queued_seconds: voice.queued_since.map(|since| self.now.since(since).as_secs_f64()),
            summary: explain::summary(voice, &self.around(left)),
        }
    }

    fn explained(&self, voice: Explanation, service: &Service) -> VoiceExplained {
        let left = self.link.lineage.ledger.left(voice.state.speaker);
        VoiceExplained {
            recording_id: self.link.recording.clone(),
            voice: self.voice(&voice),
            candidates: Candidate::all_of(&voice, &service.settings.policy),
            explanation: explain::live(&voice, &self.around(left)),
            clips: voice.clips,
            budget: BudgetLeft { voice_attempts_left: left.voice_attempts, socket_tokens: left.tokens },
        }
    }
}

fn queued(slot: &Waiting, place: usize, now: Monotonic) -> QueuedSnapshot {
    QueuedSnapshot {
        place,
        speaker: slot.speaker.0,
        scope: slot.scope.to_string(),
        why: explain::precedence_name(slot.precedence),
        why_text: explain::precedence(slot.precedence),
        age_seconds: now.since(slot.since).as_secs_f64(),
        pending_seconds: slot.pending_seconds,
        segment_id: slot.segment.as_str().to_owned(),
    }
}

impl LaneLink {
    /// Segments of a message join those that are shown; one that grew takes the place of what it was.
    pub(super) fn show(&mut self, segments: impl Iterator<Item = SegmentSnapshot>) {
        for segment in segments {
            let is_same =
                |shown: &SegmentSnapshot| shown.segment_id == segment.segment_id && shown.scope == segment.scope;
            if let Some(shown) = self.shown.iter_mut().rev().find(|shown| is_same(shown)) {
                *shown = segment;
                continue;
            }
            if self.shown.len() >= SEGMENTS_SHOWN {
                self.shown.pop_front();
            }
            self.shown.push_back(segment);
        }
    }
}
