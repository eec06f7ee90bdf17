//! One conversation under load: a hundred voices that talk one after another, strangers to everybody in the gallery.
//!
//! Strangers, because a voice with a name leaves the queue, and the queue has to stay full.

use std::num::NonZeroU32;
use std::time::Duration;

use matcher_core::policy::{Print, Role};
use matcher_core::{
    Batch, Embedding, Event, Gallery, Generation, Join, LaneId, Limits, Monotonic, Offer, PersonId, Rate, Sample,
    Scheduler, Scope, SegmentId, Span, Speaker, Timeline,
};

use crate::simulate::POLICY;

/// Values in a voiceprint, as the usual model gives them.
pub(super) const DIMENSION: usize = 192;

/// People in the gallery: a family and its friends.
pub(super) const PEOPLE: usize = 8;

/// Ranges of a voice in an ordinary conversation.
pub(super) const FEW: u64 = 4;

/// The most ranges that a voice can have.
pub(super) const MOST: u64 = 128;

const LANE: LaneId = LaneId(1);
const GENERATION: Generation = Generation(1);
const HERTZ: u64 = 16_000;
const RING_SECONDS: u64 = 60;

pub(super) struct Load {
    scheduler: Scheduler,
    timeline: Timeline,
    scope: Scope,
    /// Segments so far: every one has an id of its own, as in the service.
    segments: u64,
    voices: u32,
    now: Monotonic,
    stranger: Embedding,
    events: Vec<Event>,
}

impl Load {
    pub(super) fn new() -> Self {
        let rate = Rate::new(NonZeroU32::new(16_000).expect("the rate is not zero"));
        let mut timeline = Timeline::new(rate, RING_SECONDS * HERTZ);
        timeline.handle_samples(RING_SECONDS * HERTZ);
        let limits = Limits::default();
        let voices = u32::try_from(limits.slots_max.get()).unwrap_or(u32::MAX);
        let mut scheduler = Scheduler::new(limits, POLICY);
        let join = Join::new(GENERATION, rate, gallery());
        scheduler.handle_joined(LANE, join).expect("an empty conversation has room");
        let (scope, stranger) = (Scope::new("stream:0"), direction(PEOPLE));
        Self { scheduler, timeline, scope, segments: 0, voices, now: Monotonic::ZERO, stranger, events: Vec::new() }
    }

    /// Slots taken.
    pub(super) fn slots(&self) -> usize {
        self.scheduler.queue(LANE).map_or(0, matcher_core::SpeakerMatchQueue::len)
    }

    /// Gives every voice this many ranges over the whole ring, half of each stretch silent, and fills the queue.
    pub(super) fn with_ranges(mut self, ranges: u64) -> Self {
        let stretch = RING_SECONDS * HERTZ / ranges;
        let first = self.timeline.range().expect("the ring is full").start().0;
        for speaker in 0..self.voices {
            let windows = (0..ranges).map(|n| window(first + n * stretch, stretch / 2));
            let offers = windows.map(|window| self.offer(speaker, window)).collect();
            self.handle(offers);
        }
        self
    }

    /// As many voices as a lane admits, each with all the evidence that it can hold, and a ring of new audio.
    pub(super) fn with_evidence(mut self) -> Self {
        let limits = Limits::default();
        self.voices = u32::try_from(limits.voices_max.get()).unwrap_or(u32::MAX);
        for clip in 0..u64::from(limits.clips_kept.get()) {
            for speaker in 0..self.voices {
                let first = self.timeline.range().expect("the ring is full").start().0;
                let offer = self.offer(speaker, window(first + clip * 3 * HERTZ, 2 * HERTZ));
                self.handle(vec![offer]);
                self.query().expect("a voice with two new seconds is queued");
            }
        }
        self.timeline.handle_samples(RING_SECONDS * HERTZ);
        self
    }

    /// A second passes; every voice spoke in it, and each of their segments comes as a message of its own.
    pub(super) fn update_all(&mut self) -> u64 {
        self.pass(HERTZ);
        let newest = self.timeline.now().0;
        for speaker in 0..self.voices {
            let offer = self.offer(speaker, window(newest - HERTZ, HERTZ));
            self.handle(vec![offer]);
        }
        u64::from(self.voices)
    }

    /// As many queries as there are voices, ten a second. Whoever was examined queues again at once, with the three
    /// seconds that it talked since the last time, so every query chooses from a full queue.
    pub(super) fn query_all(&mut self) -> u64 {
        for _ in 0..self.voices {
            self.pass(HERTZ / 10);
            let examined = self.query().expect("the queue is full");
            let offer = self.offer(examined, window(self.timeline.now().0 - 3 * HERTZ, 3 * HERTZ));
            self.handle(vec![offer]);
        }
        u64::from(self.voices)
    }

    /// One query, from choosing the slot to the published verdict.
    fn query(&mut self) -> Option<u32> {
        let dispatch = self.scheduler.poll_dispatch(self.now)?;
        let request = dispatch.request;
        let selection = self.timeline.pick(&dispatch.fresh, dispatch.needed, dispatch.query_max);
        let selection = selection.expect("the whole ring holds audio");
        let reserved = self.scheduler.handle_reserved(request, &selection.spans, selection.samples);
        reserved.expect("nothing ended this query between");
        self.scheduler.handle_extracted(request, self.stranger.clone(), self.now, &mut self.events);
        self.events.clear();
        Some(dispatch.speaker.0)
    }

    /// Time and audio go on together.
    fn pass(&mut self, samples: u64) {
        self.timeline.handle_samples(samples);
        self.now = self.now.after(Duration::from_nanos(samples * 1_000_000_000 / HERTZ));
    }

    fn offer(&mut self, speaker: u32, window: Span) -> Offer {
        self.segments += 1;
        let segment = SegmentId::new(&format!("01J8ZQ4V6T9Y2M5N{:010}", self.segments));
        let scope = self.scope.clone();
        Offer { speaker: Speaker(speaker), scope, window, speech: window.samples(), segment }
    }

    fn handle(&mut self, offers: Vec<Offer>) {
        let batch = Batch { generation: GENERATION, scope: self.scope.clone(), ring: self.timeline.range(), offers };
        self.scheduler.handle_batch(LANE, batch, self.now, &mut self.events);
        self.events.clear();
    }
}

fn window(start: u64, samples: u64) -> Span {
    Span::new(Sample(start), Sample(start + samples)).expect("windows of the load are not empty")
}

/// A voiceprint at right angles to every other.
fn direction(axis: usize) -> Embedding {
    let values: Vec<f32> = (0..DIMENSION).map(|index| if index == axis { 1.0 } else { 0.0 }).collect();
    Embedding::new(&values).expect("an axis is a direction")
}

fn gallery() -> Gallery {
    let print = |axis| Print {
        person: PersonId::new(&format!("person-{axis}")),
        name: "Somebody".into(),
        role: if axis == 0 { Role::Owner } else { Role::Person },
        embedding: direction(axis),
        is_pinned: false,
    };
    Gallery::new((0..PEOPLE).map(print).collect())
}
