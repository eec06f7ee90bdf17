//! The callers of the fault run: they keep a pool busy and count how their queries end.

use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use matcher_core::Embedding;

use crate::engine::{Engine as _, Failure, Ticket};
use crate::pool::Pool;

use super::{GRACE, PATIENCE, clip, expected};

/// How queries ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) voiceprints: usize,
    /// Voiceprints that are not the clip's.
    pub(super) wrong: usize,
    pub(super) failed: usize,
    /// Answered without having been tried.
    pub(super) refused: usize,
    /// Given up by their callers.
    pub(super) left: usize,
    pub(super) unanswered: usize,
    pub(super) longest: Duration,
}

impl Tally {
    fn count(&mut self, answer: Option<Result<Embedding, Failure>>, right: &Embedding, took: Duration) {
        let of = match answer {
            Some(Ok(print)) if print == *right => &mut self.voiceprints,
            Some(Ok(_)) => &mut self.wrong,
            Some(Err(Failure::Unavailable | Failure::QueueFull)) => &mut self.refused,
            Some(Err(
                Failure::Encoding(_)
                | Failure::Extraction(_)
                | Failure::BadVector(_)
                | Failure::WorkerPanicked
                | Failure::WorkerLost
                | Failure::DeadlinePassed
                | Failure::Cancelled,
            )) => &mut self.failed,
            None => &mut self.unanswered,
        };
        *of += 1;
        self.longest = self.longest.max(took);
    }

    pub(super) fn add(&mut self, other: Self) {
        self.voiceprints += other.voiceprints;
        self.wrong += other.wrong;
        self.failed += other.failed;
        self.refused += other.refused;
        self.left += other.left;
        self.unanswered += other.unanswered;
        self.longest = self.longest.max(other.longest);
    }
}

/// Asks `queries` times, by as many callers as the pool has turns.
pub(super) fn ask(pool: &Pool, queries: usize) -> Tally {
    ask_for(pool, queries, None)
}

/// As [`ask`], by callers who leave after `stay`.
pub(super) fn ask_and_leave(pool: &Pool, queries: usize, stay: Duration) -> Tally {
    ask_for(pool, queries, Some(stay))
}

fn ask_for(pool: &Pool, queries: usize, stay: Option<Duration>) -> Tally {
    let left = AtomicUsize::new(queries);
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..pool.turns_max()).map(|_| scope.spawn(|| call(pool, &left, stay))).collect();
        for caller in callers {
            tally.add(caller.join().expect("a caller only waits and counts"));
        }
    });
    tally
}

fn call(pool: &Pool, left: &AtomicUsize, stay: Option<Duration>) -> Tally {
    let (clip, right) = (clip(), expected());
    let mut tally = Tally::default();
    let take = |count: usize| count.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
        let started = Instant::now();
        match (wait(pool.submit(clip.clone(), PATIENCE), stay.unwrap_or(PATIENCE + GRACE)), stay) {
            (None, Some(_)) => tally.left += 1,
            (answer, _) => tally.count(answer, &right, started.elapsed()),
        }
    }
    tally
}

/// Waits until a whole extraction succeeds and `holds`, and says how long that took; at most `within`.
pub(super) fn recovery(pool: &Pool, within: Duration, holds: impl Fn() -> bool) -> Option<Duration> {
    let started = Instant::now();
    while started.elapsed() < within {
        if holds() && wait(pool.submit(clip(), PATIENCE), PATIENCE + GRACE).is_some_and(|answer| answer.is_ok()) {
            return Some(started.elapsed());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives one ticket on this thread, and leaves when it is not answered in time.
fn wait(mut ticket: Ticket, within: Duration) -> Option<Result<Embedding, Failure>> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let until = Instant::now() + within;
    loop {
        if let Poll::Ready(answer) = ticket.as_mut().poll(&mut context) {
            return Some(answer);
        }
        let left = until.checked_duration_since(Instant::now())?;
        std::thread::park_timeout(left);
    }
}

type Hook = Arc<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Keeps the panics of extraction workers off standard error until it is dropped.
pub(super) struct QuietPanics(Hook);

impl QuietPanics {
    pub(super) fn new() -> Self {
        let usual: Hook = Arc::from(std::panic::take_hook());
        let others = Arc::clone(&usual);
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            if !thread.name().is_some_and(|name| name.starts_with("extract-")) {
                others(panic);
            }
        }));
        Self(usual)
    }
}

impl Drop for QuietPanics {
    fn drop(&mut self) {
        // A hook cannot be changed by a thread that panics.
        if !std::thread::panicking() {
            let usual = Arc::clone(&self.0);
            std::panic::set_hook(Box::new(move |panic| usual(panic)));
        }
    }
}
