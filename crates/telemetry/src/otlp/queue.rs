//! What waits for a collector: a bounded queue, and the thread that empties it.
//!
//! ```text
//!   offer ─▶ [ … at most queue_max … ] ─▶ batch ─▶ POST ─▶ sent
//!     └ full: dropped                       └ not reached: back to the front, tried again after the delay
//!                                           └ refused by the collector: counted, and gone
//! ```
//! Offering never waits for the network: it takes a lock for a moment. The thread (see `ship`) ends when the last handle is
//! dropped. What is in a batch, and what an answer means, is the signal's to say.

mod ship;

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use super::{Answer, Limits, Target};
use crate::labels::{Exported, Signal};
use ship::Ship;

type Encode<T> = Box<dyn Fn(&[T]) -> Vec<u8> + Send>;

/// How a signal is written, and how its answer is read.
pub(crate) struct Shipment<T> {
    pub(crate) signal: Signal,
    /// Some items as one request.
    pub(crate) encode: Encode<T>,
    /// How many items the collector refused of a request that it took, and why.
    pub(crate) refused: fn(&[u8]) -> Option<(u64, String)>,
}

/// The counter of what became of items. Clones share it.
#[derive(Clone)]
pub(crate) struct Counts(Counter<u64>);

impl Counts {
    /// Creates the counter with all its series at 0.
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = meter.u64_counter("rollcall_telemetry_items");
        let counts =
            Self(counter.with_description("Traces and log records for the collector, by what became of them.").build());
        for signal in Signal::ALL {
            Exported::ALL.iter().for_each(|outcome| counts.add(*signal, *outcome, 0));
        }
        counts
    }

    fn add(&self, signal: Signal, outcome: Exported, by: u64) {
        let labels = [KeyValue::new("signal", signal.as_str()), KeyValue::new("outcome", outcome.as_str())];
        self.0.add(by, &labels);
    }
}

/// A handle to the queue. The thread ends with the last one.
pub(crate) struct Queue<T>(Arc<Handle<T>>);

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Handle<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    wake: Condvar,
    limits: Limits,
    signal: Signal,
    counts: Counts,
}

struct State<T> {
    items: VecDeque<T>,
    /// Whoever waits for everything to be sent.
    flush: Option<SyncSender<bool>>,
    is_closed: bool,
}

impl<T: Send + 'static> Queue<T> {
    /// Starts the thread.
    pub(crate) fn start(
        target: &Target,
        limits: Limits,
        shipment: Shipment<T>,
        counts: Counts,
    ) -> Result<Self, String> {
        let state = State { items: VecDeque::new(), flush: None, is_closed: false };
        let (state, wake, signal) = (Mutex::new(state), Condvar::new(), shipment.signal);
        let shared = Arc::new(Shared { state, wake, limits, signal, counts });
        let ship = Ship::new(Arc::clone(&shared), target, shipment);
        std::thread::Builder::new()
            .name(format!("otlp-{signal}"))
            .spawn(move || ship.run())
            .map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(Handle { shared })))
    }

    /// Takes an item, or drops it when the queue is full.
    pub(crate) fn offer(&self, item: T) {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        if state.items.len() >= shared.limits.queue_max {
            drop(state);
            return shared.counts.add(shared.signal, Exported::Dropped, 1);
        }
        state.items.push_back(item);
        // Once, when the batch becomes full: more than that finds the thread awake.
        if state.items.len() == shared.limits.batch_max {
            shared.wake.notify_one();
        }
    }

    /// Items that wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.0.shared.lock().items.len()
    }

    /// Asks for everything to be sent now. What comes back says whether it was, when that is known; `None` when somebody
    /// waits already.
    pub(crate) fn flush(&self) -> Option<Answer> {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        if state.flush.is_some() {
            return None;
        }
        let (over, done) = sync_channel(1);
        state.flush = Some(over);
        shared.wake.notify_one();
        Some(done)
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.wake.notify_one();
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a reason to send. `None` when the last handle is gone.
    fn wait(&self) -> Option<Option<SyncSender<bool>>> {
        let due = Instant::now() + self.limits.delay;
        let mut state = self.lock();
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if state.is_closed {
                return None;
            }
            if state.flush.is_some() || left.is_zero() || state.items.len() >= self.limits.batch_max {
                return Some(state.flush.take());
            }
            state = self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn take(&self) -> Vec<T> {
        let mut state = self.lock();
        let count = state.items.len().min(self.limits.batch_max);
        state.items.drain(..count).collect()
    }

    /// What was not sent goes first the next time; of what finds no room any more, the oldest is dropped.
    fn put_back(&self, batch: Vec<T>) {
        let mut state = self.lock();
        let room = self.limits.queue_max.saturating_sub(state.items.len());
        let surplus = batch.len().saturating_sub(room);
        batch.into_iter().skip(surplus).rev().for_each(|item| state.items.push_front(item));
        drop(state);
        self.counts.add(self.signal, Exported::Dropped, surplus as u64);
    }
}

/// Waits for answers until `patience` has passed. True when each of them came and was good.
pub(crate) fn all_sent(asked: Vec<Option<Answer>>, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    let sent = asked.into_iter().map(|answer| {
        let left = until.saturating_duration_since(Instant::now());
        answer.is_some_and(|answer| answer.recv_timeout(left).unwrap_or(false))
    });
    // Each is heard, also after one that failed.
    sent.filter(|is_sent| !is_sent).count() == 0
}

#[cfg(test)]
pub(super) mod tests;
