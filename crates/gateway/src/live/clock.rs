//! The service's one monotonic clock, as nanoseconds for the core.
//!
//! Reads tokio's clock, so that a test that pauses it runs hours of socket life in milliseconds.

use matcher_core::Monotonic;
use tokio::time::Instant;

/// A clock with a fixed origin. Copies agree.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Monotonic {
        Monotonic::from_origin(self.origin.elapsed())
    }
}
