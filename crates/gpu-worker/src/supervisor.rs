//! The pool's supervisor: one thread that starts workers, gives up on those that hang, and sees them all out.
//!
//! It decides nothing: [`crate::roster`] does. It runs no extraction and holds no query, so nothing that a model does can
//! stop it. It sleeps until the roster's next moment or until somebody wakes it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::engine::Failure;
use crate::roster::WorkerId;
use crate::shared::{Event, Shared};
use crate::state::Round;
use crate::worker;

/// How long a thread that was told to stop at the very end may still take.
const LAST_MOMENT: Duration = Duration::from_millis(200);

/// Runs until the pool is closed and its threads have ended or the time for it is up. Returns how many threads are
/// left behind.
pub(crate) fn supervise(shared: &Arc<Shared>, events: &Receiver<Event>) -> usize {
    // Whatever ends this thread, nobody may wait for a pool that nobody supervises.
    let _closed_after = CloseOnDrop(shared);
    let mut threads = Threads { shared, running: BTreeMap::new() };
    loop {
        let round = shared.look();
        let (idle, wait, closing) = (round.is_idle(), round.wait, round.closes_within);
        threads.perform(round);
        if let Some(left) = closing
            && (threads.all_ended() || left.is_zero())
        {
            return threads.see_out(events);
        }
        if idle {
            threads.wait(events, closing.map_or(wait, |left| left.min(wait)));
        }
    }
}

struct CloseOnDrop<'a>(&'a Arc<Shared>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close(Duration::ZERO);
        for job in self.0.look().refused {
            job.reply.settle(Err(Failure::Unavailable));
        }
        for reply in self.0.take_running() {
            reply.settle(Err(Failure::WorkerLost));
        }
    }
}

struct Threads<'a> {
    shared: &'a Arc<Shared>,
    running: BTreeMap<WorkerId, JoinHandle<()>>,
}

impl Threads<'_> {
    fn perform(&mut self, round: Round) {
        for (reply, failure) in round.answers {
            reply.settle(Err(failure));
        }
        for job in round.expired {
            job.reply.settle(Err(Failure::DeadlinePassed));
        }
        for job in round.refused {
            job.reply.settle(Err(Failure::Unavailable));
        }
        for (worker, stopper) in round.abandoned {
            tracing::warn!(worker = worker.slot, "an extraction worker passed its deadline and was given up");
            if let Some(stop) = stopper {
                stop();
            }
        }
        for (worker, probe) in round.starts {
            match worker::start(self.shared, worker, probe) {
                Ok(thread) => {
                    self.running.insert(worker, thread);
                }
                Err(error) => {
                    self.shared.failed(worker, &format!("no thread could be started: {error}"));
                }
            }
        }
    }

    fn wait(&mut self, events: &Receiver<Event>, wait: Duration) {
        match events.recv_timeout(wait) {
            Ok(Event::Ended(worker)) => self.ended(worker),
            Ok(Event::Look) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }

    fn ended(&mut self, worker: WorkerId) {
        self.shared.ended(worker);
        // Its last words were spoken, so this takes no time; a panic was reported with them.
        if let Some(thread) = self.running.remove(&worker) {
            drop(thread.join());
        }
    }

    /// Threads that were given up may never end and are not waited for.
    fn all_ended(&self) -> bool {
        self.running.keys().all(|worker| self.shared.is_abandoned(*worker))
    }

    /// Tells what still runs to stop, and leaves behind what does not.
    fn see_out(&mut self, events: &Receiver<Event>) -> usize {
        if !self.all_ended() {
            self.shared.take_stoppers().iter().for_each(|stop| stop());
            while !self.all_ended()
                && let Ok(event) = events.recv_timeout(LAST_MOMENT)
            {
                if let Event::Ended(worker) = event {
                    self.ended(worker);
                }
            }
        }
        self.running.len()
    }
}
