//! The same log records, sent to a collector: a layer beside the one that writes to standard error.
//!
//! The process has one log, which starts before anything is measured; so there is one place where the exporting queue is
//! put once it is there. What is logged before that, and on the exporting threads, goes to standard error alone: an
//! exporter that reported its own failures to the collector would never come to rest.
//!
//! A field `trace_id` with a `span_id` beside it becomes the record's trace; all others are its attributes.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::OnceLock;
use std::time::SystemTime;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use prost::Message as _;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::otlp::{Queue, Resource, boolean, float, nanos, number, text, text_value};
use crate::traces::TraceContext;

/// A record with more than this is cut: a collector refuses what is much longer, and nobody reads it.
const TEXT_MAX: usize = 8 * 1024;

static QUEUE: OnceLock<Queue<Record>> = OnceLock::new();

thread_local! {
    static IS_EXPORTING: Cell<bool> = const { Cell::new(false) };
}

/// What this thread logs from here on goes to standard error alone.
pub(crate) fn silence_this_thread() {
    IS_EXPORTING.set(true);
}

/// From here on the process's log records go to this queue as well. False when they go to another.
pub(crate) fn export_to(queue: Queue<Record>) -> bool {
    QUEUE.set(queue).is_ok()
}

/// A record as it waits.
pub(crate) struct Record {
    time: SystemTime,
    level: Level,
    target: &'static str,
    body: String,
    attributes: Vec<KeyValue>,
    trace: Option<String>,
    span: Option<String>,
}

/// The layer. Where it sends is looked up at each event, unless it has a queue of its own.
#[derive(Default)]
pub(super) struct Export(pub(super) Option<Queue<Record>>);

impl<S: Subscriber> Layer<S> for Export {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some(queue) = self.0.as_ref().or_else(|| QUEUE.get()) else { return };
        if IS_EXPORTING.get() {
            return;
        }
        let metadata = event.metadata();
        let mut record = Record {
            time: SystemTime::now(),
            level: *metadata.level(),
            target: metadata.target(),
            body: String::new(),
            attributes: Vec::new(),
            trace: None,
            span: None,
        };
        event.record(&mut record);
        queue.offer(record);
    }
}

impl Visit for Record {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.attributes.push(number(field.name(), value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.attributes.push(number(field.name(), i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.attributes.push(float(field.name(), value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.attributes.push(boolean(field.name(), value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let value = cut(value);
        match field.name() {
            "message" => value.clone_into(&mut self.body),
            "trace_id" => self.trace = Some(value.to_owned()),
            "span_id" => self.span = Some(value.to_owned()),
            name => self.attributes.push(text(name, value)),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

fn cut(value: &str) -> &str {
    let end = (0..=TEXT_MAX.min(value.len())).rev().find(|end| value.is_char_boundary(*end));
    end.and_then(|end| value.get(..end)).unwrap_or_default()
}

/// One request for these records.
pub(crate) fn encode(records: &[Record], resource: &Resource) -> Vec<u8> {
    // A collector groups by target; a scope for each keeps it findable without an attribute on every record.
    let mut scopes: Vec<ScopeLogs> = Vec::new();
    for record in records {
        let named = |scope: &ScopeLogs| scope.scope.as_ref().is_some_and(|scope| scope.name == record.target);
        match scopes.iter_mut().find(|scope| named(scope)) {
            Some(scope) => scope.log_records.push(record.proto()),
            None => {
                let mut scope = resource.scope();
                record.target.clone_into(&mut scope.name);
                let log_records = vec![record.proto()];
                scopes.push(ScopeLogs { scope: Some(scope), log_records, schema_url: String::new() });
            }
        }
    }
    let logs = ResourceLogs { resource: Some(resource.proto()), scope_logs: scopes, schema_url: String::new() };
    ExportLogsServiceRequest { resource_logs: vec![logs] }.encode_to_vec()
}

impl Record {
    fn proto(&self) -> LogRecord {
        let ids = self.trace.as_deref().zip(self.span.as_deref());
        let context = ids.and_then(|(trace, span)| TraceContext::parse(trace, span));
        LogRecord {
            time_unix_nano: nanos(self.time),
            observed_time_unix_nano: nanos(self.time),
            severity_number: severity(self.level).into(),
            severity_text: self.level.as_str().to_owned(),
            body: Some(text_value(&self.body)),
            attributes: self.attributes.clone(),
            flags: u32::from(context.is_some()),
            trace_id: context.map(TraceContext::trace_bytes).unwrap_or_default(),
            span_id: context.map(TraceContext::query_bytes).unwrap_or_default(),
            ..LogRecord::default()
        }
    }
}

fn severity(level: Level) -> SeverityNumber {
    match level {
        Level::ERROR => SeverityNumber::Error,
        Level::WARN => SeverityNumber::Warn,
        Level::INFO => SeverityNumber::Info,
        Level::DEBUG => SeverityNumber::Debug,
        Level::TRACE => SeverityNumber::Trace,
    }
}

#[cfg(test)]
pub(super) mod tests {
    //! What the tests of the logs need to send records and to read them.

    use std::time::Duration;

    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry_sdk::metrics::SdkMeterProvider;

    use super::*;
    use crate::labels::Signal;
    use crate::otlp::{Counts, Otlp, Shipment, refused_records};

    /// A queue that sends when it is asked to.
    pub(in crate::logs) fn queue(endpoint: &str) -> Queue<Record> {
        let (target, mut limits) = Otlp::new(endpoint, None).unwrap().unwrap_logs();
        limits.delay = Duration::from_secs(86_400);
        let counts = Counts::new(&SdkMeterProvider::builder().build().meter("test"));
        let resource = Resource::new("1", &[]);
        let encode = move |records: &[Record]| encode(records, &resource);
        let shipment = Shipment { signal: Signal::Logs, encode: Box::new(encode), refused: refused_records };
        Queue::start(&target, limits, shipment, counts).unwrap()
    }

    /// Each record with the name of its scope.
    pub(in crate::logs) fn decode(body: &[u8]) -> Vec<(String, LogRecord)> {
        let sent = ExportLogsServiceRequest::decode(body).unwrap();
        let scopes = sent.resource_logs.into_iter().flat_map(|resource| resource.scope_logs);
        let named = scopes.map(|scope| (scope.scope.unwrap_or_default().name, scope.log_records));
        named.flat_map(|(name, records)| records.into_iter().map(move |record| (name.clone(), record))).collect()
    }

    #[test]
    fn what_an_exporting_thread_logs_stays_here() {
        let nobody = queue("http://127.0.0.1:9");
        let layer = Export(Some(nobody.clone()));
        use tracing_subscriber::layer::SubscriberExt as _;
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!("from outside");
            assert_eq!(nobody.waiting(), 1);
            silence_this_thread();
            tracing::info!("from an exporter");
            assert_eq!(nobody.waiting(), 1);
        });
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = "\u{e4}".repeat(TEXT_MAX);
        let text = cut(&long);
        assert!(
            text.len() <= TEXT_MAX && text.len() > TEXT_MAX - 2 && text.chars().all(|character| character == '\u{e4}')
        );
        assert_eq!((cut("short"), cut("")), ("short", ""));
    }
}
