//! The answer: voices, segments, costs, in the shape that other programs read; and the same as subtitles or RTTM.

use std::collections::BTreeMap;
use std::iter::once;

use gpu_worker::Manifest;
use matcher_core::{BadTime, Explanation, Offer, Rate, Sample, Scope, SegmentId, Span, Speaker, Status};
use serde::Serialize;

use super::player::{Ended, Player};
use super::{IdentifyError, Request};
use crate::formats;
use crate::live::Names;
use crate::live::protocol::{Model, SpeakerName, TotalBudget, VoiceSummary};

/// The label of the one voice of a recording without segments.
const ONLY_VOICE: &str = "SPEAKER_00";

/// A recording without segments is offered in pieces of this length, so that verdicts come as early as in live audio.
const PIECE_SECONDS: u32 = 1;

/// What `rollcall identify` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The recording.
    pub audio: AudioSummary,
    /// The model behind the verdicts.
    pub model: Model,
    /// Every voice, by number.
    pub voices: Vec<VoiceSummary>,
    /// Every segment, by its start.
    pub segments: Vec<Segment>,
    /// What it cost.
    pub budget: TotalBudget,
    /// Why updates led to no verdict, and how often; reasons that never occurred are left out.
    pub exits: BTreeMap<&'static str, u64>,
    /// What failed in the engine, and how often; each was spent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
}

/// The recording.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AudioSummary {
    /// Its length.
    pub seconds: f64,
    /// Samples per second.
    pub sample_rate: u32,
}

/// One segment, with what is known of its voice at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Segment {
    /// Seconds from the start of the recording.
    pub start: f64,
    /// Seconds from the start of the recording.
    pub end: f64,
    /// The number of its voice.
    pub speaker: u32,
    /// Its label.
    pub label: String,
    /// Who its voice is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person_id: Option<String>,
    /// What is known of its voice.
    pub status: &'static str,
    /// What was said, where the segments told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The segments as they are offered, and as they are reported.
pub(super) struct Said {
    segments: Vec<(Speaker, formats::Segment)>,
    ended: Vec<Ended>,
}

impl Said {
    pub(super) fn of(request: &Request) -> Result<Self, IdentifyError> {
        match &request.segments {
            Some(segments) => Self::labelled(request, segments),
            None => Ok(Self::one_voice(request)),
        }
    }

    /// In the order in which the segments end; those that end together are one message.
    pub(super) fn batches(&self) -> impl Iterator<Item = &Ended> {
        self.ended.iter()
    }

    fn labelled(request: &Request, segments: &[formats::Segment]) -> Result<Self, IdentifyError> {
        let rate = Rate::new(request.audio.sample_rate);
        let mut names = Names::default();
        let mut said = Self { segments: Vec::with_capacity(segments.len()), ended: Vec::new() };
        let mut sorted = segments.to_vec();
        sorted.sort_by(|a, b| a.end.total_cmp(&b.end).then(a.start.total_cmp(&b.start)));
        for (index, segment) in sorted.into_iter().enumerate() {
            let number = index + 1;
            let window =
                window(rate, &segment).map_err(|(field, trouble)| IdentifyError::Time { number, field, trouble })?;
            let name = SpeakerName::Label(segment.label.clone());
            // Labels alone never mix with numbers, so the one refusal left is their count.
            let speaker = names.number(&name, &scope()).map_err(|_| IdentifyError::Labels { number })?;
            said.push(speaker, window, number);
            said.segments.push((speaker, segment));
        }
        Ok(said)
    }

    fn one_voice(request: &Request) -> Self {
        let rate = request.audio.sample_rate.get();
        let length = request.audio.pcm.len() as u64;
        let piece = u64::from(PIECE_SECONDS * rate);
        let mut said = Self { segments: Vec::new(), ended: Vec::new() };
        let ends = (1..=length / piece).map(|n| n * piece).chain(once(length));
        let mut start = 0;
        for (index, end) in ends.enumerate() {
            // The last piece is empty when the length is a whole number of pieces.
            if let Ok(window) = Span::new(Sample(start), Sample(end)) {
                said.push(Speaker(0), window, index + 1);
            }
            start = end;
        }
        let whole = formats::Segment { start: 0.0, end: request.audio.seconds(), label: ONLY_VOICE.into(), text: None };
        said.segments.push((Speaker(0), whole));
        said
    }

