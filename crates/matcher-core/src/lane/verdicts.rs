//! From a voiceprint to what is published: evidence, judgement against the gallery, arbitration, what people decided.

use std::sync::Arc;

use super::{Authority, Lane, Told, VoiceRecord, Work};
use crate::arbitration::{Contender, OwnerClaim, Standing as Arbitrated, arbitrate};
use crate::continuity::Reconnect;
use crate::embedding::{Centroid, Embedding};
use crate::event::{Change, Ending, Event, Identity, Origin, Status, Target};
use crate::evidence::Clip;
use crate::exit::ExitReason;
use crate::ids::{RequestId, SegmentId};
use crate::memory::Heard;
use crate::policy::{Candidate, Decision, Gallery, Policy, Print, Role, Verdict};
use crate::queue::Voice;
use crate::receipt::{Receipt, Source, Standing as Ruled};
use crate::span::Spans;
use crate::time::Monotonic;

/// What a voice's evidence says against the gallery.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) centroid: Centroid,
    pub(super) candidates: Vec<Candidate>,
    pub(super) decision: Decision,
}

impl Row {
    fn judge(centroid: Centroid, gallery: &Gallery, policy: &Policy) -> Self {
        let candidates = gallery.distances(&centroid);
        let decision = policy.decide(&candidates);
        Self { centroid, candidates, decision }
    }

    fn owner_distance(&self) -> Option<f64> {
        self.candidates.iter().find(|candidate| candidate.role == Role::Owner).map(|owner| owner.distance)
    }
}

impl Lane {
    pub(crate) fn handle_extracted(
        &mut self,
        request: RequestId,
        embedding: Embedding,
        now: Monotonic,
        out: &mut Vec<Event>,
    ) {
        let work = self.finish(request);
        self.queue.cover(work.voice);
        self.expire_hint(now);
        match self.take_evidence(&work, embedding) {
            Err(reason) => self.exit_after_query(&work, reason, out),
            Ok(Ruled::Free) => self.judge(work.voice, now, out),
            Ok(_) => {
                // It still competes with the others.
                self.renew_row(work.voice);
                self.publish(out);
                self.exit_after_query(&work, ExitReason::ManualDecision, out);
            }
        }
        self.requeue(work.voice, work.segment, now);
    }

    /// As [`Lane::handle_extracted`] when what people decided cannot be read: the evidence is kept, and nothing is published.
    pub(crate) fn handle_unauthorised(
        &mut self,
        request: RequestId,
        embedding: Embedding,
        now: Monotonic,
        out: &mut Vec<Event>,
    ) {
        let work = self.finish(request);
        self.queue.cover(work.voice);
        self.expire_hint(now);
        let taken = self.take_evidence(&work, embedding);
        let is_undecided = taken == Ok(Ruled::Free);
        self.exit_after_query(&work, taken.err().unwrap_or(ExitReason::AuthorityUnavailable), out);
        if is_undecided && self.can_reconnect(work.voice) {
            let (lane, speaker) = (self.id, work.voice.speaker);
            self.tried.insert(speaker);
            out.push(Event::Reconnected { lane, speaker, ending: Reconnect::Arbitration });
        }
        self.requeue(work.voice, work.segment, now);
    }

    /// Adds a clip to its voice's evidence, unless people rejected the voice or it got its name meanwhile.
    fn take_evidence(&mut self, work: &Work, embedding: Embedding) -> Result<Ruled, ExitReason> {
        let ruled = self.ruled(work.voice);
        let record = self.voices.get_mut(&work.voice).expect("an examined voice has a record");
        match ruled {
            Ruled::Rejected => return Err(ExitReason::Rejected),
            Ruled::Free if record.identity.is_some() => return Err(ExitReason::AlreadyMapped),
            Ruled::Free | Ruled::Named(..) | Ruled::Nobody | Ruled::Silenced => {}
        }
        record.evidence.add(Clip { embedding, samples: work.samples });
        if record.heard == Heard::Before {
            record.heard = Heard::Here;
        }
        self.settle_verdict(work.voice);
        Ok(ruled)
    }

    fn exit_after_query(&mut self, work: &Work, reason: ExitReason, out: &mut Vec<Event>) {
        if let Some(record) = self.voices.get_mut(&work.voice) {
            record.last_exit = Some(reason);
        }
        out.push(self.exited(work.voice.speaker, Some(work.segment.clone()), reason));
    }

