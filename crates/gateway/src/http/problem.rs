//! Problem documents (RFC 9457): what an HTTP client is told when something is wrong.
//!
//! `code` is stable and for programs, `detail` is for people and names the mend, `field` names the part of the request.
//! What failed inside is logged, and the client is told only that it did.

use std::fmt;

use actix_web::error::{JsonPayloadError, QueryPayloadError};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpResponse, ResponseError};
use gpu_worker::Failure;
use serde_json::{Map, Value, json};

use crate::audio::AudioError;
use crate::people::{BadName, PeopleError};
use crate::store::StoreError;

/// One problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    field: Option<&'static str>,
    more: Map<String, Value>,
}

impl Problem {
    /// A problem of a stable `code`, told in `detail`.
    #[must_use]
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), field: None, more: Map::new() }
    }

    /// Names the part of the request that is wrong.
    #[must_use]
    pub fn of_field(self, field: &'static str) -> Self {
        Self { field: Some(field), ..self }
    }

    /// Adds members beside the standard ones, which they cannot replace.
    #[must_use]
    pub fn with(self, more: Map<String, Value>) -> Self {
        Self { more, ..self }
    }

    /// As the answer to a request.
    #[must_use]
    pub fn answer(&self) -> HttpResponse {
        let mut members = self.more.clone();
        let standard = json!({
            "type": format!("urn:rollcall:problem:{}", self.code),
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Value::Object(standard) = standard {
            members.extend(standard);
        }
        if let Some(field) = self.field {
            members.insert("field".to_owned(), field.into());
        }
        HttpResponse::build(self.status)
            .content_type("application/problem+json")
            .body(Value::Object(members).to_string())
    }

    pub(super) fn no_such_path(path: &str) -> Self {
        let shown: String = path.chars().take(100).collect();
        Self::new(
            StatusCode::NOT_FOUND,
            "no_such_path",
            format!("there is nothing at {shown}; /openapi.json lists what there is"),
        )
    }

    pub(super) fn method_not_allowed(method: &Method, allowed: &str) -> Self {
        let detail = format!("{method} is not possible here; it can be {allowed}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
    }

    pub(super) fn bad_path() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_path", "the path is not valid UTF-8 once decoded").of_field("id")
    }

    pub(super) fn bad_query(error: &QueryPayloadError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_query", format!("the query string cannot be read: {error}"))
    }

    pub(super) fn no_such_person(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "no_such_person", format!("there is no person {id:?}")).of_field("id")
    }

    fn failed(code: &'static str, detail: &str, cause: &dyn fmt::Display) -> Self {
        tracing::error!(%cause, code, "a request failed");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        self.answer()
    }
}

impl From<JsonPayloadError> for Problem {
    fn from(error: JsonPayloadError) -> Self {
        if let JsonPayloadError::Deserialize(reason) = &error {
            return Self::new(StatusCode::BAD_REQUEST, "bad_json", format!("the body cannot be read: {reason}"));
        }
        if matches!(error, JsonPayloadError::ContentType) {
            let detail = "the body must be JSON, with Content-Type: application/json";
            return Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail);
        }
        if error.status_code() == StatusCode::PAYLOAD_TOO_LARGE {
            return Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", error.to_string());
        }
        Self::new(StatusCode::BAD_REQUEST, "bad_body", format!("the body could not be received: {error}"))
    }
}

impl From<BadName> for Problem {
    fn from(error: BadName) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_name", error.to_string()).of_field(error.field)
    }
}

impl From<AudioError> for Problem {
    fn from(error: AudioError) -> Self {
        let (status, code) = match error {
            AudioError::TooLarge { .. } | AudioError::TooLong { .. } => {
                (StatusCode::PAYLOAD_TOO_LARGE, "audio_too_long")
            }
            AudioError::UnknownFormat | AudioError::Unsupported(_) => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "audio_not_supported")
            }
            AudioError::Empty
            | AudioError::SampleRate(_)
            | AudioError::Channels(_)
            | AudioError::NotFinite
            | AudioError::Incomplete { .. }
            | AudioError::Damaged(_) => (StatusCode::UNPROCESSABLE_ENTITY, "bad_audio"),
        };
        Self::new(status, code, error.to_string()).of_field("body")
    }
}

impl From<PeopleError> for Problem {
    fn from(error: PeopleError) -> Self {
        match error {
            PeopleError::Store(error) => error.into(),
            PeopleError::Extraction(failure) => failure.into(),
            PeopleError::Interrupted => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", error.to_string())
            }
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let detail = error.to_string();
        match error {
            StoreError::NoSuchPerson(id) => Self::no_such_person(&id),
            StoreError::PersonExists(_) => Self::new(StatusCode::CONFLICT, "person_exists", detail).of_field("id"),
            StoreError::OwnerExists(_) => Self::new(StatusCode::CONFLICT, "owner_exists", detail).of_field("owner"),
            StoreError::Full(_) => Self::new(StatusCode::CONFLICT, "store_full", detail),
            StoreError::ReceiptChanged => Self::new(StatusCode::CONFLICT, "receipt_changed", detail),
            StoreError::TracesRemain(cause) => {
                Self::failed("traces_remain", "the person was deleted, but traces remain on disk; delete again", &cause)
            }
            StoreError::InUse(_)
            | StoreError::Newer { .. }
            | StoreError::Damaged { .. }
            | StoreError::Directory { .. }
            | StoreError::Database(_) => {
                Self::failed("store_failed", "the store failed and nothing was changed; try again", &detail)
            }
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Encoding(reason) => {
                let detail = format!("the model cannot take this clip: {reason}");
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_audio", detail).of_field("body")
            }
            Failure::QueueFull | Failure::Unavailable | Failure::DeadlinePassed => {
                Self::failed("model_busy", "no worker was free in time; try again later", &failure)
            }
            Failure::Extraction(_)
            | Failure::BadVector(_)
            | Failure::WorkerPanicked
            | Failure::WorkerLost
            | Failure::Cancelled => Self::failed("extraction_failed", "the model failed on this clip", &failure),
        }
    }
}
