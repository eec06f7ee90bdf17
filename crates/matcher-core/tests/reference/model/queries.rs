//! What an answer does: a clip of evidence, a judgement when there is enough, or the one short try of a number that may be
//! the owner who reconnects.

use matcher_core::{Ending, Reconnect, Status, Target};

use crate::reference::mistake::Mistake;
use crate::reference::tally::Rule;
use crate::reference::words::Told;

use super::hearing::{self, Decision, RECONNECT, distance, owner, vector};
use super::lane::{Device, FLOOR, Ground, Heard, Hint, Lane};
use super::receipt::Ruled;
use super::{Answer, Query, Word};

/// Half seconds that a reconnecting owner needs, and the usual and the least length of a clip.
const SHORT_FLOOR: u64 = 4;
const CLIP: u64 = 4;
const CLIP_LEAST: u64 = 1;
const CLIPS: usize = 3;

const WORDS_EVERY: u64 = 30;

impl Lane {
    pub(crate) fn answered(&mut self, query: &Query, answer: Answer) -> Vec<Told> {
        self.expire_hint(answer.now);
        let at = self.find_or_add(query.voice);
        let ruled = self.ruled(query.voice);
        if ruled == Ruled::Rejected {
            self.rules.saw(Rule::AnswerOfADecidedVoice);
            return Vec::new();
        }
        if ruled == Ruled::Free && self.voices[at].identity().is_some() {
            self.rules.saw(Rule::AnswerOfANamedVoice);
            return Vec::new();
        }
        let voice = &mut self.voices[at];
        voice.clips.push((answer.sound, query.half_seconds));
        let surplus = voice.clips.len().saturating_sub(CLIPS);
        voice.clips.drain(..surplus);
        if voice.heard == Heard::Before {
            voice.heard = Heard::Here;
        }
        if !answer.is_authorised && !self.rules.errs(Mistake::UnreadIsPublished) {
            self.rules.saw(Rule::Unauthorised);
            return self.unread(at, ruled);
        }
        if ruled != Ruled::Free {
            self.rules.saw(Rule::AnswerOfADecidedVoice);
            self.judge(at);
            return self.publish().0;
        }
        if self.may_reconnect(at) {
            return self.try_short(at);
        }
        if !self.judge(at) {
            return vec![self.pending(at)];
        }
        let decision = self.decision(at).expect("it was just judged");
        let (mut out, contended) = self.publish();
        out.push(self.told_decision(at, &decision, contended.contains(&at)));
        out
    }

    /// Nothing is published, and a short try is lost.
    fn unread(&mut self, at: usize, ruled: Ruled) -> Vec<Told> {
        if ruled != Ruled::Free || !self.may_reconnect(at) {
            return Vec::new();
        }
        self.rules.saw(Rule::ShortUnread);
        let speaker = self.voices[at].name.0;
        self.tried.push(speaker);
        vec![Told::Reconnected { lane: self.id, speaker, ending: Reconnect::Arbitration }]
    }

    /// With enough evidence a voice is judged by all of it.
    fn judge(&mut self, at: usize) -> bool {
        let voice = &mut self.voices[at];
        if voice.half_seconds() < FLOOR {
            return false;
        }
        if voice.heard == Heard::Competing {
            self.rules.saw(Rule::CompetitorFreed);
        }
        voice.heard = Heard::Here;
        voice.ground = None;
        voice.judged = Some(mean(&voice.clips));
        true
    }

    fn pending(&self, at: usize) -> Told {
        self.rules.saw(Rule::Pending);
        let target = if owner(self.people).is_some() { Target::Owner } else { Target::Person };
        Told::Decided { lane: self.id, speaker: self.voices[at].name.0, target, ending: Ending::Pending }
    }

    fn told_decision(&self, at: usize, decision: &Decision, is_contended: bool) -> Told {
        let is_owner = match decision.best {
            Some(_) => decision.best_is_owner(self.people),
            None => owner(self.people).is_some(),
        };
        let own = if is_owner { Target::Owner } else { Target::Person };
        let (target, ending) = if is_contended {
            (Target::Owner, Ending::Ambiguous)
        } else if decision.is_accepted {
            (own, Ending::Accepted)
        } else if decision.is_near_miss(self.people) {
            (Target::Owner, Ending::Pending)
        } else {
            (own, Ending::Rejected)
        };
        Told::Decided { lane: self.id, speaker: self.voices[at].name.0, target, ending }
    }

    /// Half seconds that the next query of a voice needs.
    pub(crate) fn needed(&self, at: usize) -> u64 {
        let voice = &self.voices[at];
        let lengths: Vec<u64> = voice.clips.iter().map(|(_, half_seconds)| *half_seconds).collect();
        let staying = if lengths.len() < CLIPS { &lengths[..] } else { &lengths[1..] };
        let floor = if self.is_hinted(voice.name.0) { SHORT_FLOOR } else { FLOOR };
        CLIP.min(floor.saturating_sub(staying.iter().sum())).max(CLIP_LEAST)
    }

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

    fn is_hinted(&self, speaker: u32) -> bool {
        let Some(hint) = self.hint() else { return false };
        let is_untried = !self.tried.contains(&speaker) || self.rules.errs(Mistake::SecondTry);
        self.is_todays_owner(&hint.ground) && is_untried && !self.receipt.is_owner_reserved(&self.rules)
    }

    fn may_reconnect(&self, at: usize) -> bool {
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
    fn try_short(&mut self, at: usize) -> Vec<Told> {
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

fn mean(clips: &[(crate::reference::words::Sound, u64)]) -> hearing::Vector {
    hearing::centroid(&clips.iter().map(|(sound, _)| *sound).collect::<Vec<_>>())
}
