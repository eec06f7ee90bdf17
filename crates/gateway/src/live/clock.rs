//! The service's one monotonic clock, as nanoseconds for the core.
//!
//! Reads tokio's clock, so that a test that pauses it runs hours of socket life in milliseconds.

use matcher_core::Monotonic;
use tokio::time::Instant;

use crate::people::now_ms;

/// A clock with a fixed origin. Copies agree.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
    origin_ms: i64,
}

impl Clock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: Instant::now(), origin_ms: now_ms() }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Monotonic {
        Monotonic::from_origin(self.origin.elapsed())
    }

    /// A moment of this clock in milliseconds since 1970. It never jumps, whatever becomes of the wall's own clock.
    #[must_use]
    pub fn wall_ms(&self, moment: Monotonic) -> i64 {
        let since_origin = moment.since(Monotonic::ZERO).as_millis();
        self.origin_ms.saturating_add(i64::try_from(since_origin).unwrap_or(i64::MAX))
    }
}
