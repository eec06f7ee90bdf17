//! What people decided about a conversation: `/v1/conversations/{id}/labels`, while it is live and after it ended.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use matcher_core::receipt::{Correction, Entry, Reach, Receipt, Rejection, Ruling, Subject, VoiceName};
use matcher_core::{Role, Scope, Speaker};
use serde::Serialize;
use serde_json::{Value, json};

use super::problem::Problem;
use crate::live::corrections::{self, NotCorrected, Wish};
use crate::live::protocol::{Message, SpeakerName, parse};
use crate::live::{ConversationKey, Correct, Service, Whose};
use crate::store::LOCAL_ACCOUNT;

/// Everything that was decided, newest and older.
pub(super) async fn list(id: web::Path<String>, service: web::Data<Service>) -> HttpResponse {
    match corrections::read(service.store.clone(), id.into_inner()).await {
        Ok(receipt) => HttpResponse::Ok().json(shown(&receipt)),
        Err(not) => problem(&not),
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
    let key = ConversationKey { account: LOCAL_ACCOUNT.to_owned(), conversation: id.into_inner() };
    let live = service.registry.find(&key);
    let written = match live {
        Some(conversation) => {
            let correct = Correct { speaker: Speaker(speaker), whose: Whose::Any(scope), subject, wish };
            conversation.send(correct).await.unwrap_or(Err(NotCorrected::Ended))
        }
        None => ended(&service, key.conversation, (speaker, scope), (subject, wish)).await,
    };
    match written {
        Ok(generation) => HttpResponse::Ok().json(json!({"receipt_generation": generation})),
        Err(not) => problem(&not),
    }
}

/// After the end nothing remembers which segment was whose: whole voices are corrected, by number and scope.
async fn ended(
    service: &Service,
    conversation: String,
    (speaker, scope): (u32, Option<Scope>),
    (subject, wish): (Subject, Wish),
) -> Result<u64, NotCorrected> {
    if let Subject::Segments(ids, _) = &subject {
        return Err(NotCorrected::NotOfThisVoice(ids.first().map(ToString::to_string).unwrap_or_default()));
    }
    let voice = VoiceName { speaker: Speaker(speaker), scope: scope.ok_or(NotCorrected::Unheard(speaker))? };
    let correction = Correction { voice, subject, ruling: Ruling::IsNobody };
    let receipt = corrections::correct(service.store.clone(), conversation, correction, wish).await?;
    Ok(receipt.generation())
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

fn problem(not: &NotCorrected) -> HttpResponse {
    let (status, code, field) = match not {
        NotCorrected::NoSuchPerson(_) => (StatusCode::UNPROCESSABLE_ENTITY, "no_such_person", Some("person_id")),
        NotCorrected::NotOfThisVoice(_) => (StatusCode::UNPROCESSABLE_ENTITY, "other_voice", Some("segment_ids")),
        NotCorrected::Unheard(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unheard", Some("speaker")),
        NotCorrected::Full(_) => (StatusCode::INSUFFICIENT_STORAGE, "capacity", None),
        NotCorrected::Ended => (StatusCode::CONFLICT, "ended", None),
        NotCorrected::Store(_) => (StatusCode::INTERNAL_SERVER_ERROR, "store", None),
    };
    let problem = Problem::new(status, code, not.to_string());
    field.into_iter().fold(problem, Problem::of_field).answer()
}
