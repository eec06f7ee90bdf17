//! The worker pool: an [`Engine`] of named threads, each with an extractor of its own, behind a short bounded queue.
//!
//! ```no_run
//! # use gpu_worker::{Clip, Failure, onnx::{Model, OnnxFactory}, pool::{Pool, Settings}, runtime};
//! # fn voiceprint(clip: Clip) -> Result<(), Box<dyn std::error::Error>> {
//! let home = std::path::Path::new(".rollcall");
//! let model = Model::find("campplus", home)?;
//! let manifest = model.manifest().clone();
//! let factory = OnnxFactory::new(runtime::open(None, home)?, model);
//! let pool = Pool::start(Settings::default(), manifest, factory)?;
//! let voiceprint = pool.extract_blocking(clip)?;
//! # Ok(()) }
//! ```
//! Every query is answered exactly once, whatever happens to its worker. Nothing is tried twice, but that a run of several
//! queries that failed as a whole is taken apart and each of them runs alone. The threads' lives are the supervisor's
//! affair; what a query means is the caller's.

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use matcher_core::Embedding;

use crate::course::Course;
use crate::engine::{Clip, Engine, Failure, Health, Ticket};
use crate::extractor::Factory;
use crate::manifest::Manifest;
use crate::remote::EndpointHealth;
use crate::reply::Reply;
use crate::shared::Shared;
use crate::ticket::Asked;
use crate::{batching, intensity, roster, supervisor};

/// How a pool works. Every default has its reason; change one at a time.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Extraction threads. One core less than there are, at least one: a run keeps its core busy, and sockets need one.
    pub workers: NonZeroUsize,
    /// Further queries that may be started for each worker while it runs one. None: on a CPU a run takes 25 ms or more and
    /// handing over the next query well under one, and whoever comes new would wait for each of them. One where runs are
    /// as short as handing over, as on a GPU.
    pub prefetch: usize,
    /// Clips of one shape that share a run, at most. One: on a CPU sharing gains nothing (docs/decisions/0012), and the
    /// first of them waits for the last. What a device gains is measured and kept in the model's manifest.
    pub batch_max: NonZeroUsize,
    /// How long the first clip of a run waits for others, at most: only while queries come faster than this, and never in
    /// an idle pool. None, where sharing gains nothing.
    pub batch_wait: Duration,
    /// How long one run may take. 3 s: ten seconds of audio take 0.12 s on one core, so a run that passes this hangs.
    pub run_max: Duration,
    /// How long building an extractor may take. 30 s: loading takes 0.2 s, a cold disk some seconds.
    pub build_max: Duration,
    /// How long [`Pool::extract_blocking`] waits, queueing and running together. 5 s: a run's deadline, and two runs
    /// before it in the queue.
    pub patience: Duration,
    /// When workers fail too often.
    pub intensity: intensity::Limits,
    /// How often a pool that gave up tries again. 60 s: a fault that stays costs one failed run a minute.
    pub probe_every: Duration,
    /// Threads that hang and were replaced, at most. 8: each holds a session of about 75 MB and perhaps a core. Beyond
    /// it no thread is started until one of them ends, and without a worker the pool is not ready.
    pub abandoned_max: usize,
    /// How long [`Pool::shutdown`] may take. 4 s: longer than a run's deadline, well within a service's ten seconds.
    pub shutdown_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            workers: NonZeroUsize::new(cores - 1).unwrap_or(NonZeroUsize::MIN),
            prefetch: 0,
            batch_max: NonZeroUsize::MIN,
            batch_wait: Duration::ZERO,
            run_max: Duration::from_secs(3),
            build_max: Duration::from_secs(30),
            patience: Duration::from_secs(5),
            intensity: intensity::Limits::default(),
            probe_every: Duration::from_secs(60),
            abandoned_max: 8,
            shutdown_max: Duration::from_secs(4),
        }
    }
}

impl Settings {
    /// Queries that may be under way for those who take turns.
    #[must_use]
    pub fn turns_max(&self) -> usize {
        self.workers.get().saturating_mul(self.prefetch.saturating_add(1)).saturating_mul(self.batch_max.get())
    }

    /// Queries that may wait: two runs for each worker. What waits longer is chosen again by whoever asks, see
    /// [`crate::turnstile`].
    #[must_use]
    pub fn queue_max(&self) -> usize {
        self.workers.get().saturating_mul(2).saturating_mul(self.batch_max.get())
    }

    pub(crate) fn batching(&self) -> batching::Limits {
        batching::Limits { max: self.batch_max, wait: self.batch_wait }
    }

