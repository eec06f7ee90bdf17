//! The seam between who asks for a voiceprint and who computes it.
//!
//! [`Engine`] is what callers hold: the worker pool in this process, or a scripted one in tests. A caller submits a
//! [`Clip`] and gets a [`Ticket`]; every ticket is answered exactly once, and dropping it cancels the query.

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use matcher_core::{BadVector, Embedding};

use crate::course::Course;
use crate::manifest::Manifest;
use crate::remote::EndpointHealth;

/// Mono audio for one query. Shared, so that handing it on copies nothing.
#[derive(Clone)]
pub struct Clip {
    /// Samples, mono, 16 bit.
    pub pcm: Arc<[i16]>,
    /// Samples per second, 8000 to 48000.
    pub sample_rate: NonZeroU32,
}

impl Clip {
    /// How long the clip is, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        // A clip holds at most a few million samples: exact in an f64.
        self.pcm.iter().len() as f64 / f64::from(self.sample_rate.get())
    }
}

impl std::fmt::Debug for Clip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clip({} samples at {} Hz)", self.pcm.len(), self.sample_rate)
    }
}

/// Why a query brought no voiceprint. Every variant spends the reservation; none is retried by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The clip could not be turned into the model's features (too short, bad rate).
    #[error("encoding failed: {0}")]
    Encoding(String),
    /// The model session returned an error.
    #[error("extraction failed: {0}")]
    Extraction(String),
    /// The model returned something that is not a voiceprint.
    #[error("the model returned a bad vector: {0}")]
    BadVector(#[from] BadVector),
    /// The worker panicked on this clip.
    #[error("the worker panicked")]
    WorkerPanicked,
    /// The worker's thread ended before it answered.
    #[error("the worker was lost")]
    WorkerLost,
    /// The run, or the wait for it, passed its deadline.
    #[error("the deadline passed")]
    DeadlinePassed,
    /// The caller left before the query ran.
    #[error("the caller left")]
    Cancelled,
    /// More queries are waiting than the pool holds.
    #[error("the pool's queue is full")]
    QueueFull,
    /// No worker can extract at the moment.
    #[error("no worker can extract")]
    Unavailable,
}

/// A query under way. Dropping it cancels: a query that has not started never runs.
pub type Ticket = Pin<Box<dyn Future<Output = Result<Embedding, Failure>> + Send>>;

/// Whether queries can be answered now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Workers that are able to extract.
    pub workers_up: usize,
    /// Workers that the pool was configured with.
    pub workers: usize,
    /// Worker restarts since the start.
    pub restarts: u64,
    /// What is wrong, in one sentence, when the pool is not ready.
    pub trouble: Option<String>,
}

impl Health {
    /// Whether at least one worker can extract.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.workers_up > 0 && self.trouble.is_none()
    }
}

/// Something that computes voiceprints.
pub trait Engine: Send + Sync {
    /// The model behind the vectors.
    fn manifest(&self) -> &Manifest;

    /// Starts one query, to be answered within `patience` from now (waiting and running together).
    fn submit(&self, clip: Clip, patience: Duration) -> Ticket;

    /// As [`Engine::submit`], and notes in `course` what the query goes through. An engine that does not know notes nothing.
    fn submit_noted(&self, clip: Clip, patience: Duration, course: Arc<Course>) -> Ticket {
        drop(course);
        self.submit(clip, patience)
    }

    /// Whether queries can be answered now.
    fn health(&self) -> Health;

    /// How many queries may be under way at once without any of them waiting long: running ones and the short queue.
    fn turns_max(&self) -> usize;

    /// What computes the vectors: `cpu`, another execution provider of the runtime, or `remote`.
    fn provider(&self) -> &'static str {
        "cpu"
    }

    /// Why the provider is not the one that was hoped for, in one sentence, when it is not.
    fn provider_instead(&self) -> Option<String> {
        None
    }

    /// The other machines that are asked, in the order of the configuration; none where vectors are computed here.
    fn endpoints(&self) -> Vec<EndpointHealth> {
        Vec::new()
    }
}
