//! Plays a recording into the matcher: what socket, conversation and pool do in the service, one step after the other.
//!
//! Holds no copy of the audio: the timeline says which samples lie in the ring, and a clip is cut from the recording.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use gpu_worker::{Clip, Engine};
use matcher_core::budget::{Books, Refused, Reservation};
use matcher_core::{
    Batch, Budget, Dispatch, Event, ExitReason, Explanation, Generation, Join, LaneId, Monotonic, Offer, Rate, Refusal,
    Sample, Scheduler, Scope, Selection, Span, Speaker, Timeline,
};

use super::Request;
use crate::audio::{Audio, gate};
use crate::config::Switch;
use crate::live::labels;

/// A recording is one lane, and it never rolls over.
const LANE: LaneId = LaneId(1);
const GENERATION: Generation = Generation(1);

pub(super) struct Player {
    audio: Audio,
    scheduler: Scheduler,
    budget: Budget,
    timeline: Timeline,
    patience: Duration,
    clip_gate: Switch,
    exits: BTreeMap<&'static str, u64>,
    failures: BTreeMap<String, u64>,
    decided_at: BTreeMap<(Speaker, Scope), f64>,
}

/// Segments that end at one moment reach the matcher together.
pub(super) struct Ended {
    pub(super) at: Sample,
    pub(super) offers: Vec<Offer>,
}

impl Player {
    pub(super) fn new(request: &Request) -> Self {
        let rate = Rate::new(request.audio.sample_rate);
        let gallery = request.gallery.clone();
        let join = Join::new(GENERATION, rate, gallery);
        let mut scheduler = Scheduler::new(request.limits.clone(), request.policy);
        scheduler.handle_joined(LANE, join).expect("a conversation has room for its first lane");
        Self {
            audio: request.audio.clone(),
            scheduler,
            budget: Budget::new(request.budget, GENERATION, Monotonic::ZERO),
            timeline: Timeline::new(rate, rate.samples_in(request.ring)),
            patience: request.limits.reservation_deadline,
            clip_gate: request.clip_gate,
            exits: BTreeMap::new(),
            failures: BTreeMap::new(),
            decided_at: BTreeMap::new(),
        }
    }

