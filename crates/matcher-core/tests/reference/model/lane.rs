//! One lane's voices, and what each is: by its evidence, by the others, and by what people decided.

use std::collections::BTreeMap;
use std::rc::Rc;

use matcher_core::{Origin, Status};

use crate::reference::mistake::Mistake;
use crate::reference::tally::Rule;
use crate::reference::words::{Identity, Name, Person, Told};

use super::hearing::{self, Decision};
use super::keepsake::InStore;
use super::receipt::{Receipt, Ruled};
use super::voice::{Device, Heard, Voice};
use super::{Message, Rules, Word};

/// Half seconds that a decision needs.
pub(crate) const FLOOR: u64 = 10;

pub(crate) struct Lane {
    pub(crate) id: u64,
    pub(crate) generation: u64,
    pub(crate) people: &'static [Person],
    /// By number, then by when their stream was first heard of.
    pub(crate) voices: Vec<Voice>,
    scopes: Vec<&'static str>,
    pub(crate) receipt: Rc<Receipt>,
    pub(crate) current: Option<&'static str>,
    pub(crate) device: Device,
    pub(crate) tried: Vec<u32>,
    pub(crate) words: BTreeMap<usize, Word>,
    pub(crate) kept: InStore,
    /// When the words that names rest on are to be heard again.
    pub(crate) words_due: Option<u64>,
    pub(crate) rules: Rc<Rules>,
}

