//! Goal: every sample that a query gets is the one that was meant, whatever was lost, gated, overwritten or begun anew.
//! Method: stretches of numbered samples by hand for the ring's clock; sends by hand for a provider's clock, and random ones
//! against a map of single samples.

#![cfg(test)]

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use matcher_core::translator::{Edge, Reason, SENDS_MAX};
use matcher_core::{Rate, Sample, Span, Timeline, Translator, Unmapped};
use proptest::prelude::*;

const HERTZ: u64 = 16_000;

fn rate(hertz: u32) -> Rate {
    Rate::new(NonZeroU32::new(hertz).unwrap())
}

fn at(seconds: f64) -> Sample {
    rate(16_000).sample_at(seconds).unwrap()
}

fn span(start: f64, end: f64) -> Span {
    Span::new(at(start), at(end)).unwrap()
}

/// A ring of `capacity` seconds to which one second each was written at these positions.
fn ring(capacity: u64, seconds: &[f64]) -> Timeline {
    let mut timeline = Timeline::new(rate(16_000), capacity * HERTZ);
    seconds.iter().for_each(|position| timeline.handle_samples_at(at(*position), HERTZ));
    timeline
}

// B10.127, case 1
#[test]
fn a_window_that_begins_within_a_sample_begins_with_that_sample() {
    let pcm: Vec<i16> = (1000..1100).collect();
    let mut timeline = Timeline::new(rate(16_000), 100);
    timeline.handle_samples(100);
    let first = |bytes: f64| {
        let pieces = timeline.locate(timeline.span(bytes / 2.0 / 16_000.0, 1.0).unwrap());
        assert_eq!((pieces.len(), pieces[0].end), (1, 100));
        pcm[usize::try_from(pieces[0].start).unwrap()]
    };
    assert_eq!([first(0.0), first(3.5), first(4.5), first(198.0)], [1000, 1001, 1002, 1099]);
}

// B10.128
#[test]
fn a_window_across_lost_audio_is_what_there_is_on_both_sides() {
    let timeline = ring(60, &[100.0, 106.0]);
    assert_eq!(timeline.locate(span(100.5, 106.5)), [HERTZ / 2..HERTZ, HERTZ..HERTZ * 3 / 2]);
    assert_eq!(timeline.held(span(100.5, 106.5)).collect::<Vec<_>>(), [span(100.5, 101.0), span(106.0, 106.5)]);
}

// B10.129
#[test]
fn a_ring_that_has_wrapped_gives_the_same_window() {
    let timeline = ring(2, &[90.0, 95.0, 96.0, 100.0, 106.0]);
    let (before, half) = (3 * HERTZ, HERTZ / 2);
    let expected = [before + half..before + HERTZ, before + HERTZ..before + HERTZ + half];
    assert_eq!(timeline.locate(span(100.5, 106.5)), expected);
    assert_eq!(timeline.range(), Some(span(100.0, 107.0)), "what was overwritten is no longer held");
}

// B10.130
#[test]
fn a_window_before_or_past_the_audio_holds_nothing_and_one_within_is_exact() {
    let timeline = ring(60, &[300.0]);
    assert!(timeline.locate(span(298.0, 300.0)).is_empty());
    assert!(timeline.locate(span(301.0, 302.0)).is_empty());
    let middle = HERTZ / 4..HERTZ * 3 / 4;
    assert_eq!(timeline.locate(span(300.25, 300.75)), [middle]);
}

/// A stream that was sent these stretches: where each begins on its clock and in the audio, and how long it is, in seconds.
fn sent(stretches: &[(f64, f64, f64)]) -> Translator {
    let mut translator = Translator::new(rate(16_000));
    for (provider, capture, seconds) in stretches {
        translator.handle_accepted(at(*provider), at(*capture), at(*seconds).0);
    }
    translator
}

fn start(reason: Reason) -> Result<Span, Unmapped> {
    Err(Unmapped { edge: Edge::Start, reason })
}