    /// Where the audio clock stands, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.timeline.rate().seconds(self.timeline.now().0)
    }

    /// The clock goes on to where these segments ended, and every query that follows from them is made.
    pub(super) async fn play(&mut self, engine: &dyn Engine, ended: &Ended) {
        self.advance(ended.at);
        let batch = Batch {
            generation: GENERATION,
            scope: Scope::new(""),
            ring: self.timeline.range(),
            offers: ended.offers.clone(),
        };
        let mut out = Vec::new();
        self.scheduler.handle_batch(LANE, batch, self.now(), &mut out);
        self.note(out);
        while let Some(dispatch) = self.scheduler.poll_dispatch(self.now()) {
            self.examine(engine, &dispatch).await;
        }
    }

    /// The clock goes on to the end of the recording.
    pub(super) fn finish(&mut self) {
        self.advance(Sample(u64::MAX));
    }

    /// What is known of each voice, and when that became so.
    pub(super) fn voices(&self) -> Vec<(Explanation, Option<f64>)> {
        let mut numbers: Vec<Speaker> = self.scheduler.voices(LANE).iter().map(|voice| voice.speaker).collect();
        numbers.dedup();
        let explained = numbers.into_iter().flat_map(|speaker| self.scheduler.explain(LANE, speaker));
        explained
            .map(|voice| {
                let decided_at = self.decided_at.get(&(voice.state.speaker, voice.state.scope.clone())).copied();
                (voice, decided_at)
            })
            .collect()
    }

    pub(super) const fn books(&self) -> Books {
        self.budget.books()
    }

    /// Exits by reason, and failed queries by what failed.
    pub(super) fn into_counts(self) -> (BTreeMap<&'static str, u64>, BTreeMap<String, u64>) {
        (self.exits, self.failures)
    }

    fn advance(&mut self, to: Sample) {
        let to = to.0.min(self.audio.pcm.len() as u64);
        self.timeline.handle_samples(to.saturating_sub(self.timeline.now().0));
    }

    /// Audio time: a sample of a day at 48 kHz, in nanoseconds, stays far below 2^64.
    fn now(&self) -> Monotonic {
        let nanos = u128::from(self.timeline.now().0) * 1_000_000_000 / u128::from(self.timeline.rate().hertz());
        Monotonic::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    async fn examine(&mut self, engine: &dyn Engine, dispatch: &Dispatch) {
        let request = dispatch.request;
        let (selection, reservation) = match self.reserve(dispatch) {
            Ok(reserved) => reserved,
            Err(refusal) => {
                let mut out = Vec::new();
                self.scheduler.handle_refused(request, refusal, &mut out);
                return self.note(out);
            }
        };
        let reserved = self.scheduler.handle_reserved(request, &selection.spans, selection.samples);
        reserved.expect("nothing ended the query that was just dispatched");
        let answer = engine.submit(self.clip(&selection.pieces), self.patience).await;
        let mut out = Vec::new();
        match answer {
            Ok(embedding) => {
                self.budget.settle(reservation, matcher_core::budget::Outcome::Extracted);
                self.scheduler.handle_extracted(request, embedding, self.now(), &mut out);
            }
            Err(failure) => {
                let (outcome, _) = labels::failure(&failure);
                self.budget.settle(reservation, outcome);
                *self.failures.entry(failure.to_string()).or_default() += 1;
                self.scheduler.handle_failed(request, &mut out);
            }
        }
        self.note(out);
    }

    /// First the audio, then the budget, and nothing between.
    fn reserve(&mut self, dispatch: &Dispatch) -> Result<(Selection, Reservation), Refusal> {
        let voiced = dispatch.fresh.iter().filter(|span| self.is_voiced(*span)).collect();
        let audio = |pieces: &[Range<u64>]| {
            let Clip { pcm, sample_rate } = self.clip(pieces);
            Audio { pcm, sample_rate }
        };
        let picked = gate::pick(self.clip_gate, &self.timeline, dispatch, voiced, audio);
        let selection = picked.map_err(Refusal::Exit)?;
        let fresh = self.timeline.rate().duration(dispatch.pending);
        match self.budget.reserve_for(dispatch.generation, dispatch.speaker, fresh, self.now()) {
            Ok(reservation) => Ok((selection, reservation)),
            Err(Refused::Denied(denied)) => Err(Refusal::Denied(denied.cap)),
            Err(Refused::StaleGeneration) => Err(Refusal::Exit(ExitReason::StaleGeneration)),
            Err(Refused::NumberInWork) => unreachable!("each query ends before the next begins"),
            Err(Refused::VoiceCapacity) => Err(Refusal::Exit(ExitReason::VoiceCapacity)),
        }
    }

    /// Whether a span holds more than digital silence, of which a model makes something that means nothing.
    fn is_voiced(&self, span: Span) -> bool {
        let place = |sample: Sample| usize::try_from(sample.0).unwrap_or(usize::MAX);
        let end = place(span.end()).min(self.audio.pcm.len());
        self.audio.pcm.get(place(span.start())..end).is_some_and(|pcm| pcm.iter().any(|sample| *sample != 0))
    }

    /// The recording is played without a gap, so an index into the ring is one into the recording.
    fn clip(&self, pieces: &[Range<u64>]) -> Clip {
        let place = |index: u64| usize::try_from(index).unwrap_or(usize::MAX);
        let pieces = pieces.iter().filter_map(|piece| self.audio.pcm.get(place(piece.start)..place(piece.end)));
        let pcm: Vec<i16> = pieces.flatten().copied().collect();
        Clip { pcm: Arc::from(pcm), sample_rate: self.audio.sample_rate }
    }

    fn note(&mut self, out: Vec<Event>) {
        for event in out {
            match event {
                Event::Exited { reason, .. } => *self.exits.entry(reason.as_str()).or_default() += 1,
                Event::Published { state, .. } => {
                    let now = self.seconds();
                    self.decided_at.insert((state.speaker, state.scope), now);
                }
                // A retraction is followed by the voice's new state, a failure is counted where it is settled, and
                // neither a deadline, a former conversation nor a device exists here.
                Event::Failed { .. }
                | Event::Decided { .. }
                | Event::Retracted { .. }
                | Event::Suggested { .. }
                | Event::RolledOver { .. }
                | Event::Reconnected { .. }
                | Event::Collapsed { .. }
                | Event::Released { .. }
                | Event::Overdue { .. } => {}
            }
        }
    }
}
