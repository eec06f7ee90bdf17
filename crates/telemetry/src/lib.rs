//! What Rollcall tells its operators: metrics, one record, and logs.
//!
//! ```text
//!   Accounts ──┐ counters, moved and gathered under one lock
//!   Metrics ───┤ histograms, counters, levels         ┌─▶ registry ─▶ encode: text 0.0.4, OpenMetrics 1.0.0
//!              └─▶ OpenTelemetry meter ───────────────┴─▶ otlp: to a collector, when one is configured
//!   FirstBlock ──▶ tracing event ──▶ logs: readable text or JSON lines on standard error
//! ```
//!
//! Owns: the names, labels and help of every metric, the consistency of the accounting counters in every scrape, both
//! exposition formats, the record of a voice's first denial, and the log formats.
//!
//! Does not own: any decision. It knows neither the matcher nor the workers; the gateway translates their types to the
//! closed label sets in [`labels`]. Voiceprints, audio and transcripts have no way in: no function here takes them, and
//! ids are accepted by the record alone.

mod accounts;
pub mod capture;
mod encode;
mod engine;
mod identity;
pub mod labels;
mod levels;
mod logs;
mod metrics;
mod otlp;
mod process;
mod record;
mod scrape;

pub use accounts::{Accounts, Books, Denial, Incidence};
pub use engine::{Endpoint, Engine};
pub use labels::{
    Cap, Carried, Circuit, Decision, EndpointFailure, ExitReason, FailureKind, Outcome, Reconnect, Refusal, Settled,
    Target, Violation,
};
pub use levels::{Ages, Level, Levels, Share, Watch};
pub use logs::{DEFAULT_FILTER, Format, LogsError, init_logs};
pub use metrics::Metrics;
pub use otlp::{Otlp, OtlpError};
pub use record::FirstBlock;
pub use scrape::{StartError, Telemetry};
