//! Which workers there are and what becomes of them: the pool's decisions, without a thread, a clock or a lock.
//!
//! ```text
//!          start                built                 run started
//!  Down ─────────▶ Building ───────────▶ Idle ◀──────────────────▶ Running
//!   ▲                 │                    │       run ended           │
//!   └──── failed ─────┴────────────────────┴───────────────────────────┘
//!   overdue (Building, Running): the thread is abandoned and its slot is Down
//!
//!  Serving ──the fifth failure in a minute──▶ Tripped ──a minute──▶ Probing ──a real extraction──▶ Serving
//!                                                ▲────── failed ───────┘
//! ```
//! `handle_*` takes what happened, [`Roster::poll_action`] gives what to do, [`Roster::poll_timeout`] says when time alone
//! decides something. Times are durations since the pool's start. Queries and their answers are not known here.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::intensity::{self, Decision, Intensity};

/// One thread: its place in the pool, and the how-manieth thread of the pool it is. No two threads share a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorkerId {
    pub(crate) slot: usize,
    pub(crate) start: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) workers: usize,
    pub(crate) build_max: Duration,
    pub(crate) run_max: Duration,
    pub(crate) abandoned_max: usize,
    pub(crate) probe_every: Duration,
    pub(crate) intensity: intensity::Limits,
}

/// What the shell is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start a thread. A probe has to extract something before it counts as up.
    Start { worker: WorkerId, probe: bool },
    /// Answer for a thread that hangs, and tell it to stop if it can hear.
    Abandon { worker: WorkerId },
    /// Answer everything that is queued: nobody will run it.
    RefuseQueued,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Down { start_at: Option<Duration> },
    Building { worker: WorkerId, until: Duration },
    Idle { worker: WorkerId },
    Running { worker: WorkerId, until: Duration },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Serving,
    Tripped { probe_at: Duration },
    Probing { worker: WorkerId },
    Closed,
}

impl Phase {
    fn worker(self) -> Option<WorkerId> {
        match self {
            Self::Down { .. } => None,
            Self::Building { worker, .. } | Self::Idle { worker } | Self::Running { worker, .. } => Some(worker),
        }
    }

    fn overdue_at(self) -> Option<Duration> {
        match self {
            Self::Building { until, .. } | Self::Running { until, .. } => Some(until),
            Self::Down { .. } | Self::Idle { .. } => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Roster {
    limits: Limits,
    slots: Vec<Phase>,
    mode: Mode,
    intensity: Intensity,
    /// Threads that hang and were replaced. They count until they end.
    abandoned: BTreeSet<WorkerId>,
    starts: u64,
    last_failure: Option<String>,
    actions: VecDeque<Action>,
}

impl Roster {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            slots: vec![Phase::Down { start_at: Some(Duration::ZERO) }; limits.workers],
            mode: Mode::Serving,
            intensity: Intensity::new(limits.intensity),
            abandoned: BTreeSet::new(),
            starts: 0,
            last_failure: None,
            actions: VecDeque::new(),
            limits,
        }
    }

    // What is so.

    /// Workers that can extract or are extracting.
    pub(crate) fn up(&self) -> usize {
        let up = |phase: &&Phase| matches!(phase, Phase::Idle { .. } | Phase::Running { .. });
        self.slots.iter().filter(up).count()
    }

    /// Threads started in place of failed ones.
    pub(crate) fn restarts(&self) -> u64 {
        self.starts.saturating_sub(self.limits.workers as u64)
    }

    /// Whether queries may be queued: somebody runs them, or is about to be started.
    pub(crate) fn accepts(&self) -> bool {
        self.mode == Mode::Serving && (self.up() > 0 || !self.is_stuck())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.mode == Mode::Closed
    }

    pub(crate) fn is_tripped(&self) -> bool {
        matches!(self.mode, Mode::Tripped { .. } | Mode::Probing { .. })
    }

    /// Whether this thread still holds its slot. One that does not must end without a word.
    pub(crate) fn is_current(&self, worker: WorkerId) -> bool {
        self.slots.get(worker.slot).copied().and_then(Phase::worker) == Some(worker)
    }

    pub(crate) fn is_abandoned(&self, worker: WorkerId) -> bool {
        self.abandoned.contains(&worker)
    }

    /// So many threads hang that no further one is started.
    fn is_stuck(&self) -> bool {
        self.abandoned.len() >= self.limits.abandoned_max
    }

    /// What is wrong, when no query can be answered.
    pub(crate) fn trouble(&self) -> Option<String> {
        let why = self.last_failure.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        match self.mode {
            Mode::Closed => Some("the pool is shut down".to_owned()),
            Mode::Tripped { .. } | Mode::Probing { .. } => {
                let intensity::Limits { failures_max, window, .. } = self.limits.intensity;
                Some(format!("workers failed {failures_max} times within {} s, lastly{why}", window.as_secs_f64()))
            }
            Mode::Serving if self.up() > 0 => None,
            Mode::Serving if self.is_stuck() => {
                Some(format!("{} worker threads hang and cannot be ended; restart the process", self.abandoned.len()))
            }
            Mode::Serving => Some(format!("no worker is up yet{why}")),
        }
    }

    // What happened.

    /// The thread has its extractor. False when it was given up meanwhile.
    pub(crate) fn handle_built(&mut self, worker: WorkerId, now: Duration) -> bool {
        let probing = self.mode == Mode::Probing { worker };
        let until = now.saturating_add(self.limits.run_max);
        let next = if probing { Phase::Running { worker, until } } else { Phase::Idle { worker } };
        self.set(worker, next)
    }

    /// The probe has extracted: whatever was wrong is over.
    pub(crate) fn handle_probed(&mut self, worker: WorkerId, now: Duration) -> bool {
        if self.mode == (Mode::Probing { worker }) {
            self.mode = Mode::Serving;
            self.intensity.forget();
            self.last_failure = None;
            for phase in &mut self.slots {
                if matches!(phase, Phase::Down { .. }) {
                    *phase = Phase::Down { start_at: Some(now) };
                }
            }
        }
        self.set(worker, Phase::Idle { worker })
    }

    pub(crate) fn handle_run_started(&mut self, worker: WorkerId, now: Duration) -> bool {
        self.set(worker, Phase::Running { worker, until: now.saturating_add(self.limits.run_max) })
    }

    pub(crate) fn handle_run_ended(&mut self, worker: WorkerId) -> bool {
        self.set(worker, Phase::Idle { worker })
    }

    /// The thread failed and ends. Nothing happens when it was given up before.
    pub(crate) fn handle_failed(&mut self, worker: WorkerId, reason: &str, now: Duration) {
        if self.is_current(worker) {
            self.fail(worker, reason, now);
        }
    }

    /// The thread is over, however that came.
    pub(crate) fn handle_ended(&mut self, worker: WorkerId) {
        self.abandoned.remove(&worker);
        self.set(worker, Phase::Down { start_at: None });
    }

    /// Time has passed: gives up what is overdue, and starts what is due.
    pub(crate) fn handle_time(&mut self, now: Duration) {
        let overdue = |phase: &Phase| phase.overdue_at().is_some_and(|until| until <= now);
        let hung: Vec<WorkerId> = self.slots.iter().filter(|phase| overdue(phase)).filter_map(|p| p.worker()).collect();
        for worker in hung {
            self.abandoned.insert(worker);
            self.actions.push_back(Action::Abandon { worker });
            self.fail(worker, "a worker passed its deadline", now);
        }
        if let Mode::Tripped { probe_at } = self.mode
            && probe_at <= now
        {
            self.probe(now);
        }
        self.start_due(now);
    }

    /// No worker is started from here on, and none takes another query.
    pub(crate) fn handle_close(&mut self) {
        self.mode = Mode::Closed;
        self.actions.push_back(Action::RefuseQueued);
    }

    // What to do.

    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When time alone decides the next thing.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        let starts = self.mode == Mode::Serving && !self.is_stuck();
        let of_slot = |phase: &Phase| match *phase {
            Phase::Down { start_at } => start_at.filter(|_| starts),
            Phase::Building { until, .. } | Phase::Running { until, .. } => Some(until),
            Phase::Idle { .. } => None,
        };
        let probe = match self.mode {
            Mode::Tripped { probe_at } => Some(probe_at),
            Mode::Serving | Mode::Probing { .. } | Mode::Closed => None,
        };
        self.slots.iter().filter_map(of_slot).chain(probe).min()
    }

