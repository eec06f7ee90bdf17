//! Pages of other sites have no business here: a browser on this machine must not open a socket or change people on
//! behalf of a page that this server did not send.
//!
//! Two rules. `Host` must be a name of this machine, or one that the configuration allows for a proxy in front: a page
//! whose site's name was bent to this machine's address (DNS rebinding) is told by it. And `Origin`, which browsers send
//! and other clients do not, must be the site that the request was sent to.

use std::collections::BTreeSet;
use std::net::IpAddr;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{HOST, HeaderName, ORIGIN};
use actix_web::middleware::Next;
use actix_web::{Error, HttpRequest, web};

use super::problem::Problem;

/// Names by which this server may be called besides those of this machine, in lower case and without a port.
#[derive(Debug, Clone, Default)]
pub struct Hosts(BTreeSet<String>);

impl Hosts {
    /// From a list with commas.
    #[must_use]
    pub fn from_list(list: &str) -> Self {
        Self(list.split(',').map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty()).collect())
    }

    fn allow(&self, host: &str) -> bool {
        let name = without_port(host);
        let literal = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost")
            || literal.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            || self.0.contains(&name.to_ascii_lowercase())
    }
}

/// Refuses a request that was meant for another host, or made by a page of another site.
///
/// # Errors
/// Those of the handlers behind it.
pub async fn same_origin(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let allowed = request.app_data::<web::Data<Hosts>>().map(|hosts| hosts.get_ref().clone()).unwrap_or_default();
    let refused = match judge(request.request(), &allowed) {
        Ok(()) => return Ok(next.call(request).await?.map_into_boxed_body()),
        Err(refused) => refused,
    };
    Ok(request.into_response(refused.answer()))
}

fn judge(request: &HttpRequest, hosts: &Hosts) -> Result<(), Problem> {
    let text = |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text(HOST);
    if host.is_some_and(|host| !hosts.allow(host)) {
        let detail = "this server is not called by that name; call it by its address, or add the name to server.hosts";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "other_host", detail));
    }
    let site = text(ORIGIN).map(|origin| origin.split_once("://").map(|(_, site)| site));
    match site {
        Some(site) if site.is_none() || site != host => {
            let detail = "pages of other sites may not use this server";
            Err(Problem::new(StatusCode::FORBIDDEN, "other_origin", detail))
        }
        Some(_) | None => Ok(()),
    }
}

/// `127.0.0.1:8700` and `[::1]:8700` without their ports.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    fn answer(host: &str, origin: Option<&str>) -> bool {
        let request = TestRequest::default().insert_header((HOST, host));
        let request = origin.into_iter().fold(request, |request, origin| request.insert_header((ORIGIN, origin)));
        judge(&request.to_http_request(), &Hosts::from_list("rollcall.example, other")).is_ok()
    }

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
            assert_eq!(answer("127.0.0.1:8700", origin), expected, "{origin:?}");
        }
    }

    #[test]
    fn a_name_that_is_not_this_machines_is_refused_also_when_the_page_has_it_too() {
        for host in ["127.0.0.1", "127.0.0.1:8700", "localhost:80", "LocalHost", "[::1]:8700", "rollcall.example:443"] {
            assert!(answer(host, None), "{host}");
        }
        for host in ["evil.example:8700", "127.0.0.1.evil.example", "10.0.0.7:8700", "", "localhost.evil"] {
            assert!(!answer(host, Some(&format!("http://{host}"))), "{host}");
        }
    }
}
