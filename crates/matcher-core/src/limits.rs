//! The matcher's limits, each with its reason and what lies beyond it; and the same limits in samples of one lane.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use crate::span::Rate;

/// Limits of one conversation's scheduler. `Limits::default()` holds the service's defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Devices in one conversation. Eight microphones are a large meeting room; a ninth lane is refused.
    pub lanes_max: NonZeroUsize,
    /// Queued voices of a lane. Selection scans them all; a full queue leaves the ranges with the voice.
    pub slots_max: NonZeroUsize,
    /// Disjoint ranges of a voice. Older ones are evicted and counted in seconds.
    pub ranges_max: NonZeroUsize,
    /// Slots that one speaker number may hold (in several scopes), so that one number cannot fill the queue.
    pub slots_of_number_max: NonZeroUsize,
    /// Voices a lane admits in one generation; the next exits with `voice_capacity`.
    pub voices_max: NonZeroUsize,
    /// Queries of a lane at once; further slots wait.
    pub queries_max: NonZeroUsize,
    /// Clips of evidence that a voice keeps; the oldest goes.
    pub clips_kept: NonZeroU32,
    /// The age at which the oldest slot goes before everything else.
    pub age_override: Duration,
    /// Of so many selections in a row at most one goes by age alone. With 1 each may, and whoever is always late makes the
    /// order one of arrival; with 2 half of the turns stay with the untried, and the oldest wait up to twice as long.
    pub override_every: NonZeroU32,
    /// The shortest pooled clip that is worth a query: under two seconds a voiceprint says little.
    pub clip_minimum: Duration,
    /// No clip is ever shorter, whatever is missing: models fail on less.
    pub clip_hard_minimum: Duration,
    /// Speech that a decision needs.
    pub evidence_floor: Duration,
    /// Speech that an owner needs who was recognised on the same device moments ago.
    pub reconnect_floor: Duration,
    /// The least time between two routine keepsakes of the owner, and between two looks at what a reconnect rests on.
    pub continuity_every: Duration,
    /// The most audio of one query: more adds cost and no certainty.
    pub query_max: Duration,
    /// From dispatch to settlement. A query that takes longer fails, and its place and number are free again.
    pub reservation_deadline: Duration,
}

const fn count(value: usize) -> NonZeroUsize {
    NonZeroUsize::new(value).expect("a default limit is not zero")
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lanes_max: count(8),
            slots_max: count(100),
            ranges_max: count(128),
            slots_of_number_max: count(8),
            voices_max: count(128),
            queries_max: count(16),
            clips_kept: NonZeroU32::new(3).expect("three is not zero"),
            age_override: Duration::from_secs(5),
            override_every: NonZeroU32::MIN,
            clip_minimum: Duration::from_secs(2),
            clip_hard_minimum: Duration::from_millis(500),
            evidence_floor: Duration::from_secs(5),
            reconnect_floor: Duration::from_secs(2),
            continuity_every: Duration::from_secs(30),
            query_max: Duration::from_secs(10),
            reservation_deadline: Duration::from_secs(5),
        }
    }
}

/// The limits on audio, in samples of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floors {
    /// [`Limits::clip_minimum`], and never less than a fair share of the evidence floor.
    pub clip_minimum: u64,
    /// [`Limits::clip_minimum`] as configured: what makes a window "short".
    pub window_minimum: u64,
    /// [`Limits::clip_hard_minimum`].
    pub clip_hard_minimum: u64,
    /// [`Limits::evidence_floor`].
    pub evidence: u64,
    /// [`Limits::reconnect_floor`], and never more than the evidence floor.
    pub reconnect: u64,
    /// [`Limits::query_max`].
    pub query_max: u64,
}

impl Floors {
    /// The limits at `rate`.
    ///
    /// The share is rounded up: clips that each reach it add up to the floor, so a voice that keeps talking gets there
    /// whatever minimum is configured.
    #[must_use]
    pub fn at(rate: Rate, limits: &Limits) -> Self {
        let evidence = rate.samples_in(limits.evidence_floor);
        let window_minimum = rate.samples_in(limits.clip_minimum);
        Self {
            clip_minimum: window_minimum.max(evidence.div_ceil(u64::from(limits.clips_kept.get()))),
            window_minimum,
            clip_hard_minimum: rate.samples_in(limits.clip_hard_minimum).max(1),
            evidence,
            reconnect: rate.samples_in(limits.reconnect_floor).min(evidence),
            query_max: rate.samples_in(limits.query_max),
        }
    }

    /// The samples that a query needs now, when `have` samples of evidence will survive it.
    #[must_use]
    pub fn needed(&self, have: u64) -> u64 {
        self.needed_for(self.evidence, have)
    }

    /// As [`Floors::needed`], for a reconnecting owner.
    #[must_use]
    pub fn needed_to_reconnect(&self, have: u64) -> u64 {
        self.needed_for(self.reconnect, have)
    }

    fn needed_for(&self, floor: u64, have: u64) -> u64 {
        self.clip_minimum.min(floor.saturating_sub(have)).max(self.clip_hard_minimum)
    }
}
