//! What Rollcall tells its operators: metrics, traces, one record, and logs.
//!
//! ```text
//!   Accounts ──┐ counters, moved and gathered under one lock
//!   Metrics ───┤ histograms, counters, levels         ┌─▶ registry ─▶ encode: text 0.0.4, OpenMetrics 1.0.0
//!              └─▶ OpenTelemetry meter ───────────────┤                  ▲ exemplars: a trace for each bucket
//!   QueryTrace ──▶ traces: one a query ───────────────┼─▶ otlp: to a collector, when one is configured
//!   FirstBlock ──▶ tracing event ──▶ logs ────────────┘   ... and as text or JSON lines on standard error
//! ```
//!
//! Owns: the names, labels and help of every metric, the consistency of the accounting counters in every scrape, both
//! exposition formats, what a query's trace holds, the record of a voice's first denial, and the log formats.
//!
//! Does not own: any decision. It knows neither the matcher nor the workers; the gateway translates their types to the
//! closed label sets in [`labels`]. Voiceprints, audio and transcripts have no way in: no function here takes them, and
//! ids are accepted by the record alone.

mod accounts;
pub mod capture;
mod distributions;
mod encode;
mod engine;
mod exemplars;
mod gauges;
mod identity;
pub mod labels;
mod levels;
mod logs;
mod metrics;
mod otlp;
mod process;
mod record;
mod scrape;
pub mod traces;

pub use accounts::{Accounts, Books, Denial, Incidence};
pub use engine::{Endpoint, Engine};
pub use labels::{
    Cap, Carried, Circuit, Class, Decision, EndpointFailure, ExitReason, Exported, FailureKind, FrameKind, Outcome,
    Override, Reconnect, Refusal, Settled, Signal, Target, Violation,
};
pub use levels::{Ages, History, Level, Levels, Share, Watch};
pub use logs::{DEFAULT_FILTER, Format, LogsError, init_logs};
pub use metrics::Metrics;
pub use otlp::{Otlp, OtlpError};
pub use record::FirstBlock;
pub use scrape::{StartError, Telemetry};
pub use traces::{TraceContext, Tracer};
