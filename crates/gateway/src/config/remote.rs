//! The settings of remote extraction as the worker takes them, and what can be wrong with them.
//!
//! Their ranges stand with the other sections; what one of them means to a protocol is the worker's to say. Nothing is
//! looked up or connected here.

use gpu_worker::remote;

use super::{Config, ConfigError, Remote, at_most};

impl Config {
    /// What is asked of other machines, when `extraction.engine` says that they compute the voiceprints.
    ///
    /// # Errors
    /// Names the field that is wrong, its value and what is allowed.
    pub fn remote(&self) -> Result<Option<remote::Config>, ConfigError> {
        match self.extraction.engine.as_str() {
            "local" => Ok(None),
            "remote" => self.asked_elsewhere().map(Some),
            other => {
                Err(ConfigError::new("extraction.engine", format!("is {other:?}; it can be \"local\" or \"remote\"")))
            }
        }
    }

    fn asked_elsewhere(&self) -> Result<remote::Config, ConfigError> {
        // A run that ends first would replace a worker for the server's slowness.
        at_most(
            ("remote.timeout_seconds", self.remote.timeout_seconds),
            ("extraction.run_deadline_seconds", self.extraction.run_deadline_seconds),
        )?;
        let servers = self.remote.servers(&self.extraction.model)?;
        servers.check().map_err(|error| ConfigError::new(format!("remote.{}", error.field), error.trouble))?;
        Ok(servers)
    }
}

impl Remote {
    fn servers(&self, model: &str) -> Result<remote::Config, ConfigError> {
        let protocol = match self.protocol.as_str() {
            "open_inference" => remote::Protocol::OpenInference,
            "embedding" => remote::Protocol::Embedding,
            other => {
                let trouble = format!("is {other:?}; it can be \"open_inference\" or \"embedding\"");
                return Err(ConfigError::new("remote.protocol", trouble));
            }
        };
        let Some(endpoints) = &self.endpoints else {
            let trouble = "is not set, and extraction.engine is \"remote\"; name the servers, such as \
                           \"http://10.0.0.7:8000\"";
            return Err(ConfigError::new("remote.endpoints", trouble));
        };
        let named = match protocol {
            remote::Protocol::OpenInference => Some(self.model.as_deref().unwrap_or(model).to_owned()),
            remote::Protocol::Embedding => self.model.clone(),
        };
        Ok(remote::Config {
            protocol,
            endpoints: endpoints.split(',').map(|endpoint| endpoint.trim().to_owned()).collect(),
            model: named,
            input: self.input.clone(),
            output: self.output.clone(),
            timeout_seconds: self.timeout_seconds,
            connect_seconds: self.connect_seconds,
            check_seconds: self.check_seconds,
            failures_max: self.failures_max,
            pause_max_seconds: self.pause_max_seconds,
        })
    }
}
