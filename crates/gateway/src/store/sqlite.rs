//! The embedded store: one SQLite file in the data directory, one connection, one process.
//!
//! Write-ahead log with a full sync at each commit: an enrolment that was answered is on disk. `secure_delete`
//! overwrites what is deleted, and a deleted person's pages are cleaned out of the log and the file at once. A lock
//! file keeps a second process out, because that one's changes would not reach the first one's matching.

mod schema;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use matcher_core::Embedding;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{LOCAL_ACCOUNT, Person, PersonChange, Sample, SampleFeatures, Store, StoreError};

/// People of one account. A verdict compares a voice with all of them; a thousand cost it well under a millisecond.
const PEOPLE_MAX: i64 = 1000;

/// Samples of one person. Their mean hardly moves after the first ten; the rest is room for other models and days.
const SAMPLES_PER_PERSON_MAX: i64 = 64;

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
        std::fs::create_dir_all(directory).map_err(trouble(directory))?;
        let lock = lock(directory)?;
        let file = directory.join("rollcall.db");
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

fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join("rollcall.lock");
    let trouble = |source| StoreError::Directory { path: path.clone(), source };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(trouble)?;
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
        let people = query.query_map([LOCAL_ACCOUNT], person_of_row)?;
        Ok(people.collect::<Result<_, _>>()?)
    }

    fn samples(&self) -> Result<Vec<Sample>, StoreError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached(
            "SELECT id, person, seconds, quality, fingerprint, vector, created_ms FROM samples
             WHERE account = ?1 ORDER BY person, id",
        )?;
        let samples = query.query_map([LOCAL_ACCOUNT], sample_of_row)?;
        Ok(samples.filter_map(Result::transpose).collect::<Result<_, _>>()?)
    }

    fn create_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        self.change(|transaction| {
            if person(transaction, id)?.is_some() {
                return Err(StoreError::PersonExists(id.to_owned()));
            }
            insert_person(transaction, id, now_ms)?;
            apply(transaction, id, change, now_ms)
        })
    }

    fn update_person(&self, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
        self.change(|transaction| apply(transaction, id, change, now_ms))
    }

    fn enrol(
        &self,
        id: &str,
        change: &PersonChange,
        features: &SampleFeatures,
        now_ms: i64,
    ) -> Result<Person, StoreError> {
        self.change(|transaction| {
            if person(transaction, id)?.is_none() {
                insert_person(transaction, id, now_ms)?;
            }
            insert_sample(transaction, id, features, now_ms)?;
            apply(transaction, id, change, now_ms)
        })
    }

    fn delete_person(&self, id: &str) -> Result<(), StoreError> {
        let removed = self.change(|transaction| {
            // The samples go with the person, by the foreign key.
            Ok(transaction.execute("DELETE FROM people WHERE account = ?1 AND id = ?2", [LOCAL_ACCOUNT, id])?)
        })?;
        clean(&self.connection()).map_err(StoreError::TracesRemain)?;
        if removed == 0 { Err(StoreError::NoSuchPerson(id.to_owned())) } else { Ok(()) }
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

/// Deleted rows are zeroed in the file, but their old pages stand in the log until it is cut, and the file keeps its
/// free pages until it is rewritten. The rewrite goes through the log, hence the second cut.
fn clean(connection: &Connection) -> Result<(), rusqlite::Error> {
    cut_log(connection)?;
    connection.execute_batch("VACUUM")?;
    cut_log(connection)
}

fn cut_log(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

fn person(transaction: &Transaction<'_>, id: &str) -> Result<Option<Person>, StoreError> {
    Ok(transaction
        .query_row(
            "SELECT id, name, is_owner, created_ms, updated_ms FROM people WHERE account = ?1 AND id = ?2",
            [LOCAL_ACCOUNT, id],
            person_of_row,
        )
        .optional()?)
}

fn insert_person(transaction: &Transaction<'_>, id: &str, now_ms: i64) -> Result<(), StoreError> {
    let people: i64 =
        transaction.query_row("SELECT count(*) FROM people WHERE account = ?1", [LOCAL_ACCOUNT], |row| row.get(0))?;
    if people >= PEOPLE_MAX {
        return Err(StoreError::Full(format!(
            "{PEOPLE_MAX} people are enrolled, the most there can be; delete some first"
        )));
    }
    transaction.execute(
        "INSERT INTO people (account, id, name, is_owner, created_ms, updated_ms) VALUES (?1, ?2, ?2, 0, ?3, ?3)",
        params![LOCAL_ACCOUNT, id, now_ms],
    )?;
    Ok(())
}

fn apply(transaction: &Transaction<'_>, id: &str, change: &PersonChange, now_ms: i64) -> Result<Person, StoreError> {
    let before = person(transaction, id)?.ok_or_else(|| StoreError::NoSuchPerson(id.to_owned()))?;
    let after = Person {
        name: change.name.clone().unwrap_or(before.name),
        is_owner: change.is_owner.unwrap_or(before.is_owner),
        updated_ms: now_ms,
        ..before
    };
    if after.is_owner {
        refuse_second_owner(transaction, id)?;
    }
    transaction.execute(
        "UPDATE people SET name = ?3, is_owner = ?4, updated_ms = ?5 WHERE account = ?1 AND id = ?2",
        params![LOCAL_ACCOUNT, id, after.name, after.is_owner, now_ms],
    )?;
    Ok(after)
}

fn refuse_second_owner(transaction: &Transaction<'_>, id: &str) -> Result<(), StoreError> {
    let owner: Option<String> = transaction
        .query_row(
            "SELECT id FROM people WHERE account = ?1 AND is_owner = 1 AND id <> ?2",
            [LOCAL_ACCOUNT, id],
            |row| row.get(0),
        )
        .optional()?;
    owner.map_or(Ok(()), |owner| Err(StoreError::OwnerExists(owner)))
}

fn insert_sample(
    transaction: &Transaction<'_>,
    id: &str,
    features: &SampleFeatures,
    now_ms: i64,
) -> Result<(), StoreError> {
    let samples: i64 = transaction.query_row(
        "SELECT count(*) FROM samples WHERE account = ?1 AND person = ?2",
        [LOCAL_ACCOUNT, id],
        |row| row.get(0),
    )?;
    if samples >= SAMPLES_PER_PERSON_MAX {
        return Err(StoreError::Full(format!(
            "{id:?} has {SAMPLES_PER_PERSON_MAX} samples, the most there can be; delete the person and enrol again with the best"
        )));
    }
    transaction.execute(
        "INSERT INTO samples (account, person, seconds, quality, fingerprint, vector, created_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            LOCAL_ACCOUNT,
            id,
            features.seconds,
            features.quality,
            features.fingerprint,
            blob_of(&features.vector),
            now_ms
        ],
    )?;
    Ok(())
}

fn person_of_row(row: &Row<'_>) -> Result<Person, rusqlite::Error> {
    Ok(Person {
        id: row.get(0)?,
        name: row.get(1)?,
        is_owner: row.get(2)?,
        created_ms: row.get(3)?,
        updated_ms: row.get(4)?,
    })
}

/// `None` for a damaged vector: the person's other samples are still good.
fn sample_of_row(row: &Row<'_>) -> Result<Option<Sample>, rusqlite::Error> {
    let (id, person): (i64, String) = (row.get(0)?, row.get(1)?);
    let blob: Vec<u8> = row.get(5)?;
    let vector = match vector_of(&blob) {
        Ok(vector) => vector,
        Err(reason) => {
            tracing::warn!(%person, sample = id, %reason, "a damaged sample is left out; enrol the person again");
            return Ok(None);
        }
    };
    let features = SampleFeatures { seconds: row.get(2)?, quality: row.get(3)?, fingerprint: row.get(4)?, vector };
    Ok(Some(Sample { id, person, features, created_ms: row.get(6)? }))
}

/// Little-endian 32-bit floats.
fn blob_of(vector: &Embedding) -> Vec<u8> {
    vector.values().iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn vector_of(blob: &[u8]) -> Result<Embedding, String> {
    let (values, rest) = blob.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(format!("{} bytes are not a whole number of values", blob.len()));
    }
    let values: Vec<f32> = values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Embedding::new(&values).map_err(|reason| reason.to_string())
}
