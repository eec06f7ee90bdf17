//! The service's queue under another order, and under its own where a recorded lane's verdicts are given.
//!
//! Ranges, slots and the service's order are the core's [`SpeakerMatchQueue`]; what the core's lane adds (evidence, verdicts,
//! who has a name) is [`Book`]'s. Under the service's order it selects what the core selects, which a test holds.

use std::collections::{BTreeMap, BTreeSet};

use matcher_core::queue::{NearOwner, Slot, Standing, Tried, Voice};
use matcher_core::{
    Dispatch, Embedding, ExitReason, Limits, Monotonic, Offer, Rate, Refusal, RequestId, SegmentId, Selection, Span,
    Spans, Speaker, SpeakerMatchQueue,
};

use super::book::{Book, Waited, claimed};
use super::discipline::Discipline;
use super::voices::{Cast, Class, Part};

/// Which slot goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The service's.
    Service,
    /// The owner, then people, then strangers: known only to whoever wrote the scenario.
    Owner,
    /// Who was examined least.
    Even,
    /// The youngest slot.
    Youngest,
    /// The service's, without the untried.
    NoUntried,
}

/// A slot's place: by three numbers, of which the smallest goes first, then by number and stream.
type Place = (u64, u64, u64, Voice);

/// See the module's text.
pub(super) struct Slots {
    queue: SpeakerMatchQueue,
    book: Book,
    order: Order,
    /// The slots behind the queries that are asked for and not answered yet.
    asked: BTreeMap<RequestId, Slot>,
}

impl Slots {
    pub(super) fn new(rate: Rate, limits: Limits, order: Order, cast: Cast) -> Self {
        Self {
            queue: SpeakerMatchQueue::new(limits.clone()),
            book: Book::new(rate, limits, cast),
            order,
            asked: BTreeMap::new(),
        }
    }

    fn offer(&mut self, offer: &Offer, ring: Option<Span>, now: Monotonic) -> Result<(), ExitReason> {
        let voice = self.book.voice(offer);
        if let Some(gone) = self.queue.admit(voice)? {
            self.book.forget(gone);
        }
        let ring = ring.ok_or(ExitReason::NoPcm)?;
        if self.book.class(voice).is_named() {
            return Err(ExitReason::AlreadyMapped);
        }
        offer.window.overlap(ring).ok_or(ExitReason::WindowOutsideBuffer)?;
        let fresh = self.queue.offer(voice, claimed(offer), ring)?;
        if fresh < self.book.needed(voice) {
            return Err(ExitReason::WindowShorterThanMinimum);
        }
        // A full queue leaves the ranges with the voice until its next update.
        self.queue.stamp(voice, offer.segment.clone(), now).ok();
        Ok(())
    }

    fn standing(&self, voice: Voice) -> Option<Standing> {
        (!self.book.is_in_work(voice.speaker)).then(|| self.book.standing(voice))
    }

    fn next(&self, now: Monotonic) -> Option<Voice> {
        if self.order == Order::Service {
            return self.queue.next(now, self.book.query_max(), |voice| self.standing(voice));
        }
        let waiting = self.queue.waiting().filter_map(|(voice, slot, fresh)| {
            let standing = self.standing(voice)?;
            Some(self.place(voice, (slot, fresh), standing, now))
        });
        waiting.min().map(|(.., voice)| voice)
    }

    fn place(&self, voice: Voice, (slot, fresh): (&Slot, u64), standing: Standing, now: Monotonic) -> Place {
        let since = slot.since.as_nanos();
        match self.order {
            Order::Owner => {
                let part = match self.book.cast().part(voice.speaker) {
                    Part::Owner => 0,
                    Part::Person => 1,
                    Part::Stranger => 2,
                };
                (part, u64::from(standing.tried == Tried::Before), since, voice)
            }
            Order::Even => (u64::from(self.book.spent(voice.speaker)), since, 0, voice),
            Order::Youngest => (u64::MAX - since, 0, 0, voice),
            Order::Service | Order::NoUntried if self.is_by_age(voice, now) => (0, since, 0, voice),
            Order::Service | Order::NoUntried => {
                let tried = u64::from(self.order == Order::Service && standing.tried == Tried::Before);
                let far = u64::from(standing.near_owner == NearOwner::Far);
                (1 + 2 * tried + far, u64::MAX - fresh.min(self.book.query_max()), since, voice)
            }
        }
    }

    fn is_by_age(&self, voice: Voice, now: Monotonic) -> bool {
        match self.order {
            Order::Service | Order::NoUntried => self.queue.is_by_age(voice, now),
            Order::Owner | Order::Even | Order::Youngest => false,
        }
    }

