//! The owner of moments ago: one short try for each number on what was kept of them, and what is kept in turn.
//!
//! A short try needs two seconds, the ordinary decision for the owner, a voice near to what was kept, the word of the
//! conversation where that was, and a won arbitration. Its name rests on that word for as long as the evidence is short.

use std::sync::Arc;

use super::{Lane, VoiceRecord};
use crate::continuity::{Device, Hint, Keepsake, Kept, Reconnect};
use crate::event::{Event, Status};
use crate::ids::Speaker;
use crate::memory::{Donor, Ground, Heard};
use crate::policy::{Role, Verdict};
use crate::queue::Voice;
use crate::receipt::VoiceName;
use crate::time::Monotonic;

/// What was kept last of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptAt {
    /// None: of the conversation before, so that it is renewed at the first opportunity.
    voice: Option<Voice>,
    at: Monotonic,
    observed: Monotonic,
    receipt_generation: u64,
}

impl KeptAt {
    /// Something was kept in the conversation before.
    pub(super) const BEFORE: Self =
        Self { voice: None, at: Monotonic::ZERO, observed: Monotonic::ZERO, receipt_generation: 0 };
}

impl Lane {
    /// Whether two seconds of this number's speech may be tried on the hint.
    pub(super) fn is_hinted(&self, speaker: Speaker) -> bool {
        let Some(hint) = self.hint() else { return false };
        let is_owner = self.gallery.owner().is_some_and(|owner| owner.embedding == hint.ground.print);
        is_owner && !self.tried.contains(&speaker) && !self.receipt.is_owner_reserved()
    }

    fn hint(&self) -> Option<&Hint> {
        match &self.device {
            Device::Reconnecting(hint) => Some(hint),
            Device::Unknown | Device::Fresh => None,
        }
    }

    pub(super) fn expire_hint(&mut self, now: Monotonic) {
        if self.hint().is_some_and(|hint| hint.usable_until < now) {
            self.device = Device::Fresh;
        }
    }

    /// Whether a voice's evidence is what a short try wants.
    pub(super) fn can_reconnect(&self, voice: Voice) -> bool {
        let Some(record) = self.voices.get(&voice) else { return false };
        let short = self.floors.reconnect..self.floors.evidence;
        short.contains(&record.evidence.samples()) && record.heard == Heard::Here && self.is_hinted(voice.speaker)
    }

    /// The one short try of a number.
    pub(super) fn try_reconnect(&mut self, voice: Voice, now: Monotonic, out: &mut Vec<Event>) {
        self.tried.insert(voice.speaker);
        let ending = self.reconnect(voice, out);
        out.push(Event::Reconnected { lane: self.id, speaker: voice.speaker, ending });
        let decision = self.voices.get(&voice).and_then(|record| record.row.as_ref()).map(|row| row.decision);
        match (ending, decision) {
            (Reconnect::Accepted, Some(decision)) => {
                self.grounds_due.get_or_insert(now.after(self.limits.continuity_every));
                out.push(self.decided(voice, &decision, false));
            }
            (Reconnect::Arbitration, Some(decision)) => out.push(self.decided(voice, &decision, true)),
            _ => out.push(self.pending(voice)),
        }
    }

    fn reconnect(&mut self, voice: Voice, out: &mut Vec<Event>) -> Reconnect {
        let Some(hint) = self.hint().cloned() else { return Reconnect::Acoustic };
        let record = self.voices.get_mut(&voice).expect("an examined voice has a record");
        let Some(centroid) = record.evidence.centroid() else { return Reconnect::Acoustic };
        record.ground = Some(Box::new(hint.ground.clone()));
        let record = self.voices.get(&voice).expect("an examined voice has a record");
        let sounds_alike = centroid.distance(&hint.centroid).is_some_and(|distance| distance < self.policy.reconnect);
        let plain = self.policy.decide(&self.gallery.distances(&centroid));
        let row = self.weigh(record, centroid);
        let ending = if !sounds_alike || !plain.is_accepted_as(Role::Owner) {
            Reconnect::Acoustic
        } else if row.decision.verdict == Verdict::Nobody {
            Reconnect::DonorAuthority
        } else {
            return self.arbitrate_reconnect(voice, row, out);
        };
        self.forget_ground(voice);
        ending
    }

    fn arbitrate_reconnect(&mut self, voice: Voice, row: super::Row, out: &mut Vec<Event>) -> Reconnect {
        if let Some(record) = self.voices.get_mut(&voice) {
            record.row = Some(Box::new(row));
        }
        if !self.publish(out).contains(&voice) {
            return Reconnect::Accepted;
        }
        // It goes on competing, and needs all the evidence for a name.
        self.forget_ground(voice);
        if let Some(row) = self.voices.get_mut(&voice).and_then(|record| record.row.as_mut()) {
            row.decision.verdict = Verdict::Nobody;
        }
        Reconnect::Arbitration
    }

    pub(super) fn forget_ground(&mut self, voice: Voice) {
        if let Some(record) = self.voices.get_mut(&voice) {
            record.ground = None;
        }
    }

