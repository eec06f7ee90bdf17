//! Whose turn it is: a fixed number of places, given round-robin to those who want one. No lock, no callback, no clock.
//!
//! One round gives each key that wants something one place, so a key that wants a thousand delays one that wants a single
//! one by no more than a key that wants two does. A place given is out until [`Turns::handle_returned`], also when its
//! key has left meanwhile.

use std::collections::{BTreeMap, VecDeque};

/// Places and those who want them.
#[derive(Debug, Clone)]
pub struct Turns<K> {
    capacity: usize,
    out: usize,
    wanted: BTreeMap<K, usize>,
    /// Keys that want a place, each once; the one in front is next.
    round: VecDeque<K>,
}

impl<K: Ord + Copy> Turns<K> {
    /// `capacity` places, all free.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, out: 0, wanted: BTreeMap::new(), round: VecDeque::new() }
    }

    /// `key` wants `count` further places, besides those it has. An absolute number: saying it twice changes nothing. A
    /// key that already stands in the round keeps its place in it.
    pub fn handle_wanted(&mut self, key: K, count: usize) {
        if count == 0 {
            self.handle_left(key);
        } else if self.wanted.insert(key, count).is_none() {
            self.round.push_back(key);
        }
    }

    /// A place came back.
    ///
    /// # Panics
    /// When more come back than were given: somebody counts wrongly, and going on would give too many.
    pub fn handle_returned(&mut self) {
        assert!(self.out > 0, "a place came back that was never given");
        self.out -= 1;
    }

    /// `key` wants nothing any more. The places it has come back one by one.
    pub fn handle_left(&mut self, key: K) {
        if self.wanted.remove(&key).is_some() {
            self.round.retain(|other| *other != key);
        }
    }

    /// Gives the next place, if one is free and wanted.
    pub fn poll_grant(&mut self) -> Option<K> {
        if self.out >= self.capacity {
            return None;
        }
        let key = self.round.pop_front()?;
        let left = self.wanted.remove(&key).expect("a key stands in the round exactly while it wants something") - 1;
        if left > 0 {
            self.wanted.insert(key, left);
            self.round.push_back(key);
        }
        self.out += 1;
        Some(key)
    }

    /// Places given and not yet returned.
    #[must_use]
    pub fn out(&self) -> usize {
        self.out
    }

    /// Keys that want a place.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.round.len()
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
