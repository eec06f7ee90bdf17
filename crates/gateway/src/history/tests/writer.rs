//! Goal: history reaches the disk in order, seldom and at last, whatever the disk does; and nobody waits to push.
//! Method: the real writer on virtual time, over a store that can fail and remembers when it was asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{page, segment, voice};
use crate::history::{Deletion, History, now_ms};
use crate::store::{Over, Page, SqliteStore, Store, StoreError};
use crate::testing::TemporaryDirectory;

/// The real store, which can fail to write history, and when it was asked for what.
struct Moody {
    inner: SqliteStore,
    fails: AtomicBool,
    asked: Mutex<Vec<(u128, String)>>,
    forgets: Mutex<Vec<u64>>,
    began: Instant,
    _directory: TemporaryDirectory,
}

impl Moody {
    fn new() -> Arc<Self> {
        let directory = TemporaryDirectory::new();
        let inner = SqliteStore::open(directory.path()).unwrap();
        let (fails, asked, forgets) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
        Arc::new(Self { inner, fails, asked, forgets, began: Instant::now(), _directory: directory })
    }

    fn set_fails(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    fn ask(&self, what: String) -> Result<(), StoreError> {
        self.asked.lock().unwrap().push((self.began.elapsed().as_millis(), what));
        if self.fails.load(Ordering::SeqCst) { Err(StoreError::Full("the test says so".to_owned())) } else { Ok(()) }
    }

    /// What was written or tried since this was asked last, and the milliseconds of it.
    fn asked(&self) -> Vec<(u128, String)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn times(&self) -> Vec<u128> {
        self.asked().into_iter().map(|(at, _)| at).collect()
    }

    fn segments(&self, conversation: &str) -> Vec<String> {
        let pages = self.inner.history(conversation).unwrap().map(|kept| kept.pages).unwrap_or_default();
        pages.into_iter().flat_map(|page| page.segments).map(|segment| segment.id).collect()
    }
}

fn news(segments: &[&str]) -> Page {
    let segments: Vec<_> = segments.iter().map(|id| segment(id, 1, 0.0)).collect();
    page("phone", &segments, &[voice(1, "user", Some("anna"))])
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_news_is_one_writing_and_the_next_comes_after_a_beat() {
    let store = Moody::new();
    let history = History::start(store.clone(), 0);
    history.opened("talk");
    history.push("talk", news(&["s1"]));
    history.push("talk", news(&["s2"]));
    history.wait_for_disk().await;
    let asked = store.asked();
    assert_eq!(asked, [(0, "open talk".to_owned()), (0, "record talk".to_owned())]);
    assert_eq!(store.segments("talk"), ["s1", "s2"]);

    for id in ["s3", "s4", "s5"] {
        sleep(Duration::from_millis(100)).await;
        history.push("talk", news(&[id]));
    }
    history.wait_for_disk().await;
    let times = store.times();
    assert!(matches!(times[..], [600..=602]), "one writing, a beat after the first: {times:?}");
    assert_eq!(store.segments("talk").len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_asked_less_and_less_often_and_then_gets_everything() {
    let store = Moody::new();
    store.set_fails(true);
    let history = History::start(store.clone(), 0);
    history.push("talk", news(&["s1"]));
    sleep(Duration::from_millis(14_200)).await;
    history.push("talk", news(&["s2"]));
    let times = store.times();
    let pauses: Vec<u128> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let expected = [600_u128, 1200, 2400, 4800, 5000];
    assert_eq!(pauses.len(), expected.len(), "{times:?}");
    assert!(pauses.iter().zip(expected).all(|(is, wanted)| (wanted..wanted + 3).contains(is)), "{pauses:?}");

    store.set_fails(false);
    history.wait_for_disk().await;
    assert_eq!(store.segments("talk"), ["s1", "s2"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_a_store_that_fails_for_good() {
    let store = Moody::new();
    store.set_fails(true);
    let history = History::start(store.clone(), 0);
    history.push("talk", news(&["s1"]));
    let began = Instant::now();
    history.wait_for("other").await;
    assert!(began.elapsed() < Duration::from_millis(5), "what others push is not waited for");
    history.wait_for_disk().await;
    assert!((5000..5010).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_was_pushed_last_is_written_after_the_last_handle_is_gone() {
    let store = Moody::new();
    let history = History::start(store.clone(), 0);
    history.clone().push("talk", news(&["s1"]));
    drop(history);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(store.segments("talk"), ["s1"]);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(Arc::strong_count(&store), 1, "the writer has ended");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_removes_what_is_on_disk_and_what_waits_and_news_of_the_past_stay_out() {
    let store = Moody::new();
    let history = History::start(store.clone(), 0);
    assert_eq!(history.delete("talk").await, Deletion::Unknown);
    history.opened("talk");
    history.push("talk", news(&["s1"]));
    history.wait_for_disk().await;
    history.push("talk", news(&["s2"]));
    assert_eq!(history.delete("talk").await, Deletion::Removed);
    history.push("talk", news(&["s3"]));
    history.wait_for_disk().await;
    assert_eq!(store.inner.history("talk").unwrap(), None);

    history.opened("talk");
    history.push("talk", news(&["s4"]));
    history.wait_for_disk().await;
    assert_eq!(store.segments("talk"), ["s4"], "it began anew");
    store.set_fails(true);
    assert_eq!(history.delete("talk").await, Deletion::Failed);
    store.set_fails(false);
    assert_eq!(store.segments("talk"), ["s4"]);
}

#[tokio::test(start_paused = true)]
async fn what_had_no_news_for_the_days_kept_is_removed_every_hour() {
    const DAY_MS: i64 = 86_400_000;
    let store = Moody::new();
    store.inner.open_conversation("old", now_ms() - 91 * DAY_MS).unwrap();
    store.inner.open_conversation("young", now_ms() - 89 * DAY_MS).unwrap();
    let _history = History::start(store.clone(), 90);
    sleep(Duration::from_secs(7201)).await;
    let kept: Vec<String> = store.inner.conversations(9).unwrap().into_iter().map(|record| record.id).collect();
    assert_eq!(kept, ["young"]);
    assert_eq!(*store.forgets.lock().unwrap(), [0, 3600, 7200]);
}

#[tokio::test(start_paused = true)]
async fn with_no_days_conversations_are_kept_for_ever() {
    let store = Moody::new();
    store.inner.open_conversation("old", 1).unwrap();
    let _history = History::start(store.clone(), 0);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(store.inner.conversations(9).unwrap().len(), 1);
    assert_eq!(*store.forgets.lock().unwrap(), [0], "what else is over is removed all the same");
}

impl Over for Moody {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn open_conversation(&self, conversation: &str, now_ms: i64) -> Result<(), StoreError> {
        self.ask(format!("open {conversation}"))?;
        self.inner.open_conversation(conversation, now_ms)
    }

    fn record(&self, conversation: &str, page: &Page, now_ms: i64) -> Result<(), StoreError> {
        self.ask(format!("record {conversation}"))?;
        self.inner.record(conversation, page, now_ms)
    }

    fn delete_conversation(&self, conversation: &str, now_ms: i64) -> Result<bool, StoreError> {
        self.ask(format!("delete {conversation}"))?;
        self.inner.delete_conversation(conversation, now_ms)
    }

    fn forget(&self, before_ms: i64, now_ms: i64) -> Result<u64, StoreError> {
        self.forgets.lock().unwrap().push(self.began.elapsed().as_secs());
        self.inner.forget(before_ms, now_ms)
    }
}
