//! `/v1/conversations/{id}/voices/{speaker}/explain`: why a numbered voice has its name, or none.
//!
//! A number can stand for several voices: one in each recording and provider stream. All are told; the words are
//! [`crate::explain`]'s.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use matcher_core::{Receipt, Speaker};
use serde::Serialize;

use super::Api;
use super::conversations::{Kept, aside, kept, key, unknown};
use super::problem::Problem;
use crate::explain::{self, Past, Rules, Told};
use crate::history::truth::{Names, Rulings, Truth, voice_name};
use crate::live::{Service, Tell, VoiceExplained};
use crate::store::{History, VoiceRecord};

#[derive(Serialize)]
struct Explained<V> {
    conversation_id: String,
    speaker: u32,
    live: bool,
    voices: Vec<V>,
}

/// A voice whose conversation is over.
#[derive(Serialize)]
struct EndedVoice {
    recording_id: String,
    speaker: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    scope: String,
    #[serde(flatten)]
    truth: Truth,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner_up_distance: Option<f64>,
    evidence_seconds: f64,
    attempts: u32,
    explanation: Told,
}

/// Why the voices with this number have their names, or none.
pub(super) async fn explain(
    path: web::Path<(String, String)>,
    service: web::Data<Service>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Problem> {
    let (id, number) = path.into_inner();
    let speaker = number.parse().map_err(|_| {
        let detail = "speaker must be a whole number from 0; the conversation tells which numbers it has";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", detail).of_field("speaker")
    })?;
    let live = match service.registry.find(&key(&id)) {
        Some(conversation) => conversation.send(Tell { speaker: Speaker(speaker) }).await.ok(),
        None => None,
    };
    match live {
        Some(voices) => answer(Explained::<VoiceExplained> { conversation_id: id, speaker, live: true, voices }),
        None => ended(&service, id, speaker, api.names()).await,
    }
}

async fn ended(service: &Service, id: String, speaker: u32, names: Names) -> Result<HttpResponse, Problem> {
    let Kept { history, receipt } = kept(service, &id).await?;
    let history = history.ok_or_else(unknown)?;
    let settings = &service.settings;
    let rules = Rules::of(&settings.policy, &settings.limits, &settings.budget);
    let told = move || voices(&history, &receipt.unwrap_or_default(), speaker, (&names, &rules));
    answer(Explained { conversation_id: id, speaker, live: false, voices: aside(told).await? })
}

fn answer<V: Serialize>(explained: Explained<V>) -> Result<HttpResponse, Problem> {
    if explained.voices.is_empty() {
        let detail = "the conversation has no voice with this number; the conversation itself tells which it has";
        return Err(Problem::new(StatusCode::NOT_FOUND, "no_such_voice", detail).of_field("speaker"));
    }
    Ok(HttpResponse::Ok().json(explained))
}

fn voices(history: &History, receipt: &Receipt, speaker: u32, (names, rules): (&Names, &Rules)) -> Vec<EndedVoice> {
    let of_number = |record: &&VoiceRecord| record.speaker == speaker;
    let records = history
        .pages
        .iter()
        .flat_map(|page| page.voices.iter().filter(of_number).map(|record| (page.recording.as_str(), record)));
    let told = records.map(|(recording, record)| {
        let rulings = Rulings::of(&voice_name(recording, speaker, &record.scope), receipt, names);
        ended_voice(recording, record, rulings.of_voice(Some(record)), rules)
    });
    told.collect()
}

fn ended_voice(recording: &str, record: &VoiceRecord, truth: Truth, rules: &Rules) -> EndedVoice {
    let past = Past {
        name: truth.person_name.as_deref().map(Arc::from),
        is_decided: truth.manual.is_some(),
        distances: (record.distance, record.runner_up),
        evidence_seconds: record.evidence_seconds,
        attempts: record.attempts,
    };
    EndedVoice {
        recording_id: recording.to_owned(),
        speaker: record.speaker,
        label: record.label.clone(),
        scope: record.scope.clone(),
        truth,
        distance: record.distance,
        runner_up_distance: record.runner_up,
        evidence_seconds: record.evidence_seconds,
        attempts: record.attempts,
        explanation: explain::ended(&past, rules),
    }
}
