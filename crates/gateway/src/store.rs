//! What is kept: people, the voiceprints of their samples, and what somebody decided by hand about a conversation's
//! voices. The seam between the service and a database.
//!
//! A [`Store`] acts for one account, is synchronous (async callers go through a blocking thread) and makes each change
//! in one transaction. It compares no voices and knows no model beyond the fingerprint that a vector carries.

mod sqlite;

use std::path::PathBuf;

use matcher_core::{Embedding, Receipt};

pub use sqlite::SqliteStore;

/// The account of a single-user installation.
pub const LOCAL_ACCOUNT: &str = "local";

/// Somebody who is enrolled, or about to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The id by which clients name the person.
    pub id: String,
    /// The name that people read.
    pub name: String,
    /// Whether this is the account's owner. At most one is.
    pub is_owner: bool,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970, of the latest change to the person or its samples.
    pub updated_ms: i64,
}

/// One enrolment clip, as it is kept: never the audio, only what the model made of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Numbered by the store.
    pub id: i64,
    /// Whose voice it is.
    pub person: String,
    /// What was measured.
    pub features: SampleFeatures,
    /// Milliseconds since 1970.
    pub created_ms: i64,
}

/// What is measured on a clip and kept.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleFeatures {
    /// Seconds of speech in the clip.
    pub seconds: f64,
    /// From 0 (hardly usable) to 1 (clean).
    pub quality: f64,
    /// The model that made the vector. Vectors of two models are never compared.
    pub fingerprint: String,
    /// The voiceprint.
    pub vector: Embedding,
}

/// How a person is made or changed. What is `None` stays as it is; a new person is named after its id and owns nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonChange {
    /// A new name.
    pub name: Option<String>,
    /// Whether this is the owner.
    pub is_owner: Option<bool>,
}

/// Why the store did not do as it was asked. Nothing was changed, except where said.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such person.
    #[error("there is no person {0:?}")]
    NoSuchPerson(String),
    /// The id is taken.
    #[error("a person {0:?} exists already")]
    PersonExists(String),
    /// Another person is the owner.
    #[error("{0:?} is the owner already; take the ownership from that person first")]
    OwnerExists(String),
    /// More people or samples than the store takes.
    #[error("{0}")]
    Full(String),
    /// Somebody else edited the conversation's receipt since it was read.
    #[error("the conversation's corrections changed meanwhile; read them again and repeat the edit")]
    ReceiptChanged,
    /// A receipt is there and cannot be read. It is left as it is.
    #[error(
        "the corrections of conversation {conversation:?} are damaged ({reason}); restore the database from a backup"
    )]
    Damaged {
        /// The conversation.
        conversation: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Another process has the data directory open.
    #[error("{0} is in use by another rollcall process; use --server URL to go through it, or stop it")]
    InUse(PathBuf),
    /// A newer version wrote the database.
    #[error("{path} has format {found}, and this version knows formats up to {known}; use the newer version")]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// The person is gone from the database, but bytes of the voiceprint may remain in its file.
    #[error(
        "the person was deleted, but the file could not be cleaned of traces ({0}); delete again to retry the cleaning"
    )]
    TracesRemain(#[source] rusqlite::Error),
    /// The file system refused.
    #[error("{path}: {source}")]
    Directory {
        /// What was opened.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The database refused.
    #[error("the database failed: {0}")]
    Database(#[from] rusqlite::Error),
}

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

    /// Removes a person, its samples and every trace of them on disk. Deleting somebody who is not there cleans as well.
    /// Receipts that name the person stay as they are: see [`Store::receipt`].
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

    /// Keeps a receipt after one more edit. It is on disk when this returns.
    ///
    /// # Errors
    /// When the stored receipt is not the one before that edit (a conversation without one has generation 0), or the
    /// database fails. Nothing is changed then.
    fn save_receipt(&self, conversation: &str, receipt: &Receipt) -> Result<(), StoreError>;

    /// Bytes on disk.
    fn size_bytes(&self) -> u64;
}

#[cfg(test)]
mod tests;
