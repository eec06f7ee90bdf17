//! The evidence of one voice: its newest clips, how much speech they hold, and their centroid.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use crate::embedding::{Centroid, Embedding};

/// One extracted voiceprint and the speech it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Clip {
    /// The vector.
    pub embedding: Embedding,
    /// Samples of speech behind it.
    pub samples: u64,
}

/// The newest clips of a voice, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    clips: VecDeque<Clip>,
    clips_kept: usize,
}

impl Evidence {
    /// No evidence; at most `clips_kept` clips later.
    #[must_use]
    pub fn new(clips_kept: NonZeroU32) -> Self {
        let clips_kept = usize::try_from(clips_kept.get()).unwrap_or(usize::MAX);
        Self { clips: VecDeque::new(), clips_kept }
    }

    /// Adds a clip; the oldest goes when there are too many.
    pub fn add(&mut self, clip: Clip) {
        if self.clips.len() >= self.clips_kept {
            self.clips.pop_front();
        }
        self.clips.push_back(clip);
    }

    /// The clips, oldest first.
    pub fn clips(&self) -> impl DoubleEndedIterator<Item = &Clip> {
        self.clips.iter()
    }

    /// Samples of speech in all clips.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.clips.iter().map(|clip| clip.samples).sum()
    }

    /// Samples that will survive when one more clip is added.
    #[must_use]
    pub fn surviving(&self) -> u64 {
        let leaving = (self.clips.len() + 1).saturating_sub(self.clips_kept);
        self.clips.iter().skip(leaving).map(|clip| clip.samples).sum()
    }

    /// The plain mean of the vectors, length-normalised; not weighted by how long each clip is.
    #[must_use]
    pub fn centroid(&self) -> Option<Centroid> {
        Centroid::of_iter(self.clips.iter().map(|clip| &clip.embedding))
    }
}