impl Lane {
    pub(crate) fn new(
        id: u64,
        generation: u64,
        people: &'static [Person],
        receipt: Rc<Receipt>,
        rules: Rc<Rules>,
    ) -> Self {
        let (voices, scopes, tried, words) = (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
        let (current, device, kept, words_due) = (None, Device::Unknown, InStore::Nothing, None);
        Self { id, generation, people, voices, scopes, receipt, current, device, tried, words, kept, words_due, rules }
    }

    pub(crate) fn ruled(&self, name: Name) -> Ruled {
        self.receipt.ruled(name, &self.rules)
    }

    pub(crate) fn find(&self, name: Name) -> Option<usize> {
        self.voices.iter().position(|voice| voice.name == name)
    }

    pub(crate) fn find_or_add(&mut self, name: Name) -> usize {
        if !self.scopes.contains(&name.1) {
            self.scopes.push(name.1);
        }
        if self.find(name).is_none() {
            self.voices.push(Voice::new(name));
            let scopes = &self.scopes;
            let age = |scope: &str| scopes.iter().position(|held| *held == scope);
            self.voices.sort_by_key(|voice| (voice.name.0, age(voice.name.1)));
        }
        self.find(name).expect("the voice was just added")
    }

    pub(crate) fn heard(&mut self, message: Message) -> Vec<Told> {
        self.expire_hint(message.now);
        if message.generation != self.generation && !self.rules.errs(Mistake::StaleSpeechCounts) {
            self.rules.saw(Rule::StaleSpeech);
            return Vec::new();
        }
        self.current = Some(message.current);
        let at = self.find_or_add(message.voice);
        self.voices[at].segment = Some(message.segment);
        self.voices[at].observed = Some(message.now);
        let mut out = Vec::new();
        let is_news = self.voices[at].told.is_none() && self.voices[at].is.is_some();
        self.rule(at);
        self.tell(at, &mut out);
        if is_news {
            self.rules.saw(Rule::ToldWhenFirstHeard);
            self.suggest(at, &mut out);
        }
        out
    }

    pub(crate) fn enrolled(&mut self, people: &'static [Person]) -> Vec<Told> {
        self.people = people;
        self.publish().0
    }

    pub(crate) fn decided(&mut self, receipt: Rc<Receipt>) -> Vec<Told> {
        self.receipt = receipt;
        self.publish().0
    }

    /// Says what every voice is, by its evidence, by the others and by what people decided; and which voices claim the owner
    /// in vain.
    pub(crate) fn publish(&mut self) -> (Vec<Told>, Vec<usize>) {
        let contended = self.contended();
        let mut out = Vec::new();
        for at in 0..self.voices.len() {
            self.weigh(at, contended.contains(&at));
            self.rule(at);
            self.tell(at, &mut out);
        }
        for at in 0..self.voices.len() {
            self.suggest(at, &mut out);
        }
        let is_free = |at: &usize| self.ruled(self.voices[*at].name) == Ruled::Free;
        (out, contended.into_iter().filter(is_free).collect())
    }

    /// What evidence makes of a voice that is judged and that does not only compete. One of whose segments people said
    /// something gets no name from its evidence; it can lose the one that it has from there.
    fn weigh(&mut self, at: usize, is_contended: bool) {
        let voice = &self.voices[at];
        let Some(decision) = self.decision(at) else { return };
        let ruled = self.ruled(voice.name);
        let can_lose = ruled == Ruled::Silenced && voice.has_name_from_evidence();
        if ruled != Ruled::Free && !can_lose {
            return;
        }
        if !self.speaks(voice) && voice.identity().is_none() {
            if voice.heard == Heard::Here {
                self.rules.saw(Rule::FallenBelowTheFloor);
            }
            return;
        }
        let origin = if voice.heard == Heard::Before { Origin::Carried } else { Origin::Automatic };
        let person = decision.best.map(|(best, _)| &self.people[best]);
        let person = person.filter(|_| decision.is_accepted && !is_contended);
        let has = |person: &&Person| voice.identity().is_some_and(|identity| identity.person == person.id);
        if can_lose && !person.as_ref().is_some_and(has) {
            self.rules.saw(Rule::SilencedLosesItsName);
        }
        let person = person.filter(|person| !can_lose || has(person));
        let identity = person.map(|person| Identity { person: person.id, name: person.name, origin });
        let (status, rule) = match person {
            Some(person) if person.is_owner => (Status::User, Rule::Accepted),
            Some(_) => (Status::NotUser, Rule::NamedAPerson),
            None if is_contended => (Status::Ambiguous, Rule::Contended),
            None if decision.is_near_miss(self.people) => (Status::Unknown, Rule::NearMiss),
            None => (Status::NoMatch, Rule::NoMatch),
        };
        self.rules.saw(rule);
        self.voices[at].is = Some((status, identity));
    }

    /// What people decided about a voice holds, whatever its evidence says.
    fn rule(&mut self, at: usize) {
        let (rule, is) = match self.ruled(self.voices[at].name) {
            Ruled::Free => return,
            Ruled::Silenced => return self.rules.saw(Rule::Silenced),
            Ruled::Rejected => (Rule::Rejected, (Status::NoMatch, None)),
            Ruled::Nobody => (Rule::NobodyByPeople, (Status::NoMatch, None)),
            Ruled::Named(says, is_carried) => {
                let (person, called) = says.person();
                let name = self.people.iter().find(|print| print.id == person).map_or(called, |print| print.name);
                let origin = if is_carried { Origin::Carried } else { Origin::Manual };
                let status = if person == "user" { Status::User } else { Status::NotUser };
                (Rule::NamedByPeople, (status, Some(Identity { person, name, origin })))
            }
        };
        self.rules.saw(rule);
        self.voices[at].is = Some(is);
    }

    /// What a judged voice's evidence says of it alone. Little evidence, and that of a mere competitor, says nobody; but an
    /// owner who reconnects may rest on another conversation's word.
    pub(crate) fn decision(&self, at: usize) -> Option<Decision> {
        let voice = &self.voices[at];
        let decision = hearing::decide(&voice.judged?, self.people, &self.rules);
        let is_long = voice.half_seconds() >= FLOOR || self.rules.errs(Mistake::ShortEvidenceNames);
        let is_the_owners =
            decision.best_is_owner(self.people) && voice.ground.is_some_and(|ground| self.holds(&ground));
        let competes = voice.heard == Heard::Competing && !self.rules.errs(Mistake::CompetitorsPublish);
        let suffices = !competes && (is_long || is_the_owners);
        Some(Decision { is_accepted: decision.is_accepted && suffices, ..decision })
    }

    pub(crate) fn speaks(&self, voice: &Voice) -> bool {
        let competes = voice.heard == Heard::Competing && !self.rules.errs(Mistake::CompetitorsPublish);
        let is_long = voice.half_seconds() >= FLOOR || self.rules.errs(Mistake::ShortEvidenceNames);
        !competes && (is_long || voice.ground.is_some())
    }
}
