//! One scheduler's side of the recording: it knows which voice each query is of, and hands entries on without waiting.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::mpsc::{SyncSender, TrySendError};

use matcher_core::queue::NearOwner;
use matcher_core::{
    Batch, Cap, Device, Dispatch, Event, Explanation, Generation, Join, LaneId, Monotonic, Refusal, RequestId,
    Scheduler, Scope, Span, Spans, Speaker, Status,
};

use super::writer::{Backlog, Entry, Message, Place, What};
use crate::simulate::trace::line::{Class, Joined};

/// Whether a lane brought voices along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::live) enum Resumed {
    /// It begins with nothing.
    No,
    /// It goes on with voices of before.
    Yes,
}

impl Resumed {
    /// Whether a lane that joins brings anything along itself.
    pub(in crate::live) fn of(join: &Join) -> Self {
        let is_new = join.attempts.is_empty() && join.held.is_empty() && join.memory.is_empty();
        let is_expected = matches!(join.device, Device::Reconnecting(_));
        if is_new && !is_expected { Self::No } else { Self::Yes }
    }
}

/// Whether a query brought a voiceprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::live) enum Brought {
    /// It did.
    Voiceprint,
    /// It failed, or was given up.
    Nothing,
}

/// A query between its selection and its end.
struct Query {
    place: Place,
    speaker: Speaker,
    scope: Scope,
    reserved: Option<Monotonic>,
}

/// The voices of a lane of which these events say something new: whoever claims one person is decided on together. A name that
/// is taken back is told with what the voice is now, so what is published is all.
pub(in crate::live) fn told_in(lane: LaneId, events: &[Event]) -> Vec<(Speaker, Scope)> {
    let mut told: Vec<(Speaker, Scope)> = Vec::new();
    for event in events {
        if let Event::Published { lane: of, state, .. } = event
            && *of == lane
            && !told.iter().any(|(speaker, scope)| *speaker == state.speaker && *scope == state.scope)
        {
            told.push((state.speaker, state.scope.clone()));
        }
    }
    told
}

/// See the module's text. Without a recording, and after its end, every call returns at once.
pub(in crate::live) struct Recorder {
    entries: Option<(SyncSender<Message>, Backlog)>,
    /// Bounded like the scheduler's own queries.
    queries: BTreeMap<RequestId, Query>,
    /// The lanes that are here, and their generation.
    lanes: BTreeMap<LaneId, Generation>,
}

impl Recorder {
    pub(super) const fn new(entries: Option<(SyncSender<Message>, Backlog)>) -> Self {
        Self { entries, queries: BTreeMap::new(), lanes: BTreeMap::new() }
    }

    pub(super) const fn is_on(&self) -> bool {
        self.entries.is_some()
    }

    fn push(&mut self, place: Place, at: Monotonic, what: What) {
        let Some((entries, backlog)) = &self.entries else { return };
        if !backlog.has_taken(&what) {
            return;
        }
        match entries.try_send(Message::Entry(Entry { place, at, what })) {
            Err(TrySendError::Full(Message::Entry(entry))) => backlog.lose(&entry.what),
            Err(TrySendError::Disconnected(_)) => self.end(),
            Ok(()) | Err(TrySendError::Full(Message::Stop)) => {}
        }
    }

    /// The writer is gone: the recording has its full size, or the disk took no more.
    fn end(&mut self) {
        self.entries = None;
        self.queries.clear();
        self.lanes.clear();
    }

    /// A lane enters.
    pub(in crate::live) fn joined(
        &mut self,
        (lane, join): (LaneId, &Join),
        tokens: f64,
        resumed: Resumed,
        at: Monotonic,
    ) {
        let Some(rate) = NonZeroU32::new(join.rate.hertz()).filter(|_| self.is_on()) else { return };
        self.lanes.insert(lane, join.generation);
        let joined = Joined { rate, tokens: whole(tokens), resumed: resumed == Resumed::Yes };
        self.push(Place::of((lane, join.generation)), at, What::Joined(joined));
    }

    /// A lane left.
    pub(in crate::live) fn left(&mut self, lane: LaneId, at: Monotonic) {
        if let Some(generation) = self.lanes.remove(&lane) {
            self.push(Place::of((lane, generation)), at, What::Left);
        }
    }

    /// Segments came.
    pub(in crate::live) fn heard(&mut self, lane: LaneId, batch: &Batch, at: Monotonic) {
        if self.lanes.get(&lane) != Some(&batch.generation) {
            return;
        }
        let segments =
            batch.offers.iter().map(|offer| (offer.speaker, offer.scope.clone(), offer.window, offer.speech));
        let what = What::Heard { ring: batch.ring, segments: segments.collect() };
        self.push(Place::of((lane, batch.generation)), at, what);
    }

