//! From the configuration to a running engine: which model, which runtime, how many workers.
//!
//! It starts the pool and waits for its first worker, so that whoever gets an engine can use it. What the pool does then
//! is its own affair.

use std::path::Path;
use std::time::Duration;

use gpu_worker::onnx::{Model, ModelError, OnnxFactory};
use gpu_worker::pool::{Pool, Settings};
use gpu_worker::runtime::{self, RuntimeError};
use gpu_worker::{Manifest, scripted};

use crate::config::{Config, Home};

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The runtime cannot be used.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The pool's threads cannot be started.
    #[error("the extraction threads cannot be started: {0}")]
    Threads(#[from] std::io::Error),
    /// The pool runs, and no worker comes up.
    #[error("no extraction worker came up: {0}")]
    NotReady(String),
}

/// The manifest of the configured model, with the configured distances laid over it. No runtime is needed.
///
/// # Errors
/// When there is no such model, or its files are not what its manifest says.
pub fn manifest(config: &Config, home: &Home) -> Result<Manifest, ModelError> {
    let manifest = if config.extraction.model == scripted::NAME {
        scripted::manifest()
    } else {
        Model::find(&config.extraction.model, home.path())?.manifest().clone()
    };
    Ok(config.matching.over(&manifest))
}

/// Starts the pool for the configured model. Blocks until its first worker is up.
///
/// # Errors
/// When the model or the runtime cannot be used, or no worker comes up.
pub fn open(config: &Config, home: &Home) -> Result<Pool, EngineError> {
    open_with(config, home, Model::find)
}

/// As [`open`], also for a model whose distances are not known yet; nobody is named by it.
///
/// # Errors
/// As [`open`].
pub fn open_to_calibrate(config: &Config, home: &Home) -> Result<Pool, EngineError> {
    open_with(config, home, Model::find_to_calibrate)
}

fn open_with(
    config: &Config,
    home: &Home,
    find: fn(&str, &Path) -> Result<Model, ModelError>,
) -> Result<Pool, EngineError> {
    let settings = settings(config);
    let pool = if config.extraction.model == scripted::NAME {
        let manifest = config.matching.over(&scripted::manifest());
        let factory = scripted::voices(manifest.dimension);
        Pool::start(settings, manifest, factory)?
    } else {
        let model = find(&config.extraction.model, home.path())?;
        let runtime = runtime::open(config.extraction.runtime.as_deref().map(Path::new), home.path())?;
        Pool::start(settings, config.matching.over(model.manifest()), OnnxFactory::new(runtime, model))?
    };
    pool.wait_ready(settings.build_max).map_err(EngineError::NotReady)?;
    Ok(pool)
}

fn settings(config: &Config) -> Settings {
    let defaults = Settings::default();
    Settings {
        workers: config.extraction.workers_set().unwrap_or(defaults.workers),
        prefetch: usize::try_from(config.extraction.prefetch).unwrap_or(defaults.prefetch),
        run_max: Duration::from_secs_f64(config.extraction.run_deadline_seconds),
        patience: Duration::from_secs_f64(config.extraction.reservation_deadline_seconds),
        ..defaults
    }
}

#[cfg(test)]
mod tests {
    use gpu_worker::Engine as _;

    use super::*;

    fn config(model: &str) -> Config {
        let mut config = Config::default();
        config.extraction.model = model.to_owned();
        config
    }

    #[test]
    fn the_scripted_engine_runs_with_the_configured_distances() {
        let mut config = config("scripted");
        config.matching.threshold = Some(0.4);
        let pool = open(&config, &Home::at("/nowhere")).unwrap();
        assert!((pool.manifest().threshold - 0.4).abs() < f64::EPSILON);
        assert!(pool.health().is_ready());
        assert_eq!(pool.shutdown().threads_left, 0);
    }

    #[test]
    fn a_model_that_is_not_there_is_named_with_the_mend() {
        let error = open(&config("nobody"), &Home::at("/nowhere")).err().unwrap().to_string();
        assert!(error.contains("`nobody`") && error.contains("rollcall model install nobody"), "{error}");
    }
}
