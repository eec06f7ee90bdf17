//! The one typed configuration of every command: where its values come from, and what is wrong with them.
//!
//! Sources, each over the one before: built-in defaults, the file (`rollcall.toml` or `--config`), the environment
//! (`ROLLCALL_SECTION__FIELD`), `--set section.field=value`. The fields, their units, ranges and reasons stand in
//! [`sections`]; this file only lays the sources over one another and checks what one field alone cannot know.
//! It reads no model: thresholds that are left out come from the model's manifest.

mod home;
mod layers;
mod provider;
mod remote;
mod section;
mod sections;
mod switch;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use home::{Home, home};
use layers::{Layers, field_of_variable};
pub use section::ConfigError;
pub use sections::{Budget, Extraction, History, Matching, Queue, Remote, Server, Sockets};
pub use switch::Switch;

/// The file that is read when no `--config` is given and it exists in the working directory.
pub const FILE_NAME: &str = "rollcall.toml";

/// Every setting of Rollcall.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the service listens and keeps its data.
    pub server: Server,
    /// What a voice and a socket may ask of the model.
    pub budget: Budget,
    /// How queued voices are held and ordered.
    pub queue: Queue,
    /// When a voice is examined, and what counts as a person.
    pub matching: Matching,
    /// What is kept of conversations that are over.
    pub history: History,
    /// The model and the workers that run it.
    pub extraction: Extraction,
    /// The servers that compute voiceprints, when this process does not.
    pub remote: Remote,
    /// What one socket, and all of them, may hold.
    pub sockets: Sockets,
}

/// Where settings are read from. The environment is a value, so that a test can bring its own.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// A file that must exist; without it [`FILE_NAME`] is read when it exists.
    pub file: Option<PathBuf>,
    /// Name and value of each environment variable.
    pub environment: Vec<(String, String)>,
    /// `section.field=value`, in the order given.
    pub set: Vec<String>,
}