    /// A voice was selected.
    pub(in crate::live) fn selected(&mut self, dispatch: &Dispatch, at: Monotonic) {
        if !self.is_on() {
            return;
        }
        let place = Place::of((dispatch.lane, dispatch.generation));
        let (speaker, scope) = (dispatch.speaker, dispatch.scope.clone());
        let query = Query { place, speaker, scope: scope.clone(), reserved: None };
        self.queries.insert(dispatch.request, query);
        self.push(place, at, What::Selected { speaker, scope, waited: dispatch.waited });
    }

    /// A token was spent.
    pub(in crate::live) fn reserved(&mut self, request: RequestId, spans: &Spans, at: Monotonic) {
        let Some(query) = self.queries.get_mut(&request) else { return };
        query.reserved = Some(at);
        let (place, speaker, scope) = (query.place, query.speaker, query.scope.clone());
        let spans: Vec<Span> = spans.iter().collect();
        self.push(place, at, What::Reserved { speaker, scope, spans });
    }

    /// No token was spent.
    pub(in crate::live) fn refused(&mut self, request: RequestId, refusal: Refusal, at: Monotonic) {
        let Some(Query { place, speaker, scope, .. }) = self.queries.remove(&request) else { return };
        let what = match refusal {
            Refusal::Denied(cap) => What::Denied { speaker, scope, reason: Cap::as_str(cap) },
            Refusal::Exit(reason) => What::Refused { speaker, scope, reason: reason.as_str() },
        };
        self.push(place, at, what);
    }

    /// The selection did not reach its socket.
    pub(in crate::live) fn undelivered(&mut self, request: RequestId, at: Monotonic) {
        if let Some(Query { place, speaker, scope, .. }) = self.queries.remove(&request) {
            self.push(place, at, What::Undelivered { speaker, scope });
        }
    }

    /// The query ended. One that brought something is judged next.
    pub(in crate::live) fn ran(&mut self, request: RequestId, brought: Brought, at: Monotonic) {
        let Some(query) = self.queries.get(&request) else { return };
        let (place, speaker, scope) = (query.place, query.speaker, query.scope.clone());
        let took = at.since(query.reserved.unwrap_or(at));
        self.push(place, at, What::Ran { speaker, scope, took, brought });
        if brought == Brought::Nothing {
            self.queries.remove(&request);
        }
    }

    /// The voiceprint was judged: what is said of the voice now, and of the others of whom something was told then.
    pub(in crate::live) fn judged(
        &mut self,
        (request, told): (RequestId, Vec<(Speaker, Scope)>),
        scheduler: &Scheduler,
        at: Monotonic,
    ) {
        let Some(Query { place, speaker, scope, .. }) = self.queries.remove(&request) else { return };
        let class_of = |speaker: Speaker, scope: &Scope| {
            let explained = scheduler.explain(place.lane, speaker).into_iter().find(|told| told.state.scope == *scope);
            explained.as_ref().map(class)
        };
        let others: Vec<_> = told.into_iter().filter(|other| (other.0, &other.1) != (speaker, &scope)).collect();
        if let Some(class) = class_of(speaker, &scope) {
            self.push(place, at, What::Judged { speaker, scope, class });
        }
        for (speaker, scope) in others {
            if let Some(class) = class_of(speaker, &scope) {
                self.push(place, at, What::Moved { speaker, scope, class });
            }
        }
    }

    /// What voices are no longer follows from what is recorded: people decided something, or changed.
    pub(in crate::live) fn changed(&mut self, at: Monotonic) {
        let places: Vec<Place> = self.lanes.iter().map(|(lane, generation)| Place::of((*lane, *generation))).collect();
        for place in places {
            self.push(place, at, What::Changed);
        }
    }
}

const fn class(explained: &Explanation) -> Class {
    match (explained.state.status, explained.near_owner) {
        (Status::User, _) => Class::Owner,
        (Status::NotUser, _) => Class::Person,
        (Status::Pending, _) => Class::Pending,
        (Status::NoMatch | Status::Ambiguous | Status::Unknown, NearOwner::Near) => Class::NearOwner,
        (Status::NoMatch | Status::Ambiguous | Status::Unknown, NearOwner::Far) => Class::Nobody,
    }
}

/// Whole tokens of a bucket.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bucket holds some thousands at the most"
)]
fn whole(tokens: f64) -> u32 {
    tokens.max(0.0).floor() as u32
}
