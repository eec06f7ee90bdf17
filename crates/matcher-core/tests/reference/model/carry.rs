//! What a rollover brings: the owner, with whoever competes for them, and of each voice that had a name what became of it.

use std::collections::BTreeMap;

use matcher_core::{Carried, CarryReason, Status, Target};

use crate::reference::mistake::Mistake;
use crate::reference::moves::About;
use crate::reference::tally::Rule;
use crate::reference::words::{Name, Told};

use super::Word;
use super::hearing::owner;
use super::keepsake::InStore;
use super::lane::Lane;
use super::memory::{Memory, unheard};
use super::receipt::{Receipt, Ruled};
use super::voice::{Ground, Heard, Voice};

/// What a rollover brings.
pub(crate) struct Carry {
    pub(crate) generation: u64,
    pub(crate) scope: &'static str,
    pub(crate) memory: Memory,
    pub(crate) attempts: BTreeMap<u32, u32>,
    pub(crate) word: Word,
}

/// What became of one named voice.
type Fate = (Name, Carried, Target, CarryReason);

impl Lane {
    /// A rollover's word came: who may come along does, and of each voice that had a name it is told what became of it.
    pub(crate) fn carried(&mut self, carry: Carry) -> (Vec<Told>, Vec<(u32, u32)>) {
        if carry.memory.is_kept && carry.generation == self.generation && self.kept == InStore::Nothing {
            self.rules.saw(Rule::KeptFromBefore);
            self.kept = InStore::FromBefore;
        }
        let mut fates: Vec<Fate> = Vec::new();
        let mut candidates: Vec<Name> = Vec::new();
        for voice in carry.memory.voices.iter().filter(|voice| voice.identity().is_some()) {
            let was_owner = voice.status() == Some(Status::User);
            let target = if was_owner { Target::Owner } else { Target::Person };
            if carry.memory.by_people.contains(&voice.name) {
                let is_copied = matches!(self.ruled(voice.name), Ruled::Named(_, true));
                let manual = (Carried::Manual, CarryReason::Manual);
                let (carried, reason) =
                    if is_copied { manual } else { (Carried::Nothing, CarryReason::ManualNotCopied) };
                fates.push((voice.name, carried, target, reason));
            } else if let Some(reason) = self.refusal(voice, &carry) {
                fates.push((voice.name, Carried::Nothing, target, reason));
            } else {
                candidates.push(voice.name);
            }
        }
        let mut out = Vec::new();
        if !candidates.is_empty() {
            out = self.bring(&candidates, &carry, &mut fates);
        }
        for (name, carried, target, reason) in &fates {
            self.saw_fate(*reason);
            let (lane, speaker) = (self.id, name.0);
            out.push(Told::RolledOver { lane, speaker, carried: *carried, target: *target, reason: *reason });
        }
        (out, self.attempts_that_go_on(&carry, &fates))
    }

    /// Why a voice may not come along, by what it was and by what holds for all of them.
    fn refusal(&self, voice: &Voice, carry: &Carry) -> Option<CarryReason> {
        let rules = &self.rules;
        if voice.status() != Some(Status::User) && !rules.errs(Mistake::CarryTakesEverybody) {
            return Some(CarryReason::NonOwner);
        }
        if carry.scope.is_empty() {
            return Some(CarryReason::NoScope);
        }
        let receipt = match &carry.word {
            Word::Unavailable => return Some(CarryReason::DonorUnavailable),
            Word::Deleted => return Some(CarryReason::DonorIneligible),
            Word::Read(receipt) => receipt,
        };
        if voice.name.1 != carry.scope && !rules.errs(Mistake::CarryIgnoresTheScope) {
            return Some(CarryReason::ScopeChanged);
        }
        if is_overridden(voice.name, receipt, self) && !rules.errs(Mistake::CarryIgnoresARejection) {
            return Some(CarryReason::ManualOverride);
        }
        if voice.clips.is_empty() || voice.judged.is_none() {
            return Some(CarryReason::NoEvidence);
        }
        if carry.generation != self.generation {
            return Some(CarryReason::StaleGeneration);
        }
        let Some(owner) = owner(self.people) else { return Some(CarryReason::ProfileUnavailable) };
        if carry.memory.owner != Some(owner.sound) && !rules.errs(Mistake::CarryIgnoresThePrint) {
            return Some(CarryReason::ProfileChanged);
        }
        let is_over = self.current.is_some_and(|current| current != carry.scope);
        is_over.then(|| self.rules.saw(Rule::ScopeChangedMeanwhile)).map(|()| CarryReason::ScopeChanged)
    }

    /// The candidates, and everybody with evidence on their stream, who competes with them.
    fn bring(&mut self, candidates: &[Name], carry: &Carry, fates: &mut Vec<Fate>) -> Vec<Told> {
        let Word::Read(donor) = &carry.word else { return Vec::new() };
        let mut brought: Vec<Name> = Vec::new();
        for voice in carry.memory.voices.iter().filter(|voice| voice.judged.is_some()) {
            let is_candidate = candidates.contains(&voice.name);
            if let Some(reason) = self.refusal_here(voice, is_candidate) {
                if is_candidate {
                    fates.push((voice.name, Carried::Nothing, Target::Owner, reason));
                }
                continue;
            }
            let is_rejected = |receipt: &Receipt| receipt.ruled(voice.name, &self.rules) == Ruled::Rejected;
            let is_left_behind = is_rejected(&self.receipt) || is_rejected(donor) || voice.name.1 != carry.scope;
            let is_forgotten = self.rules.errs(Mistake::CarryForgetsCompetitors);
            if is_candidate || !is_left_behind && !is_forgotten {
                self.bring_one(voice, is_candidate);
                brought.push(voice.name);
            }
        }
        let (out, _) = self.publish();
        for name in brought.into_iter().filter(|name| candidates.contains(name)) {
            fates.push(self.fate(name));
        }
        out
    }

