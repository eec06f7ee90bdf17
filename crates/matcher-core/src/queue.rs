//! The queue of one lane: every voice's ranges, and a bounded number of slots that order who is examined next.
//!
//! ```text
//!            offer                stamp              take                cover
//!  update ─────────▶ fresh ranges ─────▶ slot ──────────▶ taken ranges ──────────▶ covered
//!                       ▲                                     │ restore (denied, failed)
//!                       └─────────────────────────────────────┘
//! ```
//! Ranges live once, with their voice. A slot is an arrival stamp and the latest segment id on a voice: it coalesces
//! every later update and keeps its age. Owns the order of selection; knows nothing of budgets, evidence or verdicts,
//! which reach it as a [`Standing`] for each candidate.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::exit::ExitReason;
use crate::ids::{SegmentId, Speaker};
use crate::limits::Limits;
use crate::span::{Span, Spans};
use crate::time::Monotonic;

/// A voice of one lane and generation: its number, and its scope by position in the lane's table of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Voice {
    /// The provider's number.
    pub speaker: Speaker,
    /// Which provider stream.
    pub scope: u16,
}

impl Voice {
    const fn first_of(speaker: Speaker) -> Self {
        Self { speaker, scope: 0 }
    }

    const fn last_of(speaker: Speaker) -> Self {
        Self { speaker, scope: u16::MAX }
    }
}

/// A place in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// When the voice became queueable; later updates do not renew it.
    pub since: Monotonic,
    /// The latest segment that the slot stands for.
    pub segment: SegmentId,
}

/// What a stamp did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamped {
    /// A new slot.
    Queued,
    /// The voice had a slot; it keeps its age.
    Coalesced,
}

/// Why a voice got no slot. Its ranges stay with it for its next ordinary update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// All slots are taken.
    #[error("the queue is full")]
    QueueFull,
    /// This speaker number holds its most slots.
    #[error("this speaker number holds its most slots")]
    NumberFull,
}

/// What the order needs to know of a candidate beyond its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Has the voice spent an attempt in this generation?
    pub tried: Tried,
    /// Was its latest verdict close to the owner?
    pub near_owner: NearOwner,
}

/// Whether a voice was examined in this generation. The untried go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tried {
    /// No attempt is spent.
    Never,
    /// At least one is.
    Before,
}

/// Whether a voice's latest verdict nearly was the owner. These go before the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NearOwner {
    /// Rejected, best print the owner, within the model's band.
    Near,
    /// Anything else.
    Far,
}

/// Why a slot goes before the one behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// It has waited for [`Limits::age_override`], and the other has not, or for less.
    Age,
    /// No query was spent on its number, and one was on the other's.
    FirstTry,
    /// It was nearly the owner.
    NearOwner,
    /// More of its speech waits.
    MoreSpeech,
    /// It has waited longer.
    Older,
    /// Its number is the smaller.
    SmallerNumber,
    /// The other has the age, which has its turn only once in [`Limits::override_every`].
    BetweenAges,
    /// Nobody is behind it.
    Alone,
    /// It goes before nobody: it cannot start now.
    Held,
}

/// A slot in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranked {
    /// Who waits.
    pub voice: Voice,
    /// Why here.
    pub precedence: Precedence,
}

/// What slots are ordered by. No preference goes before every preference: such a slot has reached the age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    preference: Option<(Tried, NearOwner, Reverse<u64>)>,
    since: Monotonic,
    voice: Voice,
}

impl Order {
    fn preferring(voice: Voice, (slot, speech): (&Slot, u64), standing: Standing) -> Self {
        let preference = Some((standing.tried, standing.near_owner, Reverse(speech)));
        Self { preference, since: slot.since, voice }
    }

    fn ranked(&self, behind: Option<&Self>) -> Ranked {
        Ranked { voice: self.voice, precedence: behind.map_or(Precedence::Alone, |behind| self.before(behind)) }
    }

    fn before(&self, behind: &Self) -> Precedence {
        match (self.preference, behind.preference) {
            (None, _) => Precedence::Age,
            (Some(_), None) => Precedence::BetweenAges,
            (Some((tried, ..)), Some((other, ..))) if tried != other => Precedence::FirstTry,
            (Some((_, near, _)), Some((_, other, _))) if near != other => Precedence::NearOwner,
            (Some((.., speech)), Some((.., other))) if speech != other => Precedence::MoreSpeech,
            _ if self.since != behind.since => Precedence::Older,
            _ => Precedence::SmallerNumber,
        }
    }
}

