//! A real server process for the system tests: the built binary, a store of its own, the scripted model.
//!
//! It is built once a test run, listens on a free port, and is killed with its handle. What is said to it over HTTP is
//! plain text on a TCP connection, so that no client library stands between a test and what the server answers.

mod http;
mod page;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use http::{Answer, http};
pub use page::{Page, promtool};

use crate::directory::Directory;
use crate::sound;

/// Long enough for a machine that does ten other things; reached only when something is wrong.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How long a stop may take, as the contract says.
pub const STOP_MAX: Duration = Duration::from_secs(10);

/// See the module's text.
pub struct Server {
    process: Child,
    address: String,
    directory: Arc<Directory>,
}

impl Server {
    /// A server with the default settings.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A server with `section.field=value` settings.
    #[must_use]
    pub fn start_with(settings: &[&str]) -> Self {
        Self::start_in(Arc::new(Directory::new()), settings, &[])
    }

    /// The same with environment variables of its own.
    #[must_use]
    pub fn start_under(variables: &[(&str, &str)], settings: &[&str]) -> Self {
        Self::start_in(Arc::new(Directory::new()), settings, variables)
    }

    /// A server with the model that `home` has by default, instead of the scripted one.
    #[must_use]
    pub fn start_at_home(home: &Path) -> Self {
        Self::spawn(Arc::new(Directory::new()), home, &[], &[])
    }

    /// Ends the process without a warning.
    pub fn kill(&mut self) {
        self.process.kill().expect("the process can be killed");
        self.process.wait().expect("a killed process ends");
    }

    /// Another server with the same store, after this one has ended.
    #[must_use]
    pub fn again(&self) -> Self {
        Self::start_in(self.directory.clone(), &[], &[])
    }

    fn start_in(directory: Arc<Directory>, settings: &[&str], variables: &[(&str, &str)]) -> Self {
        let home = directory.file("home");
        let scripted =
            ["--model", "scripted"].into_iter().chain(settings.iter().flat_map(|setting| ["--set", *setting]));
        Self::spawn(directory, &home, &scripted.collect::<Vec<_>>(), variables)
    }

    fn spawn(directory: Arc<Directory>, home: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let log = File::create(directory.file("log")).expect("the test's directory is writable");
        let mut command = Command::new(binary());
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "json"])
            .args(arguments)
            .arg("--data")
            .arg(directory.file("data"))
            .env("ROLLCALL_HOME", home)
            .envs(variables.iter().copied())
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut process = command.spawn().expect("the binary was built, so it starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut line).expect("its output is text");
        let Some(address) = line.trim_end().strip_prefix("listening on http://") else {
            let log = std::fs::read_to_string(directory.file("log")).unwrap_or_default();
            panic!("the server did not start: {line:?} {log}");
        };
        Self { address: address.to_owned(), process, directory }
    }

    /// Host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The server's URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A GET.
    #[must_use]
    pub fn get(&self, path: &str) -> Answer {
        http(&self.address, "GET", path, &[], b"").expect("the server answers")
    }

    /// A POST of JSON.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        http(&self.address, "POST", path, &headers, body.to_string().as_bytes()).expect("the server answers")
    }

    /// A DELETE.
    #[must_use]
    pub fn delete(&self, path: &str) -> Answer {
        http(&self.address, "DELETE", path, &[], b"").expect("the server answers")
    }

    /// Enrols a person whose voice is a tone of `hertz`.
    pub fn enrol(&self, person: &str, hertz: u32, is_owner: bool) {
        let made = self.post("/v1/people", &json!({"id": person, "owner": is_owner}));
        assert_eq!(made.status, 201, "{}", made.body);
        let clip = sound::wav(&sound::tone(hertz, 4.0));
        let path = format!("/v1/people/{person}/samples");
        let taken = http(&self.address, "POST", &path, &[("content-type", "audio/wav")], &clip).expect("it answers");
        assert_eq!(taken.status, 201, "{}", taken.body);
    }

    /// The metrics page.
    #[must_use]
    pub fn metrics(&self) -> Page {
        Page::read(&self.get("/metrics").body)
    }

    /// What one conversation looks like.
    #[must_use]
    pub fn conversation(&self, id: &str) -> Value {
        self.get(&format!("/v1/conversations/{id}")).json()
    }

    /// Resident memory of the process.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel tells");
        let kilobytes: u64 = line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number");
        kilobytes * 1024
    }

    /// Everything that the server has logged.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.file("log")).expect("its log is a file")
    }

    /// A place of this test that goes away with the server.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.file(name)
    }

    /// A file of this test that goes away with the server.
    #[must_use]
    pub fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.directory.file(name);
        std::fs::write(&path, content).expect("the test's directory is writable");
        path
    }

    /// Sends SIGTERM and returns at once.
    pub fn terminate(&self) {
        let command = format!("kill -TERM {}", self.process.id());
        let sent = Command::new("sh").args(["-c", &command]).status().expect("every system has a shell");
        assert!(sent.success(), "the server was gone before it was told to stop");
    }

    /// Waits until the process has ended.
    ///
    /// # Panics
    /// When it takes longer than a stop may take.
    pub fn ended(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().expect("it is our child") {
                return status;
            }
            assert!(since.elapsed() < STOP_MAX, "the server did not stop in time: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been told to stop by its test.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The built binary. Cargo knows whether it is up to date.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its own path");
        let profile = test.ancestors().nth(2).expect("a test lies in target/PROFILE/deps");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "gateway", "--bin", "rollcall"]);
        if profile.ends_with("release") {
            build.arg("--release");
        }
        let built =
            build.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs this test, so it is there");
        assert!(built.success(), "the binary cannot be built");
        profile.join("rollcall")
    })
}

/// Waits until `condition` gives something.
///
/// # Panics
/// When that takes longer than anything here should.
pub async fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "{what}: did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
