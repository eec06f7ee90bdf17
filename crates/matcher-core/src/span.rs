//! Audio positions and sets of them: integer samples, half-open spans, sorted and disjoint sets.
//!
//! Owns the interval arithmetic of the matcher. Knows nothing of voices, and holds no audio.

use std::num::NonZeroU32;
use std::time::Duration;

/// Samples per second of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(NonZeroU32);

impl Rate {
    /// A rate in hertz.
    #[must_use]
    pub const fn new(hertz: NonZeroU32) -> Self {
        Self(hertz)
    }

    /// Samples per second.
    #[must_use]
    pub const fn hertz(self) -> u32 {
        self.0.get()
    }

    /// Whole samples in `duration`, rounded down.
    #[must_use]
    pub fn samples_in(self, duration: Duration) -> u64 {
        let samples = duration.as_nanos().saturating_mul(u128::from(self.0.get())) / 1_000_000_000;
        u64::try_from(samples).unwrap_or(u64::MAX)
    }

    /// How long `samples` last, rounded down to a nanosecond.
    #[must_use]
    pub fn duration(self, samples: u64) -> Duration {
        let nanos = u128::from(samples) * 1_000_000_000 / u128::from(self.0.get());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How long `samples` last, in seconds.
    #[must_use]
    pub fn seconds(self, samples: u64) -> f64 {
        samples as f64 / f64::from(self.0.get())
    }

    /// The sample that `seconds` falls on, rounded down. `None` unless it is finite, not negative and at most
    /// [`Rate::SECONDS_MAX`].
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to lie within 0..=SECONDS_MAX"
    )]
    pub fn sample_at(self, seconds: f64) -> Option<Sample> {
        let inside = seconds.is_finite() && (0.0..=Self::SECONDS_MAX).contains(&seconds);
        inside.then(|| Sample((seconds * f64::from(self.0.get())).floor() as u64))
    }

    /// The latest position that is accepted from outside: a thousand million seconds (31 years). Up to there every
    /// sample number at 48 kHz is exact in a double; beyond it a time is refused.
    pub const SECONDS_MAX: f64 = 1e9;
}

/// A position in a lane's audio: samples since its first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sample(pub u64);

/// The two ends of a span are equal or reversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a span must end after it starts")]
pub struct EmptySpan;

/// A half-open stretch of audio, never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    start: Sample,
    end: Sample,
}

impl Span {
    /// The span from `start` up to, not including, `end`.
    ///
    /// # Errors
    /// When it would be empty.
    pub const fn new(start: Sample, end: Sample) -> Result<Self, EmptySpan> {
        if start.0 < end.0 { Ok(Self { start, end }) } else { Err(EmptySpan) }
    }

    /// The first sample.
    #[must_use]
    pub const fn start(self) -> Sample {
        self.start
    }

    /// One past the last sample.
    #[must_use]
    pub const fn end(self) -> Sample {
        self.end
    }

    /// How many samples it covers; at least one.
    #[must_use]
    pub const fn samples(self) -> u64 {
        self.end.0 - self.start.0
    }

    /// What both cover.
    #[must_use]
    pub fn overlap(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end)).ok()
    }

    /// The first `samples` of this span, at least one, or all of it when it is not longer.
    #[must_use]
    pub(crate) fn first(self, samples: u64) -> Self {
        Self { start: self.start, end: Sample(self.start.0 + samples.clamp(1, self.samples())) }
    }

    /// The middle `samples` of this span, or all of it when it is not longer.
    #[must_use]
    pub const fn centred(self, samples: u64) -> Option<Self> {
        if samples >= self.samples() {
            return Some(self);
        }
        let start = self.start.0 + (self.samples() - samples) / 2;
        match Self::new(Sample(start), Sample(start + samples)) {
            Ok(span) => Some(span),
            Err(EmptySpan) => None,
        }
    }
}

/// A sorted set of disjoint spans that do not touch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spans(Vec<Span>);

