//! The accounting counters: every attempt, denial, exit and decision, moved and gathered under one lock.
//!
//! A counter alone cannot promise that two of them agree when they are read. Here each event moves all of its counters
//! in one locked step and a scrape holds the same lock, so that in every scrape
//!
//! ```text
//!   budget_exits{voice} + {socket} + {both}  =  match_exits{embedding_budget}
//!   attempts{reserved}                       =  attempts{succeeded} + {failed} + rollcall_open_queries
//! ```
//!
//! Does not own: the budgets. Whether a query is denied, and whether a denial is the first, comes from the caller.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use crate::labels::{Cap, Decision, ExitReason, Outcome, Settled, Target, Violation};
use crate::levels::Level;

/// What the names of all accounting counters begin with. Dashboards of the system we start from rely on it.
const PREFIX: &str = "omi_speaker_id_";

/// Whether a denial is the first of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incidence {
    /// The first one: it counts towards incidence.
    First,
    /// One more.
    Repeat,
}

/// A reservation that was refused, with everything that is booked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denial {
    /// The one cap that denied it.
    pub cap: Cap,
    /// Whether it is the first of this voice in this generation.
    pub voice: Incidence,
    /// Whether it is the first in the life of this socket's lane.
    pub socket: Incidence,
}

/// The attempts as they stand at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Books {
    /// Attempts taken.
    pub reserved: u64,
    /// Of those, the ones that brought a vector.
    pub succeeded: u64,
    /// Of those, the ones that did not.
    pub failed: u64,
    /// Of those, the ones still under way.
    pub open: u64,
}

/// A handle to the accounting counters. Clones share them.
#[derive(Clone)]
pub struct Accounts(Arc<Shared>);

struct Shared {
    /// Held for each event, and for the length of a scrape (tens of microseconds).
    books: Mutex<Books>,
    counters: Counters,
    open: Level,
}

struct Counters {
    exits_by_cap: Counter<u64>,
    attempts: Counter<u64>,
    voices: Counter<u64>,
    sockets: Counter<u64>,
    exits: Counter<u64>,
    decisions: Counter<u64>,
    violations: Counter<u64>,
}

impl Accounts {
    /// Creates the counters with all their series at 0. `open` is kept equal to the attempts under way.
    pub(crate) fn new(meter: &Meter, violations: Counter<u64>, open: Level) -> Self {
        let counters = Counters::new(meter, violations);
        counters.create_series();
        Self(Arc::new(Shared { books: Mutex::new(Books::default()), counters, open }))
    }

    /// An attempt and a token were taken.
    pub fn reserved(&self) {
        let mut books = self.lock();
        books.reserved += 1;
        books.open += 1;
        self.0.open.set(books.open);
        self.0.counters.attempt(Outcome::Reserved);
    }

    /// An open attempt ended. One that was never reserved is a bug: it is counted as a violation and left out, so that
    /// what the other counters say stays true.
    pub fn settled(&self, how: Settled) {
        let mut books = self.lock();
        let Some(open) = books.open.checked_sub(1) else {
            return self.0.counters.violated(Violation::SettledUnreserved);
        };
        books.open = open;
        match how {
            Settled::Succeeded => books.succeeded += 1,
            Settled::Failed => books.failed += 1,
        }
        self.0.open.set(open);
        self.0.counters.attempt(how.outcome());
    }

    /// A reservation was refused: the exit under its cap, the exit reason and the incidence, in one step.
    pub fn denied(&self, denial: Denial) {
        let _books = self.lock();
        let cap = [KeyValue::new("cap", denial.cap.as_str())];
        let counters = &self.0.counters;
        counters.exits_by_cap.add(1, &cap);
        counters.exit(ExitReason::EmbeddingBudget);
        if denial.voice == Incidence::First {
            counters.voices.add(1, &cap);
        }
        if denial.socket == Incidence::First {
            counters.sockets.add(1, &cap);
        }
    }

    /// An update led to no verdict, for any reason but the budget: that one has a cap and goes through
    /// [`Accounts::denied`]. Given here it is counted as a violation and left out, so that the sums stay equal.
    pub fn exited(&self, reason: ExitReason) {
        let _books = self.lock();
        if reason == ExitReason::EmbeddingBudget {
            return self.0.counters.violated(Violation::ExitWithoutCap);
        }
        self.0.counters.exit(reason);
    }

    /// A decision was made about a voice.
    pub fn decided(&self, target: Target, decision: Decision) {
        let _books = self.lock();
        self.0.counters.decision(target, decision, 1);
    }

    /// The attempts as they stand now.
    #[must_use]
    pub fn books(&self) -> Books {
        *self.lock()
    }

    /// Keeps every account still while the guard lives. A scrape reads the counters under it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Books> {
        // Nothing in the critical sections can panic half-way; a poisoned lock would only repeat another thread's end.
        self.0.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counters {
    fn new(meter: &Meter, violations: Counter<u64>) -> Self {
        let counter = |name: &str, help: &'static str| {
            meter.u64_counter(format!("{PREFIX}{name}")).with_description(help).build()
        };
        Self {
            exits_by_cap: counter("budget_exits", "Denied voiceprint queries, each under the one cap that denied it."),
            attempts: counter(
                "embedding_attempts",
                "Voiceprint queries reserved, and how they ended; reserved less the other two are still open.",
            ),
            voices: counter("budget_voices", "Voices denied for the first time in their generation, by the first cap."),
            sockets: counter("budget_sockets", "Sockets denied for the first time in their life, by the first cap."),
            exits: counter("match_exits", "Updates that led to no verdict, by the reason."),
            decisions: counter("live_decisions", "Decisions about a voice, by whom it was about and what it said."),
            violations,
        }
    }

    /// Adds 0 everywhere: a series that is absent until its first event hides that event from every rate.
    fn create_series(&self) {
        for cap in Cap::ALL {
            let label = [KeyValue::new("cap", cap.as_str())];
            self.exits_by_cap.add(0, &label);
            self.voices.add(0, &label);
            self.sockets.add(0, &label);
        }
        for outcome in Outcome::ALL {
            self.attempts.add(0, &[KeyValue::new("outcome", outcome.as_str())]);
        }
        for reason in ExitReason::ALL {
            self.exits.add(0, &[KeyValue::new("reason", reason.as_str())]);
        }
        for target in Target::ALL {
            for decision in Decision::ALL {
                self.decision(*target, *decision, 0);
            }
        }
    }

    fn attempt(&self, outcome: Outcome) {
        self.attempts.add(1, &[KeyValue::new("outcome", outcome.as_str())]);
    }

    fn exit(&self, reason: ExitReason) {
        self.exits.add(1, &[KeyValue::new("reason", reason.as_str())]);
    }

    fn decision(&self, target: Target, decision: Decision, by: u64) {
        let labels = [KeyValue::new("target", target.as_str()), KeyValue::new("decision", decision.as_str())];
        self.decisions.add(by, &labels);
    }

    fn violated(&self, violation: Violation) {
        self.violations.add(1, &[KeyValue::new("kind", violation.as_str())]);
        tracing::error!(kind = violation.as_str(), "an invariant of the accounts is broken; this is a bug");
    }
}
