//! The pool's one lock: the roster, the queue and the queries under way. Callers, workers and the supervisor meet here.
//!
//! The lock is held for moments: nobody extracts, answers, logs or starts a thread under it. The queue is a deque under
//! this lock and not a channel, because a channel can neither free the place of a caller who left nor answer the one
//! whose patience passed; and so a query is always somewhere: queued, or with a worker.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use crate::engine::{Clip, Failure, Health};
use crate::extractor::{Factory, Stopper};
use crate::pool::Settings;
use crate::reply::{Job, Query, Reply};
use crate::roster::{Action, Roster, WorkerId};
use crate::state::{Handles, Next, Open, Round, Running, State};

/// How often somebody who waits for the pool asks whether the factory's trouble is over.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// What wakes the supervisor.
pub(crate) enum Event {
    /// Something changed that it should look at.
    Look,
    /// A thread is over.
    Ended(WorkerId),
}

pub(crate) struct Shared {
    pub(crate) settings: Settings,
    /// Values in a voiceprint.
    pub(crate) dimension: usize,
    pub(crate) factory: Box<dyn Factory>,
    pub(crate) events: Sender<Event>,
    started: Instant,
    state: Mutex<State>,
    /// Idle workers wait here for a query.
    work: Condvar,
    /// Whoever waits for the pool to become ready waits here.
    change: Condvar,
}

impl Shared {
    pub(crate) fn new(settings: Settings, dimension: usize, factory: Box<dyn Factory>, events: Sender<Event>) -> Self {
        let state = State::new(Roster::new(settings.limits()), settings.queue_max());
        let (work, change) = (Condvar::new(), Condvar::new());
        Self { settings, dimension, factory, events, started: Instant::now(), state: Mutex::new(state), work, change }
    }

    /// The pool's clock.
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// A panic under the lock would leave the state as it is between two statements, and the state has no invariant
    /// that spans two; going on is right, above all in the guards that run while a thread unwinds.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the supervisor. When its mailbox is full it is awake.
    fn nudge(&self) {
        drop(self.events.try_send(Event::Look));
    }

    // For callers.

    pub(crate) fn enqueue(&self, clip: Clip, patience: Duration, reply: Reply) {
        let since = self.now();
        let by = since.saturating_add(patience);
        let mut left = VecDeque::new();
        let mut refused = None;
        let is_down = self.factory.trouble().is_some();
        let shape = self.factory.shape_of(&clip);
        {
            let mut state = self.state();
            if state.queue.len() >= self.settings.queue_max() {
                left = state.take_unwanted();
            }
            if is_down || !state.roster.accepts() {
                refused = Some((reply, Failure::Unavailable));
            } else if state.queue.len() >= self.settings.queue_max() {
                refused = Some((reply, Failure::QueueFull));
            } else {
                state.pace.handle_arrival(since, self.settings.batching());
                state.queue.push_back(Job { clip, since, by, shape, reply: Arc::new(reply) });
                self.work.notify_one();
                if by < state.wakes_at {
                    self.nudge();
                }
            }
        }
        drop(left);
        if let Some((reply, failure)) = refused {
            reply.settle(Err(failure));
        }
    }

    /// A caller no longer waits for its answer.
    pub(crate) fn caller_left(&self) {
        self.state().stop_unwanted();
    }

    pub(crate) fn health(&self) -> Health {
        let elsewhere = self.factory.trouble();
        let state = self.state();
        Health {
            workers_up: state.roster.up(),
            workers: self.settings.workers.get(),
            restarts: state.roster.restarts(),
            trouble: state.roster.trouble().or(elsewhere),
        }
    }

    pub(crate) fn queued(&self) -> usize {
        self.state().queue.len()
    }

