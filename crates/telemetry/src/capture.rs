//! Log records kept in memory, for tests that assert on what was logged.
//!
//! ```
//! let capture = telemetry::capture::Capture::on_this_thread();
//! tracing::info!(answer = 42, "asked");
//! let record = capture.named("asked").pop().expect("it was logged on this thread");
//! assert_eq!(record.field("answer"), Some("42"));
//! ```
//! It sees the events of its own thread alone, which is what a test beside other tests needs; an actor test on one
//! arbiter logs on that thread too. [`Layer`] can be put into any other subscriber. Not for production: nothing is
//! written anywhere.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};

/// How many records are kept. The oldest go first: a test that logs more is looking at its end.
const RECORDS_MAX: usize = 10_000;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its level.
    pub level: Level,
    /// Its target.
    pub target: String,
    /// Its message.
    pub message: String,
    /// Its other fields, in order, as text.
    pub fields: Vec<(String, String)>,
}

impl Record {
    /// The value of the field `name`, as text.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find_map(|(field, value)| (field == name).then_some(value.as_str()))
    }
}

/// The part that goes into a subscriber. Clones share their records.
#[derive(Debug, Clone, Default)]
pub struct Layer(Arc<Mutex<VecDeque<Record>>>);

impl Layer {
    /// Everything logged so far, oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> tracing_subscriber::Layer<S> for Layer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut record = Record {
            level: *metadata.level(),
            target: metadata.target().to_owned(),
            message: String::new(),
            fields: Vec::new(),
        };
        event.record(&mut record);
        let mut records = self.lock();
        if records.len() == RECORDS_MAX {
            records.pop_front();
        }
        records.push_back(record);
    }
}

impl Visit for Record {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}"));
    }
}

impl Record {
    fn put(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            name => self.fields.push((name.to_owned(), value)),
        }
    }
}

/// A capture of this thread's events, until it is dropped.
pub struct Capture {
    layer: Layer,
    _until_dropped: DefaultGuard,
}

impl Capture {
    /// Starts capturing what this thread logs, at every level.
    #[must_use = "the capture ends when it is dropped"]
    pub fn on_this_thread() -> Self {
        // With a single subscriber in the process, tracing asks whichever thread first reaches an event whether anyone
        // listens, and caches "nobody" for all. A second one, that hears nothing, makes it ask everyone.
        tracing::subscriber::set_global_default(tracing_subscriber::registry()).ok();
        let layer = Layer::default();
        let subscriber = tracing_subscriber::registry().with(layer.clone());
        Self { layer, _until_dropped: tracing::subscriber::set_default(subscriber) }
    }

    /// Everything logged so far, oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.layer.records()
    }

    /// The records with this message, oldest first.
    #[must_use]
    pub fn named(&self, message: &str) -> Vec<Record> {
        let mut records = self.records();
        records.retain(|record| record.message == message);
        records
    }
}
