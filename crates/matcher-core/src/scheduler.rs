//! One conversation: its lanes, whose turn it is, and what becomes of queries whose lane has left.
//!
//! A plain state machine. Four kinds of methods: getters; `handle_*` takes an event in and pushes what follows from it
//! to `out`; [`Scheduler::poll_dispatch`] gives the next query when the pool grants a turn; [`Scheduler::poll_timeout`]
//! says when [`Scheduler::handle_timeout`] wants to be called. The law: mutate, then drain (events, then
//! [`Scheduler::poll_grounds`] and [`Scheduler::poll_keepsake`] until they are empty), then mutate.
//!
//! It holds no budget: the lane's socket reserves, in one step with picking the audio, and answers with
//! [`Scheduler::handle_reserved`] or [`Scheduler::handle_refused`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::continuity::Keepsake;
use crate::embedding::Embedding;
use crate::event::{Batch, Dispatch, Event, Join, VoiceState};
use crate::exit::{Cap, ExitReason};
use crate::ids::{Generation, LaneId, RequestId, SegmentId, Speaker};
use crate::lane::{Arrival, Authority, Explanation, Lane, Waiting};
use crate::limits::Limits;
use crate::memory::{Carry, Donor, HandOver};
use crate::policy::{Gallery, Policy};
use crate::queue::SpeakerMatchQueue;
use crate::receipt::Receipt;
use crate::span::Spans;
use crate::time::Monotonic;

/// Why a lane could not join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JoinRefused {
    /// The conversation holds its most lanes.
    #[error("the conversation holds its most lanes")]
    LanesMax,
    /// The lane is already here.
    #[error("the lane is already in this conversation")]
    AlreadyJoined,
}

/// The answer names a query that is over: its lease settles, and nothing else happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the query is over")]
pub struct Over;

/// Why a dispatched slot did not become a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A reason other than the budget.
    Exit(ExitReason),
    /// The budget denied, by this cap; the socket has booked it.
    Denied(Cap),
}

/// A query whose lane has left: it only waits for its end.
#[derive(Debug)]
struct Orphan {
    lane: LaneId,
    speaker: Speaker,
    segment: SegmentId,
    deadline: Monotonic,
}

/// See the module's text.
#[derive(Debug)]
pub struct Scheduler {
    limits: Limits,
    policy: Policy,
    lanes: BTreeMap<LaneId, Lane>,
    /// Bounded by the places of all lanes that were here within one reservation deadline.
    orphans: BTreeMap<RequestId, Orphan>,
    last_served: Option<LaneId>,
    requests: u64,
    receipt: Arc<Receipt>,
    authority: Authority,
}

impl Scheduler {
    /// A conversation without lanes.
    #[must_use]
    pub fn new(limits: Limits, policy: Policy) -> Self {
        Self {
            limits,
            policy,
            lanes: BTreeMap::new(),
            orphans: BTreeMap::new(),
            last_served: None,
            requests: 0,
            receipt: Arc::default(),
            authority: Authority::Read,
        }
    }

