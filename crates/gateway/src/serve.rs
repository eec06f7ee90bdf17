//! The monolith: sockets, schedulers, extraction, people and metrics in one process, from its start to its last
//! settlement.
//!
//! ```text
//!   start ─▶ listening ─▶ SIGTERM ─▶ draining: new sockets 503, goodbyes, leases settle ─▶ HTTP stops ─▶ end
//! ```

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix_web::dev::{Server as HttpHandle, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use gpu_worker::turnstile::Turnstile;
use gpu_worker::{Engine, Manifest};
use matcher_core::budget::{Relaxation, Renewal};
use matcher_core::policy::{Policy, Suggestions};
use matcher_core::{Gallery, Limits, PersonId, Print, Role, budget};
use std::num::{NonZeroU32, NonZeroUsize};
use telemetry::{Otlp, StartError, Telemetry};
use tokio::sync::watch;

use crate::capsule::Sealer;
use crate::config::Config;
use crate::engine::told;
use crate::history::History;
use crate::http::origin::Hosts;
use crate::http::status::trouble;
use crate::http::{self, Api};
use crate::listen;
use crate::live::corrections::Corrections;
use crate::live::protocol::Bounds;
use crate::live::{
    Arbiters, Capsules, Clock, Drain, Ids, Journal, JournalError, Registry, Service, Settings, SharePer, SocketLimits,
};
use crate::people::People;
use crate::simulate::trace::{self, Header};

/// A client that still sends while the process ends has this long before its connection is cut.
const HTTP_SHUTDOWN_SECONDS: u64 = 1;

/// How long at least `/readyz` says that the server is about to stop, before nothing answers any more.
const UNREADY_MIN: Duration = Duration::from_secs(1);

/// How long the last exports may take: a collector that is there answers in milliseconds.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// How often what is over is let go of: voiceprints of strangers outlive their use by no more than this.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// Threads for schedulers: one conversation costs microseconds a message, so two carry thousands.
const SCHEDULER_THREADS: usize = 2;

/// Why the service did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}; choose another with --listen")]
    Bind {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The metrics cannot be set up.
    #[error(transparent)]
    Telemetry(#[from] StartError),
    /// What the schedulers do cannot be recorded.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The collector that the environment names cannot be used.
    #[error(transparent)]
    Otlp(#[from] telemetry::OtlpError),
    /// The HTTP server failed.
    #[error("the server failed: {0}")]
    Server(#[from] io::Error),
}

/// A running service. Dropping the handle does not stop it; [`Server::drain`] does.
pub struct Server {
    address: SocketAddr,
    service: Arc<Service>,
    handle: ServerHandle,
    running: tokio::task::JoinHandle<io::Result<()>>,
    drain: Duration,
}

impl Server {
    /// Starts the service in the current actix system.
    ///
    /// # Errors
    /// When the address cannot be bound, or the metrics cannot be set up.
    pub fn start(config: &Config, engine: Arc<dyn Engine>, people: People, sealer: Sealer) -> Result<Self, ServeError> {
        let bind_error = |source| ServeError::Bind { address: config.server.listen.clone(), source };
        let listener = TcpListener::bind(&config.server.listen).map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;
        let service = assemble(config, engine.clone(), &people, sealer)?;
        let drain = service.settings.sockets.drain;
        let hosts = Hosts::from_list(config.server.hosts.as_deref().unwrap_or_default());
        let http = http_server(listener, service.clone(), Api::new(people, engine), hosts)?;
        let handle = http.handle();
        Ok(Self { address, service, handle, running: actix_web::rt::spawn(http), drain })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its actors share.
    #[must_use]
    pub const fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Refuses new sockets, says goodbye to the open ones, waits until every reservation is settled, and stops.
    ///
    /// # Errors
    /// When the HTTP server failed.
    pub async fn drain(self) -> Result<(), ServeError> {
        let registry = &self.service.registry;
        let began = tokio::time::Instant::now();
        registry.begin_draining();
        for socket in registry.sockets() {
            // A socket whose mailbox is full or gone is cut with the HTTP server.
            socket.try_send(Drain).ok();
        }
        let accounts = self.service.telemetry.accounts().clone();
        let settled = async {
            while registry.socket_count() > 0 || accounts.books().open > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(self.drain.mul_f64(0.6), settled).await.is_err() {
            tracing::warn!(open = accounts.books().open, "the drain time passed; what is still open settles as failed");
        }
        // Whoever balances load asks `/readyz` now and then: it must find the answer there for a while.
        tokio::time::sleep_until(began + self.drain.min(UNREADY_MIN)).await;
        self.handle.stop(true).await;
        self.running.await.map_err(io::Error::other)??;
        let written = async {
            self.service.capsules.wait_for_disk().await;
            self.service.history.wait_for_disk().await;
        };
        // The last words to the collector have their part of the drain time, too.
        let disk_until = began + self.drain.mul_f64(0.8);
        if tokio::time::timeout_at(disk_until, written).await.is_err() {
            tracing::warn!("the drain time passed; the newest history is missing");
        }
        let journal = self.service.journal.clone();
        if tokio::time::timeout_at(disk_until, on_own_thread("journal-end", move || journal.finish())).await.is_err() {
            tracing::warn!("the drain time passed; the recording of the schedule lacks its end");
        }
        let telemetry = self.service.telemetry.clone();
        let patience = (began + self.drain).saturating_duration_since(tokio::time::Instant::now()).min(FLUSH_MAX);
        let is_flushed = on_own_thread("last-export", move || telemetry.flush(patience)).await.unwrap_or(false);
        if !is_flushed {
            tracing::warn!("the collector was not reached in time; it lacks the last totals, traces and records");
        }
        Ok(())
    }
}

/// Runs what may block for long, such as a write to a disk that hangs, where nobody waits for it at the end of the process.
/// `None` when it did not come to its end.
async fn on_own_thread<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, over) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name(name.to_owned());
    // Whoever has stopped waiting does not want the answer.
    thread.spawn(move || done.send(work()).ok()).ok()?;
    over.await.ok()
}

/// Everything that the actors share, from the configuration. Needs an actix system, and starts the schedulers' threads.
pub(crate) fn assemble(
    config: &Config,
    engine: Arc<dyn Engine>,
    people: &People,
    sealer: Sealer,
) -> Result<Arc<Service>, ServeError> {
    let telemetry = telemetry()?;
    let (clock, store) = (Clock::start(), people.store().clone());
    let life = Duration::from_secs(config.matching.reconnect_within_seconds.into());
    let evidence_floor = Duration::from_secs_f64(config.matching.evidence_seconds);
    let service = Arc::new(Service {
        clock,
        turnstile: Turnstile::new(engine.turns_max()),
        corrections: Corrections::new(store.clone()),
        capsules: Capsules::new(store.clone(), sealer, telemetry.metrics().clone(), (clock, life, evidence_floor)),
        history: History::start(store.clone(), config.history.keep_days),
        journal: journal(config, engine.turns_max(), clock)?,
        telemetry,
        store,
        people: follow(people),
        registry: Registry::default(),
        settings: settings(config, engine.manifest()),
        ids: Ids::Random,
        arbiters: Arbiters::pool(SCHEDULER_THREADS),
        engine,
    });
    observe(&service, people.clone());
    sweep(Arc::downgrade(&service));
    Ok(service)
}

/// Where what the schedulers do is recorded, if it is.
fn journal(config: &Config, workers: usize, clock: Clock) -> Result<Journal, JournalError> {
    let Some(path) = &config.server.record else { return Ok(Journal::off()) };
    let header = Header {
        rollcall_trace: trace::header::VERSION,
        workers: NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN),
        settings: trace::Settings::of(&limits(config), &budget_limits(config)),
    };
    let bytes_max = u64::from(config.server.record_mebibytes) * 1024 * 1024;
    Journal::start(Path::new(path), &header, bytes_max, clock)
}

/// Lets go, as long as the service lives, of what recordings knew that are over.
fn sweep(service: Weak<Service>) {
    actix_web::rt::spawn(async move {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            let Some(service) = service.upgrade() else { return };
            service.registry.sweep(service.clock.now());
        }
    });
}

/// With the exporter to a collector that the environment names, if it names one.
fn telemetry() -> Result<Telemetry, ServeError> {
    let version = env!("CARGO_PKG_VERSION");
    match Otlp::from_env()? {
        Some(otlp) => Ok(Telemetry::start_exporting(version, &otlp)?),
        None => Ok(Telemetry::start(version)?),
    }
}

fn http_server(listener: TcpListener, service: Arc<Service>, api: Api, hosts: Hosts) -> io::Result<HttpHandle> {
    let (service, hosts) = (web::Data::from(service), web::Data::new(hosts));
    let api = web::Data::new(api);
    let workers = std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 4).max(1));
    let app = move || {
        App::new()
            .app_data(service.clone())
            .app_data(api.clone())
            .app_data(hosts.clone())
            .wrap(from_fn(http::origin::same_origin))
            .configure(http::configure)
    };
    let server = HttpServer::new(app)
        .on_connect(listen::remember)
        .workers(workers)
        .h1_allow_half_closed(false)
        .shutdown_timeout(HTTP_SHUTDOWN_SECONDS)
        .disable_signals()
        .listen(listener)?;
    Ok(server.run())
}

