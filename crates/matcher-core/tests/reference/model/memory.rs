//! What outlives a lane, and what of it comes back when its recording resumes: all of it.

use std::collections::BTreeMap;

use crate::reference::mistake::Mistake;
use crate::reference::tally::Rule;
use crate::reference::words::{Name, Sound};

use super::Word;
use super::hearing::owner;
use super::keepsake::InStore;
use super::lane::Lane;
use super::receipt::Ruled;
use super::voice::Voice;

/// What a lane takes along: its voices, which of them people named, and the owner's print.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) voices: Vec<Voice>,
    pub(crate) by_people: Vec<Name>,
    pub(crate) owner: Option<Sound>,
    pub(crate) words: BTreeMap<usize, Word>,
    /// Whether a device keeps the owner.
    pub(crate) is_kept: bool,
}

impl Memory {
    /// Conversations on which a name rests.
    pub(crate) fn donors(&self) -> Vec<usize> {
        let mut donors: Vec<usize> =
            self.voices.iter().filter_map(|voice| voice.ground).map(|ground| ground.of).collect();
        donors.sort_unstable();
        donors.dedup();
        donors
    }
}

/// A voice of another place or time: nothing of it was heard or told here.
pub(crate) fn unheard(voice: &Voice) -> Voice {
    let mut here = Voice::new(voice.name);
    here.clips.clone_from(&voice.clips);
    (here.judged, here.heard, here.ground) = (voice.judged, voice.heard, voice.ground);
    here
}

impl Lane {
    pub(crate) fn leave(self) -> Memory {
        let says_nothing =
            |voice: &Voice| voice.judged.is_none() && voice.identity().is_none() && voice.clips.is_empty();
        let owner = owner(self.people).map(|owner| owner.sound);
        let is_kept = self.kept != InStore::Nothing;
        let decided = |voice: &&Voice| self.ruled(voice.name) != Ruled::Free;
        let by_people = self.voices.iter().filter(decided).map(|voice| voice.name).collect();
        let voices = self.voices.iter().filter(|voice| !says_nothing(voice)).cloned().collect();
        Memory { voices, by_people, owner, words: self.words, is_kept }
    }

    /// The recording resumes: everything is as it was, and nothing of it is told before it is heard.
    pub(crate) fn recall(&mut self, memory: Memory) {
        if self.rules.errs(Mistake::ResumeForgets) {
            return;
        }
        if !memory.voices.is_empty() {
            self.rules.saw(Rule::Resumed);
        }
        self.words = memory.words;
        for voice in memory.voices {
            let at = self.find_or_add(voice.name);
            if voice.identity().is_some() && voice.ground.is_some() {
                self.rules.saw(Rule::ResumedWithANameOnAWord);
            }
            self.voices[at] = Voice { is: voice.is, ..unheard(&voice) };
        }
        self.publish();
    }
}