    /// What people decided, as far as the scheduler knows.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Lanes in the conversation.
    pub fn lanes(&self) -> impl Iterator<Item = LaneId> + '_ {
        self.lanes.keys().copied()
    }

    /// Whether no lane is here and no query is open.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.lanes.is_empty() && self.orphans.is_empty()
    }

    /// The queue of a lane.
    #[must_use]
    pub fn queue(&self, lane: LaneId) -> Option<&SpeakerMatchQueue> {
        Some(self.lanes.get(&lane)?.queue())
    }

    /// The generation of a lane.
    #[must_use]
    pub fn generation(&self, lane: LaneId) -> Option<Generation> {
        Some(self.lanes.get(&lane)?.generation())
    }

    /// The people a lane knows.
    #[must_use]
    pub fn gallery(&self, lane: LaneId) -> Option<&Gallery> {
        Some(self.lanes.get(&lane)?.gallery())
    }

    /// The numbers of a lane that are in work.
    #[must_use]
    pub fn in_work(&self, lane: LaneId) -> Vec<Speaker> {
        self.lanes.get(&lane).map(|lane| lane.numbers_in_work().into_iter().collect()).unwrap_or_default()
    }

    /// All voices of a lane, in order of number.
    #[must_use]
    pub fn voices(&self, lane: LaneId) -> Vec<VoiceState> {
        self.lanes.get(&lane).map(|lane| lane.voices().map(|voice| lane.state(voice)).collect()).unwrap_or_default()
    }

    /// Everything known of each voice with this number: one a scope.
    #[must_use]
    pub fn explain(&self, lane: LaneId, speaker: Speaker) -> Vec<Explanation> {
        let Some(lane) = self.lanes.get(&lane) else { return Vec::new() };
        lane.voices().filter(|voice| voice.speaker == speaker).map(|voice| lane.explain(voice)).collect()
    }

    /// Everything known of every voice of a lane, in order of number.
    #[must_use]
    pub fn explain_all(&self, lane: LaneId) -> Vec<Explanation> {
        let Some(lane) = self.lanes.get(&lane) else { return Vec::new() };
        lane.voices().map(|voice| lane.explain(voice)).collect()
    }

    /// Who waits in a lane, in the order in which they would be examined at this moment; after them, those that cannot
    /// start now.
    #[must_use]
    pub fn waiting(&self, lane: LaneId, now: Monotonic) -> Vec<Waiting> {
        self.lanes.get(&lane).map(|lane| lane.waiting(now)).unwrap_or_default()
    }

    /// Whether a lane has no query in work and none that could start: nothing more comes without new speech.
    #[must_use]
    pub fn is_settled(&self, lane: LaneId) -> bool {
        self.lanes.get(&lane).is_none_or(|lane| lane.work().is_empty() && lane.dispatchable() == 0)
    }

    /// How many queries could start now, if the pool granted as many turns.
    #[must_use]
    pub fn dispatchable(&self) -> usize {
        self.lanes.values().map(Lane::dispatchable).sum()
    }

    /// How many of those are for numbers that no query was spent on. The turns granted go to them first, unless another
    /// slot has waited for [`Limits::age_override`].
    #[must_use]
    pub fn first_tries(&self) -> usize {
        self.lanes.values().map(Lane::first_tries).sum()
    }

    /// Whether a lane could enter.
    ///
    /// # Errors
    /// When it is here already, or the conversation holds its most lanes.
    pub fn admits(&self, lane: LaneId) -> Result<(), JoinRefused> {
        if self.lanes.contains_key(&lane) {
            return Err(JoinRefused::AlreadyJoined);
        }
        if self.lanes.len() >= self.limits.lanes_max.get() {
            return Err(JoinRefused::LanesMax);
        }
        Ok(())
    }

    /// A lane enters.
    ///
    /// # Errors
    /// When it is here already, or the conversation holds its most lanes.
    pub fn handle_joined(&mut self, lane: LaneId, join: Join) -> Result<(), JoinRefused> {
        self.admits(lane)?;
        self.lanes.insert(
            lane,
            Lane::new(lane, join, (self.limits.clone(), self.policy), (self.receipt.clone(), self.authority)),
        );
        Ok(())
    }

    /// A lane leaves: its slots exit as stale, its queries go on as orphans whose results are thrown away.
    pub fn handle_left(&mut self, lane: LaneId, out: &mut Vec<Event>) -> HandOver {
        let Some(gone) = self.lanes.remove(&lane) else { return HandOver::default() };
        for (voice, slot, _) in gone.queue().waiting() {
            out.push(stale(lane, voice.speaker, slot.segment.clone()));
        }
        let held = gone.numbers_in_work().into_iter().collect();
        let (memory, work) = gone.leave();
        for (request, work) in work {
            let orphan = Orphan { lane, speaker: work.voice.speaker, segment: work.segment, deadline: work.deadline };
            self.orphans.insert(request, orphan);
        }
        HandOver { held, memory }
    }

    /// What a rollover brings, after [`Scheduler::handle_receipt`] with what people decided and
    /// [`Scheduler::handle_donor`] for each of [`crate::Memory::grounds`]. Answers the attempts that go on.
    pub fn handle_carried(&mut self, lane: LaneId, carry: Carry, out: &mut Vec<Event>) -> Vec<(Speaker, u32)> {
        self.lanes.get_mut(&lane).map(|lane| lane.handle_carried(carry, out)).unwrap_or_default()
    }

    /// Other conversations whose word a verdict of this lane may need: they are asked in the same reading as the receipt.
    #[must_use]
    pub fn donors(&self, lane: LaneId) -> Vec<Arc<str>> {
        self.lanes.get(&lane).map(Lane::donors).unwrap_or_default()
    }

    /// What people decided in another conversation.
    pub fn handle_donor(&mut self, lane: LaneId, conversation: Arc<str>, word: Donor, out: &mut Vec<Event>) {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.handle_donor(conversation, word, out);
        }
    }

    /// A lane whose names rest on other conversations' words, and those words, when they are to be heard again.
    pub fn poll_grounds(&mut self, now: Monotonic) -> Option<(LaneId, Vec<Arc<str>>)> {
        self.lanes.iter_mut().find_map(|(id, lane)| Some((*id, lane.poll_grounds(now)?)))
    }

    /// What is to become of what a device keeps of its owner.
    pub fn poll_keepsake(&mut self, now: Monotonic) -> Option<(LaneId, Keepsake)> {
        self.lanes.iter_mut().find_map(|(id, lane)| Some((*id, lane.poll_keepsake(now)?)))
    }

    /// A message of segments. Dispatch only after it, and after any other message that waits.
    pub fn handle_batch(&mut self, lane: LaneId, batch: Batch, now: Monotonic, out: &mut Vec<Event>) {
        let Batch { generation, scope, ring, offers } = batch;
        let arrival = Arrival { generation, ring, now };
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.handle_current(scope, &arrival);
        }
        for offer in offers {
            match self.lanes.get_mut(&lane) {
                Some(lane) => lane.handle_offer(offer, &arrival, out),
                None => out.push(stale(lane, offer.speaker, offer.segment)),
            }
        }
    }

    /// The best slot at this moment becomes a query and locks its number; lanes alternate. `None`: a turn would be idle.
    pub fn poll_dispatch(&mut self, now: Monotonic) -> Option<Dispatch> {
        let request = RequestId(self.requests + 1);
        let after = self.last_served;
        let later = self.lanes.keys().copied().filter(|lane| Some(*lane) > after);
        let earlier = self.lanes.keys().copied().filter(|lane| Some(*lane) <= after);
        let order: Vec<LaneId> = later.chain(earlier).collect();
        for id in order {
            let dispatch = self.lanes.get_mut(&id).and_then(|lane| lane.poll_dispatch(request, now));
            if dispatch.is_some() {
                self.last_served = Some(id);
                self.requests += 1;
                return dispatch;
            }
        }
        None
    }

    /// The lane's socket reserved and gave the audio: the query uses `selection`, which holds `samples`.
    ///
    /// # Errors
    /// When the query is over; its lease settles as cancelled.
    pub fn handle_reserved(&mut self, request: RequestId, selection: &Spans, samples: u64) -> Result<(), Over> {
        self.lane_of(request).ok_or(Over)?.handle_reserved(request, selection, samples);
        Ok(())
    }

    /// The lane's socket reserved nothing.
    pub fn handle_refused(&mut self, request: RequestId, refusal: Refusal, out: &mut Vec<Event>) {
        let (reason, cap) = match refusal {
            Refusal::Exit(reason) => (reason, None),
            Refusal::Denied(cap) => (ExitReason::EmbeddingBudget, Some(cap)),
        };
        match self.lane_of(request) {
            Some(lane) => out.push(lane.handle_refused(request, reason, cap)),
            None => self.release_orphan(request, Some((reason, cap)), out),
        }
    }

    /// The dispatch never reached its socket.
    pub fn handle_undelivered(&mut self, request: RequestId, out: &mut Vec<Event>) {
        match self.lane_of(request) {
            Some(lane) => out.extend(lane.handle_undelivered(request)),
            None => self.release_orphan(request, None, out),
        }
    }

    /// What people decided before could not be read, and nobody has joined yet: until it is, evidence names nobody.
    pub fn handle_unread(&mut self) {
        assert!(self.lanes.is_empty(), "what people decided is read before the first lane joins");
        self.authority = Authority::Unread;
    }

    /// People decided something: it holds at once, for every lane. An older receipt than the one here changes nothing.
    pub fn handle_receipt(&mut self, receipt: Receipt, out: &mut Vec<Event>) {
        if receipt.generation() <= self.receipt.generation() {
            return self.handle_confirmed(out);
        }
        self.receipt = Arc::new(receipt);
        self.authority = Authority::Read;
        self.tell_lanes(out);
    }

    /// What is known of what people decided is the newest.
    pub fn handle_confirmed(&mut self, out: &mut Vec<Event>) {
        if self.authority == Authority::Unread {
            self.authority = Authority::Read;
            self.tell_lanes(out);
        }
    }

    fn tell_lanes(&mut self, out: &mut Vec<Event>) {
        for lane in self.lanes.values_mut() {
            lane.handle_receipt(self.receipt.clone(), out);
        }
    }

    /// The query brought a voiceprint, and what people decided could not be read: only what is known of it holds, and
    /// nothing new is published.
    pub fn handle_unauthorised(
        &mut self,
        request: RequestId,
        embedding: Embedding,
        now: Monotonic,
        out: &mut Vec<Event>,
    ) {
        match self.lane_of(request) {
            Some(lane) => lane.handle_unauthorised(request, embedding, now, out),
            None => self.release_orphan(request, Some((ExitReason::StaleGeneration, None)), out),
        }
    }

    /// The query brought a voiceprint. Whoever keeps receipts reads the newest first, for [`Scheduler::handle_receipt`].
    pub fn handle_extracted(&mut self, request: RequestId, embedding: Embedding, now: Monotonic, out: &mut Vec<Event>) {
        match self.lane_of(request) {
            Some(lane) => lane.handle_extracted(request, embedding, now, out),
            None => self.release_orphan(request, Some((ExitReason::StaleGeneration, None)), out),
        }
    }

    /// The query brought none: it failed, was cancelled, or its worker died.
    pub fn handle_failed(&mut self, request: RequestId, out: &mut Vec<Event>) {
        match self.lane_of(request) {
            Some(lane) => out.push(lane.handle_failed(request)),
            None => self.release_orphan(request, None, out),
        }
    }

    /// A query of the lane's former conversation ended.
    pub fn handle_released(&mut self, lane: LaneId, speaker: Speaker) {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.handle_released(speaker);
        }
    }

    /// The people a lane knows changed.
    pub fn handle_gallery(&mut self, lane: LaneId, gallery: Gallery, out: &mut Vec<Event>) {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.handle_gallery(gallery, out);
        }
    }

    /// When [`Scheduler::handle_timeout`] or one of the polls next has something that no other event brings.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Monotonic> {
        let work = self.lanes.values().flat_map(|lane| lane.work().values().map(|work| work.deadline));
        let continuity = self.lanes.values().filter_map(Lane::poll_timeout);
        work.chain(continuity).chain(self.orphans.values().map(|orphan| orphan.deadline)).min()
    }

    /// Ends every query whose deadline has passed: its place and its number are free, its worker may still run.
    pub fn handle_timeout(&mut self, now: Monotonic, out: &mut Vec<Event>) {
        let works = self.lanes.values().flat_map(|lane| lane.work().iter().map(|(id, work)| (*id, work.deadline)));
        let orphans = self.orphans.iter().map(|(id, orphan)| (*id, orphan.deadline));
        let late: Vec<RequestId> =
            works.chain(orphans).filter(|(_, deadline)| *deadline <= now).map(|(id, _)| id).collect();
        for request in late {
            out.push(Event::Overdue { request });
            self.handle_failed(request, out);
        }
    }

    fn lane_of(&mut self, request: RequestId) -> Option<&mut Lane> {
        self.lanes.values_mut().find(|lane| lane.work().contains_key(&request))
    }

    /// An answer for a query that is over altogether (its deadline passed) does nothing.
    fn release_orphan(&mut self, request: RequestId, exit: Option<(ExitReason, Option<Cap>)>, out: &mut Vec<Event>) {
        let Some(Orphan { lane, speaker, segment, .. }) = self.orphans.remove(&request) else { return };
        if let Some((reason, cap)) = exit {
            out.push(Event::Exited { lane, speaker, segment: Some(segment), reason, cap });
        }
        out.push(Event::Released { lane, speaker });
    }
}

const fn stale(lane: LaneId, speaker: Speaker, segment: SegmentId) -> Event {
    Event::Exited { lane, speaker, segment: Some(segment), reason: ExitReason::StaleGeneration, cap: None }
}
