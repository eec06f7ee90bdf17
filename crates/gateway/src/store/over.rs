//! A store over another one: everything goes through as it is, but for what the upper one does itself.
//!
//! For whoever adds something to a store, and for tests in which one fails, waits or tells what it was asked. Owns the one
//! list of what goes through; a method that is added to [`Store`] is added here, or nothing compiles.

use matcher_core::Receipt;

use super::{
    CapsuleWrite, ConversationRecord, DeviceKey, Filed, History, Page, Person, PersonChange, Sample, SampleFeatures,
    Store, StoreError,
};

/// See the module's text. Whoever implements it is a [`Store`]; import that one alone where it is called.
#[expect(clippy::missing_errors_doc, reason = "each fails as the method of the store that it is named after")]
pub trait Over: Send + Sync {
    /// The store below.
    fn inner(&self) -> &dyn Store;

    /// See [`Store::people`].
    fn people(&self) -> Result<Vec<Person>, StoreError> {
        self.inner().people()
    }

    /// See [`Store::samples`].
    fn samples(&self) -> Result<Vec<Sample>, StoreError> {
        self.inner().samples()
    }

    /// See [`Store::create_person`].
    fn create_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        self.inner().create_person(id, change, now_ms)
    }

    /// See [`Store::update_person`].
    fn update_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        self.inner().update_person(id, change, now_ms)
    }

    /// See [`Store::enrol`].
    fn enrol(
        &self,
        id: &str,
        change: &PersonChange,
        features: &SampleFeatures,
        now_ms: i64,
    ) -> Result<Person, StoreError> {
        self.inner().enrol(id, change, features, now_ms)
    }

    /// See [`Store::delete_person`].
    fn delete_person(&self, id: &str) -> Result<(), StoreError> {
        self.inner().delete_person(id)
    }

    /// See [`Store::receipt`].
    fn receipt(&self, conversation: &str) -> Result<Option<Receipt>, StoreError> {
        self.inner().receipt(conversation)
    }

    /// See [`Store::receipt_generation`].
    fn receipt_generation(&self, conversation: &str) -> Result<u64, StoreError> {
        self.inner().receipt_generation(conversation)
    }

    /// See [`Store::save_receipt`].
    fn save_receipt(&self, conversation: &str, receipt: &Receipt) -> Result<(), StoreError> {
        self.inner().save_receipt(conversation, receipt)
    }

    /// See [`Store::receipts`].
    fn receipts(&self, conversations: &[&str]) -> Result<Vec<Filed>, StoreError> {
        self.inner().receipts(conversations)
    }

    /// See [`Store::open_conversation`].
    fn open_conversation(&self, conversation: &str, now_ms: i64) -> Result<(), StoreError> {
        self.inner().open_conversation(conversation, now_ms)
    }

    /// See [`Store::record`].
    fn record(&self, conversation: &str, page: &Page, now_ms: i64) -> Result<(), StoreError> {
        self.inner().record(conversation, page, now_ms)
    }

    /// See [`Store::history`].
    fn history(&self, conversation: &str) -> Result<Option<History>, StoreError> {
        self.inner().history(conversation)
    }

    /// See [`Store::conversations`].
    fn conversations(&self, limit: usize) -> Result<Vec<ConversationRecord>, StoreError> {
        self.inner().conversations(limit)
    }

    /// See [`Store::delete_conversation`].
    fn delete_conversation(&self, conversation: &str, now_ms: i64) -> Result<bool, StoreError> {
        self.inner().delete_conversation(conversation, now_ms)
    }

    /// See [`Store::forget`].
    fn forget(&self, before_ms: i64, now_ms: i64) -> Result<u64, StoreError> {
        self.inner().forget(before_ms, now_ms)
    }

    /// See [`Store::take_capsule`].
    fn take_capsule(&self, device: DeviceKey, token: &str, now_ms: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner().take_capsule(device, token, now_ms)
    }

    /// See [`Store::keep_capsule`].
    fn keep_capsule(
        &self,
        device: DeviceKey,
        turn: (&str, u64),
        body: Option<&[u8]>,
        now_ms: i64,
    ) -> Result<CapsuleWrite, StoreError> {
        self.inner().keep_capsule(device, turn, body, now_ms)
    }

    /// See [`Store::size_bytes`].
    fn size_bytes(&self) -> u64 {
        self.inner().size_bytes()
    }
}

impl<T: Over> Store for T {
    fn people(&self) -> Result<Vec<Person>, StoreError> {
        Over::people(self)
    }

    fn samples(&self) -> Result<Vec<Sample>, StoreError> {
        Over::samples(self)
    }

    fn create_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        Over::create_person(self, id, change, now_ms)
    }

    fn update_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        Over::update_person(self, id, change, now_ms)
    }

    fn enrol(
        &self,
        id: &str,
        change: &PersonChange,
        features: &SampleFeatures,
        now_ms: i64,
    ) -> Result<Person, StoreError> {
        Over::enrol(self, id, change, features, now_ms)
    }

    fn delete_person(&self, id: &str) -> Result<(), StoreError> {
        Over::delete_person(self, id)
    }

    fn receipt(&self, conversation: &str) -> Result<Option<Receipt>, StoreError> {
        Over::receipt(self, conversation)
    }

    fn receipt_generation(&self, conversation: &str) -> Result<u64, StoreError> {
        Over::receipt_generation(self, conversation)
    }

    fn save_receipt(&self, conversation: &str, receipt: &Receipt) -> Result<(), StoreError> {
        Over::save_receipt(self, conversation, receipt)
    }

    fn receipts(&self, conversations: &[&str]) -> Result<Vec<Filed>, StoreError> {
        Over::receipts(self, conversations)
    }

    fn open_conversation(&self, conversation: &str, now_ms: i64) -> Result<(), StoreError> {
        Over::open_conversation(self, conversation, now_ms)
    }

    fn record(&self, conversation: &str, page: &Page, now_ms: i64) -> Result<(), StoreError> {
        Over::record(self, conversation, page, now_ms)
    }

    fn history(&self, conversation: &str) -> Result<Option<History>, StoreError> {
        Over::history(self, conversation)
    }

    fn conversations(&self, limit: usize) -> Result<Vec<ConversationRecord>, StoreError> {
        Over::conversations(self, limit)
    }

    fn delete_conversation(&self, conversation: &str, now_ms: i64) -> Result<bool, StoreError> {
        Over::delete_conversation(self, conversation, now_ms)
    }

    fn forget(&self, before_ms: i64, now_ms: i64) -> Result<u64, StoreError> {
        Over::forget(self, before_ms, now_ms)
    }

    fn take_capsule(&self, device: DeviceKey, token: &str, now_ms: i64) -> Result<Option<Vec<u8>>, StoreError> {
        Over::take_capsule(self, device, token, now_ms)
    }

    fn keep_capsule(
        &self,
        device: DeviceKey,
        turn: (&str, u64),
        body: Option<&[u8]>,
        now_ms: i64,
    ) -> Result<CapsuleWrite, StoreError> {
        Over::keep_capsule(self, device, turn, body, now_ms)
    }

    fn size_bytes(&self) -> u64 {
        Over::size_bytes(self)
    }
}
