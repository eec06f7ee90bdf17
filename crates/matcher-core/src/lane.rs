//! One lane of a conversation: its voices, their ranges and evidence, its locks and its queries.
//!
//! ```text
//!   handle_offer ─▶ ranges ─▶ slot ─▶ dispatch ─▶ work ─▶ handle_extracted ─▶ evidence ─▶ decide ─▶ arbitrate ─▶ publish
//!                                        └─ number locked until the work ends ─┘
//! ```
//! Owns all rules for one lane's voices. Which lane's turn it is belongs to [`crate::scheduler`]; attempts and tokens
//! belong to [`crate::budget`], of which only a mirror of the attempts is kept here, to know the untried.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::arbitration::{Contender, OwnerClaim, Standing as Arbitrated, arbitrate};
use crate::embedding::{Centroid, Embedding};
use crate::event::{Change, Dispatch, Ending, Event, Identity, Join, Offer, Origin, Status, Target, VoiceState};
use crate::evidence::{Clip, Evidence};
use crate::exit::{Cap, ExitReason};
use crate::ids::{Generation, LaneId, RequestId, Scope, SegmentId, Speaker};
use crate::limits::{Floors, Limits};
use crate::policy::{Candidate, Decision, Gallery, Policy, Role, Verdict};
use crate::queue::{NearOwner, Slot, SpeakerMatchQueue, Standing, Tried, Voice};
use crate::receipt::{Receipt, Standing as Ruled, VoiceName};
use crate::span::{Rate, Span, Spans};
use crate::time::Monotonic;

/// Provider streams of a lane in one generation: a stream that restarts every three seconds for an hour. Beyond it, voices
/// of a new one exit with `voice_capacity`.
const SCOPES_MAX: usize = 1024;

/// What a voice's evidence says against the gallery.
#[derive(Debug)]
struct Row {
    centroid: Centroid,
    candidates: Vec<Candidate>,
    decision: Decision,
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

#[derive(Debug)]
struct VoiceRecord {
    evidence: Evidence,
    /// Boxed, as the records are: most voices of a crowd never reach a verdict, and a map leaves its nodes half empty.
    row: Option<Box<Row>>,
    identity: Option<Identity>,
    status: Option<Status>,
    segment: Option<SegmentId>,
    last_exit: Option<ExitReason>,
}

impl VoiceRecord {
    fn new(clips_kept: NonZeroU32) -> Self {
        let evidence = Evidence::new(clips_kept);
        Self { evidence, row: None, identity: None, status: None, segment: None, last_exit: None }
    }
}

#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) voice: Voice,
    pub(crate) segment: SegmentId,
    slot: Slot,
    pub(crate) deadline: Monotonic,
    samples: u64,
}

/// What all offers of one message share.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) generation: Generation,
    pub(crate) ring: Option<Span>,
    pub(crate) now: Monotonic,
}

/// What `explain` tells of one voice.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The voice's state.
    pub state: VoiceState,
    /// Distances to the nearest people, nearest first, by position in the lane's gallery.
    pub candidates: Vec<(crate::ids::PersonId, f64)>,
    /// Seconds of each clip of evidence, oldest first.
    pub clips: Vec<f64>,
    /// Seconds of fresh speech that no query has used.
    pub pending_seconds: f64,
    /// Seconds that the next query needs.
    pub needed_seconds: f64,
    /// The latest exit.
    pub last_exit: Option<ExitReason>,
    /// Attempts spent, as the scheduler knows it.
    pub attempts: u32,
    /// Whether a query is under way.
    pub in_work: bool,
    /// Since when the voice waits.
    pub queued_since: Option<Monotonic>,
}

#[derive(Debug)]
pub(crate) struct Lane {
    id: LaneId,
    generation: Generation,
    rate: Rate,
    floors: Floors,
    limits: Limits,
    policy: Policy,
    gallery: Gallery,
    scopes: Vec<Scope>,
    queue: SpeakerMatchQueue,
    voices: BTreeMap<Voice, Box<VoiceRecord>>,
    attempts: BTreeMap<Speaker, u32>,
    /// Numbers with a query in work here.
    locked: BTreeSet<Speaker>,
    /// Numbers whose query of a former conversation is still in work. Bounded by that conversation's places.
    held: BTreeSet<Speaker>,
    work: BTreeMap<RequestId, Work>,
    receipt: Arc<Receipt>,
}

