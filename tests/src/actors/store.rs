//! The real store, which can be told to fail, and to let something happen while it is read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use gateway::store::{CapsuleWrite, DeviceKey, Filed, Over, PersonChange, SqliteStore, Store, StoreError};
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

impl Over for TestStore {
    fn inner(&self) -> &dyn Store {
        &self.store
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
}
