//! The chromedriver process and its one session: commands as JSON, errors as panics that say what was asked.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::server::http;

/// See the module's text.
pub(super) struct Driver {
    process: Child,
    address: String,
    session: String,
}

impl Driver {
    /// `None` when the program is not installed.
    pub(super) fn start(capabilities: &Value) -> Option<Self> {
        let mut process = Command::new("chromedriver")
            .args(["--port=0", "--silent"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let output = process.stdout.take().expect("its output is piped");
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let port = lines.find_map(|line| line.split("successfully on port ").nth(1)?.trim_end_matches('.').parse::<u16>().ok());
        let port = port.expect("a chromedriver that starts says its port");
        // It must be able to go on writing.
        std::thread::spawn(move || lines.for_each(drop));
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
        let headers = [("content-type", "application/json")];
        let answer = http(&self.address, method, path, &headers, body.as_bytes()).map_err(|error| error.to_string())?;
        let value = answer.json()["value"].take();
        if answer.status == 200 {
            return Ok(value);
        }
        Err(format!("{}: {}", value["error"], value["message"].as_str().unwrap_or_default()))
    }
}

impl Drop for Driver {
    /// The session's end takes the browser along; a driver that is killed would leave it behind.
    fn drop(&mut self) {
        self.try_ask("DELETE", &format!("/session/{}", self.session), &Value::Null).ok();
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
