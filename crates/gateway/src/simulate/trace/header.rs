//! The first line of a recording: its version, the pool, and the limits that held.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use matcher_core::Limits;
use matcher_core::budget::{self, Relaxation, Renewal};
use serde::{Deserialize, Serialize};

use crate::simulate::setup::Setup;

/// The version of these lines. A reader takes no other.
pub const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version.
    pub rollcall_trace: u32,
    /// Queries that the pool ran at once.
    pub workers: NonZeroUsize,
    /// The limits that held.
    pub settings: Settings,
}

impl Header {
    /// Reads the first line.
    ///
    /// # Errors
    /// When it is no recording's, or one of another version.
    pub fn parse(line: &str) -> Result<Self, String> {
        let header: Self =
            serde_json::from_str(line).map_err(|error| format!("is not the first line of a recording: {error}"))?;
        match header.rollcall_trace {
            VERSION => header.check().map(|()| header),
            other => Err(format!("is a recording of version {other}, and this command reads version {VERSION}")),
        }
    }
}

/// No recording has larger counts or, in seconds, longer times: far beyond what a server's settings take, and few enough to be
/// played.
const MOST: f64 = 1_000_000.0;

impl Header {
    fn check(&self) -> Result<(), String> {
        let settings = &self.settings;
        let told = [
            ("workers", self.workers.get() as f64),
            ("voice_attempts", settings.voice_attempts.get().into()),
            ("socket_burst", settings.socket_burst.get().into()),
            ("relaxed_tokens", settings.relaxed_tokens.into()),
            ("clips_kept", settings.clips_kept.get().into()),
            ("relaxed_speech_seconds", settings.relaxed_speech_seconds),
            ("renewal_speech_seconds", settings.renewal_speech_seconds),
            ("age_override_seconds", settings.age_override_seconds),
            ("clip_minimum_seconds", settings.clip_minimum_seconds),
            ("clip_hard_minimum_seconds", settings.clip_hard_minimum_seconds),
            ("evidence_seconds", settings.evidence_seconds),
            ("query_seconds_max", settings.query_seconds_max),
        ];
        match told.into_iter().find(|(_, value)| !(0.0..=MOST).contains(value)) {
            Some((name, value)) => Err(format!("{name} is {value}, and no recording's is below 0 or beyond {MOST}")),
            None => Ok(()),
        }
    }
}

/// The limits under which a recording was made, as a replay needs them. Times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is the setting of its name")]
pub struct Settings {
    pub voice_attempts: NonZeroU32,
    pub socket_burst: NonZeroU32,
    pub refill_per_hour: NonZeroU32,
    pub relaxed_tokens: u32,
    pub relaxed_speech_seconds: f64,
    pub renewal_speech_seconds: f64,
    pub slots: NonZeroUsize,
    pub ranges: NonZeroUsize,
    pub slots_per_number: NonZeroUsize,
    pub voices: NonZeroUsize,
    pub queries_per_lane: NonZeroUsize,
    pub age_override_seconds: f64,
    pub override_every: NonZeroU32,
    pub clips_kept: NonZeroU32,
    pub clip_minimum_seconds: f64,
    pub clip_hard_minimum_seconds: f64,
    pub evidence_seconds: f64,
    pub query_seconds_max: f64,
}

impl Settings {
    /// Of these limits.
    #[must_use]
    pub fn of(limits: &Limits, budget: &budget::Limits) -> Self {
        let relaxation = budget.relaxation;
        Self {
            voice_attempts: budget.attempts_max,
            socket_burst: budget.burst,
            refill_per_hour: budget.refill_per_hour,
            relaxed_tokens: relaxation.map_or(0, |relaxation| relaxation.tokens.get()),
            relaxed_speech_seconds: relaxation.map_or(0.0, |relaxation| relaxation.speech.as_secs_f64()),
            renewal_speech_seconds: budget.renewal.map_or(0.0, |renewal| renewal.speech.as_secs_f64()),
            slots: limits.slots_max,
            ranges: limits.ranges_max,
            slots_per_number: limits.slots_of_number_max,
            voices: limits.voices_max,
            queries_per_lane: limits.queries_max,
            age_override_seconds: limits.age_override.as_secs_f64(),
            override_every: limits.override_every,
            clips_kept: limits.clips_kept,
            clip_minimum_seconds: limits.clip_minimum.as_secs_f64(),
            clip_hard_minimum_seconds: limits.clip_hard_minimum.as_secs_f64(),
            evidence_seconds: limits.evidence_floor.as_secs_f64(),
            query_seconds_max: limits.query_max.as_secs_f64(),
        }
    }

    /// The limits.
    pub(in crate::simulate) fn setup(&self) -> Setup {
        let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let tokens = NonZeroU32::new(self.relaxed_tokens);
        let renewal = time(self.renewal_speech_seconds);
        Setup {
            limits: Limits {
                slots_max: self.slots,
                ranges_max: self.ranges,
                slots_of_number_max: self.slots_per_number,
                voices_max: self.voices,
                queries_max: self.queries_per_lane,
                age_override: time(self.age_override_seconds),
                override_every: self.override_every,
                clips_kept: self.clips_kept,
                clip_minimum: time(self.clip_minimum_seconds),
                clip_hard_minimum: time(self.clip_hard_minimum_seconds),
                evidence_floor: time(self.evidence_seconds),
                query_max: time(self.query_seconds_max),
                ..Limits::default()
            },
            budget: budget::Limits {
                attempts_max: self.voice_attempts,
                burst: self.socket_burst,
                refill_per_hour: self.refill_per_hour,
                voices_max: u32::try_from(self.voices.get()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX),
                relaxation: tokens.map(|tokens| Relaxation { tokens, speech: time(self.relaxed_speech_seconds) }),
                renewal: (!renewal.is_zero()).then_some(Renewal { speech: renewal }),
            },
        }
    }
}
