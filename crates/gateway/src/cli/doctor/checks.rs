//! What is checked, each on its own: one failing check hides none of the others.
//!
//! Checks look and try; none of them installs or changes anything but a file that it removes again.

use std::net::TcpListener;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use gpu_worker::install::{self, State};
use gpu_worker::{Clip, runtime};

use super::servers;
use crate::cli::Context;
use crate::engine;
use crate::people::People;
use crate::store::{SqliteStore, StoreError};

/// File descriptors beside the sockets: database, logs, libraries, metrics.
const OTHER_FILES: u64 = 64;

/// Where the check of the extraction stands, in the order in which things are needed.
const EXTRACTION: usize = 3;

/// The outcome of one check.
pub(super) struct Check {
    /// What was looked at.
    pub(super) what: &'static str,
    found: Result<String, String>,
}

impl Check {
    pub(super) fn is_wrong(&self) -> bool {
        self.found.is_err()
    }

    pub(super) fn line(&self) -> String {
        let (mark, text) = match &self.found {
            Ok(text) => ("ok", text),
            Err(text) => ("WRONG", text),
        };
        format!("{mark:<6}{:<12}{text}\n", self.what)
    }
}

pub(super) fn all(context: &Context) -> Vec<Check> {
    let model = install_state(context, "campplus");
    let python = python(context);
    let elsewhere = context.config.remote().ok().flatten();
    let servers = elsewhere.map(|named| Check { what: "servers", found: servers::check(context, &named) });
    let mut checks = vec![
        Check { what: "home", found: Ok(context.home.path().display().to_string()) },
        Check { what: "runtime", found: library(context) },
        Check { what: "model", found: model },
        Check { what: "extraction", found: extraction(context) },
        Check { what: "data", found: data(&context.data()) },
        Check { what: "people", found: people(context) },
        Check { what: "listen", found: listen(context) },
        Check { what: "files", found: open_files(context) },
        Check { what: "python", found: python },
    ];
    // Before the extraction that needs them.
    checks.splice(EXTRACTION..EXTRACTION, servers);
    checks
}

/// Whether other machines compute the voiceprints, so that neither a runtime nor a model's graph is needed here.
fn is_elsewhere(context: &Context) -> bool {
    context.config.remote().is_ok_and(|servers| servers.is_some())
}

fn library(context: &Context) -> Result<String, String> {
    if is_elsewhere(context) {
        return Ok("not needed: other machines compute the voiceprints".to_owned());
    }
    let named = context.config.extraction.runtime.as_deref().map(Path::new);
    let runtime = runtime::open(named, context.home.path()).map_err(|error| error.to_string())?;
    Ok(runtime.library().display().to_string())
}

/// The configured model when it is the shipped one is held against the published checksum, any other against its own
/// manifest.
fn install_state(context: &Context, shipped: &str) -> Result<String, String> {
    let manifest = engine::manifest(&context.config, &context.home).map_err(|error| error.to_string())?;
    if context.config.extraction.model == shipped && !is_elsewhere(context) {
        let checks = install::verify(context.home.path());
        let check = checks.iter().find(|check| check.name == shipped).map(|check| &check.state);
        if let Some(State::Wrong { reason }) = check {
            return Err(format!("{reason}; run: rollcall model install {shipped}"));
        }
    }
    Ok(format!(
        "{}, fingerprint {:.12}, threshold {}, margin {}",
        manifest.name, manifest.fingerprint, manifest.threshold, manifest.margin
    ))
}

/// The whole way once: a worker, a session, two seconds of a plain sound.
fn extraction(context: &Context) -> Result<String, String> {
    let pool = engine::open(&context.config, &context.home).map_err(|error| error.to_string())?;
    let started = Instant::now();
    let vector = pool.extract_blocking(plain_sound()).map_err(|error| error.to_string())?;
    let took = started.elapsed().as_millis();
    pool.shutdown();
    Ok(format!("a voiceprint of {} values in {took} ms", vector.size()))
}

