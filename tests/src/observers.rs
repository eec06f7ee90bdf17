//! Programs that operators run beside the service, and that must understand it: a collector, and Prometheus.
//!
//! `scripts/rotel.sh` and `scripts/setup.sh dev` install them into `.rollcall`. Where one is not there, whoever asks gets
//! nothing: a test says so and leaves the matter out. A program ends with its handle.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::directory::Directory;

/// One of them.
pub struct Observer {
    process: Child,
    address: String,
    _directory: Directory,
}

impl Observer {
    /// A real collector, which hands everything on to another one.
    ///
    /// # Panics
    /// When it is there and does not start.
    #[must_use]
    pub fn rotel(onwards: &str) -> Option<Self> {
        let program = installed("rotel/agent")?;
        let (directory, address, grpc) = (Directory::new(), free(), free());
        let mut command = Command::new(program);
        command
            .args(["start", "--otlp-http-endpoint", &address, "--otlp-grpc-endpoint", &grpc])
            .args(["--exporter", "otlp", "--otlp-exporter-endpoint", onwards, "--otlp-exporter-protocol", "http"])
            .args(["--batch-timeout", "50ms"])
            .arg("--pid-file")
            .arg(directory.file("pid"))
            .arg("--log-file")
            .arg(directory.file("log"));
        Some(Self::spawn(command, address, directory))
    }

    /// Prometheus with storage for exemplars, which scrapes a server five times a second.
    ///
    /// # Panics
    /// When it is there and does not start.
    #[must_use]
    pub fn prometheus(server: &str) -> Option<Self> {
        let program = installed("bin/prometheus")?;
        let (directory, address) = (Directory::new(), free());
        let targets = format!("static_configs: [{{targets: ['{server}']}}]");
        let config = format!(
            "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\nscrape_configs:\n- job_name: rollcall\n  {targets}\n"
        );
        std::fs::write(directory.file("prometheus.yml"), config).expect("the test's directory is writable");
        let mut command = Command::new(program);
        command
            .arg(format!("--config.file={}", directory.file("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", directory.file("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--enable-feature=exemplar-storage");
        Some(Self::spawn(command, address, directory))
    }

    /// Host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    fn spawn(mut command: Command, address: String, directory: Directory) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { process: command.spawn().expect("an installed program starts"), address, _directory: directory }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A port that was free a moment ago.
fn free() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").to_string()
}

/// What was installed at this place, or a word about its absence.
fn installed(place: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.rollcall").join(place);
    if path.exists() {
        return Some(path);
    }
    println!(
        "left out: there is no {}; scripts/rotel.sh and scripts/setup.sh dev install what is missing",
        path.display()
    );
    None
}
