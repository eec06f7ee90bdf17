//! What an operator says about the extraction servers, and the check of it. Nothing is looked up or connected here.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::address::Address;
use super::circuit;

/// Endpoints of one service. 16: each has a thread that looks after it, and a larger fleet belongs behind a balancer.
const ENDPOINTS_MAX: usize = 16;

/// What is spoken with the endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// The Open Inference Protocol, also called KServe v2, over HTTP with binary tensors, as NVIDIA Triton speaks it.
    /// An endpoint is a base address; features are computed here, so that 10 s of speech travel as 320 kB.
    OpenInference,
    /// An embedding service: `POST` of a WAV file as the multipart field `file`, answered with a JSON array or an object
    /// whose `embedding` is one. An endpoint is the whole address, such as `http://10.0.0.7:9000/v2/embedding`.
    Embedding,
}

/// Where voiceprints are computed, when not here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What is spoken with the endpoints.
    pub protocol: Protocol,
    /// Their addresses, 1 to 16, `http://HOST[:PORT][/PATH]`. All of them must run the manifest's model.
    pub endpoints: Vec<String>,
    /// The model's name on the server; only for `open_inference`.
    #[serde(default)]
    pub model: Option<String>,
    /// The name of the model's input, when the server tells of more than one.
    #[serde(default)]
    pub input: Option<String>,
    /// The name of the model's output, when the server tells of more than one.
    #[serde(default)]
    pub output: Option<String>,
    /// Seconds that an answer may take. 2: within the pool's own deadline for a run (3 s), and twenty times what 10 s of
    /// audio take on one core.
    #[serde(default = "timeout_seconds")]
    pub timeout_seconds: f64,
    /// Seconds that connecting may take. 0.5: a machine in the same data centre takes milliseconds.
    #[serde(default = "connect_seconds")]
    pub connect_seconds: f64,
    /// Seconds between two looks at an endpoint that is in service. 5: a server that is about to stop says so before.
    #[serde(default = "check_seconds")]
    pub check_seconds: f64,
    /// Failures in a row after which an endpoint is given a rest.
    #[serde(default = "failures_max")]
    pub failures_max: u32,
    /// Seconds of the longest rest; the first is 0.25, and each is twice the one before.
    #[serde(default = "pause_max_seconds")]
    pub pause_max_seconds: f64,
}

fn timeout_seconds() -> f64 {
    2.0
}

fn connect_seconds() -> f64 {
    0.5
}

fn check_seconds() -> f64 {
    5.0
}

fn failures_max() -> u32 {
    circuit::Limits::default().failures_max
}

fn pause_max_seconds() -> f64 {
    circuit::Limits::default().pause_max.as_secs_f64()
}

/// What is wrong with a setting, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {trouble}")]
pub struct ConfigError {
    /// Which field.
    pub field: &'static str,
    /// What is wrong with it.
    pub trouble: String,
}

impl ConfigError {
    pub(super) fn new(field: &'static str, trouble: impl fmt::Display) -> Self {
        Self { field, trouble: trouble.to_string() }
    }
}

impl Config {
    /// These endpoints, with every other setting at its default.
    #[must_use]
    pub fn new(protocol: Protocol, endpoints: Vec<String>) -> Self {
        Self {
            protocol,
            endpoints,
            model: None,
            input: None,
            output: None,
            timeout_seconds: timeout_seconds(),
            connect_seconds: connect_seconds(),
            check_seconds: check_seconds(),
            failures_max: failures_max(),
            pause_max_seconds: pause_max_seconds(),
        }
    }

    /// Checks every field. Connects to nothing.
    ///
    /// # Errors
    /// The first field that cannot be used, and how to mend it.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.plan().map(drop)
    }

    pub(super) fn plan(&self) -> Result<Plan, ConfigError> {
        let seconds = |field, value, low, high| seconds(field, value, (low, high));
        if !(1..=100).contains(&self.failures_max) {
            return Err(ConfigError::new("failures_max", format!("is {}; it must be 1 to 100", self.failures_max)));
        }
        let pause_max = seconds("pause_max_seconds", self.pause_max_seconds, 0.01, 3600.0)?;
        let pause_first = circuit::Limits::default().pause_first.min(pause_max);
        Ok(Plan {
            addresses: self.addresses()?,
            speech: self.speech()?,
            timeout: seconds("timeout_seconds", self.timeout_seconds, 0.01, 60.0)?,
            connect: seconds("connect_seconds", self.connect_seconds, 0.01, 60.0)?,
            check_every: seconds("check_seconds", self.check_seconds, 0.01, 3600.0)?,
            circuit: circuit::Limits { failures_max: self.failures_max, pause_first, pause_max },
        })
    }

    fn addresses(&self) -> Result<Vec<Address>, ConfigError> {
        if !(1..=ENDPOINTS_MAX).contains(&self.endpoints.len()) {
            let trouble = format!("names {} endpoints; it must name 1 to {ENDPOINTS_MAX}", self.endpoints.len());
            return Err(ConfigError::new("endpoints", trouble));
        }
        let mut addresses: Vec<Address> = Vec::new();
        for text in &self.endpoints {
            let address = Address::parse(text).map_err(|trouble| ConfigError::new("endpoints", trouble))?;
            if addresses.contains(&address) {
                return Err(ConfigError::new("endpoints", format!("names {text} twice")));
            }
            addresses.push(address);
        }
        Ok(addresses)
    }

    fn speech(&self) -> Result<Speech, ConfigError> {
        match (self.protocol, &self.model) {
            (Protocol::OpenInference, Some(model)) => {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
                // It becomes a part of the path.
                if model.is_empty() || model.starts_with('.') || !model.bytes().all(plain) {
                    let trouble = format!("is {model:?}; a model's name has letters, digits and ._- only");
                    return Err(ConfigError::new("model", trouble));
                }
                let (input, output) = (self.input.clone(), self.output.clone());
                Ok(Speech::OpenInference { model: model.clone(), input, output })
            }
            (Protocol::OpenInference, None) => {
                Err(ConfigError::new("model", "is not set; the protocol open_inference asks for a model by its name"))
            }
            (Protocol::Embedding, None) if self.input.is_none() && self.output.is_none() => Ok(Speech::Embedding),
            (Protocol::Embedding, _) => {
                let field = if self.model.is_some() { "model" } else { "input" };
                Err(ConfigError::new(
                    field,
                    "means nothing to the protocol embedding, which has one model; leave it out",
                ))
            }
        }
    }
}

