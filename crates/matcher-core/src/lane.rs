//! One lane of a conversation: its voices, their ranges and evidence, its locks and its queries.
//!
//! ```text
//!   handle_offer ─▶ ranges ─▶ slot ─▶ dispatch ─▶ work ─▶ handle_extracted ─▶ evidence ─▶ decide ─▶ arbitrate ─▶ publish
//!                                        └─ number locked until the work ends ─┘
//! ```
//! Owns all rules for one lane's voices: here from offer to query, in [`verdicts`] from voiceprint to publication, in
//! [`reconnect`] what an owner of moments ago is worth, in [`remember`] what outlives the lane, in [`carry`] what a
//! rollover brings, in [`suggest`] whom to suggest, in [`view`] how voices look from outside. Which lane's turn it is belongs to [`crate::scheduler`]; attempts and tokens
//! belong to [`crate::budget`], of which only a mirror of the attempts is kept here, to know the untried.

mod carry;
mod reconnect;
mod remember;
mod suggest;
mod verdicts;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::collapse::Monitor;
use crate::continuity::Device;
use crate::event::{Change, Dispatch, Event, Identity, Join, Offer, Status};
use crate::evidence::Evidence;
use crate::exit::{Cap, ExitReason};
use crate::ids::{Generation, LaneId, PersonId, RequestId, Scope, SegmentId, Speaker};
use crate::limits::{Floors, Limits};
use crate::memory::{Donor, Ground, Heard};
use crate::policy::{Gallery, Policy};
use crate::queue::{NearOwner, Slot, SpeakerMatchQueue, Standing, Tried, Voice};
use crate::receipt::{Receipt, Standing as Ruled, VoiceName};
use crate::span::{Rate, Span, Spans};
use crate::time::Monotonic;

use reconnect::KeptAt;
use verdicts::Row;
pub use view::{Explanation, Waiting};

/// Provider streams of a lane in one generation: a stream that restarts every three seconds for an hour. Beyond it, voices
/// of a new one exit with `voice_capacity`.
const SCOPES_MAX: usize = 1024;

#[derive(Debug)]
struct VoiceRecord {
    evidence: Evidence,
    /// Boxed, as the records are: most voices of a crowd never reach a verdict, and a map leaves its nodes half empty.
    row: Option<Box<Row>>,
    identity: Option<Identity>,
    status: Option<Status>,
    /// The latest segment; a voice that was brought along has none before it is heard, and until then nothing is told.
    segment: Option<SegmentId>,
    told: Told,
    last_exit: Option<ExitReason>,
    /// Queries that brought no voiceprint.
    failed: u32,
    heard: Heard,
    /// When its latest speech that the ring holds came.
    observed: Option<Monotonic>,
    /// What its name rests on beside its evidence.
    ground: Option<Box<Ground>>,
    suggestion: Option<Box<(PersonId, u8)>>,
}

/// Whether what people decided is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authority {
    Read,
    /// It could not be read yet: nobody gets a name by evidence.
    Unread,
}

/// Whether the client knows what a voice's record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Yes,
    NotYet,
}