    /// Whether the word that a short accept rests on holds, for the owner of today.
    pub(super) fn carries(&self, ground: &Ground) -> bool {
        let is_owner = self.gallery.owner().is_some_and(|owner| owner.embedding == ground.print);
        is_owner && ground.holds(self.donors.get(&ground.conversation))
    }

    /// Other conversations whose word something here rests on, or would.
    pub(crate) fn donors(&self) -> Vec<Arc<str>> {
        let grounds = self.voices.values().filter_map(|record| record.ground.as_ref());
        let hinted = self.hint().map(|hint| &hint.ground);
        let mut donors: Vec<Arc<str>> =
            grounds.map(|ground| &**ground).chain(hinted).map(|ground| ground.conversation.clone()).collect();
        donors.sort();
        donors.dedup();
        donors
    }

    /// Another conversation's word. No answer changes nothing of what is published, nor does one that a newer one overtook.
    pub(crate) fn handle_donor(&mut self, conversation: Arc<str>, word: Donor, out: &mut Vec<Event>) {
        if self.donors.get(&conversation).is_none_or(|known| word.is_newer_than(known)) {
            self.donors.insert(conversation, word);
            self.weigh_again();
            self.publish(out);
        }
    }

    /// When the words that names rest on are to be heard again. A name that was brought along begins its rhythm here.
    pub(crate) fn poll_grounds(&mut self, now: Monotonic) -> Option<Vec<Arc<str>>> {
        // Without a word nothing rests on one: most lanes never ask, and this is asked after every event.
        if self.donors.is_empty() || !self.voices.values().any(|record| record.ground.is_some()) {
            self.grounds_due = None;
            return None;
        }
        let next = now.after(self.limits.continuity_every);
        if *self.grounds_due.get_or_insert(next) > now {
            return None;
        }
        self.grounds_due = Some(next);
        Some(self.donors())
    }

    /// What is to become of what is kept of the owner, when that changes.
    pub(crate) fn poll_keepsake(&mut self, now: Monotonic) -> Option<Keepsake> {
        if self.device == Device::Unknown {
            return None;
        }
        let Some((voice, kept)) = self.keeper() else {
            // As long as somebody is the owner, what was kept of them stands, on whatever stream.
            return if self.has_owner() { None } else { self.kept.take().map(|_| Keepsake::Withdraw) };
        };
        let (observed, receipt_generation) = (kept.observed, kept.receipt_generation);
        if self.kept.is_some_and(|held| !self.is_due(held, (voice, observed), now)) {
            return None;
        }
        self.kept = Some(KeptAt { voice: Some(voice), at: now, observed, receipt_generation });
        Some(Keepsake::Keep(Box::new(kept)))
    }

    fn is_due(&self, held: KeptAt, (voice, observed): (Voice, Monotonic), now: Monotonic) -> bool {
        let is_another = held.voice != Some(voice) || held.receipt_generation != self.receipt.generation();
        is_another || observed > held.observed && now.since(held.at) >= self.limits.continuity_every
    }

    /// The voices that are the owner by their own evidence.
    fn owners(&self) -> impl Iterator<Item = (&Voice, &VoiceRecord)> {
        let voices = self.voices.iter().map(|(voice, record)| (voice, &**record));
        voices.filter(|(voice, record)| record.status == Some(Status::User) && self.ruled(**voice).is_free())
    }

    fn has_owner(&self) -> bool {
        self.owners().next().is_some()
    }

    /// The one voice that is the owner by its own evidence, on the current stream.
    fn keeper(&self) -> Option<(Voice, Kept)> {
        let (voice, record) = self.sole_owner()?;
        Some((voice, self.kept_of(voice, record)?))
    }

    fn sole_owner(&self) -> Option<(Voice, &VoiceRecord)> {
        let current = self.current.as_ref()?;
        let mut owners = self.owners().filter(|(voice, _)| self.scope(**voice) == current);
        let (voice, record) = owners.next()?;
        owners.next().is_none().then_some((*voice, record))
    }

    fn kept_of(&self, voice: Voice, record: &VoiceRecord) -> Option<Kept> {
        if record.evidence.samples() < self.floors.evidence {
            return None;
        }
        Some(Kept {
            voice: VoiceName { speaker: voice.speaker, scope: self.scope(voice).clone() },
            centroid: record.row.as_ref()?.centroid.to_embedding()?,
            print: self.gallery.owner()?.embedding.clone(),
            seconds: self.rate.seconds(record.evidence.samples()),
            observed: record.observed?,
            receipt_generation: self.receipt.generation(),
        })
    }

    /// When [`Lane::poll_grounds`] or [`Lane::poll_keepsake`] next has something that no other event brings.
    pub(crate) fn poll_timeout(&self) -> Option<Monotonic> {
        let renewal = self.kept.and_then(|held| {
            let (voice, record) = self.sole_owner().filter(|(voice, _)| held.voice == Some(*voice))?;
            self.kept_of(voice, record).filter(|kept| kept.observed > held.observed)?;
            Some(held.at.after(self.limits.continuity_every))
        });
        renewal.into_iter().chain(self.grounds_due).min()
    }
}
