//! What each move does.

use matcher_core::{
    Batch, Dispatch, Event, ExitReason, LaneId, Offer, Over, Refusal, RequestId, Sample, SegmentId, Span, Spans,
    Speaker,
};

use super::{Difference, Open, World, embedding, gallery};
use crate::reference::model::{Answer, Message, Query};
use crate::reference::moves::{Asked, Move, Reserved, Said, Which};
use crate::reference::words::{GALLERIES, Sound, lasting};

/// The most audio of one query.
const QUERY_MAX: u64 = 20;

/// Whether what people decided can be read.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Authority {
    Read,
    Unreadable,
}

impl World {
    pub(super) fn make(&mut self, next: &Move) -> Result<(), Difference> {
        match next {
            Move::Hear(said, sound) => self.hear(said, *sound),
            Move::Offer(said) => self.offer(said, 0),
            Move::OfferLate(said) => self.offer(said, 1),
            Move::Turn { lane } => self.turn(self.lanes[*lane].conversation).map(|_| ()),
            Move::Dispatch { lane } => self.dispatch(self.lanes[*lane].conversation).map(|_| ()),
            Move::Reserve { dispatch, answer } => self.reserve(*dispatch, *answer),
            Move::Answer { query, sound } => self.answer_open(*query, *sound, Authority::Read),
            Move::Unread { query, sound } => self.answer_open(*query, *sound, Authority::Unreadable),
            Move::Fail { query } => self.fail(*query),
            Move::Correct { conversation, edits, is_told } => self.correct(*conversation, edits, *is_told),
            Move::Deliver { conversation, back } => self.deliver_older(*conversation, *back),
            Move::People { lane, people } => self.enrol(*lane, *people),
            Move::RollOver { lane, to } => self.roll_over(*lane, *to),
            Move::Bring { moving, answer } => self.bring(*moving, *answer),
            Move::Leave { lane, to, device } => self.leave(*lane, *to, device),
            Move::Resume { lane, device } => self.resume(*lane, device),
            Move::Clear { lane, device } => self.clear(*lane, device),
            Move::Word { lane, of, answer } => self.word(*lane, *of, *answer),
            Move::Delete { conversation } => {
                self.store[*conversation].is_deleted = true;
                Ok(())
            }
            Move::Provider { lane, scope } => {
                self.lanes[*lane].scope = scope;
                Ok(())
            }
            Move::Pass { seconds } => self.pass(*seconds),
        }
    }

    /// One segment, of so many generations ago. Audio and speech go on: what is offered was never examined.
    fn offer(&mut self, said: &Said, generations_ago: u64) -> Result<(), Difference> {
        let (seconds, now) = (self.seconds, self.now());
        let lane = &mut self.lanes[said.lane];
        let generation = lane.generation.saturating_sub(generations_ago);
        let scope = said.scope.unwrap_or(lane.scope);
        let start = lane.audio;
        lane.audio += said.half_seconds + 1;
        let (id, at) = (lane.id, lane.conversation);
        let position = |from, to| Span::new(Sample(from), Sample(to)).expect("speech is not empty");
        let offer = Offer {
            speaker: Speaker(said.speaker),
            scope: Self::scope(scope),
            window: position(start, start + said.half_seconds),
            speech: said.half_seconds,
            segment: SegmentId::new(said.segment),
        };
        let (current, ring) = (lane.scope, Some(position(0, lane.audio)));
        let generation = matcher_core::Generation(generation);
        let batch = Batch { generation, scope: Self::scope(current), ring, offers: vec![offer] };
        let mut out = Vec::new();
        self.real[at].handle_batch(LaneId(id), batch, now, &mut out);
        let (voice, segment) = ((said.speaker, scope), said.segment);
        let message = Message { generation: generation.0, current, voice, segment, now: seconds };
        let told = self.model.heard(at, id, message);
        self.compare(at, out, told)
    }

    fn hear(&mut self, said: &Said, sound: Sound) -> Result<(), Difference> {
        self.offer(said, 0)?;
        let at = self.lanes[said.lane].conversation;
        while let Some(dispatch) = self.turn(at)? {
            if dispatch.lane.0 == self.lanes[said.lane].id && dispatch.speaker.0 == said.speaker {
                return self.answer_open(Which::Newest, sound, Authority::Read);
            }
        }
        Ok(())
    }

    /// A query starts, if one can.
    fn turn(&mut self, at: usize) -> Result<Option<Dispatch>, Difference> {
        let dispatch = self.dispatch(at)?;
        if dispatch.is_some() {
            self.reserve(Which::Newest, Reserved::Yes)?;
        }
        Ok(dispatch)
    }

    /// A socket is asked for a query, of a voice that needs it and for as much as it needs.
    fn dispatch(&mut self, at: usize) -> Result<Option<Dispatch>, Difference> {
        let now = self.now();
        let Some(dispatch) = self.real[at].poll_dispatch(now) else { return Ok(None) };
        self.compare_dispatch(at, &dispatch)?;
        self.dispatched.push((at, dispatch.clone()));
        Ok(Some(dispatch))
    }