/// The gallery of everyone who has a print, kept up to date.
fn follow(people: &People) -> watch::Receiver<Gallery> {
    let mut changes = people.on_change();
    let (sender, gallery) = watch::channel(gallery(people));
    let people = people.clone();
    actix_web::rt::spawn(async move {
        while changes.changed().await.is_ok() && sender.send(self::gallery(&people)).is_ok() {}
    });
    gallery
}

/// The enrolled people as the core knows them.
#[must_use]
pub fn gallery(people: &People) -> Gallery {
    let snapshot = people.snapshot();
    let prints = snapshot.iter().filter_map(|person| {
        Some(Print {
            person: PersonId::new(&person.id),
            name: person.name.as_str().into(),
            role: if person.is_owner { Role::Owner } else { Role::Person },
            embedding: person.print.clone()?,
            is_pinned: person.is_pinned,
        })
    });
    Gallery::new(prints.collect())
}

/// Levels that are asked for at every scrape, and those that never change. The service holds its telemetry, so what
/// telemetry holds of the service must not keep it.
fn observe(service: &Arc<Service>, people: People) {
    let metrics = service.telemetry.metrics();
    let levels = metrics.levels();
    levels.sockets_max.set(service.settings.sockets_max as u64);
    levels.conversations_max.set(service.settings.conversations_max as u64);
    levels.turns.set(service.engine.turns_max() as u64);
    let service = Arc::downgrade(service);
    metrics.before_scrape(move |levels| {
        let Some(service) = service.upgrade() else { return };
        let health = service.engine.health();
        levels.ready.set(u64::from(trouble(&service, &health).is_none()));
        levels.workers_up.set(health.workers_up as u64);
        levels.workers.set(health.workers as u64);
        levels.worker_restarts.set(health.restarts);
        levels.engine.set(service.engine.provider(), told::levels(&*service.engine));
        levels.people.set(people.snapshot().len() as u64);
        levels.store_bytes.set(people.size_bytes());
        service.history.tell(&levels.history);
    });
}

