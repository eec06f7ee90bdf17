//! The newest audio of one socket: PCM in a ring, addressed through the core's timeline.
//!
//! The ring is allocated whole and zeroed, so that its pages cost memory only as audio arrives.

use std::ops::Range;
use std::sync::Arc;

use matcher_core::{Rate, Sample, Span, Spans, Timeline};

/// See the module's text.
#[derive(Debug)]
pub struct Ring {
    timeline: Timeline,
    pcm: Box<[i16]>,
    written: u64,
    /// Samples that were lost before the next one.
    gap: u64,
}

impl Ring {
    /// A ring of `capacity` samples.
    #[must_use]
    pub fn new(rate: Rate, capacity: u64) -> Self {
        let samples = usize::try_from(capacity).unwrap_or(usize::MAX);
        Self { timeline: Timeline::new(rate, capacity), pcm: vec![0; samples].into_boxed_slice(), written: 0, gap: 0 }
    }

    /// Where the audio lies.
    #[must_use]
    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The clock moves on by audio that never came.
    pub const fn skip(&mut self, samples: u64) {
        self.gap = self.gap.saturating_add(samples);
    }

    /// Appends samples; the oldest are overwritten.
    pub fn write(&mut self, samples: &[i16]) {
        if self.pcm.is_empty() || samples.is_empty() {
            return;
        }
        // Of a chunk longer than the ring only its end can stay.
        let skipped = samples.len().saturating_sub(self.pcm.len());
        let kept = samples.get(skipped..).unwrap_or_default();
        let from = self.place(self.written + skipped as u64);
        let (head, tail) = kept.split_at(kept.len().min(self.pcm.len() - from));
        for (place, part) in [(from, head), (0, tail)] {
            if let Some(room) = self.pcm.get_mut(place..place + part.len()) {
                room.copy_from_slice(part);
            }
        }
        self.written += samples.len() as u64;
        let at = Sample(self.timeline.now().0.saturating_add(std::mem::take(&mut self.gap)));
        self.timeline.handle_samples_at(at, samples.len() as u64);
    }

    /// The spans that hold more than digital silence. A muted microphone and a padded file give such; a room is never so
    /// quiet, and a model makes something of it that means nothing.
    #[must_use]
    pub fn voiced(&self, spans: &Spans) -> Spans {
        let is_voiced = |span: &Span| {
            let pieces = self.timeline.locate(*span);
            pieces.iter().any(|piece| self.runs(piece).into_iter().any(|run| !is_silent(run)))
        };
        spans.iter().filter(is_voiced).collect()
    }

    /// Copies the samples of `pieces`, absolute indices as the timeline gave them for audio that is still held.
    #[must_use]
    pub fn copy(&self, pieces: &[Range<u64>]) -> Arc<[i16]> {
        let mut clip = Vec::new();
        pieces.iter().flat_map(|piece| self.runs(piece)).for_each(|run| clip.extend_from_slice(run));
        clip.into()
    }

    /// A piece as it lies in memory: up to the ring's end, and on from its start.
    fn runs(&self, piece: &Range<u64>) -> [&[i16]; 2] {
        let from = self.place(piece.start);
        let length = usize::try_from(piece.end - piece.start).unwrap_or(0);
        let first = length.min(self.pcm.len() - from);
        let run = |range| self.pcm.get(range).expect("the timeline names only samples that the ring holds");
        [run(from..from + first), run(0..length - first)]
    }

    fn place(&self, index: u64) -> usize {
        usize::try_from(index % self.pcm.len() as u64).expect("a place lies within the ring")
    }
}

fn is_silent(pcm: &[i16]) -> bool {
    pcm.iter().all(|sample| *sample == 0)
}

#[cfg(test)]
mod tests {
    //! Goal: what comes out of the ring is what went in, across its end and past its capacity.
    //! Method: numbered samples, chunks of every awkward length.

    use super::*;
    use std::num::NonZeroU32;

    fn ring(capacity: u64) -> Ring {
        Ring::new(Rate::new(NonZeroU32::new(16_000).unwrap()), capacity)
    }

    #[test]
    fn the_newest_samples_come_back_whatever_the_chunks() {
        for chunk in [1, 3, 7, 10, 11, 25] {
            let mut ring = ring(10);
            let all: Vec<i16> = (0..100).collect();
            for part in all.chunks(chunk) {
                ring.write(part);
            }
            let range = ring.timeline().range().unwrap();
            assert_eq!((range.start(), range.end()), (Sample(90), Sample(100)), "chunks of {chunk}");
            assert_eq!(*ring.copy(&ring.timeline().locate(range)), all[90..], "chunks of {chunk}");
        }
    }

    #[test]
    fn a_ring_without_capacity_holds_nothing() {
        let mut ring = ring(0);
        ring.write(&[1, 2, 3]);
        assert_eq!(ring.timeline().range(), None);
    }
}