    /// Waits until a worker is up, or it is clear that none will be.
    pub(crate) fn wait_ready(&self, within: Duration) -> Result<(), String> {
        let deadline = self.now().saturating_add(within);
        let mut state = self.state();
        loop {
            let trouble = state.roster.trouble();
            // Nobody tells here when what a worker needs elsewhere has come, so it is asked for now and then.
            let longest = if trouble.is_some() { Duration::MAX } else { ASK_AGAIN };
            let Some(trouble) = trouble.or_else(|| self.factory.trouble()) else { return Ok(()) };
            let left = deadline.saturating_sub(self.now());
            if state.roster.is_tripped() || state.roster.is_closed() || left.is_zero() {
                return Err(trouble);
            }
            state = self.change.wait_timeout(state, left.min(longest)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes no further query and ends every thread that can be ended.
    pub(crate) fn close(&self, within: Duration) {
        self.factory.close();
        {
            let mut state = self.state();
            if state.closes_by.is_none() {
                state.closes_by = Some(self.now().saturating_add(within));
                state.roster.handle_close();
            }
        }
        self.work.notify_all();
        self.change.notify_all();
        self.nudge();
    }

    // For workers.

    /// Tells that the extractor is built. False when the thread was given up meanwhile.
    pub(crate) fn built(&self, worker: WorkerId, handles: Handles) -> bool {
        let now = self.now();
        let mut state = self.state();
        let current = state.roster.handle_built(worker, now);
        if current {
            state.handles.insert(worker, handles);
        }
        drop(state);
        self.change.notify_all();
        self.nudge();
        current
    }

    /// Tells that the probe has extracted. False when the thread was given up meanwhile.
    pub(crate) fn probed(&self, worker: WorkerId) -> bool {
        let current = self.state().roster.handle_probed(worker, self.now());
        self.change.notify_all();
        self.nudge();
        current
    }

    /// Waits for queries that make one run. None when the thread is to end.
    pub(crate) fn take(&self, worker: WorkerId) -> Option<Vec<Query>> {
        let mut state = self.state();
        loop {
            if state.roster.is_closed() || !state.roster.is_current(worker) {
                return None;
            }
            let now = self.now();
            match state.next(now, self.settings.batching()) {
                Next::Run(jobs) => return Some(self.start_run(&mut state, worker, now, jobs)),
                Next::Refuse(job) => {
                    drop(state);
                    job.reply.settle(Err(Failure::DeadlinePassed));
                    state = self.state();
                }
                Next::WaitUntil(until) => {
                    let wait = until.saturating_sub(now);
                    state = self.work.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
                }
                Next::Wait => state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn start_run(&self, state: &mut State, worker: WorkerId, now: Duration, jobs: Vec<Job>) -> Vec<Query> {
        state.roster.handle_run_started(worker, now);
        for course in jobs.iter().filter_map(|job| job.reply.course()) {
            course.note_started(self.started + now);
        }
        let open = |job: &Job| Open { reply: Arc::clone(&job.reply), by: Some(job.by) };
        let running = Running { queries: jobs.iter().map(open).collect(), stopped: false };
        state.running.insert(worker, running);
        // Whoever was woken for what is left may have been this worker, or have waited for company with it.
        if !state.queue.is_empty() {
            self.work.notify_one();
        }
        let deadline = now.saturating_add(self.settings.run_max);
        let query = |job: Job| {
            let by = self.started + job.by.min(deadline);
            Query { clip: job.clip, by, patience: job.by, reply: job.reply }
        };
        jobs.into_iter().map(query).collect()
    }

    /// Whether the worker's run was told to stop because nobody waited for it.
    pub(crate) fn was_stopped(&self, worker: WorkerId) -> bool {
        self.state().running.get(&worker).is_some_and(|running| running.stopped)
    }

    /// Takes back the queries of a run that failed as a whole: each goes first and alone, so that the one at fault spoils
    /// no other. They are at most one run's, and were counted when they were queued. When nobody will run them, they are
    /// answered `failure`.
    pub(crate) fn take_back(&self, queries: Vec<Query>, failure: &Failure) {
        let since = self.now();
        let mut unwanted = queries;
        {
            let mut state = self.state();
            if state.roster.accepts() {
                for Query { clip, patience: by, reply, .. } in unwanted.drain(..).rev() {
                    state.queue.push_front(Job { clip, since, by, shape: None, reply });
                }
                self.work.notify_all();
            }
        }
        self.nudge();
        for query in unwanted {
            query.reply.settle(Err(failure.clone()));
        }
    }

    /// Tells that a run is over and the extractor is fine. False when the thread was given up meanwhile.
    pub(crate) fn run_ended(&self, worker: WorkerId) -> bool {
        let mut state = self.state();
        state.running.remove(&worker);
        state.roster.handle_run_ended(worker)
    }

    /// Tells that the extractor is not fine, or there is none: the thread ends.
    pub(crate) fn failed(&self, worker: WorkerId, reason: &str) {
        let mut state = self.state();
        let gone = (state.running.remove(&worker), state.handles.remove(&worker));
        let was_current = state.roster.is_current(worker);
        state.roster.handle_failed(worker, reason, self.now());
        let tripped = state.roster.is_tripped();
        drop(state);
        // The reply may wake its caller when it dies, so it dies here and not under the lock.
        drop(gone);
        if was_current {
            tracing::warn!(worker = worker.slot, reason, "an extraction worker failed");
        }
        if tripped {
            self.change.notify_all();
        }
        self.nudge();
    }

    // For the supervisor.

    /// A thread is over.
    pub(crate) fn ended(&self, worker: WorkerId) {
        let mut state = self.state();
        let gone = (state.running.remove(&worker), state.handles.remove(&worker));
        state.roster.handle_ended(worker);
        drop(state);
        drop(gone);
    }

    pub(crate) fn is_abandoned(&self, worker: WorkerId) -> bool {
        self.state().roster.is_abandoned(worker)
    }

    /// Lets time pass, and says what is to be done and when to look again.
    pub(crate) fn look(&self) -> Round {
        let now = self.now();
        let mut state = self.state();
        state.roster.handle_time(now);
        let mut round = Round::default();
        while let Some(action) = state.roster.poll_action() {
            match action {
                Action::Start { worker, probe } => round.starts.push((worker, probe)),
                Action::Abandon { worker } => {
                    let stopper = state.handles.remove(&worker).and_then(|handles| handles.stop);
                    let running = state.running.remove(&worker);
                    let open = running.into_iter().flat_map(|running| running.queries);
                    round.answers.extend(open.map(|query| (query.reply, Failure::DeadlinePassed)));
                    round.abandoned.push((worker, stopper));
                }
                Action::RefuseQueued => round.refused.extend(state.queue.drain(..)),
            }
        }
        state.expire(now, &mut round);
        state.stop_unwanted();
        // A run that starts after this look lasts at least until the run's deadline, so looking again by then is early
        // enough for it; a query with less patience than that wakes the supervisor when it is queued.
        state.wakes_at = state.timeouts().min().unwrap_or(Duration::MAX).min(now.saturating_add(self.settings.run_max));
        round.wait = state.wakes_at.saturating_sub(now);
        round.closes_within = state.closes_by.map(|by| by.saturating_sub(now));
        round
    }

    /// Every query that is with a worker, for when nobody is left to see it through.
    pub(crate) fn take_running(&self) -> Vec<Arc<Reply>> {
        let running = std::mem::take(&mut self.state().running);
        running.into_values().flat_map(|running| running.queries).map(|query| query.reply).collect()
    }

    /// Every means to stop a run, for the end of shutting down.
    pub(crate) fn take_stoppers(&self) -> Vec<Stopper> {
        std::mem::take(&mut self.state().handles).into_values().filter_map(|handles| handles.stop).collect()
    }
}
