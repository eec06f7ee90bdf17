//! Whether the core's queue selects in the recorded order: it is fed what was heard, granted, denied and judged at the recorded
//! moments, and asked at each recorded turn who is next.
//!
//! Of two slots that are equal in everything else the smaller number goes first. A recording numbers anew, so there either is
//! the core's order. From the first difference on the two are in different states, and nothing more is compared; nor is it from the moment on when
//! people decided something, or when a lane brought voices along, of which a recording does not tell.

use std::collections::BTreeMap;

use matcher_core::queue::Voice;
use matcher_core::{Cap, Monotonic, Offer, Rate, Refusal, RequestId, SegmentId, Selection, Spans, Speaker};
use serde::Serialize;

use super::RecordedLane;
use super::line::{Event, Heard, span};
use super::replay::{cast, said};
use crate::simulate::discipline::Discipline;
use crate::simulate::setup::Setup;
use crate::simulate::slots::{Order, Slots};
use crate::simulate::voices::{self, Hearing};
use crate::simulate::world;

/// How far the recorded order is the core's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Followed {
    /// Selections in the recording.
    pub selections: u64,
    /// ... that were compared, and are the same.
    pub same: u64,
    /// The first that is not; the comparison ends there.
    pub difference: Option<Difference>,
    /// Selections after people decided something, or of a lane that brought voices along: not compared.
    pub not_compared: u64,
}

/// A selection that is not the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which selection of the lane, from 1.
    pub selection: u64,
    /// Nanoseconds since the recording began.
    pub at: u64,
    /// The voice that was recorded.
    pub recorded: u32,
    /// The voice that the core's queue selects; none when it selects nobody.
    pub selected: Option<u32>,
}

struct Follower {
    slots: Slots,
    /// The request of each voice that is in work.
    open: BTreeMap<(u32, u16), RequestId>,
    segments: u64,
    found: Followed,
    is_over: bool,
}

/// Follows a lane to its end.
pub(super) fn follow(lane: &RecordedLane, setup: &Setup) -> Followed {
    let rate = Rate::new(lane.joined.rate);
    let mut follower = Follower {
        slots: Slots::new(rate, setup.limits.clone(), Order::Service, cast(lane)),
        open: BTreeMap::new(),
        segments: 0,
        found: Followed { selections: 0, same: 0, difference: None, not_compared: 0 },
        is_over: lane.joined.resumed,
    };
    for (at, event) in &lane.events {
        follower.handle(Monotonic::from_nanos(*at), event);
    }
    follower.found
}

impl Follower {
    fn handle(&mut self, now: Monotonic, event: &Event) {
        if let Event::Selected(selected) = event {
            return self.select((selected.voice, selected.stream), now);
        }
        if self.is_over {
            return;
        }
        match event {
            Event::Heard(heard) => self.hear(heard, now),
            Event::Reserved { voice, stream, spans } => self.reserve((*voice, *stream), spans),
            Event::Denied(reason) | Event::Refused(reason) => self.refuse((reason.voice, reason.stream)),
            Event::Undelivered(of) => {
                if let Some(request) = self.open.remove(&(of.voice, of.stream)) {
                    self.slots.handle_undelivered(request);
                }
            }
            Event::Ran { voice, stream, brought: false, .. } => {
                if let Some(request) = self.open.remove(&(*voice, *stream)) {
                    self.slots.handle_failed(request);
                }
            }
            Event::Judged { voice, stream, .. } => {
                if let Some(request) = self.open.remove(&(*voice, *stream)) {
                    let voiceprint = voices::heard(Speaker(*voice), Hearing::Clear);
                    self.slots.handle_extracted(request, voiceprint, now);
                }
            }
            Event::Moved { voice, stream, class } => {
                self.slots.handle_moved(Voice { speaker: Speaker(*voice), scope: *stream }, *class);
            }
            Event::Changed {} => self.is_over = true,
            Event::Joined(_)
            | Event::Selected(_)
            | Event::Ran { .. }
            | Event::Left {}
            | Event::Lost { .. }
            | Event::Full {} => {}
        }
    }

    fn hear(&mut self, heard: &Heard, now: Monotonic) {
        let offers: Vec<Offer> = said(heard)
            .into_iter()
            .map(|said| {
                self.segments += 1;
                world::offer(said, SegmentId::new(&self.segments.to_string()))
            })
            .collect();
        self.slots.handle_message(offers, heard.ring.and_then(span), now);
    }

    fn select(&mut self, recorded: (u32, u16), now: Monotonic) {
        self.found.selections += 1;
        if self.is_over {
            self.found.not_compared += u64::from(self.found.difference.is_none());
            return;
        }
        let voice = Voice { speaker: Speaker(recorded.0), scope: recorded.1 };
        match self.slots.poll_as_recorded(voice, now) {
            Ok(dispatch) => {
                self.found.same += 1;
                self.open.insert(recorded, dispatch.request);
            }
            Err(next) => {
                self.found.difference = Some(Difference {
                    selection: self.found.selections,
                    at: now.as_nanos(),
                    recorded: recorded.0,
                    selected: next.map(|voice| voice.speaker.0),
                });
                self.is_over = true;
            }
        }
    }

    fn reserve(&mut self, voice: (u32, u16), spans: &[[u64; 2]]) {
        let Some(request) = self.open.get(&voice) else { return };
        let mut used = Spans::new();
        spans.iter().filter_map(|stretch| span(*stretch)).for_each(|span| used.insert(span));
        let samples = used.samples();
        self.slots.handle_reserved(*request, &Selection { spans: used, pieces: Vec::new(), samples });
    }

    fn refuse(&mut self, voice: (u32, u16)) {
        if let Some(request) = self.open.remove(&voice) {
            // Which reason it was changes nothing in the queue.
            self.slots.handle_refused(request, Refusal::Denied(Cap::Socket));
        }
    }
}
