//! When everybody is read again after a reading failed: the schedule alone, without clock, store or task.
//!
//! ```text
//!            failed: wait 30 s × 2^(failures − 1), at most 480 s
//!          ┌────────────────────────────┐
//!          ▼                            │
//!   in step ──failed──▶ behind ──due──▶ reading ──8th failure──▶ behind, and given up
//!      ▲                                │                                 │
//!      └───────────── loaded ───────────┴──────────── a change ───────────┘
//! ```
//!
//! A change reads everybody at once and starts afresh, so a person who waits is never held up by the schedule.

use std::time::Duration;

/// The wait after the first failure. Whatever locked or filled the database needs a moment, and a person may be watching.
const WAIT_FIRST: Duration = Duration::from_secs(30);

/// The longest wait: a database that failed four times is not hurried by asking more often.
const WAIT_MAX: Duration = Duration::from_secs(480);

/// Failures in a row after which nobody asks again, about half an hour after the first: somebody has to mend it.
const FAILURES_MAX: u32 = 8;

/// The right to read everybody again once, and when. Void as soon as anything else was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retry {
    /// How long to wait first.
    pub(super) after: Duration,
    reading: u64,
}

/// What the latest readings came to.
#[derive(Debug, Default)]
pub(super) struct Retries {
    failures: u32,
    /// Rises with every reading that ended, so that a retry which was overtaken is known by its number.
    readings: u64,
}

impl Retries {
    /// Whether what is in memory is older than the store.
    pub(super) fn is_behind(&self) -> bool {
        self.failures > 0
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether a retry still stands: nothing was read since it was given.
    pub(super) fn is_due(&self, retry: Retry) -> bool {
        self.is_behind() && retry.reading == self.readings
    }

    /// Something was changed, and everybody is about to be read for it.
    pub(super) fn handle_change(&mut self) {
        self.failures = 0;
    }

    /// Everybody was read.
    pub(super) fn handle_loaded(&mut self) {
        self.failures = 0;
        self.readings += 1;
    }

    /// The reading failed. `None` once it did so too often.
    pub(super) fn handle_failed(&mut self) -> Option<Retry> {
        self.failures += 1;
        self.readings += 1;
        (self.failures < FAILURES_MAX).then(|| Retry { after: wait(self.failures), reading: self.readings })
    }
}

fn wait(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1);
    WAIT_FIRST.saturating_mul(2_u32.saturating_pow(doublings)).min(WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_double_up_to_their_limit_and_end_with_the_eighth_failure() {
        let mut retries = Retries::default();
        let waits: Vec<u64> =
            std::iter::from_fn(|| retries.handle_failed()).map(|retry| retry.after.as_secs()).collect();
        assert_eq!(waits, [30, 60, 120, 240, 480, 480, 480]);
        assert_eq!((retries.failures(), retries.handle_failed()), (8, None));
    }

    #[test]
    fn a_change_starts_afresh() {
        let mut retries = Retries::default();
        while retries.handle_failed().is_some() {}
        retries.handle_change();
        assert_eq!(retries.handle_failed().map(|retry| retry.after), Some(WAIT_FIRST));
    }

    #[test]
    fn a_retry_that_was_overtaken_is_void() {
        let mut retries = Retries::default();
        let first = retries.handle_failed().unwrap();
        assert!(retries.is_due(first));
        retries.handle_change();
        let second = retries.handle_failed().unwrap();
        assert!(!retries.is_due(first) && retries.is_due(second), "a change failed in between");
        retries.handle_loaded();
        assert!(!retries.is_due(second) && !retries.is_behind(), "a reading succeeded in between");
    }
}
