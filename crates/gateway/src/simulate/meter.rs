//! What is measured while a scenario runs. Decides nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use matcher_core::{Monotonic, Speaker};

use super::voices::{OWNER, is_stranger};

/// Whether a number was examined before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tried {
    Never,
    Before,
}

/// One selection, with what was known when it was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Selected {
    pub(super) speaker: Speaker,
    pub(super) tried: Tried,
    pub(super) waited: Duration,
    /// Whether its age put it before everybody.
    pub(super) is_override: bool,
}

/// What came of a scenario.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) updates: u64,
    pub(super) selections: u64,
    pub(super) overrides: u64,
    pub(super) denied: u64,
    pub(super) worst_wait: Duration,
    pub(super) worst_first_wait: Duration,
    /// When each token was spent.
    pub(super) grants: Vec<Monotonic>,
    /// The most attempts of one number.
    pub(super) attempts_most: u32,
    /// Tokens that went to voices whose latest verdict was that they are nobody.
    pub(super) on_rejected: u64,
    /// Tokens that went to an examined voice, not for its age, while one never examined could have had them.
    pub(super) passed_over: u64,
    /// Time of workers that stood idle while somebody could be examined.
    pub(super) idle: Duration,
    /// When the owner could first be examined, and when they were.
    pub(super) owner_since: Option<Monotonic>,
    pub(super) owner_examined: Option<Monotonic>,
    /// Tokens that went to voices examined before, between these two moments.
    pub(super) before_owner: u64,
    /// Tokens since the owner could be examined: the owner's, strangers' and everybody else's.
    pub(super) of_owner: u64,
    pub(super) of_strangers: u64,
    pub(super) of_others: u64,
}

impl Outcome {
    /// Messages were handled, and these numbers can be examined.
    pub(super) fn note_eligible(&mut self, eligible: &BTreeSet<Speaker>, now: Monotonic) {
        if self.owner_since.is_none() && eligible.contains(&Speaker(OWNER)) {
            self.owner_since = Some(now);
        }
    }

    /// A voice was selected, whether or not the budget let it be examined.
    pub(super) fn note_selected(&mut self, selected: &Selected) {
        self.selections += 1;
        self.overrides += u64::from(selected.is_override);
        self.worst_wait = self.worst_wait.max(selected.waited);
        if selected.tried == Tried::Never {
            self.worst_first_wait = self.worst_first_wait.max(selected.waited);
        }
    }

    /// A token was spent on it, while an untried voice was eligible or not.
    pub(super) fn note_granted(&mut self, selected: &Selected, untried_waits: bool, now: Monotonic) {
        self.grants.push(now);
        if selected.tried == Tried::Before && !selected.is_override {
            self.passed_over += u64::from(untried_waits);
        }
        if self.owner_since.is_none() {
            return;
        }
        if selected.speaker == Speaker(OWNER) {
            self.of_owner += 1;
            self.owner_examined = self.owner_examined.or(Some(now));
            return;
        }
        if is_stranger(selected.speaker) {
            self.of_strangers += 1;
        } else {
            self.of_others += 1;
        }
        if self.owner_examined.is_none() && selected.tried == Tried::Before {
            self.before_owner += 1;
        }
    }

    /// So many workers stood idle for a time, while so many numbers could be examined.
    pub(super) fn note_idle(&mut self, workers: usize, eligible: usize, time: Duration) {
        self.idle += time * u32::try_from(workers.min(eligible)).unwrap_or(u32::MAX);
    }
}
