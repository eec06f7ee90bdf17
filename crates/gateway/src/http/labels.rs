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
use crate::live::{Correct, ReadAgain, Service, Streams, Whose};
use crate::store::{Page, SegmentRecord};

/// Everything that was decided, newest and older.
pub(super) async fn list(id: web::Path<String>, service: web::Data<Service>) -> HttpResponse {
    match service.corrections.read(&id).await {
        Ok(receipt) => HttpResponse::Ok().json(shown(&receipt)),
        Err(not) => Problem::from(not).answer(),
    }
}

/// Decides about a voice: the body is a `label` or `reject` message of the socket, with a number as its speaker and, where
/// the number alone is not clear, a `scope`. While the conversation is live a number alone means its newest voice.
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
    let streams = named_in(&body);
    let written = match service.registry.find(&key(&id)) {
        Some(conversation) => {
            let correct = Correct { speaker: Speaker(speaker), whose: Whose::Any(streams), subject, wish };
            conversation.send(correct).await.unwrap_or(Err(NotCorrected::Ended)).map_err(Problem::from)
        }
        None => ended(&service, &id, (speaker, streams), (subject, wish)).await,
    };
    match written {
        Ok(generation) => HttpResponse::Ok().json(json!({"receipt_generation": generation})),
        Err(problem) => problem.answer(),
    }
}

/// The provider streams that a correction names, where the number alone is not clear.
fn named_in(body: &Value) -> Streams {
    let text = |field: &str| body.get(field).and_then(Value::as_str).map(str::to_owned);
    Streams { scope: text("scope"), recording: text("recording_id") }
}

/// After the end the disk knows which segment was whose.
async fn ended(
    service: &Service,
    conversation: &str,
    (speaker, streams): (u32, Streams),
    (subject, wish): (Subject, Wish),
) -> Result<u64, Problem> {
    let Kept { history, receipt } = kept(service, conversation).await?;
    let receipt = receipt.unwrap_or_default();
    // What is left of a deleted conversation is a receipt that says nothing.
    if history.is_none() && receipt.voices().next().is_none() && receipt.segments().next().is_none() {
        return Err(unknown());
    }
    let pages = history.map(|history| history.pages).unwrap_or_default();
    let voice = VoiceName { speaker: Speaker(speaker), scope: only_scope((&pages, &receipt), speaker, &streams)? };
    refuse_strangers(&pages, &voice, &subject)?;
    let correction = Correction { voice, subject, ruling: Ruling::IsNobody };
    let receipt = service.corrections.correct(conversation, correction, wish).await?;
    // It may have begun again meanwhile, and read what was decided before.
    if let Some(live) = service.registry.find(&key(conversation)) {
        live.send(ReadAgain).await.ok();
    }
    Ok(receipt.generation())
}

/// Segments of a correction must all be of its voice.
fn refuse_strangers(pages: &[Page], voice: &VoiceName, subject: &Subject) -> Result<(), NotCorrected> {
    let Subject::Segments(ids, _) = subject else { return Ok(()) };
    let is_of = |segment: &&SegmentRecord| segment.speaker == voice.speaker.0 && segment.scope == voice.scope.as_str();
    let of_recording = pages.iter().filter(|page| page.recording == voice.scope.recording());
    let segments = of_recording.flat_map(|page| &page.segments).filter(is_of);
    let known: BTreeSet<&str> = segments.map(|segment| segment.id.as_str()).collect();
    match ids.iter().find(|id| !known.contains(id.as_str())) {
        Some(stranger) => Err(NotCorrected::NotOfThisVoice(stranger.to_string())),
        None => Ok(()),
    }
}

/// The stream of a number that is one voice. Of several nobody can say which is meant: each stream has its own clock, so
/// their times do not tell which was heard last.
fn only_scope((pages, receipt): (&[Page], &Receipt), speaker: u32, asked: &Streams) -> Result<Scope, Problem> {
    let heard = pages.iter().flat_map(|page| {
        // Segments can be missing where the disk failed; the voice is known all the same.
        let segments = page.segments.iter().map(|segment| (segment.speaker, &segment.scope));
        let voices = page.voices.iter().map(|voice| (voice.speaker, &voice.scope));
        let heard = segments.chain(voices).filter(|(number, _)| *number == speaker);
        heard.map(|(_, scope)| Scope::of(&page.recording, scope))
    });
    let decided =
        receipt.voices().filter(|(voice, _)| voice.speaker.0 == speaker).map(|(voice, _)| voice.scope.clone());
    let mut scopes: BTreeSet<Scope> = heard.chain(decided).filter(|scope| asked.hold(scope)).collect();
    match (scopes.pop_first(), scopes.len()) {
        (None, _) => Err(NotCorrected::Unheard(speaker).into()),
        (Some(scope), 0) => Ok(scope),
        (Some(_), others) => {
            let detail = format!(
                "speaker {speaker} is {} voices of this conversation; name the scope, and the recording_id where two \
                 recordings have the same, as /v1/conversations/{{id}} lists them",
                others + 1
            );
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "ambiguous_speaker", detail).of_field("scope"))
        }
    }
}

/// One entry: whose, and what was decided.
#[derive(Serialize)]
struct Shown<'a> {
    speaker: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    recording_id: &'a str,
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
        Self {
            speaker: voice.speaker.0,
            recording_id: voice.scope.recording(),
            scope: voice.scope.as_str(),
            segment_id: None,
            segment_only: None,
            decision: entry_shown(entry),
        }
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
            NotCorrected::Ended | NotCorrected::Overtaken | NotCorrected::Late => (StatusCode::CONFLICT, "ended", None),
            NotCorrected::Store(error) => return error.into(),
        };
        let problem = Self::new(status, code, detail);
        field.into_iter().fold(problem, Self::of_field)
    }
}