fn seconds(field: &'static str, value: f64, allowed: (f64, f64)) -> Result<Duration, ConfigError> {
    // NaN is in no range.
    if value >= allowed.0 && value <= allowed.1 {
        return Ok(Duration::from_secs_f64(value));
    }
    let trouble = format!("is {value}; it must lie between {} and {} seconds", allowed.0, allowed.1);
    Err(ConfigError::new(field, trouble))
}

/// A checked [`Config`].
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) addresses: Vec<Address>,
    pub(super) speech: Speech,
    pub(super) timeout: Duration,
    pub(super) connect: Duration,
    pub(super) check_every: Duration,
    pub(super) circuit: circuit::Limits,
}

/// What is spoken, with what it needs.
#[derive(Debug, Clone)]
pub(super) enum Speech {
    OpenInference { model: String, input: Option<String>, output: Option<String> },
    Embedding,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triton(endpoint: &str) -> Config {
        let config = Config::new(Protocol::OpenInference, vec![endpoint.to_owned()]);
        Config { model: Some("speaker".to_owned()), ..config }
    }

    #[test]
    fn an_address_that_cannot_be_used_is_named_with_its_mend() {
        for text in
            ["10.0.0.7:8000", "http://", "http://:80", "http://a b", "http://a:0", "http://a:70000", "http://u@a"]
        {
            let error = triton(text).check().unwrap_err();
            assert!(error.to_string().starts_with("endpoints names"), "{error}");
        }
        for text in ["http://a:1/x?y", "http://a:1/x\r\nHost:b", "http://[::1", "http://::1:80"] {
            assert!(triton(text).check().is_err(), "{text}");
        }
        assert!(triton("https://a").check().unwrap_err().to_string().contains("tunnel"));
    }

    #[test]
    fn every_field_out_of_its_range_is_named() {
        let good = triton("http://a");
        assert_eq!(good.check(), Ok(()));
        let named = |config: Config| config.check().unwrap_err().field;
        assert_eq!(named(Config { endpoints: vec![], ..good.clone() }), "endpoints");
        assert_eq!(named(Config { endpoints: vec!["http://a".to_owned(); 2], ..good.clone() }), "endpoints");
        assert_eq!(named(Config { model: None, ..good.clone() }), "model");
        assert_eq!(named(Config { model: Some("../x".to_owned()), ..good.clone() }), "model");
        assert_eq!(named(Config { protocol: Protocol::Embedding, ..good.clone() }), "model");
        assert_eq!(named(Config { timeout_seconds: f64::NAN, ..good.clone() }), "timeout_seconds");
        assert_eq!(named(Config { connect_seconds: 0.0, ..good.clone() }), "connect_seconds");
        assert_eq!(named(Config { check_seconds: -1.0, ..good.clone() }), "check_seconds");
        assert_eq!(named(Config { failures_max: 0, ..good.clone() }), "failures_max");
        assert_eq!(named(Config { pause_max_seconds: f64::INFINITY, ..good }), "pause_max_seconds");
    }

    #[test]
    fn what_is_left_out_of_a_file_has_its_default() {
        let read = serde_json::from_str::<Config>(r#"{"protocol":"embedding","endpoints":["http://a/v2/embedding"]}"#);
        let config = read.unwrap();
        assert_eq!(config, Config::new(Protocol::Embedding, vec!["http://a/v2/embedding".to_owned()]));
        assert_eq!(config.check(), Ok(()));
        assert!(serde_json::from_str::<Config>(r#"{"protocol":"grpc","endpoints":[]}"#).is_err());
    }
}
