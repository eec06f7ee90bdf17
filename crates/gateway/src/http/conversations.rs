//! Conversations, live and ended: `/v1/conversations` and `/v1/conversations/{id}`.
//!
//! A live one is told by its scheduler, an ended one by what was kept of it. Corrections and exports have files of their
//! own, and read what is kept through this one.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use matcher_core::Receipt;
use serde::{Deserialize, Serialize};
use tokio::task::JoinError;

use super::Api;
use super::problem::Problem;
use crate::history::Deletion;
use crate::history::truth::{Names, Rulings, Truth, voice_name};
use crate::live::{ConversationKey, ConversationSnapshot, Service, Snapshot};
use crate::people::now_ms;
use crate::store::{History, LOCAL_ACCOUNT, Page, Store, StoreError, VoiceRecord};

/// Conversations in one list: more than a person reads, and an answer of at most a megabyte.
const LIST_MAX: usize = 1000;

#[derive(Deserialize)]
pub(super) struct Listing {
    limit: Option<usize>,
}

#[derive(Serialize)]
pub(super) struct List {
    pub(super) conversations: Vec<Listed>,
}

/// Times are seconds since 1970.
#[derive(Serialize)]
pub(super) struct Listed {
    id: String,
    live: bool,
    started_at: f64,
    updated_at: f64,
}

#[derive(Serialize)]
pub(super) struct Live<'a> {
    pub(super) live: bool,
    #[serde(flatten)]
    pub(super) conversation: &'a ConversationSnapshot,
}

#[derive(Serialize)]
struct Ended<'a> {
    conversation_id: &'a str,
    live: bool,
    started_at: f64,
    updated_at: f64,
    receipt_generation: u64,
    lanes: Vec<EndedLane<'a>>,
}

#[derive(Serialize)]
struct EndedLane<'a> {
    recording_id: &'a str,
    voices: Vec<EndedVoice<'a>>,
}

/// As the view of a live voice tells it, and where its name comes from.
#[derive(Serialize)]
struct EndedVoice<'a> {
    speaker: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    scope: &'a str,
    #[serde(flatten)]
    truth: Truth,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner_up_distance: Option<f64>,
    evidence_seconds: f64,
    attempts: u32,
}

/// What the disk holds of a conversation.
pub(super) struct Kept {
    pub(super) history: Option<History>,
    pub(super) receipt: Option<Receipt>,
}

/// Live ones first, and then those that ended, the newest first.
pub(super) async fn list(listing: web::Query<Listing>, service: web::Data<Service>) -> Result<HttpResponse, Problem> {
    let limit = listing.limit.unwrap_or(LIST_MAX);
    if !(1..=LIST_MAX).contains(&limit) {
        let detail = format!("limit must be 1 to {LIST_MAX}");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", detail).of_field("limit"));
    }
    Ok(HttpResponse::Ok().json(List { conversations: listed(&service, limit).await? }))
}

/// The first of them: those that are live, the latest to begin first, and then those that ended, the latest first.
pub(super) async fn listed(service: &Service, limit: usize) -> Result<Vec<Listed>, Problem> {
    let live = service.registry.conversations_of(LOCAL_ACCOUNT);
    let records_max = limit.saturating_add(live.len());
    let records = ask_store(service, move |store| store.conversations(records_max)).await?;
    // One that began within the last moment is not on disk yet.
    let now = seconds(now_ms());
    let fresh = |id: String| (id.clone(), Listed { id, live: true, started_at: now, updated_at: now });
    let mut all: BTreeMap<String, Listed> = live.into_iter().map(fresh).collect();
    for record in records {
        let live = all.contains_key(&record.id);
        let (started_at, updated_at) = (seconds(record.started_ms), seconds(record.updated_ms));
        all.insert(record.id.clone(), Listed { id: record.id, live, started_at, updated_at });
    }
    let mut conversations: Vec<Listed> = all.into_values().collect();
    let at = |listed: &Listed| if listed.live { listed.started_at } else { listed.updated_at };
    conversations
        .sort_by(|a, b| b.live.cmp(&a.live).then_with(|| at(b).total_cmp(&at(a))).then_with(|| a.id.cmp(&b.id)));
    conversations.truncate(limit);
    Ok(conversations)
}

