//! Small values of the protocol.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost::Message as _;

/// Nanoseconds since 1970; 0 before it.
pub(crate) fn nanos(moment: SystemTime) -> u64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn text(key: &str, value: &str) -> KeyValue {
    pair(key, Value::StringValue(value.to_owned()))
}

pub(crate) fn number(key: &str, value: i64) -> KeyValue {
    pair(key, Value::IntValue(value))
}

pub(crate) fn float(key: &str, value: f64) -> KeyValue {
    pair(key, Value::DoubleValue(value))
}

pub(crate) fn boolean(key: &str, value: bool) -> KeyValue {
    pair(key, Value::BoolValue(value))
}

pub(crate) fn text_value(value: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(value.to_owned())) }
}

fn pair(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// How many spans an answer says were refused, and why. What cannot be read refuses nothing.
pub(crate) fn refused_spans(answer: &[u8]) -> Option<(u64, String)> {
    let partial = ExportTraceServiceResponse::decode(answer).ok()?.partial_success?;
    Some((u64::try_from(partial.rejected_spans).unwrap_or(0), partial.error_message))
}

/// The same of log records.
pub(crate) fn refused_records(answer: &[u8]) -> Option<(u64, String)> {
    let partial = ExportLogsServiceResponse::decode(answer).ok()?.partial_success?;
    Some((u64::try_from(partial.rejected_log_records).unwrap_or(0), partial.error_message))
}
