//! The server that is measured: a child process with its own data directory, and what `/proc` says of it.
//!
//! It ends with its handle. Its log stays in its directory and is shown only when it does not start.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{Plan, SocketsError};
use crate::cli::Client;
use crate::client::Address;
use crate::store::PersonChange;

use super::scrape::Scrape;

/// Ticks of `/proc/PID/stat` a second: fixed for user space on every architecture that Linux runs this on.
const TICKS_PER_S: u64 = 100;

/// A page of metrics is a few ten kilobytes.
const PAGE_BYTES_MAX: u64 = 4 << 20;

/// Scraping takes milliseconds, also from a busy server.
const SCRAPE_MAX: Duration = Duration::from_secs(10);

/// CPU and memory of the server so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    /// User and system time of all its threads.
    pub(super) cpu: Duration,
    /// Resident memory.
    pub(super) resident_bytes: u64,
}

/// A running server.
pub(super) struct Child {
    process: std::process::Child,
    directory: Directory,
    url: String,
}

impl Child {
    /// Starts the server and waits until it listens.
    pub(super) fn start(plan: &Plan) -> Result<Self, SocketsError> {
        let failed = |error: std::io::Error| SocketsError::Server(error.to_string());
        let directory = Directory::new().map_err(failed)?;
        let log = fs::File::create(directory.path("log")).map_err(failed)?;
        let mut process = command(plan, &directory)?.stderr(log).spawn().map_err(failed)?;
        let mut line = String::new();
        let read = process.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        let mut child = Self { process, directory, url: String::new() };
        match (read, line.trim_end().strip_prefix("listening on ")) {
            (Some(Ok(_)), Some(url)) => url.clone_into(&mut child.url),
            _ => return Err(SocketsError::Server(child.last_words())),
        }
        Ok(child)
    }

    pub(super) fn address(&self) -> Result<Address, SocketsError> {
        Address::parse(&self.url).map_err(|error| SocketsError::Unreadable(error.to_string()))
    }

    pub(super) fn enrol(&self, person: &str, clip: &[u8]) -> Result<(), SocketsError> {
        let enrol = || {
            let client = Client::new(&self.url)?;
            client.put_person(person, &PersonChange::default())?;
            client.add_sample(person, clip, true)
        };
        enrol().map(|_| ()).map_err(|error| SocketsError::Unreadable(format!("enrolling {person}: {error}")))
    }

    pub(super) fn scrape(&self) -> Result<Scrape, SocketsError> {
        let unreadable = |error: ureq::Error| SocketsError::Unreadable(format!("/metrics: {error}"));
        let agent = ureq::Agent::config_builder().proxy(None).timeout_global(Some(SCRAPE_MAX)).build().new_agent();
        let mut answer = agent.get(format!("{}/metrics", self.url)).call().map_err(unreadable)?;
        let page = answer.body_mut().with_config().limit(PAGE_BYTES_MAX).read_to_string().map_err(unreadable)?;
        Ok(Scrape::read(&page))
    }

    pub(super) fn usage(&self) -> Result<Usage, SocketsError> {
        let read = |file| fs::read_to_string(format!("/proc/{}/{file}", self.process.id())).unwrap_or_default();
        let found = cpu(&read("stat")).zip(resident(&read("status")));
        let (cpu, resident_bytes) =
            found.ok_or_else(|| SocketsError::Unreadable("it has ended, or there is no /proc here".to_owned()))?;
        Ok(Usage { cpu, resident_bytes })
    }

    /// The time that its threads have run so far, to the nanosecond. A thread that has ended is left out, so this is for
    /// differences over a time in which none does.
    pub(super) fn running(&self) -> Result<Duration, SocketsError> {
        let unreadable = |error: std::io::Error| SocketsError::Unreadable(format!("its threads: {error}"));
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).map_err(unreadable)?;
        let ran = tasks.flatten().filter_map(|task| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Ok(Duration::from_nanos(ran.sum()))
    }

    /// The last line of its log.
    fn last_words(&mut self) -> String {
        let ended = self.process.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let log = fs::read_to_string(self.directory.path("log")).unwrap_or_default();
        let line = log.lines().next_back();
        line.map_or(ended, |line| line.strip_prefix("rollcall: ").unwrap_or(line).to_owned())
    }
}

impl Drop for Child {
    /// Every socket has had its goodbye, or the measurement failed: there is nothing left to wait for.
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The settings go along as a file; what the measurement needs otherwise are flags, which win over all sources.
fn command(plan: &Plan, directory: &Directory) -> Result<Command, SocketsError> {
    let failed = |error: &dyn std::fmt::Display| SocketsError::Server(error.to_string());
    let settings = toml::to_string(&plan.config).map_err(|error| failed(&error))?;
    let file = directory.path("rollcall.toml");
    fs::write(&file, settings).map_err(|error| failed(&error))?;
    let most = plan.config.sockets.sockets_max.max(plan.sockets);
    let mut command = Command::new(&plan.binary);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--model", &plan.config.extraction.model])
        .args(["--set", &format!("sockets.ring_seconds={}", plan.config.sockets.ring_seconds)])
        .args(["--set", &format!("sockets.sockets_max={most}")])
        .args(["--set", &format!("sockets.conversations_max={most}")])
        .arg("--config")
        .arg(file)
        .arg("--data")
        .arg(directory.path("data"))
        .envs(plan.environment.iter().map(|(name, value)| (*name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    Ok(command)
}

/// `utime` and `stime`, the 14th and 15th field; the second one is a name that may hold anything.
fn cpu(stat: &str) -> Option<Duration> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks(11)? + ticks(12)?) * 1000 / TICKS_PER_S))
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// How many files this process, and so its child, may have open.
pub(super) fn open_files_max() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The machine's load over the last minute.
pub(super) fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// A directory of its own that goes away.
struct Directory(PathBuf);

impl Directory {
    fn new() -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("rollcall-bench-{process}-{number}"));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.0).join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A directory that stays behind falsifies no measurement.
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the kernel's numbers are read from the right fields.
    //! Method: lines as the kernel writes them.

    use super::*;

    #[test]
    fn cpu_and_memory_are_read_past_any_name() {
        let stat = "12 (a ) b) S 1 1 1 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0 1 1 1";
        assert_eq!(cpu(stat), Some(Duration::from_secs(3)));
        assert_eq!(resident("VmHWM:\t  9 kB\nVmRSS:\t   12 kB\n"), Some(12_288));
        assert_eq!((cpu(""), resident("")), (None, None));
    }
}