    fn reserve(&mut self, dispatch: Which, answer: Reserved) -> Result<(), Difference> {
        let Some(dispatch) = Self::position(dispatch, self.dispatched.len()) else { return Ok(()) };
        let (at, dispatch) = self.dispatched.remove(dispatch);
        let mut out = Vec::new();
        match answer {
            Reserved::Yes => self.reserved(at, &dispatch, &mut out),
            Reserved::No => self.real[at].handle_refused(dispatch.request, Refusal::Exit(ExitReason::NoPcm), &mut out),
            Reserved::Lost => self.real[at].handle_undelivered(dispatch.request, &mut out),
        }
        self.compare(at, out, Vec::new())
    }

    fn reserved(&mut self, at: usize, dispatch: &Dispatch, out: &mut Vec<Event>) {
        let selection = first(&dispatch.fresh, QUERY_MAX);
        let half_seconds = selection.samples();
        if self.real[at].handle_reserved(dispatch.request, &selection, half_seconds) == Err(Over) {
            return self.real[at].handle_failed(dispatch.request, out); // Its lane left meanwhile.
        }
        let voice = (dispatch.speaker.0, lasting(dispatch.scope.as_str()));
        let (lane, generation) = (dispatch.lane.0, dispatch.generation.0);
        self.model.started(at, dispatch.request.0, Query { lane, generation, voice, half_seconds });
        let lane = self.side(dispatch.lane);
        *self.lanes[lane].attempts.entry(dispatch.speaker).or_default() += 1;
        self.open.push(Open { conversation: at, request: dispatch.request, lane });
    }

    fn answer_open(&mut self, query: Which, sound: Sound, authority: Authority) -> Result<(), Difference> {
        let Some(query) = Self::position(query, self.open.len()) else { return Ok(()) };
        let Open { conversation: at, request, lane } = self.open.remove(query);
        let is_authorised = authority == Authority::Read;
        if is_authorised {
            self.read(at, lane)?;
        }
        let (now, mut out) = (self.now(), Vec::new());
        if is_authorised {
            self.real[at].handle_extracted(request, embedding(sound), now, &mut out);
        } else {
            self.real[at].handle_unauthorised(request, embedding(sound), now, &mut out);
        }
        let told = self.model.answered(at, request.0, Answer { sound, is_authorised, now: self.seconds });
        self.compare(at, out, told)
    }

    fn fail(&mut self, query: Which) -> Result<(), Difference> {
        let Some(query) = Self::position(query, self.open.len()) else { return Ok(()) };
        let Open { conversation: at, request, .. } = self.open.remove(query);
        let mut out = Vec::new();
        self.real[at].handle_failed(request, &mut out);
        self.model.ended(at, request.0);
        self.compare(at, out, Vec::new())
    }

    fn enrol(&mut self, lane: usize, people: usize) -> Result<(), Difference> {
        let people = GALLERIES[people];
        self.lanes[lane].people = people;
        let (id, at) = (self.lanes[lane].id, self.lanes[lane].conversation);
        let mut out = Vec::new();
        self.real[at].handle_gallery(LaneId(id), gallery(people), &mut out);
        let told = self.model.enrolled(at, id, people);
        self.compare(at, out, told)
    }

    /// Deadlines pass, and words on which names rest are heard again.
    fn pass(&mut self, seconds: u64) -> Result<(), Difference> {
        self.seconds += seconds;
        let now = self.now();
        for at in 0..self.real.len() {
            let mut out = Vec::new();
            self.real[at].handle_timeout(now, &mut out);
            for event in &out {
                if let Event::Overdue { request } = event {
                    self.model.ended(at, request.0);
                }
            }
            self.compare(at, out, Vec::new())?;
        }
        for (at, lane, of) in std::mem::take(&mut self.words_due) {
            let lane = self.side(LaneId(lane));
            of.into_iter().try_for_each(|of| self.tell_word(at, lane, (of, Asked::Answers)))?;
        }
        Ok(())
    }

    pub(super) fn side(&self, lane: LaneId) -> usize {
        self.lanes.iter().position(|side| side.id == lane.0).expect("the lane has a socket")
    }

    /// A query of a lane's former conversation ended: its number is free where the lane is now.
    pub(super) fn released(&mut self, lane: LaneId, speaker: Speaker) {
        let at = self.lanes[self.side(lane)].conversation;
        self.real[at].handle_released(lane, speaker);
    }

    pub(super) fn is_open(&self, at: usize, request: RequestId) -> bool {
        let is_dispatched = self.dispatched.iter().any(|(of, dispatch)| (*of, dispatch.request) == (at, request));
        is_dispatched || self.open.iter().any(|open| (open.conversation, open.request) == (at, request))
    }
}

/// The first samples of these spans.
fn first(spans: &Spans, samples_max: u64) -> Spans {
    let mut left = samples_max;
    let mut chosen = Spans::new();
    for span in spans.iter() {
        let end = span.end().0.min(span.start().0 + left);
        if let Ok(part) = Span::new(span.start(), Sample(end)) {
            left -= part.samples();
            chosen.insert(part);
        }
    }
    chosen
}
