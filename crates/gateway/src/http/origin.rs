//! Pages of other sites have no business here: a browser on this machine must not open a socket or change people on
//! behalf of a page that this server did not send.
//!
//! A browser names the page's site in `Origin`; other clients send none and are not concerned.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{HOST, ORIGIN};
use actix_web::middleware::Next;
use actix_web::{Error, HttpRequest};

use super::problem::Problem;

/// Refuses a request whose `Origin` is another site than the one it was sent to.
///
/// # Errors
/// Those of the handlers behind it.
pub async fn same_origin(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if is_same(request.request()) {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let refused = Problem::new(StatusCode::FORBIDDEN, "other_origin", "pages of other sites may not use this server");
    Ok(request.into_response(refused.answer()))
}

fn is_same(request: &HttpRequest) -> bool {
    let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let Some(origin) = text(ORIGIN) else { return true };
    let site = origin.split_once("://").map(|(_, site)| site);
    site.is_some() && site == text(HOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn only_pages_of_this_server_may_use_it() {
        for (origin, expected) in [
            (None, true),
            (Some("http://127.0.0.1:8700"), true),
            (Some("http://127.0.0.1:8701"), false),
            (Some("https://evil.example"), false),
            (Some("null"), false),
            (Some(""), false),
        ] {
            let request = TestRequest::default().insert_header((HOST, "127.0.0.1:8700"));
            let request = origin.into_iter().fold(request, |request, origin| request.insert_header((ORIGIN, origin)));
            assert_eq!(is_same(&request.to_http_request()), expected, "{origin:?}");
        }
    }
}
