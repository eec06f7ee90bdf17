//! The clock of one lane's audio: where the samples in its ring lie in time, and which of them a query gets.
//!
//! Owns positions and indices, never audio: the ring itself lives with its socket and is addressed by the absolute index
//! of a sample, counted over everything that was ever written. Times of a provider become spans here.

use std::collections::VecDeque;
use std::ops::Range;

use crate::exit::ExitReason;
use crate::span::{Rate, Sample, Span, Spans};

/// Stretches of audio between gaps that a ring remembers. A stretch ends only where audio was lost; when there are more,
/// the oldest is forgotten, as if the ring had overwritten it.
pub const STRETCHES_MAX: usize = 4096;

/// Why a provider's time is no span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadTime {
    /// The start is not a number, negative, or too large.
    #[error("must be a number of seconds from 0 to 1000000000")]
    Start,
    /// The end is not a number, negative, or too large.
    #[error("must be a number of seconds from 0 to 1000000000")]
    End,
    /// The end does not lie behind the start.
    #[error("must lie after `start`")]
    Reversed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    at: Sample,
    samples: u64,
    index: u64,
}

impl Stretch {
    const fn end(self) -> Sample {
        Sample(self.at.0 + self.samples)
    }
}

/// What a query gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The spans that the query uses; they are covered when it succeeds.
    pub spans: Spans,
    /// Absolute sample indices in the ring, in order.
    pub pieces: Vec<Range<u64>>,
    /// Samples in all pieces.
    pub samples: u64,
}

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Timeline {
    rate: Rate,
    capacity: u64,
    stretches: VecDeque<Stretch>,
    retained: u64,
    written: u64,
}

impl Timeline {
    /// An empty timeline whose ring holds `capacity` samples. With no capacity nothing is ever retained.
    #[must_use]
    pub const fn new(rate: Rate, capacity: u64) -> Self {
        Self { rate, capacity, stretches: VecDeque::new(), retained: 0, written: 0 }
    }

    /// Samples per second.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The position after the newest sample.
    #[must_use]
    pub fn now(&self) -> Sample {
        self.stretches.back().map_or(Sample(0), |stretch| stretch.end())
    }

    /// From the oldest sample that is still held to the newest; `None` when nothing is held.
    #[must_use]
    pub fn range(&self) -> Option<Span> {
        Span::new(self.stretches.front()?.at, self.now()).ok()
    }

    /// `samples` more arrived, right after the newest.
    pub fn handle_samples(&mut self, samples: u64) {
        self.handle_samples_at(self.now(), samples);
    }

    /// `samples` more arrived; the first lies at `at`, or after the newest sample when `at` lies before that.
    pub fn handle_samples_at(&mut self, at: Sample, samples: u64) {
        if self.capacity == 0 || samples == 0 {
            return;
        }
        let at = at.max(self.now());
        match self.stretches.back_mut() {
            Some(last) if last.end() == at => last.samples += samples,
            _ => self.stretches.push_back(Stretch { at, samples, index: self.written }),
        }
        self.written += samples;
        self.retained += samples;
        self.evict();
    }

    /// A segment's times as a span. Times are seconds of this lane's audio.
    ///
    /// # Errors
    /// When a time is no position, or the end does not lie after the start.
    pub fn span(&self, start: f64, end: f64) -> Result<Span, BadTime> {
        let from = self.rate.sample_at(start).ok_or(BadTime::Start)?;
        let to = self.rate.sample_at(end).ok_or(BadTime::End)?;
        Span::new(from, to).map_err(|_| BadTime::Reversed)
    }

    /// The parts of `span` that the ring holds, in order: one, unless audio was lost in between.
    pub fn held(&self, span: Span) -> impl Iterator<Item = Span> + '_ {
        self.stretches.iter().filter_map(move |stretch| Span::new(stretch.at, stretch.end()).ok()?.overlap(span))
    }

    /// The absolute indices of the samples held in `span`, in order. Gaps are skipped, never filled.
    #[must_use]
    pub fn locate(&self, span: Span) -> Vec<Range<u64>> {
        let held = self.stretches.iter().filter_map(|stretch| {
            let part = Span::new(stretch.at, stretch.end()).ok()?.overlap(span)?;
            let first = stretch.index + (part.start().0 - stretch.at.0);
            Some(first..first + part.samples())
        });
        held.collect()
    }

    /// Chooses a query's audio from `fresh`: the oldest spans first, at most `query_max` samples in all. A span longer
    /// than what remains gives its middle; a span without audio is skipped at no cost.
    ///
    /// # Errors
    /// `no_pcm` when there is no audio at all, `window_shorter_than_minimum` when there is less than `needed`.
    pub fn pick(&self, fresh: &Spans, needed: u64, query_max: u64) -> Result<Selection, ExitReason> {
        let range = self.range().ok_or(ExitReason::NoPcm)?;
        let mut selection = Selection { spans: Spans::new(), pieces: Vec::new(), samples: 0 };
        let mut remaining = query_max;
        for span in fresh.iter().filter_map(|span| span.overlap(range)) {
            let Some(part) = span.centred(remaining) else { break };
            let pieces = self.locate(part);
            if pieces.is_empty() {
                continue;
            }
            remaining -= part.samples();
            selection.samples += pieces.iter().map(|piece| piece.end - piece.start).sum::<u64>();
            selection.pieces.extend(pieces);
            selection.spans.insert(part);
        }
        match selection.samples {
            0 => Err(ExitReason::NoPcm),
            samples if samples < needed => Err(ExitReason::WindowShorterThanMinimum),
            _ => Ok(selection),
        }
    }

    fn evict(&mut self) {
        while self.stretches.len() > STRETCHES_MAX
            || self.stretches.front().is_some_and(|oldest| self.retained - oldest.samples >= self.capacity)
        {
            let gone = self.stretches.pop_front().expect("the loop's condition saw a front");
            self.retained -= gone.samples;
        }
        let surplus = self.retained.saturating_sub(self.capacity);
        if let Some(oldest) = self.stretches.front_mut() {
            oldest.at.0 += surplus;
            oldest.index += surplus;
            oldest.samples -= surplus;
            self.retained -= surplus;
        }
    }
}
