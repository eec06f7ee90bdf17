//! `POST /v1/identify`: everybody, by distance to one clip. A ranking and no verdict: a verdict needs a conversation's
//! evidence, and the model's threshold and margin are in the answer for those who want to apply them.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use gpu_worker::Manifest;
use serde_json::{Value, json};

use super::problem::Problem;
use super::{Api, body};
use crate::audio::Speech;
use crate::people::{Ranked, voiceprint};

/// Below this the model gives noise, as for a live clip.
const SPEECH_SECONDS_MIN: f64 = 0.5;

pub(super) async fn identify(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let audio = body::audio(&api, &request, payload).await?;
    let speech = Speech::of(&audio);
    if speech.seconds < SPEECH_SECONDS_MIN {
        let detail = format!("the clip has {:.1} s of speech; it needs {SPEECH_SECONDS_MIN} s", speech.seconds);
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "too_little_speech", detail).of_field("body"));
    }
    let vector = voiceprint(&*api.engine, &audio).await?;
    let model = api.people.model();
    let people: Vec<Value> = api.people.rank(&vector).iter().map(|ranked| shown(ranked, model)).collect();
    Ok(HttpResponse::Ok().json(json!({
        "audio": {
            "seconds": audio.seconds(),
            "seconds_of_speech": speech.seconds,
            "sample_rate": audio.sample_rate,
            "quality": speech.quality,
        },
        "model": {
            "name": model.name,
            "fingerprint": model.fingerprint,
            "threshold": model.threshold,
            "margin": model.margin,
        },
        "people": people,
    })))
}

fn shown(ranked: &Ranked, model: &Manifest) -> Value {
    json!({
        "person_id": ranked.person_id,
        "person_name": ranked.person_name,
        "owner": ranked.is_owner,
        "distance": ranked.distance,
        "level": level(ranked.distance, model),
    })
}

/// 3 for near, 2, 1, and 0 for nobody.
fn level(distance: f64, model: &Manifest) -> usize {
    model.levels.iter().filter(|bound| distance < **bound).count()
}
