//! From gathered families to a page, in the text format 0.0.4 or in OpenMetrics 1.0.0.
//!
//! The exporter's own encoder knows neither OpenMetrics nor `_created`, so both formats are written here. What is
//! gathered, and when, is decided by the caller.

mod negotiate;
mod page;

pub(crate) use negotiate::negotiate;
pub(crate) use page::page;

/// Counters whose names begin so come with `_created`: dashboards of the system we start from rely on it.
const WITH_CREATED: &str = "omi_";

/// An exposition format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Prometheus text format 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// The value of the `Content-Type` header.
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}