    fn judge(&mut self, voice: Voice, now: Monotonic, out: &mut Vec<Event>) {
        if self.can_reconnect(voice) {
            return self.try_reconnect(voice, now, out);
        }
        match self.renew_row(voice) {
            Some(decision) => {
                let contended = self.publish(out).contains(&voice);
                out.push(self.decided(voice, &decision, contended));
                self.watch_for_collapse(voice, &decision, out);
            }
            None => out.push(self.pending(voice)),
        }
    }

    fn watch_for_collapse(&mut self, voice: Voice, decision: &Decision, out: &mut Vec<Event>) {
        match decision.verdict {
            Verdict::Accepted => self.monitor.handle_accepted(voice),
            Verdict::Nobody if self.monitor.handle_rejected(voice) => {
                out.push(Event::Collapsed { lane: self.id, speaker: voice.speaker });
            }
            Verdict::Nobody => {}
        }
    }

    /// What all evidence of a voice says now, if there is enough of it.
    fn renew_row(&mut self, voice: Voice) -> Option<Decision> {
        let record = self.voices.get_mut(&voice).expect("an examined voice has a record");
        if record.evidence.samples() < self.floors.evidence {
            return None;
        }
        record.heard = Heard::Here;
        record.ground = None;
        let centroid = record.evidence.centroid()?;
        let record = self.voices.get(&voice).expect("an examined voice has a record");
        let row = self.weigh(record, centroid);
        let decision = row.decision;
        if let Some(record) = self.voices.get_mut(&voice) {
            record.row = Some(Box::new(row));
        }
        Some(decision)
    }

    /// What a centroid says of a voice: a name only when there is enough behind it.
    pub(super) fn weigh(&self, record: &VoiceRecord, centroid: Centroid) -> Row {
        let mut row = Row::judge(centroid, &self.gallery, &self.policy);
        if !self.suffices(record, &row.decision) {
            row.decision.verdict = Verdict::Nobody;
        }
        row
    }

    fn suffices(&self, record: &VoiceRecord, decision: &Decision) -> bool {
        let is_long = record.evidence.samples() >= self.floors.evidence;
        let is_grounded = || record.ground.as_ref().is_some_and(|ground| self.carries(ground));
        record.heard != Heard::Competing && (is_long || decision.is_accepted_as(Role::Owner) && is_grounded())
    }

    /// Whether a name would suffice can change with the evidence behind it; how it sounds is as it was judged.
    fn settle_verdict(&mut self, voice: Voice) {
        let Some(record) = self.voices.get(&voice) else { return };
        let Some(row) = record.row.as_ref() else { return };
        let mut decision = self.policy.decide(&row.candidates);
        if !self.suffices(record, &decision) {
            decision.verdict = Verdict::Nobody;
        }
        if let Some(row) = self.voices.get_mut(&voice).and_then(|record| record.row.as_mut()) {
            row.decision = decision;
        }
    }

    /// Weighs all evidence again, without a query.
    pub(super) fn weigh_again(&mut self) {
        for voice in self.voices.keys().copied().collect::<Vec<_>>() {
            let record = self.voices.get(&voice).expect("the voice was just listed");
            let row = record.row.as_ref().map(|row| Box::new(self.weigh(record, row.centroid.clone())));
            if let Some(record) = self.voices.get_mut(&voice) {
                record.row = row;
            }
        }
    }

    /// Whether a voice's row is published, beyond competing with the others.
    pub(super) fn speaks(&self, record: &VoiceRecord) -> bool {
        let is_long = record.evidence.samples() >= self.floors.evidence;
        record.heard != Heard::Competing && (is_long || record.ground.is_some())
    }

    /// What an answered query did not use is queued again, with a new age, unless the voice has its name.
    fn requeue(&mut self, voice: Voice, segment: SegmentId, now: Monotonic) {
        let is_mapped = self.voices.get(&voice).is_some_and(|record| record.identity.is_some());
        let is_decided = self.undecided(voice).is_err();
        let fresh = self.queue.fresh(voice).map_or(0, Spans::samples);
        if is_mapped || is_decided || self.queue.slot(voice).is_some() || fresh < self.needed(voice) {
            return;
        }
        // Refused by a full queue, the ranges stay with the voice until its next ordinary update.
        match self.queue.stamp(voice, segment, now) {
            Ok(_) | Err(_) => {}
        }
    }