    pub(crate) fn limits(&self) -> roster::Limits {
        roster::Limits {
            workers: self.workers.get(),
            build_max: self.build_max,
            run_max: self.run_max,
            abandoned_max: self.abandoned_max,
            probe_every: self.probe_every,
            intensity: self.intensity,
        }
    }

    /// Room in the supervisor's mailbox: the last words of every thread there can be, and as many nudges.
    fn mailbox_max(&self) -> usize {
        self.workers.get().saturating_add(self.abandoned_max).saturating_mul(2)
    }
}

/// A running pool. Clones are handles to the same pool; when the last one goes, the pool ends by itself.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    manifest: Manifest,
    supervisor: Mutex<Option<JoinHandle<usize>>>,
}

/// How a pool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Threads that did not end in time. They do no harm: nothing they do is heard.
    pub threads_left: usize,
}

impl Pool {
    /// Starts the supervisor, which starts the workers. Returns at once; [`Pool::wait_ready`] waits for the first worker.
    ///
    /// # Errors
    /// When the supervisor's thread cannot be started.
    pub fn start(settings: Settings, manifest: Manifest, factory: impl Factory + 'static) -> std::io::Result<Self> {
        let (sender, events) = crossbeam_channel::bounded(settings.mailbox_max());
        let shared = Arc::new(Shared::new(settings, manifest.dimension, Box::new(factory), sender));
        let supervised = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("extract-supervisor".to_owned());
        let supervisor = thread.spawn(move || supervisor::supervise(&supervised, &events))?;
        Ok(Self { inner: Arc::new(Inner { shared, manifest, supervisor: Mutex::new(Some(supervisor)) }) })
    }

    /// Waits until a worker is up. Blocks the thread.
    ///
    /// # Errors
    /// What is wrong, when no worker comes up in time or the pool has given up.
    pub fn wait_ready(&self, within: Duration) -> Result<(), String> {
        self.inner.shared.wait_ready(within)
    }

    /// How long the first worker may take to come up: [`Settings::build_max`].
    #[must_use]
    pub fn build_max(&self) -> Duration {
        self.inner.shared.settings.build_max
    }

    /// Extracts one voiceprint and waits for it, for callers without an async runtime. Blocks the thread for at most
    /// [`Settings::patience`].
    ///
    /// # Errors
    /// As [`Engine::submit`].
    pub fn extract_blocking(&self, clip: Clip) -> Result<Embedding, Failure> {
        wait_for(self.submit(clip, self.inner.shared.settings.patience))
    }

    /// Queries that wait for a worker at the moment.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.inner.shared.queued()
    }

    /// Ends the pool: new and queued queries are answered [`Failure::Unavailable`], running ones finish or pass their
    /// deadline, threads are joined. Blocks the thread for at most [`Settings::shutdown_max`] and a moment; a second
    /// call returns at once.
    pub fn shutdown(&self) -> Ended {
        self.inner.shared.close(self.inner.shared.settings.shutdown_max);
        let supervisor = self.inner.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        let threads_left = supervisor.map_or(0, |thread| thread.join().unwrap_or(0));
        Ended { threads_left }
    }
}

impl Inner {
    fn submit(&self, clip: Clip, patience: Duration, course: Option<Arc<Course>>) -> Ticket {
        let (reply, receiver) = Reply::new(course);
        let asked = Asked::new(receiver, Arc::clone(&self.shared));
        self.shared.enqueue(clip, patience, reply);
        Box::pin(asked)
    }
}

impl Drop for Inner {
    /// The last handle is gone. The threads end by themselves; who wants to wait for that calls [`Pool::shutdown`].
    fn drop(&mut self) {
        self.shared.close(self.shared.settings.shutdown_max);
    }
}

impl Engine for Pool {
    fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }

    fn submit(&self, clip: Clip, patience: Duration) -> Ticket {
        self.inner.submit(clip, patience, None)
    }

    fn submit_noted(&self, clip: Clip, patience: Duration, course: Arc<Course>) -> Ticket {
        self.inner.submit(clip, patience, Some(course))
    }

    fn health(&self) -> Health {
        self.inner.shared.health()
    }

    /// One query that runs for each worker, and [`Settings::prefetch`].
    fn turns_max(&self) -> usize {
        self.inner.shared.settings.turns_max()
    }

    fn provider(&self) -> &'static str {
        self.inner.shared.factory.provider()
    }

    fn provider_instead(&self) -> Option<String> {
        self.inner.shared.factory.instead()
    }

    fn endpoints(&self) -> Vec<EndpointHealth> {
        self.inner.shared.factory.endpoints()
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives one ticket on this thread. It ends because the pool answers every ticket, at its patience's end if not before.
fn wait_for(ticket: Ticket) -> Result<Embedding, Failure> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut ticket = pin!(ticket);
    loop {
        match ticket.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}
