//! The real extractor: a model folder, checked, and one single-threaded ONNX Runtime session for each worker.
//!
//! Sessions are not shared, because a run needs its session alone; one thread each, because two threads on one clip cost
//! more than two clips side by side. Inputs are passed by `run` over a borrowed view, which copies nothing. The view
//! must never be cloned, copied into or bound: in this release of the binding each of the three waits for itself for
//! ever.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ort::session::builder::GraphOptimizationLevel;
use ort::session::{NoSelectedOutputs, RunOptions, Session};
use ort::value::TensorRef;

use crate::digest::sha256_of;
use crate::engine::Clip;
use crate::extractor::{BuildError, ExtractError, Extractor, Factory, Stopper};
use crate::front_end::{Encoder, FrontEnd};
use crate::manifest::{Draft, Manifest, ManifestError};
use crate::runtime::Runtime;

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// There is no such model.
    #[error("there is no model `{name}`: neither a folder of that name nor `{}` holds a manifest.json; run `rollcall model install {name}`", installed.display())]
    NotThere {
        /// What was asked for.
        name: String,
        /// Where an installed model of that name would lie.
        installed: PathBuf,
    },
    /// Its manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Its graph cannot be read.
    #[error("cannot read the model `{}`: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The graph is not the one that the manifest describes.
    #[error("`{}` has SHA-256 {found} and its manifest's `fingerprint` says {expected}; install the model again", path.display())]
    Fingerprint {
        /// Which file.
        path: PathBuf,
        /// What the manifest says.
        expected: String,
        /// What the file has.
        found: String,
    },
}

/// A model folder whose graph is the one that its manifest describes.
#[derive(Debug, Clone)]
pub struct Model {
    manifest: Manifest,
    graph: PathBuf,
}

impl Model {
    /// Finds a model by the path of its folder or by its name in `home`, and checks its fingerprint.
    ///
    /// # Errors
    /// When there is none, or its manifest or graph cannot be used.
    pub fn find(name: &str, home: &Path) -> Result<Self, ModelError> {
        Self::open(&Self::folder(name, home)?)
    }

    /// As [`Model::find`], for a model whose distances may still be missing: see [`Draft::to_calibrate`].
    ///
    /// # Errors
    /// As [`Model::find`], but for missing distances.
    pub fn find_to_calibrate(name: &str, home: &Path) -> Result<Self, ModelError> {
        let folder = Self::folder(name, home)?;
        let path = folder.join(Manifest::FILE_NAME);
        Self::with(Draft::read(&path)?.to_calibrate(&path)?, &folder)
    }

    /// The folder of a model, by its path or its name in `home`. Whether its graph is there is not looked at.
    ///
    /// # Errors
    /// When there is none.
    pub fn folder(name: &str, home: &Path) -> Result<PathBuf, ModelError> {
        let installed = home.join("models").join(name);
        let folders = [PathBuf::from(name), installed.clone()];
        match folders.iter().find(|folder| folder.join(Manifest::FILE_NAME).is_file()) {
            Some(folder) => Ok(folder.clone()),
            None => Err(ModelError::NotThere { name: name.to_owned(), installed }),
        }
    }

    /// Opens a model folder and checks its fingerprint.
    ///
    /// # Errors
    /// When its manifest or graph cannot be used.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        Self::with(Manifest::read(&folder.join(Manifest::FILE_NAME))?, folder)
    }

    fn with(manifest: Manifest, folder: &Path) -> Result<Self, ModelError> {
        let graph = folder.join(&manifest.file);
        let found = sha256_of(&graph).map_err(|source| ModelError::Unreadable { path: graph.clone(), source })?;
        if found != manifest.fingerprint {
            return Err(ModelError::Fingerprint { path: graph, expected: manifest.fingerprint, found });
        }
        Ok(Self { manifest, graph })
    }

    /// The ONNX file.
    #[must_use]
    pub fn graph(&self) -> &Path {
        &self.graph
    }

    /// What the model is, and the distances that hold for it.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}

/// Builds an extractor for each worker of a pool.
#[derive(Clone)]
pub struct OnnxFactory {
    runtime: &'static Runtime,
    model: Arc<Model>,
}

