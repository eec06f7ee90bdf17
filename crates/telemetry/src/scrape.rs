//! One process's telemetry: the meter, its registry, and the scrape that ties them together.
//!
//! Does not own the instruments, the formats or the export. There is no global state: tests start as many as they like.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::proto::MetricFamily;

use crate::accounts::Accounts;
use crate::distributions;
use crate::encode;
use crate::labels::Signal;
use crate::logs;
use crate::metrics::Metrics;
use crate::otlp::{Counts, Export, Otlp, Queue, Reader, Resource, Shipment, all_sent, refused_records, refused_spans};
use crate::traces::{self, Ended, Tracer};

/// Why telemetry could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The exporter refused its registry.
    #[error("the metrics exporter could not start: {0}")]
    Exporter(String),
    /// A thread that sends to a collector could not be started.
    #[error("the export to a collector could not start: {0}")]
    Export(String),
}

/// What goes to a collector.
#[derive(Default)]
struct Exports {
    metrics: Option<Export>,
    traces: Option<Queue<Ended>>,
    logs: Option<Queue<logs::Record>>,
    tracer: Tracer,
}

impl Exports {
    fn start(
        otlp: &Otlp,
        measured: Option<(Reader, (Accounts, Metrics))>,
        resource: &Resource,
        counts: &Counts,
    ) -> Result<Self, String> {
        let mut exports = Self::default();
        if let (Some((target, every)), Some((reader, of))) = (&otlp.metrics, measured) {
            exports.metrics = Some(Export::start((target, *every), reader, of)?);
        }
        if let Some((target, limits, sampler)) = &otlp.traces {
            let resource = resource.clone();
            let encode = move |queries: &[Ended]| traces::encode(queries, &resource);
            let shipment = Shipment { signal: Signal::Traces, encode: Box::new(encode), refused: refused_spans };
            let queue = Queue::start(target, *limits, shipment, counts.clone())?;
            exports.tracer = Tracer::new(*sampler, queue.clone());
            exports.traces = Some(queue);
        }
        if let Some((target, limits)) = &otlp.logs {
            let resource = resource.clone();
            let encode = move |records: &[logs::Record]| logs::encode(records, &resource);
            let shipment = Shipment { signal: Signal::Logs, encode: Box::new(encode), refused: refused_records };
            let queue = Queue::start(target, *limits, shipment, counts.clone())?;
            // The process has one log; the first that exports it has it.
            exports.logs = logs::export_to(queue.clone()).then_some(queue);
        }
        Ok(exports)
    }

    fn flush(&self, patience: Duration) -> bool {
        let asked = [
            self.traces.as_ref().map(Queue::flush),
            self.logs.as_ref().map(Queue::flush),
            self.metrics.as_ref().map(Export::flush),
        ];
        all_sent(asked.into_iter().flatten().collect(), patience)
    }
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
    /// What goes to a collector, when one is configured.
    export: Exports,
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
        let resource = Resource::new(version, otlp.map(|otlp| &otlp.named[..]).unwrap_or_default());
        let registry = prometheus::Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            // Scope labels would sit on every sample, and the target's resource would be a series of its own.
            .scope_info_enabled(false)
            .without_target_info()
            .build()
            .map_err(|error| StartError::Exporter(error.to_string()))?;
        let mut builder = SdkMeterProvider::builder().with_resource(resource.sdk()).with_reader(exporter);
        let reader = otlp.and_then(|otlp| otlp.metrics.as_ref()).map(|_| Reader::default());
        if let Some(reader) = &reader {
            builder = builder.with_reader(reader.clone());
        }
        let provider = builder.build();
        // One meter: without scope labels two meters could give the same sample twice.
        let meter = provider.meter("rollcall");
        let metrics = Metrics::new(&meter, version);
        let accounts = Accounts::new(&meter, metrics.violations(), metrics.levels().open_queries.clone());
        let measured = reader.map(|reader| (reader, (accounts.clone(), metrics.clone())));
        let counts = Counts::new(&meter);
        let export = match otlp {
            Some(otlp) => Exports::start(otlp, measured, &resource, &counts).map_err(StartError::Export)?,
            None => Exports::default(),
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Whole milliseconds, which an f64 holds exactly enough to print.
        let created = since_epoch.as_millis() as f64 / 1000.0;
        Ok(Self(Arc::new(Parts { accounts, metrics, registry, created, export, _provider: provider })))
    }

    /// Sends everything that waits to the collector, and the totals once more, and waits for it, at most `patience`: the
    /// last thing before exit. True at once when there is no collector, false when it was not reached in time.
    #[must_use]
    pub fn flush(&self, patience: Duration) -> bool {
        self.0.export.flush(patience)
    }

    /// Begins and ends queries' traces.
    #[must_use]
    pub fn tracer(&self) -> &Tracer {
        &self.0.export.tracer
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
        let families = self.gather();
        (format.content_type(), encode::page(format, &families, self.0.created, self.0.metrics.exemplars()))
    }

    /// Every family, from one moment as far as the accounts are concerned.
    fn gather(&self) -> Vec<MetricFamily> {
        self.0.metrics.refresh();
        let mut families = {
            let _still = self.0.accounts.lock();
            self.0.registry.gather()
        };
        distributions::complete(&mut families);
        families.sort_by(|a, b| a.name().cmp(b.name()));
        families
    }
}