    /// The people changed: all evidence is judged again, without a query.
    pub(crate) fn handle_gallery(&mut self, gallery: Gallery, out: &mut Vec<Event>) {
        self.gallery = gallery;
        self.weigh_again();
        self.publish(out);
    }

    /// People decided something, or it is known now that they did not: it holds at once.
    pub(crate) fn handle_receipt(&mut self, receipt: Arc<Receipt>, out: &mut Vec<Event>) {
        self.receipt = receipt;
        self.authority = Authority::Read;
        self.publish(out);
    }

    /// Arbitrates over all voices and publishes every change in one step. Returns the contended voices.
    pub(super) fn publish(&mut self, out: &mut Vec<Event>) -> Vec<Voice> {
        let mut contended = Vec::new();
        for (voice, standing) in self.arbitrated() {
            if standing == Arbitrated::Contended {
                contended.push(voice);
            }
            // A name that does not suffice any more is taken back; one that never did, or that people may have decided
            // against, is not told.
            let may_be_told = |record: &VoiceRecord| self.authority == Authority::Read && self.speaks(record);
            let record = self.voices.get(&voice).filter(|record| record.identity.is_some() || may_be_told(record));
            let Some((record, row)) = record.and_then(|record| Some((record, record.row.as_ref()?))) else { continue };
            let decision = row.decision;
            let origin = if record.heard == Heard::Before { Origin::Carried } else { Origin::Automatic };
            let accepted = (standing == Arbitrated::Own && decision.verdict == Verdict::Accepted)
                .then(|| decision.best.and_then(|best| self.gallery.at(best.index)))
                .flatten();
            // A silenced voice can lose the name that its evidence gave it, and get none.
            let holds = |print: &&Print| record.identity.as_ref().is_some_and(|held| held.person == print.person);
            let accepted = accepted.filter(|print| holds(print) || self.ruled(voice).is_free());
            let identity =
                accepted.map(|print| Identity { person: print.person.clone(), name: print.name.clone(), origin });
            let status = match (accepted.map(|print| print.role), standing) {
                (Some(Role::Owner), _) => Status::User,
                (Some(Role::Person), _) => Status::NotUser,
                (None, Arbitrated::Contended) => Status::Ambiguous,
                (None, Arbitrated::Own) if self.policy.is_near_miss(&decision) => Status::Unknown,
                (None, Arbitrated::Own) => Status::NoMatch,
            };
            self.install(voice, identity, status, out);
        }
        for voice in self.voices.keys().copied().collect::<Vec<_>>() {
            self.publish_ruling(voice, out);
        }
        self.suggest(out);
        contended
    }

    /// The voices whose evidence speaks, and what arbitration leaves of it. A rejected voice takes no part; one that people
    /// decided about competes, and gets no name from its evidence.
    fn arbitrated(&self) -> Vec<(Voice, Arbitrated)> {
        let judged: Vec<(Voice, Ruled, &Row)> = self
            .voices
            .iter()
            .filter_map(|(voice, record)| Some((*voice, self.ruled(*voice), record.row.as_deref()?)))
            .filter(|(_, ruled, _)| *ruled != Ruled::Rejected)
            .collect();
        let contenders: Vec<Contender<'_>> = judged
            .iter()
            .map(|(voice, _, row)| Contender {
                scope: self.scope(*voice),
                centroid: &row.centroid,
                owner_distance: row.owner_distance(),
                decision: &row.decision,
            })
            .collect();
        let claim = if self.receipt.is_owner_reserved() { OwnerClaim::Reserved } else { OwnerClaim::Open };
        let standings = arbitrate(&contenders, &self.policy, claim);
        let spoken_for = |(voice, ruled, _): &(Voice, Ruled, &Row)| match ruled {
            Ruled::Free => true,
            Ruled::Silenced => self.is_named_by_evidence(*voice),
            Ruled::Rejected | Ruled::Named(..) | Ruled::Nobody => false,
        };
        let published = judged.iter().zip(standings).filter(|(judged, _)| spoken_for(judged));
        published.map(|((voice, ..), standing)| (*voice, standing)).collect()
    }

