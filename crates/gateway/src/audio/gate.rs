//! The clip gate: which of a voice's speech is worth a query, by what its samples look like alone.
//!
//! A span is left out of the choice when it is mostly silence, or clipped. What it cannot see: noise that never pauses looks
//! like speech to a measure of energy, and two voices look like one. It decides before a token is reserved and holds
//! nothing: what was left out once is measured anew with the voice's next update, and leaves with the ring.

use std::ops::Range;

use matcher_core::{Dispatch, ExitReason, Selection, Span, Spans, Timeline};

use super::{Audio, Speech};
use crate::config::Switch;

/// Less speech than this is mostly silence.
const SPEECH_SHARE_MIN: f64 = 0.5;

/// With a twentieth of its samples at full scale every peak of a voice is cut off.
const CLIPPED_MAX: f64 = 0.05;

/// Chooses a query's audio from `voiced`, as [`Timeline::pick`], and with the gate on leaves out spans that are not worth
/// it. `audio` gives the samples that the timeline located.
///
/// # Errors
/// As [`Timeline::pick`]; `window_shorter_than_minimum` as well when what is worth it is shorter than what is needed.
pub fn pick(
    gate: Switch,
    timeline: &Timeline,
    dispatch: &Dispatch,
    mut voiced: Spans,
    audio: impl Fn(&[Range<u64>]) -> Audio,
) -> Result<Selection, ExitReason> {
    let mut selection = timeline.pick(&voiced, dispatch.needed, dispatch.query_max)?;
    if !gate.is_on() {
        return Ok(selection);
    }
    let is_worth_it = |span: Span| is_usable(&audio(&timeline.locate(span)));
    // Those that passed are not measured again.
    let mut judged = Vec::new();
    loop {
        // Each round leaves out at least one sample.
        let new = selection.spans.iter().filter(|span| !judged.contains(span)).collect::<Vec<_>>();
        let (good, bad): (Vec<_>, Vec<_>) = new.into_iter().partition(|span| is_worth_it(*span));
        if bad.is_empty() {
            return Ok(selection);
        }
        judged.extend(good);
        voiced = voiced.without(&bad.into_iter().collect());
        let picked = timeline.pick(&voiced, dispatch.needed, dispatch.query_max);
        selection = picked.map_err(|_| ExitReason::WindowShorterThanMinimum)?;
    }
}

fn is_usable(audio: &Audio) -> bool {
    let speech = Speech::of(audio);
    speech.share >= SPEECH_SHARE_MIN && speech.clipped <= CLIPPED_MAX
}

#[cfg(test)]
mod tests {
    //! Goal: what is not worth a query costs none, and does not stand in the way of what is.
    //! Method: tones, silence and square waves on a timeline that holds them whole.

    use std::time::Duration;

    use matcher_core::queue::Tried;
    use matcher_core::{Generation, LaneId, Rate, RequestId, Sample, Scope, SegmentId, Speaker};

    use super::*;
    use crate::testing::{rate, silence, tone};

    const SECOND: u64 = 16_000;

    /// Chooses from spans of whole seconds; needs two seconds and takes at most ten.
    fn chosen(gate: Switch, pcm: &[i16], seconds: &[(u64, u64)]) -> Result<Vec<(u64, u64)>, ExitReason> {
        let mut timeline = Timeline::new(Rate::new(rate()), pcm.len() as u64);
        timeline.handle_samples(pcm.len() as u64);
        let span = |(from, to): &(u64, u64)| Span::new(Sample(from * SECOND), Sample(to * SECOND)).unwrap();
        let voiced: Spans = seconds.iter().map(span).collect();
        let place = |index: u64| usize::try_from(index).unwrap();
        let audio = |pieces: &[Range<u64>]| {
            let pcm = pieces.iter().flat_map(|piece| pcm[place(piece.start)..place(piece.end)].to_vec());
            Audio { pcm: pcm.collect(), sample_rate: rate() }
        };
        let selection = pick(gate, &timeline, &dispatch(&voiced), voiced, audio)?;
        Ok(selection.spans.iter().map(|span| (span.start().0 / SECOND, span.end().0 / SECOND)).collect())
    }

    fn dispatch(fresh: &Spans) -> Dispatch {
        Dispatch {
            request: RequestId(1),
            lane: LaneId(1),
            generation: Generation(1),
            speaker: Speaker(1),
            scope: Scope::new(""),
            segment: SegmentId::new("s"),
            fresh: fresh.clone(),
            needed: 2 * SECOND,
            query_max: 10 * SECOND,
            evidence: 0,
            pending: fresh.samples(),
            waited: Duration::ZERO,
            by_age: false,
            tried: Tried::Never,
        }
    }

    fn loud(seconds: f64) -> Vec<i16> {
        tone(300.0, seconds).iter().map(|value| if *value < 0 { i16::MIN } else { i16::MAX }).collect()
    }

    #[test]
    fn speech_that_is_worth_a_query_is_chosen_as_without_the_gate() {
        let pcm = [tone(300.0, 3.0), silence(1.0), tone(300.0, 4.0)].concat();
        let seconds = [(0, 3), (4, 8)];
        assert_eq!(chosen(Switch::On, &pcm, &seconds), Ok(seconds.to_vec()));
        assert_eq!(chosen(Switch::Off, &pcm, &seconds), Ok(seconds.to_vec()));
    }

    #[test]
    fn what_is_mostly_silence_or_clipped_is_left_out_and_the_rest_is_chosen() {
        let pcm = [tone(300.0, 1.0), silence(4.0), tone(300.0, 3.0), loud(3.0)].concat();
        let seconds = [(0, 4), (5, 7), (8, 10)];
        assert_eq!(chosen(Switch::Off, &pcm, &seconds), Ok(seconds.to_vec()));
        assert_eq!(chosen(Switch::On, &pcm, &seconds), Ok(vec![(5, 7)]));
    }

    #[test]
    fn when_too_little_is_left_no_token_is_spent_and_the_reason_says_so() {
        let pcm = [tone(300.0, 1.0), silence(9.0), tone(300.0, 1.0)].concat();
        let seconds = [(0, 8), (10, 11)];
        assert_eq!(chosen(Switch::Off, &pcm, &seconds), Ok(seconds.to_vec()));
        assert_eq!(chosen(Switch::On, &pcm, &seconds), Err(ExitReason::WindowShorterThanMinimum));
        assert_eq!(chosen(Switch::On, &loud(3.0), &[(0, 3)]), Err(ExitReason::WindowShorterThanMinimum));
    }

    #[test]
    fn of_a_span_longer_than_a_query_the_rest_is_looked_at_when_its_middle_is_silent() {
        let pcm = [tone(300.0, 4.0), silence(10.0), tone(300.0, 4.0)].concat();
        assert_eq!(chosen(Switch::On, &pcm, &[(0, 18)]), Ok(vec![(0, 4), (14, 18)]));
    }

    #[test]
    fn without_audio_the_reason_is_the_timelines() {
        assert_eq!(chosen(Switch::On, &[], &[(0, 3)]), Err(ExitReason::NoPcm));
        assert_eq!(chosen(Switch::On, &tone(300.0, 1.0), &[(0, 1)]), Err(ExitReason::WindowShorterThanMinimum));
    }
}
