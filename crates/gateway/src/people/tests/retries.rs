//! Goal: people who could not be read are read again on the schedule, never in a loop, and reach the matching at once.
//! Method: the real store behind one that fails on demand, and tokio's paused clock.

use std::time::Duration;

use super::*;

struct Failing {
    people: People,
    store: Arc<Moody>,
    /// Readings before the store began to fail.
    before: u32,
    _fixture: Fixture,
}

/// Anna is known; then the store takes changes and lets nobody be read.
async fn failing() -> Failing {
    let fixture = fixture();
    let store = Arc::new(Moody::new(fixture.store.clone()));
    let people = People::open(store.clone(), &manifest()).unwrap();
    people.create("anna", PersonChange::default()).await.unwrap();
    store.set_fails(true);
    Failing { before: store.readings(), people, store, _fixture: fixture }
}

impl Failing {
    fn readings(&self) -> u32 {
        self.store.readings() - self.before
    }

    fn known(&self) -> Vec<String> {
        self.people.snapshot().iter().map(|person| person.id.clone()).collect()
    }

    /// The change is written, and everybody cannot be read after it.
    async fn create(&self, id: &str) {
        let failed = self.people.create(id, PersonChange::default()).await;
        assert!(matches!(failed, Err(PeopleError::Store(StoreError::Database(_)))), "{failed:?}");
    }

    /// Advances the clock and waits until so many readings were made. The clock stands still while a reading runs.
    async fn after(&self, seconds: u64, readings: u32) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        for _ in 0..1000 {
            if self.readings() >= readings {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(self.readings(), readings, "{seconds} s later");
    }
}

// B11.135
#[tokio::test(start_paused = true)]
async fn a_store_that_always_fails_is_read_eight_times_and_no_more() {
    let failing = failing().await;
    failing.create("bert").await;
    assert_eq!(failing.readings(), 1, "the change's own");
    for (wait, readings) in [30, 60, 120, 240, 480, 480, 480].into_iter().zip(2..) {
        failing.after(wait - 2, readings - 1).await;
        failing.after(2, readings).await;
    }
    for _ in 0..100 {
        failing.after(480, 8).await;
    }
    assert_eq!(failing.known(), ["anna"], "matching goes on with whom it knew");
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_succeeds_publishes_at_once_and_is_the_last() {
    let failing = failing().await;
    failing.create("bert").await;
    let mut revisions = failing.people.on_change();
    failing.after(30, 2).await;
    failing.store.set_fails(false);
    revisions.changed().await.unwrap();
    assert_eq!((failing.known(), failing.readings()), (vec!["anna".to_owned(), "bert".to_owned()], 3));
    failing.after(10_000, 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_read_cancels_the_retry() {
    let failing = failing().await;
    failing.create("bert").await;
    failing.store.set_fails(false);
    failing.people.create("carl", PersonChange::default()).await.unwrap();
    assert_eq!(failing.known(), ["anna", "bert", "carl"]);
    failing.after(10_000, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_starts_the_schedule_afresh_also_after_it_ended() {
    let failing = failing().await;
    failing.create("bert").await;
    failing.after(25, 1).await;
    failing.create("carl").await;
    failing.after(28, 2).await;
    failing.after(2, 3).await;
    failing.after(10_000, 9).await;
    failing.create("dora").await;
    failing.after(28, 10).await;
    failing.after(2, 11).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_person_is_gone_from_the_matching_at_once_although_nobody_can_be_read() {
    let failing = failing().await;
    failing.create("bert").await;
    failing.people.delete("anna").await.unwrap();
    assert!(failing.known().is_empty());
    failing.store.set_fails(false);
    failing.after(31, 3).await;
    assert_eq!(failing.known(), ["bert"]);
}

#[tokio::test(start_paused = true)]
async fn however_many_changes_fail_at_most_one_retry_waits() {
    let failing = failing().await;
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    for number in 0..20 {
        failing.create(&format!("person-{number}")).await;
    }
    // Cancelled tasks end when the runtime next comes to them.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(alive(), before + 1);
    failing.store.set_fails(false);
    failing.people.create("zoe", PersonChange::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((alive(), failing.known().len()), (before, 22));
}

#[tokio::test(start_paused = true)]
async fn a_retry_does_not_keep_the_people_alive() {
    let failing = failing().await;
    failing.create("bert").await;
    let store = failing.store.clone();
    let before = store.readings();
    drop(failing);
    assert_eq!(Arc::strong_count(&store), 1, "the task holds no store while it waits");
    tokio::time::sleep(Duration::from_secs(10_000)).await;
    assert_eq!(store.readings(), before);
}
