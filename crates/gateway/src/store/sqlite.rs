//! The embedded store: one SQLite file in the data directory, one process, and two connections. One reads and writes; the
//! other one reads histories, so that no verdict waits for the authority of its receipt behind a long one.
//!
//! Write-ahead log with a full sync at each commit: an enrolment or correction that was answered is on disk. `secure_delete`
//! overwrites what is deleted. A deleted person's pages are cleaned out of the log and the file at once, a deleted
//! conversation's out of the log. A lock file keeps a second process out, because that one's changes would not reach the
//! first one's matching.

mod change;
mod conversation;
mod device;
mod file;
mod history;
mod mention;
mod receipt;
mod row;
mod schema;

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use matcher_core::Receipt;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{
    CapsuleWrite, ConversationRecord, DeviceKey, Filed, History, LOCAL_ACCOUNT, Page, Person, PersonChange, Sample,
    SampleFeatures, Store, StoreError,
};

/// The embedded store.
pub struct SqliteStore {
    /// Read-only. Closed before the other one, which then leaves no log behind.
    reader: Mutex<Connection>,
    connection: Mutex<Connection>,
    file: PathBuf,
    /// Held for as long as the store is open; the system lets go of it however the process ends.
    _lock: File,
}

impl SqliteStore {
    /// Opens the store in `directory`, making both when they are missing.
    ///
    /// # Errors
    /// When the directory cannot be used, another process has it open, or a newer version wrote it.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let trouble = |path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::Directory { path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(trouble(directory))?;
        let lock = file::lock(directory)?;
        let file = directory.join("rollcall.db");
        // Made here, because SQLite would let everybody read it; its log takes over the file's permissions.
        file::private(&file).map_err(trouble(&file))?;
        let mut connection = Connection::open(&file)?;
        schema::prepare(&mut connection, &file)?;
        let reader = schema::reader(&file)?;
        Ok(Self { reader: Mutex::new(reader), connection: Mutex::new(connection), file, _lock: lock })
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread that panicked inside a transaction rolled it back; the connection is as good as before.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it, or nothing. It takes the right to write before it reads, so that what it read still holds.
    fn change<T>(&self, change: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        transact(&mut self.connection(), TransactionBehavior::Immediate, change)
    }

    /// After a deletion. The reader rests meanwhile: the log is cut only when nobody reads it, and whoever waited for
    /// that with the other connection in hand would hold up the verdicts.
    fn clean(&self, clean: impl FnOnce(&mut Connection) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let _rests = self.reader();
        clean(&mut self.connection())
    }
}

fn transact<T>(
    connection: &mut Connection,
    behavior: TransactionBehavior,
    act: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = connection.transaction_with_behavior(behavior)?;
    let answer = act(&transaction)?;
    transaction.commit()?;
    Ok(answer)
}

