//! A collector of telemetry for the tests: it takes OTLP over HTTP on a port of this machine, reads it, and keeps it.
//!
//! It can be told to refuse, or to take a request and say nothing. What it was sent is kept as bytes as well, so that a
//! test can look for what must not be in there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::server::eventually;

/// What the collector does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Manner {
    /// Takes it.
    #[default]
    Well,
    /// Answers with this status.
    Status(u16),
    /// Reads it, and never answers.
    Stalls,
}

/// The root of a trace.
pub const ROOT: &str = "speaker_id.query";

/// Attributes by name, as text.
pub type Attributes = BTreeMap<String, String>;

/// See the module's text. It ends with its handle.
pub struct Collector {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    kept: Mutex<Kept>,
    is_over: AtomicBool,
}

#[derive(Default)]
struct Kept {
    manner: Manner,
    requests: Vec<(String, String)>,
    bytes: Vec<u8>,
    spans: Vec<Span>,
    records: Vec<LogRecord>,
    resources: Vec<Attributes>,
    metrics: Vec<String>,
}

/// One query's spans.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The query's own span.
    pub root: Span,
    /// Those below it, by when they began.
    pub steps: Vec<Span>,
}

impl Collector {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// When no port can be had.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let serving = shared.clone();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if serving.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let shared = serving.clone();
                std::thread::spawn(move || serve(&shared, stream));
            }
        });
        Self { address, shared }
    }

    /// Its base address.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on it does this.
    pub fn behave(&self, manner: Manner) {
        self.shared.lock().manner = manner;
    }

    /// The traces so far that are complete, by the start of their query.
    #[must_use]
    pub fn traces(&self) -> Vec<Trace> {
        let spans = self.shared.lock().spans.clone();
        let roots = spans.iter().filter(|span| span.name == ROOT);
        let trace = |root: &Span| {
            let below = |span: &&Span| span.trace_id == root.trace_id && span.span_id != root.span_id;
            let mut steps: Vec<Span> = spans.iter().filter(below).cloned().collect();
            steps.sort_by_key(|span| span.start_time_unix_nano);
            Trace { root: root.clone(), steps }
        };
        let mut traces: Vec<Trace> = roots.map(trace).collect();
        traces.sort_by_key(|trace| trace.root.start_time_unix_nano);
        traces
    }

    /// Waits for a trace that satisfies a condition.
    pub async fn trace(&self, what: &str, holds: impl Fn(&Trace) -> bool) -> Trace {
        eventually(what, || self.traces().into_iter().find(|trace| holds(trace))).await
    }

    /// The log records so far.
    #[must_use]
    pub fn records(&self) -> Vec<LogRecord> {
        self.shared.lock().records.clone()
    }

    /// The names of the metrics so far.
    #[must_use]
    pub fn metrics(&self) -> Vec<String> {
        self.shared.lock().metrics.clone()
    }

    /// The resources of all that came, each once.
    #[must_use]
    pub fn resources(&self) -> Vec<Attributes> {
        let mut resources = self.shared.lock().resources.clone();
        resources.sort();
        resources.dedup();
        resources
    }

    /// Every request's path, and its head.
    #[must_use]
    pub fn requests(&self) -> Vec<(String, String)> {
        self.shared.lock().requests.clone()
    }

    /// The bodies of all requests, one after another.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.shared.lock().bytes.clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that listens; it may be gone.
        TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).ok();
    }
}

impl Trace {
    /// An attribute of the query, as text; empty when it is not there.
    #[must_use]
    pub fn attribute(&self, name: &str) -> String {
        attributes(&self.root.attributes).remove(name).unwrap_or_default()
    }

    /// The names of the steps, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.steps.iter().map(|span| span.name.as_str()).collect()
    }

    /// One step.
    ///
    /// # Panics
    /// When it is not there.
    #[must_use]
    pub fn step(&self, name: &str) -> &Span {
        self.steps.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {:?}", self.names()))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(shared: &Shared, stream: TcpStream) {
    let Ok(mut answers) = stream.try_clone() else { return };
    let mut requests = BufReader::new(stream);
    while let Some((path, head, body)) = request(&mut requests) {
        let manner = {
            let mut kept = shared.lock();
            kept.requests.push((path.clone(), head));
            if kept.manner == Manner::Well {
                kept.take(&path, &body);
            }
            kept.manner
        };
        let status = match manner {
            Manner::Well => 200,
            Manner::Status(status) => status,
            Manner::Stalls => {
                while !shared.is_over.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                return;
            }
        };
        if write!(answers, "HTTP/1.1 {status} So\r\nContent-Length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

/// Path, head and body; none at the end of the connection.
fn request(stream: &mut impl BufRead) -> Option<(String, String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok()).flatten()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    if head.to_ascii_lowercase().contains("content-encoding: gzip") {
        body = unpacked(body);
    }
    Some((path, head, body))
}

/// By the system's program: our own exporters pack nothing, but a real collector in between does.
fn unpacked(body: Vec<u8>) -> Vec<u8> {
    let mut gzip = Command::new("gzip");
    let mut process =
        gzip.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("every system has gzip");
    let mut input = process.stdin.take().expect("its input is piped");
    let writing = std::thread::spawn(move || input.write_all(&body));
    let output = process.wait_with_output().expect("it ends with its input").stdout;
    writing.join().expect("writing does not panic").expect("it reads its input");
    output
}

impl Kept {
    fn take(&mut self, path: &str, body: &[u8]) {
        self.bytes.extend_from_slice(body);
        let mut resource = |resource: Option<opentelemetry_proto::tonic::resource::v1::Resource>| {
            self.resources.push(attributes(&resource.expect("everything says who sent it").attributes));
        };
        match path {
            "/v1/traces" => {
                for of in ExportTraceServiceRequest::decode(body).expect("spans").resource_spans {
                    resource(of.resource);
                    self.spans.extend(of.scope_spans.into_iter().flat_map(|scope| scope.spans));
                }
            }
            "/v1/logs" => {
                for of in ExportLogsServiceRequest::decode(body).expect("records").resource_logs {
                    resource(of.resource);
                    self.records.extend(of.scope_logs.into_iter().flat_map(|scope| scope.log_records));
                }
            }
            "/v1/metrics" => {
                for of in ExportMetricsServiceRequest::decode(body).expect("metrics").resource_metrics {
                    resource(of.resource);
                    let metrics = of.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
                    self.metrics.extend(metrics.map(|metric| metric.name));
                }
            }
            other => panic!("nothing is sent to {other}"),
        }
    }
}

/// Attributes as text.
#[must_use]
pub fn attributes(pairs: &[KeyValue]) -> Attributes {
    pairs.iter().map(|pair| (pair.key.clone(), as_text(pair.value.as_ref()))).collect()
}

/// A value as text.
#[must_use]
pub fn as_text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(is_true)) => is_true.to_string(),
        other => format!("{other:?}"),
    }
}

/// A number of a trace or a span as it is written.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
