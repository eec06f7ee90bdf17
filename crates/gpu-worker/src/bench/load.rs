//! Sixteen clips at once on all cores: the pool, bare sessions on as many threads, and the peers.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::peer::Peer;
use super::{BenchError, Sound, Time, median_of};
use crate::engine::{Clip, Failure};
use crate::extractor::ExtractError;
use crate::onnx::{Model, OnnxExtractor, OnnxFactory};
use crate::pool::{Pool, Settings};
use crate::runtime::Runtime;

/// Clips at once.
pub(super) const CLIPS: usize = 16;
/// Nobody waits this long; whoever does would find the measurement stuck.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long whoever found the queue full waits: a tenth of a short run, so that no worker waits for a query.
const AGAIN: Duration = Duration::from_millis(3);

/// What sixteen clips of one length cost together. Medians, in milliseconds.
#[derive(Debug, Clone, Serialize)]
pub struct Load {
    /// Clips that are there at the same time.
    pub clips: usize,
    /// Length of each.
    pub clip_s: u32,
    /// Workers, threads of bare sessions, and threads of the peers.
    pub threads: usize,
    /// The pool.
    pub whole: Time,
    /// Bare sessions on the same features.
    pub bare: Time,
    /// sherpa-onnx, when it is installed.
    pub sherpa_onnx: Option<Time>,
    /// ONNX Runtime in Python, when it is installed.
    pub python: Option<Time>,
    /// CPU time of the pool by that of bare sessions.
    pub vs_bare_session: f64,
    /// CPU time of the pool by that of sherpa-onnx.
    pub vs_sherpa_onnx: Option<f64>,
    /// Seconds of audio that the pool extracts in one second of CPU.
    pub audio_s_per_cpu_s: f64,
}

/// Who is measured.
pub(super) struct Contest<'a> {
    pub(super) runtime: &'static Runtime,
    pub(super) model: &'a Model,
    pub(super) sound: &'a Sound,
    pub(super) peers: [Option<&'a mut Peer>; 2],
    pub(super) rounds: usize,
}

impl Contest<'_> {
    pub(super) fn measure(self) -> Result<Load, BenchError> {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let pool = start(self.runtime, self.model, threads)?;
        let open = |_| OnnxExtractor::open(self.runtime, self.model);
        let mut sessions = (0..threads.get()).map(open).collect::<Result<Vec<_>, _>>()?;
        let (mut whole, mut bare, mut others) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
        let mut peers = self.peers;
        for round in 0..=self.rounds {
            let pooled = Time::of_process(|| together(&pool, &self.sound.clip))?;
            let alone = Time::of_process(|| side_by_side(&mut sessions, self.sound))?;
            let theirs = peers.each_mut().map(|peer| peer.as_mut()?.load(self.sound.index, CLIPS));
            // The first round warms up.
            if round > 0 {
                whole.push(pooled);
                bare.push(alone);
                others.iter_mut().zip(theirs).for_each(|(times, time)| times.extend(time));
            }
        }
        pool.shutdown();
        Ok(self.sound.load_of(threads.get(), [whole, bare], others))
    }
}

impl Sound {
    fn load_of(&self, threads: usize, [whole, bare]: [Vec<Time>; 2], others: [Vec<Time>; 2]) -> Load {
        let (whole, bare) = (median_of(&whole), median_of(&bare));
        let [sherpa_onnx, python] = others.map(|times| (!times.is_empty()).then(|| median_of(&times)));
        let audio_s = f64::from(self.seconds) * CLIPS as f64;
        Load {
            clips: CLIPS,
            clip_s: self.seconds,
            threads,
            whole,
            bare,
            sherpa_onnx,
            python,
            vs_bare_session: whole.cpu_ms / bare.cpu_ms,
            vs_sherpa_onnx: sherpa_onnx.map(|peer| whole.cpu_ms / peer.cpu_ms),
            audio_s_per_cpu_s: audio_s * 1_000.0 / whole.cpu_ms,
        }
    }
}

fn start(runtime: &'static Runtime, model: &Model, workers: NonZeroUsize) -> Result<Pool, BenchError> {
    let factory = OnnxFactory::new(runtime, model.clone());
    let settings = factory.tuned(Settings { workers, patience: PATIENCE, run_max: PATIENCE, ..Settings::default() });
    let pool = Pool::start(settings, model.manifest().clone(), factory).map_err(BenchError::Prepare)?;
    pool.wait_ready(settings.build_max).map_err(BenchError::NotReady)?;
    Ok(pool)
}

/// All clips at once. Whoever finds the queue full asks again, as a conversation does.
fn together(pool: &Pool, clip: &Clip) -> Result<(), BenchError> {
    let ask = || loop {
        match pool.extract_blocking(clip.clone()) {
            Err(Failure::QueueFull) => std::thread::sleep(AGAIN),
            answer => return answer.map(drop).map_err(BenchError::Query),
        }
    };
    std::thread::scope(|scope| {
        let askers: Vec<_> = (0..CLIPS).map(|_| scope.spawn(ask)).collect();
        askers.into_iter().try_for_each(|asker| asker.join().unwrap_or(Err(BenchError::Panicked)))
    })
}

/// As many runs, each thread with its own session.
fn side_by_side(sessions: &mut [OnnxExtractor], sound: &Sound) -> Result<(), BenchError> {
    let left = AtomicUsize::new(CLIPS);
    let drain = |session: &mut OnnxExtractor| -> Result<(), ExtractError> {
        while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            session.run(&sound.features, sound.parts)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = sessions.iter_mut().map(|session| scope.spawn(|| drain(session))).collect();
        threads.into_iter().try_for_each(|thread| Ok(thread.join().map_err(|_| BenchError::Panicked)??))
    })
}
