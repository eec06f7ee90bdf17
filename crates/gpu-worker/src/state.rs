//! What the pool's lock guards, and what a look at it finds to do. Plain data: it waits for nothing and answers nobody.
//!
//! A query is always somewhere: in `queue`, or in `running` under its worker's identity.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Failure;
use crate::extractor::Stopper;
use crate::reply::{Job, Reply};
use crate::roster::{Roster, WorkerId};

/// What the pool's lock guards.
pub(crate) struct State {
    pub(crate) roster: Roster,
    pub(crate) queue: VecDeque<Job>,
    pub(crate) running: BTreeMap<WorkerId, Running>,
    pub(crate) stoppers: BTreeMap<WorkerId, Stopper>,
    /// When the supervisor looks next by itself.
    pub(crate) wakes_at: Duration,
    /// When shutting down must be over.
    pub(crate) closes_by: Option<Duration>,
}

/// A query with a worker.
pub(crate) struct Running {
    pub(crate) reply: Arc<Reply>,
    /// When the caller's patience ends; none once that was answered.
    pub(crate) by: Option<Duration>,
}

/// What the supervisor has to do after a look.
#[derive(Default)]
pub(crate) struct Round {
    pub(crate) starts: Vec<(WorkerId, bool)>,
    /// Threads that hang, with the means to stop them.
    pub(crate) abandoned: Vec<(WorkerId, Option<Stopper>)>,
    pub(crate) answers: Vec<(Arc<Reply>, Failure)>,
    pub(crate) refused: VecDeque<Job>,
    pub(crate) expired: VecDeque<Job>,
    /// How long nothing will happen by itself.
    pub(crate) wait: Duration,
    /// Set while shutting down: how much time is left.
    pub(crate) closes_within: Option<Duration>,
}

impl Round {
    pub(crate) fn is_idle(&self) -> bool {
        self.starts.is_empty()
            && self.abandoned.is_empty()
            && self.answers.is_empty()
            && self.refused.is_empty()
            && self.expired.is_empty()
    }
}

impl State {
    /// Nobody is up and nothing is queued.
    pub(crate) fn new(roster: Roster, queue_max: usize) -> Self {
        Self {
            roster,
            queue: VecDeque::with_capacity(queue_max),
            running: BTreeMap::new(),
            stoppers: BTreeMap::new(),
            wakes_at: Duration::ZERO,
            closes_by: None,
        }
    }

    /// Removes queries whose callers have left.
    pub(crate) fn take_unwanted(&mut self) -> VecDeque<Job> {
        let (wanted, unwanted) = self.queue.drain(..).partition(|job| job.reply.is_wanted());
        self.queue = wanted;
        unwanted
    }

    /// Removes queries whose patience has passed. A run goes on without its caller: the worker is fine.
    pub(crate) fn expire(&mut self, now: Duration, round: &mut Round) {
        if self.queue.iter().any(|job| job.by <= now) {
            let (late, waiting) = self.queue.drain(..).partition(|job| job.by <= now);
            self.queue = waiting;
            round.expired = late;
        }
        for running in self.running.values_mut().filter(|running| running.by.is_some_and(|by| by <= now)) {
            running.by = None;
            round.answers.push((Arc::clone(&running.reply), Failure::DeadlinePassed));
        }
    }

    pub(crate) fn timeouts(&self) -> impl Iterator<Item = Duration> {
        let queued = self.queue.iter().map(|job| job.by);
        let running = self.running.values().filter_map(|running| running.by);
        queued.chain(running).chain(self.roster.poll_timeout())
    }
}
