//! The scripted engine of the live actors: any number of workers on virtual time, which do with a tone what they are
//! told and keep a log of every query.
//!
//! As the real pool it is first come, first served; a query whose caller leaves or whose patience ends before it starts
//! never runs, and one that runs keeps its worker to its end, whoever has left.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gpu_worker::{Clip, Engine, Failure, Health, Manifest, Ticket};
use matcher_core::Embedding;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// What the engine does with a tone.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Returns this vector.
    Vector(Vec<f32>),
    /// Fails like this.
    Failure(Failure),
    /// Never answers, and never gives its worker back: its caller's own deadline must end it.
    Hangs,
    /// Panics in the caller's hands, before there is a ticket.
    Panics,
}

/// One query as the engine saw it. Times count from the start of the world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Query {
    /// What it heard.
    pub tone: i16,
    /// Seconds of audio that it got.
    pub seconds: f64,
    /// When it was submitted, which is the moment of its reservation.
    pub submitted: Duration,
    /// When a worker took it.
    pub started: Option<Duration>,
    /// When the worker was done.
    pub ended: Option<Duration>,
}

impl Query {
    /// From the submission to the start, or to `now` when it has not started.
    #[must_use]
    pub fn waited(&self, now: Duration) -> Duration {
        self.started.unwrap_or(now).saturating_sub(self.submitted)
    }
}

/// See the module's text. The last answer of a tone repeats.
pub struct ScriptedEngine {
    manifest: Manifest,
    turns: usize,
    origin: Instant,
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
pub(super) struct Script {
    answers: BTreeMap<i16, Vec<Answer>>,
    takes: Duration,
    log: Vec<Query>,
    idle: usize,
    is_down: bool,
    waiting: VecDeque<Job>,
}

struct Job {
    query: usize,
    answer: Answer,
    reply: oneshot::Sender<Result<Embedding, Failure>>,
}

impl ScriptedEngine {
    pub(super) fn new(workers: usize, turns: usize) -> Self {
        let manifest = Manifest { dimension: 2, ..gpu_worker::scripted::manifest() };
        let script = Script { idle: workers, ..Script::default() };
        Self { manifest, turns, origin: Instant::now(), script: Arc::new(Mutex::new(script)) }
    }

    /// What the engine answers to a tone, in order; the last answer repeats.
    pub(super) fn script(&self, tone: i16, answers: &[Answer]) {
        lock(&self.script).answers.insert(tone, answers.to_vec());
    }

    /// How long every query takes from now on.
    pub(super) fn queries_take(&self, duration: Duration) {
        lock(&self.script).takes = duration;
    }

    /// Whether the engine says that it is not ready.
    pub(super) fn set_down(&self, is_down: bool) {
        lock(&self.script).is_down = is_down;
    }

    pub(super) fn log(&self) -> Vec<Query> {
        lock(&self.script).log.clone()
    }

    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Workers without a query.
    pub(super) fn idle(&self) -> usize {
        lock(&self.script).idle
    }
}

impl Engine for ScriptedEngine {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn submit(&self, clip: Clip, patience: Duration) -> Ticket {
        // The middle, because a time that was rounded to a sample may cut one of the stretch before.
        let tone = clip.pcm.get(clip.pcm.len() / 2).copied().unwrap_or(0);
        let (reply, answered) = oneshot::channel();
        let query = {
            let mut script = lock(&self.script);
            let answer = script.answer(tone);
            assert!(!matches!(answer, Answer::Panics), "the script lets this submission panic");
            let query = script.log.len();
            let submitted = self.origin.elapsed();
            script.log.push(Query { tone, seconds: clip.seconds(), submitted, started: None, ended: None });
            script.waiting.push_back(Job { query, answer, reply });
            query
        };
        hand_out(&self.script, self.origin);
        let script = self.script.clone();
        Box::pin(async move {
            let mut answered = answered;
            match tokio::time::timeout(patience, &mut answered).await {
                Ok(answer) => answer.unwrap_or(Err(Failure::WorkerLost)),
                Err(_) if lock(&script).is_waiting(query) => Err(Failure::DeadlinePassed),
                // It runs: whether it ends in time is for its caller to judge.
                Err(_) => answered.await.unwrap_or(Err(Failure::WorkerLost)),
            }
        })
    }

    fn health(&self) -> Health {
        let trouble = lock(&self.script).is_down.then(|| "the script says so".to_owned());
        Health { workers_up: 1, workers: 1, restarts: 0, trouble }
    }

    fn turns_max(&self) -> usize {
        self.turns
    }
}

impl Script {
    fn answer(&mut self, tone: i16) -> Answer {
        let answers = self.answers.entry(tone).or_insert_with(|| vec![Answer::Vector(super::at_distance(0.95))]);
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    }

    fn is_waiting(&self, query: usize) -> bool {
        self.waiting.iter().any(|job| job.query == query)
    }

    /// The next query that somebody still waits for, and a worker for it.
    fn take(&mut self) -> Option<Job> {
        self.waiting.retain(|job| !job.reply.is_closed());
        if self.idle == 0 {
            return None;
        }
        let job = self.waiting.pop_front()?;
        self.idle -= 1;
        Some(job)
    }
}

/// Gives every idle worker the query that waits longest.
fn hand_out(script: &Arc<Mutex<Script>>, origin: Instant) {
    loop {
        let Some(Job { query, answer, reply }) = lock(script).take() else { return };
        let takes = {
            let mut script = lock(script);
            script.log[query].started = Some(origin.elapsed());
            script.takes
        };
        let script = script.clone();
        tokio::task::spawn_local(async move {
            let answer = match answer {
                Answer::Vector(vector) => Embedding::of_size(&vector, 2).map_err(Failure::from),
                Answer::Failure(failure) => Err(failure),
                Answer::Hangs | Answer::Panics => return hang(reply).await,
            };
            tokio::time::sleep(takes).await;
            {
                let mut script = lock(&script);
                script.log[query].ended = Some(origin.elapsed());
                script.idle += 1;
            }
            // A caller who has left does not want to know.
            drop(reply.send(answer));
            hand_out(&script, origin);
        });
    }
}

/// A worker that hangs holds its query for good.
async fn hang(reply: oneshot::Sender<Result<Embedding, Failure>>) {
    std::future::pending::<()>().await;
    drop(reply);
}

/// A submission that was told to panic leaves nothing half done.
fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}
