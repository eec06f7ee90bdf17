//! Metrics, traces and logs, sent to a collector: OTLP over HTTP, each signal from a thread of its own, as the
//! environment variables of OpenTelemetry's specification say.
//!
//! ```text
//!   accounts, metrics ◀─ collect ── metrics thread ──▶ /v1/metrics     totals: what fails is followed by the next
//!   ended queries ─▶ queue ──────── traces thread ───▶ /v1/traces      bounded: dropped and counted when it is full
//!   log events ────▶ queue ──────── logs thread ─────▶ /v1/logs
//! ```
//! A variable that cannot be used is an error that names it, and the service does not start: a typing mistake would
//! otherwise be found on the day when the traces are needed.
//!
//! Does not own: TLS. A collector beside the service takes plain HTTP and carries it further.

mod client;
mod metrics;
mod queue;
mod resource;
mod variables;
mod wire;

use std::sync::mpsc::Receiver;
use std::time::Duration;

pub(crate) use metrics::{Export, Reader};
pub(crate) use queue::{Counts, Queue, Shipment, all_sent};
pub(crate) use resource::Resource;
pub use variables::OtlpError;
use variables::Variables;
pub(crate) use wire::{boolean, float, nanos, number, refused_records, refused_spans, text, text_value};

use crate::traces::Sampler;

/// Says, once, whether an export reached the collector.
pub(crate) type Answer = Receiver<bool>;

/// The specification's default interval between exports of metrics, milliseconds.
const METRICS_EVERY: u64 = 60_000;
/// How long one export may take, the specification's default, milliseconds. It bounds how long a thread can hang on a
/// collector; a shutdown does not wait for it.
const EXPORT_MAX: u64 = 10_000;
/// The specification's default delay before spans that wait are sent, milliseconds.
const SPANS_DELAY: u64 = 5_000;
/// ... and log records.
const RECORDS_DELAY: u64 = 1_000;
/// What waits for a collector, the specification's default: a trace takes about 1 kB, so 2 MB at most. A busy service
/// ends some hundred queries a second, so that this is an outage of ten seconds; what comes then is dropped.
const QUEUE_MAX: u64 = 2_048;
/// What goes in one request, the specification's default.
const BATCH_MAX: u64 = 512;

/// Where to export to, and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct Otlp {
    pub(crate) metrics: Option<(Target, Duration)>,
    pub(crate) traces: Option<(Target, Limits, Sampler)>,
    pub(crate) logs: Option<(Target, Limits)>,
    /// What the environment says of this process, in order.
    pub(crate) named: Vec<(String, String)>,
}

/// Where one signal goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) patience: Duration,
}

/// What waits for a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Beyond it the newest is dropped, and counted.
    pub(crate) queue_max: usize,
    /// In one request.
    pub(crate) batch_max: usize,
    /// The longest wait for a batch to fill.
    pub(crate) delay: Duration,
}

impl Otlp {
    /// Reads the standard environment variables. `None` when no endpoint is set, or everything is switched off: then
    /// nothing is exported, and nothing else is read.
    ///
    /// # Errors
    /// When a variable cannot be used.
    pub fn from_env() -> Result<Option<Self>, OtlpError> {
        Self::read(&|name| std::env::var(name).ok())
    }

    /// A collector at `endpoint`, which gets metrics, every `interval` milliseconds, traces and logs.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn new(endpoint: &str, interval: Option<&str>) -> Result<Self, OtlpError> {
        let read = Self::read(&|name| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(endpoint.to_owned()),
            "OTEL_METRIC_EXPORT_INTERVAL" => interval.map(str::to_owned),
            _ => None,
        })?;
        read.ok_or_else(|| OtlpError::Scheme { variable: "OTEL_EXPORTER_OTLP_ENDPOINT".into(), value: endpoint.into() })
    }

    /// Reads the variables from `of`, which answers `None` for one that is not set.
    ///
    /// # Errors
    /// When a variable cannot be used.
    pub fn read(of: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, OtlpError> {
        let variables = Variables(of);
        if variables.is_disabled()? {
            return Ok(None);
        }
        let every = |name, default| variables.milliseconds(name, default);
        let metrics = variables.target("METRICS", "metrics")?;
        let traces = variables.target("TRACES", "traces")?;
        let logs = variables.target("LOGS", "logs")?;
        if metrics.is_none() && traces.is_none() && logs.is_none() {
            return Ok(None);
        }
        let metrics = match metrics {
            Some(target) => Some((target, every("OTEL_METRIC_EXPORT_INTERVAL", METRICS_EVERY)?)),
            None => None,
        };
        let traces = match traces {
            Some(target) => Some((target, variables.limits("BSP", SPANS_DELAY)?, variables.sampler()?)),
            None => None,
        };
        let logs = match logs {
            Some(target) => Some((target, variables.limits("BLRP", RECORDS_DELAY)?)),
            None => None,
        };
        Ok(Some(Self { metrics, traces, logs, named: variables.resource()? }))
    }
}

#[cfg(test)]
pub(crate) use queue::tests::body_of;

#[cfg(test)]
impl Otlp {
    /// Where logs go.
    pub(crate) fn unwrap_logs(self) -> (Target, Limits) {
        self.logs.expect("they go somewhere")
    }
}

#[cfg(test)]
mod tests;
