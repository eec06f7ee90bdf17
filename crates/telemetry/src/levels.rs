//! The quantities that go up and down, as the gateway feeds them: levels, shares of a level, and oldest ages.
//!
//! They are atomics that a scrape reads. Nothing here computes what they mean, and nothing here waits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::Engine;

/// One quantity. Clones share it.
///
/// Either one owner calls [`Level::set`], or many owners each hold a [`Share`] and the level is their sum; not both.
#[derive(Debug, Clone, Default)]
pub struct Level(Arc<AtomicU64>);

impl Level {
    /// Replaces the whole level.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The level now.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A share of the level, 0 at first, that leaves with its holder, also when the holder panics.
    #[must_use]
    pub fn share(&self) -> Share {
        Share { level: self.clone(), held: 0 }
    }

    /// A share of 1, for what is counted by being there: a socket, a conversation.
    #[must_use]
    pub fn one(&self) -> Share {
        let mut share = self.share();
        share.set(1);
        share
    }
}

/// One holder's part of a [`Level`].
#[derive(Debug)]
pub struct Share {
    level: Level,
    held: u64,
}

impl Share {
    /// Replaces this holder's part.
    pub fn set(&mut self, part: u64) {
        // Wrapping, because a smaller part is a negative step; the sum of all parts is never negative.
        self.level.0.fetch_add(part.wrapping_sub(self.held), Ordering::Relaxed);
        self.held = part;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The age of the oldest thing that many holders wait with. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Ages(Arc<Mutex<Since>>);

/// One entry for each holder that waits; holders are conversations, whose number the configuration bounds.
#[derive(Debug, Default)]
struct Since {
    next: u64,
    oldest: BTreeMap<u64, Instant>,
}

impl Ages {
    /// A holder's place, without anything waiting at first.
    #[must_use]
    pub fn watch(&self) -> Watch {
        let mut since = self.lock();
        since.next += 1;
        Watch { ages: self.clone(), key: since.next, oldest: None }
    }

    /// How long the oldest of all has waited at `now`; zero when nothing waits.
    #[must_use]
    pub fn oldest(&self, now: Instant) -> Duration {
        let first = self.lock().oldest.values().min().copied();
        first.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn lock(&self) -> MutexGuard<'_, Since> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One holder's oldest waiting thing. Leaves with its holder.
#[derive(Debug)]
pub struct Watch {
    ages: Ages,
    key: u64,
    oldest: Option<Instant>,
}

impl Watch {
    /// Says since when the holder's oldest thing has waited; `None` when nothing waits. Costs a lock only on a change.
    pub fn set(&mut self, oldest: Option<Instant>) {
        if self.oldest == oldest {
            return;
        }
        self.oldest = oldest;
        let mut since = self.ages.lock();
        match oldest {
            Some(instant) => since.oldest.insert(self.key, instant),
            None => since.oldest.remove(&self.key),
        };
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.set(None);
    }
}

/// The way of the history to the disk.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Rows that are not on disk yet, waiting and being written together.
    pub waiting: Level,
    /// Rows that may wait.
    pub waiting_max: Level,
    /// Writings that failed since the start; only ever rises.
    pub failures: Level,
    /// Rows that were left out since the start; only ever rises.
    pub lost: Level,
}

/// Every level of the service.
#[derive(Debug, Clone, Default)]
pub struct Levels {
    /// Slots waiting in all queues: a [`Share`] a conversation.
    pub queue_slots: Level,
    /// Slots that there are in all queues: a [`Share`] a conversation.
    pub queue_capacity: Level,
    /// Since when the oldest slot waits: a [`Watch`] a conversation.
    pub queue_ages: Ages,
    /// Open sockets: one share each.
    pub sockets: Level,
    /// Live conversations: one share each.
    pub conversations: Level,
    /// Sockets at most.
    pub sockets_max: Level,
    /// Conversations at most.
    pub conversations_max: Level,
    /// 1 while `/readyz` says so, 0 otherwise.
    pub ready: Level,
    /// Queries that may be under way at once.
    pub turns: Level,
    /// Workers that are able to extract.
    pub workers_up: Level,
    /// Workers that the pool was configured with.
    pub workers: Level,
    /// Worker restarts since the start; only ever rises.
    pub worker_restarts: Level,
    /// Enrolled people.
    pub people: Level,
    /// Bytes of the store on disk.
    pub store_bytes: Level,
    /// What of the history is not on disk.
    pub history: History,
    /// What computes the voiceprints.
    pub engine: Engine,
    /// Attempts under way. Kept by the accounts, under their lock.
    pub(crate) open_queries: Level,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_the_sum_of_its_shares_and_a_share_leaves_with_its_holder() {
        let level = Level::default();
        let mut first = level.share();
        let second = level.one();
        first.set(7);
        first.set(3);
        assert_eq!(level.value(), 4);
        drop(second);
        assert_eq!(level.value(), 3);
        drop(first);
        assert_eq!(level.value(), 0);
    }

    #[test]
    fn a_share_leaves_when_its_holder_panics() {
        let level = Level::default();
        let share = level.one();
        let thread = std::thread::spawn(move || {
            let _share = share;
            panic!("the holder dies; the message below is expected");
        });
        assert!(thread.join().is_err());
        assert_eq!(level.value(), 0);
    }

    #[test]
    fn the_oldest_of_all_holders_counts_until_it_leaves() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let ages = Ages::default();
        let (mut first, mut second) = (ages.watch(), ages.watch());
        assert_eq!(ages.oldest(later(9)), Duration::ZERO);
        first.set(Some(later(2)));
        second.set(Some(later(5)));
        assert_eq!(ages.oldest(later(9)), Duration::from_secs(7));
        first.set(None);
        assert_eq!(ages.oldest(later(9)), Duration::from_secs(4));
        drop(second);
        assert_eq!(ages.oldest(later(9)), Duration::ZERO);
    }
}
