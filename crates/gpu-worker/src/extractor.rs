//! The seam between the pool and whatever turns audio into a vector.
//!
//! An [`Extractor`] belongs to one worker thread, which a [`Factory`] builds it on. It does its own pre-processing and
//! may fail, panic or hang; the pool deals with that. It does not judge its vector: the pool checks each one.

use std::sync::Arc;
use std::time::Instant;

use crate::course::Course;
use crate::engine::{Clip, Failure};
use crate::remote::{EndpointHealth, Fault};

/// Why a clip brought no vector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The clip is at fault; the extractor is fine and goes on.
    #[error("{0}")]
    Encoding(String),
    /// The extractor is at fault; the pool replaces it.
    #[error("{0}")]
    Session(String),
    /// Another machine was asked in vain; the extractor is fine and goes on.
    #[error("{0}")]
    Remote(Fault),
}

impl From<ExtractError> for Failure {
    fn from(error: ExtractError) -> Self {
        match error {
            ExtractError::Encoding(reason) => Self::Encoding(reason),
            ExtractError::Session(reason) => Self::Extraction(reason),
            ExtractError::Remote(fault) => fault.into(),
        }
    }
}

/// Why no extractor could be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(pub String);

/// What a run of several clips brought: an answer for each, in their order.
pub type Answers = Vec<Result<Vec<f32>, ExtractError>>;

/// Ends a run from another thread. Calling it when nothing runs does no harm.
pub type Stopper = Arc<dyn Fn() + Send + Sync>;

/// Turns clips into vectors, one at a time, on the thread that it was built on.
pub trait Extractor: Send {
    /// The vector of one clip, as the model gives it; it need not be normalised.
    ///
    /// # Errors
    /// [`ExtractError::Encoding`] when the clip is at fault, [`ExtractError::Session`] when the extractor is,
    /// [`ExtractError::Remote`] when another machine is.
    fn extract(&mut self, clip: &Clip) -> Result<Vec<f32>, ExtractError>;

    /// As [`Extractor::extract`], for an answer that nobody wants after `by`. An extractor that asks elsewhere passes the
    /// deadline on and keeps it; one that computes here need not mind, since the pool answers for it.
    ///
    /// # Errors
    /// As [`Extractor::extract`].
    fn extract_by(&mut self, clip: &Clip, by: Instant) -> Result<Vec<f32>, ExtractError> {
        // A run cannot be hurried.
        let _ = by;
        self.extract(clip)
    }

    /// As [`Extractor::extract_by`]. An extractor that asks elsewhere sends the course's trace along, and notes in it what
    /// it asked.
    ///
    /// # Errors
    /// As [`Extractor::extract`].
    fn extract_noted(&mut self, clip: &Clip, by: Instant, course: &Course) -> Result<Vec<f32>, ExtractError> {
        // What is computed here is asked of nobody.
        let _ = course;
        self.extract_by(clip, by)
    }

    /// The vectors of several clips whose shape is one, see [`Factory::shape_of`]; nobody wants the answers after `by`.
    /// A clip that is at fault has its own error and spoils no other.
    ///
    /// # Errors
    /// When the run failed as a whole, so that nobody can say on whose account.
    fn extract_many(&mut self, clips: &[&Clip], by: Instant) -> Result<Answers, ExtractError> {
        Ok(clips.iter().map(|clip| self.extract_by(clip, by)).collect())
    }

    /// How to end a run that passed its deadline, if there is a way; the extractor is not used again. Without one the
    /// thread is left to itself.
    fn stopper(&self) -> Option<Stopper> {
        None
    }

    /// How to end a run that nobody waits for any more, if there is a way that leaves the extractor good: the run fails,
    /// or never begins, and after [`Extractor::resume`] the next one is not touched. It must not wait for anything: it is
    /// called under the pool's lock. Without one the run goes on and its result is thrown away.
    fn interrupter(&self) -> Option<Stopper> {
        None
    }

    /// The run is over that may have been interrupted, and no interruption of it is on its way any more.
    fn resume(&mut self) {}
}

/// A function is an extractor.
impl<F> Extractor for F
where
    F: FnMut(&Clip) -> Result<Vec<f32>, ExtractError> + Send,
{
    fn extract(&mut self, clip: &Clip) -> Result<Vec<f32>, ExtractError> {
        self(clip)
    }
}

/// Builds extractors: one for each worker thread at the start, and one more whenever a worker is replaced.
pub trait Factory: Send + Sync {
    /// Builds one extractor, on the thread that will use it.
    ///
    /// # Errors
    /// When the model cannot be loaded; the pool tries again later.
    fn build(&self) -> Result<Box<dyn Extractor>, BuildError>;

    /// As [`Factory::build`], for the worker with this number, counted from zero: where there are several devices it
    /// decides which.
    ///
    /// # Errors
    /// As [`Factory::build`].
    fn build_for(&self, worker: usize) -> Result<Box<dyn Extractor>, BuildError> {
        let _ = worker;
        self.build()
    }

    /// The shape that a clip has as the model's input. Clips of one shape may share a run; one without runs alone. Asked
    /// for every query, so it must be cheap.
    fn shape_of(&self, clip: &Clip) -> Option<usize> {
        let _ = clip;
        None
    }

    /// What is wrong, in one sentence, when no extractor can extract although it was built: what it needs is elsewhere.
    /// Asked for every query, so it must be cheap; while there is trouble the pool is not ready and refuses queries.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// What its extractors compute with, as [`crate::Engine::provider`].
    fn provider(&self) -> &'static str {
        "cpu"
    }

    /// Why the provider is not the one that was hoped for, in one sentence, when it is not.
    fn instead(&self) -> Option<String> {
        None
    }

    /// The other machines that its extractors ask, as [`crate::Engine::endpoints`].
    fn endpoints(&self) -> Vec<EndpointHealth> {
        Vec::new()
    }

    /// The pool shuts down: nothing is built any more.
    fn close(&self) {}
}

/// A function is a factory.
impl<F> Factory for F
where
    F: Fn() -> Result<Box<dyn Extractor>, BuildError> + Send + Sync,
{
    fn build(&self) -> Result<Box<dyn Extractor>, BuildError> {
        self()
    }
}
