//! What the client is told: what it does not know yet, once. Nothing is told of a voice before it is heard.

use matcher_core::{Change, Status};

use crate::reference::mistake::Mistake;
use crate::reference::tally::Rule;
use crate::reference::words::{Face, HERTZ, Told};

use super::hearing;
use super::lane::Lane;
use super::receipt::Ruled;
use super::voice::Voice;

impl Lane {
    pub(crate) fn tell(&mut self, at: usize, out: &mut Vec<Told>) {
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

    /// A pinned person whom a voice nearly is, while no voice is that person.
    pub(crate) fn suggest(&mut self, at: usize, out: &mut Vec<Told>) {
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
