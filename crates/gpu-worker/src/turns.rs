//! Whose turn it is: a fixed number of places, given in fair shares of audio to those who want one. No lock, no callback,
//! no clock.
//!
//! Each key has an account of the audio that its turns used, divided by its weight. Who has had least goes first, so over
//! any stretch of time keys that want more than there is get audio in proportion to their weights, however long their
//! clips are. What a turn will use is not known when it is given: it is charged [`COST_MIN`] at once, and the rest when
//! its clip is chosen.
//!
//! ```text
//!             wants, owes nothing            a place            wants nothing
//!  (account) ─────────────────────▶ fresh ───────────▶ served ─────────────────▶ (account)
//!       └──────────── wants, and had more than others ────▲
//! ```
//! - Fresh keys go before served ones. A key is fresh when it comes while nobody who waits has had less, and until it is
//!   given a place; so who asks for less than a share waits for one turn of each other such key at most, and never
//!   behind those who ask for more. Waiting elsewhere does not make fresh: an account stands while its key is idle.
//! - First tries go before repeats: among the fresh always, among the served until they have brought their key [`LOAN`]
//!   ahead of those who wait with repeats. The loan is on the account, and is paid back in turns not given.
//! - Idleness gains nothing: an account that lags is lifted to the least of those who wait. Places nobody else wanted
//!   cost nothing: when all have what they want, nobody owes.
//!
//! The bound, in every window that begins when a key comes to wait or is given a place, and ends at its next place:
//! another key of weight `w` is given at most `⌊(owed + loan) × w ÷ COST_MIN⌋ + 1` places in it, where `owed` is how far
//! the first key's account is ahead of the least that waited when the window began, and `loan` is [`LOAN`] for a repeat
//! and nothing for a first try. A fresh key owes nothing and waits for one place of each. Keys that leave and come again
//! under another name count as others.

mod account;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use account::{Account, Rank, Share};

pub use account::Wish;

/// What a turn costs at least, also one that is given back unused, so that who asks in vain does not stay in front. Half
/// a second: no shorter clip is sent to a model unless somebody configures it.
pub const COST_MIN: Duration = Duration::from_millis(500);

/// How much more audio than its share a key may have had and still go before repeats with its first tries. Four seconds,
/// two first clips: where five conversations burst with first tries (`rollcall bench fairness`), one that asks for two
/// repeats in one moment waits at the 99th percentile 1.3 to 2.5 times as long as alone, and up to 4 times with ten.
pub const LOAN: Duration = Duration::from_secs(4);

/// Places and those who want them.
#[derive(Debug, Clone)]
pub struct Turns<K> {
    capacity: usize,
    out: usize,
    /// Bounded by those who have not left.
    accounts: BTreeMap<K, Account>,
    /// Keys that want a place, the next one first.
    order: BTreeSet<(Rank, K)>,
    /// The same keys, the one that has had least first.
    shares: BTreeSet<(Share, K)>,
    /// The least share of those who waited when a place was last given. It never falls.
    least: Share,
    /// The greatest share that anybody ever had.
    most: Share,
    arrivals: u64,
}

impl<K: Ord + Copy> Turns<K> {
    /// `capacity` places, all free.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            out: 0,
            accounts: BTreeMap::new(),
            order: BTreeSet::new(),
            shares: BTreeSet::new(),
            least: Share::ZERO,
            most: Share::ZERO,
            arrivals: 0,
        }
    }

    /// What `key` wants besides the places it has. Absolute: saying it twice changes nothing. A key that waits already
    /// keeps its standing.
    pub fn handle_wanted(&mut self, key: K, wish: Wish) {
        let mut account = self.lift(key).unwrap_or_else(|| Account::new(self.least));
        if account.wish.is_nothing() {
            account.arrive(self.least, self.arrivals);
            self.arrivals += 1;
        }
        account.wish = wish;
        self.place(key, account);
    }

    /// A turn of `key` uses `audio` more than it was charged so far.
    pub fn handle_charged(&mut self, key: K, audio: Duration) {
        if let Some(mut account) = self.lift(key) {
            account.charge(audio, self.least);
            self.place(key, account);
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

    /// `key` wants nothing any more, and its account is closed. The places it has come back one by one.
    pub fn handle_left(&mut self, key: K) {
        self.lift(key);
    }

    /// Gives the next place, if one is free and wanted.
    pub fn poll_grant(&mut self) -> Option<K> {
        if self.out >= self.capacity {
            return None;
        }
        let (Some((_, key)), Some((least, _))) = (self.order.first().copied(), self.shares.first().copied()) else {
            // All have what they want. What they had beyond their share was nobody else's.
            self.least = self.least.max(self.most);
            return None;
        };
        self.least = self.least.max(least);
        let mut account = self.lift(key).expect("a key that waits has an account");
        account.serve();
        account.charge(COST_MIN, self.least);
        self.place(key, account);
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
        self.order.len()
    }

    /// Takes an account out, and its key from among those who wait.
    fn lift(&mut self, key: K) -> Option<Account> {
        let account = self.accounts.remove(&key)?;
        self.order.remove(&(account.rank(), key));
        self.shares.remove(&(account.share, key));
        Some(account)
    }

    fn place(&mut self, key: K, account: Account) {
        self.most = self.most.max(account.share);
        if !account.wish.is_nothing() {
            self.order.insert((account.rank(), key));
            self.shares.insert((account.share, key));
        }
        self.accounts.insert(key, account);
    }
}

#[cfg(test)]
mod tests;
