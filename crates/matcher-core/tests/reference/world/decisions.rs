//! What people decide, kept as a store keeps it: every receipt since the first, of which a scheduler may know an older one.

use std::collections::BTreeMap;
use std::sync::Arc;

use matcher_core::receipt::{
    Correction, Entry, Named, Rejection, Ruling, SegmentEntry, Source, Standing, Subject, VoiceName,
};
use matcher_core::{Donor, LaneId, PersonId, Receipt, Role, SegmentId, Speaker};

use super::{Difference, World};
use crate::reference::model::Word;
use crate::reference::model::receipt::{Edit, Ruled};
use crate::reference::moves::{About, Asked, Says};
use crate::reference::words::{Name, SCOPES, SPEAKERS};

impl World {
    pub(super) fn correct(
        &mut self,
        at: usize,
        edits: &[(Name, About, Says)],
        is_told: bool,
    ) -> Result<(), Difference> {
        let stored = &mut self.store[at];
        let next = corrected(stored.versions.last().expect("there is a first receipt"), edits);
        stored.versions.push(next);
        stored.model.generation += 1;
        let generation = stored.model.generation;
        for (voice, about, says) in edits.iter().copied() {
            stored.model.edits.push(Edit { generation, voice, about, says, is_carried: false });
        }
        self.compare_receipts(at)?;
        if is_told { self.deliver(at) } else { Ok(()) }
    }

    /// The scheduler is told the newest receipt.
    pub(super) fn deliver(&mut self, at: usize) -> Result<(), Difference> {
        self.deliver_version(at, self.store[at].versions.len() - 1)
    }

    pub(super) fn deliver_older(&mut self, at: usize, back: usize) -> Result<(), Difference> {
        self.deliver_version(at, (self.store[at].versions.len() - 1).saturating_sub(back))
    }

    fn deliver_version(&mut self, at: usize, version: usize) -> Result<(), Difference> {
        let stored = &mut self.store[at];
        stored.told = stored.told.max(version as u64);
        let (receipt, model) = (stored.versions[version].clone(), stored.model.at(version as u64));
        let mut out = Vec::new();
        self.real[at].handle_receipt(receipt, &mut out);
        let told = self.model.decided(at, model);
        self.compare(at, out, told)
    }

    /// Before a verdict what people decided is read: here, and in conversations whose word matters here.
    pub(super) fn read(&mut self, at: usize, lane: usize) -> Result<(), Difference> {
        self.deliver(at)?;
        let donors = self.real[at].donors(LaneId(self.lanes[lane].id));
        self.hear_words(at, lane, &donors)
    }

    pub(super) fn hear_words(&mut self, at: usize, lane: usize, of: &[Arc<str>]) -> Result<(), Difference> {
        let expected = self.model.lane(at, self.lanes[lane].id).map(|lane| lane.donors()).unwrap_or_default();
        let asked: Vec<usize> = of.iter().map(|name| number(name)).collect();
        if asked != expected {
            return Err(format!("the core asks the conversations {asked:?}, the model {expected:?}"));
        }
        asked.into_iter().try_for_each(|of| self.tell_word(at, lane, (of, Asked::Answers)))
    }

    pub(super) fn word(&mut self, lane: usize, of: usize, answer: Asked) -> Result<(), Difference> {
        self.tell_word(self.lanes[lane].conversation, lane, (of, answer))
    }

    pub(super) fn tell_word(&mut self, at: usize, lane: usize, (of, answer): (usize, Asked)) -> Result<(), Difference> {
        let (word, model) = self.answer_of(of, answer);
        let (id, mut out) = (self.lanes[lane].id, Vec::new());
        self.real[at].handle_donor(LaneId(id), name(of), word, &mut out);
        let told = self.model.answers_of(at, id, (of, model));
        self.compare(at, out, told)
    }

    /// What a conversation answers of itself.
    pub(super) fn answer_of(&self, of: usize, answer: Asked) -> (Donor, Word) {
        let stored = &self.store[of];
        match answer {
            Asked::IsSilent => (Donor::Unavailable, Word::Unavailable),
            Asked::AnsweredBefore => {
                let version = stored.versions.len().saturating_sub(2);
                let model = stored.model.at(version as u64);
                (Donor::Read(Arc::new(stored.versions[version].clone())), Word::Read(model))
            }
            Asked::Answers if stored.is_deleted => (Donor::Deleted, Word::Deleted),
            Asked::Answers => {
                let newest = stored.versions.last().expect("there is a first receipt");
                (Donor::Read(Arc::new(newest.clone())), Word::Read(stored.model.clone()))
            }
        }
    }

