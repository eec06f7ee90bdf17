//! What people decided about a conversation: `/v1/conversations/{id}/labels`, while it is live and after it ended.

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use matcher_core::receipt::{Correction, Entry, Reach, Receipt, Rejection, Ruling, Subject, VoiceName};
use matcher_core::{Role, Scope, Speaker};
use serde::Serialize;
use serde_json::{Value, json};

use super::conversations::{Kept, kept, key, unknown};
use super::problem::Problem;
use crate::live::corrections::{NotCorrected, Wish};
use crate::live::protocol::{Message, SpeakerName, parse};
use crate::live::{Correct, Service, Whose};
use crate::store::{Page, SegmentRecord};

/// Everything that was decided, newest and older.
pub(super) async fn list(id: web::Path<String>, service: web::Data<Service>) -> HttpResponse {
    match service.corrections.read(&id).await {
        Ok(receipt) => HttpResponse::Ok().json(shown(&receipt)),
        Err(not) => Problem::from(not).answer(),
    }
}

/// Decides about a voice: the body is a `label` or `reject` message of the socket, with a number as its speaker and, where
/// the number alone is not clear, a `scope`.
pub(super) async fn correct(
    id: web::Path<String>,
    body: web::Json<Value>,
    service: web::Data<Service>,
) -> HttpResponse {
    let bounds = service.settings.sockets.bounds;
    let (speaker, wish, subject) = match parse(&body.to_string(), bounds) {
        Ok(Message::Correct { speaker: SpeakerName::Number(speaker), wish, subject }) => (speaker, wish, subject),
        Ok(Message::Correct { .. }) => return refused("speaker", "must be a number here; labels belong to one socket"),
        Ok(_) => return refused("type", "must be \"label\" or \"reject\""),
        Err(wrong) => {
            let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, wrong.code, wrong.message);
            let field = wrong.field.map(|field| [("field".to_owned(), Value::String(field))].into_iter().collect());
            return field.into_iter().fold(problem, Problem::with).answer();
        }
    };
    let scope = body.get("scope").and_then(Value::as_str).map(Scope::new);
    let written = match service.registry.find(&key(&id)) {
        Some(conversation) => {
            let correct = Correct { speaker: Speaker(speaker), whose: Whose::Any(scope), subject, wish };
            conversation.send(correct).await.unwrap_or(Err(NotCorrected::Ended)).map_err(Problem::from)
        }
        None => ended(&service, &id, (speaker, scope), (subject, wish)).await,
    };
    match written {
        Ok(generation) => HttpResponse::Ok().json(json!({"receipt_generation": generation})),
        Err(problem) => problem.answer(),
    }
}

/// After the end the disk knows which segment was whose.
async fn ended(
    service: &Service,
    conversation: &str,
    (speaker, scope): (u32, Option<Scope>),
    (subject, wish): (Subject, Wish),
) -> Result<u64, Problem> {
    let Kept { history, receipt } = kept(service, conversation).await?;
    if history.is_none() && receipt.is_none() {
        return Err(unknown());
    }
    let pages = history.map(|history| history.pages).unwrap_or_default();
    let voice = voice_of(&pages, speaker, scope, &subject)?;
    let correction = Correction { voice, subject, ruling: Ruling::IsNobody };
    let receipt = service.corrections.correct(conversation, correction, wish).await?;
    Ok(receipt.generation())
}

/// The voice that a correction means, by the rules of a live conversation; its segments must all be of it.
fn voice_of(pages: &[Page], speaker: u32, scope: Option<Scope>, subject: &Subject) -> Result<VoiceName, NotCorrected> {
    let scope = match scope {
        Some(scope) => scope,
        None => newest_scope(pages, speaker).ok_or(NotCorrected::Unheard(speaker))?,
    };
    if let Subject::Segments(ids, _) = subject {
        let is_of = |segment: &SegmentRecord| segment.speaker == speaker && segment.scope == scope.as_str();
        let of_voice = pages.iter().flat_map(|page| &page.segments).filter(|segment| is_of(segment));
        let known: BTreeSet<&str> = of_voice.map(|segment| segment.id.as_str()).collect();
        if let Some(stranger) = ids.iter().find(|id| !known.contains(id.as_str())) {
            return Err(NotCorrected::NotOfThisVoice(stranger.to_string()));
        }
    }
    Ok(VoiceName { speaker: Speaker(speaker), scope })
}

