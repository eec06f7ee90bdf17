//! How often workers may fail before the pool stops replacing them. A decision without a clock: time is an argument.
//!
//! ```text
//! failure ──▶ fewer than the maximum in the window? ──yes──▶ restart after 50 ms, 100 ms, 200 ms, …
//!                                                   └─no──▶ give up (the roster then probes now and then)
//! ```

use std::collections::VecDeque;
use std::time::Duration;

/// How many failures, how close together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The failure with this number within the window is the one too many. 5: a single bad clip or a passing lack of
    /// memory is survived, a broken model or runtime is told within a second.
    pub failures_max: usize,
    /// How long a failure counts. 60 s: long enough that a fault which strikes every ten seconds is noticed.
    pub window: Duration,
    /// The wait before the first restart. 50 ms: less than a caller notices.
    pub backoff_first: Duration,
    /// No wait is longer. 5 s: beyond, queued queries would have passed their patience anyway.
    pub backoff_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            failures_max: 5,
            window: Duration::from_secs(60),
            backoff_first: Duration::from_millis(50),
            backoff_max: Duration::from_secs(5),
        }
    }
}

/// What to do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Start a new worker at this time.
    Restart {
        /// When, on the clock of the caller.
        at: Duration,
    },
    /// Too many failures: start none.
    GiveUp,
}

/// The failures of the last window.
#[derive(Debug, Clone)]
pub struct Intensity {
    limits: Limits,
    /// At most `failures_max` moments, oldest first.
    recent: VecDeque<Duration>,
}

impl Intensity {
    /// No failure so far.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, recent: VecDeque::new() }
    }

    /// Counts a failure and says what to do about it. `now` is the time since any fixed moment and never goes back.
    pub fn handle_failure(&mut self, now: Duration) -> Decision {
        while self.recent.front().is_some_and(|past| past.saturating_add(self.limits.window) <= now) {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        if self.recent.len() >= self.limits.failures_max {
            // Kept within its bound also when the caller goes on regardless.
            self.recent.pop_front();
            return Decision::GiveUp;
        }
        let doublings = u32::try_from(self.recent.len() - 1).unwrap_or(u32::MAX);
        let backoff = self.limits.backoff_first.saturating_mul(2_u32.saturating_pow(doublings));
        Decision::Restart { at: now.saturating_add(backoff.min(self.limits.backoff_max)) }
    }

    /// Forgets the past, after a probe has shown that the fault is gone.
    pub fn forget(&mut self) {
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn decisions(times: &[u64]) -> Vec<Decision> {
        let mut intensity = Intensity::new(Limits::default());
        times.iter().map(|time| intensity.handle_failure(ms(*time))).collect()
    }

    #[test]
    fn the_wait_doubles_with_each_failure_and_the_fifth_in_a_minute_is_one_too_many() {
        let waits = [50, 100, 200, 400].map(|wait| Decision::Restart { at: ms(wait) });
        assert_eq!(decisions(&[0; 5])[..4], waits);
        assert_eq!(decisions(&[0; 5])[4], Decision::GiveUp);
    }

    #[test]
    fn a_failure_counts_for_exactly_a_minute() {
        assert_eq!(decisions(&[0, 1, 2, 3, 59_999])[4], Decision::GiveUp);
        assert_eq!(decisions(&[0, 1, 2, 3, 60_000])[4], Decision::Restart { at: ms(60_000 + 400) });
    }

    #[test]
    fn a_failure_every_quarter_of_a_minute_is_survived_for_ever() {
        let times: Vec<u64> = (0..1_000).map(|index| index * 15_000).collect();
        assert!(decisions(&times).iter().all(|decision| *decision != Decision::GiveUp));
    }

    #[test]
    fn no_wait_exceeds_the_longest() {
        let limits = Limits { failures_max: 100, ..Limits::default() };
        let mut intensity = Intensity::new(limits);
        for _ in 0..99 {
            let Decision::Restart { at } = intensity.handle_failure(ms(0)) else {
                panic!("gave up before the maximum")
            };
            assert!(at <= limits.backoff_max);
        }
        assert_eq!(intensity.handle_failure(ms(0)), Decision::GiveUp);
    }
}
