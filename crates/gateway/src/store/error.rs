//! Why a store does not do as it is asked, in words for whoever can mend it.

use std::path::PathBuf;

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
    /// More than the store takes: people, samples, or bytes of a capsule.
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
    /// The person or conversation is gone from the database, but bytes of it may remain in its file.
    #[error("it was deleted, but the file could not be cleaned of traces ({0}); delete again to retry the cleaning")]
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