/// The configuration, with the model's distances, as the live path uses it.
#[must_use]
pub fn settings(config: &Config, manifest: &Manifest) -> Settings {
    let manifest = config.matching.over(manifest);
    let sockets = &config.sockets;
    Settings {
        limits: limits(config),
        policy: Policy { suggestions: suggestions(config, &manifest), ..policy(&manifest) },
        budget: budget_limits(config),
        sockets: SocketLimits {
            frame_bytes: size(sockets.frame_bytes),
            text_bytes: size(sockets.text_bytes),
            outbound_events: size(sockets.outbound_events),
            ring: Duration::from_secs_f64(sockets.ring_seconds),
            idle: Duration::from_secs_f64(sockets.idle_seconds),
            drain: Duration::from_secs_f64(sockets.drain_seconds),
            bounds: Bounds { id_bytes: size(sockets.id_bytes), segments: size(sockets.segments_per_message) },
        },
        sockets_max: size(sockets.sockets_max),
        conversations_max: size(sockets.conversations_max),
        clip_gate: config.matching.clip_gate,
        shares: if config.extraction.share_per_recording.is_on() {
            SharePer::Recording
        } else {
            SharePer::Conversation
        },
    }
}

fn suggestions(config: &Config, manifest: &Manifest) -> Suggestions {
    let (bound, margin) = (manifest.suggestion_bound, manifest.suggestion_margin);
    if config.matching.suggestions.is_on() { Suggestions::On { bound, margin } } else { Suggestions::Off }
}

