//! The three notions of time, each its own type: monotonic time here, audio positions in [`crate::span`], and wall time
//! nowhere in this crate.

use std::time::Duration;

/// Nanoseconds on the caller's monotonic clock, since an origin of the caller's choice.
///
/// Integer on purpose: a token that returns every 15 s returns exactly then, however often the clock is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Monotonic(u64);

impl Monotonic {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);

    /// A moment `nanoseconds` after the origin.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// A moment this long after the origin; beyond 584 years it stays at the last moment.
    #[must_use]
    pub fn from_origin(elapsed: Duration) -> Self {
        Self(nanos(elapsed))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`, zero when that lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This moment plus `wait`.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(nanos(wait)))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
