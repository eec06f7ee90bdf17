//! The real store, which can be told to fail, and to let something happen while it is read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use gateway::store::{
    CapsuleWrite, ConversationRecord, DeviceKey, Filed, History, Page, Person, PersonChange, Sample, SampleFeatures,
    SqliteStore, Store, StoreError,
};
use matcher_core::Receipt;

use crate::directory::Directory;

/// What happens between a reading and its answer.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// See the module's text. Its directory goes with it.
pub struct TestStore {
    store: SqliteStore,
    fails: AtomicBool,
    meanwhile: Mutex<Option<Meanwhile>>,
    _directory: Directory,
}

impl TestStore {
    pub(super) fn new() -> Self {
        let directory = Directory::new();
        let store = SqliteStore::open(&directory.file("store")).expect("a fresh store");
        for (id, name, is_owner) in [("user", "User", true), ("p1", "Sarah", false)] {
            let person =
                PersonChange { name: Some(name.to_owned()), is_owner: Some(is_owner), ..PersonChange::default() };
            store.create_person(id, &person, 0).expect("a fresh store takes people");
        }
        Self { store, fails: AtomicBool::new(false), meanwhile: Mutex::default(), _directory: directory }
    }

    /// Whether receipts cannot be read or written from now on.
    pub fn set_failing(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    /// Lets this happen on the reading thread after the next reading of receipts, and before it is answered.
    pub fn during_next_reading(&self, happens: impl FnOnce() + Send + 'static) {
        *self.lock() = Some(Box::new(happens));
    }

    /// Whether what was to happen during a reading has happened.
    pub fn has_happened(&self) -> bool {
        self.lock().is_none()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Meanwhile>> {
        self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, reading: T) -> T {
        let happens = self.lock().take();
        if let Some(happens) = happens {
            happens();
        }
        reading
    }

    fn check(&self, conversation: &str) -> Result<(), StoreError> {
        if !self.fails.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(StoreError::Damaged { conversation: conversation.to_owned(), reason: "the test says so".to_owned() })
    }
}

impl Store for TestStore {
    fn people(&self) -> Result<Vec<Person>, StoreError> {
        self.store.people()
    }

    fn samples(&self) -> Result<Vec<Sample>, StoreError> {
        self.store.samples()
    }

    fn create_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        self.store.create_person(id, change, now_ms)
    }

    fn update_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        self.store.update_person(id, change, now_ms)
    }

    fn enrol(
        &self,
        id: &str,
        change: &PersonChange,
        features: &SampleFeatures,
        now_ms: i64,
    ) -> Result<Person, StoreError> {
        self.store.enrol(id, change, features, now_ms)
    }

    fn delete_person(&self, id: &str) -> Result<(), StoreError> {
        self.store.delete_person(id)
    }

    fn receipt(&self, conversation: &str) -> Result<Option<Receipt>, StoreError> {
        self.check(conversation)?;
        self.store.receipt(conversation)
    }

    fn receipt_generation(&self, conversation: &str) -> Result<u64, StoreError> {
        self.check(conversation)?;
        self.read(self.store.receipt_generation(conversation))
    }

    fn save_receipt(&self, conversation: &str, receipt: &Receipt) -> Result<(), StoreError> {
        self.check(conversation)?;
        self.store.save_receipt(conversation, receipt)
    }

    fn receipts(&self, conversations: &[&str]) -> Result<Vec<Filed>, StoreError> {
        conversations.iter().try_for_each(|conversation| self.check(conversation))?;
        self.read(self.store.receipts(conversations))
    }

    fn open_conversation(&self, conversation: &str, now_ms: i64) -> Result<(), StoreError> {
        self.store.open_conversation(conversation, now_ms)
    }

    fn record(&self, conversation: &str, page: &Page, now_ms: i64) -> Result<(), StoreError> {
        self.store.record(conversation, page, now_ms)
    }

    fn history(&self, conversation: &str) -> Result<Option<History>, StoreError> {
        self.store.history(conversation)
    }

    fn conversations(&self, limit: usize) -> Result<Vec<ConversationRecord>, StoreError> {
        self.store.conversations(limit)
    }

    fn delete_conversation(&self, conversation: &str, now_ms: i64) -> Result<bool, StoreError> {
        self.store.delete_conversation(conversation, now_ms)
    }

    fn forget(&self, before_ms: i64, now_ms: i64) -> Result<u64, StoreError> {
        self.store.forget(before_ms, now_ms)
    }

    fn take_capsule(&self, device: DeviceKey, token: &str, now_ms: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.check("of a capsule")?;
        self.store.take_capsule(device, token, now_ms)
    }

    fn keep_capsule(
        &self,
        device: DeviceKey,
        turn: (&str, u64),
        body: Option<&[u8]>,
        now_ms: i64,
    ) -> Result<CapsuleWrite, StoreError> {
        self.check("of a capsule")?;
        self.store.keep_capsule(device, turn, body, now_ms)
    }

    fn size_bytes(&self) -> u64 {
        self.store.size_bytes()
    }
}
