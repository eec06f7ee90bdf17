//! What every subcommand works with: the configuration, the home directory, and how to open what they name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpu_worker::pool::Pool;
use gpu_worker::{Manifest, remote, scripted};
use telemetry::Format;

use super::{CliError, Common};
use crate::capsule::Sealer;
use crate::config::{Config, ConfigError, Home, Sources, home};
use crate::engine::{self, EngineError};
use crate::people::People;
use crate::store::{SqliteStore, StoreError};

/// The store's file. Whether it is there is looked at before the store is opened, which would make it.
const DATABASE: &str = "rollcall.db";

/// The configuration of one run of the command.
#[derive(Debug, Clone)]
pub struct Context {
    /// Every setting, checked.
    pub config: Config,
    /// Where runtime and models are.
    pub home: Home,
}

impl Context {
    /// Reads every source of settings.
    ///
    /// # Errors
    /// When a source is wrong.
    pub fn new(common: &Common) -> Result<Self, CliError> {
        let sources = Sources {
            file: common.config.clone(),
            environment: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
            set: common.set.clone(),
        };
        let mut config = Config::load(&sources)?;
        if let Some(data) = &common.data {
            config.server.data = Some(text_of(data)?);
        }
        if let Some(model) = &common.model {
            config.extraction.model.clone_from(model);
        }
        if let Some(log) = &common.log {
            config.server.log.clone_from(log);
        }
        config.validate()?;
        Ok(Self { config, home: home() })
    }

    /// The data directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.config.data(&self.home)
    }

    /// Starts writing log records to standard error: `ROLLCALL_LOG` says which, else `filter` does.
    ///
    /// # Errors
    /// When the filter is wrong.
    pub fn start_logs(&self, filter: &str) -> Result<(), CliError> {
        let format = if self.config.server.log == "json" { Format::Json } else { Format::Readable };
        let named = std::env::var("ROLLCALL_LOG").unwrap_or_else(|_| filter.to_owned());
        telemetry::init_logs(format, &named).map_err(|error| CliError::input(format!("ROLLCALL_LOG: {error}")))
    }

    /// Starts the engine. Blocks until a worker is up.
    ///
    /// # Errors
    /// When the model or the runtime is not there or not usable.
    pub fn open_engine(&self) -> Result<Pool, CliError> {
        Ok(engine::open(&self.config, &self.home)?)
    }

    /// Starts the engine of a service, which may wait for servers on other machines to come up.
    ///
    /// # Errors
    /// As [`Context::open_engine`].
    pub fn open_engine_to_serve(&self) -> Result<Pool, CliError> {
        Ok(engine::open_to_serve(&self.config, &self.home)?)
    }

    /// Starts the engine for a model whose distances need not be known yet. Blocks until a worker is up.
    ///
    /// # Errors
    /// As [`Context::open_engine`].
    pub fn open_engine_to_calibrate(&self) -> Result<Pool, CliError> {
        Ok(engine::open_to_calibrate(&self.config, &self.home)?)
    }

    /// Opens the store in the data directory.
    ///
    /// # Errors
    /// When it cannot be used, or another process uses it.
    pub fn open_store(&self) -> Result<Arc<SqliteStore>, CliError> {
        Ok(Arc::new(SqliteStore::open(&self.data())?))
    }

    /// Reads the key of the data directory, whose store is open.
    ///
    /// # Errors
    /// When it cannot be read or made.
    pub fn open_sealer(&self) -> Result<Sealer, CliError> {
        let data = self.data();
        Sealer::open(&data).map_err(|error| CliError::input(format!("{}: {error}", data.display())))
    }

    /// Opens the store and loads everybody, with prints for `model`.
    ///
    /// # Errors
    /// When the store cannot be used or read.
    pub fn open_people(&self, model: &Manifest) -> Result<People, CliError> {
        Ok(People::open(self.open_store()?, model)?)
    }

    /// Opens the store that is there and loads everybody. A mistyped directory is an error, and is not made.
    ///
    /// # Errors
    /// When nobody was ever enrolled there, or the store cannot be used or read.
    pub fn open_people_there(&self, model: &Manifest) -> Result<People, CliError> {
        let data = self.data();
        if !data.join(DATABASE).is_file() {
            let mend = "enrol somebody there first, or name another directory with --data";
            return Err(CliError::input(format!("--data {}: there is no store here; {mend}", data.display())));
        }
        self.open_people(model)
    }

    /// The configured model's manifest; without the model, one that no voiceprint belongs to. Listing and deleting
    /// people must work on a machine that cannot extract.
    #[must_use]
    pub fn manifest_or_none(&self) -> Manifest {
        engine::manifest(&self.config, &self.home).unwrap_or_else(|_| Manifest {
            name: self.config.extraction.model.clone(),
            fingerprint: String::new(),
            ..scripted::manifest()
        })
    }
}

fn text_of(path: &Path) -> Result<String, CliError> {
    let text =
        path.to_str().ok_or_else(|| CliError::input(format!("--data {}: is not valid UTF-8", path.display())))?;
    Ok(text.to_owned())
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::input(error)
    }
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Model(_) => Self::input(format!("--model: {error}")),
            EngineError::Config(_) | EngineError::Provider(_) | EngineError::Remote(remote::StartError::Config(_)) => {
                Self::input(error)
            }
            EngineError::Runtime(_)
            | EngineError::Remote(remote::StartError::Threads(_))
            | EngineError::Threads(_)
            | EngineError::NotReady(_) => Self::failed(error),
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoSuchPerson(_)
            | StoreError::PersonExists(_)
            | StoreError::OwnerExists(_)
            | StoreError::Full(_)
            | StoreError::ReceiptChanged => Self::input(error),
            StoreError::InUse(_)
            | StoreError::Newer { .. }
            | StoreError::Damaged { .. }
            | StoreError::TracesRemain(_)
            | StoreError::Directory { .. }
            | StoreError::Database(_) => Self::failed(error),
        }
    }
}