impl Lane {
    pub(crate) fn new(id: LaneId, join: Join, limits: Limits, policy: Policy, receipt: Arc<Receipt>) -> Self {
        Self {
            id,
            generation: join.generation,
            rate: join.rate,
            floors: Floors::at(join.rate, &limits),
            queue: SpeakerMatchQueue::new(limits.clone()),
            limits,
            policy,
            gallery: join.gallery,
            scopes: Vec::new(),
            voices: BTreeMap::new(),
            attempts: join.attempts,
            locked: BTreeSet::new(),
            held: join.held.into_iter().collect(),
            work: BTreeMap::new(),
            receipt,
        }
    }

    pub(crate) const fn generation(&self) -> Generation {
        self.generation
    }

    pub(crate) const fn queue(&self) -> &SpeakerMatchQueue {
        &self.queue
    }

    pub(crate) const fn gallery(&self) -> &Gallery {
        &self.gallery
    }

    pub(crate) const fn work(&self) -> &BTreeMap<RequestId, Work> {
        &self.work
    }

    pub(crate) fn into_work(self) -> BTreeMap<RequestId, Work> {
        self.work
    }

    /// Every number that no query may start for now.
    pub(crate) fn numbers_in_work(&self) -> BTreeSet<Speaker> {
        self.locked.union(&self.held).copied().collect()
    }

    pub(crate) fn scope(&self, voice: Voice) -> &Scope {
        self.scopes.get(usize::from(voice.scope)).expect("a voice's scope is interned when it is admitted")
    }

    pub(crate) fn handle_offer(&mut self, offer: Offer, arrival: &Arrival, out: &mut Vec<Event>) {
        let (speaker, segment) = (offer.speaker, offer.segment.clone());
        let queued = if arrival.generation == self.generation {
            self.admit_and_queue(offer, arrival, out)
        } else {
            Err(ExitReason::StaleGeneration)
        };
        if let Err(reason) = queued {
            out.push(self.exited(speaker, Some(segment), reason));
        }
    }

    fn admit_and_queue(&mut self, offer: Offer, arrival: &Arrival, out: &mut Vec<Event>) -> Result<(), ExitReason> {
        let voice = self.admit(offer.speaker, &offer.scope)?;
        let record = self.voices.get_mut(&voice).expect("an admitted voice has a record");
        record.segment = Some(offer.segment.clone());
        if record.identity.is_some() {
            return Ok(());
        }
        let undecided = self.undecided(voice);
        if undecided.is_err() {
            self.publish_ruling(voice, out); // Decided before it was first heard.
        }
        let queued = undecided.and_then(|()| self.queue_ranges(voice, offer, arrival));
        if let (Err(reason), Some(record)) = (queued, self.voices.get_mut(&voice)) {
            record.last_exit = Some(reason);
        }
        queued
    }

    /// What people decided is not asked of the model: no token is spent on it.
    fn undecided(&self, voice: Voice) -> Result<(), ExitReason> {
        match self.ruled(voice) {
            Ruled::Free => Ok(()),
            Ruled::Rejected => Err(ExitReason::Rejected),
            Ruled::Named(_) | Ruled::Nobody | Ruled::Silenced => Err(ExitReason::ManualDecision),
        }
    }

    fn ruled(&self, voice: Voice) -> Ruled {
        if self.receipt.generation() == 0 {
            return Ruled::Free; // Most conversations, and this is asked for every voice at every verdict.
        }
        self.receipt.standing(&VoiceName { speaker: voice.speaker, scope: self.scope(voice).clone() })
    }

