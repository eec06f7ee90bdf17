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
    wall: Wall,
}

/// What tells the time of day.
#[derive(Debug, Clone, Copy)]
enum Wall {
    /// The machine, which also counts the hours that it sleeps.
    Machine,
    /// The time since the origin, for a clock that can be paused.
    Since(i64),
}

impl Clock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: Instant::now(), wall: Wall::Machine }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Monotonic {
        Monotonic::from_origin(self.origin.elapsed())
    }

    /// A clock whose time of day passes with it, also when tokio's is paused.
    #[must_use]
    pub fn start_of_its_own() -> Self {
        Self { origin: Instant::now(), wall: Wall::Since(now_ms()) }
    }

    /// A moment of the recent past in milliseconds since 1970.
    #[must_use]
    pub fn wall_ms(&self, moment: Monotonic) -> i64 {
        let millis = |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        match self.wall {
            Wall::Machine => now_ms().saturating_sub(millis(self.now().since(moment))),
            Wall::Since(origin_ms) => origin_ms.saturating_add(millis(moment.since(Monotonic::ZERO))),
        }
    }
}