impl Config {
    /// Reads every source and checks the result.
    ///
    /// # Errors
    /// When a file cannot be read, or a source names an unknown field or a value out of its range.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let mut layers = Layers::default();
        if let Some(path) = file_to_read(sources) {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| ConfigError::new(path.display(), format!("cannot be read: {error}")))?;
            layers.add_file(&path, &text)?;
        }
        for (name, value) in &sources.environment {
            if let Some(field) = field_of_variable(name) {
                layers.add_override(name, &field, value)?;
            }
        }
        for assignment in &sources.set {
            let Some((field, value)) = assignment.split_once('=') else {
                return Err(ConfigError::new(
                    format!("--set {assignment}"),
                    "is not section.field=value; for example --set budget.voice_attempts=8",
                ));
            };
            layers.add_override(&format!("--set {}", field.trim()), field.trim(), value.trim())?;
        }
        layers.config.validate()?;
        Ok(layers.config)
    }

    /// Checks every field against its range, and fields against one another.
    ///
    /// # Errors
    /// Names the first field that is wrong, its value, what is allowed and the mend.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.server.check("server")?;
        self.budget.check("budget")?;
        self.queue.check("queue")?;
        self.matching.check("matching")?;
        self.history.check("history")?;
        self.extraction.check("extraction")?;
        self.remote.check("remote")?;
        self.sockets.check("sockets")?;
        self.check_listen()?;
        self.check_log()?;
        self.check_clips()?;
        self.check_suggestions()?;
        self.check_answers()?;
        self.check_deadlines()?;
        self.check_new_speech()?;
        self.remote()?;
        self.provider()?;
        Ok(())
    }

    /// The address to listen on.
    ///
    /// # Errors
    /// When `server.listen` is not an address with a port.
    pub fn listen(&self) -> Result<SocketAddr, ConfigError> {
        self.server.listen.parse().map_err(|_| {
            ConfigError::new(
                "server.listen",
                format!("is {:?}, not an IP address with a port; for example 127.0.0.1:8700", self.server.listen),
            )
        })
    }

    /// The data directory: `server.data`, or `data` below the home directory.
    #[must_use]
    pub fn data(&self, home: &Home) -> PathBuf {
        self.server.data.as_ref().map_or_else(|| home.path().join("data"), PathBuf::from)
    }

    /// A commented file with every field at its default. Reading it gives [`Config::default`].
    #[must_use]
    pub fn example_toml() -> String {
        let defaults = Self::default();
        let mut text = String::from(
            "# Rollcall's settings, each at its default. A line that starts with `#` and names a field is a field that has no\n\
             # default of its own. Everything here can also be set with ROLLCALL_SECTION__FIELD or --set section.field=value.\n",
        );
        defaults.server.write_example("server", &mut text);
        defaults.budget.write_example("budget", &mut text);
        defaults.queue.write_example("queue", &mut text);
        defaults.matching.write_example("matching", &mut text);
        defaults.history.write_example("history", &mut text);
        defaults.extraction.write_example("extraction", &mut text);
        defaults.remote.write_example("remote", &mut text);
        defaults.sockets.write_example("sockets", &mut text);
        text
    }

    fn check_listen(&self) -> Result<(), ConfigError> {
        if self.listen()?.ip().is_loopback() {
            return Ok(());
        }
        Err(ConfigError::new(
            "server.listen",
            format!(
                "is {:?}, which other machines can reach, and no keys are configured; use 127.0.0.1 or [::1], and a proxy that \
                 checks who calls in front",
                self.server.listen
            ),
        ))
    }

    fn check_log(&self) -> Result<(), ConfigError> {
        if matches!(self.server.log.as_str(), "text" | "json") {
            return Ok(());
        }
        Err(ConfigError::new("server.log", format!("is {:?}; it can be \"text\" or \"json\"", self.server.log)))
    }

    fn check_clips(&self) -> Result<(), ConfigError> {
        let matching = &self.matching;
        at_most(
            ("matching.clip_hard_minimum_seconds", matching.clip_hard_minimum_seconds),
            ("matching.clip_minimum_seconds", matching.clip_minimum_seconds),
        )?;
        at_most(
            ("matching.clip_minimum_seconds", matching.clip_minimum_seconds),
            ("matching.query_seconds_max", matching.query_seconds_max),
        )?;
        at_most(
            ("matching.evidence_seconds", matching.evidence_seconds),
            (
                "matching.clips_kept × matching.query_seconds_max",
                f64::from(matching.clips_kept) * matching.query_seconds_max,
            ),
        )?;
        at_most(
            ("matching.query_seconds_max", matching.query_seconds_max),
            ("sockets.ring_seconds", self.sockets.ring_seconds),
        )
    }

    /// Only what is set here can contradict itself; a distance that is left out comes from a manifest that was checked, and a
    /// band that ends before it begins holds nothing.
    fn check_suggestions(&self) -> Result<(), ConfigError> {
        let matching = &self.matching;
        if let (Some(threshold), Some(bound)) = (matching.threshold, matching.suggestion_bound) {
            at_most(("matching.threshold", threshold), ("matching.suggestion_bound", bound))?;
        }
        if let (Some(suggestion), Some(margin)) = (matching.suggestion_margin, matching.margin) {
            at_most(("matching.suggestion_margin", suggestion), ("matching.margin", margin))?;
        }
        Ok(())
    }

    /// One message may be answered by an event for each of its segments; a client that reads must not be closed for it.
    fn check_answers(&self) -> Result<(), ConfigError> {
        let sockets = &self.sockets;
        at_most(
            ("sockets.segments_per_message × 2", f64::from(sockets.segments_per_message) * 2.0),
            ("sockets.outbound_events", f64::from(sockets.outbound_events)),
        )
    }

    /// A voice never has more speech that no query has used than the ring holds.
    fn check_new_speech(&self) -> Result<(), ConfigError> {
        let ring = ("sockets.ring_seconds", self.sockets.ring_seconds);
        at_most(("budget.renewal_speech_seconds", self.budget.renewal_speech_seconds), ring)?;
        if self.budget.relaxed_tokens == 0 {
            return Ok(());
        }
        at_most(("budget.relaxed_speech_seconds", self.budget.relaxed_speech_seconds), ring)
    }

    fn check_deadlines(&self) -> Result<(), ConfigError> {
        at_most(
            ("extraction.run_deadline_seconds", self.extraction.run_deadline_seconds),
            ("extraction.reservation_deadline_seconds", self.extraction.reservation_deadline_seconds),
        )
    }
}

fn at_most(lower: (&str, f64), upper: (&str, f64)) -> Result<(), ConfigError> {
    if lower.1 <= upper.1 {
        return Ok(());
    }
    Err(ConfigError::new(
        lower.0,
        format!("is {}, more than {} ({}); lower the one or raise the other", lower.1, upper.0, upper.1),
    ))
}

fn file_to_read(sources: &Sources) -> Option<PathBuf> {
    sources.file.clone().or_else(|| Path::new(FILE_NAME).is_file().then(|| PathBuf::from(FILE_NAME)))
}

#[cfg(test)]
mod tests;