impl VoiceRecord {
    fn new(clips_kept: NonZeroU32) -> Self {
        Self {
            evidence: Evidence::new(clips_kept),
            row: None,
            identity: None,
            status: None,
            segment: None,
            told: Told::Yes,
            last_exit: None,
            failed: 0,
            heard: Heard::Here,
            observed: None,
            ground: None,
            suggestion: None,
        }
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
    authority: Authority,
    /// The provider stream that is current.
    current: Option<Scope>,
    device: Device,
    /// Numbers that were tried on the hint. Bounded like the voices.
    tried: BTreeSet<Speaker>,
    /// What other conversations answered on which something here rests. Bounded like the voices.
    donors: BTreeMap<Arc<str>, Donor>,
    grounds_due: Option<Monotonic>,
    kept: Option<KeptAt>,
    monitor: Monitor,
}

impl Lane {
    pub(crate) fn new(
        id: LaneId,
        join: Join,
        (limits, policy): (Limits, Policy),
        (receipt, authority): (Arc<Receipt>, Authority),
    ) -> Self {
        let mut lane = Self {
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
            authority,
            current: None,
            device: join.device,
            tried: BTreeSet::new(),
            donors: BTreeMap::new(),
            grounds_due: None,
            kept: None,
            monitor: Monitor::default(),
        };
        lane.recall(join.memory);
        lane
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

    /// Every number that no query may start for now.
    pub(crate) fn numbers_in_work(&self) -> BTreeSet<Speaker> {
        self.locked.union(&self.held).copied().collect()
    }

    pub(crate) fn scope(&self, voice: Voice) -> &Scope {
        self.scopes.get(usize::from(voice.scope)).expect("a voice's scope is interned when it is admitted")
    }

    /// A message came: which stream is current, and what is over by now.
    pub(crate) fn handle_current(&mut self, scope: Scope, arrival: &Arrival) {
        self.expire_hint(arrival.now);
        if arrival.generation == self.generation {
            self.current = Some(scope);
        }
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
        if arrival.ring.is_some_and(|ring| offer.window.overlap(ring).is_some()) {
            record.observed = Some(arrival.now);
        }
        let is_named = record.identity.is_some();
        let was_told = std::mem::replace(&mut record.told, Told::Yes);
        let is_news = was_told == Told::NotYet && record.status.is_some();
        if self.monitor.handle_segment(voice, &offer.segment) {
            out.push(Event::Collapsed { lane: self.id, speaker: voice.speaker });
        }
        if is_news {
            self.tell(voice, out);
        }
        if is_named {
            return Ok(());
        }
        let undecided = self.undecided(voice);
        if undecided.is_err() {
            self.publish_ruling(voice, out); // Decided before it was first heard.
        }
        let queued = undecided.and_then(|()| self.queue_ranges(voice, offer, arrival));
        if let Err(reason) = queued
            && let Some(record) = self.voices.get_mut(&voice)
        {
            record.last_exit = Some(reason);
        }
        queued
    }

    /// Tells what a voice brought along, when it is first heard here.
    fn tell(&mut self, voice: Voice, out: &mut Vec<Event>) {
        let state = self.state(voice);
        let change = if state.identity.is_some() { Change::Identity } else { Change::StatusOnly };
        out.push(Event::Published { lane: self.id, generation: self.generation, state, change });
        self.suggest(out);
    }

    /// What people decided is not asked of the model: no token is spent on it.
    fn undecided(&self, voice: Voice) -> Result<(), ExitReason> {
        match self.ruled(voice) {
            Ruled::Free => Ok(()),
            Ruled::Rejected => Err(ExitReason::Rejected),
            Ruled::Named(..) | Ruled::Nobody | Ruled::Silenced => Err(ExitReason::ManualDecision),
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
        if self.voices.contains_key(&voice) {
            return Ok(voice); // What is in the queue has a record, and comes and goes with it.
        }
        if let Some(superseded) = self.queue.admit(voice)? {
            self.voices.remove(&superseded);
        }
        if known.is_none() {
            self.scopes.push(scope.clone());
        }
        let clips_kept = self.limits.clips_kept;
        self.voices.insert(voice, Box::new(VoiceRecord::new(clips_kept)));
        Ok(voice)
    }

    fn needed(&self, voice: Voice) -> u64 {
        let have = self.voices.get(&voice).map_or(0, |record| record.evidence.surviving());
        if self.is_hinted(voice.speaker) { self.floors.needed_to_reconnect(have) } else { self.floors.needed(have) }
    }

    /// With nobody to compare with, nothing is dispatchable: slots wait for people, and no token is spent.
    fn standing(&self, voice: Voice) -> Option<Standing> {
        if self.gallery.is_empty() || self.locked.contains(&voice.speaker) || self.held.contains(&voice.speaker) {
            return None;
        }
        let spent = self.attempts.get(&voice.speaker).copied().unwrap_or(0);
        Some(Standing {
            tried: if spent == 0 { Tried::Never } else { Tried::Before },
            near_owner: self.near_owner(voice),
        })
    }

    fn near_owner(&self, voice: Voice) -> NearOwner {
        let row = self.voices.get(&voice).and_then(|record| record.row.as_ref());
        let is_near = row.is_some_and(|row| self.policy.is_near_owner(&row.decision));
        if is_near { NearOwner::Near } else { NearOwner::Far }
    }

    /// How many queries could start now: distinct free numbers that wait, within the free places.
    pub(crate) fn dispatchable(&self) -> usize {
        self.startable(|_| true)
    }

    /// How many of those would be the first of their number.
    pub(crate) fn first_tries(&self) -> usize {
        self.startable(|standing| standing.tried == Tried::Never)
    }

    fn startable(&self, counts: impl Fn(Standing) -> bool) -> usize {
        let free = self.limits.queries_max.get().saturating_sub(self.work.len());
        if free == 0 || self.queue.is_empty() {
            return 0;
        }
        let mut count = 0;
        let mut last = None;
        for (voice, ..) in self.queue.waiting() {
            if last != Some(voice.speaker) && self.standing(voice).is_some_and(&counts) {
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
        let tried = self.standing(voice).map_or(Tried::Before, |standing| standing.tried);
        let by_age = self.queue.is_by_age(voice, now);
        let (slot, fresh) = self.queue.take(voice, now);
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
            by_age,
            tried,
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
        let is_named = self.voices.get(&work.voice).is_some_and(|record| record.identity.is_some());
        let over = if is_named { Some(ExitReason::AlreadyMapped) } else { self.undecided(work.voice).err() };
        if let Some(reason) = over {
            self.queue.restore(work.voice);
            return Some(self.exited(work.voice.speaker, Some(work.segment), reason));
        }
        self.queue.put_back(work.voice, work.slot);
        None
    }

    /// The query failed: its ranges are fresh again and wait for the voice's next update.
    pub(crate) fn handle_failed(&mut self, request: RequestId) -> Event {
        let work = self.finish(request);
        self.queue.restore(work.voice);
        if let Some(record) = self.voices.get_mut(&work.voice) {
            record.failed = record.failed.saturating_add(1);
        }
        Event::Failed { lane: self.id, speaker: work.voice.speaker, segment: work.segment }
    }

    /// The former conversation's query for `speaker` ended.
    pub(crate) fn handle_released(&mut self, speaker: Speaker) {
        self.held.remove(&speaker);
    }

    fn exited(&self, speaker: Speaker, segment: Option<SegmentId>, reason: ExitReason) -> Event {
        Event::Exited { lane: self.id, speaker, segment, reason, cap: None }
    }

    fn finish(&mut self, request: RequestId) -> Work {
        let work = self.work.remove(&request).expect("the scheduler saw this request");
        assert!(self.locked.remove(&work.voice.speaker), "a query ran without its number's lock");
        work
    }
}

/// The part of an offer's window that its claimed speech fills.
fn claimed(offer: &Offer) -> Span {
    offer.window.first(offer.speech)
}
