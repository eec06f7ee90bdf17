//! A provider that gives one number to everybody: the same voice, segment after segment, and nobody whom it resembles.
//! Observes only; it changes no verdict.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::ids::SegmentId;
use crate::queue::Voice;

/// Distinct segments of one voice in a row that make a run suspicious.
const SEGMENTS: u32 = 10;

/// Rejected matches within it.
const REJECTIONS: u32 = 3;

/// Segments that are remembered, so that a resend is not a new one.
const REMEMBERED: usize = 128;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    /// In the order in which they came, each with a number that tells nearly all of them apart: an id is looked at only
    /// when its number is the right one.
    seen: VecDeque<(u64, SegmentId)>,
    run: Option<Run>,
}

#[derive(Debug)]
struct Run {
    voice: Voice,
    segments: u32,
    rejections: u32,
    was_told: bool,
}

impl Monitor {
    /// A segment of a voice came. Says whether the run is a collapse, once a run.
    pub(crate) fn handle_segment(&mut self, voice: Voice, segment: &SegmentId) -> bool {
        let number = number_of(segment);
        if self.seen.iter().any(|(seen, id)| *seen == number && id == segment) {
            return false;
        }
        if self.seen.len() >= REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back((number, segment.clone()));
        match &mut self.run {
            Some(run) if run.voice == voice => run.segments = run.segments.saturating_add(1),
            _ => self.run = Some(Run { voice, segments: 1, rejections: 0, was_told: false }),
        }
        self.is_collapse()
    }

    /// A voice matched nobody. Says whether the run is a collapse, once a run.
    pub(crate) fn handle_rejected(&mut self, voice: Voice) -> bool {
        if let Some(run) = self.run.as_mut().filter(|run| run.voice == voice) {
            run.rejections = run.rejections.saturating_add(1);
        }
        self.is_collapse()
    }

    /// A voice is somebody: its run is none.
    pub(crate) fn handle_accepted(&mut self, voice: Voice) {
        if self.run.as_ref().is_some_and(|run| run.voice == voice) {
            self.run = None;
        }
    }

    fn is_collapse(&mut self) -> bool {
        let Some(run) = &mut self.run else { return false };
        let is_one = !run.was_told && run.segments >= SEGMENTS && run.rejections >= REJECTIONS;
        run.was_told |= is_one;
        is_one
    }
}

/// The same for the same id, in every process.
fn number_of(segment: &SegmentId) -> u64 {
    let mut hasher = DefaultHasher::new();
    segment.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    //! Goal: one signal for one collapse, and none for a conversation.
    //! Method: segments and rejections by hand.

    use super::*;
    use crate::ids::Speaker;

    const ONE: Voice = Voice { speaker: Speaker(0), scope: 0 };
    const OTHER: Voice = Voice { speaker: Speaker(1), scope: 0 };

    fn segments(monitor: &mut Monitor, voice: Voice, ids: std::ops::Range<u32>) -> usize {
        ids.filter(|id| monitor.handle_segment(voice, &SegmentId::new(&id.to_string()))).count()
    }

    fn rejections(monitor: &mut Monitor, voice: Voice, count: u32) -> usize {
        (0..count).filter(|_| monitor.handle_rejected(voice)).count()
    }

    // B11.139
    #[test]
    fn ten_segments_and_three_rejections_are_one_signal() {
        let mut monitor = Monitor::default();
        assert_eq!(segments(&mut monitor, ONE, 0..9) + rejections(&mut monitor, ONE, 3), 0);
        assert_eq!(segments(&mut monitor, ONE, 9..10), 1);
        assert_eq!(segments(&mut monitor, ONE, 10..210) + rejections(&mut monitor, ONE, 50), 0, "one a run");
    }

    // B11.139
    #[test]
    fn voices_that_alternate_never_signal() {
        let mut monitor = Monitor::default();
        for id in 0..100 {
            let voice = if id % 2 == 0 { ONE } else { OTHER };
            assert_eq!(segments(&mut monitor, voice, id..id + 1) + rejections(&mut monitor, voice, 1), 0);
        }
    }

    // B11.139
    #[test]
    fn a_replay_counts_once_and_an_accept_begins_anew() {
        let mut monitor = Monitor::default();
        let replays = (0..20).map(|_| segments(&mut monitor, ONE, 0..9)).sum::<usize>();
        assert_eq!(replays + rejections(&mut monitor, ONE, 3), 0);
        monitor.handle_accepted(ONE);
        assert_eq!(segments(&mut monitor, ONE, 20..40) + rejections(&mut monitor, ONE, 2), 0);
        assert_eq!(rejections(&mut monitor, ONE, 1), 1);
    }
}
