//! The client of a running server's HTTP interface, for the commands that take `--server URL`.
//!
//! Blocking, one request at a time, every wait bounded. A problem document becomes one line.

use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::{Response, StatusCode};

use super::CliError;
use crate::client::Address;
use crate::people::path_segment;
use crate::store::PersonChange;

/// A sample may wait for its upload turn and for a worker; a server that takes longer has gone.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// Somebody listens on this machine or in its network, or nobody does.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// A list of a thousand people is far below.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// A server that is spoken to.
pub struct Client {
    agent: Agent,
    base: String,
}

/// What a server answered.
struct Answer {
    status: StatusCode,
    json: Value,
}

impl Client {
    /// A client of the server at `url`, such as `http://127.0.0.1:8700`. Nothing is sent yet.
    ///
    /// # Errors
    /// When the URL is not one.
    pub fn new(url: &str) -> Result<Self, CliError> {
        let address = Address::parse(url).map_err(|wrong| CliError::input(format!("--server {wrong}")))?;
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_connect(Some(CONNECT_MAX))
            .timeout_global(Some(ANSWER_MAX))
            .build()
            .new_agent();
        Ok(Self { agent, base: address.url().to_owned() })
    }

    /// Everybody, as the server shows them.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn people(&self) -> Result<Vec<Value>, CliError> {
        let answer = self.answer(self.agent.get(self.url("/v1/people")).call())?;
        match self.accepted(answer)?.get_mut("people").map(Value::take) {
            Some(Value::Array(people)) => Ok(people),
            Some(_) | None => Err(self.not_rollcall()),
        }
    }

    /// One person, as the server shows one.
    ///
    /// # Errors
    /// When the server cannot be reached, or there is no such person.
    pub fn person(&self, id: &str) -> Result<Value, CliError> {
        let answer = self.answer(self.agent.get(self.person_url(id)).call())?;
        self.accepted(answer)
    }

    /// Makes a person, or changes one that exists. Answers whether it was made.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn put_person(&self, id: &str, change: &PersonChange) -> Result<bool, CliError> {
        let body = json!({"id": id, "name": change.name, "owner": change.is_owner, "is_pinned": change.is_pinned});
        let request = self.agent.post(self.url("/v1/people")).content_type("application/json");
        let answer = self.answer(request.send(body.to_string()))?;
        if answer.json.get("code").and_then(Value::as_str) != Some("person_exists") {
            return self.accepted(answer).map(|_| true);
        }
        if *change != PersonChange::default() {
            let body = json!({"name": change.name, "owner": change.is_owner, "is_pinned": change.is_pinned});
            let request = self.agent.patch(self.person_url(id)).content_type("application/json");
            let answer = self.answer(request.send(body.to_string()))?;
            self.accepted(answer)?;
        }
        Ok(false)
    }

    /// Sends one audio file. Answers the server's report.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses the sample.
    pub fn add_sample(&self, id: &str, audio: &[u8], force: bool) -> Result<Value, CliError> {
        let url = format!("{}/samples?force={force}", self.person_url(id));
        let answer = self.answer(self.agent.post(url).content_type("application/octet-stream").send(audio))?;
        self.accepted(answer)
    }

    /// Deletes a person.
    ///
    /// # Errors
    /// When the server cannot be reached, or there is no such person.
    pub fn delete_person(&self, id: &str) -> Result<(), CliError> {
        let answer = self.answer(self.agent.delete(self.person_url(id)).call())?;
        self.accepted(answer).map(|_| ())
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn person_url(&self, id: &str) -> String {
        self.url(&format!("/v1/people/{}", path_segment(id)))
    }

    fn answer(&self, result: Result<Response<ureq::Body>, ureq::Error>) -> Result<Answer, CliError> {
        let unreachable = |error: ureq::Error| CliError::failed(format!("--server {}: {error}", self.base));
        let mut response = result.map_err(unreachable)?;
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string().map_err(unreachable)?;
        if body.is_empty() {
            return Ok(Answer { status: response.status(), json: Value::Null });
        }
        let json = serde_json::from_str(&body).map_err(|_| self.not_rollcall())?;
        Ok(Answer { status: response.status(), json })
    }

    /// What a 2xx brought; anything else is the server's reason.
    fn accepted(&self, answer: Answer) -> Result<Value, CliError> {
        if answer.status.is_success() {
            return Ok(answer.json);
        }
        let Some(detail) = answer.json.get("detail").and_then(Value::as_str) else { return Err(self.not_rollcall()) };
        if answer.status.is_client_error() { Err(CliError::input(detail)) } else { Err(CliError::failed(detail)) }
    }

    fn not_rollcall(&self) -> CliError {
        CliError::failed(format!("--server {}: what answers there is not Rollcall", self.base))
    }
}
