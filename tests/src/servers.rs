//! Extraction servers that are not ours, run with the shipped model: Triton, and an embedding service as others write it.
//!
//! `scripts/servers.sh` installs them. Where it did not run there is none, and whoever asks gets nothing: a test says so and
//! leaves the matter out. A server ends with its handle.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// One of them. It may still be loading when it is handed out.
pub struct Foreign {
    process: Child,
    url: String,
}

impl Foreign {
    /// The embedding service. Its paths are `/v2/embedding`, which answers with an array, and `/v2/embedding/named`, which
    /// answers with an object.
    #[must_use]
    pub fn embedding(home: &Path) -> Option<Self> {
        let python = installed(home, "servers/bin/python")?;
        let mut command = Command::new(python);
        command.arg(sources().join("embedding/service.py")).arg(model(home)).stdout(Stdio::piped());
        let mut process = command.stdin(Stdio::piped()).spawn().expect("an installed program starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut line).expect("its output is text");
        let port: u16 = line.trim().parse().expect("it says on which port it listens, unless it cannot be loaded");
        Some(Self { process, url: format!("http://127.0.0.1:{port}") })
    }

    /// Triton, with the model as `speaker`.
    #[must_use]
    pub fn triton(home: &Path) -> Option<Self> {
        let triton = installed(home, "servers/triton")?;
        let triton = triton.canonicalize().expect("it was just found");
        let site = triton.ancestors().nth(2).expect("it lies in a package").to_owned();
        let python = home.join("servers").canonicalize().expect("it was just found");
        let path = std::env::var("PATH").unwrap_or_default();
        let port = free_port();
        let mut command = Command::new(triton.join("bin/tritonserver"));
        command
            .arg(format!("--model-repository={}", sources().join("triton").display()))
            .arg(format!("--backend-directory={}", triton.join("backends").display()))
            .arg(format!("--http-port={port}"))
            .args(["--http-address=127.0.0.1", "--allow-grpc=false", "--allow-metrics=false", "--log-info=false"])
            .env("LD_LIBRARY_PATH", site.join("nvidia_pytriton.libs"))
            .env("PATH", format!("{}:{path}", python.join("bin").display()))
            .env("VIRTUAL_ENV", &python)
            .env("SPEAKER_ONNX", model(home))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn().expect("an installed program starts");
        Some(Self { process, url: format!("http://127.0.0.1:{port}") })
    }

    /// Its address, with a path behind it.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // What has ended already is as good.
        self.process.kill().unwrap_or_default();
        drop(self.process.wait());
    }
}

/// What was installed at this place, or a word about its absence.
fn installed(home: &Path, place: &str) -> Option<PathBuf> {
    let path = home.join(place);
    if path.exists() {
        return Some(path);
    }
    println!("left out: there is no {}; scripts/servers.sh installs it", path.display());
    None
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/gpu-worker/tests")
}

fn model(home: &Path) -> PathBuf {
    home.join("models/campplus/campplus.onnx").canonicalize().expect("the shipped model is installed; run `make setup`")
}

/// Free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listener.local_addr().expect("it listens").port()
}
