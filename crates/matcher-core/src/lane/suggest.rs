//! Whom to suggest: a pinned person whom a voice's evidence nearly names, as long as nobody else is that person. A
//! suggestion is never a name.

use super::{Lane, VoiceRecord};
use crate::event::{Event, Status};
use crate::ids::PersonId;
use crate::policy::Suggestions;
use crate::queue::Voice;

impl Lane {
    /// Tells every change of what is suggested. Comes after all names are given.
    pub(super) fn suggest(&mut self, out: &mut Vec<Event>) {
        if self.policy.suggestions == Suggestions::Off {
            return;
        }
        for voice in self.voices.keys().copied().collect::<Vec<_>>() {
            let wanted = self.suggestion(voice);
            let record = self.voices.get_mut(&voice).expect("the voice was just listed");
            let before = std::mem::replace(&mut record.suggestion, wanted.clone().map(Box::new)).map(|held| *held);
            if before == wanted {
                continue;
            }
            let person = wanted.as_ref().map(|(person, _)| person);
            if let Some((gone, level)) = before.filter(|(held, _)| Some(held) != person) {
                out.push(self.suggested(voice, gone, level, true));
            }
            if let Some((person, level)) = wanted {
                out.push(self.suggested(voice, person, level, false));
            }
        }
    }

    fn suggestion(&self, voice: Voice) -> Option<(PersonId, u8)> {
        let record = self.voices.get(&voice).filter(|record| self.may_be_suggested(voice, record))?;
        let decision = record.row.as_ref()?.decision;
        let person = &self.policy.suggestion(&decision, &self.gallery)?.person;
        let is_taken = self.voices.values().filter_map(|other| other.identity.as_ref());
        if is_taken.into_iter().any(|identity| identity.person == *person) {
            return None;
        }
        Some((person.clone(), self.policy.level(decision.best?.distance)))
    }

    fn may_be_suggested(&self, voice: Voice, record: &VoiceRecord) -> bool {
        let is_nobody = record.identity.is_none() && record.status == Some(Status::NoMatch);
        is_nobody && record.segment.is_some() && self.speaks(record) && self.ruled(voice).is_free()
    }

    fn suggested(&self, voice: Voice, person: PersonId, level: u8, is_retracted: bool) -> Event {
        let (lane, generation, speaker) = (self.id, self.generation, voice.speaker);
        Event::Suggested { lane, generation, speaker, person, level, is_retracted }
    }
}
