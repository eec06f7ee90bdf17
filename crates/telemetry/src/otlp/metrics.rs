//! The instruments, sent to a collector from a thread of its own.
//!
//! The SDK's periodic reader would collect without the accounts' lock, and an export could then disagree with itself;
//! here each collection takes the lock, just as a scrape does. Every export holds the totals since the start, so one
//! that fails is simply followed by the next: nothing is queued or tried again.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use opentelemetry_otlp::{MetricExporter, Protocol, RetryPolicy, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{InstrumentKind, ManualReader, Pipeline, Temporality};

use super::{Answer, Target, client};
use crate::accounts::Accounts;
use crate::logs;
use crate::metrics::Metrics;

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
    pub(crate) fn start(
        (target, every): (&Target, Duration),
        reader: Reader,
        (accounts, metrics): (Accounts, Metrics),
    ) -> Result<Self, String> {
        let exporter = MetricExporter::builder()
            .with_http()
            .with_http_client(client::Client::new(target.patience))
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&target.url)
            .with_headers(target.headers.iter().cloned().collect())
            .with_timeout(target.patience)
            .with_retry_policy(RetryPolicy::disabled())
            .build()
            .map_err(|error| error.to_string())?;
        let (now, requests) = sync_channel(1);
        let round = Round { exporter, reader, accounts, metrics, failing: false };
        std::thread::Builder::new()
            .name("otlp-export".to_owned())
            .spawn(move || round.run(&requests, every))
            .map_err(|error| error.to_string())?;
        Ok(Self { now })
    }

    /// Asks for one more export. What comes back says whether the collector was reached, when it is known; `None` when
    /// one is asked for already.
    pub(crate) fn flush(&self) -> Option<Answer> {
        let (over, done) = sync_channel(1);
        match self.now.try_send(over) {
            Ok(()) => Some(done),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => None,
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
        logs::silence_this_thread();
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
