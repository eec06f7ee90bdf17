//! The environment variables of OpenTelemetry's specification: reading them, and saying what is wrong with one.
//!
//! A signal's own variable goes before the general one. A header's value is never repeated in an error: it may be a key.

use std::time::Duration;

use ureq::http::uri::Authority;
use ureq::http::{HeaderName, HeaderValue, Uri};

use super::{BATCH_MAX, EXPORT_MAX, Limits, QUEUE_MAX, Target};
use crate::traces::Sampler;

/// Why the environment cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OtlpError {
    /// The address has another scheme.
    #[error(
        "{variable}: `{value}` is not a plain http:// address; use a collector on this machine, http://127.0.0.1:4318"
    )]
    Scheme {
        /// The variable.
        variable: String,
        /// What it holds.
        value: String,
    },
    /// The address cannot be one; it is not repeated, because it may hold a key.
    #[error(
        "{variable}: this is no http:// address of a host and a port; use a collector on this machine, http://127.0.0.1:4318"
    )]
    Address {
        /// The variable.
        variable: String,
    },
    /// A number is wanted.
    #[error("{variable}: `{value}` is not a whole number above 0; leave it out for {default}")]
    Number {
        /// The variable.
        variable: String,
        /// What it holds.
        value: String,
        /// What is used without it.
        default: u64,
    },
    /// One of some words is wanted.
    #[error("{variable}: `{value}` is not supported; use {choices}")]
    Choice {
        /// The variable.
        variable: String,
        /// What it holds.
        value: String,
        /// What it may hold.
        choices: &'static str,
    },
    /// A list of pairs is wanted.
    #[error(
        "{variable}: entry {entry} is not `name=value`; separate entries with commas, and write other signs as %2C"
    )]
    Pair {
        /// The variable.
        variable: String,
        /// Which entry, from 1.
        entry: usize,
    },
    /// The sampler's argument is no share.
    #[error("OTEL_TRACES_SAMPLER_ARG: `{0}` is not a share of the queries from 0 to 1; leave it out for all of them")]
    Ratio(String),
}