impl Spans {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Whether nothing is covered.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many disjoint spans there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// All samples covered.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.0.iter().map(|span| span.samples()).sum()
    }

    /// The spans in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Span> + '_ {
        self.0.iter().copied()
    }

    /// Adds a span, merging what touches or overlaps.
    pub fn insert(&mut self, span: Span) {
        let from = self.0.partition_point(|held| held.end < span.start);
        let to = from + self.0.iter().skip(from).take_while(|held| held.start <= span.end).count();
        let merged = self
            .0
            .iter()
            .skip(from)
            .take(to - from)
            .fold(span, |sum, held| Span { start: sum.start.min(held.start), end: sum.end.max(held.end) });
        self.0.splice(from..to, [merged]);
    }

    /// Adds every span of `other`.
    pub fn insert_all(&mut self, other: &Self) {
        other.iter().for_each(|span| self.insert(span));
    }

    /// Adds what of `span` no set in `except` covers.
    pub fn insert_except(&mut self, span: Span, except: [&Self; 2]) {
        if except.iter().all(|set| !set.touches(span)) {
            self.insert(span);
            return;
        }
        let rest = except.iter().fold(Self(vec![span]), |rest, set| rest.without(set));
        self.insert_all(&rest);
    }

    /// This set minus `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = Vec::with_capacity(self.0.len());
        let mut cuts = other.0.iter().peekable();
        for span in &self.0 {
            let mut start = span.start;
            while cuts.peek().is_some_and(|cut| cut.end <= start) {
                cuts.next();
            }
            let mut ahead = cuts.clone();
            while let Some(cut) = ahead.next_if(|cut| cut.start < span.end) {
                rest.extend(Span::new(start, cut.start).ok());
                start = start.max(cut.end);
            }
            rest.extend(Span::new(start, span.end).ok());
        }
        Self(rest)
    }

    /// Drops everything outside `range`.
    pub fn clip(&mut self, range: Span) {
        let inside = |held: &Span| held.start >= range.start && held.end <= range.end;
        if self.0.first().is_some_and(inside) && self.0.last().is_some_and(inside) {
            return;
        }
        self.0 = self.0.iter().filter_map(|span| span.overlap(range)).collect();
    }

    /// Drops the spans that end at or before `position`; a span across it stays whole.
    pub fn forget_before(&mut self, position: Sample) {
        let gone = self.0.partition_point(|span| span.end <= position);
        self.0.drain(..gone);
    }

    /// Keeps the newest `spans_max` spans and says how many samples the others held.
    pub fn keep_newest(&mut self, spans_max: usize) -> u64 {
        let surplus = self.0.len().saturating_sub(spans_max);
        self.0.drain(..surplus).map(Span::samples).sum()
    }

    fn touches(&self, span: Span) -> bool {
        let next = self.0.partition_point(|held| held.end <= span.start);
        self.0.get(next).is_some_and(|held| held.start < span.end)
    }
}

impl FromIterator<Span> for Spans {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut set = Self::new();
        spans.into_iter().for_each(|span| set.insert(span));
        set
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the interval arithmetic is exact.
    //! Method: small sets by hand, and random sets against one bit a sample.

    use super::*;
    use proptest::prelude::*;

    fn span(start: u64, end: u64) -> Span {
        Span::new(Sample(start), Sample(end)).unwrap()
    }

    fn set(spans: &[(u64, u64)]) -> Spans {
        spans.iter().map(|(start, end)| span(*start, *end)).collect()
    }

    #[test]
    fn touching_spans_merge_and_the_others_stay_apart() {
        assert_eq!(set(&[(0, 3), (3, 5), (7, 9)]), Spans(vec![span(0, 5), span(7, 9)]));
    }

    #[test]
    fn the_centre_of_an_odd_remainder_leans_to_the_front() {
        assert_eq!(span(0, 20).centred(10), Some(span(5, 15)));
        assert_eq!(span(0, 5).centred(2), Some(span(1, 3)));
        assert_eq!(span(0, 5).centred(0), None);
    }

    #[test]
    fn a_time_that_is_not_a_position_is_refused() {
        let rate = Rate::new(NonZeroU32::new(16_000).unwrap());
        for bad in [f64::NAN, f64::INFINITY, -0.1, 1.1e9] {
            assert_eq!(rate.sample_at(bad), None, "{bad}");
        }
        assert_eq!(rate.sample_at(1.5), Some(Sample(24_000)));
        assert_eq!(rate.sample_at(1e9), Some(Sample(16_000_000_000_000)));
    }

    fn bits(spans: &Spans) -> Vec<bool> {
        (0..64).map(|at| spans.iter().any(|held| held.start.0 <= at && at < held.end.0)).collect()
    }

    fn any_set() -> impl Strategy<Value = Spans> {
        prop::collection::vec((0_u64..60, 1_u64..5), 0..12)
            .prop_map(|spans| spans.into_iter().map(|(start, len)| span(start, start + len)).collect())
    }

    proptest! {
        #[test]
        fn set_arithmetic_agrees_with_one_bit_a_sample(a in any_set(), b in any_set(), start in 0_u64..60, len in 1_u64..20) {
            let minus: Vec<bool> = bits(&a).iter().zip(bits(&b)).map(|(a, b)| *a && !b).collect();
            prop_assert_eq!(bits(&a.without(&b)), minus);

            let mut sum = a.clone();
            sum.insert_all(&b);
            let or: Vec<bool> = bits(&a).iter().zip(bits(&b)).map(|(a, b)| *a || b).collect();
            prop_assert_eq!(bits(&sum), or);
            prop_assert!(sum.0.windows(2).all(|pair| pair[0].end < pair[1].start), "sorted, disjoint, not touching");

            let mut except = a.clone();
            except.insert_except(span(start, start + len), [&b, &Spans::new()]);
            let want = a.iter().chain(set(&[(start, start + len)]).without(&b).iter()).collect::<Spans>();
            prop_assert_eq!(except, want);
        }
    }
}