    /// The names that people gave go along on a stream: the store writes them where the lane goes.
    pub(super) fn carry_names(&mut self, from: usize, to: usize, scope: &'static str) -> Result<(), Difference> {
        let portable =
            self.store[from].versions.last().expect("there is a first receipt").portable(&Self::scope(scope));
        let names = self.store[from].model.portable(scope, &self.rules);
        let stored = &mut self.store[to];
        let mut next = stored.versions.last().expect("there is a first receipt").clone();
        next.carry(&portable).expect("a receipt has room");
        if next.generation() == stored.versions.len() as u64 {
            stored.versions.push(next);
        }
        stored.model.carry(&names, &self.rules);
        self.compare_receipts(to)?;
        self.deliver(to)
    }

    /// Both receipts say the same of everything. A planted mistake must be found by what it leads to.
    fn compare_receipts(&self, at: usize) -> Result<(), Difference> {
        if self.rules.is_wrong() {
            return Ok(());
        }
        let real = self.store[at].versions.last().expect("there is a first receipt");
        let (model, rules) = (&self.store[at].model, &self.rules);
        differ("the receipt's generation", &real.generation(), &model.generation)?;
        differ("whether the owner is reserved", &real.is_owner_reserved(), &model.is_owner_reserved(rules))?;
        for speaker in SPEAKERS {
            for scope in SCOPES {
                let name = (speaker, scope);
                let ruled = model.ruled(name, rules);
                let stands = ruled_of(&real.standing(&voice_name(name)));
                differ(&format!("what people decided about {name:?}"), &stands, &ruled)?;
            }
        }
        Ok(())
    }
}

fn differ<T: PartialEq + std::fmt::Debug>(what: &str, core: &T, model: &T) -> Result<(), Difference> {
    if core == model { Ok(()) } else { Err(format!("{what}: the core has {core:?}, the model {model:?}")) }
}

pub(super) fn name(conversation: usize) -> Arc<str> {
    format!("c{conversation}").into()
}

pub(super) fn number(name: &str) -> usize {
    name.trim_start_matches('c').parse().expect("conversations are numbered")
}

pub(super) fn voice_name((speaker, scope): Name) -> VoiceName {
    VoiceName { speaker: Speaker(speaker), scope: World::scope(scope) }
}

fn ruling(says: Says) -> Ruling {
    match says {
        Says::Owner | Says::Sarah | Says::Nina => {
            let (person, name) = says.person();
            let role = if says == Says::Owner { Role::Owner } else { Role::Person };
            Ruling::Is(Named { person: PersonId::new(person), name: name.into(), role })
        }
        Says::Nobody => Ruling::IsNobody,
        Says::NotMe => Ruling::Not(Rejection::NotMe),
        Says::NotSarah => Ruling::Not(Rejection::NotPerson(PersonId::new("p1"))),
        Says::NotAPerson => Ruling::Not(Rejection::NotAPerson),
    }
}

fn ruled_of(standing: &Standing) -> Ruled {
    match standing {
        Standing::Free => Ruled::Free,
        Standing::Rejected => Ruled::Rejected,
        Standing::Nobody => Ruled::Nobody,
        Standing::Silenced => Ruled::Silenced,
        Standing::Named(named, source) => {
            let says = [Says::Owner, Says::Sarah, Says::Nina];
            let says = says.into_iter().find(|says| says.person().0 == named.person.as_str());
            Ruled::Named(says.expect("people name these"), *source == Source::Carried)
        }
    }
}

/// The receipt after one edit; what else was decided at the same moment is entered as a store would restore it.
fn corrected(receipt: &Receipt, edits: &[(Name, About, Says)]) -> Receipt {
    let mut next = receipt.clone();
    let Some(((voice, about, says), others)) = edits.split_first() else { return next };
    let subject = match about {
        About::Voice => Subject::Voice,
        About::Segment(id, reach) => Subject::Segments(vec![SegmentId::new(id)], *reach),
    };
    let correction = Correction { voice: voice_name(*voice), subject, ruling: ruling(*says) };
    next.correct(&correction).expect("a receipt has room");
    if others.is_empty() {
        return next;
    }
    let mut voices: BTreeMap<_, _> = next.voices().map(|(name, entry)| (name.clone(), entry.clone())).collect();
    let mut segments: BTreeMap<_, _> = next.segments().map(|(id, held)| (id.clone(), held.clone())).collect();
    for (voice, about, says) in others {
        let entry = Entry { generation: next.generation(), ruling: ruling(*says), source: Source::Here };
        match about {
            About::Voice => {
                voices.insert(voice_name(*voice), entry);
            }
            About::Segment(id, reach) => {
                let held = SegmentEntry { voice: voice_name(*voice), reach: *reach, entry };
                segments.insert(SegmentId::new(id), held);
            }
        }
    }
    Receipt::restore(next.generation(), voices, segments).expect("a receipt has room")
}
