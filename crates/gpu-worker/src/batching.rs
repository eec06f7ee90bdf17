//! How many queries share a run, and how long the first of them waits for company. A pure machine: no thread, no clock.
//!
//! Only clips of one shape share a run, and none is padded: a model takes means over a clip, and padding would change
//! them. What the shapes are the [`crate::extractor::Factory`] says; who waits is the pool's affair.

use std::num::NonZeroUsize;
use std::time::Duration;

/// An interval longer than this many times the longest wait says no more than that nobody is coming.
const GAP_CAP: u32 = 8;

/// How far a pool goes to fill its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Clips in one run, at most.
    pub(crate) max: NonZeroUsize,
    /// How long the first of them waits, at most.
    pub(crate) wait: Duration,
}

/// How fast queries come, as an average over the last few.
///
/// A wait is worth its time only when somebody comes during it. So it is as long as the places left would take to fill
/// at the pace of late, and none at all when queries come farther apart than the longest wait: an idle pool adds nothing.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last: Option<Duration>,
    gap: Option<Duration>,
}

impl Pace {
    pub(crate) fn handle_arrival(&mut self, now: Duration, limits: Limits) {
        let cap = limits.wait.saturating_mul(GAP_CAP);
        if let Some(last) = self.last {
            let latest = now.saturating_sub(last).min(cap);
            // A quarter of the average is the latest: two quick queries are not yet a crowd, five are.
            self.gap = Some(self.gap.map_or(latest, |gap| (gap * 3 + latest) / 4));
        }
        self.last = Some(now);
    }

    /// How long the first of `here` queries of one shape waits, from its arrival.
    pub(crate) fn wait(&self, here: usize, limits: Limits) -> Duration {
        let free = limits.max.get().saturating_sub(here);
        match self.gap {
            Some(gap) if gap < limits.wait => {
                limits.wait.min(gap.saturating_mul(u32::try_from(free).unwrap_or(u32::MAX)))
            }
            Some(_) | None => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(4);

    fn limits() -> Limits {
        Limits { max: NonZeroUsize::new(8).unwrap(), wait: WAIT }
    }

    /// The pace after arrivals that lie so many microseconds apart.
    fn after(gaps: &[u64]) -> Pace {
        let (mut pace, mut now) = (Pace::default(), Duration::from_secs(5));
        pace.handle_arrival(now, limits());
        for gap in gaps {
            now += Duration::from_micros(*gap);
            pace.handle_arrival(now, limits());
        }
        pace
    }

    #[test]
    fn an_idle_pool_adds_no_wait() {
        assert_eq!(after(&[]).wait(1, limits()), Duration::ZERO, "the very first query");
        assert_eq!(after(&[1_000_000; 5]).wait(1, limits()), Duration::ZERO, "one a second");
        let mut busy_before = vec![100; 50];
        busy_before.push(60_000_000);
        assert_eq!(after(&busy_before).wait(1, limits()), Duration::ZERO, "the first after a pause");
    }

    #[test]
    fn the_wait_is_as_long_as_the_free_places_take_to_fill_and_never_longer_than_its_limit() {
        let pace = after(&[100; 50]);
        for (here, micros) in [(1, 700), (5, 300), (7, 100), (8, 0), (9, 0)] {
            assert_eq!(pace.wait(here, limits()), Duration::from_micros(micros), "{here}");
        }
        assert_eq!(after(&[1_000; 50]).wait(1, limits()), WAIT);
    }

    #[test]
    fn a_crowd_after_a_pause_is_soon_known_for_one() {
        let quick = |count| after(&[vec![60_000_000], vec![100; count]].concat()).wait(1, limits());
        assert_eq!(quick(5), Duration::ZERO);
        assert!(quick(12) > Duration::ZERO);
    }

    #[test]
    fn without_a_wait_nobody_ever_waits() {
        let none = Limits { wait: Duration::ZERO, ..limits() };
        let mut pace = Pace::default();
        for now in [0, 0, 1, 1] {
            pace.handle_arrival(Duration::from_micros(now), none);
            assert_eq!(pace.wait(1, none), Duration::ZERO);
        }
    }
}
