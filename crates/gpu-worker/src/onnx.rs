//! The real extractor: one ONNX Runtime session for each worker, with its front end and its buffers.
//!
//! Sessions are not shared, because a run needs its session alone; on the processors each has one thread, because two
//! threads on one clip cost more than two clips side by side. Inputs are passed by `run` over a borrowed view, which
//! copies nothing. The view must never be cloned, copied into or bound: in this release of the binding each of the three
//! waits for itself for ever.

mod factory;
mod form;
mod model;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ort::session::builder::GraphOptimizationLevel;
use ort::session::{NoSelectedOutputs, RunOptions, Session};
use ort::value::TensorRef;

use crate::engine::Clip;
use crate::extractor::{Answers, BuildError, ExtractError, Extractor, Stopper};
use crate::fbank::RATE;
use crate::front_end::{Encoder, FrontEnd, Shape};
use crate::manifest::Manifest;
use crate::provider::{Engines, Provider};
use crate::runtime::Runtime;

pub use factory::OnnxFactory;
pub use form::Form;
pub use model::{Model, ModelError};

/// Where and how a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// On what.
    pub provider: Provider,
    /// On which of them. The processors are one.
    pub device: u16,
    /// Threads of the session on the processors.
    pub threads: NonZeroUsize,
    /// In which form of its graph.
    pub form: Form,
}

impl Default for Site {
    /// The processors, with one thread, and the graph as its file has it.
    fn default() -> Self {
        Self { provider: Provider::Cpu, device: 0, threads: NonZeroUsize::MIN, form: Form::AsFiled }
    }
}

/// One session with its front end and buffers.
pub struct OnnxExtractor {
    session: Session,
    input: String,
    output: String,
    dimension: usize,
    columns: Option<usize>,
    options: Arc<RunOptions<NoSelectedOutputs>>,
    encoder: Encoder,
    features: Vec<f32>,
}

impl OnnxExtractor {
    /// Loads the model into a session of its own on the processors, with one thread.
    ///
    /// # Errors
    /// When the graph cannot be loaded, or takes or gives something else than its manifest says.
    pub fn open(runtime: &'static Runtime, model: &Model) -> Result<Self, BuildError> {
        Self::open_on(runtime, model, Site::default())
    }

    /// Loads the model into a session of its own at `site`.
    ///
    /// # Errors
    /// As [`OnnxExtractor::open`], and when there can be no session at this site.
    pub fn open_on(runtime: &'static Runtime, model: &Model, site: Site) -> Result<Self, BuildError> {
        let graph = model.graph();
        let unloadable = |reason| BuildError(format!("cannot load `{}`: {reason}", graph.display()));
        let engines = match site.provider {
            Provider::Cpu | Provider::Cuda => None,
            Provider::TensorRt => {
                let described = session(runtime, graph).map_err(unloadable)?;
                described.inputs().first().map(|input| Engines::of(model, input.name()))
            }
        };
        let session = session_at(runtime, graph, site, engines.as_ref()).map_err(unloadable)?;
        let Manifest { dimension, front_end, .. } = *model.manifest();
        let (input, output) = ports(&session, &front_end, dimension)
            .ok_or_else(|| BuildError(format!("`{}` is no speaker model of {dimension} values", graph.display())))?;
        let options = RunOptions::new().map_err(|error| BuildError(error.to_string()))?;
        let options = Arc::new(options);
        let columns = front_end.columns();
        let encoder = Encoder::new(front_end);
        let mut extractor = Self { session, input, output, dimension, columns, options, encoder, features: Vec::new() };
        if site.provider != Provider::Cpu {
            extractor.warm_up()?;
        }
        Ok(extractor)
    }

    /// A device loads its kernels with its first run, which takes seconds: not within a query.
    fn warm_up(&mut self) -> Result<(), BuildError> {
        let clip = form::noise(2 * RATE);
        self.extract(&clip).map(drop).map_err(|error| BuildError(format!("a first run failed: {error}")))
    }

