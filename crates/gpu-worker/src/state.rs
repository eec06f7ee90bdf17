//! What the pool's lock guards, and what a look at it finds to do. Plain data: it waits for nothing and answers nobody.
//!
//! A query is always somewhere: in `queue`, or in `running` under its worker's identity.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::batching::{Limits, Pace};
use crate::engine::Failure;
use crate::extractor::Stopper;
use crate::reply::{Job, Reply};
use crate::roster::{Roster, WorkerId};

/// What the pool's lock guards.
pub(crate) struct State {
    pub(crate) roster: Roster,
    pub(crate) queue: VecDeque<Job>,
    pub(crate) pace: Pace,
    pub(crate) running: BTreeMap<WorkerId, Running>,
    pub(crate) handles: BTreeMap<WorkerId, Handles>,
    /// When the supervisor looks next by itself.
    pub(crate) wakes_at: Duration,
    /// When shutting down must be over.
    pub(crate) closes_by: Option<Duration>,
}

/// A run under way.
pub(crate) struct Running {
    pub(crate) queries: Vec<Open>,
    /// It was told to stop, because nobody waited for it any more.
    pub(crate) stopped: bool,
}

/// A query with a worker.
pub(crate) struct Open {
    pub(crate) reply: Arc<Reply>,
    /// When the caller's patience ends; none once that was answered.
    pub(crate) by: Option<Duration>,
}

/// The means to end a worker's run.
pub(crate) struct Handles {
    /// For good.
    pub(crate) stop: Option<Stopper>,
    /// And go on with the next.
    pub(crate) interrupt: Option<Stopper>,
}