/// Where a number was heard last, as in a live conversation.
fn newest_scope(pages: &[Page], speaker: u32) -> Option<Scope> {
    let segments = pages.iter().flat_map(|page| &page.segments).filter(|segment| segment.speaker == speaker);
    let newest = segments.max_by(|a, b| a.end.total_cmp(&b.end)).map(|segment| segment.scope.as_str());
    // Segments can be missing where the disk failed; the voice is known all the same.
    let voices = || pages.iter().flat_map(|page| &page.voices).filter(|voice| voice.speaker == speaker);
    newest.or_else(|| voices().next_back().map(|voice| voice.scope.as_str())).map(Scope::new)
}

/// One entry: whose, and what was decided.
#[derive(Serialize)]
struct Shown<'a> {
    speaker: u32,
    scope: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    segment_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segment_only: Option<bool>,
    #[serde(flatten)]
    decision: Value,
}

impl<'a> Shown<'a> {
    fn of(voice: &'a VoiceName, entry: &Entry) -> Self {
        let decision = entry_shown(entry);
        Self { speaker: voice.speaker.0, scope: voice.scope.as_str(), segment_id: None, segment_only: None, decision }
    }
}

fn shown(receipt: &Receipt) -> Value {
    let voices: Vec<Shown<'_>> = receipt.voices().map(|(voice, entry)| Shown::of(voice, entry)).collect();
    let segments = receipt.segments().map(|(segment, held)| Shown {
        segment_id: Some(segment.as_str()),
        segment_only: Some(held.reach == Reach::SegmentOnly),
        ..Shown::of(&held.voice, &held.entry)
    });
    json!({"generation": receipt.generation(), "voices": voices, "segments": segments.collect::<Vec<_>>()})
}

fn entry_shown(entry: &Entry) -> Value {
    let generation = entry.generation;
    match &entry.ruling {
        Ruling::Is(named) => json!({
            "generation": generation, "person_id": named.person.as_str(), "person_name": &*named.name,
            "is_owner": named.role == Role::Owner,
        }),
        Ruling::IsNobody => json!({"generation": generation, "person_id": null}),
        Ruling::Not(Rejection::NotMe) => json!({"generation": generation, "rejected": "not_me"}),
        Ruling::Not(Rejection::NotAPerson) => json!({"generation": generation, "rejected": "not_a_person"}),
        Ruling::Not(Rejection::NotPerson(person)) => {
            json!({"generation": generation, "rejected": "not_person", "person_id": person.as_str()})
        }
    }
}

fn refused(field: &'static str, detail: &str) -> HttpResponse {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", detail).of_field(field).answer()
}

impl From<NotCorrected> for Problem {
    fn from(not: NotCorrected) -> Self {
        let detail = not.to_string();
        let (status, code, field) = match not {
            NotCorrected::NoSuchPerson(_) => (StatusCode::UNPROCESSABLE_ENTITY, "no_such_person", Some("person_id")),
            NotCorrected::NotOfThisVoice(_) => (StatusCode::UNPROCESSABLE_ENTITY, "other_voice", Some("segment_ids")),
            NotCorrected::Unheard(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unheard", Some("speaker")),
            NotCorrected::Full(_) => (StatusCode::INSUFFICIENT_STORAGE, "capacity", None),
            NotCorrected::Ended | NotCorrected::Overtaken => (StatusCode::CONFLICT, "ended", None),
            NotCorrected::Store(error) => return error.into(),
        };
        let problem = Self::new(status, code, detail);
        field.into_iter().fold(problem, Self::of_field)
    }
}
