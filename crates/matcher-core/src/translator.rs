//! From a provider's clock to the audio: which samples of a lane a provider stream means by its seconds.
//!
//! A provider counts the audio that it was sent, from 0, and nothing else: what a gate kept from it takes no time there. So
//! its times are mapped through what it was sent, and never taken for positions.
//!
//! ```text
//! provider   0 ──────── 1.0 ──────── 3.0      what it was sent, back to back
//!            │          │ ╲            ╲
//! capture    0 ──────── 1.0   30.0 ── 32.0    where that lies in the lane's audio
//! ```
//!
//! Owns the map of one stream, in integers. Knows neither the ring nor scopes: which stream a message means, and whether
//! the stream still lives, is its owner's business.

mod unmapped;

use std::collections::VecDeque;
use std::time::Duration;

use crate::span::{Rate, Sample, Span};

pub use unmapped::{Edge, Reason, Unmapped};

/// Sends that one stream remembers. Those that touch on both clocks are one, so a stream needs one more only where it was
/// not sent some of the audio: hours of gated silence. Beyond it the oldest is forgotten, and its times map to nothing.
pub const SENDS_MAX: usize = 4096;

/// How far a time may lie past the last send, or before the first, and still count as that edge: providers round, and
/// account for the audio that they had buffered when they end. A hole between sends gets none.
pub const EDGE_TOLERANCE: Duration = Duration::from_millis(250);

/// A provider's time in samples. Signed, because providers are known to begin slightly before 0.
type Time = i128;

/// What is known of the audio behind the newest send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// Nothing more was sent.
    Closed,
    /// More is to come, right behind it.
    Open,
}

/// Audio that was sent in one piece. Only the newest may be empty: it says where the next one will lie.
#[derive(Debug, Clone, Copy)]
struct Sent {
    provider: Sample,
    capture: Sample,
    samples: u64,
}

impl Sent {
    fn start(self) -> Time {
        Time::from(self.provider.0)
    }

    fn end(self) -> Time {
        self.start() + Time::from(self.samples)
    }

    fn touches(self, provider: Sample, capture: Sample) -> bool {
        self.end() == Time::from(provider.0)
            && Time::from(self.capture.0) + Time::from(self.samples) == Time::from(capture.0)
    }

    /// Where a time lies in the audio; one outside lies at the nearer edge.
    fn capture_at(self, time: Time) -> Sample {
        let within = (time - self.start()).clamp(0, Time::from(self.samples));
        Sample(self.capture.0.saturating_add(u64::try_from(within).expect("clamped to a count of samples")))
    }
}

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Translator {
    rate: Rate,
    /// By provider time, disjoint; no two of them touch on both clocks.
    sent: VecDeque<Sent>,
    /// Provider times below this were forgotten; 0 when none were.
    forgotten: Sample,
}

