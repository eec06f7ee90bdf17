//! Pseudo-random numbers that are the same everywhere. Good enough to scatter moments, and for nothing else.

use std::time::Duration;

/// SplitMix64: any seed is a good one.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A whole number of milliseconds, both ends included.
    pub(super) const fn millis(&mut self, (least, most): (u64, u64)) -> Duration {
        Duration::from_millis(least + self.below(most - least + 1))
    }

    /// One of several.
    pub(super) fn one_of(&mut self, several: &[u32]) -> u32 {
        let index = usize::try_from(self.below(several.len() as u64)).unwrap_or(0);
        several.get(index).copied().expect("there is something to choose from")
    }
}
