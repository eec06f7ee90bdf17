//! A lane's voices as events, snapshots and explanations tell them. Changes nothing.

use super::{Authority, Lane};
use crate::event::{Status, VoiceState};
use crate::exit::ExitReason;
use crate::ids::{PersonId, Scope, SegmentId, Speaker};
use crate::policy::Candidate;
use crate::queue::{NearOwner, Precedence, Voice};
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
    /// Queries of this voice that brought no voiceprint.
    pub failed: u32,
    /// Whether it goes before others because it was nearly the owner.
    pub near_owner: NearOwner,
    /// What people decided about it.
    pub ruled: Ruled,
    /// Whether what people decided is known. While it is not, nobody gets a name by evidence.
    pub is_authority_read: bool,
}

/// A slot in its place in the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// The voice's number.
    pub speaker: Speaker,
    /// Its provider stream.
    pub scope: Scope,
    /// Since when it waits.
    pub since: Monotonic,
    /// Seconds of fresh speech.
    pub pending_seconds: f64,
    /// The latest segment that the slot stands for.
    pub segment: SegmentId,
    /// Why it goes before the one behind it.
    pub precedence: Precedence,
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
        let named = nearest(row.map_or(&[], |row| &row.candidates)).into_iter().filter_map(|candidate| {
            self.gallery.at(candidate.index).map(|print| (print.person.clone(), candidate.distance))
        });
        Explanation {
            state: self.state(voice),
            candidates: named.collect(),
            clips: record.evidence.clips().map(|clip| self.rate.seconds(clip.samples)).collect(),
            pending_seconds: self.rate.seconds(self.queue.fresh(voice).map_or(0, Spans::samples)),
            needed_seconds: self.rate.seconds(self.needed(voice)),
            last_exit: record.last_exit,
            attempts: self.attempts.get(&voice.speaker).copied().unwrap_or(0),
            in_work: self.locked.contains(&voice.speaker) || self.held.contains(&voice.speaker),
            queued_since: self.queue.slot(voice).map(|slot| slot.since),
            failed: record.failed,
            near_owner: self.near_owner(voice),
            ruled: self.ruled(voice),
            is_authority_read: self.authority == Authority::Read,
        }
    }

    /// Who waits, in the order in which they would be examined at this moment.
    pub(crate) fn waiting(&self, now: Monotonic) -> Vec<Waiting> {
        let ranking = self.queue.ranking(now, self.floors.query_max, |voice| self.standing(voice));
        let waiting = ranking.into_iter().filter_map(|ranked| {
            let (voice, slot) = (ranked.voice, self.queue.slot(ranked.voice)?);
            Some(Waiting {
                speaker: voice.speaker,
                scope: self.scope(voice).clone(),
                since: slot.since,
                pending_seconds: self.rate.seconds(self.queue.fresh(voice).map_or(0, Spans::samples)),
                segment: slot.segment.clone(),
                precedence: ranked.precedence,
            })
        });
        waiting.collect()
    }
}

/// An explanation names the nearest ten people: enough to see a confusion, and bounded for galleries of thousands.
const CANDIDATES_MAX: usize = 10;

/// The nearest of them, nearest first.
fn nearest(candidates: &[Candidate]) -> Vec<Candidate> {
    let by_distance = |a: &Candidate, b: &Candidate| a.distance.total_cmp(&b.distance);
    let mut nearest = candidates.to_vec();
    if nearest.len() > CANDIDATES_MAX {
        // Not all of a large gallery is put in order for ten of it.
        nearest.select_nth_unstable_by(CANDIDATES_MAX, by_distance);
        nearest.truncate(CANDIDATES_MAX);
    }
    nearest.sort_by(by_distance);
    nearest
}
