//! Who a voice is: the gallery of enrolled people, the model's distances, and the decision over them.
//!
//! A decision is a value, and "nobody" is a decision. Owns the comparison of one voice with the gallery; what several
//! voices mean for each other is [`crate::arbitration`].

use std::sync::Arc;

use crate::embedding::{Centroid, Embedding};
use crate::ids::PersonId;

/// The distances at which a model's vectors mean something. They come from the model's manifest; none is computed from
/// another. Cosine distances, 0 to 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// The nearest person is accepted strictly below this.
    pub threshold: f64,
    /// ... when the next one is at least this much farther.
    pub margin: f64,
    /// An owner from the threshold up to, not including, this is a near miss.
    pub near_miss_bound: f64,
    /// A rejected voice whose best print is the owner, below this, is examined before others.
    pub near_owner_bound: f64,
    /// Voices of different scopes below this are one voice.
    pub grouping: f64,
    /// A reconnecting owner is as near as this to what was kept of them.
    pub reconnect: f64,
    /// Whether, and how, pinned people are suggested.
    pub suggestions: Suggestions,
    /// Candidate levels 3, 2 and 1 lie below these.
    pub levels: [f64; 3],
}

/// When a pinned person is suggested whom the evidence does not quite name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Suggestions {
    /// Never.
    Off,
    /// Inside one of two bands.
    On {
        /// From the threshold up to, not including, this, with the full margin.
        bound: f64,
        /// Below the threshold, with at least this much of the margin.
        margin: f64,
    },
}

/// Whether a person is the account's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The owner.
    Owner,
    /// Somebody else.
    Person,
}

/// One enrolled person.
#[derive(Debug, Clone, PartialEq)]
pub struct Print {
    /// Who.
    pub person: PersonId,
    /// The name to show.
    pub name: Arc<str>,
    /// Owner or not.
    pub role: Role,
    /// The voiceprint.
    pub embedding: Embedding,
    /// Whether this person is expected, and suggested where the evidence nearly suffices.
    pub is_pinned: bool,
}

/// The people a lane knows, in enrolment order. Shared by clone.
#[derive(Debug, Clone, Default)]
pub struct Gallery(Arc<[Print]>);

impl Gallery {
    /// The gallery of these people.
    #[must_use]
    pub fn new(prints: Vec<Print>) -> Self {
        Self(prints.into())
    }

    /// Whether nobody is enrolled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The people, in enrolment order.
    pub fn iter(&self) -> impl Iterator<Item = &Print> {
        self.0.iter()
    }

    /// The person at a position that a [`Candidate`] names.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<&Print> {
        self.0.get(index)
    }

    /// The owner, if enrolled.
    #[must_use]
    pub fn owner(&self) -> Option<&Print> {
        self.0.iter().find(|print| print.role == Role::Owner)
    }

    /// Whether the owner is enrolled.
    #[must_use]
    pub fn has_owner(&self) -> bool {
        self.owner().is_some()
    }

    /// The distance of `centroid` to each person of the same vector size; others are ignored.
    #[must_use]
    pub fn distances(&self, centroid: &Centroid) -> Vec<Candidate> {
        let measured = self.0.iter().enumerate().filter_map(|(index, print)| {
            let distance = centroid.distance(&print.embedding)?;
            Some(Candidate { index, role: print.role, distance })
        });
        measured.collect()
    }
}

/// A person and how far the voice is from them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Position in the gallery.
    pub index: usize,
    /// Owner or not.
    pub role: Role,
    /// Cosine distance, may be NaN.
    pub distance: f64,
}

/// What one voice's evidence says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The nearest person, if any distance is a number.
    pub best: Option<Candidate>,
    /// The next distance; infinite when there is none.
    pub runner_up: f64,
    /// Whether the nearest person is the answer.
    pub verdict: Verdict,
}

/// What keeps the nearest person from being the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortfall {
    /// They are too far.
    Far,
    /// The next one is too close to them.
    Close,
}

