//! A lane's voices as events, snapshots and explanations tell them. Changes nothing.

use super::Lane;
use crate::event::{Status, VoiceState};
use crate::exit::ExitReason;
use crate::ids::PersonId;
use crate::policy::Candidate;
use crate::queue::Voice;
use crate::receipt::Standing as Ruled;
use crate::span::Spans;
use crate::time::Monotonic;

/// What `explain` tells of one voice.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The voice's state.
    pub state: VoiceState,
    /// Distances to the nearest people, nearest first, by position in the lane's gallery.
    pub candidates: Vec<(PersonId, f64)>,
    /// Seconds of each clip of evidence, oldest first.
    pub clips: Vec<f64>,
    /// Seconds of fresh speech that no query has used.
    pub pending_seconds: f64,
    /// Seconds that the next query needs.
    pub needed_seconds: f64,
    /// The latest exit.
    pub last_exit: Option<ExitReason>,
    /// Attempts spent, as the scheduler knows it.
    pub attempts: u32,
    /// Whether a query is under way.
    pub in_work: bool,
    /// Since when the voice waits.
    pub queued_since: Option<Monotonic>,
}

impl Lane {
    pub(crate) fn state(&self, voice: Voice) -> VoiceState {
        let record = self.voices.get(&voice).expect("an admitted voice has a record");
        let decision = record.row.as_ref().map(|row| row.decision);
        let runner_up = decision.map(|decision| decision.runner_up).filter(|distance| distance.is_finite());
        VoiceState {
            speaker: voice.speaker,
            scope: self.scope(voice).clone(),
            status: record.status.unwrap_or(Status::Pending),
            identity: record.identity.clone(),
            distance: decision.and_then(|decision| decision.best).map(|best| best.distance),
            runner_up,
            evidence_seconds: self.rate.seconds(record.evidence.samples()),
            segment: record.segment.clone(),
        }
    }

    pub(crate) fn voices(&self) -> impl Iterator<Item = Voice> + '_ {
        self.voices.keys().copied()
    }

    pub(crate) fn explain(&self, voice: Voice) -> Explanation {
        let record = self.voices.get(&voice).expect("an admitted voice has a record");
        // Whoever a rejected voice may have been, it is none of them.
        let row = record.row.as_ref().filter(|_| self.ruled(voice) != Ruled::Rejected);
        let mut nearest: Vec<Candidate> = row.iter().flat_map(|row| row.candidates.iter().copied()).collect();
        nearest.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        let named = nearest.iter().filter_map(|candidate| {
            self.gallery.at(candidate.index).map(|print| (print.person.clone(), candidate.distance))
        });
        Explanation {
            state: self.state(voice),
            candidates: named.take(Self::CANDIDATES_MAX).collect(),
            clips: record.evidence.clips().map(|clip| self.rate.seconds(clip.samples)).collect(),
            pending_seconds: self.rate.seconds(self.queue.fresh(voice).map_or(0, Spans::samples)),
            needed_seconds: self.rate.seconds(self.needed(voice)),
            last_exit: record.last_exit,
            attempts: self.attempts.get(&voice.speaker).copied().unwrap_or(0),
            in_work: self.locked.contains(&voice.speaker) || self.held.contains(&voice.speaker),
            queued_since: self.queue.slot(voice).map(|slot| slot.since),
        }
    }

    /// An explanation names the nearest ten people: enough to see a confusion, and bounded for galleries of thousands.
    const CANDIDATES_MAX: usize = 10;
}