/// The model's distances as the core wants them; nobody is suggested.
#[must_use]
pub fn policy(manifest: &Manifest) -> Policy {
    Policy {
        threshold: manifest.threshold,
        margin: manifest.margin,
        near_miss_bound: manifest.near_miss_bound,
        near_owner_bound: manifest.near_owner_bound,
        grouping: manifest.grouping,
        reconnect: manifest.reconnect,
        suggestions: Suggestions::Off,
        levels: manifest.levels,
    }
}

/// The scheduler's limits.
#[must_use]
pub fn limits(config: &Config) -> Limits {
    let (queue, matching, sockets) = (&config.queue, &config.matching, &config.sockets);
    Limits {
        lanes_max: count(sockets.lanes),
        slots_max: count(queue.slots),
        ranges_max: count(queue.ranges),
        slots_of_number_max: count(queue.slots_per_number),
        voices_max: count(matching.voices),
        queries_max: count(sockets.queries_per_lane),
        clips_kept: number(matching.clips_kept),
        age_override: Duration::from_secs_f64(queue.age_override_seconds),
        override_every: number(queue.override_every),
        clip_minimum: Duration::from_secs_f64(matching.clip_minimum_seconds),
        clip_hard_minimum: Duration::from_secs_f64(matching.clip_hard_minimum_seconds),
        evidence_floor: Duration::from_secs_f64(matching.evidence_seconds),
        reconnect_floor: Duration::from_secs_f64(matching.reconnect_evidence_seconds),
        continuity_every: Duration::from_secs(matching.continuity_every_seconds.into()),
        query_max: Duration::from_secs_f64(matching.query_seconds_max),
        reservation_deadline: Duration::from_secs_f64(config.extraction.reservation_deadline_seconds),
    }
}

/// The budget's limits.
#[must_use]
pub fn budget_limits(config: &Config) -> budget::Limits {
    let speech = Duration::from_secs_f64;
    let relaxed = NonZeroU32::new(config.budget.relaxed_tokens);
    let renewal = config.budget.renewal_speech_seconds;
    budget::Limits {
        attempts_max: number(config.budget.voice_attempts),
        burst: number(config.budget.socket_burst),
        refill_per_hour: number(config.budget.refill_per_hour),
        voices_max: number(config.matching.voices),
        relaxation: relaxed.map(|tokens| Relaxation { tokens, speech: speech(config.budget.relaxed_speech_seconds) }),
        renewal: (renewal > 0.0).then(|| Renewal { speech: speech(renewal) }),
    }
}

fn size(value: u32) -> usize {
    usize::try_from(value).expect("a usize holds 32 bits on every machine that runs this")
}

fn count(value: u32) -> NonZeroUsize {
    NonZeroUsize::new(size(value)).expect("the configuration's ranges begin at one")
}

fn number(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).expect("the configuration's ranges begin at one")
}