    /// The vectors of several clips in one run, or the first error of any of them.
    ///
    /// # Errors
    /// When the clips differ in length or one cannot be used, or the run fails.
    pub fn extract_batch(&mut self, clips: &[Clip]) -> Result<Vec<Vec<f32>>, ExtractError> {
        let clips: Vec<&Clip> = clips.iter().collect();
        self.extract_many(&clips, Instant::now())?.into_iter().collect()
    }

    /// Appends the input of each clip. Each must have the shape of the first that is good: none is padded, since that would
    /// change the means that a model takes over a clip. Returns that shape, and an error for each clip that has none.
    fn encode(&mut self, clips: &[&Clip], features: &mut Vec<f32>) -> (Option<Shape>, Vec<Option<ExtractError>>) {
        let mut first = None;
        let errors = clips.iter().map(|clip| {
            let before = features.len();
            let shape = self.encoder.append(clip, features);
            let error = shape.and_then(|shape| fits(*first.get_or_insert(shape), shape)).err();
            if error.is_some() {
                features.truncate(before);
            }
            error
        });
        let errors = errors.collect();
        (first, errors)
    }

    /// Runs the session alone on `batch` inputs of equal shape; the vectors come one after another.
    ///
    /// # Errors
    /// When the values do not divide into `batch` inputs, or the run fails.
    pub fn run(&mut self, features: &[f32], batch: usize) -> Result<Vec<f32>, ExtractError> {
        let columns = self.columns.unwrap_or(1);
        let length = features.len().checked_div(batch * columns).unwrap_or(0);
        if length == 0 || length * batch * columns != features.len() {
            let reason = format!("{} values are not the features of {batch} clips of equal length", features.len());
            return Err(ExtractError::Encoding(reason));
        }
        let failed = |error: ort::Error| ExtractError::Session(error.to_string());
        let shape: Vec<usize> = [batch, length].into_iter().chain(self.columns).collect();
        let view = TensorRef::from_array_view((shape, features)).map_err(failed)?;
        let inputs = ort::inputs![self.input.as_str() => view];
        let outputs = self.session.run_with_options(inputs, &self.options).map_err(failed)?;
        let missing = || ExtractError::Session(format!("the model gave no output `{}`", self.output));
        let (_, values) = outputs.get(&self.output).ok_or_else(missing)?.try_extract_tensor::<f32>().map_err(failed)?;
        if values.len() != batch * self.dimension {
            let reason = format!("the model gave {} values for {batch} clips of {}", values.len(), self.dimension);
            return Err(ExtractError::Session(reason));
        }
        Ok(values.to_vec())
    }
}

/// Whether a clip can be in one run with the first.
fn fits(first: Shape, shape: Shape) -> Result<(), ExtractError> {
    if first == shape {
        return Ok(());
    }
    let (expected, found) = (first.parts * first.length, shape.parts * shape.length);
    let reason = format!("a batch needs clips of equal length, and has {expected} and {found} frames");
    Err(ExtractError::Encoding(reason))
}

impl Extractor for OnnxExtractor {
    fn extract(&mut self, clip: &Clip) -> Result<Vec<f32>, ExtractError> {
        let answers = self.extract_many(&[clip], Instant::now())?;
        let none = || ExtractError::Session("the model gave no vector".to_owned());
        answers.into_iter().next().ok_or_else(none)?
    }

    fn extract_many(&mut self, clips: &[&Clip], _by: Instant) -> Result<Answers, ExtractError> {
        let mut features = std::mem::take(&mut self.features);
        features.clear();
        let (shape, errors) = self.encode(clips, &mut features);
        let parts = shape.map_or(1, |shape| shape.parts);
        let good = errors.iter().filter(|error| error.is_none()).count();
        let vectors = if good == 0 { Ok(Vec::new()) } else { self.run(&features, parts * good) };
        self.features = features;
        let vectors = vectors?;
        let mut vectors = vectors.chunks_exact(parts * self.dimension).map(|parts| mean(parts, self.dimension));
        let none = || ExtractError::Session("the model gave no vector".to_owned());
        let answer = |error: Option<ExtractError>| error.map_or_else(|| vectors.next().ok_or_else(none), Err);
        Ok(errors.into_iter().map(answer).collect())
    }

