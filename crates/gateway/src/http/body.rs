//! An audio body, read whole, and decoded off the web worker's thread.
//!
//! Bounds: bytes and seconds of one body, bodies in memory at once, and how long a client may take to send.

use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, web};
use futures_util::StreamExt as _;
use tokio::time::timeout;

use super::Api;
use super::problem::Problem;
use crate::audio::{Audio, AudioError, Limits, decode};

/// For 64 MiB this is 1 MiB a second; a clip of ten seconds passes over any line.
const RECEIVE_MAX: Duration = Duration::from_secs(60);

/// How long a request waits for its turn to send. It is then told to come back.
const TURN_MAX: Duration = Duration::from_secs(10);

pub(super) async fn audio(api: &Api, request: &HttpRequest, body: web::Payload) -> Result<Audio, Problem> {
    refuse_declared_length(request)?;
    let _turn = timeout(TURN_MAX, api.uploads.acquire()).await.map_err(|_| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "uploads_busy", "too many uploads are under way; try again")
    })?;
    let bytes = timeout(RECEIVE_MAX, receive(body)).await.map_err(|_| {
        let detail = format!("the body did not arrive within {} s", RECEIVE_MAX.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail)
    })??;
    let audio = tokio::task::spawn_blocking(move || decode(bytes, Limits::UPLOAD)).await;
    Ok(audio.unwrap_or_else(|_| Err(AudioError::Damaged("the decoder gave up on it".to_owned())))?)
}

/// A client that says how much it will send is refused before it does.
fn refuse_declared_length(request: &HttpRequest) -> Result<(), Problem> {
    let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    match declared {
        Some(length) if length > Limits::UPLOAD.bytes_max => Err(too_large(length)),
        Some(_) | None => Ok(()),
    }
}

async fn receive(mut body: web::Payload) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, "bad_body", format!("the body could not be received: {error}"))
        })?;
        let total = bytes.len() + chunk.len();
        if total > Limits::UPLOAD.bytes_max {
            return Err(too_large(total));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn too_large(found: usize) -> Problem {
    AudioError::TooLarge { found, most: Limits::UPLOAD.bytes_max }.into()
}