/// Where variables are read.
pub(super) struct Variables<'a>(pub(super) &'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The signal's own variable, or the general one, with its name.
    fn exporter(&self, signal: &str, what: &str) -> Option<(String, String)> {
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_{what}");
        let general = format!("OTEL_EXPORTER_OTLP_{what}");
        [own, general].into_iter().find_map(|name| self.text(&name).map(|value| (name, value)))
    }

    pub(super) fn is_disabled(&self) -> Result<bool, OtlpError> {
        let variable = "OTEL_SDK_DISABLED";
        match self.text(variable).map(|value| value.to_ascii_lowercase()).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(value) => {
                Err(OtlpError::Choice { variable: variable.into(), value: value.into(), choices: "true or false" })
            }
        }
    }

    /// Where a signal goes; `None` when it goes nowhere.
    pub(super) fn target(&self, signal: &str, path: &str) -> Result<Option<Target>, OtlpError> {
        let Some((variable, value)) = self.exporter(signal, "ENDPOINT") else { return Ok(None) };
        if !self.is_exported(signal)? {
            return Ok(None);
        }
        // A port that is no number, or a key before the host, is left in what stands beside the host.
        let is_plain = |it: &Authority| it.host().len() == it.as_str().len() || it.port_u16().is_some();
        let is_keyless = |it: &Authority| !it.as_str().contains('@');
        let is_address = |uri: &Uri| uri.authority().is_some_and(|it| is_plain(it) && is_keyless(it));
        let address = value.parse::<Uri>().ok().filter(is_address);
        let Some(address) = address else { return Err(OtlpError::Address { variable }) };
        if address.scheme_str() != Some("http") {
            return Err(OtlpError::Scheme { variable, value });
        }
        // The general address is a base; a signal's own is taken as it stands.
        let is_general = variable == "OTEL_EXPORTER_OTLP_ENDPOINT";
        let url = if is_general { format!("{}/v1/{path}", value.trim_end_matches('/')) } else { value };
        self.only(signal, "PROTOCOL", &["http/protobuf"], "http/protobuf, to port 4318")?;
        self.only(signal, "COMPRESSION", &["none"], "none")?;
        let headers = match self.exporter(signal, "HEADERS") {
            Some((variable, list)) => headers(&variable, &list)?,
            None => Vec::new(),
        };
        let patience = match self.exporter(signal, "TIMEOUT") {
            Some((variable, _)) => self.milliseconds(&variable, EXPORT_MAX)?,
            None => Duration::from_millis(EXPORT_MAX),
        };
        Ok(Some(Target { url, headers, patience }))
    }

    fn is_exported(&self, signal: &str) -> Result<bool, OtlpError> {
        let variable = format!("OTEL_{signal}_EXPORTER");
        match self.text(&variable).as_deref() {
            None | Some("otlp") => Ok(true),
            Some("none") => Ok(false),
            Some(value) => Err(OtlpError::Choice { value: value.to_owned(), variable, choices: "otlp or none" }),
        }
    }

    fn only(&self, signal: &str, what: &str, known: &[&str], choices: &'static str) -> Result<(), OtlpError> {
        match self.exporter(signal, what) {
            Some((variable, value)) if !known.contains(&value.as_str()) => {
                Err(OtlpError::Choice { variable, value, choices })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn sampler(&self) -> Result<Sampler, OtlpError> {
        let variable = "OTEL_TRACES_SAMPLER";
        let sampler = self.text(variable).unwrap_or_else(|| "parentbased_always_on".to_owned());
        match sampler.strip_prefix("parentbased_").unwrap_or(&sampler) {
            "always_on" => Ok(Sampler::Always),
            "always_off" => Ok(Sampler::Never),
            "traceidratio" => {
                let share = self.text("OTEL_TRACES_SAMPLER_ARG").unwrap_or_else(|| "1".to_owned());
                share.parse().ok().and_then(Sampler::ratio).ok_or(OtlpError::Ratio(share))
            }
            _ => Err(OtlpError::Choice {
                variable: variable.into(),
                value: sampler,
                choices: "always_on, always_off or traceidratio, with parentbased_ before it or not",
            }),
        }
    }

    /// The limits of a queue; `processor` is the specification's abbreviation.
    pub(super) fn limits(&self, processor: &str, delay: u64) -> Result<Limits, OtlpError> {
        let size = |what, default| {
            let number = self.number(&format!("OTEL_{processor}_{what}"), default)?;
            Ok(usize::try_from(number).unwrap_or(usize::MAX))
        };
        let queue_max = size("MAX_QUEUE_SIZE", QUEUE_MAX)?;
        let batch_max = size("MAX_EXPORT_BATCH_SIZE", BATCH_MAX)?.min(queue_max);
        Ok(Limits {
            queue_max,
            batch_max,
            delay: self.milliseconds(&format!("OTEL_{processor}_SCHEDULE_DELAY"), delay)?,
        })
    }

    pub(super) fn milliseconds(&self, variable: &str, default: u64) -> Result<Duration, OtlpError> {
        self.number(variable, default).map(Duration::from_millis)
    }

    fn number(&self, variable: &str, default: u64) -> Result<u64, OtlpError> {
        let Some(value) = self.text(variable) else { return Ok(default) };
        let number = value.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| OtlpError::Number { variable: variable.to_owned(), value, default })
    }

    /// What is said of this process. The service's name has a variable of its own, which goes first.
    pub(super) fn resource(&self) -> Result<Vec<(String, String)>, OtlpError> {
        let variable = "OTEL_RESOURCE_ATTRIBUTES";
        let mut named = self.text(variable).map_or(Ok(Vec::new()), |list| pairs(variable, &list))?;
        if let Some(name) = self.text("OTEL_SERVICE_NAME") {
            named.retain(|(key, _)| key != "service.name");
            named.push(("service.name".to_owned(), name));
        }
        Ok(named)
    }
}

/// Pairs that can be headers of a request.
fn headers(variable: &str, list: &str) -> Result<Vec<(String, String)>, OtlpError> {
    let pairs = pairs(variable, list)?;
    let is_header = |(name, value): &(String, String)| {
        HeaderName::try_from(name.as_str()).is_ok() && HeaderValue::try_from(value.as_str()).is_ok()
    };
    match pairs.iter().position(|pair| !is_header(pair)) {
        Some(index) => Err(OtlpError::Pair { variable: variable.to_owned(), entry: index + 1 }),
        None => Ok(pairs),
    }
}

/// `name=value,…`, percent-encoded.
fn pairs(variable: &str, list: &str) -> Result<Vec<(String, String)>, OtlpError> {
    let entries = list.split(',').enumerate().filter(|(_, entry)| !entry.trim().is_empty());
    let read = entries.map(|(index, entry)| {
        let pair = entry.split_once('=').map(|(name, value)| (decode(name.trim()), decode(value.trim())));
        match pair {
            Some((Some(name), Some(value))) if !name.is_empty() => Ok((name, value)),
            _ => Err(OtlpError::Pair { variable: variable.to_owned(), entry: index + 1 }),
        }
    });
    read.collect()
}

/// Percent-decoding; `None` for what is not text then.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}
