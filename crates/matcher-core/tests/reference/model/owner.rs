//! Which voice of a lane is the owner. The nearest is, with whoever is the same person on another stream, when the next is
//! a margin farther; everybody else who claims to be the owner does so in vain.

use crate::reference::mistake::Mistake;
use crate::reference::tally::Rule;

use super::hearing::{GROUPING, MARGIN, distance, owner, vector};
use super::lane::Lane;
use super::receipt::Ruled;

impl Lane {
    /// Positions of the voices that claim the owner in vain.
    pub(crate) fn contended(&self) -> Vec<usize> {
        let claims = |at: &usize| self.claims_owner(*at) && self.competes(*at);
        let claiming: Vec<usize> = (0..self.voices.len()).filter(claims).collect();
        let owners = self.owners();
        claiming.into_iter().filter(|at| !owners.contains(at)).collect()
    }

    fn claims_owner(&self, at: usize) -> bool {
        self.decision(at).is_some_and(|decision| decision.is_accepted && decision.best_is_owner(self.people))
    }

    /// A voice that people rejected is left out, and so is one that never was judged.
    fn competes(&self, at: usize) -> bool {
        let voice = &self.voices[at];
        let is_rejected = self.ruled(voice.name) == Ruled::Rejected;
        if is_rejected && voice.judged.is_some() {
            self.rules.saw(Rule::RejectedLeftOut);
        }
        voice.judged.is_some() && (!is_rejected || self.rules.errs(Mistake::RejectedCompetes))
    }

    /// Who competes for the owner, nearest first, and how far they are.
    fn ranked(&self) -> Vec<(usize, f64)> {
        let Some(owner) = owner(self.people) else { return Vec::new() };
        let mut ranked = Vec::new();
        for at in (0..self.voices.len()).filter(|at| self.competes(*at)) {
            let decision = self.decision(at).expect("who competes was judged");
            let is_another = decision.is_accepted && !decision.best_is_owner(self.people);
            if is_another {
                self.rules.saw(Rule::OtherLeftOut);
            }
            let far = distance(&self.voices[at].judged.expect("who competes was judged"), &vector(owner.sound));
            if far.is_finite() && (!is_another || self.rules.errs(Mistake::OthersCompete)) {
                ranked.push((at, far));
            }
        }
        ranked.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        ranked
    }

    /// Who keeps the owner.
    fn owners(&self) -> Vec<usize> {
        let ranked = self.ranked();
        if self.receipt.is_owner_reserved(&self.rules) {
            self.rules.saw(Rule::OwnerReserved);
            return Vec::new();
        }
        let mut together: Vec<usize> = Vec::new();
        for (at, _) in &ranked {
            if together.iter().all(|member| self.is_same_person(*member, *at)) {
                together.push(*at);
            }
        }
        if together.len() > 1 {
            self.rules.saw(Rule::Grouped);
        }
        let Some((_, nearest)) = ranked.first() else { return Vec::new() };
        let next = ranked.iter().find(|(at, _)| !together.contains(at));
        let is_clear = next.is_none_or(|(_, far)| far - nearest >= MARGIN);
        if is_clear || self.rules.errs(Mistake::NoArbitration) { together } else { Vec::new() }
    }

    fn is_same_person(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.voices[one], &self.voices[other]);
        let are_apart = one.name.1 != other.name.1 && !one.name.1.is_empty() && !other.name.1.is_empty();
        let (Some(a), Some(b)) = (one.judged, other.judged) else { return false };
        (are_apart || self.rules.errs(Mistake::GroupsWithinAStream))
            && distance(&a, &b) < GROUPING
            && !self.rules.errs(Mistake::NoGroups)
    }
}
