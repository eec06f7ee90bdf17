//! The fault run's report as a JSON object. The run, its table and its judgement are the worker's.

use gpu_worker::faults::{Report, Row};
use serde_json::{Value, json};

/// Everything that the table says, and what is not as it must be.
#[must_use]
pub fn json(report: &Report) -> Value {
    json!({
        "queries": report.queries(),
        "rows": report.rows.iter().map(row).collect::<Vec<_>>(),
        "left": report.left.map(|left| json!({"threads": left.threads, "descriptors": left.descriptors})),
        "troubles": report.troubles(),
    })
}

fn row(row: &Row) -> Value {
    json!({
        "fault": row.fault,
        "queries": row.queries,
        "voiceprints": row.voiceprints,
        "wrong": row.wrong,
        "failed": row.failed,
        "refused": row.refused,
        "left": row.left,
        "unanswered": row.unanswered,
        "longest_ms": row.longest.as_secs_f64() * 1e3,
        "recovery_ms": row.recovery.map(|time| time.as_secs_f64() * 1e3),
        "servers": row.books.map(|(answered, failed)| json!({"answered": answered, "failed": failed})),
    })
}
