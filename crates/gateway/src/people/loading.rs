//! Reading everybody from the store, after each change and again when that failed.
//!
//! A failed reading leaves the matching with the prints it had; the change itself is in the store. So everybody is read
//! again later, on the schedule of [`super::retries`], until a reading succeeds or the schedule ends.

use std::sync::Arc;

use tokio::task::AbortHandle;

use super::retries::{Retries, Retry};
use super::{PersonRecord, Shared, record};
use crate::store::StoreError;

/// What whoever makes a change holds.
#[derive(Default)]
pub(super) struct Loading {
    retries: Retries,
    /// The task that waits for the next retry; at most one.
    waiting: Option<AbortHandle>,
}

impl Loading {
    fn cancel(&mut self) {
        if let Some(task) = self.waiting.take() {
            task.abort();
        }
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Shared {
    /// Reads everybody anew and answers the person that was changed.
    pub(super) fn reload_one(self: &Arc<Self>, loading: &mut Loading, id: &str) -> Result<PersonRecord, StoreError> {
        loading.retries.handle_change();
        self.reload(loading)?;
        let changed = self.records().iter().find(|person| person.id == id).cloned();
        changed.ok_or_else(|| StoreError::NoSuchPerson(id.to_owned()))
    }

    /// After a change that needs no reading of its own: reads everybody if an earlier reading had failed. Whether that
    /// succeeds says nothing about the change.
    pub(super) fn catch_up(self: &Arc<Self>, loading: &mut Loading) {
        if loading.retries.is_behind() {
            loading.retries.handle_change();
            self.reload(loading).unwrap_or_default();
        }
    }

    fn reload(self: &Arc<Self>, loading: &mut Loading) -> Result<(), StoreError> {
        loading.cancel();
        match record::load(&*self.store, &self.model) {
            Ok(records) => {
                loading.retries.handle_loaded();
                self.replace(records);
                Ok(())
            }
            Err(error) => {
                let retry = loading.retries.handle_failed();
                warn(&error, loading.retries.failures(), retry);
                loading.waiting = retry.map(|retry| self.retry_later(retry));
                Err(error)
            }
        }
    }

    /// The task holds nothing of the people while it waits: a store that is let go meanwhile closes.
    fn retry_later(self: &Arc<Self>, retry: Retry) -> AbortHandle {
        let people = Arc::downgrade(self);
        let task = tokio::spawn(async move {
            tokio::time::sleep(retry.after).await;
            let Some(people) = people.upgrade() else { return };
            if tokio::task::spawn_blocking(move || people.retry(retry)).await.is_err() {
                tracing::error!(
                    "the people could not be read again because of an internal error; the next change will"
                );
            }
        });
        task.abort_handle()
    }

    /// A failure has its warning and its next retry already. The task that brought us here waits no more; it is let go
    /// rather than cancelled, so that it can tell of a panic.
    fn retry(self: &Arc<Self>, retry: Retry) {
        let mut loading = self.one_change();
        if loading.retries.is_due(retry) {
            loading.waiting = None;
            self.reload(&mut loading).unwrap_or_default();
        }
    }
}

/// Says what kind of failure it was and no more: a database's own words could hold what it was asked to keep.
fn warn(error: &StoreError, failures: u32, retry: Option<Retry>) {
    let kind = if matches!(error, StoreError::Database(_)) { "database" } else { "store" };
    match retry {
        Some(retry) => tracing::warn!(
            kind,
            failures,
            retry_seconds = retry.after.as_secs(),
            "the people could not be read; matching goes on with those in memory until the next try"
        ),
        None => tracing::warn!(
            kind,
            failures,
            "the people could not be read; matching goes on with those in memory until somebody changes them"
        ),
    }
}
