//! What is kept: people, the voiceprints of their samples, what somebody decided by hand about a conversation's voices,
//! who spoke when in it, and for two minutes the sealed capsule of a device. The seam between the service and a database.
//!
//! A [`Store`] acts for one account, is synchronous (async callers go through a blocking thread) and makes each change
//! in one transaction. It compares no voices, opens no capsule, and knows no model beyond the fingerprint that a vector
//! carries. What was said is never kept.

mod error;
mod over;
mod records;
mod sqlite;

use matcher_core::Receipt;

pub use error::StoreError;
pub use over::Over;
pub use records::{
    CapsuleWrite, ConversationRecord, DeviceKey, Filed, History, Page, Person, PersonChange, Sample, SampleFeatures,
    SegmentRecord, VoiceRecord,
};
pub use sqlite::SqliteStore;

/// The account of a single-user installation.
pub const LOCAL_ACCOUNT: &str = "local";

/// Bytes of a sealed capsule. A voiceprint of a thousand values and every id at its longest take a third of it; more is
/// refused, so that a device's row stays small.
pub const CAPSULE_BYTES_MAX: usize = 16_384;

/// How long a capsule may be taken: what was heard longer ago says little about who speaks now.
pub const CAPSULE_LIFE_MS: u64 = 120_000;

/// A database of people, voiceprints and receipts, for one account.
pub trait Store: Send + Sync {
    /// Everybody, by id.
    ///
    /// # Errors
    /// When the database fails.
    fn people(&self) -> Result<Vec<Person>, StoreError>;

    /// Every readable sample, by person and age. One that is damaged is left out with a warning that names the person.
    ///
    /// # Errors
    /// When the database fails.
    fn samples(&self) -> Result<Vec<Sample>, StoreError>;

    /// Makes a person.
    ///
    /// # Errors
    /// When the id is taken, another person is the owner, or the store is full.
    fn create_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError>;

    /// Changes a person.
    ///
    /// # Errors
    /// When there is no such person, or another person is the owner.
    fn update_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError>;

    /// Adds a sample, and makes or changes the person in the same step.
    ///
    /// # Errors
    /// When another person is the owner, or the store or the person's list of samples is full.
    fn enrol(
        &self,
        id: &str,
        change: &PersonChange,
        features: &SampleFeatures,
        now_ms: i64,
    ) -> Result<Person, StoreError>;

    /// Removes a person, its samples, every capsule, and every trace of them on disk. Voices that were taken for the person
    /// are nobody from then on, also when somebody is enrolled under the same id later. No socket that is open now writes
    /// a capsule any more; the device's next one does. Deleting somebody who is not there cleans as well. Receipts that
    /// name the person stay as they are: see [`Store::receipt`].
    ///
    /// # Errors
    /// When there is no such person, or traces remain.
    fn delete_person(&self, id: &str) -> Result<(), StoreError>;

    /// What people decided about a conversation's voices, or `None` when nobody decided anything.
    ///
    /// A receipt outlives the people it names. It holds a name as the user gave it with the decision, and no voiceprint.
    ///
    /// # Errors
    /// When the receipt is damaged, or the database fails. Neither means that nothing was decided.
    fn receipt(&self, conversation: &str) -> Result<Option<Receipt>, StoreError>;

    /// The generation of a conversation's receipt, 0 when nobody decided anything: whoever has that one need not read it.
    ///
    /// # Errors
    /// When the generation is damaged, or the database fails.
    fn receipt_generation(&self, conversation: &str) -> Result<u64, StoreError>;

    /// Keeps a receipt after one more edit. It is on disk when this returns. The receipt of a conversation that was deleted
    /// is empty and counts on from its generation; the conversation stays deleted.
    ///
    /// # Errors
    /// When the stored receipt is not the one before that edit (a conversation without one has generation 0), or the
    /// database fails. Nothing is changed then.
    fn save_receipt(&self, conversation: &str, receipt: &Receipt) -> Result<(), StoreError>;

    /// The receipts of several conversations, in their order, as they all were at one moment.
    ///
    /// # Errors
    /// When one is damaged, or the database fails.
    fn receipts(&self, conversations: &[&str]) -> Result<Vec<Filed>, StoreError>;

    /// A conversation begins or goes on; one that was deleted begins anew.
    ///
    /// # Errors
    /// When the database fails.
    fn open_conversation(&self, conversation: &str, now_ms: i64) -> Result<(), StoreError>;

    /// Keeps news of a conversation. One that nobody opened is opened by it; one that was deleted meanwhile stays deleted,
    /// and nothing is kept. A segment that comes in parts reaches from its earliest start to its latest end. A voice that
    /// is taken for somebody who is not enrolled any more is kept as nobody.
    ///
    /// # Errors
    /// When the database fails; then none of the page is kept.
    fn record(&self, conversation: &str, page: &Page, now_ms: i64) -> Result<(), StoreError>;

    /// What is kept of a conversation; `None` when nothing is, or it was deleted.
    ///
    /// # Errors
    /// When the database fails.
    fn history(&self, conversation: &str) -> Result<Option<History>, StoreError>;

    /// The newest conversations, at most `limit`.
    ///
    /// # Errors
    /// When the database fails.
    fn conversations(&self, limit: usize) -> Result<Vec<ConversationRecord>, StoreError>;

    /// Removes all that is kept of a conversation, and empties its receipt with one more generation, so that a scheduler
    /// that has it in memory hears of that. Says whether there was anything. That it was deleted stays known until
    /// [`Store::forget`] would have taken it, or until it is opened anew.
    ///
    /// # Errors
    /// When the database fails, and nothing is removed; or traces remain, and all the rest is gone.
    fn delete_conversation(&self, conversation: &str, now_ms: i64) -> Result<bool, StoreError>;

    /// Removes every conversation, with its receipt, that had no news since `before_ms`, and capsules that are over. Says
    /// how many conversations went. News is an opening, a page or a correction, and keeps both; so a conversation that
    /// runs is opened again now and then. A receipt without a conversation goes by its own age.
    ///
    /// # Errors
    /// When the database fails, and nothing is removed; or traces remain until the next time.
    fn forget(&self, before_ms: i64, now_ms: i64) -> Result<u64, StoreError>;

    /// A socket opens on a device: takes the device's capsule away, if there is one that is not over, and gives the device
    /// to `token`. From here on no older socket can write one.
    ///
    /// # Errors
    /// When the database fails; nothing is taken then.
    fn take_capsule(&self, device: DeviceKey, token: &str, now_ms: i64) -> Result<Option<Vec<u8>>, StoreError>;

    /// Keeps a device's capsule, or removes it when `body` is `None`. `turn` is a token and a revision: only the device's
    /// newest token may, and only with a revision higher than every one before, the first of which is 1.
    ///
    /// # Errors
    /// When the body has more than [`CAPSULE_BYTES_MAX`] bytes, or the database fails. Nothing is changed then.
    fn keep_capsule(
        &self,
        device: DeviceKey,
        turn: (&str, u64),
        body: Option<&[u8]>,
        now_ms: i64,
    ) -> Result<CapsuleWrite, StoreError>;

    /// Bytes on disk.
    fn size_bytes(&self) -> u64;
}

#[cfg(test)]
mod tests;