/// A saw of 125 Hz: something in every band.
fn plain_sound() -> Clip {
    let pcm = (0..32_000_i32).map(|n| i16::try_from((n % 128) * 128 - 8192).unwrap_or(0)).collect();
    Clip { pcm, sample_rate: NonZeroU32::new(16_000).expect("the rate is not zero") }
}

fn data(directory: &Path) -> Result<String, String> {
    let probe = directory.join("rollcall.doctor");
    let tried = std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&probe, b"written by rollcall doctor"))
        .and_then(|()| std::fs::remove_file(&probe));
    match tried {
        Ok(()) => Ok(directory.display().to_string()),
        Err(error) => Err(format!(
            "{} cannot be written ({error}); make it writable, or name another with --data",
            directory.display()
        )),
    }
}

/// A running server has the store, and that is well.
fn people(context: &Context) -> Result<String, String> {
    let store = match SqliteStore::open(&context.data()) {
        Ok(store) => store,
        Err(StoreError::InUse(_)) => return Ok("the store is in use by a running rollcall".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    let people = People::open(std::sync::Arc::new(store), &context.manifest_or_none()).map_err(|e| e.to_string())?;
    let snapshot = people.snapshot();
    if !people.has_model() {
        return Ok(format!("{} in the store; without the model their samples cannot be judged", snapshot.len()));
    }
    let stale: Vec<&str> = snapshot.iter().filter(|p| p.needs_enrolment()).map(|p| p.id.as_str()).collect();
    if stale.is_empty() {
        return Ok(format!("{} enrolled", snapshot.iter().filter(|person| person.print.is_some()).count()));
    }
    let model = &people.model().name;
    Err(format!("{} need re-enrolment for model {model}: rollcall enroll --person ID AUDIO…", stale.join(", ")))
}

fn listen(context: &Context) -> Result<String, String> {
    let address = context.config.listen().map_err(|error| error.to_string())?;
    match TcpListener::bind(address) {
        Ok(_) => Ok(format!("{address} is free")),
        Err(error) => {
            Err(format!("{address} cannot be listened on ({error}); stop what is there, or name another with --listen"))
        }
    }
}

fn open_files(context: &Context) -> Result<String, String> {
    let needed = u64::from(context.config.sockets.sockets_max) + OTHER_FILES;
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    match soft_limit(&limits) {
        None => Ok("the limit on open files is not known here".to_owned()),
        Some(limit) if limit >= needed => Ok(format!("{limit} may be open, {needed} are needed")),
        Some(limit) => Err(format!(
            "{limit} may be open and sockets.sockets_max wants {needed}; run: ulimit -n {needed}, or lower sockets.sockets_max"
        )),
    }
}

fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// Python is needed to install, and not to run.
fn python(context: &Context) -> Result<String, String> {
    let tried = Command::new("python3")
        .args(["-c", "import venv, ensurepip"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if tried.is_ok_and(|status| status.success()) {
        return Ok("python3 with venv, to install models with".to_owned());
    }
    if install::verify(context.home.path()).iter().all(|check| check.state == State::Good) {
        return Ok("python3 with venv is missing, and everything is installed already".to_owned());
    }
    Err("python3 with venv is missing, which installs models; run: apt-get install python3 python3-venv".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_open_files_is_read_from_the_system() {
        let text = "Limit   Soft Limit  Hard Limit Units\nMax open files            1024                 524288               files\n";
        assert_eq!(soft_limit(text), Some(1024));
        assert_eq!(soft_limit("Max open files unlimited unlimited files"), Some(u64::MAX));
        assert_eq!(soft_limit(""), None);
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_wrong_and_one_that_can_is_left_empty() {
        let directory = crate::testing::TemporaryDirectory::new();
        assert!(data(directory.path()).is_ok());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(data(Path::new("/proc/rollcall")).unwrap_err().contains("--data"));
    }
}
