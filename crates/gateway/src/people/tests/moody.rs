//! The real store with a mood: it hands out its list of people late once, or not at all.
//!
//! Everything else goes through as it is.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::store::{Over, Person, Sample, SqliteStore, Store, StoreError};

/// How long a list waits that nobody lets go.
const STALL_MAX: Duration = Duration::from_millis(300);

pub(super) struct Moody {
    inner: Arc<SqliteStore>,
    gate: Mutex<Option<Receiver<()>>>,
    fails: AtomicBool,
    readings: AtomicU32,
}

impl Moody {
    pub(super) fn new(inner: Arc<SqliteStore>) -> Self {
        Self { inner, gate: Mutex::default(), fails: AtomicBool::new(false), readings: AtomicU32::new(0) }
    }

    /// The next list is handed out when `gate` says so, or after a while.
    pub(super) fn stall_once(&self, gate: Receiver<()>) {
        *self.gate.lock().unwrap() = Some(gate);
    }

    /// From now on everybody can be read, or nobody.
    pub(super) fn set_fails(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    /// How often everybody was read, or should have been.
    pub(super) fn readings(&self) -> u32 {
        self.readings.load(Ordering::SeqCst)
    }
}

impl Over for Moody {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn people(&self) -> Result<Vec<Person>, StoreError> {
        let people = self.inner.people();
        if let Some(gate) = self.gate.lock().unwrap().take() {
            gate.recv_timeout(STALL_MAX).unwrap_or_default();
        }
        people
    }

    /// Asked first, once a reading.
    fn samples(&self) -> Result<Vec<Sample>, StoreError> {
        self.readings.fetch_add(1, Ordering::SeqCst);
        if self.fails.load(Ordering::SeqCst) {
            return Err(StoreError::Database(rusqlite::Error::InvalidQuery));
        }
        self.inner.samples()
    }
}
