//! The engine at full load for a long time: whether its memory, threads and descriptors stay where they are.
//!
//! The load and the samples are made in this process, which does nothing else; what they show is judged in [`report`].
//! The engine is the one that a server with the same settings would have.

mod held;
mod report;

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpu_worker::{Clip, Engine as _, Failure, Pool};

use held::Held;
pub use report::{Levels, Report};

/// Callers for each worker: one whose query runs, and one that waits, so that no worker is ever idle.
const CALLERS_PER_WORKER: usize = 2;

/// One query in so many is given up by its caller at once, as a socket that closes does.
const CANCELLED_EVERY: u64 = 16;

/// Lengths of the clips, in seconds: the shortest that is examined, the longest, and some between, so that buffers grow
/// and shrink.
const CLIP_SECONDS: [u32; 5] = [2, 10, 3, 8, 5];

/// Samples of a run are so many that a line can be laid through them, and so few that they cost nothing.
const SAMPLES: u32 = 400;
const EVERY_MIN: Duration = Duration::from_millis(100);
const EVERY_MAX: Duration = Duration::from_secs(5);

/// Time of a query, queueing and running together. A worker takes a sixth of a second for the longest clip.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// What the process holds cannot be known.
    #[error("this system does not tell what a process holds: there is no /proc")]
    NoProc,
    /// A caller cannot be started.
    #[error("the load cannot be started: {0}")]
    Threads(#[from] std::io::Error),
}

/// How the queries ended.
#[derive(Debug, Default)]
struct Tally {
    answered: AtomicU64,
    cancelled: AtomicU64,
    failed: AtomicU64,
    audio_seconds: AtomicU64,
}

/// Keeps `pool` busy for `time`, and tells what the process held meanwhile. Blocks.
///
/// # Errors
/// When the load cannot be started, or nothing can be known of this process. What is found is no error.
pub fn measure(pool: &Pool, time: Duration, tell: &dyn Fn(&str)) -> Result<Report, SoakError> {
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let workers = pool.health().workers;
    let clips: Vec<Clip> = CLIP_SECONDS.iter().map(|seconds| clip(*seconds)).collect();
    let samples = std::thread::scope(|scope| {
        // Whatever ends the sampling ends the callers.
        let _end = Raised(&stop);
        for caller in 0..workers.saturating_mul(CALLERS_PER_WORKER) {
            let (clips, tally, stop) = (&clips, &tally, &stop);
            let thread = std::thread::Builder::new().name("soak".to_owned());
            thread.spawn_scoped(scope, move || call(pool, clips, caller, tally, stop))?;
        }
        sample(time, tell)
    })?;
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    Ok(Report::new(report::Run {
        model: pool.manifest().name.clone(),
        provider: pool.provider(),
        workers,
        time,
        answered: count(&tally.answered),
        cancelled: count(&tally.cancelled),
        failed: count(&tally.failed),
        audio_seconds: count(&tally.audio_seconds),
        samples,
    }))
}

/// Says stop when it is dropped.
struct Raised<'a>(&'a AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn call(pool: &Pool, clips: &[Clip], first: usize, tally: &Tally, stop: &AtomicBool) {
    for (query, clip) in (1_u64..).zip(clips.iter().cycle().skip(first % clips.len())) {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        if query.is_multiple_of(CANCELLED_EVERY) {
            drop(pool.submit(clip.clone(), PATIENCE));
            tally.cancelled.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        match pool.extract_blocking(clip.clone()) {
            Ok(_) => {
                tally.answered.fetch_add(1, Ordering::Relaxed);
                let seconds = clip.pcm.len() as u64 / u64::from(clip.sample_rate.get());
                tally.audio_seconds.fetch_add(seconds, Ordering::Relaxed);
            }
            // Those that were given up hold their places in the queue until a worker comes to them.
            Err(Failure::QueueFull) => std::thread::sleep(Duration::from_millis(1)),
            Err(
                Failure::Encoding(_)
                | Failure::Extraction(_)
                | Failure::BadVector(_)
                | Failure::WorkerPanicked
                | Failure::WorkerLost
                | Failure::DeadlinePassed
                | Failure::Cancelled
                | Failure::Unavailable,
            ) => {
                tally.failed.fetch_add(1, Ordering::Relaxed);
                // A pool that cannot extract answers at once; asking on at full speed would measure that.
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// What the process held, and when. Room for the samples is made before the first.
fn sample(time: Duration, tell: &dyn Fn(&str)) -> Result<Vec<(Duration, Held)>, SoakError> {
    let every = (time / SAMPLES).clamp(EVERY_MIN, EVERY_MAX);
    let count = time.as_millis() / every.as_millis() + 2;
    let mut samples = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    let started = Instant::now();
    loop {
        let at = started.elapsed();
        let held = Held::now().ok_or(SoakError::NoProc)?;
        samples.push((at, held));
        if at >= time {
            return Ok(samples);
        }
        tell(&format!("{:.0} of {:.0} s: {held}", at.as_secs_f64(), time.as_secs_f64()));
        std::thread::sleep(every.min(time.saturating_sub(at)));
    }
}

/// A saw of 125 Hz: something in every band.
fn clip(seconds: u32) -> Clip {
    const RATE: NonZeroU32 = NonZeroU32::MIN.saturating_add(15_999);
    let value = |n: u32| i16::try_from(n % 128).unwrap_or(0) * 128 - 8_192;
    Clip { pcm: (0..seconds * RATE.get()).map(value).collect(), sample_rate: RATE }
}