impl Translator {
    /// A stream that was sent nothing yet. Both clocks count at `rate`.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, sent: VecDeque::new(), forgotten: Sample(0) }
    }

    /// The provider took `samples` of audio: they begin at `provider` on its clock and at `capture` in the lane's audio. With
    /// no samples it says where the next send will begin. What did not reach the provider is not told here: it takes no
    /// time there.
    ///
    /// The newest word holds: whatever was believed to be sent from `provider` on was not.
    pub fn handle_accepted(&mut self, provider: Sample, capture: Sample, samples: u64) {
        while self.sent.back().is_some_and(|last| last.provider >= provider || last.samples == 0) {
            self.sent.pop_back();
        }
        if let Some(last) = self.sent.back_mut() {
            last.samples = last.samples.min(provider.0 - last.provider.0);
        }
        self.forgotten = self.forgotten.min(provider);
        match self.sent.back_mut() {
            Some(last) if last.touches(provider, capture) => last.samples = last.samples.saturating_add(samples),
            _ => self.sent.push_back(Sent { provider, capture, samples }),
        }
        self.keep_newest(SENDS_MAX);
    }

    /// Forgets all but the newest `sends_max` sends. Nobody asks a stream that has ended for its first hour.
    pub fn keep_newest(&mut self, sends_max: usize) {
        let surplus = self.sent.len().saturating_sub(sends_max);
        if let Some(gone) = self.sent.drain(..surplus).next_back() {
            self.forgotten = Sample(gone.provider.0.saturating_add(gone.samples));
        }
    }

    /// How many sends are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether nothing was told yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// The audio that the provider means by `start` to `end`, in seconds of its clock, truncated to samples.
    ///
    /// # Errors
    /// When a time is none, or the stream was not sent just this audio in one piece; see [`Reason`].
    pub fn window(&self, start: f64, end: f64) -> Result<Span, Unmapped> {
        self.map(start, end, Tail::Closed)
    }

    /// As [`Translator::window`], for a stream that is sent all audio as it comes: a time behind the newest send is where
    /// that audio will lie, however far ahead. A provider's message may overtake its audio on the way here.
    ///
    /// # Errors
    /// As [`Translator::window`].
    pub fn window_ahead(&self, start: f64, end: f64) -> Result<Span, Unmapped> {
        self.map(start, end, Tail::Open)
    }

    fn map(&self, start: f64, end: f64, tail: Tail) -> Result<Span, Unmapped> {
        let start = self.time(start).map_err(|reason| Edge::Start.refuses(reason))?;
        let end = self.time(end).map_err(|reason| Edge::End.refuses(reason))?;
        if end <= start {
            return Err(Edge::End.refuses(Reason::ZeroLength));
        }
        let (first, from) = self.place(start, start, tail).map_err(|reason| Edge::Start.refuses(reason))?;
        let (last, to) = self.place(end, end - 1, tail).map_err(|reason| Edge::End.refuses(reason))?;
        if first != last {
            return Err(Edge::End.refuses(Reason::DiscontinuousInterval));
        }
        let last_sample = || self.last_sample(start).ok_or(Edge::End.refuses(Reason::CollapsedInterval));
        Span::new(from, to).or_else(|_| last_sample())
    }

    /// A final that begins exactly where the audio ended is the provider's account of what it had buffered: it keeps the
    /// last sample. Any other window without extent was drawn together by the tolerance, and says nothing.
    fn last_sample(&self, start: Time) -> Option<Span> {
        let last = self.sent.iter().rev().find(|sent| sent.samples > 0)?;
        Span::new(last.capture_at(start - 1), last.capture_at(start)).ok()
    }

    fn time(&self, seconds: f64) -> Result<Time, Reason> {
        if seconds.is_nan() {
            return Err(Reason::NonNumeric);
        }
        let distance = Time::from(self.rate.sample_at(seconds.abs()).ok_or(Reason::NonFinite)?.0);
        Ok(if seconds < 0.0 { -distance } else { distance })
    }

    /// The send that `time` lies in, and where in the audio. `sample` decides which: an end belongs to the sample before it.
    fn place(&self, time: Time, sample: Time, tail: Tail) -> Result<(usize, Sample), Reason> {
        let forgotten = Time::from(self.forgotten.0);
        if forgotten > 0 && sample < forgotten {
            return Err(Reason::EvictedInterval);
        }
        let count = self.count(tail);
        let begun = self.sent.partition_point(|sent| sent.start() <= sample).min(count);
        let index = begun.saturating_sub(1);
        let sent = self.get(index, count, tail).ok_or(Reason::OutsideAcceptedSends)?;
        let (beyond, is_edge) = match begun {
            0 => (sent.start() - time, forgotten == 0),
            _ => (time - sent.end(), begun == count),
        };
        let is_inside = begun > 0 && sample < sent.end();
        let is_near = is_edge && beyond <= Time::from(self.rate.samples_in(EDGE_TOLERANCE));
        if is_inside || is_near { Ok((index, sent.capture_at(time))) } else { Err(Reason::OutsideAcceptedSends) }
    }

    /// Sends that hold audio, now or soon.
    fn count(&self, tail: Tail) -> usize {
        let waits = self.sent.back().is_some_and(|last| last.samples == 0);
        self.sent.len() - usize::from(waits && tail == Tail::Closed)
    }

    fn get(&self, index: usize, count: usize, tail: Tail) -> Option<Sent> {
        let sent = *self.sent.get(index).filter(|_| index < count)?;
        let goes_on = tail == Tail::Open && index + 1 == count;
        Some(if goes_on { Sent { samples: u64::MAX, ..sent } } else { sent })
    }
}