    /// Sets the flag that the runtime looks at between two of the graph's nodes, which are a few milliseconds apart.
    fn stopper(&self) -> Option<Stopper> {
        let options = Arc::clone(&self.options);
        Some(Arc::new(move || {
            if let Err(error) = options.terminate() {
                tracing::warn!(%error, "a run could not be told to stop");
            }
        }))
    }

    /// The same flag, which is taken down before the next run: the session is as good as before.
    fn interrupter(&self) -> Option<Stopper> {
        self.stopper()
    }

    fn resume(&mut self) {
        if let Err(error) = self.options.unterminate() {
            tracing::warn!(%error, "a run that was told to stop keeps its session stopped");
        }
    }
}

/// A session on the processors, with one thread.
pub(crate) fn session(runtime: &'static Runtime, graph: &Path) -> Result<Session, String> {
    session_at(runtime, graph, Site::default(), None)
}

fn session_at(
    runtime: &'static Runtime,
    graph: &Path,
    site: Site,
    engines: Option<&Engines>,
) -> Result<Session, String> {
    let builder = Session::builder(runtime.environment()).map_err(|error| error.to_string())?;
    let builder = builder.with_optimization_level(GraphOptimizationLevel::Level3).map_err(|error| error.to_string())?;
    let dispatches = site.provider.dispatches(site.device, engines);
    let builder = builder.with_execution_providers(dispatches).map_err(|error| error.to_string())?;
    let builder = builder.with_intra_threads(site.threads.get()).map_err(|error| error.to_string())?;
    let builder = builder.with_inter_threads(1).map_err(|error| error.to_string())?;
    // One thread has nobody to spin for.
    let builder = builder.with_intra_op_spinning(false).map_err(|error| error.to_string())?;
    // A memory pattern is learnt for one shape, and every clip has another.
    let mut builder = builder.with_memory_pattern(false).map_err(|error| error.to_string())?;
    let faster = Some(site.form).filter(|form| *form == Form::Faster).and_then(|_| form::faster(graph));
    let session = match faster {
        Some(bytes) => builder.commit_from_memory(&bytes),
        None => builder.commit_from_file(graph),
    };
    session.map_err(|error| error.to_string())
}

/// The mean of several vectors that lie one after another.
pub(crate) fn mean(vectors: &[f32], dimension: usize) -> Vec<f32> {
    let count = (vectors.len() / dimension) as f32;
    let mut mean = vec![0.0; dimension];
    for vector in vectors.chunks_exact(dimension) {
        mean.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value / count);
    }
    mean
}

/// The names of the one input, which must be what the front end gives, and of the one output `[N, dimension]`.
fn ports(session: &Session, front_end: &FrontEnd, dimension: usize) -> Option<(String, String)> {
    let ([input], [output]) = (session.inputs(), session.outputs()) else { return None };
    let (taken, given) = (input.dtype().tensor_shape()?, output.dtype().tensor_shape()?);
    let is = |side: Option<&i64>, size: usize| side.is_some_and(|side| usize::try_from(*side) == Ok(size));
    let takes = match front_end.columns() {
        Some(columns) => taken.len() == 3 && is(taken.last(), columns),
        None => taken.len() == 2,
    };
    // An exporter that does not know the size writes none; then each run's own size is checked.
    let gives = given.last() == Some(&-1) || is(given.last(), dimension);
    (takes && gives).then(|| (input.name().to_owned(), output.name().to_owned()))
}