/// The answer of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The nearest person.
    Accepted,
    /// Nobody who is enrolled.
    Nobody,
}

impl Decision {
    /// Whether the voice is accepted as a person of this role.
    #[must_use]
    pub fn is_accepted_as(&self, role: Role) -> bool {
        self.verdict == Verdict::Accepted && self.best.is_some_and(|best| best.role == role)
    }

    /// How far the runner-up is behind the best.
    #[must_use]
    pub fn gap(&self) -> f64 {
        self.best.map_or(f64::NAN, |best| self.runner_up - best.distance)
    }
}

impl Policy {
    /// Decides over `candidates`. NaN distances are skipped; on a tie the earlier candidate stays first.
    ///
    /// The margin is plain subtraction in double precision: 0.75 − 0.65 lies below 0.10, and fails.
    #[must_use]
    pub fn decide(&self, candidates: &[Candidate]) -> Decision {
        let mut best: Option<Candidate> = None;
        let mut runner_up = f64::INFINITY;
        for candidate in candidates.iter().filter(|candidate| !candidate.distance.is_nan()) {
            match best {
                Some(leader) if candidate.distance >= leader.distance => {
                    runner_up = runner_up.min(candidate.distance);
                }
                Some(leader) => {
                    runner_up = leader.distance;
                    best = Some(*candidate);
                }
                None => best = Some(*candidate),
            }
        }
        let is_accepted = best.is_some_and(|best| self.shortfall(best.distance, runner_up).is_none());
        Decision { best, runner_up, verdict: if is_accepted { Verdict::Accepted } else { Verdict::Nobody } }
    }

    /// What the nearest distance and the next one lack for a name; the next is infinite when there is none.
    #[must_use]
    pub fn shortfall(&self, nearest: f64, runner_up: f64) -> Option<Shortfall> {
        let is_near = nearest < self.threshold;
        let is_apart = runner_up - nearest >= self.margin;
        match (is_near, is_apart) {
            (false, _) => Some(Shortfall::Far),
            (true, false) => Some(Shortfall::Close),
            (true, true) => None,
        }
    }

    /// Whether a decision that nobody contends just missed the owner.
    #[must_use]
    pub fn is_near_miss(&self, decision: &Decision) -> bool {
        decision.verdict == Verdict::Nobody
            && decision.best.is_some_and(|best| {
                best.role == Role::Owner && self.threshold <= best.distance && best.distance < self.near_miss_bound
            })
            && decision.gap() >= self.margin
    }

    /// The pinned person whom a decision that nobody contends nearly named.
    #[must_use]
    pub fn suggestion<'a>(&self, decision: &Decision, gallery: &'a Gallery) -> Option<&'a Print> {
        let Suggestions::On { bound, margin } = self.suggestions else { return None };
        let best = decision.best.filter(|_| decision.verdict == Verdict::Nobody)?;
        let print = gallery.at(best.index).filter(|print| print.is_pinned && print.role == Role::Person)?;
        let is_far = self.threshold <= best.distance && best.distance < bound && decision.gap() >= self.margin;
        let is_close_call = best.distance < self.threshold && (margin..self.margin).contains(&decision.gap());
        (is_far || is_close_call).then_some(print)
    }

    /// How good a candidate at this distance is: 3 (near) to 1 (far), 0 beyond.
    #[must_use]
    pub fn level(&self, distance: f64) -> u8 {
        self.levels.iter().map(|bound| u8::from(distance < *bound)).sum()
    }

    /// Whether a voice that got no name came close enough to the owner to be examined before others. One that claims the
    /// owner in vain is such a voice, too: more of its speech settles the contention.
    #[must_use]
    pub fn is_near_owner(&self, decision: &Decision) -> bool {
        decision.best.is_some_and(|best| best.role == Role::Owner && best.distance < self.near_owner_bound)
    }
}