    fn push(&mut self, speaker: Speaker, window: Span, number: usize) {
        let segment = SegmentId::new(&number.to_string());
        let offer = Offer { speaker, scope: scope(), window, speech: window.samples(), segment };
        match self.ended.last_mut() {
            Some(last) if last.at == window.end() => last.offers.push(offer),
            _ => self.ended.push(Ended { at: window.end(), offers: vec![offer] }),
        }
    }

    /// The label under which a voice appeared first.
    fn label(&self, speaker: Speaker) -> String {
        let first = self.segments.iter().find(|(number, _)| *number == speaker);
        first.map(|(_, segment)| segment.label.clone()).unwrap_or_default()
    }
}

/// A recording has one stream of segments.
fn scope() -> Scope {
    Scope::new("")
}

/// A segment shorter than a sample has no audio, and so no place.
fn window(rate: Rate, segment: &formats::Segment) -> Result<Span, (&'static str, BadTime)> {
    let start = rate.sample_at(segment.start).ok_or(("start", BadTime::Start))?;
    let end = rate.sample_at(segment.end).ok_or(("end", BadTime::End))?;
    Span::new(start, end).map_err(|_| ("end", BadTime::Reversed))
}

pub(super) fn report(manifest: &Manifest, request: &Request, said: &Said, player: Player) -> Report {
    let voices: Vec<VoiceSummary> = player.voices().iter().map(|(voice, at)| summary(voice, *at, said)).collect();
    let mut segments: Vec<Segment> =
        said.segments.iter().map(|(speaker, segment)| told(*speaker, segment, &voices)).collect();
    segments.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
    let budget = TotalBudget::from(player.books());
    let (exits, failures) = player.into_counts();
    Report {
        audio: AudioSummary { seconds: request.audio.seconds(), sample_rate: request.audio.sample_rate.get() },
        model: Model {
            name: manifest.name.clone(),
            fingerprint: manifest.fingerprint.clone(),
            threshold: request.policy.threshold,
            margin: request.policy.margin,
        },
        voices,
        segments,
        budget,
        exits,
        failures,
    }
}

fn summary(voice: &Explanation, decided_at: Option<f64>, said: &Said) -> VoiceSummary {
    VoiceSummary { label: Some(said.label(voice.state.speaker)), decided_at, ..VoiceSummary::of(voice) }
}

fn told(speaker: Speaker, segment: &formats::Segment, voices: &[VoiceSummary]) -> Segment {
    let voice = voices.iter().find(|voice| voice.speaker == speaker.0);
    Segment {
        start: segment.start,
        end: segment.end,
        speaker: speaker.0,
        label: segment.label.clone(),
        person_id: voice.and_then(|voice| voice.person_id.clone()),
        // Beyond the limit on voices a segment's voice is never examined.
        status: voice.map_or(Status::Pending.as_str(), |voice| voice.status),
        text: segment.text.clone(),
    }
}

impl Report {
    /// The segments as RTTM, by people's ids; a voice without a name keeps its label.
    #[must_use]
    pub fn to_rttm(&self, file: &str) -> String {
        formats::rttm::write(file, &self.named(|voice| voice.person_id.as_deref()))
    }

    /// The segments as WebVTT, by people's names.
    #[must_use]
    pub fn to_vtt(&self) -> String {
        formats::vtt::write(&self.named(|voice| voice.person_name.as_deref()))
    }

    /// The segments as SRT, by people's names.
    #[must_use]
    pub fn to_srt(&self) -> String {
        formats::srt::write(&self.named(|voice| voice.person_name.as_deref()))
    }

    fn named(&self, name: impl Fn(&VoiceSummary) -> Option<&str>) -> Vec<formats::Segment> {
        let named = self.segments.iter().map(|segment| {
            let voice = self.voices.iter().find(|voice| voice.speaker == segment.speaker);
            let label = voice.and_then(&name).unwrap_or(&segment.label).to_owned();
            formats::Segment { start: segment.start, end: segment.end, label, text: segment.text.clone() }
        });
        named.collect()
    }
}
