//! One exchange with an endpoint, over before its deadline and never begun twice.
//!
//! Every request carries the milliseconds that are left of its deadline, and every step of it (connecting, sending,
//! waiting, reading) ends with that deadline whatever the server does. Redirects are not followed, proxies are not asked
//! and cookies are not kept: a clip goes to the address that was configured and nowhere else.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ureq::http::Response;
use ureq::{Agent, Body, Timeout};

use super::fault::Fault;
use super::line::Line;

/// Milliseconds that are left of the caller's deadline. A server that begins later need not begin at all.
pub const DEADLINE_HEADER: &str = "Rollcall-Deadline-Ms";
/// An answer of 4096 values as text takes about 100 kB; what is longer than this is none.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;
/// Connections that idle for longer are not used again: common servers close theirs after 5 s, and a query that is sent
/// into a closing connection is lost.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// No connection came about.
const UNREACHABLE: [ErrorKind; 5] = [
    ErrorKind::ConnectionRefused,
    ErrorKind::HostUnreachable,
    ErrorKind::NetworkUnreachable,
    ErrorKind::NetworkDown,
    ErrorKind::AddrNotAvailable,
];

/// Where an endpoint is found at the moment.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) socket: SocketAddr,
    /// Host and port as they were configured, for the `Host` header.
    pub(super) authority: String,
}

/// What is sent.
pub(super) struct Request<'a> {
    pub(super) path: &'a str,
    pub(super) headers: &'a [(&'static str, &'a str)],
    /// None asks with `GET`.
    pub(super) body: Option<&'a [u8]>,
}

/// What came back, with a status of success.
pub(super) struct Answer {
    /// The value of `Inference-Header-Content-Length`.
    pub(super) head_bytes: Option<usize>,
    pub(super) body: Vec<u8>,
}

/// A client with connections of its own, one for each endpoint.
#[derive(Clone)]
pub(super) struct Client {
    line: Arc<Line>,
    connect: Duration,
}

impl Client {
    pub(super) fn new(connect: Duration) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_age(IDLE_MAX)
            .max_idle_connections_per_host(1)
            .proxy(None)
            .user_agent("rollcall");
        Self { line: Arc::new(Line::new(config.build())), connect }
    }

    /// Its connections.
    pub(super) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// Sends one request and reads its answer. Nothing is sent when the deadline has passed.
    pub(super) fn exchange(&self, place: &Place, request: &Request<'_>, by: Instant) -> Result<Answer, Fault> {
        let left = by.saturating_duration_since(Instant::now());
        // The header counts whole milliseconds, and none left is too late.
        if left.as_millis() == 0 {
            return Err(Fault::Late);
        }
        let agent = self.line.agent().ok_or(Fault::GivenUp)?;
        let sent = self.send(&agent, place, request, left);
        let (head, mut body) = sent.map_err(|error| self.fault_of(&error, left))?.into_parts();
        if !head.status.is_success() {
            return Err(refusal(head.status.as_u16()));
        }
        let head_bytes = match head.headers.get("Inference-Header-Content-Length") {
            None => None,
            Some(value) => {
                let number = value.to_str().ok().and_then(|text| text.parse().ok());
                Some(number.ok_or(Fault::NotAnAnswer("its Inference-Header-Content-Length is no number"))?)
            }
        };
        let read = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        Ok(Answer { head_bytes, body: read.map_err(|error| self.fault_of(&error, left))? })
    }

    fn fault_of(&self, error: &ureq::Error, left: Duration) -> Fault {
        let connecting = matches!(error, ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve));
        // With less time than connecting may take, a connection that did not come about says nothing.
        if connecting && left >= self.connect { Fault::Unreachable } else { fault_of(error) }
    }

    fn send(
        &self,
        agent: &Agent,
        place: &Place,
        request: &Request<'_>,
        left: Duration,
    ) -> Result<Response<Body>, ureq::Error> {
        // The address is a number, so no look-up can hang here; its name goes into the header.
        let url = format!("http://{}{}", place.socket, request.path);
        let deadline = left.as_millis().to_string();
        let common = [("Host", place.authority.as_str()), (DEADLINE_HEADER, deadline.as_str())];
        let headers = common.iter().chain(request.headers);
        let connect = Some(self.connect.min(left));
        match request.body {
            Some(body) => {
                let post = agent.post(url).config().timeout_global(Some(left)).timeout_connect(connect).build();
                headers.fold(post, |post, (name, value)| post.header(*name, *value)).send(body)
            }
            None => {
                let get = agent.get(url).config().timeout_global(Some(left)).timeout_connect(connect).build();
                headers.fold(get, |get, (name, value)| get.header(*name, *value)).call()
            }
        }
    }
}

/// A clip that a server cannot use is its own fault; with every other status the server is of no use.
fn refusal(status: u16) -> Fault {
    match status {
        400 | 413 | 415 | 422 => Fault::Refused(status),
        _ => Fault::Status(status),
    }
}

fn fault_of(error: &ureq::Error) -> Fault {
    if let ureq::Error::Timeout(_) = error {
        return Fault::Stalled;
    }
    if let ureq::Error::BodyExceedsLimit(_) = error {
        return Fault::TooLarge;
    }
    if let ureq::Error::Protocol(_) | ureq::Error::Http(_) = error {
        return Fault::NotAnAnswer("it is not HTTP");
    }
    if let ureq::Error::Io(error) = error {
        return match error.kind() {
            kind if UNREACHABLE.contains(&kind) => Fault::Unreachable,
            kind if [ErrorKind::TimedOut, ErrorKind::WouldBlock].contains(&kind) => Fault::Stalled,
            _ => Fault::Broken,
        };
    }
    Fault::Broken
}
