//! Logs on standard error: readable text, or one JSON object a line; and beside it to a collector, see `export`.
//!
//! Standard output belongs to results. What is logged, and at which level, is decided where it happens.

mod export;

use std::io::IsTerminal;

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

pub(crate) use export::{Record, encode, export_to, silence_this_thread};

/// What is logged unless the user says otherwise. The libraries beneath report their own life at `info`,
/// and one of them a client's bad bytes at `error`, which the metrics count: a client must not fill the log.
pub const DEFAULT_FILTER: &str = "info,opentelemetry=warn,opentelemetry_sdk=warn,opentelemetry-prometheus=warn,actix_server=warn,actix_http=off,ort=warn";

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A line for people, in colour when standard error is a terminal.
    #[default]
    Readable,
    /// A JSON object a line: `timestamp`, `level`, `target`, `message`, and the event's fields beside them.
    Json,
}

/// Why logging could not start.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// The filter is not one.
    #[error("log filter `{filter}`: {reason}; write it like `info` or `warn,gateway=debug`")]
    Filter {
        /// What was given.
        filter: String,
        /// What is wrong with it.
        reason: ParseError,
    },
    /// Something in this process logs already.
    #[error("logging was set up twice: {0}")]
    AlreadySet(#[from] TryInitError),
}

/// Starts logging for the whole process. Call it once, before any thread logs.
///
/// # Errors
/// When the filter cannot be read, or logging was set up before.
pub fn init_logs(format: Format, filter: &str) -> Result<(), LogsError> {
    Ok(subscriber(format, filter, std::io::stderr, std::io::stderr().is_terminal())?.try_init()?)
}

fn subscriber<W>(
    format: Format,
    filter: &str,
    writer: W,
    colour: bool,
) -> Result<Box<dyn Subscriber + Send + Sync>, LogsError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let directives =
        EnvFilter::try_new(filter).map_err(|reason| LogsError::Filter { filter: filter.to_owned(), reason })?;
    let export = export::Export::default();
    let builder = tracing_subscriber::fmt().with_env_filter(directives).with_writer(writer);
    Ok(match format {
        Format::Readable => Box::new(builder.with_ansi(colour).finish().with(export)),
        Format::Json => Box::new(builder.json().flatten_event(true).with_current_span(false).finish().with(export)),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::{Cap, FirstBlock};

    /// A writer into memory.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Format, filter: &str, log: impl FnOnce()) -> String {
        let memory = Memory::default();
        let writer = memory.clone();
        let subscriber = subscriber(format, filter, move || writer.clone(), false).unwrap();
        tracing::subscriber::with_default(subscriber, log);
        let bytes = memory.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn first_block() -> FirstBlock {
        FirstBlock {
            uid: "local".into(),
            socket: "s-1".into(),
            recording: "r-1".into(),
            conversation: "c-1\nforged line".into(),
            generation: 2,
            scope: "a:0".into(),
            speaker: 7,
            attempts: 12,
            tokens: 0.25,
            evidence_seconds: 4.5,
            pending_seconds: 3.0,
            cap: Cap::Both,
            trace: None,
        }
    }

    #[test]
    fn a_record_for_the_collector_has_its_level_its_fields_and_its_trace() {
        let (trace_id, span_id) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let exported = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            crate::otlp::body_of(stream)
        });
        let queue = export::tests::queue(&endpoint);
        let layer = export::Export(Some(queue.clone()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!(target: "door", trace_id, span_id, answer = 42, share = 0.5, is_open = true, "hello");
        });
        let asked = queue.flush().unwrap();
        let records = export::tests::decode(&exported.join().unwrap());
        drop(asked);
        let (scope, record) = &records[0];
        assert_eq!((records.len(), scope.as_str()), (1, "door"));
        assert_eq!((record.severity_text.as_str(), record.severity_number), ("WARN", 13));
        assert_eq!(record.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes());
        assert_eq!(record.span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
        let keys: Vec<&str> = record.attributes.iter().map(|pair| pair.key.as_str()).collect();
        assert_eq!(keys, ["answer", "share", "is_open"]);
    }

    #[test]
    fn the_record_is_one_json_line_with_its_fields_beside_the_message() {
        let text = logged(Format::Json, "info", || first_block().emit());
        assert_eq!(text.lines().count(), 1, "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut object = line.as_object().unwrap().clone();
        assert!(object.remove("timestamp").is_some());
        let expected = serde_json::json!({
            "level": "INFO", "target": "rollcall::budget", "message": "speaker_id_budget_first_block",
            "uid": "local", "socket": "s-1", "recording": "r-1", "conversation": "c-1\nforged line", "generation": 2,
            "scope": "a:0", "speaker": 7, "attempts": 12, "tokens": 0.25, "evidence_seconds": 4.5,
            "pending_seconds": 3.0, "cap": "both",
        });
        assert_eq!(serde_json::Value::Object(object), expected);
    }

    #[test]
    fn an_id_with_a_line_break_stays_on_its_line_in_readable_text() {
        let text = logged(Format::Readable, "info", || first_block().emit());
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("speaker_id_budget_first_block") && text.contains("cap=\"both\""), "{text}");
    }

    #[test]
    fn the_filter_decides_what_is_logged() {
        assert_eq!(logged(Format::Json, "warn", || first_block().emit()), "");
        assert_eq!(logged(Format::Json, DEFAULT_FILTER, || first_block().emit()).lines().count(), 1);
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_named_with_the_mend() {
        let error = subscriber(Format::Json, "gateway=loud", std::io::sink, false).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("`gateway=loud`") && error.contains("write it like"), "{error}");
    }
}
