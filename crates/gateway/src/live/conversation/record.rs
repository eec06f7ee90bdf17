//! What is kept of a conversation for the time after it: its segments as they come, its voices as they change.

use std::collections::{BTreeMap, BTreeSet};

use matcher_core::{Event, Explanation, LaneId, Offer, Origin, Scope, Span, Speaker};

use super::snapshot::SegmentSnapshot;
use super::{Conversation, LaneLink};
use crate::store::{Page, SegmentRecord, VoiceRecord};

impl Conversation {
    /// The voices that changed, as they are now.
    pub(super) fn record(&self, events: &[Event]) {
        let mut changed: BTreeMap<LaneId, BTreeSet<Speaker>> = BTreeMap::new();
        for event in events {
            if let Event::Published { lane, state, .. } = event {
                changed.entry(*lane).or_default().insert(state.speaker);
            }
        }
        changed.into_iter().for_each(|(lane, speakers)| self.record_speakers(lane, speakers));
    }

    /// Some voices of a lane, as they are now.
    pub(super) fn record_speakers(&self, lane: LaneId, speakers: BTreeSet<Speaker>) {
        self.record_voices(
            lane,
            speakers.into_iter().flat_map(|speaker| self.scheduler.explain(lane, speaker)).collect(),
        );
    }

    /// All voices of a lane that is about to leave.
    pub(super) fn record_all(&self, lane: LaneId) {
        self.record_voices(lane, self.scheduler.explain_all(lane));
    }

    fn record_voices(&self, lane: LaneId, voices: Vec<Explanation>) {
        let Some(link) = self.lanes.get(&lane).filter(|_| !voices.is_empty()) else { return };
        let voices = voices.iter().filter(|voice| voice.state.segment.is_some()).map(|voice| link.record(voice));
        let page = Page { recording: link.recording.clone(), segments: Vec::new(), voices: voices.collect() };
        self.service.history.push(&self.key.conversation, page);
    }
}

impl LaneLink {
    /// The segments of one message. Parts of a segment around lost audio are one again.
    pub(super) fn page_of(&mut self, offers: &[Offer]) -> Page {
        let mut segments: BTreeMap<(&str, &Scope, Speaker), (Span, &Offer)> = BTreeMap::new();
        for offer in offers {
            let key = (offer.segment.as_str(), &offer.scope, offer.speaker);
            let whole = segments.entry(key).or_insert((offer.window, offer));
            whole.0 = Span::new(whole.0.start().min(offer.window.start()), whole.0.end().max(offer.window.end()))
                .unwrap_or(offer.window);
        }
        let (hertz, offset) = (self.hertz, self.offset);
        let seconds = |at: matcher_core::Sample| offset + at.0 as f64 / hertz;
        let segments = segments.into_values().map(|(window, offer)| SegmentRecord {
            id: offer.segment.to_string(),
            speaker: offer.speaker.0,
            scope: offer.scope.to_string(),
            start: seconds(window.start()),
            end: seconds(window.end()),
        });
        let segments: Vec<SegmentRecord> = segments.collect();
        self.show(segments.iter().map(|segment| SegmentSnapshot {
            segment_id: segment.id.clone(),
            speaker: segment.speaker,
            scope: segment.scope.clone(),
            start: segment.start,
            end: segment.end,
        }));
        self.reached = segments.iter().map(|segment| segment.end).fold(self.reached, f64::max);
        Page { recording: self.recording.clone(), segments, voices: Vec::new() }
    }

    fn record(&self, voice: &Explanation) -> VoiceRecord {
        let state = &voice.state;
        let identity = state.identity.as_ref();
        VoiceRecord {
            speaker: state.speaker.0,
            scope: state.scope.to_string(),
            label: self.lineage.names().label(state.speaker).map(str::to_owned),
            status: state.status.as_str().to_owned(),
            person: identity.map(|identity| identity.person.to_string()),
            origin: identity.map_or(Origin::Automatic, |identity| identity.origin).as_str().to_owned(),
            distance: state.distance,
            runner_up: state.runner_up,
            evidence_seconds: state.evidence_seconds,
            attempts: voice.attempts,
        }
    }
}