fn end(reason: Reason) -> Result<Span, Unmapped> {
    Err(Unmapped { edge: Edge::End, reason })
}

// B10.131
#[test]
fn a_time_shortly_past_the_last_send_lies_at_its_end_and_no_further() {
    let stream = sent(&[(0.0, 0.0, 1.0)]);
    assert_eq!(stream.window(1.05, 1.15), end(Reason::CollapsedInterval));
    assert_eq!(stream.window(0.9, 1.1), Ok(span(0.9, 1.0)));
    let last = Span::new(Sample(HERTZ - 1), Sample(HERTZ)).unwrap();
    assert_eq!(stream.window(1.0, 1.1), Ok(last));
    assert_eq!(stream.window(1.0, 1.25), Ok(last), "the tolerance is inclusive");
    assert_eq!(stream.window(1.0, 1.3), end(Reason::OutsideAcceptedSends));
    assert_eq!(stream.window(1.3, 1.4), start(Reason::OutsideAcceptedSends));
    assert_eq!(stream.window(0.5, 0.54), Ok(span(0.5, 0.54)));
}

// B10.132
#[test]
fn a_window_without_length_is_refused_within_a_send_and_at_its_end() {
    let stream = sent(&[(0.0, 0.0, 1.0)]);
    for (from, to) in [(1.0, 1.0), (0.5, 0.5), (0.0, 0.0), (0.5, 0.500_01), (0.9, 0.1), (126.66, 102.96)] {
        assert_eq!(stream.window(from, to), end(Reason::ZeroLength), "{from} to {to}");
        assert_eq!(stream.window_ahead(from, to), end(Reason::ZeroLength), "{from} to {to}");
    }
}

#[test]
fn a_time_that_is_no_position_is_refused_by_its_edge() {
    let stream = sent(&[(0.0, 0.0, 1.0)]);
    assert_eq!(stream.window(f64::NAN, 1.0), start(Reason::NonNumeric));
    assert_eq!(stream.window(0.0, f64::NAN), end(Reason::NonNumeric));
    assert_eq!(stream.window(f64::NEG_INFINITY, 1.0), start(Reason::NonFinite));
    assert_eq!(stream.window_ahead(0.0, 1e10), end(Reason::NonFinite));
    assert_eq!(stream.window_ahead(0.0, Rate::SECONDS_MAX), Ok(span(0.0, Rate::SECONDS_MAX)));
}

#[test]
fn a_time_slightly_before_the_first_send_lies_at_its_start() {
    let stream = sent(&[(10.0, 70.0, 3.0)]);
    assert_eq!(stream.window(9.75, 11.0), Ok(span(70.0, 71.0)));
    assert_eq!(stream.window(9.7, 11.0), start(Reason::OutsideAcceptedSends));
    assert_eq!(stream.window(9.8, 10.0), end(Reason::CollapsedInterval));
    assert_eq!(sent(&[(0.0, 70.0, 3.0)]).window(-0.1, 1.0), Ok(span(70.0, 71.0)));
    assert_eq!(sent(&[(0.0, 70.0, 3.0)]).window_ahead(-0.1, 9.0), Ok(span(70.0, 79.0)));
    assert_eq!(sent(&[]).window(0.0, 1.0), start(Reason::OutsideAcceptedSends));
}

#[test]
fn a_hole_between_sends_gets_no_tolerance() {
    let stream = sent(&[(0.0, 0.0, 1.0), (2.0, 2.0, 1.0)]);
    assert_eq!(stream.window(0.5, 1.1), end(Reason::OutsideAcceptedSends));
    assert_eq!(stream.window(1.0, 2.5), start(Reason::OutsideAcceptedSends));
    assert_eq!(stream.window(1.9, 2.5), start(Reason::OutsideAcceptedSends));
    assert_eq!(stream.window(0.5, 2.5), end(Reason::DiscontinuousInterval), "time that it spent on other audio");
    assert_eq!(stream.window(0.5, 1.0), Ok(span(0.5, 1.0)));
    assert_eq!(stream.window(2.0, 3.2), Ok(span(2.0, 3.0)));
    let mut newest = stream;
    newest.keep_newest(1);
    assert_eq!(newest.window(1.9, 2.5), start(Reason::OutsideAcceptedSends), "nor where one side is forgotten");
}

