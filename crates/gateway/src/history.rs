//! What is kept of conversations for the time after them: who spoke when, and who that was.
//!
//! ```text
//!  conversations ──push──▶ Backlog ──at most every 0.6 s──▶ Store
//!                             ▲ └── merged by conversation, recording, stream, segment and voice
//!                             └──── what could not be written waits again: 0.6, 1.2, 2.4, 4.8, 5, 5 … s
//! ```
//! Nobody waits to push. [`History::wait_for_disk`] is for the end of a conversation and for whoever reads. Owns the one
//! writer, retention, and the [`truth`] of what was kept; what people decided is [`crate::live::corrections`]'s to write.

mod backlog;
pub mod truth;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::people::now_ms;
use crate::store::{Page, Store, StoreError};
pub use backlog::Deletion;
use backlog::{Backlog, Entry};

/// The least time between two writings: a name that changes back and forth is written once.
const BEAT: Duration = Duration::from_millis(600);

/// The longest time between two tries of what failed.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// The longest wait for the disk: the first three tries of a store that fails. Whoever waits then goes on without.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How often old conversations are removed. Days are kept, so an hour is soon.
const FORGET_EVERY: Duration = Duration::from_secs(3600);

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The way to the one writer.
#[derive(Debug, Clone)]
pub struct History {
    shared: Arc<Shared>,
    /// The number of the newest push. Closed with the last handle, which ends the writer.
    news: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Shared {
    backlog: Mutex<Backlog>,
    /// Rises with every writing that ended.
    rounds: watch::Sender<u64>,
    /// How many writings failed.
    failures: AtomicU64,
}

impl Shared {
    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    /// Starts the writer on the current runtime. Conversations without news for `keep_days` are removed, with what people
    /// decided about them; 0 keeps them for ever.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, keep_days: u32) -> Self {
        let shared = Arc::new(Shared::default());
        let news = watch::Sender::new(0);
        let writer = Writer { store, keep_days, shared: shared.clone(), news: news.subscribe() };
        tokio::spawn(writer.run());
        Self { shared, news }
    }

    /// A conversation begins or goes on. Its pages are kept only after this. One that goes on says so every hour, also when
    /// nobody speaks: whoever has had no news for the days that are kept is removed, with what people decided.
    pub fn opened(&self, conversation: &str) {
        self.change(|backlog| backlog.open(conversation));
    }

    /// News of a recording. What waits of it already is merged with it.
    pub fn push(&self, conversation: &str, page: Page) {
        self.change(|backlog| backlog.push(conversation, page));
    }

    /// Returns when everything that was pushed before is written, or was given up, or after five seconds.
    pub async fn wait_for_disk(&self) {
        self.wait(None).await;
    }

    /// As [`History::wait_for_disk`], for one conversation alone.
    pub async fn wait_for(&self, conversation: &str) {
        self.wait(Some(conversation)).await;
    }

    /// A person was deleted from the store: what waits of the voices that were taken for them forgets that, and what is
    /// being written now has ended when this returns, or has had five seconds for it. From then on somebody may be enrolled
    /// under the same id, and inherits nothing.
    pub async fn forget_person(&self, person: &str) {
        let mut rounds = self.shared.rounds.subscribe();
        let is_writing = self.shared.backlog().forget_person(person);
        if is_writing && timeout(WAIT_MAX, rounds.changed()).await.is_err() {
            tracing::warn!("history from before a person's deletion is still being written");
        }
    }

    /// Removes a conversation and what people decided about it, also what waits of it.
    pub async fn delete(&self, conversation: &str) -> Deletion {
        let (done, answer) = oneshot::channel();
        self.change(|backlog| backlog.delete(conversation, done));
        answer.await.unwrap_or(Deletion::Failed)
    }

    /// How far the disk is behind, for a scrape.
    pub fn tell(&self, levels: &telemetry::History) {
        let backlog = self.shared.backlog();
        levels.waiting.set(backlog.unwritten() as u64);
        levels.waiting_max.set(backlog::ROWS_MAX as u64);
        levels.lost.set(backlog.lost());
        levels.failures.set(self.shared.failures.load(Ordering::Relaxed));
    }

    async fn wait(&self, conversation: Option<&str>) {
        let mut rounds = self.shared.rounds.subscribe();
        let push = self.shared.backlog().pushed();
        let settled =
            async { while !self.shared.backlog().is_settled(push, conversation) && rounds.changed().await.is_ok() {} };
        if timeout(WAIT_MAX, settled).await.is_err() {
            tracing::warn!("the history is not on disk yet; it is tried on");
        }
    }

