//! The real store with a mood: it hands out its list of people late once, or not at all.
//!
//! Everything else goes through as it is.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use matcher_core::Receipt;

use crate::store::{
    CapsuleWrite, ConversationRecord, DeviceKey, Filed, History, Page, Person, PersonChange, Sample, SampleFeatures,
    SqliteStore, Store, StoreError,
};

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

impl Store for Moody {
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

    fn create_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        self.inner.create_person(id, change, now_ms)
    }

    fn update_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        self.inner.update_person(id, change, now_ms)
    }

    fn enrol(&self, id: &str, change: &PersonChange, new: &SampleFeatures, now_ms: i64) -> Result<Person, StoreError> {
        self.inner.enrol(id, change, new, now_ms)
    }

    fn delete_person(&self, id: &str) -> Result<(), StoreError> {
        self.inner.delete_person(id)
    }

    fn receipt(&self, conversation: &str) -> Result<Option<Receipt>, StoreError> {
        self.inner.receipt(conversation)
    }

    fn receipt_generation(&self, conversation: &str) -> Result<u64, StoreError> {
        self.inner.receipt_generation(conversation)
    }

    fn save_receipt(&self, conversation: &str, receipt: &Receipt) -> Result<(), StoreError> {
        self.inner.save_receipt(conversation, receipt)
    }

    fn receipts(&self, conversations: &[&str]) -> Result<Vec<Filed>, StoreError> {
        self.inner.receipts(conversations)
    }

    fn open_conversation(&self, conversation: &str, now_ms: i64) -> Result<(), StoreError> {
        self.inner.open_conversation(conversation, now_ms)
    }

    fn record(&self, conversation: &str, page: &Page, now_ms: i64) -> Result<(), StoreError> {
        self.inner.record(conversation, page, now_ms)
    }

    fn history(&self, conversation: &str) -> Result<Option<History>, StoreError> {
        self.inner.history(conversation)
    }

    fn conversations(&self, limit: usize) -> Result<Vec<ConversationRecord>, StoreError> {
        self.inner.conversations(limit)
    }

    fn delete_conversation(&self, conversation: &str, now_ms: i64) -> Result<bool, StoreError> {
        self.inner.delete_conversation(conversation, now_ms)
    }

    fn forget(&self, before_ms: i64, now_ms: i64) -> Result<u64, StoreError> {
        self.inner.forget(before_ms, now_ms)
    }

    fn take_capsule(&self, device: DeviceKey, token: &str, now_ms: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.take_capsule(device, token, now_ms)
    }

    fn keep_capsule(
        &self,
        device: DeviceKey,
        newest: (&str, u64),
        body: Option<&[u8]>,
        now_ms: i64,
    ) -> Result<CapsuleWrite, StoreError> {
        self.inner.keep_capsule(device, newest, body, now_ms)
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }
}
