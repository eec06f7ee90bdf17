//! The owner who reconnects: a number's one short try on what a device kept of them, and the word of another conversation on
//! which the name then rests.

use matcher_core::{Reconnect, Status};

use crate::reference::mistake::Mistake;
use crate::reference::tally::Rule;
use crate::reference::words::Told;

use super::Word;
use super::hearing::{self, RECONNECT, distance, owner, vector};
use super::lane::{FLOOR, Lane};
use super::queries::{SHORT_FLOOR, mean};
use super::receipt::Ruled;
use super::voice::{Device, Ground, Heard, Hint};

const WORDS_EVERY: u64 = 30;

impl Lane {
    pub(crate) const fn hint(&self) -> Option<&Hint> {
        match &self.device {
            Device::Reconnecting(hint) => Some(hint),
            Device::Unknown | Device::Fresh => None,
        }
    }

    /// A hint has its time. That it is over is noticed when something happens.
    pub(crate) fn expire_hint(&mut self, now: u64) {
        if self.hint().is_some_and(|hint| hint.until < now) {
            self.rules.saw(Rule::HintExpired);
            self.device = Device::Fresh;
        }
    }

    pub(crate) fn is_hinted(&self, speaker: u32) -> bool {
        let Some(hint) = self.hint() else { return false };
        let is_untried = !self.tried.contains(&speaker) || self.rules.errs(Mistake::SecondTry);
        self.is_todays_owner(&hint.ground) && is_untried && !self.receipt.is_owner_reserved(&self.rules)
    }

    pub(crate) fn may_reconnect(&self, at: usize) -> bool {
        let voice = &self.voices[at];
        let is_short = (SHORT_FLOOR..FLOOR).contains(&voice.half_seconds());
        is_short && voice.heard == Heard::Here && self.is_hinted(voice.name.0)
    }

    fn is_todays_owner(&self, ground: &Ground) -> bool {
        owner(self.people).is_some_and(|owner| owner.sound == ground.print)
    }

    /// Whether the conversation on which a name rests says what it said, by what was heard of it last.
    pub(crate) fn holds(&self, ground: &Ground) -> bool {
        let is_vouched = match self.words.get(&ground.of) {
            Some(Word::Read(receipt)) => {
                receipt.generation == ground.receipt && receipt.ruled(ground.voice, &self.rules) == Ruled::Free
            }
            Some(Word::Unavailable | Word::Deleted) | None => false,
        };
        self.is_todays_owner(ground) && (is_vouched || self.rules.errs(Mistake::WordIsNotAsked))
    }

    /// A number has one short try: enough of the owner, near to what was kept, vouched for, and nobody else claims it.
    pub(crate) fn try_short(&mut self, at: usize) -> Vec<Told> {
        let (lane, speaker) = (self.id, self.voices[at].name.0);
        let hint = *self.hint().expect("a try needs a hint");
        self.tried.push(speaker);
        let sounds = mean(&self.voices[at].clips);
        let plain = hearing::decide(&sounds, self.people, &self.rules);
        let is_alike =
            distance(&sounds, &vector(hint.sound)) < RECONNECT || self.rules.errs(Mistake::AnybodyReconnects);
        self.voices[at].ground = None;
        let ending = if !is_alike || !plain.is_accepted || !plain.best_is_owner(self.people) {
            self.rules.saw(Rule::ShortAcoustic);
            Reconnect::Acoustic
        } else if !self.holds(&hint.ground) {
            self.rules.saw(Rule::ShortDonorAuthority);
            Reconnect::DonorAuthority
        } else {
            return self.compete_short(at, hint.ground);
        };
        vec![Told::Reconnected { lane, speaker, ending }, self.pending(at)]
    }

    fn compete_short(&mut self, at: usize, ground: Ground) -> Vec<Told> {
        let (lane, speaker) = (self.id, self.voices[at].name.0);
        self.voices[at].judged = Some(mean(&self.voices[at].clips));
        self.voices[at].ground = Some(ground);
        let decision = self.decision(at).expect("it was just judged");
        let (mut out, contended) = self.publish();
        let is_contended = contended.contains(&at);
        let (ending, rule) = if is_contended {
            self.voices[at].ground = None; // It needs all the evidence now.
            (Reconnect::Arbitration, Rule::ShortArbitration)
        } else {
            (Reconnect::Accepted, Rule::ShortAccept)
        };
        self.rules.saw(rule);
        out.push(Told::Reconnected { lane, speaker, ending });
        out.push(self.told_decision(at, &decision, is_contended));
        out
    }

    /// Another conversation's word. That it does not answer changes nothing, and neither does an answer that took so long
    /// that a newer one is known; what was deleted stays deleted.
    pub(crate) fn word(&mut self, of: usize, word: Word) -> Vec<Told> {
        if self.words.get(&of).is_some_and(|known| !is_news(known, &word) && !self.rules.errs(Mistake::OldWordHolds)) {
            if self.words.get(&of) != Some(&word) && word != Word::Unavailable {
                self.rules.saw(Rule::OldWord);
            }
            return Vec::new();
        }
        let owners = |lane: &Self| lane.voices.iter().filter(|voice| voice.status() == Some(Status::User)).count();
        let before = owners(self);
        self.words.insert(of, word);
        let out = self.publish().0;
        if owners(self) < before {
            self.rules.saw(Rule::NameLostWithItsWord);
        }
        out
    }

    /// Every thirty seconds the words are heard again on which names rest.
    pub(crate) fn words_due(&mut self, now: u64) -> Option<Vec<usize>> {
        if self.voices.iter().all(|voice| voice.ground.is_none()) {
            self.words_due = None;
            return None;
        }
        let due = *self.words_due.get_or_insert(now + WORDS_EVERY);
        if due > now {
            return None;
        }
        self.rules.saw(Rule::WordHeardAgain);
        self.words_due = Some(now + WORDS_EVERY);
        Some(self.donors())
    }

    /// Conversations whose word matters here.
    pub(crate) fn donors(&self) -> Vec<usize> {
        let grounds = self.voices.iter().filter_map(|voice| voice.ground);
        let mut donors: Vec<usize> =
            grounds.chain(self.hint().map(|hint| hint.ground)).map(|ground| ground.of).collect();
        donors.sort_unstable();
        donors.dedup();
        donors
    }
}

fn is_news(known: &Word, word: &Word) -> bool {
    match (known, word) {
        (Word::Unavailable, word) => *word != Word::Unavailable,
        (Word::Read(known), Word::Read(word)) => word.generation > known.generation,
        (Word::Read(_), Word::Deleted) => true,
        (Word::Deleted, _) | (Word::Read(_), Word::Unavailable) => false,
    }
}
