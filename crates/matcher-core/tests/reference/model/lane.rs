//! One lane's voices: what they are, and what the client was told they are.

use std::collections::BTreeMap;
use std::rc::Rc;

use matcher_core::{Change, Origin, Status};

use crate::reference::mistake::Mistake;
use crate::reference::tally::Rule;
use crate::reference::words::{Face, HERTZ, Identity, Name, Person, Sound, Told};

use super::hearing::{self, Decision, Vector};
use super::keepsake::Kept;
use super::receipt::{Receipt, Ruled};
use super::{Message, Rules, Word};

/// Half seconds that a decision needs.
pub(crate) const FLOOR: u64 = 10;

/// Where a voice's evidence comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Heard {
    Here,
    /// The conversation before, and nothing was added.
    Before,
    /// The conversation before, to compete only.
    Competing,
}

/// Another conversation on whose word a name rests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ground {
    pub(crate) of: usize,
    pub(crate) voice: Name,
    pub(crate) receipt: u64,
    pub(crate) print: Sound,
}

/// What a socket found of its device's owner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hint {
    pub(crate) ground: Ground,
    pub(crate) sound: Sound,
    pub(crate) until: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Device {
    Unknown,
    Fresh,
    Reconnecting(Hint),
}

/// What a voice is: nothing yet, or a status and who it is.
pub(crate) type State = Option<(Status, Option<Identity>)>;

#[derive(Debug, Clone)]
pub(crate) struct Voice {
    pub(crate) name: Name,
    /// The newest three clips and their half seconds.
    pub(crate) clips: Vec<(Sound, u64)>,
    /// How it sounded when it was last judged.
    pub(crate) judged: Option<Vector>,
    pub(crate) heard: Heard,
    pub(crate) ground: Option<Ground>,
    pub(crate) is: State,
    /// What the client was told.
    pub(crate) told: State,
    pub(crate) segment: Option<&'static str>,
    pub(crate) observed: Option<u64>,
    pub(crate) suggestion: Option<(&'static str, u8)>,
}

impl Voice {
    pub(crate) const fn new(name: Name) -> Self {
        Self {
            name,
            clips: Vec::new(),
            judged: None,
            heard: Heard::Here,
            ground: None,
            is: None,
            told: None,
            segment: None,
            observed: None,
            suggestion: None,
        }
    }

    pub(crate) fn half_seconds(&self) -> u64 {
        self.clips.iter().map(|(_, half_seconds)| half_seconds).sum()
    }

    pub(crate) fn identity(&self) -> Option<Identity> {
        self.is.and_then(|(_, identity)| identity)
    }

    pub(crate) fn status(&self) -> Option<Status> {
        self.is.map(|(status, _)| status)
    }
}

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
    pub(crate) kept: Option<Kept>,
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
        let (current, device, kept, words_due) = (None, Device::Unknown, None, None);
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
        let can_lose = ruled == Ruled::Silenced && self.has_name_from_evidence(voice);
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
        let identity = person.map(|person| Identity { person: person.id, name: person.name, origin });
        let (status, rule) = match person {
            Some(person) if person.is_owner => (Status::User, Rule::Accepted),
            Some(_) => (Status::NotUser, Rule::NamedAPerson),
            None if is_contended => (Status::Ambiguous, Rule::Contended),
            None if decision.is_near_miss(self.people) => (Status::Unknown, Rule::NearMiss),
            None => (Status::NoMatch, Rule::NoMatch),
        };
        self.rules.saw(rule);
        let known = voice.identity();
        let is_kept = can_lose && known.map(|known| known.person) == identity.map(|identity| identity.person);
        if can_lose && !is_kept {
            self.rules.saw(Rule::SilencedLosesItsName);
        }
        if !is_kept {
            self.voices[at].is = Some((status, identity.filter(|_| !can_lose)));
        }
    }

    fn has_name_from_evidence(&self, voice: &Voice) -> bool {
        voice.identity().is_some_and(|identity| match identity.origin {
            Origin::Automatic => true,
            Origin::Carried => voice.heard == Heard::Before,
            Origin::Manual => false,
        })
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

    /// Tells the client what it does not know yet. Nothing is told of a voice before it is heard.
    fn tell(&mut self, at: usize, out: &mut Vec<Told>) {
        let face = self.face(at);
        let voice = &mut self.voices[at];
        let is_silent = voice.segment.is_none() && !self.rules.errs(Mistake::SilenceIsBroken);
        let Some((status, identity)) = voice.is.filter(|is| !is_silent && voice.told != Some(*is)) else { return };
        let before = voice.told.and_then(|(_, identity)| identity);
        voice.told = voice.is;
        let is_another = before.map(|known| known.person) != identity.map(|known| known.person);
        if is_another && before.is_some() {
            self.rules.saw(if identity.is_some() { Rule::NameReplaced } else { Rule::NameRetracted });
            let (voice, segment) = (face.voice, face.segment);
            out.push(Told::Retracted { lane: self.id, generation: self.generation, voice, segment, status });
        } else if before != identity && before.is_some() {
            self.rules.saw(Rule::Renamed);
        }
        let change = if is_another && identity.is_some() { Change::Identity } else { Change::StatusOnly };
        out.push(Told::Published { lane: self.id, generation: self.generation, face, change });
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

    /// A pinned person whom a voice nearly is, while no voice is that person.
    fn suggest(&mut self, at: usize, out: &mut Vec<Told>) {
        let wanted = self.suggestion(at);
        let before = std::mem::replace(&mut self.voices[at].suggestion, wanted);
        if before == wanted {
            return;
        }
        let (lane, generation, speaker) = (self.id, self.generation, self.voices[at].name.0);
        if let Some((person, level)) = before.filter(|(person, _)| wanted.is_none_or(|(next, _)| next != *person)) {
            self.rules.saw(Rule::SuggestionRetracted);
            out.push(Told::Suggested { lane, generation, speaker, person, level, is_retracted: true });
        }
        if let Some((person, level)) = wanted {
            self.rules.saw(Rule::Suggested);
            out.push(Told::Suggested { lane, generation, speaker, person, level, is_retracted: false });
        }
    }

    fn suggestion(&self, at: usize) -> Option<(&'static str, u8)> {
        let voice = &self.voices[at];
        let is_nobody = voice.is == Some((Status::NoMatch, None)) && self.ruled(voice.name) == Ruled::Free;
        if !is_nobody || voice.segment.is_none() || !self.speaks(voice) {
            return None;
        }
        let decision = self.decision(at)?;
        let person = decision.suggests(self.people)?;
        let is_taken = |other: &Voice| other.identity().is_some_and(|identity| identity.person == person.id);
        if self.voices.iter().any(is_taken) && !self.rules.errs(Mistake::TakenIsSuggested) {
            self.rules.saw(Rule::SuggestionOfATakenPerson);
            return None;
        }
        Some((person.id, hearing::level(decision.best?.1)))
    }

    fn face(&self, at: usize) -> Face {
        let voice = &self.voices[at];
        let decision = self.decision(at);
        Face {
            voice: voice.name,
            status: voice.status().unwrap_or(Status::Pending),
            identity: voice.identity(),
            distance: decision.and_then(|decision| decision.best).map(|(_, far)| far),
            runner_up: decision.map(|decision| decision.runner_up).filter(|far| far.is_finite()),
            seconds: voice.half_seconds() as f64 / f64::from(HERTZ),
            segment: voice.segment,
        }
    }

    pub(crate) fn faces(&self) -> Vec<Face> {
        (0..self.voices.len()).map(|at| self.face(at)).collect()
    }
}
