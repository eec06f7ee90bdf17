//! How the service is: `/readyz` for load balancers, `/metrics` for Prometheus.

use actix_web::http::StatusCode;
use actix_web::http::header::ACCEPT;
use actix_web::{HttpRequest, HttpResponse, web};
use gpu_worker::Health;
use serde_json::json;

use super::problem::Problem;
use crate::engine::told;
use crate::live::Service;

/// Why the service is not ready, when it is not: no worker can extract, or it takes no new sockets.
pub(crate) fn trouble(service: &Service, health: &Health) -> Option<String> {
    if service.registry.is_draining() {
        Some("draining: this server is about to stop".to_owned())
    } else if service.registry.has_broken_books() {
        Some("the books of a lane do not balance: restart this server, and report this".to_owned())
    } else if !health.is_ready() {
        Some(health.trouble.clone().unwrap_or_else(|| "no worker can extract".to_owned()))
    } else {
        None
    }
}

/// 200 while a worker can extract and the service takes new sockets; 503 with the reason otherwise.
pub(super) async fn readyz(service: web::Data<Service>) -> HttpResponse {
    let health = service.engine.health();
    match trouble(&service, &health) {
        Some(trouble) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", trouble).answer(),
        None => HttpResponse::Ok().json(json!({
            "status": "ready",
            "model": service.engine.manifest().name,
            "engine": told::json(&*service.engine),
            "workers": {"up": health.workers_up, "configured": health.workers, "restarts": health.restarts},
        })),
    }
}

/// The metrics, in the format that the scraper asks for.
pub(super) async fn metrics(request: HttpRequest, service: web::Data<Service>) -> HttpResponse {
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let (content_type, body) = service.telemetry.encode(accept);
    HttpResponse::Ok().content_type(content_type).body(body)
}
