//! The HTTP interface: people and who a clip sounds like, conversations live and ended, health and metrics. Thin: it
//! checks what came, asks whoever knows, and writes the answer.
//!
//! Every error is a problem document (RFC 9457), including those that the web framework finds. A body is bounded in
//! bytes, in time and in how many are read at once. The WebSocket behind `/v1/listen` is [`crate::listen`]'s.

mod body;
mod conversations;
mod docs;
mod explain;
mod export;
mod identify;
mod labels;
mod openapi;
pub mod origin;
pub(crate) mod people;
pub mod problem;
mod samples;
pub(crate) mod status;
mod watch;

use std::sync::Arc;

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, Resource, Responder, Route, guard, web};
use gpu_worker::Engine;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::console;
use crate::history::truth::Names;
use crate::listen;
use crate::people::People;
use problem::Problem;

/// Bytes of a JSON body: an id and a name are far below.
const JSON_BYTES_MAX: usize = 16 << 10;

/// Audio bodies that are in memory at once, each at most `Limits::UPLOAD` and as much again when decoded.
const UPLOADS_MAX: usize = 4;

/// What the handlers need.
pub struct Api {
    people: People,
    engine: Arc<dyn Engine>,
    uploads: Semaphore,
    watchers: Arc<Semaphore>,
}

impl Api {
    /// The interface to `people`, with `engine` for new samples.
    #[must_use]
    pub fn new(people: People, engine: Arc<dyn Engine>) -> Self {
        Self { people, engine, uploads: Semaphore::new(UPLOADS_MAX), watchers: watch::places() }
    }

    /// Today's names.
    fn names(&self) -> Names {
        self.people.snapshot().iter().map(|person| (person.id.clone(), person.name.clone())).collect()
    }
}

/// Mounts the interface. The application must hold a `web::Data<Api>` and a `web::Data<Service>`; it also gets this module's answers to unknown
/// paths, wrong methods and malformed JSON.
pub fn configure(config: &mut web::ServiceConfig) {
    config
        .app_data(
            web::JsonConfig::default().limit(JSON_BYTES_MAX).error_handler(|error, _| Problem::from(error).into()),
        )
        .app_data(web::PathConfig::default().error_handler(|_, _| Problem::bad_path().into()))
        .app_data(web::QueryConfig::default().error_handler(|error, _| Problem::bad_query(&error).into()))
        .service(resource("/healthz", "GET, HEAD").route(read().to(healthz)))
        .configure(console::mount)
        .service(resource("/docs", "GET, HEAD").route(read().to(docs::page)))
        .service(resource("/openapi.json", "GET, HEAD").route(read().to(openapi::document)))
        .service(
            resource("/v1/people", "GET, HEAD, POST")
                .route(read().to(people::list))
                .route(web::post().to(people::create)),
        )
        .service(
            resource("/v1/people/{id}", "GET, HEAD, PATCH, DELETE")
                .route(read().to(people::show))
                .route(web::patch().to(people::change))
                .route(web::delete().to(people::delete)),
        )
        .service(resource("/v1/people/{id}/samples", "POST").route(web::post().to(samples::create)))
        .service(resource("/v1/identify", "POST").route(web::post().to(identify::identify)))
        .service(resource("/v1/listen", "GET").route(web::get().to(listen::listen)))
        .service(resource("/v1/conversations", "GET, HEAD").route(read().to(conversations::list)))
        .service(
            resource("/v1/conversations/{id}", "GET, HEAD, DELETE")
                .route(read().to(conversations::show))
                .route(web::delete().to(conversations::delete)),
        )
        .service(resource("/v1/conversations/{id}/export", "GET, HEAD").route(read().to(export::export)))
        .service(
            resource("/v1/conversations/{id}/labels", "GET, HEAD, POST")
                .route(read().to(labels::list))
                .route(web::post().to(labels::correct)),
        )
        .service(
            resource("/v1/conversations/{id}/voices/{speaker}/explain", "GET, HEAD").route(read().to(explain::explain)),
        )
        .service(resource("/v1/watch", "GET").route(web::get().to(watch::watch)))
        .service(resource("/readyz", "GET, HEAD").route(read().to(status::readyz)))
        .service(resource("/metrics", "GET, HEAD").route(read().to(status::metrics)))
        .default_service(web::to(no_such_path));
}

/// A route for reading: HEAD answers like GET, without the body.
pub(crate) fn read() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

/// A resource whose other methods get 405 with the ones that it has.
#[must_use]
pub fn resource(path: &str, methods: &'static str) -> Resource {
    web::resource(path).default_service(web::to(move |request: HttpRequest| async move {
        let mut answer = Problem::method_not_allowed(request.method(), methods).answer();
        answer.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static(methods));
        answer
    }))
}

async fn healthz() -> impl Responder {
    HttpResponse::Ok().json(json!({"status": "ok"}))
}

async fn no_such_path(request: HttpRequest) -> HttpResponse {
    Problem::no_such_path(request.path()).answer()
}

#[cfg(test)]
mod tests;
