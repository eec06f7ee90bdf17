//! What the tests of this module share: rows as conversations push them.

mod backlog;
mod truth;
mod writer;

use crate::store::{Page, SegmentRecord, VoiceRecord};

const SCOPE: &str = "stream:0";

fn segment(id: &str, speaker: u32, start: f64) -> SegmentRecord {
    SegmentRecord { id: id.to_owned(), speaker, scope: SCOPE.to_owned(), start, end: start + 1.0 }
}

fn voice(speaker: u32, status: &str, person: Option<&str>) -> VoiceRecord {
    VoiceRecord {
        speaker,
        scope: SCOPE.to_owned(),
        label: None,
        status: status.to_owned(),
        person: person.map(str::to_owned),
        origin: "automatic".to_owned(),
        distance: Some(0.3),
        runner_up: None,
        evidence_seconds: 6.0,
        attempts: 1,
    }
}

fn page(recording: &str, segments: &[SegmentRecord], voices: &[VoiceRecord]) -> Page {
    Page { recording: recording.to_owned(), segments: segments.to_vec(), voices: voices.to_vec() }
}