/// One that is live with voices, verdicts, queue and budgets; one that ended with its voices as they are known by now.
pub(super) async fn show(
    id: web::Path<String>,
    service: web::Data<Service>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Problem> {
    let live = match service.registry.find(&key(&id)) {
        Some(conversation) => conversation.send(Snapshot).await.ok(),
        None => None,
    };
    if let Some(conversation) = &live {
        return Ok(HttpResponse::Ok().json(Live { live: true, conversation }));
    }
    let Kept { history, receipt } = kept(&service, &id).await?;
    let (history, receipt, names) = (history.ok_or_else(unknown)?, receipt.unwrap_or_default(), api.names());
    let body = aside(move || serde_json::to_string(&ended(&id, &history, &receipt, &names))).await?;
    let body = body.expect("a view has only text, numbers and lists");
    Ok(HttpResponse::Ok().content_type("application/json").body(body))
}

/// Removes one that ended, with what people decided about it.
pub(super) async fn delete(id: web::Path<String>, service: web::Data<Service>) -> Result<HttpResponse, Problem> {
    if is_live(&service, &id) {
        let detail = "the conversation is live; end it first";
        return Err(Problem::new(StatusCode::CONFLICT, "conversation_live", detail).of_field("id"));
    }
    let failed = |code, detail| Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail));
    match to_its_end(delete_everywhere(service.into_inner(), id.into_inner())).await? {
        Deletion::Removed => Ok(HttpResponse::NoContent().finish()),
        Deletion::Unknown => Err(unknown()),
        Deletion::TracesRemain => failed("traces_remain", "the conversation was deleted, but traces remain on disk"),
        Deletion::Failed => failed("store_failed", "the store failed and the conversation is still there; try again"),
    }
}

/// From the disk, from what waits for it, and from the memory of whoever read it or comes back to it.
async fn delete_everywhere(service: Arc<Service>, id: String) -> Deletion {
    let deletion = service.history.delete(&id).await;
    service.corrections.raise(&id);
    service.registry.forget_voices_of(&key(&id));
    if is_live(&service, &id) {
        // It began anew meanwhile, and perhaps before its deletion was written.
        service.history.opened(&id);
    }
    deletion
}

/// What the disk holds of a conversation, after all news of it so far.
pub(super) async fn kept(service: &Service, conversation: &str) -> Result<Kept, Problem> {
    service.history.wait_for(conversation).await;
    let conversation = conversation.to_owned();
    ask_store(service, move |store| {
        let history = store.history(&conversation)?;
        Ok(Kept { history, receipt: store.receipt(&conversation)? })
    })
    .await
}

async fn ask_store<T: Send + 'static>(
    service: &Service,
    question: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Problem> {
    let store = service.store.clone();
    Ok(aside(move || question(&*store)).await??)
}

/// Runs on a blocking thread what would hold up the sockets on this one: a long conversation has 100,000 segments.
pub(super) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(broken)
}

/// Does what must not be left half done, also when the client hangs up.
pub(super) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(work).await.map_err(broken)
}

fn broken(_: JoinError) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the work was interrupted")
}

pub(super) fn key(id: &str) -> ConversationKey {
    ConversationKey { account: LOCAL_ACCOUNT.to_owned(), conversation: id.to_owned() }
}

pub(super) fn is_live(service: &Service, id: &str) -> bool {
    service.registry.find(&key(id)).is_some()
}

pub(super) fn unknown() -> Problem {
    let detail = "there is no conversation with this id; /v1/conversations lists those that there are";
    Problem::new(StatusCode::NOT_FOUND, "no_such_conversation", detail).of_field("id")
}

fn ended<'a>(id: &'a str, history: &'a History, receipt: &Receipt, names: &Names) -> Ended<'a> {
    let lanes = history.pages.iter().map(|page| ended_lane(page, receipt, names));
    Ended {
        conversation_id: id,
        live: false,
        started_at: seconds(history.record.started_ms),
        updated_at: seconds(history.record.updated_ms),
        receipt_generation: receipt.generation(),
        lanes: lanes.collect(),
    }
}

fn ended_lane<'a>(page: &'a Page, receipt: &Receipt, names: &Names) -> EndedLane<'a> {
    let voice = |voice: &'a VoiceRecord| EndedVoice {
        speaker: voice.speaker,
        label: voice.label.as_deref(),
        scope: &voice.scope,
        truth: Rulings::of(&voice_name(&page.recording, voice.speaker, &voice.scope), receipt, names)
            .of_voice(Some(voice)),
        distance: voice.distance,
        runner_up_distance: voice.runner_up,
        evidence_seconds: voice.evidence_seconds,
        attempts: voice.attempts,
    };
    EndedLane { recording_id: &page.recording, voices: page.voices.iter().map(voice).collect() }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are exact in a double for 285,000 years")]
fn seconds(milliseconds: i64) -> f64 {
    milliseconds as f64 / 1000.0
}
