//! The exporters' HTTP client: one blocking request at a time, without TLS, on the exporting thread.

use std::future::{Future, ready};
use std::pin::Pin;
use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use ureq::Agent;

use super::Target;

/// A collector answers with a few bytes; what is longer is not an answer to an export.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Why a request was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotSent {
    /// It may be taken later.
    #[error("{0}")]
    Later(String),
    /// It never will be.
    #[error("{0}")]
    Refused(String),
}

/// A client whose requests take at most its patience.
#[derive(Debug)]
pub(super) struct Client(Agent);

impl Client {
    pub(super) fn new(patience: Duration) -> Self {
        // Straight to the collector that is named, which is on this machine: what a proxy does not know, nor need to see.
        let config = Agent::config_builder().timeout_global(Some(patience)).http_status_as_error(false).proxy(None);
        Self(config.build().into())
    }

    /// Posts one protobuf message and reads its answer.
    pub(super) fn post(&self, target: &Target, body: Vec<u8>) -> Result<Vec<u8>, NotSent> {
        let later = |error: ureq::Error| NotSent::Later(error.to_string());
        let post = self.0.post(&target.url).header("Content-Type", "application/x-protobuf");
        let post = target.headers.iter().fold(post, |post, (name, value)| post.header(name, value));
        let mut answer = post.send(&body[..]).map_err(later)?;
        let status = answer.status();
        // What the specification calls retryable; with every other status the same request would fail again.
        if [429, 502, 503, 504].contains(&status.as_u16()) {
            return Err(NotSent::Later(format!("it answers {status}")));
        }
        if !status.is_success() {
            return Err(NotSent::Refused(format!("it answers {status}")));
        }
        // It has the request. One whose answer cannot be read is not sent again.
        Ok(answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec().unwrap_or_default())
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let answer = self.0.run(Request::from_parts(head, body.to_vec()))?;
        let (head, mut body) = answer.into_parts();
        let body = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        Ok(Response::from_parts(head, body.into()))
    }
}

impl HttpClient for Client {
    // The request runs here and not in the future: the thread has nothing else to do, and no runtime to do it on.
    fn send_bytes<'client, 'future>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'future>>
    where
        'client: 'future,
    {
        Box::pin(ready(self.send(request)))
    }
}
