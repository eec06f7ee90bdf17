//! From the configuration to a running engine: which model, here or on other machines, which runtime, how many workers.
//!
//! It starts the pool and waits for its first worker, so that whoever gets an engine can use it. What the pool does then
//! is its own affair.

pub(crate) mod told;

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use gpu_worker::onnx::{Model, ModelError, OnnxFactory};
use gpu_worker::pool::{Pool, Settings};
use gpu_worker::provider::ProviderError;
use gpu_worker::remote::{self, RemoteFactory};
use gpu_worker::runtime::{self, RuntimeError};
use gpu_worker::{Draft, Manifest, scripted};

use crate::config::{Config, ConfigError, Home};

/// Queries under way for each server, when nothing is set: one that runs there, and one on its way.
const QUERIES_PER_SERVER: usize = 2;

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The runtime cannot be used.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The model cannot run on what was asked for.
    #[error("extraction.provider: {0}")]
    Provider(#[from] ProviderError),
    /// The settings of the servers cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The servers cannot be looked after.
    #[error(transparent)]
    Remote(#[from] remote::StartError),
    /// The pool's threads cannot be started.
    #[error("the extraction threads cannot be started: {0}")]
    Threads(#[from] std::io::Error),
    /// The pool runs, and no worker comes up.
    #[error("no extraction worker came up: {0}")]
    NotReady(String),
}

/// How long a command waits for the servers. 5 s: one that is there answers its first probe in well under two.
const SERVERS_READY_MAX: Duration = Duration::from_secs(5);

/// Whether a model must know its distances.
#[derive(Debug, Clone, Copy)]
enum Distances {
    Known,
    /// They are about to be measured, and nobody is named by this model.
    ToCalibrate,
}

/// The manifest of the configured model, with the configured distances laid over it. No runtime is needed.
///
/// # Errors
/// When there is no such model, or its files are not what its manifest says.
pub fn manifest(config: &Config, home: &Home) -> Result<Manifest, EngineError> {
    let remote = config.remote()?.is_some();
    let manifest = if config.extraction.model == scripted::NAME {
        scripted::manifest()
    } else if remote {
        described(config, home, Distances::Known)?
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
    ready(config, start(config, home, Distances::Known)?)
}

/// As [`open`], also for a model whose distances are not known yet; nobody is named by it.
///
/// # Errors
/// As [`open`].
pub fn open_to_calibrate(config: &Config, home: &Home) -> Result<Pool, EngineError> {
    ready(config, start(config, home, Distances::ToCalibrate)?)
}

/// As [`open`], for a service: servers on other machines that are not there yet are waited for by whoever asks whether it
/// is ready, and not here.
///
/// # Errors
/// As [`open`].
pub fn open_to_serve(config: &Config, home: &Home) -> Result<Pool, EngineError> {
    let pool = start(config, home, Distances::Known)?;
    if config.remote()?.is_none() { ready(config, pool) } else { Ok(pool) }
}

fn ready(config: &Config, pool: Pool) -> Result<Pool, EngineError> {
    let within = if config.remote()?.is_some() { SERVERS_READY_MAX } else { pool.build_max() };
    pool.wait_ready(within).map_err(EngineError::NotReady)?;
    Ok(pool)
}

fn start(config: &Config, home: &Home, distances: Distances) -> Result<Pool, EngineError> {
    match config.remote()? {
        Some(servers) => start_remote(config, home, distances, &servers),
        None => start_local(config, home, distances),
    }
}

fn start_local(config: &Config, home: &Home, distances: Distances) -> Result<Pool, EngineError> {
    let settings = settings(config);
    if config.extraction.model == scripted::NAME {
        let manifest = config.matching.over(&scripted::manifest());
        let factory = scripted::voices(manifest.dimension);
        return Ok(Pool::start(settings, manifest, factory)?);
    }
    let find = match distances {
        Distances::Known => Model::find,
        Distances::ToCalibrate => Model::find_to_calibrate,
    };
    let model = find(&config.extraction.model, home.path())?;
    let runtime = runtime::open(config.extraction.runtime.as_deref().map(Path::new), home.path())?;
    let manifest = config.matching.over(model.manifest());
    let factory = OnnxFactory::on(runtime, model, &config.provider()?)?;
    Ok(Pool::start(factory.tuned(settings), manifest, factory)?)
}

fn start_remote(
    config: &Config,
    home: &Home,
    distances: Distances,
    servers: &remote::Config,
) -> Result<Pool, EngineError> {
    let manifest = config.matching.over(&described(config, home, distances)?);
    let factory = RemoteFactory::start(servers, &manifest)?;
    let usual = NonZeroUsize::new(servers.endpoints.len() * QUERIES_PER_SERVER).unwrap_or(NonZeroUsize::MIN);
    let workers = config.extraction.workers_set().unwrap_or(usual);
    Ok(Pool::start(Settings { workers, ..settings(config) }, manifest, factory)?)
}

/// What a model that runs elsewhere is. Its graph need not be here.
fn described(config: &Config, home: &Home, distances: Distances) -> Result<Manifest, ModelError> {
    let name = &config.extraction.model;
    if name == scripted::NAME {
        return Ok(scripted::manifest());
    }
    let path = Model::folder(name, home.path())?.join(Manifest::FILE_NAME);
    Ok(match distances {
        Distances::Known => Manifest::read(&path)?,
        Distances::ToCalibrate => Draft::read(&path)?.to_calibrate(&path)?,
    })
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
    fn a_service_starts_without_its_servers_and_is_not_ready() {
        let mut config = config("scripted");
        config.extraction.engine = "remote".to_owned();
        // Port 9 is discarded traffic's, and nobody listens there.
        config.remote.endpoints = Some("http://127.0.0.1:9".to_owned());
        let pool = open_to_serve(&config, &Home::at("/nowhere")).unwrap();
        assert_eq!((pool.provider(), pool.endpoints().len()), ("remote", 1));
        let told =
            || pool.health().trouble.is_some_and(|trouble| trouble.contains("no extraction server is in service"));
        let since = std::time::Instant::now();
        while !told() {
            assert!(since.elapsed() < Duration::from_secs(30), "{:?}", pool.health());
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(pool.shutdown().threads_left, 0);
    }

    #[test]
    fn a_model_that_is_not_there_is_named_with_the_mend() {
        let error = open(&config("nobody"), &Home::at("/nowhere")).err().unwrap().to_string();
        assert!(error.contains("`nobody`") && error.contains("rollcall model install nobody"), "{error}");
    }
}
