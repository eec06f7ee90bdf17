//! The service's one monotonic clock, as nanoseconds for the core.
//!
//! Reads tokio's clock, so that a test that pauses it runs hours of socket life in milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

/// One moment on every clock, to tell others by.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    now: Monotonic,
    wall: SystemTime,
    instant: std::time::Instant,
}

impl Reading {
    /// The moment itself.
    #[must_use]
    pub const fn now(&self) -> Monotonic {
        self.now
    }

    /// The time of day of a moment that is past.
    #[must_use]
    pub fn wall(&self, moment: Monotonic) -> SystemTime {
        self.wall.checked_sub(self.now.since(moment)).unwrap_or(UNIX_EPOCH)
    }

    /// Whether a moment of the machine's clock is past.
    #[must_use]
    pub fn has_passed(&self, instant: std::time::Instant) -> bool {
        instant <= self.instant
    }

    /// A moment of the machine's clock that is past, on the service's; what is not past yet is now.
    #[must_use]
    pub fn past(&self, instant: std::time::Instant) -> Monotonic {
        before(self.now, self.instant.saturating_duration_since(instant))
    }
}

/// The moment that lies so long before another.
#[must_use]
pub(super) fn before(moment: Monotonic, duration: Duration) -> Monotonic {
    Monotonic::from_origin(moment.since(Monotonic::ZERO).saturating_sub(duration))
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

    /// This moment on every clock there is.
    #[must_use]
    pub fn read(&self) -> Reading {
        let now = self.now();
        let wall = match self.wall {
            Wall::Machine => SystemTime::now(),
            Wall::Since(origin_ms) => {
                let origin = Duration::from_millis(u64::try_from(origin_ms).unwrap_or(0));
                UNIX_EPOCH + origin + now.since(Monotonic::ZERO)
            }
        };
        Reading { now, wall, instant: std::time::Instant::now() }
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