    fn queue_ranges(&mut self, voice: Voice, offer: Offer, arrival: &Arrival) -> Result<(), ExitReason> {
        let ring = arrival.ring.ok_or(ExitReason::NoPcm)?;
        if offer.window.overlap(ring).is_none() {
            let is_short = offer.speech < self.floors.window_minimum;
            return Err(if is_short { ExitReason::SegmentShorterThanMinimum } else { ExitReason::WindowOutsideBuffer });
        }
        let fresh = self.queue.offer(voice, claimed(&offer), ring)?;
        if self.gallery.is_empty() {
            return Ok(()); // Nobody to compare with: the speech waits, no token is spent.
        }
        if fresh < self.needed(voice) {
            return Err(ExitReason::WindowShorterThanMinimum);
        }
        // Refused by a full queue, the ranges stay with the voice until its next ordinary update.
        match self.queue.stamp(voice, offer.segment, arrival.now) {
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn admit(&mut self, speaker: Speaker, scope: &Scope) -> Result<Voice, ExitReason> {
        let known = self.scopes.iter().position(|held| held == scope);
        let index = known.unwrap_or(self.scopes.len());
        if index >= SCOPES_MAX {
            return Err(ExitReason::VoiceCapacity);
        }
        let voice = Voice { speaker, scope: u16::try_from(index).expect("SCOPES_MAX fits") };
        if let Some(superseded) = self.queue.admit(voice)? {
            self.voices.remove(&superseded);
        }
        if known.is_none() {
            self.scopes.push(scope.clone());
        }
        let clips_kept = self.limits.clips_kept;
        self.voices.entry(voice).or_insert_with(|| Box::new(VoiceRecord::new(clips_kept)));
        Ok(voice)
    }

    fn needed(&self, voice: Voice) -> u64 {
        let have = self.voices.get(&voice).map_or(0, |record| record.evidence.surviving());
        self.floors.needed(have)
    }

    /// With nobody to compare with, nothing is dispatchable: slots wait for people, and no token is spent.
    fn standing(&self, voice: Voice) -> Option<Standing> {
        if self.gallery.is_empty() || self.locked.contains(&voice.speaker) || self.held.contains(&voice.speaker) {
            return None;
        }
        let spent = self.attempts.get(&voice.speaker).copied().unwrap_or(0);
        let row = self.voices.get(&voice).and_then(|record| record.row.as_ref());
        let is_near = row.is_some_and(|row| self.policy.is_near_owner(&row.decision));
        Some(Standing {
            tried: if spent == 0 { Tried::Never } else { Tried::Before },
            near_owner: if is_near { NearOwner::Near } else { NearOwner::Far },
        })
    }

    /// How many queries could start now: distinct free numbers that wait, within the free places.
    pub(crate) fn dispatchable(&self) -> usize {
        let free = self.limits.queries_max.get().saturating_sub(self.work.len());
        if free == 0 || self.queue.is_empty() {
            return 0;
        }
        let mut count = 0;
        let mut last = None;
        for (voice, ..) in self.queue.waiting() {
            if last != Some(voice.speaker) && self.standing(voice).is_some() {
                count += 1;
                last = Some(voice.speaker);
            }
        }
        free.min(count)
    }

    pub(crate) fn poll_dispatch(&mut self, request: RequestId, now: Monotonic) -> Option<Dispatch> {
        if self.work.len() >= self.limits.queries_max.get() {
            return None;
        }
        let voice = self.queue.next(now, self.floors.query_max, |voice| self.standing(voice))?;
        let (slot, fresh) = self.queue.take(voice);
        self.locked.insert(voice.speaker);
        let dispatch = Dispatch {
            request,
            lane: self.id,
            generation: self.generation,
            speaker: voice.speaker,
            scope: self.scope(voice).clone(),
            segment: slot.segment.clone(),
            needed: self.needed(voice),
            query_max: self.floors.query_max,
            evidence: self.voices.get(&voice).map_or(0, |record| record.evidence.samples()),
            pending: fresh.samples(),
            fresh,
            waited: now.since(slot.since),
        };
        let deadline = now.after(self.limits.reservation_deadline);
        self.work.insert(request, Work { voice, segment: slot.segment.clone(), slot, deadline, samples: 0 });
        Some(dispatch)
    }

    /// The socket reserved: from here on the query uses `selection` alone.
    pub(crate) fn handle_reserved(&mut self, request: RequestId, selection: &Spans, samples: u64) {
        let work = self.work.get_mut(&request).expect("the scheduler saw this request");
        work.samples = samples;
        let voice = work.voice;
        *self.attempts.entry(voice.speaker).or_default() += 1;
        self.queue.narrow(voice, selection);
    }

    /// The socket reserved nothing: the slot goes, its ranges stay, and nothing is queued again by itself.
    pub(crate) fn handle_refused(&mut self, request: RequestId, reason: ExitReason, cap: Option<Cap>) -> Event {
        let work = self.finish(request);
        self.queue.restore(work.voice);
        if let Some(record) = self.voices.get_mut(&work.voice) {
            record.last_exit = Some(reason);
        }
        Event::Exited { lane: self.id, speaker: work.voice.speaker, segment: Some(work.segment), reason, cap }
    }

    /// The dispatch never reached its socket: the slot is back with its age, unless its voice got a name meanwhile.
    pub(crate) fn handle_undelivered(&mut self, request: RequestId) -> Option<Event> {
        let work = self.finish(request);
        if self.voices.get(&work.voice).is_some_and(|record| record.identity.is_some()) {
            self.queue.restore(work.voice);
            return Some(self.exited(work.voice.speaker, Some(work.segment), ExitReason::AlreadyMapped));
        }
        self.queue.put_back(work.voice, work.slot);
        None
    }

    /// The query failed: its ranges are fresh again and wait for the voice's next update.
    pub(crate) fn handle_failed(&mut self, request: RequestId) -> Event {
        let work = self.finish(request);
        self.queue.restore(work.voice);
        Event::Failed { lane: self.id, speaker: work.voice.speaker, segment: work.segment }
    }

    pub(crate) fn handle_extracted(
        &mut self,
        request: RequestId,
        embedding: Embedding,
        now: Monotonic,
        out: &mut Vec<Event>,
    ) {
        let work = self.finish(request);
        self.queue.cover(work.voice);
        match self.take_evidence(&work, embedding) {
            Err(reason) => self.exit_after_query(&work, reason, out),
            Ok(Ruled::Free) => self.judge(work.voice, out),
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
        let reason = self.take_evidence(&work, embedding).err().unwrap_or(ExitReason::AuthorityUnavailable);
        self.exit_after_query(&work, reason, out);
        self.requeue(work.voice, work.segment, now);
    }

    /// Adds a clip to its voice's evidence, unless people rejected the voice or it got its name meanwhile.
    fn take_evidence(&mut self, work: &Work, embedding: Embedding) -> Result<Ruled, ExitReason> {
        let ruled = self.ruled(work.voice);
        let record = self.voices.get_mut(&work.voice).expect("an examined voice has a record");
        match ruled {
            Ruled::Rejected => return Err(ExitReason::Rejected),
            Ruled::Free if record.identity.is_some() => return Err(ExitReason::AlreadyMapped),
            Ruled::Free | Ruled::Named(_) | Ruled::Nobody | Ruled::Silenced => {}
        }
        record.evidence.add(Clip { embedding, samples: work.samples });
        Ok(ruled)
    }

    fn exit_after_query(&mut self, work: &Work, reason: ExitReason, out: &mut Vec<Event>) {
        if let Some(record) = self.voices.get_mut(&work.voice) {
            record.last_exit = Some(reason);
        }
        out.push(self.exited(work.voice.speaker, Some(work.segment.clone()), reason));
    }

    fn judge(&mut self, voice: Voice, out: &mut Vec<Event>) {
        match self.renew_row(voice) {
            Some(decision) => {
                let contended = self.publish(out).contains(&voice);
                out.push(self.decided(voice, &decision, contended));
            }
            None => out.push(self.pending(voice)),
        }
    }

    /// What all evidence of a voice says now, if there is enough of it.
    fn renew_row(&mut self, voice: Voice) -> Option<Decision> {
        let record = self.voices.get_mut(&voice).expect("an examined voice has a record");
        if record.evidence.samples() < self.floors.evidence {
            return None;
        }
        let row = Row::judge(record.evidence.centroid()?, &self.gallery, &self.policy);
        let decision = row.decision;
        record.row = Some(Box::new(row));
        Some(decision)
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
        for record in self.voices.values_mut() {
            if let Some(row) = &mut record.row {
                **row = Row::judge(row.centroid.clone(), &self.gallery, &self.policy);
            }
        }
        self.publish(out);
    }

    /// The former conversation's query for `speaker` ended.
    pub(crate) fn handle_released(&mut self, speaker: Speaker) {
        self.held.remove(&speaker);
    }

    /// People decided something: it holds at once.
    pub(crate) fn handle_receipt(&mut self, receipt: Arc<Receipt>, out: &mut Vec<Event>) {
        self.receipt = receipt;
        self.publish(out);
    }

    /// Arbitrates over all voices and publishes every change in one step. Returns the contended voices.
    fn publish(&mut self, out: &mut Vec<Event>) -> Vec<Voice> {
        let mut contended = Vec::new();
        for (voice, standing) in self.arbitrated() {
            if standing == Arbitrated::Contended {
                contended.push(voice);
            }
            let Some(decision) = self.voices.get(&voice).and_then(|record| record.row.as_ref()).map(|row| row.decision)
            else {
                continue;
            };
            let accepted = (standing == Arbitrated::Own && decision.verdict == Verdict::Accepted)
                .then(|| decision.best.and_then(|best| self.gallery.at(best.index)))
                .flatten();
            let identity = accepted.map(|print| Identity {
                person: print.person.clone(),
                name: print.name.clone(),
                origin: Origin::Automatic,
            });
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
        contended
    }

    /// The voices whose evidence speaks, and what arbitration leaves of it. A rejected voice takes no part; one that people
    /// decided about competes, and is not published from its evidence.
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
        let free = judged.iter().zip(standings).filter(|((_, ruled, _), _)| *ruled == Ruled::Free);
        free.map(|((voice, ..), standing)| (*voice, standing)).collect()
    }

    /// What people decided about a voice.
    fn publish_ruling(&mut self, voice: Voice, out: &mut Vec<Event>) {
        match self.ruled(voice) {
            Ruled::Free | Ruled::Silenced => {}
            Ruled::Rejected | Ruled::Nobody => self.install(voice, None, Status::NoMatch, out),
            Ruled::Named(named) => {
                let status = if named.role == Role::Owner { Status::User } else { Status::NotUser };
                let print = self.gallery.iter().find(|print| print.person == named.person);
                let name = print.map_or(named.name, |print| print.name.clone());
                let identity = Identity { person: named.person, name, origin: Origin::Manual };
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
        let changed = before.0 != identity;
        if changed && before.0.is_some() {
            out.push(self.retracted(voice, status));
        }
        let change = if changed && identity.is_some() { Change::Identity } else { Change::StatusOnly };
        let state = self.state(voice);
        out.push(Event::Published { lane: self.id, generation: self.generation, state, change });
        if self.undecided(voice).is_err() {
            self.drop_slot(voice, ExitReason::ManualDecision, out);
        } else if identity.is_some() {
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

    fn decided(&self, voice: Voice, decision: &Decision, contended: bool) -> Event {
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

    fn pending(&self, voice: Voice) -> Event {
        let target = if self.gallery.has_owner() { Target::Owner } else { Target::Person };
        Event::Decided { lane: self.id, speaker: voice.speaker, target, ending: Ending::Pending }
    }

    fn exited(&self, speaker: Speaker, segment: Option<SegmentId>, reason: ExitReason) -> Event {
        Event::Exited { lane: self.id, speaker, segment, reason, cap: None }
    }

    fn finish(&mut self, request: RequestId) -> Work {
        let work = self.work.remove(&request).expect("the scheduler saw this request");
        assert!(self.locked.remove(&work.voice.speaker), "a query ran without its number's lock");
        work
    }

    pub(crate) fn state(&self, voice: Voice) -> VoiceState {
        let record = self.voices.get(&voice).expect("an admitted voice has a record");
        let decision = record.row.as_ref().map(|row| row.decision);
        let runner_up = decision.map(|decision| decision.runner_up).filter(|distance| distance.is_finite());
        VoiceState {
            speaker: voice.speaker,
            scope: self.scope(voice).clone(),
            status: record.status.unwrap_or(Status::Pending),
            identity: record.identity.clone(),
            distance: decision.and_then(|decision| decision.best).map(|best| best.distance),
            runner_up,
            evidence_seconds: self.rate.seconds(record.evidence.samples()),
            segment: record.segment.clone(),
        }
    }

    pub(crate) fn voices(&self) -> impl Iterator<Item = Voice> + '_ {
        self.voices.keys().copied()
    }

    pub(crate) fn explain(&self, voice: Voice) -> Explanation {
        let record = self.voices.get(&voice).expect("an admitted voice has a record");
        let mut nearest: Vec<Candidate> = record.row.iter().flat_map(|row| row.candidates.iter().copied()).collect();
        nearest.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        let named = nearest.iter().filter_map(|candidate| {
            self.gallery.at(candidate.index).map(|print| (print.person.clone(), candidate.distance))
        });
        Explanation {
            state: self.state(voice),
            candidates: named.take(Self::CANDIDATES_MAX).collect(),
            clips: record.evidence.clips().map(|clip| self.rate.seconds(clip.samples)).collect(),
            pending_seconds: self.rate.seconds(self.queue.fresh(voice).map_or(0, Spans::samples)),
            needed_seconds: self.rate.seconds(self.needed(voice)),
            last_exit: record.last_exit,
            attempts: self.attempts.get(&voice.speaker).copied().unwrap_or(0),
            in_work: self.locked.contains(&voice.speaker) || self.held.contains(&voice.speaker),
            queued_since: self.queue.slot(voice).map(|slot| slot.since),
        }
    }

    /// An explanation names the nearest ten people: enough to see a confusion, and bounded for galleries of thousands.
    const CANDIDATES_MAX: usize = 10;
}

/// The part of an offer's window that its claimed speech fills.
fn claimed(offer: &Offer) -> Span {
    offer.window.first(offer.speech)
}
