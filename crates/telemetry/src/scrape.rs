//! One process's telemetry: the meter, its registry, and the scrape that ties them together.
//!
//! Does not own the instruments, the formats or the export. There is no global state: tests start as many as they like.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::proto::{Bucket, Histogram, Metric, MetricFamily, MetricType};

use crate::accounts::Accounts;
use crate::encode;
use crate::metrics::{LATENCIES, Latency, Metrics};
use crate::otlp::{Export, Otlp, Reader};

/// Why telemetry could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The exporter refused its registry.
    #[error("the metrics exporter could not start: {0}")]
    Exporter(String),
    /// The thread that sends metrics to a collector could not be started.
    #[error("the export of metrics could not start: {0}")]
    Export(String),
}

/// A handle to everything that this process measures. Clones share it.
#[derive(Clone)]
pub struct Telemetry(Arc<Parts>);

struct Parts {
    accounts: Accounts,
    metrics: Metrics,
    registry: prometheus::Registry,
    /// When the series were created, in seconds of Unix time.
    created: f64,
    /// Sends the metrics to a collector, when one is configured.
    export: Option<Export>,
    /// Dropping it ends collection, so it lives exactly as long as the handles.
    _provider: SdkMeterProvider,
}

impl Telemetry {
    /// Creates every instrument, and every series with a closed label set at 0. They are there to be scraped.
    ///
    /// # Errors
    /// When the exporter cannot be started.
    pub fn start(version: &str) -> Result<Self, StartError> {
        Self::start_with(version, None)
    }

    /// Like [`Telemetry::start`], and sends the same instruments to a collector.
    ///
    /// # Errors
    /// When an exporter cannot be started.
    pub fn start_exporting(version: &str, otlp: &Otlp) -> Result<Self, StartError> {
        Self::start_with(version, Some(otlp))
    }

    fn start_with(version: &str, otlp: Option<&Otlp>) -> Result<Self, StartError> {
        let registry = prometheus::Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            // Scope labels would sit on every sample, and the target's resource would be a series of its own.
            .scope_info_enabled(false)
            .without_target_info()
            .build()
            .map_err(|error| StartError::Exporter(error.to_string()))?;
        let resource = Resource::builder().with_service_name("rollcall").build();
        let mut builder = SdkMeterProvider::builder().with_resource(resource).with_reader(exporter);
        let otlp = otlp.map(|otlp| (otlp, Reader::default()));
        if let Some((_, reader)) = &otlp {
            builder = builder.with_reader(reader.clone());
        }
        let provider = builder.build();
        // One meter: without scope labels two meters could give the same sample twice.
        let meter = provider.meter("rollcall");
        let metrics = Metrics::new(&meter, version);
        let accounts = Accounts::new(&meter, metrics.violations(), metrics.levels().open_queries.clone());
        let export = otlp
            .map(|(otlp, reader)| Export::start(otlp, reader, accounts.clone(), metrics.clone()))
            .transpose()
            .map_err(StartError::Export)?;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Whole milliseconds, which an f64 holds exactly enough to print.
        let created = since_epoch.as_millis() as f64 / 1000.0;
        Ok(Self(Arc::new(Parts { accounts, metrics, registry, created, export, _provider: provider })))
    }

    /// Sends the totals to the collector once more and waits for it, at most `patience`: the last thing before exit.
    /// True at once when there is no collector, false when it was not reached in time.
    #[must_use]
    pub fn flush(&self, patience: Duration) -> bool {
        self.0.export.as_ref().is_none_or(|export| export.flush(patience))
    }

    /// The accounting counters.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.0.accounts
    }

    /// Rollcall's own instruments.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// One scrape: the content type, and the page in the format that `accept` (the request's header) asks for. Text
    /// format 0.0.4 unless OpenMetrics 1.0.0 is preferred by name.
    #[must_use]
    pub fn encode(&self, accept: Option<&str>) -> (&'static str, String) {
        let format = encode::negotiate(accept);
        (format.content_type(), encode::page(format, &self.gather(), self.0.created))
    }

    /// Every family, from one moment as far as the accounts are concerned.
    fn gather(&self) -> Vec<MetricFamily> {
        self.0.metrics.refresh();
        let mut families = {
            let _still = self.0.accounts.lock();
            self.0.registry.gather()
        };
        let absent = |latency: &&Latency| !families.iter().any(|family| family.name() == latency.name);
        let empty: Vec<_> = LATENCIES.into_iter().filter(absent).map(never_recorded).collect();
        families.extend(empty);
        families.sort_by(|a, b| a.name().cmp(b.name()));
        families
    }
}

/// A histogram that has recorded nothing. The meter shows none before its first recording, but a dashboard built on a
/// quiet server needs its buckets.
fn never_recorded(latency: &Latency) -> MetricFamily {
    let bucket = |bound: &f64| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket
    };
    let mut histogram = Histogram::default();
    histogram.set_bucket(latency.bounds.iter().map(bucket).collect());
    let mut metric = Metric::default();
    metric.set_histogram(histogram);
    let mut family = MetricFamily::default();
    family.set_name(latency.name.to_owned());
    family.set_help(latency.help.to_owned());
    family.set_field_type(MetricType::HISTOGRAM);
    family.set_metric(vec![metric]);
    family
}