impl Store for SqliteStore {
    fn people(&self) -> Result<Vec<Person>, StoreError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached(
            "SELECT id, name, is_owner, is_pinned, created_ms, updated_ms FROM people WHERE account = ?1 ORDER BY id",
        )?;
        let people = query.query_map([LOCAL_ACCOUNT], row::person)?;
        Ok(people.collect::<Result<_, _>>()?)
    }

    fn samples(&self) -> Result<Vec<Sample>, StoreError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached(
            "SELECT id, person, seconds, quality, fingerprint, vector, created_ms FROM samples
             WHERE account = ?1 ORDER BY person, id",
        )?;
        let samples = query.query_map([LOCAL_ACCOUNT], row::sample)?;
        Ok(samples.filter_map(Result::transpose).collect::<Result<_, _>>()?)
    }

    fn create_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        self.change(|transaction| {
            if change::person(transaction, id)?.is_some() {
                return Err(StoreError::PersonExists(id.to_owned()));
            }
            change::insert_person(transaction, id, now_ms)?;
            change::apply(transaction, id, change, now_ms)
        })
    }

    fn update_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        self.change(|transaction| change::apply(transaction, id, change, now_ms))
    }

    fn enrol(
        &self,
        id: &str,
        change: &PersonChange,
        features: &SampleFeatures,
        now_ms: i64,
    ) -> Result<Person, StoreError> {
        self.change(|transaction| {
            if change::person(transaction, id)?.is_none() {
                change::insert_person(transaction, id, now_ms)?;
            }
            change::insert_sample(transaction, id, features, now_ms)?;
            change::apply(transaction, id, change, now_ms)
        })
    }

    fn delete_person(&self, id: &str) -> Result<(), StoreError> {
        let removed = self.change(|transaction| {
            // The samples go with the person, and so does the number by which voices name them, by the foreign keys. Receipts stay, and nothing in them is replaced: a name
            // there is what the user typed about a conversation, and without it the decision would be lost.
            let removed =
                transaction.execute("DELETE FROM people WHERE account = ?1 AND id = ?2", [LOCAL_ACCOUNT, id])?;
            // Capsules hold voices too, and are sealed: nobody knows here whose is in which.
            device::take_all(transaction)?;
            Ok(removed)
        })?;
        self.clean(file::rewrite_people)?;
        if removed == 0 { Err(StoreError::NoSuchPerson(id.to_owned())) } else { Ok(()) }
    }

    fn receipt(&self, conversation: &str) -> Result<Option<Receipt>, StoreError> {
        receipt::read(&self.connection(), conversation)
    }

    fn receipt_generation(&self, conversation: &str) -> Result<u64, StoreError> {
        receipt::generation(&self.connection(), conversation)
    }

    fn save_receipt(&self, conversation: &str, receipt: &Receipt) -> Result<(), StoreError> {
        self.change(|transaction| receipt::write(transaction, conversation, receipt))
    }

    fn receipts(&self, conversations: &[&str]) -> Result<Vec<Filed>, StoreError> {
        transact(&mut self.connection(), TransactionBehavior::Deferred, |transaction| {
            receipt::filed(transaction, conversations)
        })
    }

    fn open_conversation(&self, conversation: &str, now_ms: i64) -> Result<(), StoreError> {
        self.change(|transaction| conversation::open(transaction, conversation, now_ms))
    }

    fn record(&self, conversation: &str, page: &Page, now_ms: i64) -> Result<(), StoreError> {
        self.change(|transaction| {
            if conversation::touch(transaction, conversation, now_ms)? {
                history::write(transaction, conversation, page)?;
            }
            Ok(())
        })
    }

    fn history(&self, conversation: &str) -> Result<Option<History>, StoreError> {
        transact(&mut self.reader(), TransactionBehavior::Deferred, |transaction| {
            history::read(transaction, conversation)
        })
    }

    fn conversations(&self, limit: usize) -> Result<Vec<ConversationRecord>, StoreError> {
        conversation::newest(&self.reader(), limit)
    }

    fn delete_conversation(&self, conversation: &str, now_ms: i64) -> Result<bool, StoreError> {
        let was_there = self.change(|transaction| conversation::delete(transaction, conversation, now_ms))?;
        self.clean(|connection| file::cut_log(connection))?;
        Ok(was_there)
    }

    fn forget(&self, before_ms: i64, now_ms: i64) -> Result<u64, StoreError> {
        let gone = self.change(|transaction| {
            device::forget(transaction, now_ms)?;
            conversation::forget(transaction, before_ms)
        })?;
        self.clean(|connection| file::cut_log(connection))?;
        Ok(gone)
    }

    fn take_capsule(&self, device: DeviceKey, token: &str, now_ms: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.change(|transaction| device::take(transaction, device, token, now_ms))
    }

    fn keep_capsule(
        &self,
        device: DeviceKey,
        turn: (&str, u64),
        body: Option<&[u8]>,
        now_ms: i64,
    ) -> Result<CapsuleWrite, StoreError> {
        self.change(|transaction| device::keep(transaction, device, turn, body, now_ms))
    }

    fn size_bytes(&self) -> u64 {
        ["", "-wal", "-shm"]
            .iter()
            .map(|suffix| {
                let mut name = self.file.clone().into_os_string();
                name.push(suffix);
                std::fs::metadata(name).map_or(0, |metadata| metadata.len())
            })
            .sum()
    }
}
