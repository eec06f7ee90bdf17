//! Live conversations, to look at: `/v1/conversations` and `/v1/conversations/{id}`.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use serde_json::json;

use super::problem::Problem;
use crate::live::{ConversationKey, Service, Snapshot};
use crate::store::LOCAL_ACCOUNT;

/// The ids of all live conversations.
pub(super) async fn list(service: web::Data<Service>) -> HttpResponse {
    HttpResponse::Ok().json(json!({"conversations": service.registry.conversations_of(LOCAL_ACCOUNT)}))
}

/// Voices, verdicts, queue and budgets of one.
pub(super) async fn show(id: web::Path<String>, service: web::Data<Service>) -> HttpResponse {
    let key = ConversationKey { account: LOCAL_ACCOUNT.to_owned(), conversation: id.into_inner() };
    let snapshot = match service.registry.find(&key) {
        Some(conversation) => conversation.send(Snapshot).await.ok(),
        None => None,
    };
    match snapshot {
        Some(snapshot) => HttpResponse::Ok().json(snapshot),
        None => {
            Problem::new(StatusCode::NOT_FOUND, "no_such_conversation", "no live conversation has this id").answer()
        }
    }
}