    fn set(&mut self, worker: WorkerId, next: Phase) -> bool {
        match self.slots.get_mut(worker.slot) {
            Some(phase) if phase.worker() == Some(worker) => {
                *phase = next;
                true
            }
            Some(_) | None => false,
        }
    }

    fn fail(&mut self, worker: WorkerId, reason: &str, now: Duration) {
        self.last_failure = Some(reason.to_owned());
        self.set(worker, Phase::Down { start_at: None });
        match self.mode {
            Mode::Serving => match self.intensity.handle_failure(now) {
                Decision::Restart { at } => self.down(worker.slot, Some(at)),
                Decision::GiveUp => self.trip(now),
            },
            Mode::Probing { worker: probe } if probe == worker => self.trip(now),
            Mode::Probing { .. } | Mode::Tripped { .. } | Mode::Closed => {}
        }
    }

    fn down(&mut self, slot: usize, start_at: Option<Duration>) {
        if let Some(phase) = self.slots.get_mut(slot) {
            *phase = Phase::Down { start_at };
        }
    }

    fn trip(&mut self, now: Duration) {
        self.mode = Mode::Tripped { probe_at: now.saturating_add(self.limits.probe_every) };
        for phase in &mut self.slots {
            if let Phase::Down { start_at } = phase {
                *start_at = None;
            }
        }
        self.actions.push_back(Action::RefuseQueued);
    }

    fn probe(&mut self, now: Duration) {
        let free = self.slots.iter().position(|phase| matches!(phase, Phase::Down { .. }));
        match free.filter(|_| !self.is_stuck()) {
            Some(slot) => {
                let worker = self.start(slot, now, true);
                self.mode = Mode::Probing { worker };
            }
            None => self.mode = Mode::Tripped { probe_at: now.saturating_add(self.limits.probe_every) },
        }
    }

    fn start_due(&mut self, now: Duration) {
        if self.mode != Mode::Serving || self.is_stuck() {
            return;
        }
        let due = |phase: &Phase| matches!(phase, Phase::Down { start_at: Some(at) } if *at <= now);
        let slots: Vec<usize> = (0..).zip(&self.slots).filter(|(_, phase)| due(phase)).map(|(slot, _)| slot).collect();
        for slot in slots {
            self.start(slot, now, false);
        }
    }

    fn start(&mut self, slot: usize, now: Duration, probe: bool) -> WorkerId {
        let worker = WorkerId { slot, start: self.starts };
        self.starts += 1;
        if let Some(phase) = self.slots.get_mut(slot) {
            *phase = Phase::Building { worker, until: now.saturating_add(self.limits.build_max) };
        }
        self.actions.push_back(Action::Start { worker, probe });
        worker
    }
}

#[cfg(test)]
#[path = "roster_tests.rs"]
mod tests;