// Case 7
#[test]
fn gated_silence_takes_no_time_of_the_provider_and_no_window_reaches_across_it() {
    let stream = sent(&[(0.0, 0.0, 1.0), (1.0, 30.0, 2.0)]);
    assert_eq!(stream.window(1.0, 3.0), Ok(span(30.0, 32.0)), "never 1 to 3 s of the audio");
    assert_eq!(stream.window(0.0, 1.0), Ok(span(0.0, 1.0)), "an end belongs to the audio before it");
    assert_eq!(stream.window(0.5, 1.5), end(Reason::DiscontinuousInterval));
}

#[test]
fn sends_that_touch_on_both_clocks_are_one() {
    let mut stream = sent(&[(0.0, 5.0, 1.0)]);
    for index in 0..10_000 {
        stream.handle_accepted(Sample(HERTZ + index * 160), Sample(6 * HERTZ + index * 160), 160);
    }
    assert_eq!(stream.len(), 1);
    assert_eq!(stream.window(0.5, 100.0), Ok(span(5.5, 105.0)));
}

#[test]
fn the_newest_word_on_what_was_sent_holds() {
    let mut stream = sent(&[(0.0, 0.0, 30.0)]);
    stream.handle_accepted(at(1.0), at(30.0), 0);
    assert_eq!(stream.window_ahead(1.0, 2.0), Ok(span(30.0, 31.0)), "also before the first sample of it");
    assert_eq!(stream.window(0.5, 1.1), Ok(span(0.5, 1.0)), "the stream ends with what it was sent");
    assert_eq!(stream.window(1.5, 2.0), start(Reason::OutsideAcceptedSends));
    stream.handle_accepted(at(1.0), at(30.0), HERTZ);
    assert_eq!(stream.window(0.5, 0.9), Ok(span(0.5, 0.9)));
    assert_eq!(stream.window(1.0, 2.0), Ok(span(30.0, 31.0)));
    stream.handle_accepted(at(0.0), at(31.0), HERTZ);
    assert_eq!((stream.len(), stream.window(0.5, 1.0)), (1, Ok(span(31.5, 32.0))), "its clock began anew");
}

#[test]
fn the_oldest_of_too_many_sends_is_forgotten_and_says_so() {
    let mut stream = Translator::new(rate(16_000));
    let count = SENDS_MAX as u64 + 2;
    for index in 0..count {
        stream.handle_accepted(Sample(index * HERTZ), Sample(2 * index * HERTZ), HERTZ);
    }
    assert_eq!(stream.len(), SENDS_MAX);
    assert_eq!(stream.window(1.0, 1.5), start(Reason::EvictedInterval));
    assert_eq!(stream.window(1.9, 2.5), start(Reason::EvictedInterval), "no tolerance where audio was known");
    assert_eq!(stream.window(2.0, 2.5), Ok(span(4.0, 4.5)));

    stream.keep_newest(1);
    let (newest, after) = (count as f64 - 1.0, count as f64);
    assert_eq!(stream.window(newest - 0.5, newest), start(Reason::EvictedInterval));
    assert_eq!(stream.window(newest, after), Ok(span(2.0 * newest, 2.0 * newest + 1.0)));
    stream.handle_accepted(Sample(0), at(9.0), HERTZ);
    assert_eq!(stream.window(0.0, 1.0), Ok(span(9.0, 10.0)), "a clock that begins anew has forgotten nothing");
}

#[test]
fn every_reason_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(names.len(), 7);
    let told = end(Reason::ZeroLength).unwrap_err().to_string();
    assert_eq!(told, "must lie after `start` (zero_length)");
}

/// The tolerance at the random tests' rate.
const TOLERANCE: i64 = 2;

