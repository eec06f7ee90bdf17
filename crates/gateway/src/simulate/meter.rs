//! What is measured while a scenario runs. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use matcher_core::queue::Tried;
use matcher_core::{Monotonic, Speaker};

use super::voices::Part;

/// One selection, with what was known when it was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Selected {
    pub(super) speaker: Speaker,
    pub(super) part: Part,
    pub(super) tried: Tried,
    pub(super) waited: Duration,
    /// Whether its age put it before everybody.
    pub(super) is_override: bool,
}

impl Selected {
    /// Whether an examined voice was chosen, and not for its age.
    pub(super) fn is_by_preference(&self) -> bool {
        self.tried == Tried::Before && !self.is_override
    }
}

/// What came of a scenario.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    owners: BTreeSet<Speaker>,
    pub(super) updates: u64,
    /// Who was selected, in order.
    pub(super) selected: Vec<Speaker>,
    pub(super) overrides: u64,
    pub(super) denied: u64,
    pub(super) worst_wait: Duration,
    pub(super) worst_first_wait: Duration,
    /// How long each first examination waited for its selection.
    pub(super) first_waits: Vec<Duration>,
    /// When each token was spent.
    pub(super) grants: Vec<Monotonic>,
    /// Tokens by number.
    pub(super) served: BTreeMap<Speaker, u32>,
    /// Who could be examined at some moment.
    pub(super) heard: BTreeSet<Speaker>,
    /// Since when each number waits, as an onlooker sees it, who does not ask the queue for the age of its slots.
    since: BTreeMap<Speaker, Monotonic>,
    /// Who still could be examined when everything was over and every worker free.
    pub(super) forgotten: BTreeSet<Speaker>,
    /// The most attempts that one number had spent at once.
    pub(super) attempts_most: u32,
    /// Tokens that went to voices whose latest verdict was that they are nobody.
    pub(super) on_rejected: u64,
    /// Tokens that went to an examined voice, not for its age, while one never examined could have had them.
    pub(super) passed_over: u64,
    /// Time of workers that stood idle while somebody could be examined.
    pub(super) idle: Duration,
    /// When the owner could first be examined, when they were, and when they had their name.
    pub(super) owner_since: Option<Monotonic>,
    pub(super) owner_examined: Option<Monotonic>,
    pub(super) owner_named: Option<Monotonic>,
    /// Tokens that went to voices examined before, between the first two of these moments.
    pub(super) before_owner: u64,
    /// Tokens since the owner could be examined: the owner's, strangers' and everybody else's.
    pub(super) of_owner: u64,
    pub(super) of_strangers: u64,
    pub(super) of_others: u64,
}

impl Outcome {
    pub(super) fn of(owners: BTreeSet<Speaker>) -> Self {
        Self { owners, ..Self::default() }
    }

    /// Messages were handled, and these numbers can be examined.
    pub(super) fn note_eligible(&mut self, eligible: &BTreeSet<Speaker>, now: Monotonic) {
        if self.owner_since.is_none() && !self.owners.is_disjoint(eligible) {
            self.owner_since = Some(now);
        }
        self.heard.extend(eligible);
    }

    /// These numbers wait now, and nobody else.
    pub(super) fn note_waiting(&mut self, waiting: &BTreeSet<Speaker>, now: Monotonic) {
        self.since.retain(|speaker, _| waiting.contains(speaker));
        for speaker in waiting {
            self.since.entry(*speaker).or_insert(now);
        }
    }

    /// How long a number that is selected has waited.
    pub(super) fn end_wait(&mut self, speaker: Speaker, now: Monotonic) -> Duration {
        self.since.remove(&speaker).map_or(Duration::ZERO, |since| now.since(since))
    }

    /// A voice was selected, whether or not the budget let it be examined.
    pub(super) fn note_selected(&mut self, selected: &Selected) {
        self.selected.push(selected.speaker);
        self.overrides += u64::from(selected.is_override);
        self.worst_wait = self.worst_wait.max(selected.waited);
        if selected.tried == Tried::Never {
            self.worst_first_wait = self.worst_first_wait.max(selected.waited);
        }
    }

    /// A token was spent on it.
    pub(super) fn note_granted(&mut self, selected: &Selected, now: Monotonic) {
        self.grants.push(now);
        *self.served.entry(selected.speaker).or_default() += 1;
        if selected.tried == Tried::Never {
            self.first_waits.push(selected.waited);
        }
        if self.owner_since.is_none() {
            return;
        }
        match selected.part {
            Part::Owner => {
                self.of_owner += 1;
                self.owner_examined = self.owner_examined.or(Some(now));
                return;
            }
            Part::Stranger => self.of_strangers += 1,
            Part::Person => self.of_others += 1,
        }
        if self.owner_examined.is_none() && selected.tried == Tried::Before {
            self.before_owner += 1;
        }
    }

    /// A voice has a name.
    pub(super) fn note_named(&mut self, speaker: Speaker, now: Monotonic) {
        if self.owners.contains(&speaker) {
            self.owner_named = self.owner_named.or(Some(now));
        }
    }

    /// So many workers stood idle for a time, while so many numbers could be examined.
    pub(super) fn note_idle(&mut self, workers: usize, eligible: usize, time: Duration) {
        self.idle += time * u32::try_from(workers.min(eligible)).unwrap_or(u32::MAX);
    }
}