#[derive(Debug, Default)]
struct Entry {
    fresh: Spans,
    taken: Spans,
    covered: Spans,
    slot: Option<Slot>,
    is_in_work: bool,
}

/// See the module's text.
#[derive(Debug)]
pub struct SpeakerMatchQueue {
    /// Boxed, because a map leaves its nodes half empty, and an entry is large.
    entries: BTreeMap<Voice, Box<Entry>>,
    slots: usize,
    evicted: u64,
    /// Selections since the last one that went by age.
    since_override: u32,
    limits: Limits,
}

impl SpeakerMatchQueue {
    /// An empty queue.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { entries: BTreeMap::new(), slots: 0, evicted: 0, since_override: u32::MAX, limits }
    }

    /// Slots taken.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots
    }

    /// Whether no voice waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slots == 0
    }

    /// Voices admitted in this generation.
    #[must_use]
    pub fn voices(&self) -> usize {
        self.entries.len()
    }

    /// Whether `voice` was admitted.
    #[must_use]
    pub fn is_admitted(&self, voice: Voice) -> bool {
        self.entries.contains_key(&voice)
    }

    /// Samples whose ranges were evicted because a voice had too many.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The slot of `voice`, if it waits.
    #[must_use]
    pub fn slot(&self, voice: Voice) -> Option<&Slot> {
        self.entries.get(&voice)?.slot.as_ref()
    }

    /// The ranges of `voice` that no query has taken.
    #[must_use]
    pub fn fresh(&self, voice: Voice) -> Option<&Spans> {
        Some(&self.entries.get(&voice)?.fresh)
    }

    /// The ranges of `voice` that queries have used.
    #[must_use]
    pub fn covered(&self, voice: Voice) -> Option<&Spans> {
        Some(&self.entries.get(&voice)?.covered)
    }

    /// Every waiting voice with its slot and fresh samples, in order of number and scope.
    pub fn waiting(&self) -> impl Iterator<Item = (Voice, &Slot, u64)> {
        self.entries.iter().filter_map(|(voice, entry)| Some((*voice, entry.slot.as_ref()?, entry.fresh.samples())))
    }

    /// Admits a voice. Its number is admitted for the whole generation; when all entries are taken, a known number makes
    /// room in a scope of its own, or of another number, that a newer one has superseded. The voice that gave way comes
    /// back; what it had is forgotten, so a late resend of its dead stream would be examined again.
    ///
    /// # Errors
    /// `voice_capacity` when the lane holds its most numbers, or nothing can give way.
    pub fn admit(&mut self, voice: Voice) -> Result<Option<Voice>, ExitReason> {
        if self.entries.contains_key(&voice) {
            return Ok(None);
        }
        let mut gone = None;
        if self.entries.len() >= self.limits.voices_max.get() {
            let superseded = self.superseded(voice).ok_or(ExitReason::VoiceCapacity)?;
            self.entries.remove(&superseded);
            gone = Some(superseded);
        }
        self.entries.insert(voice, Box::default());
        Ok(gone)
    }

    /// The oldest idle entry whose number has a newer scope: its provider stream is over, and nothing waits in it.
    fn superseded(&self, newcomer: Voice) -> Option<Voice> {
        let is_superseded = |voice: &Voice| {
            let newer = Voice { scope: voice.scope.saturating_add(1), ..*voice }..=Voice::last_of(voice.speaker);
            let by_newcomer = newcomer.speaker == voice.speaker && newcomer.scope > voice.scope;
            voice.scope < u16::MAX && (by_newcomer || self.entries.range(newer).next().is_some())
        };
        let is_idle = |entry: &Entry| entry.slot.is_none() && !entry.is_in_work;
        let idle = self.entries.iter().filter(|(voice, entry)| is_idle(entry) && is_superseded(voice));
        idle.map(|(voice, _)| *voice).min_by_key(|voice| (voice.scope, voice.speaker))
    }

    /// Merges a window of an admitted voice into its fresh ranges and says how many samples are fresh now.
    ///
    /// # Errors
    /// `no_fresh_audio` when nothing is left after what queries have used.
    pub fn offer(&mut self, voice: Voice, window: Span, ring: Span) -> Result<u64, ExitReason> {
        let entry = self.entries.get_mut(&voice).expect("a voice is admitted before it is offered");
        entry.covered.forget_before(ring.start());
        if let Some(window) = window.overlap(ring) {
            entry.fresh.insert_except(window, [&entry.covered, &entry.taken]);
        }
        entry.fresh.clip(ring);
        self.evicted += entry.fresh.keep_newest(self.limits.ranges_max.get());
        match entry.fresh.samples() {
            0 => Err(ExitReason::NoFreshAudio),
            fresh => Ok(fresh),
        }
    }

    /// Gives a voice a slot, or the latest segment id to the slot it has.
    ///
    /// # Errors
    /// When all slots, or all slots of this number, are taken.
    pub fn stamp(&mut self, voice: Voice, segment: SegmentId, now: Monotonic) -> Result<Stamped, Refused> {
        if let Some(slot) = self.entries.get_mut(&voice).and_then(|entry| entry.slot.as_mut()) {
            slot.segment = segment;
            return Ok(Stamped::Coalesced);
        }
        if self.slots >= self.limits.slots_max.get() {
            return Err(Refused::QueueFull);
        }
        let of_number = Voice::first_of(voice.speaker)..=Voice::last_of(voice.speaker);
        let held = self.entries.range(of_number).filter(|(_, entry)| entry.slot.is_some()).count();
        if held >= self.limits.slots_of_number_max.get() {
            return Err(Refused::NumberFull);
        }

        let entry = self.entries.get_mut(&voice).expect("a voice is admitted before it is stamped");
        entry.slot = Some(Slot { since: now, segment });
        self.slots += 1;
        Ok(Stamped::Queued)
    }

    /// The voice to examine next among those for which `standing` has an answer (`None`: not dispatchable now).
    ///
    /// From the age of [`Limits::age_override`] the oldest goes first, in one of [`Limits::override_every`] selections; before
    /// that, and in the other selections, the untried, then the near owners, then the longer pooled, then the older, then the
    /// smaller number. A total order.
    #[must_use]
    pub fn next(
        &self,
        now: Monotonic,
        query_max: u64,
        mut standing: impl FnMut(Voice) -> Option<Standing>,
    ) -> Option<Voice> {
        let candidates = self.entries.iter().filter_map(|(voice, entry)| {
            let slot = entry.slot.as_ref()?;
            let standing = standing(*voice)?;
            Some(self.order(*voice, (slot, entry.fresh.samples().min(query_max)), standing, now))
        });
        candidates.min().map(|order| order.voice)
    }

    /// Every slot in the order in which [`SpeakerMatchQueue::next`] would take them at this moment, and after them those
    /// that are not dispatchable.
    #[must_use]
    pub fn ranking(
        &self,
        now: Monotonic,
        query_max: u64,
        mut standing: impl FnMut(Voice) -> Option<Standing>,
    ) -> Vec<Ranked> {
        let mut preferred = Vec::new();
        let mut held = Vec::new();
        for (voice, slot, fresh) in self.waiting() {
            match standing(voice) {
                Some(standing) => preferred.push(Order::preferring(voice, (slot, fresh.min(query_max)), standing)),
                None => held.push(Ranked { voice, precedence: Precedence::Held }),
            }
        }
        preferred.sort_unstable();
        let orders = self.in_turn(preferred, now);
        let behind = orders.iter().skip(1).map(Some).chain([None]);
        let ranked = orders.iter().zip(behind).map(|(order, behind)| order.ranked(behind));
        ranked.chain(held).collect()
    }

    /// Slots in order of preference, and among them those whose turn age gives.
    fn in_turn(&self, mut preferred: Vec<Order>, now: Monotonic) -> Vec<Order> {
        let mut orders = Vec::with_capacity(preferred.len());
        let mut since_override = self.since_override;
        while !preferred.is_empty() {
            let aged = |(_, order): &(usize, &Order)| self.is_aged(order.since, now);
            let is_turn = since_override >= self.limits.override_every.get() - 1;
            let oldest = preferred.iter().enumerate().filter(|slot| is_turn && aged(slot));
            let oldest = oldest.min_by_key(|(_, order)| (order.since, order.voice)).map(|(place, _)| place);
            let order = preferred.remove(oldest.unwrap_or(0));
            since_override = if oldest.is_some() { 0 } else { since_override.saturating_add(1) };
            orders.push(Order { preference: order.preference.filter(|_| oldest.is_none()), ..order });
        }
        orders
    }

    fn order(&self, voice: Voice, slot: (&Slot, u64), standing: Standing, now: Monotonic) -> Order {
        let order = Order::preferring(voice, slot, standing);
        Order { preference: order.preference.filter(|_| !self.goes_by_age(slot.0, now)), ..order }
    }

    fn is_aged(&self, since: Monotonic, now: Monotonic) -> bool {
        now.since(since) >= self.limits.age_override
    }

    /// Whether a waiting voice would be taken for its age alone.
    #[must_use]
    pub fn is_by_age(&self, voice: Voice, now: Monotonic) -> bool {
        self.slot(voice).is_some_and(|slot| self.goes_by_age(slot, now))
    }

    /// Whether the next selection may go by age alone.
    #[must_use]
    pub const fn is_turn_of_age(&self) -> bool {
        self.since_override >= self.limits.override_every.get() - 1
    }

    fn goes_by_age(&self, slot: &Slot, now: Monotonic) -> bool {
        self.is_turn_of_age() && self.is_aged(slot.since, now)
    }

    /// Turns a slot into a query: the slot goes, and all fresh ranges are taken.
    ///
    /// # Panics
    /// When the voice has no slot.
    pub fn take(&mut self, voice: Voice, now: Monotonic) -> (Slot, Spans) {
        let entry = self.entries.get_mut(&voice).expect("only an admitted voice is taken");
        let slot = entry.slot.take().expect("only a waiting voice is taken");
        self.slots -= 1;
        self.since_override = if self.goes_by_age(&slot, now) { 0 } else { self.since_override.saturating_add(1) };
        let entry = self.entries.get_mut(&voice).expect("only an admitted voice is taken");
        let fresh = std::mem::take(&mut entry.fresh);
        entry.is_in_work = true;
        entry.taken.insert_all(&fresh);
        (slot, fresh)
    }

    /// The query uses only `selection`; what else it took is fresh again.
    pub fn narrow(&mut self, voice: Voice, selection: &Spans) {
        let entry = self.entries.get_mut(&voice).expect("only an admitted voice is in work");
        let rest = entry.taken.without(selection);
        entry.taken = selection.clone();
        entry.fresh.insert_all(&rest);
        self.evicted += entry.fresh.keep_newest(self.limits.ranges_max.get());
    }

    /// The query ended without using its ranges: they are fresh again, in no slot.
    pub fn restore(&mut self, voice: Voice) {
        self.narrow(voice, &Spans::new());
        if let Some(entry) = self.entries.get_mut(&voice) {
            entry.is_in_work = false;
        }
    }

    /// The query used what it took.
    ///
    /// Covered ranges are bounded by the attempts of a voice times the ranges of a query, and by the ring.
    pub fn cover(&mut self, voice: Voice) {
        let entry = self.entries.get_mut(&voice).expect("only an admitted voice is in work");
        let taken = std::mem::take(&mut entry.taken);
        entry.is_in_work = false;
        entry.covered.insert_all(&taken);
    }

    /// Ranges of an admitted voice that queries have used elsewhere.
    pub fn handle_covered(&mut self, voice: Voice, covered: &Spans) {
        let entry = self.entries.get_mut(&voice).expect("a voice is admitted before it is covered");
        entry.covered.insert_all(covered);
    }

    /// Undoes [`SpeakerMatchQueue::take`] for a dispatch that never arrived: the slot keeps its age, and a turn that age had
    /// comes back. When the queue filled up meanwhile, only the ranges come back.
    pub fn put_back(&mut self, voice: Voice, slot: Slot) {
        self.restore(voice);
        self.since_override = self.since_override.checked_sub(1).unwrap_or(self.limits.override_every.get() - 1);
        let Slot { since, segment } = slot;
        let newer = self.slot(voice).map_or(segment, |held| held.segment.clone());
        if self.stamp(voice, newer, since).is_ok()
            && let Some(held) = self.entries.get_mut(&voice).and_then(|entry| entry.slot.as_mut())
        {
            held.since = since;
        }
    }

    /// Takes a voice's slot away, leaving its ranges.
    pub fn unslot(&mut self, voice: Voice) -> Option<Slot> {
        let slot = self.entries.get_mut(&voice)?.slot.take()?;
        self.slots -= 1;
        Some(slot)
    }
}
