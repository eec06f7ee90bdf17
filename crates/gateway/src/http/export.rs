//! `/v1/conversations/{id}/export`: for every segment who it was, as far as anybody knows by now, and where that comes
//! from.
//!
//! JSON tells all of it. RTTM and WebVTT have room for a name alone; they are written by [`crate::formats`].

use std::collections::BTreeMap;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, web};
use matcher_core::Receipt;
use serde::{Deserialize, Serialize};

use super::Api;
use super::conversations::{Kept, aside, is_live, kept, unknown};
use super::problem::Problem;
use crate::formats;
use crate::history::truth::{Names, Rulings, Truth, voice_name};
use crate::live::Service;
use crate::store::{Page, SegmentRecord, VoiceRecord};

/// Bytes of a download's name: every file system takes it with its ending.
const FILE_NAME_MAX: usize = 100;

#[derive(Deserialize)]
pub(super) struct Asked {
    format: Option<String>,
    recording_id: Option<String>,
}

#[derive(Clone, Copy)]
enum Format {
    Json,
    Rttm,
    Vtt,
}

#[derive(Serialize)]
struct Export<'a> {
    conversation_id: &'a str,
    receipt_generation: u64,
    segments: Vec<Told<'a>>,
}

/// One segment with its truth.
#[derive(Serialize)]
struct Told<'a> {
    recording_id: &'a str,
    segment_id: &'a str,
    speaker: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    scope: &'a str,
    start: f64,
    end: f64,
    #[serde(flatten)]
    truth: Truth,
    /// Tells the voices of one number apart: 1 for the recording's first provider stream with it.
    #[serde(skip)]
    stream: usize,
}

/// Who spoke when, of a live conversation or an ended one; of one recording when the query names it.
pub(super) async fn export(
    id: web::Path<String>,
    asked: web::Query<Asked>,
    service: web::Data<Service>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Problem> {
    let format = Format::of(asked.format.as_deref())?;
    let Kept { history, receipt } = kept(&service, &id).await?;
    let mut pages = match history {
        Some(history) => history.pages,
        None if is_live(&service, &id) => Vec::new(),
        None => return Err(unknown()),
    };
    if let Some(recording) = &asked.recording_id {
        pages.retain(|page| page.recording == *recording);
        if pages.is_empty() {
            let detail = "the conversation has no recording with this id";
            return Err(Problem::new(StatusCode::NOT_FOUND, "no_such_recording", detail).of_field("recording_id"));
        }
    }
    let disposition = format!("attachment; filename=\"{}.{}\"", file_name(&id), format.ending());
    let (receipt, names) = (receipt.unwrap_or_default(), api.names());
    let body = aside(move || format.write(&id, &pages, &receipt, &names)).await?;
    Ok(HttpResponse::Ok()
        .content_type(format.content_type())
        .insert_header((header::CONTENT_DISPOSITION, disposition))
        .body(body))
}

impl Format {
    fn of(name: Option<&str>) -> Result<Self, Problem> {
        match name {
            None | Some("json") => Ok(Self::Json),
            Some("rttm") => Ok(Self::Rttm),
            Some("vtt") => Ok(Self::Vtt),
            Some(_) => {
                let detail = "format must be \"rttm\", \"vtt\" or \"json\"";
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", detail).of_field("format"))
            }
        }
    }

    const fn ending(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Rttm => "rttm",
            Self::Vtt => "vtt",
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Rttm => "text/plain; charset=utf-8",
            Self::Vtt => "text/vtt; charset=utf-8",
        }
    }

    fn write(self, conversation: &str, pages: &[Page], receipt: &Receipt, names: &Names) -> String {
        let told = pages.iter().map(|page| (page, told(page, receipt, names)));
        match self {
            Self::Json => {
                let segments = told.flat_map(|(_, segments)| segments).collect();
                let receipt_generation = receipt.generation();
                let export = Export { conversation_id: conversation, receipt_generation, segments };
                serde_json::to_string(&export).expect("an export has only text, numbers and lists")
            }
            Self::Rttm => told
                .map(|(page, segments)| {
                    let by_id: Vec<_> = segments.iter().map(|told| told.named(told.truth.person_id.as_ref())).collect();
                    formats::rttm::write(&page.recording, &by_id)
                })
                .collect(),
            Self::Vtt => {
                let segments: Vec<Told<'_>> = told.flat_map(|(_, segments)| segments).collect();
                let mut cues: Vec<_> =
                    segments.iter().map(|told| told.named(told.truth.person_name.as_ref())).collect();
                // Players want cues in order; two recordings of a conversation overlap.
                cues.sort_by(|a, b| a.start.total_cmp(&b.start));
                formats::vtt::write(&cues)
            }
        }
    }
}

/// A voice, and what people decided about it.
struct Voice<'a> {
    record: Option<&'a VoiceRecord>,
    rulings: Rulings<'a>,
    stream: usize,
}

/// A recording's segments in their order, each with its truth.
fn told<'a>(page: &'a Page, receipt: &'a Receipt, names: &'a Names) -> Vec<Told<'a>> {
    let mut streams: BTreeMap<u32, usize> = BTreeMap::new();
    let mut voices: BTreeMap<(u32, &str), Voice<'a>> = BTreeMap::new();
    let told = page.segments.iter().map(|segment| {
        let (speaker, scope) = (segment.speaker, segment.scope.as_str());
        let voice = voices.entry((speaker, scope)).or_insert_with(|| {
            let stream = streams.entry(speaker).or_default();
            *stream += 1;
            let is_it = |record: &&VoiceRecord| record.speaker == speaker && record.scope == scope;
            let rulings = Rulings::of(&voice_name(&page.recording, speaker, scope), receipt, names);
            Voice { record: page.voices.iter().find(is_it), rulings, stream: *stream }
        });
        voice.told(&page.recording, segment)
    });
    told.collect()
}

impl<'a> Voice<'a> {
    fn told(&self, recording: &'a str, segment: &'a SegmentRecord) -> Told<'a> {
        Told {
            recording_id: recording,
            segment_id: &segment.id,
            speaker: segment.speaker,
            label: self.record.and_then(|record| record.label.as_deref()),
            scope: &segment.scope,
            start: segment.start,
            end: segment.end,
            truth: self.rulings.of_segment(&segment.id, self.record),
            stream: self.stream,
        }
    }
}

impl Told<'_> {
    /// With a person's name, or with the voice's own: a number in two provider streams is two voices.
    fn named(&self, person: Option<&String>) -> formats::Segment {
        let voice = || {
            let label = self.label.map_or_else(|| format!("SPEAKER_{:02}", self.speaker), str::to_owned);
            if self.stream > 1 { format!("{label}.{}", self.stream) } else { label }
        };
        let label = person.cloned().unwrap_or_else(voice);
        formats::Segment { start: self.start, end: self.end, label, text: None }
    }
}

/// The conversation's id, with an underscore for whatever a file system or the header might not take.
fn file_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
    id.chars().map(plain).take(FILE_NAME_MAX).collect()
}
