//! Voiceprints computed on another machine, behind the same seam as those computed here.
//!
//! A [`RemoteFactory`] builds the extractors of a [`crate::Pool`], as `OnnxFactory` does; a worker is then a thread that
//! holds connections, and the number of workers is the number of queries that are under way at once:
//!
//! ```no_run
//! # use gpu_worker::{Clip, Failure, Manifest, Pool, Settings, remote::{Config, Protocol, RemoteFactory}};
//! # fn voiceprint(clip: Clip, manifest: Manifest) -> Result<(), Box<dyn std::error::Error>> {
//! let endpoints = vec!["http://10.0.0.7:8000".to_owned(), "http://10.0.0.8:8000".to_owned()];
//! let config = Config { model: Some("speaker".to_owned()), ..Config::new(Protocol::OpenInference, endpoints) };
//! let factory = RemoteFactory::start(&config, &manifest)?;
//! let pool = Pool::start(Settings::default(), manifest, factory)?;
//! let voiceprint = pool.extract_blocking(clip)?;
//! # Ok(()) }
//! ```
//!
//! - **A query is sent once.** What fails has failed: asking again would spend a second query where the caller reserved
//!   one. A query that finds no endpoint in service is answered at once, and the pool is not ready until one is.
//! - **Every request has a deadline**, the run's or the caller's, whichever is first. It travels along in milliseconds
//!   ([`DEADLINE_HEADER`], and Triton's `timeout` parameter), and the exchange ends with it whatever the server does. What
//!   is too late is not sent.
//! - **A caller who leaves ends its exchange**: the socket is shut down at once, the worker goes on with the next query
//!   over a new one, and the server is not judged by it. A connection that is just being made ends when it is there.
//! - **Endpoints are chosen by health**, see [`circuit`]. A keeper thread for each probes what is out of service with a
//!   clip of its own, and asks what is in service whether it is still ready.
//! - **All endpoints run one model.** The first probe's voiceprint is kept, and an endpoint that makes another one of the
//!   same clip stays out of service.
//!
//! ```text
//! worker ──▶ RemoteExtractor ──go──▶ Fleet (who stands how: circuit) ◀──probed, checked── keeper, one an endpoint
//!                │                                                                          │
//!                └──────▶ Asker (open_inference, embedding) ──▶ Client (http) ◀─────────────┘
//! ```
//! There is no TLS, which is a tunnel's or a sidecar's work; proxies of the environment are not asked.

mod address;
mod asker;
pub mod circuit;
mod config;
mod embedding;
mod fault;
mod fleet;
pub mod hostile;
mod http;
mod keeper;
mod line;
mod open_inference;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::course::{Course, Request};
use crate::engine::Clip;
use crate::extractor::{BuildError, ExtractError, Extractor, Factory, Stopper};
use crate::manifest::Manifest;

use asker::{Asker, Reach};
use config::Plan;
use fleet::Fleet;
use http::Client;
use keeper::Patience;

pub use config::{Config, ConfigError, Protocol};
pub use fault::Fault;
pub use fleet::EndpointHealth;
pub use http::DEADLINE_HEADER;

/// An exchange ends so much before its run's deadline, or a tenth of the time that is left if that is less: a thread that
/// comes back in time is kept, one that does not is replaced.
const SLACK_MAX: Duration = Duration::from_millis(250);

/// Why remote extraction cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A thread cannot be started.
    #[error("the threads that look after the extraction servers cannot be started: {0}")]
    Threads(#[from] std::io::Error),
}

/// Builds an extractor for each worker of a pool, and looks after the endpoints. Clones are handles to the same service;
/// it ends with the last of them, or when its pool shuts down.
#[derive(Clone)]
pub struct RemoteFactory {
    service: Arc<Service>,
}

struct Service {
    plan: Plan,
    manifest: Manifest,
    fleet: Arc<Fleet>,
    /// The keepers' clients.
    clients: Vec<Client>,
}

impl RemoteFactory {
    /// Starts to look after the endpoints. Returns at once; the pool becomes ready when the first is in service.
    ///
    /// # Errors
    /// When a setting cannot be used, or a thread cannot be started. A server that cannot be reached is no error.
    pub fn start(config: &Config, manifest: &Manifest) -> Result<Self, StartError> {
        let plan = config.plan()?;
        let fleet = Arc::new(Fleet::new(plan.addresses.clone(), plan.circuit, plan.check_every));
        let patience = Patience { connect: plan.connect, answer: plan.timeout };
        let mut service = Service { plan, manifest: manifest.clone(), fleet, clients: Vec::new() };
        for index in 0..service.fleet.addresses().len() {
            let asker = Asker::new(&service.plan, manifest);
            service.clients.push(asker.client());
            keeper::start(&service.fleet, index, asker, patience)?;
        }
        Ok(Self { service: Arc::new(service) })
    }

