//! The tokens of one lane, in integers, so that a token that returns every 15 s returns exactly then, however often one looks.

use std::time::Duration;

use super::limits::Limits;
use crate::time::Monotonic;

/// A token bucket in integers: one token is 3600e9 units, and one nanosecond adds `refill_per_hour` of them. What it may go
/// below nothing lies at its bottom, so that no count is negative.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    units: u64,
    units_max: u64,
    bottom: u64,
    units_a_nano: u64,
    last: Monotonic,
}

impl Bucket {
    const TOKEN: u64 = 3_600_000_000_000;

    /// At most 2^32 tokens of 3.6e12 units do not fit in 64 bits; a burst beyond five million is held at that.
    pub(super) fn full(limits: Limits, now: Monotonic) -> Self {
        let bottom = Self::units_of(limits.relaxation.map_or(0, |relaxation| relaxation.tokens.get()));
        let units_max = Self::units_of(limits.burst.get()).saturating_add(bottom);
        Self { units: units_max, units_max, bottom, units_a_nano: u64::from(limits.refill_per_hour.get()), last: now }
    }

    /// The bucket at `now`. A clock that runs backwards adds nothing and takes nothing.
    pub(super) fn at(mut self, now: Monotonic) -> Self {
        let elapsed = now.as_nanos().saturating_sub(self.last.as_nanos());
        self.units = self.units.saturating_add(elapsed.saturating_mul(self.units_a_nano)).min(self.units_max);
        self.last = self.last.max(now);
        self
    }

    /// The latest moment that it was told.
    pub(super) const fn last(self) -> Monotonic {
        self.last
    }

    fn units_of(tokens: u32) -> u64 {
        u64::from(tokens).saturating_mul(Self::TOKEN)
    }

    /// Whether there is no token for somebody who may take so many below nothing.
    pub(super) fn is_empty(self, overdraft: u32) -> bool {
        self.units < self.bottom.saturating_sub(Self::units_of(overdraft)).saturating_add(Self::TOKEN)
    }

    pub(super) const fn take_one(&mut self) {
        assert!(self.units >= Self::TOKEN, "a token was taken from an empty bucket");
        self.units -= Self::TOKEN;
    }

    pub(super) fn next_token(self) -> Duration {
        let missing = self.bottom.saturating_add(Self::TOKEN).saturating_sub(self.units);
        Duration::from_nanos(missing.div_ceil(self.units_a_nano))
    }

    /// Nothing, while it is below nothing.
    pub(super) fn tokens(self) -> f64 {
        self.units.saturating_sub(self.bottom) as f64 / Self::TOKEN as f64
    }
}