    fn change(&self, change: impl FnOnce(&mut Backlog)) {
        let pushed = {
            let mut backlog = self.shared.backlog();
            change(&mut backlog);
            backlog.pushed()
        };
        self.news.send_replace(pushed);
    }
}

/// The task that writes.
struct Writer {
    store: Arc<dyn Store>,
    keep_days: u32,
    shared: Arc<Shared>,
    news: watch::Receiver<u64>,
}

impl Writer {
    /// Ends with the last handle, after what that had pushed.
    async fn run(mut self) {
        let mut retention = interval(FORGET_EVERY);
        retention.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                news = self.news.changed() => match news {
                    Ok(()) => self.write_all().await,
                    Err(_) => return,
                },
                _ = retention.tick() => self.forget().await,
            }
        }
    }

    /// Writes until nothing is left that failed.
    async fn write_all(&mut self) {
        let mut pause = BEAT;
        while self.write().await.is_err() {
            if self.news.has_changed().is_err() {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(BACKOFF_MAX);
        }
        sleep(BEAT).await;
    }

    async fn write(&mut self) -> Result<(), ()> {
        let (batch, forgotten) = {
            let mut backlog = self.shared.backlog();
            (backlog.take(), backlog.take_forgotten())
        };
        if forgotten > 0 {
            tracing::warn!(forgotten, "the store fails for so long that history was forgotten before it was written");
        }
        let store = self.store.clone();
        // A panic in the store loses this batch, not the writer.
        let written = tokio::task::spawn_blocking(move || write_batch(&*store, batch)).await;
        let (failed, error) = written.unwrap_or_default();
        if let Some(error) = &error {
            tracing::warn!(%error, conversations = failed.len(), "history cannot be written; it is tried again");
        }
        let outcome = if failed.is_empty() { Ok(()) } else { Err(()) };
        self.shared.failures.fetch_add(u64::from(outcome.is_err()), Ordering::Relaxed);
        self.shared.backlog().land(failed);
        self.shared.rounds.send_modify(|rounds| *rounds += 1);
        outcome
    }

    /// Also what keeps conversations for ever has things that are over.
    async fn forget(&self) {
        let (store, now) = (self.store.clone(), now_ms());
        let before = if self.keep_days == 0 { i64::MIN } else { now - i64::from(self.keep_days) * DAY_MS };
        match tokio::task::spawn_blocking(move || store.forget(before, now)).await {
            Ok(Ok(0)) | Err(_) => {}
            Ok(Ok(conversations)) => tracing::info!(conversations, "old conversations were removed"),
            Ok(Err(error)) => tracing::warn!(%error, "old conversations cannot be removed; it is tried in an hour"),
        }
    }
}

/// What could not be written, and the first reason.
type Failed = (BTreeMap<String, Entry>, Option<StoreError>);

fn write_batch(store: &dyn Store, batch: BTreeMap<String, Entry>) -> Failed {
    let mut failed = Failed::default();
    for (conversation, mut entry) in batch {
        if let Err(error) = write_entry(store, &conversation, &mut entry) {
            failed.0.insert(conversation, entry);
            failed.1.get_or_insert(error);
        }
    }
    failed
}

/// What fails is written anew as a whole: to write a page or an opening twice changes nothing.
fn write_entry(store: &dyn Store, conversation: &str, entry: &mut Entry) -> Result<(), StoreError> {
    if !entry.deletions.is_empty() {
        let deletion = delete(store, conversation);
        for done in entry.deletions.drain(..) {
            // Whoever asked may have gone.
            done.send(deletion).ok();
        }
    }
    if entry.opens {
        store.open_conversation(conversation, now_ms())?;
    }
    entry.pages_to_write().try_for_each(|page| store.record(conversation, &page, now_ms()))
}

/// It is not tried again: whoever asked hears of a failure, and asks again.
fn delete(store: &dyn Store, conversation: &str) -> Deletion {
    match store.delete_conversation(conversation, now_ms()) {
        Ok(true) => Deletion::Removed,
        Ok(false) => Deletion::Unknown,
        Err(error) => {
            tracing::error!(%error, "a conversation cannot be deleted");
            if matches!(error, StoreError::TracesRemain(_)) { Deletion::TracesRemain } else { Deletion::Failed }
        }
    }
}

#[cfg(test)]
mod tests;