    fn is_named_by_evidence(&self, voice: Voice) -> bool {
        let Some(record) = self.voices.get(&voice) else { return false };
        record.identity.as_ref().is_some_and(|identity| match identity.origin {
            Origin::Automatic => true,
            Origin::Carried => record.heard == Heard::Before,
            Origin::Manual => false,
        })
    }

    /// What people decided about a voice. Nothing more is asked of the model about it.
    pub(super) fn publish_ruling(&mut self, voice: Voice, out: &mut Vec<Event>) {
        self.install_ruling(voice, out);
        if let Err(reason) = self.undecided(voice) {
            self.drop_slot(voice, reason, out);
        }
    }

    fn install_ruling(&mut self, voice: Voice, out: &mut Vec<Event>) {
        match self.ruled(voice) {
            Ruled::Free | Ruled::Silenced => {}
            Ruled::Rejected | Ruled::Nobody => self.install(voice, None, Status::NoMatch, out),
            Ruled::Named(named, source) => {
                let status = if named.role == Role::Owner { Status::User } else { Status::NotUser };
                let print = self.gallery.iter().find(|print| print.person == named.person);
                let name = print.map_or(named.name, |print| print.name.clone());
                let origin = match source {
                    Source::Here => Origin::Manual,
                    Source::Carried => Origin::Carried,
                };
                let identity = Identity { person: named.person, name, origin };
                self.install(voice, Some(identity), status, out);
            }
        }
    }

    /// Gives a voice its identity and status, and says what changed.
    fn install(&mut self, voice: Voice, identity: Option<Identity>, status: Status, out: &mut Vec<Event>) {
        let record = self.voices.get_mut(&voice).expect("a judged voice has a record");
        let before = (record.identity.clone(), record.status);
        record.identity.clone_from(&identity);
        record.status = Some(status);
        if before == (identity.clone(), Some(status)) {
            return;
        }
        if record.segment.is_none() {
            record.told = Told::NotYet;
            return;
        }
        let person = |identity: &Option<Identity>| identity.as_ref().map(|identity| identity.person.clone());
        let changed = person(&before.0) != person(&identity);
        if changed && before.0.is_some() {
            out.push(self.retracted(voice, status));
        }
        let change = if changed && identity.is_some() { Change::Identity } else { Change::StatusOnly };
        let state = self.state(voice);
        out.push(Event::Published { lane: self.id, generation: self.generation, state, change });
        if identity.is_some() && self.ruled(voice).is_free() {
            self.drop_slot(voice, ExitReason::AlreadyMapped, out);
        }
    }

    fn drop_slot(&mut self, voice: Voice, reason: ExitReason, out: &mut Vec<Event>) {
        if let Some(slot) = self.queue.unslot(voice) {
            out.push(self.exited(voice.speaker, Some(slot.segment), reason));
        }
    }

    fn retracted(&self, voice: Voice, status: Status) -> Event {
        Event::Retracted {
            lane: self.id,
            generation: self.generation,
            speaker: voice.speaker,
            scope: self.scope(voice).clone(),
            segment: self.voices.get(&voice).and_then(|record| record.segment.clone()),
            status,
        }
    }

    pub(super) fn decided(&self, voice: Voice, decision: &Decision, contended: bool) -> Event {
        let best_is_owner = decision.best.map_or_else(|| self.gallery.has_owner(), |best| best.role == Role::Owner);
        let own = if best_is_owner { Target::Owner } else { Target::Person };
        let (target, ending) = if contended {
            (Target::Owner, Ending::Ambiguous)
        } else if decision.verdict == Verdict::Accepted {
            (own, Ending::Accepted)
        } else if self.policy.is_near_miss(decision) {
            (Target::Owner, Ending::Pending)
        } else {
            (own, Ending::Rejected)
        };
        Event::Decided { lane: self.id, speaker: voice.speaker, target, ending }
    }

    pub(super) fn pending(&self, voice: Voice) -> Event {
        let target = if self.gallery.has_owner() { Target::Owner } else { Target::Person };
        Event::Decided { lane: self.id, speaker: voice.speaker, target, ending: Ending::Pending }
    }
}
