//! Which voice each recent segment belongs to, so that a correction of segments can be checked.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use matcher_core::receipt::VoiceName;
use matcher_core::{LaneId, SegmentId, Speaker};

use super::messages::Streams;

/// Segments of a lane that are remembered: half an hour of lively talk, in about 80 KiB. A correction that names an older
/// one is refused; one of the whole voice still reaches it.
const SEGMENTS_MAX: usize = 2048;

/// Lanes whose segments are remembered, also after they left: twice as many as can be here. What was said in one that is
/// forgotten can be corrected when the conversation has ended.
const LANES_MAX: usize = 16;

/// See the module's text. Ids are kept as keyed hashes: a client cannot make two of its ids collide.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    hasher: RandomState,
    lanes: BTreeMap<LaneId, VecDeque<Noted>>,
    noted: u64,
}

#[derive(Debug)]
struct Noted {
    id: u64,
    voice: VoiceName,
    /// Rises with every segment, over all lanes.
    at: u64,
}

impl Inventory {
    pub(super) fn note(&mut self, lane: LaneId, segment: &SegmentId, voice: VoiceName) {
        let (id, at) = (self.hasher.hash_one(segment), self.noted);
        self.noted += 1;
        let segments = self.lanes.entry(lane).or_default();
        if segments.back().is_some_and(|newest| newest.id == id && newest.voice == voice) {
            return;
        }
        if segments.len() >= SEGMENTS_MAX {
            segments.pop_front();
        }
        segments.push_back(Noted { id, voice, at });
        if self.lanes.len() > LANES_MAX {
            self.forget_quietest();
        }
    }

    fn forget_quietest(&mut self) {
        let newest = |segments: &VecDeque<Noted>| segments.back().map(|noted| noted.at);
        let quietest = self.lanes.iter().min_by_key(|(_, segments)| newest(segments)).map(|(lane, _)| *lane);
        quietest.and_then(|lane| self.lanes.remove(&lane));
    }

    /// The voice with this number that was heard last, of one lane or of any, in the streams that are meant.
    pub(super) fn newest(&self, lane: Option<LaneId>, speaker: Speaker, streams: &Streams) -> Option<&VoiceName> {
        let is_asked = |voice: &VoiceName| voice.speaker == speaker && streams.hold(&voice.scope);
        let lanes = self.lanes.iter().filter(|(id, _)| lane.is_none_or(|lane| lane == **id));
        let newest = lanes.filter_map(|(_, segments)| segments.iter().rev().find(|noted| is_asked(&noted.voice)));
        newest.max_by_key(|noted| noted.at).map(|noted| &noted.voice)
    }

    /// Whether a segment of the voice's recording is the voice's.
    pub(super) fn is_of(&self, segment: &SegmentId, voice: &VoiceName) -> bool {
        let id = self.hasher.hash_one(segment);
        let of_recording = |noted: &&Noted| noted.id == id && noted.voice.scope.recording() == voice.scope.recording();
        let noted = self.lanes.values().filter_map(|segments| segments.iter().rev().find(of_recording));
        noted.max_by_key(|noted| noted.at).is_some_and(|noted| noted.voice == *voice)
    }
}
