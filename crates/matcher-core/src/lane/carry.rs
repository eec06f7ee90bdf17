//! What a rollover brings into a conversation: the owner whose evidence is on the stream that goes on, everybody who
//! competes with them there, and nothing else. Names that people gave come with the receipt.

use std::collections::BTreeSet;

use super::Lane;
use super::reconnect::KeptAt;
use crate::event::{Event, Status, Target};
use crate::ids::{Scope, Speaker};
use crate::memory::{Carried, Carry, CarryReason, Donor, Heard, Memory, NamedBy, Remembered};
use crate::policy::Role;
use crate::queue::Voice;
use crate::receipt::{Receipt, Source, Standing as Ruled, VoiceName};

impl Lane {
    /// Restores what may be carried, and says of each named voice what became of it. The answer is the attempts that go on:
    /// those of carried voices alone.
    pub(crate) fn handle_carried(&mut self, carry: Carry, out: &mut Vec<Event>) -> Vec<(Speaker, u32)> {
        let Carry { generation, scope, memory, attempts, donor } = carry;
        let is_current = generation == self.generation;
        if is_current && memory.is_kept {
            self.kept.get_or_insert(KeptAt::BEFORE);
        }
        let gate = if is_current { self.gate(&memory, &scope) } else { Err(CarryReason::StaleGeneration) };
        let (candidates, mut told) = self.candidates(&memory, &scope, &donor, gate);
        if let (false, Donor::Read(receipt)) = (candidates.is_empty(), &donor) {
            let on_stream = memory.voices.into_iter().filter(|voice| voice.name.scope == scope && voice.row.is_some());
            told.extend(self.restore_all(on_stream, &candidates, receipt, out));
        }
        let kept: Vec<Speaker> = self.carried_by_people(&scope, generation).chain(carried_in(&told)).collect();
        let lane = self.id;
        out.extend(told.into_iter().map(|(speaker, carried, target, reason)| Event::RolledOver {
            lane,
            speaker,
            carried,
            target,
            reason,
        }));
        self.go_on(attempts.into_iter().filter(|(speaker, _)| kept.contains(speaker)))
    }

    /// Candidates and those who compete with them, and then what became of the candidates.
    fn restore_all(
        &mut self,
        voices: impl Iterator<Item = Remembered>,
        candidates: &[VoiceName],
        donor: &Receipt,
        out: &mut Vec<Event>,
    ) -> Told {
        let (mut restored, mut told) = (Vec::new(), Told::new());
        for voice in voices {
            let is_candidate = candidates.contains(&voice.name);
            match self.bring(voice, is_candidate, donor) {
                Some(Ok(voice)) => restored.push(voice),
                Some(Err((reason, speaker))) => told.push((speaker, Carried::Nothing, Target::Owner, reason)),
                None => {}
            }
        }
        self.publish(out);
        for voice in restored {
            let (carried, reason) = self.became_of(voice);
            if carried == Carried::Nothing {
                self.forget_ground(voice);
            }
            told.push((voice.speaker, carried, Target::Owner, reason));
        }
        told
    }

    /// These attempts stay spent.
    fn go_on(&mut self, attempts: impl Iterator<Item = (Speaker, u32)>) -> Vec<(Speaker, u32)> {
        let spent = self.with_room(attempts);
        for (speaker, attempts) in &spent {
            let held = self.attempts.entry(*speaker).or_default();
            *held = (*held).max(*attempts);
        }
        spent
    }

    /// The attempts of numbers that are here, or find room: the ledger holds no more numbers than the lane.
    fn with_room(&self, attempts: impl Iterator<Item = (Speaker, u32)>) -> Vec<(Speaker, u32)> {
        let numbers: BTreeSet<Speaker> = self.voices.keys().map(|voice| voice.speaker).collect();
        let room = self.limits.voices_max.get().saturating_sub(numbers.len());
        let (here, elsewhere): (Vec<_>, Vec<_>) = attempts.partition(|(speaker, _)| numbers.contains(speaker));
        here.into_iter().chain(elsewhere.into_iter().take(room)).collect()
    }

    /// Why nothing of a whole memory can be carried by evidence.
    fn gate(&self, memory: &Memory, scope: &Scope) -> Result<(), CarryReason> {
        let owner = self.gallery.owner().ok_or(CarryReason::ProfileUnavailable)?;
        if memory.owner.as_ref() != Some(&owner.embedding) {
            return Err(CarryReason::ProfileChanged);
        }
        if self.current.as_ref().is_some_and(|current| current != scope) {
            return Err(CarryReason::ScopeChanged);
        }
        Ok(())
    }

    /// The voices that may be carried by their evidence, and the others' reasons.
    fn candidates(
        &self,
        memory: &Memory,
        scope: &Scope,
        donor: &Donor,
        gate: Result<(), CarryReason>,
    ) -> (Vec<VoiceName>, Told) {
        let (mut candidates, mut told) = (Vec::new(), Told::new());
        for voice in memory.voices.iter().filter(|voice| voice.identity.is_some()) {
            let speaker = voice.name.speaker;
            if voice.named_by == NamedBy::People {
                told.push(self.told_by_people(voice));
                continue;
            }
            match classify(voice, scope, donor).and(gate) {
                Ok(()) => candidates.push(voice.name.clone()),
                Err(reason) => told.push((speaker, Carried::Nothing, target(voice), reason)),
            }
        }
        (candidates, told)
    }

