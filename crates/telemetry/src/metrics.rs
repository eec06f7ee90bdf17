//! Rollcall's own instruments, all with the prefix `rollcall_`: latencies, failures, refusals, levels, process and build;
//! and the one handle to everything that needs no lock.
//!
//! Does not own the accounting counters (see `accounts`), those of identity over time (see `identity`), nor what the
//! levels mean (see `levels`).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

use crate::identity::Identity;
use crate::labels::{Carried, FailureKind, Reconnect, Refusal, Target, Violation};
use crate::levels::Levels;
use crate::process::Process;

/// A histogram as it is declared: what a scrape shows before the first recording is made from this.
pub(crate) struct Latency {
    /// The name as it is scraped, with its unit.
    pub(crate) name: &'static str,
    /// The instrument's name: the exporter appends the unit.
    instrument: &'static str,
    /// What it measures.
    pub(crate) help: &'static str,
    /// Upper bounds in seconds.
    pub(crate) bounds: &'static [f64],
}

/// From the receipt of a segment to the verdict about its voice.
const VERDICT: Latency = Latency {
    name: "rollcall_verdict_seconds",
    instrument: "rollcall_verdict",
    help: "Time from the receipt of a segment to the verdict that it led to.",
    bounds: &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0],
};

/// From the moment a voice could be examined to its dispatch. The bounds are close around the age override of 5 s.
const SELECTION: Latency = Latency {
    name: "rollcall_selection_wait_seconds",
    instrument: "rollcall_selection_wait",
    help: "Time that a voice which could be examined waited for its turn.",
    bounds: &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 30.0],
};

/// The model's part. The bounds end beyond the reservation deadline of 5 s.
const EXTRACTION: Latency = Latency {
    name: "rollcall_extraction_seconds",
    instrument: "rollcall_extraction",
    help: "Time from the reservation of a query to its settlement, waiting and running together.",
    bounds: &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0],
};

/// Every latency there is.
pub(crate) const LATENCIES: [&Latency; 3] = [&VERDICT, &SELECTION, &EXTRACTION];

/// Work to be done just before each scrape, outside the accounts' lock.
type BeforeScrape = Box<dyn Fn(&Levels) + Send + Sync>;

/// A handle to the instruments. Clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Instruments>);

struct Instruments {
    levels: Levels,
    process: Process,
    verdict: Histogram<f64>,
    selection: Histogram<f64>,
    extraction: Histogram<f64>,
    failures: Counter<u64>,
    refusals: Counter<u64>,
    evicted: Counter<f64>,
    violations: Counter<u64>,
    identity: Identity,
    /// A handful, registered when the service starts.
    before_scrape: Mutex<Vec<BeforeScrape>>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter, version: &str) -> Self {
        let counter = |name: &'static str, help: &'static str| meter.u64_counter(name).with_description(help).build();
        let instruments = Instruments {
            levels: Levels::default(),
            process: Process::default(),
            verdict: VERDICT.build(meter),
            selection: SELECTION.build(meter),
            extraction: EXTRACTION.build(meter),
            failures: counter("rollcall_extraction_failures", "Queries that brought no voiceprint, by the reason."),
            refusals: counter("rollcall_refused", "Audio, messages and sockets refused at the door, by the reason."),
            evicted: meter
                .f64_counter("rollcall_evicted_range")
                .with_unit("s")
                .with_description("Speech that left a voice's range list unexamined, because newer speech came.")
                .build(),
            violations: counter("rollcall_invariant_violations", "Broken invariants: bugs. 0 in a healthy process."),
            identity: Identity::new(meter),
            before_scrape: Mutex::default(),
        };
        instruments.create_series();
        instruments.observe(meter, version);
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
    pub fn verdict(&self, after: Duration) {
        self.0.verdict.record(after.as_secs_f64(), &[]);
    }

    /// A voice was dispatched, `after` it became queueable.
    pub fn selected(&self, after: Duration) {
        self.0.selection.record(after.as_secs_f64(), &[]);
    }

    /// A query was settled, `after` it was reserved.
    pub fn extracted(&self, after: Duration) {
        self.0.extraction.record(after.as_secs_f64(), &[]);
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

impl Latency {
    fn build(&self, meter: &Meter) -> Histogram<f64> {
        meter
            .f64_histogram(self.instrument)
            .with_unit("s")
            .with_description(self.help)
            .with_boundaries(self.bounds.to_vec())
            .build()
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
        self.evicted.add(0.0, &[]);
    }

    fn observe(&self, meter: &Meter, version: &str) {
        self.observe_levels(meter);
        self.observe_ages(meter);
        self.levels.engine.observe(meter);
        self.process.observe(meter);
        let version = [KeyValue::new("version", version.to_owned())];
        meter
            .u64_observable_gauge("rollcall_build_info")
            .with_description("Always 1; the label says which version runs.")
            .with_callback(move |gauge| gauge.observe(1, &version))
            .build();
    }

    fn observe_levels(&self, meter: &Meter) {
        let levels = &self.levels;
        let gauges = [
            ("rollcall_queue_slots", "", "Voices waiting to be examined, in all conversations.", &levels.queue_slots),
            ("rollcall_open_queries", "", "Voiceprint queries reserved and not yet settled.", &levels.open_queries),
            ("rollcall_sockets", "", "Open sockets.", &levels.sockets),
            ("rollcall_conversations", "", "Live conversations.", &levels.conversations),
            ("rollcall_workers_up", "", "Extraction workers that are able to extract.", &levels.workers_up),
            ("rollcall_workers", "", "Extraction workers that are configured.", &levels.workers),
            ("rollcall_people", "", "Enrolled people.", &levels.people),
            ("rollcall_store", "By", "Size of the store on disk.", &levels.store_bytes),
        ];
        for (name, unit, help, level) in gauges {
            let level = level.clone();
            let gauge = meter.u64_observable_gauge(name).with_unit(unit).with_description(help);
            gauge.with_callback(move |gauge| gauge.observe(level.value(), &[])).build();
        }
        let restarts = levels.worker_restarts.clone();
        meter
            .u64_observable_counter("rollcall_worker_restarts")
            .with_description("Extraction workers that were started again after a panic, a hang or a lost thread.")
            .with_callback(move |counter| counter.observe(restarts.value(), &[]))
            .build();
    }

    fn observe_ages(&self, meter: &Meter) {
        let ages = self.levels.queue_ages.clone();
        meter
            .f64_observable_gauge("rollcall_queue_oldest_age")
            .with_unit("s")
            .with_description("How long the oldest waiting voice has waited; 0 when none waits.")
            .with_callback(move |gauge| gauge.observe(ages.oldest(Instant::now()).as_secs_f64(), &[]))
            .build();
    }
}
