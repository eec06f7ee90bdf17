//! Everybody who is enrolled, in memory, with one voiceprint each for the model in use.
//!
//! Matching reads a [`People::snapshot`] and never waits for the store. A change goes to the store first; then a new
//! snapshot replaces the old one and the revision rises, so a reader sees all of a change or nothing of it. If the store
//! fails, matching goes on with the prints it holds, and [`loading`] reads them again later. How a clip becomes a sample is
//! [`enrolment`]'s matter.

mod enrolment;
mod gate;
mod loading;
mod naming;
mod record;
mod retries;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use gpu_worker::{Failure, Manifest};
use matcher_core::Embedding;
use tokio::sync::watch;

use loading::Loading;

pub use enrolment::{Enrolment, Force, SampleReport, voiceprint};
pub use gate::{Refusal, SPEECH_SECONDS_MIN};
pub use naming::{BadName, check_id, check_name, path_segment};
pub use record::{PersonRecord, Ranked};

use crate::store::{PersonChange, Store, StoreError};

/// Why a change to the people did not happen.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model gave no voiceprint.
    #[error("no voiceprint could be made: {0}")]
    Extraction(#[from] Failure),
    /// The thread that made the change panicked; what it had written was rolled back.
    #[error("the change was interrupted by an internal error")]
    Interrupted,
}

/// The enrolled people of one account. Clones share everything.
#[derive(Clone)]
pub struct People {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    model: Manifest,
    snapshot: RwLock<Arc<Vec<PersonRecord>>>,
    /// One change at a time, from its write to its snapshot: otherwise an older snapshot could replace a newer one.
    changing: Mutex<Loading>,
    revision: watch::Sender<u64>,
}

impl People {
    /// Loads everybody, with prints for `model`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn open(store: Arc<dyn Store>, model: &Manifest) -> Result<Self, StoreError> {
        let records = record::load(&*store, model)?;
        let shared = Shared {
            store,
            model: model.clone(),
            snapshot: RwLock::new(Arc::new(records)),
            changing: Mutex::default(),
            revision: watch::Sender::new(0),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Everybody as of now, by id.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Vec<PersonRecord>> {
        Arc::clone(&self.shared.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// One person as of now.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<PersonRecord> {
        self.snapshot().iter().find(|person| person.id == id).cloned()
    }

    /// A number that rises with every snapshot; await its change to hear of enrolments and deletions.
    #[must_use]
    pub fn on_change(&self) -> watch::Receiver<u64> {
        self.shared.revision.subscribe()
    }

    /// The model that the prints are for.
    #[must_use]
    pub fn model(&self) -> &Manifest {
        &self.shared.model
    }

    /// Whether there is a model. Without one people can be listed and deleted, and no sample can be judged.
    #[must_use]
    pub fn has_model(&self) -> bool {
        !self.shared.model.fingerprint.is_empty()
    }

    /// Where people and what they decided are kept.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Bytes of the store on disk.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.shared.store.size_bytes()
    }

    /// Everybody with a print, nearest first.
    #[must_use]
    pub fn rank(&self, voice: &Embedding) -> Vec<Ranked> {
        record::rank(&self.snapshot(), voice)
    }

    /// Makes a person without samples.
    ///
    /// # Errors
    /// When the id is taken, another person is the owner, or the store is full or fails.
    pub async fn create(&self, id: &str, change: PersonChange) -> Result<PersonRecord, PeopleError> {
        let id = id.to_owned();
        self.change(move |shared, loading| {
            shared.store.create_person(&id, &change, now_ms())?;
            shared.reload_one(loading, &id)
        })
        .await
    }

    /// Changes a person's name, ownership or pin.
    ///
    /// # Errors
    /// When there is no such person, another person is the owner, or the store fails.
    pub async fn update(&self, id: &str, change: PersonChange) -> Result<PersonRecord, PeopleError> {
        let id = id.to_owned();
        self.change(move |shared, loading| {
            shared.store.update_person(&id, &change, now_ms())?;
            shared.reload_one(loading, &id)
        })
        .await
    }

    /// Removes a person, its samples and every trace of them on disk.
    ///
    /// # Errors
    /// When there is no such person, the store fails, or traces remain.
    pub async fn delete(&self, id: &str) -> Result<(), PeopleError> {
        let id = id.to_owned();
        self.change(move |shared, loading| {
            let deleted = shared.store.delete_person(&id);
            if matches!(deleted, Ok(()) | Err(StoreError::TracesRemain(_))) {
                // From what is in memory, not from the store: a failing store must not keep the voice in the matching.
                shared.replace(shared.records().iter().filter(|person| person.id != id).cloned().collect());
                shared.catch_up(loading);
            }
            deleted
        })
        .await
    }

    /// Runs a change on a blocking thread. It runs to its end even when the caller leaves.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Arc<Shared>, &mut Loading) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, PeopleError> {
        let shared = Arc::clone(&self.shared);
        let task = tokio::task::spawn_blocking(move || {
            let mut loading = shared.one_change();
            change(&shared, &mut loading)
        });
        Ok(task.await.map_err(|_| PeopleError::Interrupted)??)
    }
}

impl Shared {
    /// A change that panicked before left the snapshot whole, so the next one may go on.
    fn one_change(&self) -> MutexGuard<'_, Loading> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn records(&self) -> Arc<Vec<PersonRecord>> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, records: Vec<PersonRecord>) {
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(records);
        self.revision.send_modify(|revision| *revision += 1);
    }
}

/// Milliseconds since 1970; a clock before that counts as 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