    fn told_by_people(&self, voice: &Remembered) -> (Speaker, Carried, Target, CarryReason) {
        let (carried, reason) = match self.receipt.standing(&voice.name) {
            Ruled::Named(_, Source::Carried) => (Carried::Manual, CarryReason::Manual),
            Ruled::Named(_, Source::Here) | Ruled::Free | Ruled::Rejected | Ruled::Nobody | Ruled::Silenced => {
                (Carried::Nothing, CarryReason::ManualNotCopied)
            }
        };
        (voice.name.speaker, carried, target(voice), reason)
    }

    /// Restores a candidate or a competitor; `None` for a competitor that does not compete here.
    fn bring(
        &mut self,
        remembered: Remembered,
        is_candidate: bool,
        donor: &Receipt,
    ) -> Option<Result<Voice, (CarryReason, Speaker)>> {
        let speaker = remembered.name.speaker;
        let standing = self.receipt.standing(&remembered.name);
        let is_decided = !standing.is_free() || self.receipt.is_owner_reserved();
        let refusal = if is_candidate && is_decided {
            Some(CarryReason::ManualOverride)
        } else if self.has_evidence(&remembered.name) {
            Some(CarryReason::CurrentEvidence)
        } else {
            None
        };
        if let Some(reason) = refusal {
            return is_candidate.then_some(Err((reason, speaker)));
        }
        if standing == Ruled::Rejected || donor.standing(&remembered.name) == Ruled::Rejected {
            return None;
        }
        let covered = remembered.covered.clone();
        let heard = if is_candidate { Heard::Before } else { Heard::Competing };
        match self.restore(remembered, heard) {
            Ok(voice) => {
                self.queue.handle_covered(voice, &covered);
                self.demote_unless_owner(voice);
                is_candidate.then_some(Ok(voice))
            }
            Err(_) => is_candidate.then_some(Err((CarryReason::VoiceCapacity, speaker))),
        }
    }

    fn has_evidence(&self, name: &VoiceName) -> bool {
        let known =
            self.voices.iter().find(|(voice, _)| voice.speaker == name.speaker && *self.scope(**voice) == name.scope);
        known.is_some_and(|(_, record)| record.row.is_some() || record.evidence.samples() > 0)
    }

    /// A candidate that today's people do not make the owner goes on as a competitor, with no evidence of its own.
    fn demote_unless_owner(&mut self, voice: Voice) {
        let clips_kept = self.limits.clips_kept;
        let Some(record) = self.voices.get_mut(&voice) else { return };
        let is_owner = record.row.as_ref().is_some_and(|row| row.decision.is_accepted_as(Role::Owner));
        if !is_owner && record.heard == Heard::Before {
            record.heard = Heard::Competing;
            record.evidence = crate::evidence::Evidence::new(clips_kept);
            if let Some(row) = &mut record.row {
                row.decision.verdict = crate::policy::Verdict::Nobody;
            }
        }
    }

    fn became_of(&self, voice: Voice) -> (Carried, CarryReason) {
        let record = self.voices.get(&voice).expect("a restored voice has a record");
        if record.status == Some(Status::User) {
            return (Carried::Automatic, CarryReason::Automatic);
        }
        let reason = match (&record.ground, record.heard) {
            (_, Heard::Before | Heard::Here) => CarryReason::OwnerContended,
            (Some(ground), Heard::Competing) if !self.carries(ground) => CarryReason::DonorAuthority,
            (_, Heard::Competing) => CarryReason::VoiceprintRejected,
        };
        (Carried::Nothing, reason)
    }

    /// Numbers whose names people gave in the conversation before.
    fn carried_by_people<'a>(
        &'a self,
        scope: &'a Scope,
        generation: crate::ids::Generation,
    ) -> impl Iterator<Item = Speaker> + 'a {
        let entries = self.receipt.voices().filter(move |(voice, entry)| {
            generation == self.generation && voice.scope == *scope && entry.source == Source::Carried
        });
        entries.map(|(voice, _)| voice.speaker)
    }
}

/// What is told of each named voice.
type Told = Vec<(Speaker, Carried, Target, CarryReason)>;

fn carried_in(told: &Told) -> impl Iterator<Item = Speaker> + '_ {
    told.iter().filter(|(_, carried, ..)| *carried == Carried::Automatic).map(|(speaker, ..)| *speaker)
}

fn target(voice: &Remembered) -> Target {
    if voice.status == Some(Status::User) { Target::Owner } else { Target::Person }
}

/// Whether the conversation before lets a voice go, in the order in which the reasons are told.
fn classify(voice: &Remembered, scope: &Scope, donor: &Donor) -> Result<(), CarryReason> {
    if voice.status != Some(Status::User) {
        return Err(CarryReason::NonOwner);
    }
    if scope.as_str().is_empty() {
        return Err(CarryReason::NoScope);
    }
    let receipt = match donor {
        Donor::Unavailable => return Err(CarryReason::DonorUnavailable),
        Donor::Deleted => return Err(CarryReason::DonorIneligible),
        Donor::Read(receipt) => receipt,
    };
    if voice.name.scope != *scope {
        return Err(CarryReason::ScopeChanged);
    }
    if receipt.is_owner_reserved() || !receipt.standing(&voice.name).is_free() {
        return Err(CarryReason::ManualOverride);
    }
    let is_owner = voice.row.as_ref().is_some_and(|(_, decision)| decision.is_accepted_as(Role::Owner));
    if !is_owner || voice.evidence.samples() == 0 { Err(CarryReason::NoEvidence) } else { Ok(()) }
}
