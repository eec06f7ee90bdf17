//! One key's account at the places: what it wants, what it has had, and where that puts it. Who else waits is not known
//! here.

use std::num::NonZeroU16;
use std::time::Duration;

use super::LOAN;

/// Audio that a key has had, divided by its weight.
pub(super) type Share = Duration;

/// What a key wants. Clips nobody has chosen yet, so only counts are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// Queries for voices that were never examined.
    pub firsts: usize,
    /// Other queries.
    pub repeats: usize,
    /// Its share relative to others'.
    pub weight: NonZeroU16,
}

impl Wish {
    /// Nothing.
    pub const NOTHING: Self = Self::new(0, 0);

    /// So many of each, with weight one.
    #[must_use]
    pub const fn new(firsts: usize, repeats: usize) -> Self {
        Self { firsts, repeats, weight: NonZeroU16::MIN }
    }

    /// The same with another weight.
    #[must_use]
    pub const fn weighing(self, weight: NonZeroU16) -> Self {
        Self { weight, ..self }
    }

    pub(super) const fn is_nothing(&self) -> bool {
        self.firsts == 0 && self.repeats == 0
    }

    const fn kind(&self) -> Kind {
        if self.firsts > 0 { Kind::First } else { Kind::Repeat }
    }
}

/// What a key would use its next place for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    First,
    Repeat,
}

/// Whether a key that waits was given a place since it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Fresh,
    Served,
}

/// Where a key stands among those who wait: the least goes first. The arrival makes ties first come, first served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Fresh(Kind, u64),
    Served(Share, u64),
}

/// See the module's text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    pub(super) wish: Wish,
    pub(super) share: Share,
    standing: Standing,
    arrived: u64,
}

impl Account {
    /// An account that begins where those who have had least are.
    pub(super) const fn new(least: Share) -> Self {
        Self { wish: Wish::NOTHING, share: least, standing: Standing::Served, arrived: 0 }
    }

    /// Its key comes to wait.
    pub(super) fn arrive(&mut self, least: Share, arrived: u64) {
        self.standing = if self.share <= least { Standing::Fresh } else { Standing::Served };
        self.share = self.share.max(least);
        self.arrived = arrived;
    }

    /// Its key is given a place. Which query it is for is decided later; a first try is what the conversation wants most.
    pub(super) fn serve(&mut self) {
        let wanted = match self.wish.kind() {
            Kind::First => &mut self.wish.firsts,
            Kind::Repeat => &mut self.wish.repeats,
        };
        *wanted = wanted.checked_sub(1).expect("only a key that wants a place is given one");
    }

    /// Its key has had `audio` more: it is fresh no more, unless that was little enough to owe nothing.
    pub(super) fn charge(&mut self, audio: Duration, least: Share) {
        self.share += audio / u32::from(self.wish.weight.get());
        if self.share > least {
            self.standing = Standing::Served;
        }
    }

    pub(super) fn rank(&self) -> Rank {
        match (self.standing, self.wish.kind()) {
            (Standing::Fresh, kind) => Rank::Fresh(kind, self.arrived),
            (Standing::Served, Kind::First) => Rank::Served(self.share, self.arrived),
            (Standing::Served, Kind::Repeat) => Rank::Served(self.share + LOAN, self.arrived),
        }
    }
}
