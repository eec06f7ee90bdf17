//! From ended queries to spans on the wire: names, parents, kinds, attributes.
//!
//! Runs on the exporting thread. Attributes are named `speaker_id.*` after what an operator asks; `error.type` and the
//! HTTP ones are those of the semantic conventions.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;

use super::{Ended, Ending, Examined, QueryTrace, Stage, Step, Subject};
use crate::otlp::{Resource, nanos};

/// A span that was sampled, in the flags of W3C.
const SAMPLED: u32 = 1;

/// One request for these traces.
pub(crate) fn encode(queries: &[Ended], resource: &Resource) -> Vec<u8> {
    let spans = ScopeSpans {
        scope: Some(resource.scope()),
        spans: queries.iter().flat_map(|query| spans_of(&query.trace())).collect(),
        schema_url: String::new(),
    };
    let resource =
        ResourceSpans { resource: Some(resource.proto()), scope_spans: vec![spans], schema_url: String::new() };
    ExportTraceServiceRequest { resource_spans: vec![resource] }.encode_to_vec()
}

fn spans_of(trace: &QueryTrace) -> Vec<Span> {
    std::iter::once(root(trace)).chain(trace.steps.iter().map(|step| child(trace, step))).collect()
}

fn root(trace: &QueryTrace) -> Span {
    let mut attributes = Attributes::default();
    attributes.subject(&trace.subject);
    let error = attributes.ending(&trace.ending);
    Span {
        span_id: trace.context.query_bytes(),
        name: "speaker_id.query".to_owned(),
        // It begins with a message that a client sent.
        kind: SpanKind::Server.into(),
        start_time_unix_nano: nanos(trace.started),
        end_time_unix_nano: nanos(trace.ended),
        attributes: attributes.0,
        status: error.map(failed),
        ..bare(trace)
    }
}

fn child(trace: &QueryTrace, step: &Step) -> Span {
    let mut attributes = Attributes::default();
    let mut parent = trace.context.query_bytes();
    let mut kind = SpanKind::Internal;
    if let Stage::Request { server, status } = &step.stage {
        parent = trace.context.span_of(&Stage::Extract).to_be_bytes().to_vec();
        kind = SpanKind::Client;
        attributes.request(server, *status);
    }
    if let Some(error) = step.error {
        attributes.text("error.type", error);
    }
    Span {
        span_id: trace.context.span_of(&step.stage).to_be_bytes().to_vec(),
        parent_span_id: parent,
        name: name(&step.stage).to_owned(),
        kind: kind.into(),
        start_time_unix_nano: nanos(step.from),
        end_time_unix_nano: nanos(step.to),
        attributes: attributes.0,
        status: step.error.map(failed),
        ..bare(trace)
    }
}

fn bare(trace: &QueryTrace) -> Span {
    Span { trace_id: trace.context.trace_bytes(), flags: SAMPLED, ..Span::default() }
}

const fn name(stage: &Stage) -> &'static str {
    match stage {
        Stage::Offer => "offer",
        Stage::Queue => "queue.wait",
        Stage::Reserve => "reserve",
        Stage::Batch => "batch.wait",
        Stage::Extract => "extract",
        // The conventions name a client's span after its method.
        Stage::Request { .. } => "POST",
        Stage::Decide => "decide",
    }
}

fn failed(error: &'static str) -> Status {
    Status { code: StatusCode::Error.into(), message: error.to_owned() }
}

#[derive(Default)]
struct Attributes(Vec<KeyValue>);

impl Attributes {
    fn subject(&mut self, subject: &Subject) {
        self.text("speaker_id.conversation", &subject.conversation);
        self.text("speaker_id.recording", &subject.recording);
        self.text("speaker_id.segment", &subject.segment);
        self.number("speaker_id.speaker", subject.speaker);
        self.number("speaker_id.generation", i64::try_from(subject.generation).unwrap_or(i64::MAX));
        self.text("speaker_id.class", subject.class.as_str());
        self.number("speaker_id.attempts_before", subject.attempts.into());
        self.float("speaker_id.evidence_seconds", subject.evidence_seconds);
        self.float("speaker_id.pending_seconds", subject.pending_seconds);
        if let Some(seconds) = subject.audio_seconds {
            self.float("speaker_id.audio_seconds", seconds);
        }
    }

    /// Answers why the query failed, when it did. A denial is what the budget is for, and no failure.
    fn ending(&mut self, ending: &Ending) -> Option<&'static str> {
        let outcome = match ending {
            Ending::Examined(_) => "succeeded",
            Ending::Denied(_) => "denied",
            Ending::Exited(_) => "exited",
            Ending::Failed(_) => "failed",
        };
        self.text("speaker_id.outcome", outcome);
        match ending {
            Ending::Examined(examined) => self.examined(examined),
            Ending::Denied(cap) => self.text("speaker_id.cap", cap.as_str()),
            Ending::Exited(reason) => self.text("speaker_id.exit", reason.as_str()),
            Ending::Failed(error) => {
                self.text("error.type", error);
                return Some(error);
            }
        }
        None
    }

    fn examined(&mut self, examined: &Examined) {
        if let Some((target, decision)) = examined.decision {
            self.text("speaker_id.target", target.as_str());
            self.text("speaker_id.decision", decision.as_str());
        }
        // With a decision it is another slot of the voice that exits, because the voice has its name now.
        if let Some(reason) = examined.exit.filter(|_| examined.decision.is_none()) {
            self.text("speaker_id.exit", reason.as_str());
        }
        let Some(verdict) = examined.verdict else { return };
        self.text("speaker_id.verdict", verdict.status);
        for (name, value) in [("distance", verdict.distance), ("runner_up_distance", verdict.runner_up)] {
            if let Some(value) = value {
                self.float(&format!("speaker_id.{name}"), value);
            }
        }
    }

    fn request(&mut self, server: &str, status: Option<u16>) {
        self.text("http.request.method", "POST");
        let (host, port) = server.rsplit_once(':').unwrap_or((server, ""));
        self.text("server.address", host);
        if let Ok(port) = port.parse() {
            self.number("server.port", port);
        }
        if let Some(status) = status {
            self.number("http.response.status_code", status.into());
        }
    }

    fn text(&mut self, key: &str, value: &str) {
        self.0.push(crate::otlp::text(key, value));
    }

    fn number(&mut self, key: &str, value: i64) {
        self.0.push(crate::otlp::number(key, value));
    }

    fn float(&mut self, key: &str, value: f64) {
        self.0.push(crate::otlp::float(key, value));
    }
}