    /// How each endpoint stands.
    #[must_use]
    pub fn endpoints(&self) -> Vec<EndpointHealth> {
        self.service.fleet.health()
    }
}

impl Service {
    fn close(&self) {
        self.fleet.close();
        self.clients.iter().for_each(|client| client.line().close());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.close();
    }
}

impl Factory for RemoteFactory {
    fn build(&self) -> Result<Box<dyn Extractor>, BuildError> {
        let Service { plan, manifest, fleet, .. } = &*self.service;
        let asker = Asker::new(plan, manifest);
        let client = asker.client();
        Ok(Box::new(RemoteExtractor { fleet: Arc::clone(fleet), asker, client, timeout: plan.timeout }))
    }

    fn trouble(&self) -> Option<String> {
        self.service.fleet.trouble()
    }

    fn provider(&self) -> &'static str {
        "remote"
    }

    fn endpoints(&self) -> Vec<EndpointHealth> {
        RemoteFactory::endpoints(self)
    }

    fn close(&self) {
        self.service.close();
    }
}

/// One worker's connections to the endpoints.
struct RemoteExtractor {
    fleet: Arc<Fleet>,
    asker: Asker,
    /// The asker's.
    client: Client,
    timeout: Duration,
}

impl RemoteExtractor {
    fn ask(&mut self, clip: &Clip, by: Instant, course: Option<&Course>) -> Result<Vec<f32>, Fault> {
        let left = by.saturating_duration_since(Instant::now());
        let given = left.saturating_sub(SLACK_MAX.min(left / 10)).min(self.timeout);
        if given.as_millis() == 0 {
            return Err(Fault::Late);
        }
        if self.client.line().agent().is_none() {
            return Err(Fault::GivenUp);
        }
        let going = self.fleet.go().ok_or(Fault::NoEndpoint)?;
        let sent = Instant::now();
        let traceparent = course.and_then(Course::traceparent);
        let asked = self.asker.ask(&going.reach, (clip, traceparent.as_deref()), sent + given);
        let asked = asked.map_err(|fault| {
            // Whatever a socket that was shut down looks like, half an answer included.
            let given_up = self.client.line().agent().is_none();
            // A server that had less than half of its time is not judged by it.
            let had_little = fault == Fault::Stalled && given < self.timeout / 2;
            if given_up {
                Fault::GivenUp
            } else if had_little {
                Fault::OutOfTime
            } else {
                fault
            }
        });
        if let Some(course) = course {
            course.note_request(request(&going.reach, sent, asked.as_ref().err()));
        }
        going.ended(asked.as_ref().map(drop).map_err(|fault| *fault));
        asked
    }
}

/// What is noted of a request that has just ended.
fn request(reach: &Reach, sent: Instant, fault: Option<&Fault>) -> Request {
    let status = match fault {
        Some(Fault::Status(status) | Fault::Refused(status)) => Some(*status),
        Some(_) | None => None,
    };
    Request {
        server: reach.place.authority.clone(),
        sent,
        over: Instant::now(),
        fault: fault.map(|fault| fault.kind()),
        status,
    }
}

impl Extractor for RemoteExtractor {
    fn extract(&mut self, clip: &Clip) -> Result<Vec<f32>, ExtractError> {
        self.extract_by(clip, Instant::now() + self.timeout + SLACK_MAX)
    }

    fn extract_by(&mut self, clip: &Clip, by: Instant) -> Result<Vec<f32>, ExtractError> {
        self.asker.prepare(clip)?;
        self.ask(clip, by, None).map_err(ExtractError::Remote)
    }

    fn extract_noted(&mut self, clip: &Clip, by: Instant, course: &Course) -> Result<Vec<f32>, ExtractError> {
        self.asker.prepare(clip)?;
        self.ask(clip, by, Some(course)).map_err(ExtractError::Remote)
    }

    fn stopper(&self) -> Option<Stopper> {
        let line = Arc::clone(self.client.line());
        Some(Arc::new(move || line.close()))
    }

    /// Shuts the sockets down, which the server sees as the caller's leaving. The next query makes new ones.
    fn interrupter(&self) -> Option<Stopper> {
        let line = Arc::clone(self.client.line());
        Some(Arc::new(move || line.cut()))
    }

    fn resume(&mut self) {
        self.client.line().mend();
    }
}
