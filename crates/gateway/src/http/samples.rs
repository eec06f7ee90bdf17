//! `POST /v1/people/{id}/samples`: one audio file becomes a sample, or the answer says why not.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::Value;

use super::problem::Problem;
use super::{Api, body};
use crate::people::{Enrolment, Force, SampleReport, check_id};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {
    /// Take a sample that does not sound like the earlier ones.
    #[serde(default)]
    force: bool,
}

pub(super) async fn create(
    api: web::Data<Api>,
    id: web::Path<String>,
    options: web::Query<Options>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    check_id(&id)?;
    if api.people.find(&id).is_none() {
        return Err(Problem::no_such_person(&id));
    }
    let audio = body::audio(&api, &request, payload).await?;
    let force = if options.force { Force::Yes } else { Force::No };
    let enrolment = Enrolment { person: id.into_inner(), force, ..Enrolment::default() };
    answer(api.people.enrol(&*api.engine, enrolment, &audio).await?)
}

/// A refused sample is an error, with the whole report beside the reason.
fn answer(report: SampleReport) -> Result<HttpResponse, Problem> {
    if report.accepted {
        return Ok(HttpResponse::Created().json(report));
    }
    let reason = report.reason.clone().unwrap_or_default();
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "sample_refused", reason).of_field("body");
    match serde_json::to_value(report) {
        Ok(Value::Object(members)) => Err(problem.with(members)),
        Ok(_) | Err(_) => Err(problem),
    }
}
