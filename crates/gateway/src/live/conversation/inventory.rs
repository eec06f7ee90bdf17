//! Which voice each recent segment belongs to, so that a correction of segments can be checked.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use matcher_core::receipt::VoiceName;
use matcher_core::{Scope, SegmentId, Speaker};

/// Segments of a lane that are remembered: half an hour of lively talk, in about 64 KiB. A correction that names an older
/// one is refused; one of the whole voice still reaches it.
const SEGMENTS_MAX: usize = 2048;

/// See the module's text. Ids are kept as keyed hashes: a client cannot make two of its ids collide.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    hasher: RandomState,
    segments: VecDeque<(u64, VoiceName)>,
}

impl Inventory {
    pub(super) fn note(&mut self, segment: &SegmentId, voice: VoiceName) {
        let id = self.hasher.hash_one(segment);
        if self.segments.back().is_some_and(|(newest, _)| *newest == id) {
            return;
        }
        if self.segments.len() >= SEGMENTS_MAX {
            self.segments.pop_front();
        }
        self.segments.push_back((id, voice));
    }

    /// The newest voice with this number, in this provider stream or in whatever one it was heard last.
    pub(super) fn newest(&self, speaker: Speaker, scope: Option<&Scope>) -> Option<&VoiceName> {
        let matches = |voice: &&VoiceName| voice.speaker == speaker && scope.is_none_or(|scope| *scope == voice.scope);
        self.segments.iter().rev().map(|(_, voice)| voice).find(matches)
    }

    pub(super) fn is_of(&self, segment: &SegmentId, voice: &VoiceName) -> bool {
        let id = self.hasher.hash_one(segment);
        self.segments.iter().rev().find(|(held, _)| *held == id).is_some_and(|(_, held)| held == voice)
    }
}
