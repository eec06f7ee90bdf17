//! What one query went through, noted for a caller who wants to know when its run began and ended and whom it asked.
//!
//! Everything is noted once, by whoever does it and on its own thread; a caller may look at any time. What is never
//! noted did not happen, or happened after the caller had left. Does not own any decision: nothing here is waited for.

use std::sync::OnceLock;
use std::time::Instant;

/// See the module's text.
#[derive(Debug, Default)]
pub struct Course {
    /// The trace, and the span of it that a request is.
    trace: Option<(u128, u64)>,
    started: OnceLock<Instant>,
    over: OnceLock<Instant>,
    request: OnceLock<Request>,
}

/// One request to another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Host and port, as configured.
    pub server: String,
    /// When it was begun.
    pub sent: Instant,
    /// When its answer was there, or it was given up.
    pub over: Instant,
    /// What was wrong, as [`crate::remote::Fault::kind`].
    pub fault: Option<&'static str>,
    /// The status of the answer, when it was none of success.
    pub status: Option<u16>,
}

impl Course {
    /// A query whose request to another machine, should there be one, is this span of this trace.
    #[must_use]
    pub fn traced((trace, span): (u128, u64)) -> Self {
        Self { trace: Some((trace, span)), ..Self::default() }
    }

    /// When its run began.
    #[must_use]
    pub fn started(&self) -> Option<Instant> {
        self.started.get().copied()
    }

    /// When its run was over.
    #[must_use]
    pub fn over(&self) -> Option<Instant> {
        self.over.get().copied()
    }

    /// What another machine was asked.
    #[must_use]
    pub fn request(&self) -> Option<&Request> {
        self.request.get()
    }

    /// As the W3C writes it: a version, the trace, the span, and that it is sampled.
    pub(crate) fn traceparent(&self) -> Option<String> {
        self.trace.map(|(trace, span)| format!("00-{trace:032x}-{span:016x}-01"))
    }

    /// A query that is run again, because others had spoilt its first run, keeps the first beginning.
    pub(crate) fn note_started(&self, at: Instant) {
        self.started.set(at).ok();
    }

    pub(crate) fn note_over(&self) {
        self.over.set(Instant::now()).ok();
    }

    pub(crate) fn note_request(&self, request: Request) {
        self.request.set(request).ok();
    }
}