impl OnnxFactory {
    /// Extractors of `model` on `runtime`.
    #[must_use]
    pub fn new(runtime: &'static Runtime, model: Model) -> Self {
        Self { runtime, model: Arc::new(model) }
    }
}

impl Factory for OnnxFactory {
    fn build(&self) -> Result<Box<dyn Extractor>, BuildError> {
        Ok(Box::new(OnnxExtractor::open(self.runtime, &self.model)?))
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
    /// Loads the model into a session of its own.
    ///
    /// # Errors
    /// When the graph cannot be loaded, or takes or gives something else than its manifest says.
    pub fn open(runtime: &'static Runtime, model: &Model) -> Result<Self, BuildError> {
        let session = session(runtime, &model.graph)
            .map_err(|reason| BuildError(format!("cannot load `{}`: {reason}", model.graph.display())))?;
        let Manifest { dimension, front_end, .. } = model.manifest;
        let (input, output) = ports(&session, &front_end, dimension).ok_or_else(|| {
            BuildError(format!("`{}` is no speaker model of {dimension} values", model.graph.display()))
        })?;
        let options = RunOptions::new().map_err(|error| BuildError(error.to_string()))?;
        let options = Arc::new(options);
        let columns = front_end.columns();
        let encoder = Encoder::new(front_end);
        Ok(Self { session, input, output, dimension, columns, options, encoder, features: Vec::new() })
    }

    /// The vectors of several clips in one run. The clips must become inputs of one shape, since padding would change the
    /// means that a model takes over a clip.
    ///
    /// # Errors
    /// When the clips differ in length or one cannot be used, or the run fails.
    pub fn extract_batch(&mut self, clips: &[Clip]) -> Result<Vec<Vec<f32>>, ExtractError> {
        let mut features = std::mem::take(&mut self.features);
        features.clear();
        let prepared = self.prepare(clips, &mut features);
        let vectors = prepared.and_then(|parts| Ok((parts, self.run(&features, parts * clips.len())?)));
        self.features = features;
        let (parts, vectors) = vectors?;
        Ok(vectors.chunks_exact(parts * self.dimension).map(|parts| mean(parts, self.dimension)).collect())
    }

    /// Appends the input of each clip, and returns how many parts each has.
    fn prepare(&mut self, clips: &[Clip], features: &mut Vec<f32>) -> Result<usize, ExtractError> {
        let mut first = None;
        for clip in clips {
            let shape = self.encoder.append(clip, features)?;
            let expected = *first.get_or_insert(shape);
            if shape != expected {
                let (expected, found) = (expected.parts * expected.length, shape.parts * shape.length);
                let reason = format!("a batch needs clips of equal length, and has {expected} and {found} frames");
                return Err(ExtractError::Encoding(reason));
            }
        }
        Ok(first.map_or(1, |shape| shape.parts))
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

impl Extractor for OnnxExtractor {
    fn extract(&mut self, clip: &Clip) -> Result<Vec<f32>, ExtractError> {
        let vectors = self.extract_batch(std::slice::from_ref(clip))?;
        vectors.into_iter().next().ok_or_else(|| ExtractError::Session("the model gave no vector".to_owned()))
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
}

pub(crate) fn session(runtime: &'static Runtime, graph: &Path) -> Result<Session, String> {
    let builder = Session::builder(runtime.environment()).map_err(|error| error.to_string())?;
    let builder = builder.with_optimization_level(GraphOptimizationLevel::Level3).map_err(|error| error.to_string())?;
    let builder = builder.with_intra_threads(1).map_err(|error| error.to_string())?;
    let builder = builder.with_inter_threads(1).map_err(|error| error.to_string())?;
    // One thread has nobody to spin for.
    let builder = builder.with_intra_op_spinning(false).map_err(|error| error.to_string())?;
    // A memory pattern is learnt for one shape, and every clip has another.
    let mut builder = builder.with_memory_pattern(false).map_err(|error| error.to_string())?;
    builder.commit_from_file(graph).map_err(|error| error.to_string())
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
