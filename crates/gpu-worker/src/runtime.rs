//! Finds the ONNX Runtime library and loads it, once in a process.
//!
//! The binding allows one environment per process for ever, and panics when it is used before a library was loaded. So
//! nothing of it is touched outside this module and [`crate::onnx`], and both need a [`Runtime`], which only [`load`]
//! gives. A failed attempt may be repeated with another path. Installing the library is [`crate::install`]'s work.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ort::environment::Environment;
use ort::logging::LogLevel;

/// The one that was loaded.
static LOADED: OnceLock<Runtime> = OnceLock::new();
/// Held while loading, so that two threads do not both try.
static LOADING: Mutex<()> = Mutex::new(());

/// Why there is no runtime.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// No library where one was named.
    #[error("there is no runtime library at `{}`; correct the path, or leave it out to use the installed one", path.display())]
    NotThere {
        /// What was named.
        path: PathBuf,
    },
    /// None was named and none is installed.
    #[error("no inference runtime is installed in `{}`; run `rollcall model install campplus`", folder.display())]
    NotInstalled {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// The file is no usable runtime.
    #[error("cannot load the runtime `{}`: {reason}; ONNX Runtime 1.24 or newer is needed", path.display())]
    Load {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// A loaded inference runtime.
#[derive(Debug)]
pub struct Runtime {
    environment: Environment,
    library: PathBuf,
}

impl Runtime {
    /// The library that was loaded.
    #[must_use]
    pub fn library(&self) -> &Path {
        &self.library
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }
}

/// The library to load: `named` (from a flag or an environment variable) when there is one, else the newest of
/// `HOME/runtime/libonnxruntime.so*`.
///
/// # Errors
/// When the named file does not exist, or nothing is named and nothing installed.
pub fn find(named: Option<&Path>, home: &Path) -> Result<PathBuf, RuntimeError> {
    if let Some(path) = named {
        // Absolute, because the loader tries a relative path beside the executable first.
        return std::fs::canonicalize(path).map_err(|_| RuntimeError::NotThere { path: path.to_owned() });
    }
    let folder = home.join("runtime");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
    let is_library = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("libonnxruntime.so"))
    };
    let newest = entries.map(|entry| entry.path()).filter(is_library).max();
    newest.and_then(|path| std::fs::canonicalize(path).ok()).ok_or(RuntimeError::NotInstalled { folder })
}

/// Loads a library, or returns the one that this process has already loaded, whatever its path.
///
/// # Errors
/// When the file cannot be loaded, is not ONNX Runtime, or is too old. Another path may be tried afterwards.
pub fn load(library: &Path) -> Result<&'static Runtime, RuntimeError> {
    let _alone = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = LOADED.get() {
        return Ok(runtime);
    }
    let failed = |reason: String| RuntimeError::Load { path: library.to_owned(), reason };
    check_length(library).map_err(failed)?;
    let builder = ort::init_from(library).map_err(|error| failed(error.to_string()))?;
    let environment = builder
        .with_name("rollcall")
        .with_telemetry(false)
        .with_logger(Arc::new(forward))
        .build()
        .map_err(|error| failed(error.to_string()))?;
    // With a logger of one's own the library starts at its most talkative level.
    environment.set_log_level(LogLevel::Warning);
    Ok(LOADED.get_or_init(|| Runtime { environment, library: library.to_owned() }))
}

/// A library that is cut off would end the process on its first missing page: its header says how long it must be.
///
/// Anything that is no 64-bit ELF file is left to the loader, which says so itself.
fn check_length(library: &Path) -> Result<(), String> {
    let mut header = [0_u8; 64];
    let mut file = std::fs::File::open(library).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    if file.read_exact(&mut header).is_err() || !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(());
    }
    let at = |from: usize, bytes: usize| {
        let field = header.get(from..from + bytes).unwrap_or_default();
        field.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
    };
    // The section header table comes last: its offset, and the size and number of its entries.
    let needed = at(0x28, 8).saturating_add(at(0x3a, 2) * at(0x3c, 2));
    if length < needed {
        return Err(format!("the file is cut off: it has {length} bytes of {needed}; install the runtime again"));
    }
    Ok(())
}

/// [`find`] and [`load`] in one.
///
/// # Errors
/// As the two.
pub fn open(named: Option<&Path>, home: &Path) -> Result<&'static Runtime, RuntimeError> {
    load(&find(named, home)?)
}

/// The runtime's own log, through ours. It speaks of nodes, shapes and files, never of values.
fn forward(level: LogLevel, category: &str, _id: &str, place: &str, message: &str) {
    match level {
        LogLevel::Verbose | LogLevel::Info => tracing::debug!(category, place, "{message}"),
        LogLevel::Warning => tracing::warn!(category, place, "{message}"),
        LogLevel::Error | LogLevel::Fatal => tracing::error!(category, place, "{message}"),
    }
}