    fn refusal_here(&self, voice: &Voice, is_candidate: bool) -> Option<CarryReason> {
        if is_candidate && is_overridden(voice.name, &self.receipt, self) {
            self.rules.saw(Rule::ManualOverrideHere);
            return Some(CarryReason::ManualOverride);
        }
        let known = &self.voices[self.find(voice.name)?];
        let has_evidence = known.judged.is_some() || !known.clips.is_empty();
        (has_evidence && !self.rules.errs(Mistake::CarryIgnoresEvidenceHere)).then_some(CarryReason::CurrentEvidence)
    }

    /// Whoever is not the owner by the people of today only competes, with how they sounded and no evidence of their own.
    fn bring_one(&mut self, voice: &Voice, is_candidate: bool) {
        let at = self.find_or_add(voice.name);
        let here = &self.voices[at];
        if here.segment.is_some() {
            self.rules.saw(Rule::CarriedWhileHeardHere);
        }
        let (is, told, segment, observed) = (here.is, here.told, here.segment, here.observed);
        let heard = if is_candidate { Heard::Before } else { Heard::Competing };
        self.voices[at] = Voice { heard, is, told, segment, observed, ..unheard(voice) };
        let decision = self.decision(at).expect("who is brought was judged");
        if !decision.is_accepted || !decision.best_is_owner(self.people) {
            self.rules.saw(Rule::CompetitorBrought);
            self.voices[at].heard = Heard::Competing;
            self.voices[at].clips.clear();
        }
    }

    fn fate(&mut self, name: Name) -> Fate {
        let at = self.find(name).expect("the voice was brought");
        let voice = &self.voices[at];
        if voice.status() == Some(Status::User) {
            return (name, Carried::Automatic, Target::Owner, CarryReason::Automatic);
        }
        let is_unfounded = |ground: Ground| !self.holds(&ground);
        let reason = if voice.heard != Heard::Competing {
            CarryReason::OwnerContended
        } else if voice.ground.is_some_and(is_unfounded) {
            CarryReason::DonorAuthority
        } else {
            CarryReason::VoiceprintRejected
        };
        self.voices[at].ground = None;
        (name, Carried::Nothing, Target::Owner, reason)
    }

    /// The attempts of voices whose names came along.
    fn attempts_that_go_on(&self, carry: &Carry, fates: &[Fate]) -> Vec<(u32, u32)> {
        let by_evidence = |speaker: u32| fates.iter().any(|fate| fate.0.0 == speaker && fate.1 == Carried::Automatic);
        let by_people = |speaker: u32| {
            let name = (speaker, carry.scope);
            let edits = self.receipt.edits.iter();
            let mut wide = edits.filter(|edit| edit.voice == name && edit.about == About::Voice);
            carry.generation == self.generation && wide.next_back().is_some_and(|edit| edit.is_carried)
        };
        let all = self.rules.errs(Mistake::AllAttemptsGoOn);
        let goes_on = |(speaker, _): &(u32, u32)| all || by_evidence(*speaker) || by_people(*speaker);
        let attempts: Vec<_> = carry.attempts.clone().into_iter().filter(goes_on).collect();
        attempts.iter().for_each(|_| self.rules.saw(Rule::AttemptsGoOn));
        attempts
    }

    fn saw_fate(&self, reason: CarryReason) {
        self.rules.saw(match reason {
            CarryReason::Manual => Rule::CarriedManual,
            CarryReason::ManualNotCopied => Rule::ManualNotCopied,
            CarryReason::NonOwner => Rule::NonOwner,
            CarryReason::NoScope => Rule::NoScope,
            CarryReason::DonorUnavailable => Rule::DonorUnavailable,
            CarryReason::DonorIneligible => Rule::DonorIneligible,
            CarryReason::ScopeChanged => Rule::ScopeChanged,
            CarryReason::ManualOverride => Rule::ManualOverride,
            CarryReason::StaleGeneration => Rule::StaleGeneration,
            CarryReason::ProfileUnavailable => Rule::ProfileUnavailable,
            CarryReason::ProfileChanged => Rule::ProfileChanged,
            CarryReason::CurrentEvidence => Rule::CurrentEvidence,
            CarryReason::Automatic => Rule::CarriedAutomatic,
            CarryReason::OwnerContended => Rule::OwnerContended,
            CarryReason::DonorAuthority => Rule::CarryDonorAuthority,
            CarryReason::VoiceprintRejected => Rule::VoiceprintRejected,
            CarryReason::NoEvidence | CarryReason::VoiceCapacity => {
                unreachable!("a name has evidence, and voices are few")
            }
        });
    }
}

/// Whether people decided about a voice, or said who the owner is.
fn is_overridden(name: Name, receipt: &Receipt, lane: &Lane) -> bool {
    receipt.is_owner_reserved(&lane.rules) || receipt.ruled(name, &lane.rules) != Ruled::Free
}
