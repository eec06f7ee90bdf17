//! What an answer does: a clip of evidence, and a judgement when there is enough.

use matcher_core::{Ending, Reconnect, Target};

use crate::reference::mistake::Mistake;
use crate::reference::tally::Rule;
use crate::reference::words::{Sound, Told};

use super::hearing::{self, Decision, owner};
use super::lane::{FLOOR, Lane};
use super::receipt::Ruled;
use super::voice::Heard;
use super::{Answer, Query};

/// Half seconds that a reconnecting owner needs, and the usual and the least length of a clip.
pub(crate) const SHORT_FLOOR: u64 = 4;
const CLIP: u64 = 4;
const CLIP_LEAST: u64 = 1;
const CLIPS: usize = 3;

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

    pub(crate) fn pending(&self, at: usize) -> Told {
        self.rules.saw(Rule::Pending);
        let target = if owner(self.people).is_some() { Target::Owner } else { Target::Person };
        Told::Decided { lane: self.id, speaker: self.voices[at].name.0, target, ending: Ending::Pending }
    }

    pub(crate) fn told_decision(&self, at: usize, decision: &Decision, is_contended: bool) -> Told {
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
}

pub(crate) fn mean(clips: &[(Sound, u64)]) -> hearing::Vector {
    hearing::centroid(&clips.iter().map(|(sound, _)| *sound).collect::<Vec<_>>())
}
