//! `/v1/people` and `/v1/people/{id}`: who is enrolled. Never a vector.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Api;
use super::conversations::to_its_end;
use super::problem::Problem;
use crate::live::Service;
use crate::people::{PersonRecord, check_id, check_name, path_segment};
use crate::store::PersonChange;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPerson {
    id: String,
    name: Option<String>,
    owner: Option<bool>,
    is_pinned: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    name: Option<String>,
    owner: Option<bool>,
    is_pinned: Option<bool>,
}

pub(super) async fn list(api: web::Data<Api>) -> HttpResponse {
    let model = api.people.model();
    let people: Vec<Value> = api.people.snapshot().iter().map(|person| shown(person, &model.name)).collect();
    HttpResponse::Ok().json(json!({
        "people": people,
        "model": {"name": model.name, "fingerprint": model.fingerprint},
    }))
}

pub(super) async fn create(api: web::Data<Api>, body: web::Json<NewPerson>) -> Result<HttpResponse, Problem> {
    let NewPerson { id, name, owner, is_pinned } = body.into_inner();
    check_id(&id)?;
    let change = checked(PersonChange { name, is_owner: owner, is_pinned })?;
    let person = api.people.create(&id, change).await?;
    Ok(HttpResponse::Created()
        .insert_header((header::LOCATION, format!("/v1/people/{}", path_segment(&id))))
        .json(shown(&person, &api.people.model().name)))
}

pub(super) async fn show(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    check_id(&id)?;
    let person = api.people.find(&id).ok_or_else(|| Problem::no_such_person(&id))?;
    Ok(HttpResponse::Ok().json(shown(&person, &api.people.model().name)))
}

pub(super) async fn change(
    api: web::Data<Api>,
    id: web::Path<String>,
    body: web::Json<Change>,
) -> Result<HttpResponse, Problem> {
    check_id(&id)?;
    let Change { name, owner, is_pinned } = body.into_inner();
    let change = checked(PersonChange { name, is_owner: owner, is_pinned })?;
    if change == PersonChange::default() {
        let detail = "the body changes nothing; give name, owner or is_pinned";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "nothing_to_change", detail));
    }
    let person = api.people.update(&id, change).await?;
    Ok(HttpResponse::Ok().json(shown(&person, &api.people.model().name)))
}

/// From the store, the matching, and what waits for the history.
pub(super) async fn delete(
    api: web::Data<Api>,
    service: web::Data<Service>,
    id: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    check_id(&id)?;
    let (people, history, id) = (api.people.clone(), service.history.clone(), id.into_inner());
    let deleting = async move {
        let deleted = people.delete(&id).await;
        if people.find(&id).is_none() {
            history.forget_person(&id).await;
        }
        deleted
    };
    to_its_end(deleting).await??;
    Ok(HttpResponse::NoContent().finish())
}

fn checked(change: PersonChange) -> Result<PersonChange, Problem> {
    if let Some(name) = &change.name {
        check_name(name)?;
    }
    Ok(change)
}

/// A person as every client sees one. Times are seconds since 1970; `model` is the name of the model in use.
pub(crate) fn shown(person: &PersonRecord, model: &str) -> Value {
    let mut value = json!({
        "id": person.id,
        "name": person.name,
        "owner": person.is_owner,
        "is_pinned": person.is_pinned,
        "enrolled": person.print.is_some(),
        "samples": person.samples,
        "seconds_of_speech": person.seconds,
        "created_at": seconds(person.created_ms),
        "updated_at": seconds(person.updated_ms),
    });
    if person.needs_enrolment()
        && let Some(members) = value.as_object_mut()
    {
        members.insert("note".to_owned(), format!("needs re-enrolment for model {model}").into());
    }
    value
}

fn seconds(milliseconds: i64) -> f64 {
    // Milliseconds since 1970 stay exact in an f64 for longer than anyone enrols.
    milliseconds as f64 / 1000.0
}
