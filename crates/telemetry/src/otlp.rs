//! The same instruments, sent to a collector: OTLP over HTTP, from a thread of its own.
//!
//! The SDK's periodic reader would collect without the accounts' lock, and an export could then disagree with itself;
//! here each collection takes the lock, just as a scrape does. Every export holds the totals since the start, so one
//! that fails is simply followed by the next: nothing is queued or tried again.
//!
//! Does not own: TLS. A collector beside the service takes plain HTTP and carries it further.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use opentelemetry_otlp::{MetricExporter, Protocol, RetryPolicy, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{InstrumentKind, ManualReader, Pipeline, Temporality};

use crate::accounts::Accounts;
use crate::metrics::Metrics;

mod client;

/// What OpenTelemetry's specification calls the base address of the collector.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Milliseconds between exports.
const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";
/// The specification's default interval.
const EVERY_DEFAULT: Duration = Duration::from_secs(60);
/// How long one export may take, the specification's default. It bounds how long a shutdown can wait for the thread.
const EXPORT_MAX: Duration = Duration::from_secs(10);

/// Where to export to, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Otlp {
    endpoint: String,
    every: Duration,
}

/// Why a collector's address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OtlpError {
    /// The address has another scheme.
    #[error("{ENDPOINT}: `{0}` is not a plain http:// address; use a collector on this machine, http://127.0.0.1:4318")]
    Scheme(String),
    /// The interval is not a positive number.
    #[error("{INTERVAL}: `{0}` is not a number of milliseconds above 0; leave it out for 60000")]
    Interval(String),
}

impl Otlp {
    /// Reads the standard environment variables. `None` when no endpoint is set: then nothing is exported.
    ///
    /// # Errors
    /// When the endpoint or the interval cannot be used.
    pub fn from_env() -> Result<Option<Self>, OtlpError> {
        let set = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        set(ENDPOINT).map(|endpoint| Self::new(&endpoint, set(INTERVAL).as_deref())).transpose()
    }

    /// A collector at `endpoint`, exported to every `interval` milliseconds.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn new(endpoint: &str, interval: Option<&str>) -> Result<Self, OtlpError> {
        let base = endpoint.trim().trim_end_matches('/');
        if !base.starts_with("http://") {
            return Err(OtlpError::Scheme(endpoint.to_owned()));
        }
        let every = interval.map_or(Ok(EVERY_DEFAULT), |text| {
            let milliseconds = text.trim().parse().ok().filter(|milliseconds| *milliseconds > 0);
            milliseconds.map(Duration::from_millis).ok_or_else(|| OtlpError::Interval(text.to_owned()))
        })?;
        Ok(Self { endpoint: format!("{base}/v1/metrics"), every })
    }
}

/// A reader that two can hold: the provider, which feeds it, and the exporting thread, which asks it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reader(Arc<ManualReader>);

impl MetricReader for Reader {
    fn register_pipeline(&self, pipeline: std::sync::Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> opentelemetry_sdk::error::OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> opentelemetry_sdk::error::OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> opentelemetry_sdk::error::OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

/// A handle to the exporting thread, which ends when the handle is dropped.
pub(crate) struct Export {
    /// Each message asks for one export now, and is answered with whether it reached the collector. One place: a second
    /// request while one waits would bring the same totals.
    now: SyncSender<SyncSender<bool>>,
}

impl Export {
    /// Starts the thread.
    pub(crate) fn start(otlp: &Otlp, reader: Reader, accounts: Accounts, metrics: Metrics) -> Result<Self, String> {
        let exporter = MetricExporter::builder()
            .with_http()
            .with_http_client(client::Client::new(EXPORT_MAX))
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&otlp.endpoint)
            .with_timeout(EXPORT_MAX)
            .with_retry_policy(RetryPolicy::disabled())
            .build()
            .map_err(|error| error.to_string())?;
        let (now, requests) = sync_channel(1);
        let every = otlp.every;
        let round = Round { exporter, reader, accounts, metrics, failing: false };
        std::thread::Builder::new()
            .name("otlp-export".to_owned())
            .spawn(move || round.run(&requests, every))
            .map_err(|error| error.to_string())?;
        Ok(Self { now })
    }

    /// Exports once more and waits for it, at most `patience`. Says whether the collector was reached in time.
    pub(crate) fn flush(&self, patience: Duration) -> bool {
        let (over, done) = sync_channel(1);
        match self.now.try_send(over) {
            Ok(()) => done.recv_timeout(patience).unwrap_or(false),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }
}

/// What the thread owns.
struct Round {
    exporter: MetricExporter,
    reader: Reader,
    accounts: Accounts,
    metrics: Metrics,
    failing: bool,
}

impl Round {
    fn run(mut self, requests: &Receiver<SyncSender<bool>>, every: Duration) {
        loop {
            match requests.recv_timeout(every) {
                Err(RecvTimeoutError::Timeout) => {
                    self.export();
                }
                Ok(over) => {
                    if over.try_send(self.export()).is_err() {
                        tracing::debug!("whoever asked for an export has stopped waiting for it");
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Says whether the collector was reached.
    fn export(&mut self) -> bool {
        let sent = self.collect().and_then(|metrics| {
            futures_executor::block_on(self.exporter.export(&metrics)).map_err(|error| error.to_string())
        });
        // An outage is told when it begins and when it ends, not once a minute.
        match &sent {
            Ok(()) if self.failing => tracing::info!("metrics reach the collector again"),
            Err(reason) if !self.failing => tracing::warn!(reason, "metrics do not reach the collector"),
            Ok(()) | Err(_) => {}
        }
        self.failing = sent.is_err();
        sent.is_ok()
    }

    fn collect(&self) -> Result<ResourceMetrics, String> {
        self.metrics.refresh();
        let mut metrics = ResourceMetrics::default();
        let _still = self.accounts.lock();
        self.reader.collect(&mut metrics).map_err(|error| error.to_string())?;
        Ok(metrics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_a_base_address_and_plain_http() {
        let otlp = Otlp::new("http://127.0.0.1:4318/", None).unwrap();
        assert_eq!((otlp.endpoint.as_str(), otlp.every), ("http://127.0.0.1:4318/v1/metrics", EVERY_DEFAULT));
        let error = Otlp::new("https://collector:4318", None).unwrap_err();
        assert_eq!(error, OtlpError::Scheme("https://collector:4318".into()));
        assert!(error.to_string().starts_with("OTEL_EXPORTER_OTLP_ENDPOINT: `https://collector:4318`"), "{error}");
    }

    #[test]
    fn an_interval_is_milliseconds_above_0() {
        assert_eq!(Otlp::new("http://c", Some("250")).unwrap().every, Duration::from_millis(250));
        for bad in ["0", "-1", "soon", "1.5"] {
            assert_eq!(Otlp::new("http://c", Some(bad)).unwrap_err(), OtlpError::Interval(bad.into()));
        }
    }
}
