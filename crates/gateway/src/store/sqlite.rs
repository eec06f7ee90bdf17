//! The embedded store: one SQLite file in the data directory, one connection, one process.
//!
//! Write-ahead log with a full sync at each commit: an enrolment or correction that was answered is on disk. `secure_delete`
//! overwrites what is deleted, and a deleted person's pages are cleaned out of the log and the file at once. A lock
//! file keeps a second process out, because that one's changes would not reach the first one's matching.

mod change;
mod receipt;
mod row;
mod schema;

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use matcher_core::Receipt;
use rusqlite::{Connection, Transaction};

use super::{LOCAL_ACCOUNT, Person, PersonChange, Sample, SampleFeatures, Store, StoreError};

/// The embedded store.
pub struct SqliteStore {
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
        let lock = lock(directory)?;
        let file = directory.join("rollcall.db");
        // Made here, because SQLite would let everybody read it; its log takes over the file's permissions.
        private_file(&file).map_err(trouble(&file))?;
        let mut connection = Connection::open(&file)?;
        schema::prepare(&mut connection, &file)?;
        Ok(Self { connection: Mutex::new(connection), file, _lock: lock })
    }

    /// A thread that panicked inside a transaction rolled it back; the connection is as good as before.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let answer = change(&transaction)?;
        transaction.commit()?;
        Ok(answer)
    }
}

/// Opens a file, made for this user alone if it is missing.
fn private_file(path: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).write(true).mode(0o600).open(path)
}

fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join("rollcall.lock");
    let trouble = |source| StoreError::Directory { path: path.clone(), source };
    let file = private_file(&path).map_err(trouble)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(directory.to_owned())),
        Err(TryLockError::Error(source)) => Err(trouble(source)),
    }
}

impl Store for SqliteStore {
    fn people(&self) -> Result<Vec<Person>, StoreError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached(
            "SELECT id, name, is_owner, created_ms, updated_ms FROM people WHERE account = ?1 ORDER BY id",
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
            // The samples go with the person, by the foreign key. Receipts stay, and nothing in them is replaced: a name
            // there is what the user typed about a conversation, and without it the decision would be lost.
            Ok(transaction.execute("DELETE FROM people WHERE account = ?1 AND id = ?2", [LOCAL_ACCOUNT, id])?)
        })?;
        clean(&self.connection()).map_err(StoreError::TracesRemain)?;
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

/// Deleted rows are zeroed and the file is rewritten without their pages. All of that stands in the log beside the old
/// pages until the log is written back and cut.
fn clean(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch("VACUUM")?;
    cut_log(connection)
}

/// A reader of the log, such as a backup tool, keeps it from being cut. The statement then succeeds and says so.
fn cut_log(connection: &Connection) -> Result<(), rusqlite::Error> {
    let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if !is_busy {
        return Ok(());
    }
    let reason = "another process is reading the database".to_owned();
    Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), Some(reason)))
}
