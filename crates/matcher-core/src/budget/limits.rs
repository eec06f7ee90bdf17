//! How much a lane may ask of the model, and the two options that give a voice with new speech more.

use std::num::NonZeroU32;
use std::time::Duration;

/// How much a lane may ask of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Attempts of one voice in one generation: twelve bring at least twenty seconds of speech to judge.
    pub attempts_max: NonZeroU32,
    /// Tokens that a full bucket holds.
    pub burst: NonZeroU32,
    /// Tokens that return in an hour, evenly.
    pub refill_per_hour: NonZeroU32,
    /// Voices in the attempts table, and in the memory of first blocks; beyond it a reservation is refused.
    pub voices_max: NonZeroU32,
    /// Tokens beyond the bucket for voices with new speech. Left out, there are none.
    pub relaxation: Option<Relaxation>,
    /// New attempts for voices with new speech. Left out, an attempt is spent for the whole generation.
    pub renewal: Option<Renewal>,
}

/// A bucket may go so far below nothing for a voice with so much speech that no query has used. The refill pays that back
/// before anybody else gets a token, so the rate stays what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relaxation {
    /// Tokens below nothing.
    pub tokens: NonZeroU32,
    /// The least speech that no query has used.
    pub speech: Duration,
}

/// A voice at its limit has all its attempts again when it has so much speech that no query has used, and so long has passed
/// since it had them last: time, because failures leave the speech unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewal {
    /// The least speech, and the least time.
    pub speech: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let limit = |value| NonZeroU32::new(value).expect("a default limit is not zero");
        Self {
            attempts_max: limit(12),
            burst: limit(16),
            refill_per_hour: limit(240),
            voices_max: limit(128),
            relaxation: None,
            renewal: None,
        }
    }
}
