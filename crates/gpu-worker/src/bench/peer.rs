//! Another program that extracts the same clips, in a process of its own that is asked run by run, so that it and
//! Rollcall can take turns. Its time is what it says itself: CPU time of its whole process.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::Time;

const SCRIPT: &str = include_str!("../../bench/peers.py");

/// Which program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// sherpa-onnx, whose extractor is C++.
    Sherpa,
    /// ONNX Runtime behind a front end in Python.
    Python,
}

/// A peer that waits for commands.
pub(super) struct Peer {
    child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// Which release.
    pub(super) version: String,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sherpa => "sherpa-onnx",
            Self::Python => "onnxruntime in Python",
        }
    }

    fn argument(self) -> &'static str {
        match self {
            Self::Sherpa => "sherpa",
            Self::Python => "python",
        }
    }
}

impl Peer {
    /// Starts the peer and waits until it has loaded the model.
    ///
    /// # Errors
    /// Why there is none, in a few words: mostly that it is not installed.
    pub(super) fn start(
        kind: Kind,
        python: &Path,
        model: &Path,
        clips: &[PathBuf],
        threads: NonZeroUsize,
    ) -> Result<Self, String> {
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT, kind.argument()]).arg(model).arg(threads.to_string()).args(clips);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("cannot start `{}`: {error}", python.display()))?;
        let commands = child.stdin.take().ok_or("it has no standard input")?;
        let answers = BufReader::new(child.stdout.take().ok_or("it has no standard output")?).lines();
        let mut peer = Self { child, commands, answers, version: String::new() };
        let ready = peer.answers.next().and_then(Result::ok);
        let version = ready.as_deref().and_then(|line| line.strip_prefix("ready "));
        let missing =
            || format!("{} is not installed in `{}`; scripts/peers.sh does it", kind.name(), python.display());
        peer.version = version.ok_or_else(missing)?.to_owned();
        Ok(peer)
    }

    /// One extraction of this clip.
    pub(super) fn run(&mut self, clip: usize) -> Option<Time> {
        self.ask(&format!("run {clip}"))
    }

    /// So many extractions of this clip on all of its threads.
    pub(super) fn load(&mut self, clip: usize, times: usize) -> Option<Time> {
        self.ask(&format!("load {clip} {times}"))
    }

    fn ask(&mut self, command: &str) -> Option<Time> {
        writeln!(self.commands, "{command}").ok()?;
        let answer = self.answers.next()?.ok()?;
        let (cpu, wall) = answer.split_once(' ')?;
        Some(Time { cpu_ms: cpu.parse::<f64>().ok()? * 1_000.0, wall_ms: wall.parse::<f64>().ok()? * 1_000.0 })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