/// A map of single samples, and where the next one will lie.
#[derive(Debug, Default)]
struct Naive {
    places: BTreeMap<i64, i64>,
    next: (i64, i64),
}

impl Naive {
    fn handle_accepted(&mut self, provider: i64, capture: i64, samples: i64) {
        self.places.retain(|sample, _| *sample < provider);
        self.places.extend((0..samples).map(|offset| (provider + offset, capture + offset)));
        self.next = (provider + samples, capture + samples);
    }

    /// What the audio that is still to come will add.
    fn goes_on(&mut self) {
        let (provider, capture) = self.next;
        self.handle_accepted(provider, capture, 1000);
    }

    fn window(&self, start: i64, end: i64) -> Result<(i64, i64), (Edge, Reason)> {
        if end <= start {
            return Err((Edge::End, Reason::ZeroLength));
        }
        let outside = |edge| (edge, Reason::OutsideAcceptedSends);
        let first = *self.places.keys().next().ok_or(outside(Edge::Start))?;
        let past = self.places.keys().next_back().unwrap() + 1;
        let clamped = |time: i64| {
            let near = time.clamp(first, past);
            ((time - near).abs() <= TOLERANCE).then_some(near)
        };
        let from = clamped(start).ok_or(outside(Edge::Start))?;
        if from < past && !self.places.contains_key(&from) {
            return Err(outside(Edge::Start));
        }
        let to = clamped(end).ok_or(outside(Edge::End))?;
        if to > first && !self.places.contains_key(&(to - 1)) {
            return Err(outside(Edge::End));
        }
        if from == to {
            let tail = (start == past).then(|| self.places[&(past - 1)]);
            return tail.map(|last| (last, last + 1)).ok_or((Edge::End, Reason::CollapsedInterval));
        }
        let whole = (from..to).all(|sample| self.places.get(&sample) == Some(&(self.places[&from] + sample - from)));
        let window = (self.places[&from], self.places[&(to - 1)] + 1);
        if whole { Ok(window) } else { Err((Edge::End, Reason::DiscontinuousInterval)) }
    }
}

/// One send: how the provider's clock and the audio moved since the last one, and how much was sent.
fn sends() -> impl Strategy<Value = Vec<(i64, i64, i64)>> {
    let moved = prop_oneof![5 => Just(0i64), 1 => -20..20i64];
    prop::collection::vec((moved, prop_oneof![3 => Just(0i64), 1 => 1..20i64], 0..8i64), 0..12)
}

proptest! {
    #[test]
    fn a_window_is_what_a_map_of_single_samples_says(sends in sends(), windows in prop::collection::vec((-5..60i64, -2..20i64), 40)) {
        let (mut naive, mut stream) = (Naive::default(), Translator::new(rate(8)));
        let (mut provider, mut capture) = (0i64, 0i64);
        for (time, audio, samples) in sends {
            (provider, capture) = ((provider + time).max(0), capture + audio);
            naive.handle_accepted(provider, capture, samples);
            let (time, audio) = (provider.cast_unsigned(), capture.cast_unsigned());
            stream.handle_accepted(Sample(time), Sample(audio), samples.cast_unsigned());
            (provider, capture) = (provider + samples, capture + samples);
        }
        let plain = |window: Result<Span, Unmapped>| {
            window.map(|it| (it.start().0.cast_signed(), it.end().0.cast_signed())).map_err(|it| (it.edge, it.reason))
        };
        let seconds = |sample: i64| sample as f64 / 8.0;
        for (start, length) in &windows {
            let found = plain(stream.window(seconds(*start), seconds(start + length)));
            prop_assert_eq!(found, naive.window(*start, start + length), "{} to {}", start, start + length);
        }
        if stream.is_empty() {
            return Ok(());
        }
        naive.goes_on();
        for (start, length) in &windows {
            let found = plain(stream.window_ahead(seconds(*start), seconds(start + length)));
            prop_assert_eq!(found, naive.window(*start, start + length), "ahead, {} to {}", start, start + length);
        }
    }
}