/// What a worker that asks for work is to do.
pub(crate) enum Next {
    /// Run these together.
    Run(Vec<Job>),
    /// Answer this one: it is too late for it, or nobody wants it any more, and it never runs.
    Refuse(Job),
    /// Wait for company until then, or until something changes.
    WaitUntil(Duration),
    /// There is nothing to do.
    Wait,
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
            pace: Pace::default(),
            running: BTreeMap::new(),
            handles: BTreeMap::new(),
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
        let open = self.running.values_mut().flat_map(|running| &mut running.queries);
        for query in open.filter(|query| query.by.is_some_and(|by| by <= now)) {
            query.by = None;
            round.answers.push((Arc::clone(&query.reply), Failure::DeadlinePassed));
        }
    }

    /// Stops runs that nobody waits for. The worker is fine and goes on with the next query.
    ///
    /// Stopping is to set a flag, and it is done here, under the lock: a moment later the same worker may be on somebody
    /// else's query.
    pub(crate) fn stop_unwanted(&mut self) {
        for (worker, running) in self.running.iter_mut().filter(|(_, running)| !running.stopped) {
            let unwanted = running.queries.iter().all(|query| query.by.is_none() || !query.reply.is_wanted());
            let interrupt = self.handles.get(worker).and_then(|handles| handles.interrupt.as_ref());
            if let Some(interrupt) = interrupt.filter(|_| unwanted) {
                running.stopped = true;
                interrupt();
            }
        }
    }

    /// What a worker is to do now. What it gets is out of the queue.
    pub(crate) fn next(&mut self, now: Duration, limits: Limits) -> Next {
        let Some(front) = self.queue.front() else { return Next::Wait };
        if front.by <= now || !front.reply.is_wanted() {
            return self.queue.pop_front().map_or(Next::Wait, Next::Refuse);
        }
        let Some(shape) = front.shape.filter(|_| limits.max.get() > 1) else {
            return self.queue.pop_front().map_or(Next::Wait, |job| Next::Run(vec![job]));
        };
        let shares = |job: &Job| job.shape == Some(shape) && job.by > now && job.reply.is_wanted();
        let here = self.queue.iter().filter(|job| shares(job)).count();
        // Who is nearly out of patience waits for nobody.
        let until = front.since.saturating_add(self.pace.wait(here, limits)).min(front.by);
        if here < limits.max.get() && until > now {
            return Next::WaitUntil(until);
        }
        let (mut together, mut others) = (Vec::with_capacity(here), VecDeque::with_capacity(self.queue.capacity()));
        for job in self.queue.drain(..) {
            if together.len() < limits.max.get() && shares(&job) {
                together.push(job);
            } else {
                others.push_back(job);
            }
        }
        self.queue = others;
        Next::Run(together)
    }

    pub(crate) fn timeouts(&self) -> impl Iterator<Item = Duration> {
        let queued = self.queue.iter().map(|job| job.by);
        let open = self.running.values().flat_map(|running| &running.queries);
        let running = open.filter_map(|query| query.by);
        queued.chain(running).chain(self.roster.poll_timeout())
    }
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroUsize};

    use tokio::sync::oneshot;

    use super::*;
    use crate::engine::Clip;
    use crate::pool::Settings;
    use crate::reply::Answer;

    const WAIT: Duration = Duration::from_millis(4);
    const LIMITS: Limits = Limits { max: NonZeroUsize::new(3).unwrap(), wait: WAIT };

    /// A queue that got one query of each shape every half a millisecond, the last one at `Duration::ZERO` before `now`.
    fn queue(shapes: &[Option<usize>]) -> (State, Vec<oneshot::Receiver<Answer>>, Duration) {
        let mut state = State::new(Roster::new(Settings::default().limits()), 8);
        let (mut now, mut receivers) = (Duration::from_secs(1), Vec::new());
        // A pace is known by now.
        for _ in 0..40 {
            now += Duration::from_micros(500);
            state.pace.handle_arrival(now, LIMITS);
        }
        for shape in shapes {
            now += Duration::from_micros(500);
            state.pace.handle_arrival(now, LIMITS);
            let (reply, receiver) = Reply::new(None);
            let clip = Clip { pcm: Arc::from([0_i16]), sample_rate: NonZeroU32::new(16_000).unwrap() };
            let by = now + Duration::from_secs(5);
            state.queue.push_back(Job { clip, since: now, by, shape: *shape, reply: Arc::new(reply) });
            receivers.push(receiver);
        }
        (state, receivers, now)
    }

    fn size_of(next: Next) -> usize {
        let Next::Run(jobs) = next else { panic!("there is something to run") };
        jobs.len()
    }

    #[test]
    fn a_query_waits_for_company_while_others_come_and_then_no_longer() {
        let (mut state, _receivers, now) = queue(&[Some(1)]);
        let Next::WaitUntil(until) = state.next(now, LIMITS) else { panic!("two places are free") };
        assert!(until > now && until <= now + WAIT);
        assert_eq!(size_of(state.next(until, LIMITS)), 1);
        assert!(matches!(state.next(until, LIMITS), Next::Wait));
    }

    #[test]
    fn a_full_run_and_a_query_that_shares_with_nobody_do_not_wait() {
        let (mut state, _receivers, now) = queue(&[Some(1), Some(2), Some(1), Some(1), None, Some(1)]);
        assert_eq!(size_of(state.next(now, LIMITS)), 3);
        let left: Vec<_> = state.queue.iter().map(|job| job.shape).collect();
        assert_eq!(left, [Some(2), None, Some(1)], "in their order");
        assert_eq!(size_of(state.next(now + WAIT, LIMITS)), 1);
        assert_eq!(size_of(state.next(now, LIMITS)), 1);
    }

    #[test]
    fn where_one_clip_makes_a_run_nobody_waits() {
        let (mut state, _receivers, now) = queue(&[Some(1), Some(1)]);
        let alone = Limits { max: NonZeroUsize::MIN, wait: WAIT };
        assert_eq!((size_of(state.next(now, alone)), size_of(state.next(now, alone))), (1, 1));
    }

    #[test]
    fn who_left_or_is_late_is_refused_and_never_waited_for() {
        let (mut state, mut receivers, now) = queue(&[Some(1), Some(1), Some(1)]);
        drop(receivers.remove(0));
        assert!(matches!(state.next(now, LIMITS), Next::Refuse(_)));
        let late = now + Duration::from_secs(6);
        assert!(matches!(state.next(late, LIMITS), Next::Refuse(_)));
    }
}
