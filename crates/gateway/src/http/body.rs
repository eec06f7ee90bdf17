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

/// What `curl -F` and a browser's form send.
const FORM: &[u8] = b"multipart/form-data";

pub(super) async fn audio(api: &Api, request: &HttpRequest, body: web::Payload) -> Result<Audio, Problem> {
    refuse_form(request)?;
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

/// A form wraps the file in an envelope of its own, which is no audio. Every other type is taken, because the bytes
/// themselves say what they are.
fn refuse_form(request: &HttpRequest) -> Result<(), Problem> {
    let kind = request.headers().get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let is_form = kind.get(..FORM.len()).is_some_and(|start| start.eq_ignore_ascii_case(FORM));
    if !is_form {
        return Ok(());
    }
    let detail = "a form is not taken; send the file itself as the body: curl --data-binary @clip.wav URL";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "form_not_supported", detail).of_field("body"))
}

/// A client that says how much it will send is refused before it does.
fn refuse_declared_length(request: &HttpRequest) -> Result<(), Problem> {
    let declared: Option<u64> =
        request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    match declared {
        Some(length) if length > Limits::UPLOAD.bytes_max as u64 => Err(too_large()),
        Some(_) | None => Ok(()),
    }
}

async fn receive(mut body: web::Payload) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, "bad_body", format!("the body could not be received: {error}"))
        })?;
        if bytes.len() + chunk.len() > Limits::UPLOAD.bytes_max {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Reading stops at the limit, so nobody knows here how large the whole is.
fn too_large() -> Problem {
    let most = Limits::UPLOAD.bytes_max;
    let detail = format!(
        "the body has more than {most} bytes, the most that are taken; cut it, or compress it with FLAC or Opus"
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "audio_too_long", detail).of_field("body")
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError as _;
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_form_is_refused_with_the_command_that_works_and_every_other_type_is_taken() {
        let refusal = |kind: &str| {
            refuse_form(&TestRequest::post().insert_header((header::CONTENT_TYPE, kind)).to_http_request())
        };
        for kind in ["multipart/form-data; boundary=x", "Multipart/Form-Data"] {
            let problem = refusal(kind).unwrap_err();
            assert_eq!(problem.status_code(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
            assert!(problem.to_string().contains("curl --data-binary @clip.wav URL"), "{problem}");
        }
        for kind in ["audio/wav", "application/x-www-form-urlencoded", "application/octet-stream", "nonsense", ""] {
            assert_eq!(refusal(kind), Ok(()), "{kind}");
        }
        assert_eq!(refuse_form(&TestRequest::post().to_http_request()), Ok(()));
    }

    #[test]
    fn a_body_that_is_too_large_is_told_the_limit_and_no_guess_at_its_size() {
        assert!(too_large().to_string().contains("more than 67108864 bytes"), "{}", too_large());
    }
}
