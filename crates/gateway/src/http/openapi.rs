//! `/openapi.json`: the interface for programs, written by hand beside the handlers; a test holds the two together.

use actix_web::HttpResponse;

/// The document as it stands in the repository.
pub(super) const DOCUMENT: &str = include_str!("openapi.json");

pub(super) async fn document() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(DOCUMENT)
}
