//! Rollcall's own counters and distributions, all with the prefix `rollcall_`, and the one handle to everything that needs
//! no lock.
//!
//! Does not own the accounting counters (see `accounts`), those of identity over time (see `identity`), how distributions are
//! declared (see `distributions`), nor what the levels mean and how they are shown (see `levels` and `gauges`).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

use crate::distributions::{ATTEMPT, EXTRACTION, FIRST_EXAMINATION, SELECTION, VERDICT};
use crate::exemplars::{Exemplars, Timed};
use crate::gauges;
use crate::identity::Identity;
use crate::labels::{Carried, Class, FailureKind, FrameKind, Override, Reconnect, Refusal, Target, Violation};
use crate::levels::Levels;
use crate::process::Process;
use crate::traces::TraceContext;

/// Work to be done just before each scrape, outside the accounts' lock.
type BeforeScrape = Box<dyn Fn(&Levels) + Send + Sync>;

/// A handle to the instruments. Clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Instruments>);

struct Instruments {
    levels: Levels,
    process: Process,
    verdict: Timed,
    selection: Timed,
    first_examination: Timed,
    extraction: Timed,
    attempt: Histogram<f64>,
    selections: Counter<u64>,
    voices: Counter<u64>,
    frames: Counter<u64>,
    failures: Counter<u64>,
    refusals: Counter<u64>,
    evicted: Counter<f64>,
    violations: Counter<u64>,
    identity: Identity,
    exemplars: Exemplars,
    /// A handful, registered when the service starts.
    before_scrape: Mutex<Vec<BeforeScrape>>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter, version: &str) -> Self {
        let counter = |name: &'static str, help: &'static str| meter.u64_counter(name).with_description(help).build();
        let mut exemplars = Exemplars::default();
        let instruments = Instruments {
            levels: Levels::default(),
            process: Process::default(),
            verdict: Timed::new(&VERDICT, meter, &mut exemplars),
            selection: Timed::new(&SELECTION, meter, &mut exemplars),
            first_examination: Timed::new(&FIRST_EXAMINATION, meter, &mut exemplars),
            extraction: Timed::new(&EXTRACTION, meter, &mut exemplars),
            attempt: ATTEMPT.build(meter),
            selections: counter(
                "rollcall_selections",
                "Voices whose turn came, by class and by whether age alone gave it to them.",
            ),
            voices: counter(
                "rollcall_voices",
                "Numbers that were heard for the first time in a lane of a conversation.",
            ),
            frames: counter("rollcall_frames", "Frames that sockets sent and that were taken, by what they carry."),
            failures: counter("rollcall_extraction_failures", "Queries that brought no voiceprint, by the reason."),
            refusals: counter("rollcall_refused", "Audio, messages and sockets refused at the door, by the reason."),
            evicted: meter
                .f64_counter("rollcall_evicted_range")
                .with_unit("s")
                .with_description("Speech that left a voice's range list unexamined, because newer speech came.")
                .build(),
            violations: counter("rollcall_invariant_violations", "Broken invariants: bugs. 0 in a healthy process."),
            identity: Identity::new(meter),
            exemplars,
            before_scrape: Mutex::default(),
        };
        instruments.create_series();
        gauges::observe(&instruments.levels, meter, version);
        instruments.process.observe(meter);
        Self(Arc::new(instruments))
    }

    /// The quantities that go up and down.
    #[must_use]
    pub fn levels(&self) -> &Levels {
        &self.0.levels
    }

    /// Registers work to be done before each scrape, for levels that are asked for rather than told: workers, store.
    /// It runs on the scraping thread and outside the accounts' lock; it should not wait.
    pub fn before_scrape(&self, work: impl Fn(&Levels) + Send + Sync + 'static) {
        self.0.before_scrape.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(work));
    }

    /// A segment led to a verdict, `after` it was received.
    pub fn verdict(&self, after: Duration, trace: Option<TraceContext>) {
        self.0.verdict.record(after, &[], trace);
    }

    /// A voice was dispatched, `after` it became queueable.
    pub fn selected(&self, class: Class, aged: Override, after: Duration, trace: Option<TraceContext>) {
        let class = KeyValue::new("class", class.as_str());
        self.0.selection.record(after, std::slice::from_ref(&class), trace);
        self.0.selections.add(1, &[class, KeyValue::new("override", aged.as_str())]);
    }

    /// A voice was heard for the first time in its lane.
    pub fn voice_heard(&self) {
        self.0.voices.add(1, &[]);
    }

    /// A query was reserved for a voice that had none before, `after` its first segment.
    pub fn first_examined(&self, after: Duration, trace: Option<TraceContext>) {
        self.0.first_examination.record(after, &[], trace);
    }

    /// A query was reserved: its voice's attempt of this number, from 1.
    pub fn attempted(&self, number: u32) {
        self.0.attempt.record(f64::from(number), &[]);
    }

    /// A socket sent a frame, and it was taken.
    pub fn frame(&self, kind: FrameKind) {
        self.0.frames.add(1, &[KeyValue::new("kind", kind.as_str())]);
    }

    /// A query was settled, `after` it was reserved.
    pub fn extracted(&self, after: Duration, trace: Option<TraceContext>) {
        self.0.extraction.record(after, &[], trace);
    }

    /// A query brought no voiceprint.
    pub fn extraction_failed(&self, kind: FailureKind) {
        self.0.failures.add(1, &[KeyValue::new("kind", kind.as_str())]);
    }

    /// Audio, a message or a socket was refused.
    pub fn refused(&self, reason: Refusal) {
        self.0.refusals.add(1, &[KeyValue::new("reason", reason.as_str())]);
    }

    /// Unexamined speech left a voice's range list. Negative and non-finite lengths count nothing.
    pub fn range_evicted(&self, seconds: f64) {
        if seconds.is_finite() && seconds > 0.0 {
            self.0.evicted.add(seconds, &[]);
        }
    }

    /// A conversation rolled over: one voice that the old one had named, and what carried its name into the new one.
    pub fn rolled_over(&self, carried: Carried, target: Target) {
        self.0.identity.rollover(carried, target, 1);
    }

    /// A step of recognising the owner after a reconnect.
    pub fn reconnect(&self, step: Reconnect) {
        self.0.identity.reconnect(step, 1);
    }

    /// A provider seems to put several people under one number. Once a run.
    pub fn collapsed(&self) {
        self.0.identity.collapse(1);
    }

    /// An invariant is broken.
    pub fn violated(&self, violation: Violation) {
        self.0.violations.add(1, &[KeyValue::new("kind", violation.as_str())]);
    }

    /// The traces that the latencies point to.
    pub(crate) fn exemplars(&self) -> &Exemplars {
        &self.0.exemplars
    }

    /// The counter behind [`Metrics::violated`], for the accounts, which find violations of their own.
    pub(crate) fn violations(&self) -> Counter<u64> {
        self.0.violations.clone()
    }

    /// Brings the levels up to date. Called before a scrape takes the accounts' lock, so that no foreign code, and no
    /// file access, ever runs under it.
    pub(crate) fn refresh(&self) {
        self.0.process.sample();
        for work in self.0.before_scrape.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            work(&self.0.levels);
        }
    }
}

impl Instruments {
    fn create_series(&self) {
        for kind in FailureKind::ALL {
            self.failures.add(0, &[KeyValue::new("kind", kind.as_str())]);
        }
        for reason in Refusal::ALL {
            self.refusals.add(0, &[KeyValue::new("reason", reason.as_str())]);
        }
        for kind in Violation::ALL {
            self.violations.add(0, &[KeyValue::new("kind", kind.as_str())]);
        }
        for class in Class::ALL {
            for aged in Override::ALL {
                let labels = [KeyValue::new("class", class.as_str()), KeyValue::new("override", aged.as_str())];
                self.selections.add(0, &labels);
            }
        }
        for kind in FrameKind::ALL {
            self.frames.add(0, &[KeyValue::new("kind", kind.as_str())]);
        }
        self.voices.add(0, &[]);
        self.evicted.add(0.0, &[]);
    }
}
