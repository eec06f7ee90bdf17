//! The chromedriver process and its one session: commands as JSON over HTTP, errors as panics that say what was asked.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::sync_channel;

use serde_json::Value;

use crate::server::PATIENCE;

const STARTS_MAX: u32 = 3;

/// See the module's text.
pub(super) struct Driver {
    process: Child,
    address: String,
    session: String,
}

impl Driver {
    /// `None` when the program is not installed.
    pub(super) fn start(capabilities: &Value) -> Option<Self> {
        let (process, port) = launch()?;
        let mut driver = Self { process, address: format!("127.0.0.1:{port}"), session: String::new() };
        let opened = driver.ask("POST", "/session", capabilities);
        driver.session = opened["sessionId"].as_str().expect("a session has an id").to_owned();
        Some(driver)
    }

    pub(super) fn post(&self, command: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}/{command}", self.session), body)
    }

    /// The command's value, or its error in a few words.
    pub(super) fn try_post(&self, command: &str, body: &Value) -> Result<Value, String> {
        self.try_ask("POST", &format!("/session/{}/{command}", self.session), body)
    }

    pub(super) fn get(&self, command: &str) -> Value {
        self.ask("GET", &format!("/session/{}/{command}", self.session), &Value::Null)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_ask(method, path, body).unwrap_or_else(|error| panic!("{method} {path} {body}: {error}"))
    }

    fn try_ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (is_done, mut answer) = exchange(&self.address, method, path, &body).map_err(|error| error.to_string())?;
        let value = answer["value"].take();
        if is_done {
            return Ok(value);
        }
        Err(format!("{}: {}", value["error"], value["message"].as_str().unwrap_or_default()))
    }
}

/// One command on one connection, which chromedriver keeps open: the answer ends where its length says. Answers whether
/// the command succeeded, and the JSON.
fn exchange(address: &str, method: &str, path: &str, body: &str) -> io::Result<(bool, Value)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    let head = "content-type: application/json\r\n";
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: {address}\r\n{head}content-length: {length}\r\n\r\n{body}")?;
    let mut answer = BufReader::new(stream);
    let (mut status, mut length) = (String::new(), 0);
    answer.read_line(&mut status)?;
    loop {
        let mut line = String::new();
        answer.read_line(&mut line)?;
        match line.trim_end().to_ascii_lowercase().split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().map_err(io::Error::other)?,
            Some(_) => {}
            None => break,
        }
    }
    let mut told = vec![0; length];
    answer.read_exact(&mut told)?;
    Ok((status.contains(" 200 "), serde_json::from_slice(&told)?))
}

/// Two that start at once can choose one free port, and then one of them ends; it is started again.
fn launch() -> Option<(Child, u16)> {
    for _ in 0..STARTS_MAX {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = match command.spawn() {
            Ok(process) => process,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => panic!("chromedriver is there and does not start: {error}"),
        };
        let output = process.stdout.take().expect("its output is piped");
        if let Some(port) = port(output) {
            return Some((process, port));
        }
        process.kill().ok();
        process.wait().ok();
    }
    panic!("chromedriver was started {STARTS_MAX} times and never said its port");
}

/// The port that it says it has. Whatever it writes later is read as well, so that it can go on writing.
fn port(output: ChildStdout) -> Option<u16> {
    let (found, heard) = sync_channel(1);
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let port =
                line.split("successfully on port ").nth(1).and_then(|port| port.trim_end_matches('.').parse().ok());
            // A second such line would be of no interest, nor one that comes when nobody waits any more.
            port.map(|port: u16| found.try_send(port).ok());
        }
    });
    heard.recv_timeout(PATIENCE).ok()
}

impl Drop for Driver {
    /// The session's end takes the browser along; a driver that is killed would leave it behind.
    fn drop(&mut self) {
        self.try_ask("DELETE", &format!("/session/{}", self.session), &Value::Null).ok();
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