    /// The recorded voice, when it is the next or goes behind the next for its number alone; otherwise who is the next.
    pub(super) fn poll_as_recorded(&mut self, recorded: Voice, now: Monotonic) -> Result<Dispatch, Option<Voice>> {
        let next = self.next(now);
        let is_next = next.is_some_and(|next| self.rank(next, now) == self.rank(recorded, now));
        if is_next { Ok(self.dispatch(recorded, now)) } else { Err(next) }
    }

    /// A slot's place, but for its number; none for a voice that cannot start.
    fn rank(&self, voice: Voice, now: Monotonic) -> Option<(u64, u64, u64)> {
        let (slot, standing) = (self.queue.slot(voice)?, self.standing(voice)?);
        let fresh = self.queue.fresh(voice).map_or(0, Spans::samples);
        let (first, second, third, _) = self.place(voice, (slot, fresh), standing, now);
        Some((first, second, third))
    }

    fn dispatch(&mut self, voice: Voice, now: Monotonic) -> Dispatch {
        let by_age = self.is_by_age(voice, now);
        let (slot, fresh) = self.queue.take(voice, now);
        let waited = Waited { waited: now.since(slot.since), by_age };
        let dispatch = self.book.begin(voice, (slot.segment.clone(), fresh), waited);
        self.asked.insert(dispatch.request, slot);
        dispatch
    }

    /// Another voice was judged, and with it this one: a name ends its waiting.
    pub(super) fn handle_moved(&mut self, voice: Voice, class: Class) {
        self.book.note_moved(voice, class);
        if class.is_named() {
            self.queue.unslot(voice);
        }
    }

    /// What an answered query did not use is queued again, with a new age, unless the voice has its name.
    fn requeue(&mut self, voice: Voice, segment: SegmentId, now: Monotonic) {
        if self.book.class(voice).is_named() {
            self.queue.unslot(voice);
            return;
        }
        let fresh = self.queue.fresh(voice).map_or(0, Spans::samples);
        if self.queue.slot(voice).is_none() && fresh >= self.book.needed(voice) {
            self.queue.stamp(voice, segment, now).ok();
        }
    }

    /// What was last said of a voice.
    #[cfg(test)]
    pub(super) fn class(&self, voice: Voice) -> Class {
        self.book.class(voice)
    }

    /// The dispatch never arrived: the slot is back with its age.
    pub(super) fn handle_undelivered(&mut self, request: RequestId) {
        let (voice, slot) = (self.book.end(request), self.asked.remove(&request));
        match slot {
            Some(slot) if !self.book.class(voice).is_named() => self.queue.put_back(voice, slot),
            Some(_) | None => self.queue.restore(voice),
        }
    }
}

impl Discipline for Slots {
    fn handle_message(&mut self, offers: Vec<Offer>, ring: Option<Span>, now: Monotonic) {
        for offer in &offers {
            // Why an update led to nothing is the core's to tell.
            self.offer(offer, ring, now).ok();
        }
    }

    fn poll_dispatch(&mut self, now: Monotonic, _free: usize) -> Option<Dispatch> {
        let voice = self.next(now)?;
        Some(self.dispatch(voice, now))
    }

    fn handle_reserved(&mut self, request: RequestId, selection: &Selection) {
        let voice = self.book.note_reserved(request, selection.samples);
        self.queue.narrow(voice, &selection.spans);
    }

    fn handle_refused(&mut self, request: RequestId, _refusal: Refusal) {
        self.handle_failed(request);
    }

    fn handle_extracted(&mut self, request: RequestId, embedding: Embedding, now: Monotonic) {
        let voice = self.book.note_extracted(request, embedding);
        self.queue.cover(voice);
        if let Some(slot) = self.asked.remove(&request) {
            self.requeue(voice, slot.segment, now);
        }
    }

    fn handle_failed(&mut self, request: RequestId) {
        self.asked.remove(&request);
        let voice = self.book.end(request);
        self.queue.restore(voice);
    }

    fn waiting(&self) -> BTreeSet<Speaker> {
        self.queue.waiting().map(|(voice, ..)| voice.speaker).collect()
    }

    fn eligible(&self) -> BTreeSet<Speaker> {
        let in_work = self.book.in_work();
        self.queue.waiting().map(|(voice, ..)| voice.speaker).filter(|speaker| !in_work.contains(speaker)).collect()
    }

    fn is_rejected(&self, speaker: Speaker) -> bool {
        self.book.is_any(speaker, Class::is_rejected)
    }

    fn is_named(&self, speaker: Speaker) -> bool {
        self.book.is_any(speaker, Class::is_named)
    }
}
