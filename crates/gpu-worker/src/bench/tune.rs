//! Finds how a model is best run on a provider: `rollcall bench extract --tune`.
//!
//! What is scarce decides. On the processors that is the time of a core, and a setting is better that takes less of it
//! for a clip; on a device it is the device's time. A setting must gain a twentieth to be preferred to a simpler one:
//! more clips in a run make the first of them wait, and more threads take the cores of other workers.

use std::num::NonZeroUsize;

use serde::Serialize;

use super::{BenchError, Sound, Time, WARM_UP, median_of, sounds};
use crate::extractor::ExtractError;
use crate::onnx::{Model, OnnxExtractor, OnnxFactory, Site};
use crate::provider::Provider;
use crate::runtime::Runtime;
use crate::tuning::Tuning;

/// The batch sizes that are tried.
const BATCHES: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// The numbers of threads that are tried on the processors, as far as there are cores.
const THREADS: [usize; 3] = [1, 2, 4];
/// What a setting must bring.
const GAIN_MIN: f64 = 1.05;
/// The shortest and the longest wait for a batch, in milliseconds: a shorter one no timer keeps; a longer one is felt.
const WAIT_MS: (f64, f64) = (1.0, 10.0);

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct Tuned {
    /// For which provider.
    pub provider: Provider,
    /// The best setting.
    pub tuning: Tuning,
    /// Every setting that was tried.
    pub trials: Vec<Trial>,
}

/// One setting.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Trial {
    /// Threads of the session.
    pub threads: NonZeroUsize,
    /// Clips in one run.
    pub batch: NonZeroUsize,
    /// What one clip of five seconds took of what is scarce, in milliseconds. Median.
    pub clip_ms: f64,
    /// What the run took by the clock, in milliseconds. Median.
    pub run_ms: f64,
}

/// Tries every setting `rounds` times.
///
/// # Errors
/// When the model cannot be loaded or a run fails.
pub fn tune(runtime: &'static Runtime, factory: &OnnxFactory, rounds: NonZeroUsize) -> Result<Tuned, BenchError> {
    let (model, provider) = (factory.model(), factory.taken());
    let sounds = sounds(model)?;
    let sound = sounds.get(1).expect("there is a clip of five seconds");
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = THREADS.into_iter().filter(|threads| *threads == 1 || provider == Provider::Cpu && *threads <= cores);
    let mut trials = Vec::new();
    for threads in threads.filter_map(NonZeroUsize::new) {
        let site = Site { threads, ..factory.site() };
        let mut session = OnnxExtractor::open_on(runtime, model, site)?;
        for batch in batches(model, threads, provider) {
            trials.push(trial(&mut session, sound, (provider, threads, batch), rounds)?);
        }
    }
    Ok(Tuned { provider, tuning: best(&trials), trials })
}

/// Batches are tried on one thread; a clip that is cut into parts is a batch already, and an engine of TensorRT takes no
/// larger one than it was built for.
fn batches(model: &Model, threads: NonZeroUsize, provider: Provider) -> impl Iterator<Item = NonZeroUsize> + use<> {
    let manifest = model.manifest();
    let cut = matches!(manifest.front_end, crate::front_end::FrontEnd::LibrosaMel40(_));
    let most = match provider {
        Provider::Cpu | Provider::Cuda => usize::MAX,
        Provider::TensorRt => manifest.tuning.get(&provider).map_or(1, |tuning| tuning.batch_max.get()),
    };
    let sizes = BATCHES.into_iter().filter(move |size| *size == 1 || threads.get() == 1 && !cut && *size <= most);
    sizes.filter_map(NonZeroUsize::new)
}

fn trial(
    session: &mut OnnxExtractor,
    sound: &Sound,
    (provider, threads, batch): (Provider, NonZeroUsize, NonZeroUsize),
    rounds: NonZeroUsize,
) -> Result<Trial, ExtractError> {
    let features = sound.features.repeat(batch.get());
    let mut times = Vec::with_capacity(rounds.get());
    for round in 0..rounds.get() + WARM_UP {
        let time = Time::of_process(|| session.run(&features, sound.parts * batch.get()))?;
        if round >= WARM_UP {
            times.push(time);
        }
    }
    let Time { cpu_ms, wall_ms } = median_of(&times);
    let scarce = if provider == Provider::Cpu { cpu_ms } else { wall_ms };
    Ok(Trial { threads, batch, clip_ms: scarce / batch.get() as f64, run_ms: wall_ms })
}

/// The first of the trials that no later one beats by enough.
fn best(trials: &[Trial]) -> Tuning {
    let mut trials = trials.iter();
    let Some(mut best) = trials.next() else { return Tuning::default() };
    for trial in trials {
        if trial.clip_ms * GAIN_MIN < best.clip_ms {
            best = trial;
        }
    }
    // As long as half a run: waiting then costs a query at most half of what its run costs it anyway.
    let wait = if best.batch.get() > 1 { (best.run_ms / 2.0).clamp(WAIT_MS.0, WAIT_MS.1) } else { 0.0 };
    Tuning { batch_max: best.batch, batch_wait_ms: wait, threads: best.threads }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(threads: usize, batch: usize, clip_ms: f64) -> Trial {
        let (threads, batch) = (NonZeroUsize::new(threads).unwrap(), NonZeroUsize::new(batch).unwrap());
        Trial { threads, batch, clip_ms, run_ms: clip_ms * batch.get() as f64 }
    }

    #[test]
    fn what_does_not_gain_a_twentieth_is_not_preferred() {
        let tuning = best(&[trial(1, 1, 60.0), trial(1, 4, 58.0), trial(1, 8, 66.0), trial(2, 1, 64.0)]);
        assert_eq!(tuning, Tuning::default());
        assert_eq!(best(&[]), Tuning::default());
    }

    #[test]
    fn a_batch_that_pays_is_waited_for_as_long_as_half_a_run_within_limits() {
        let tuning = best(&[trial(1, 1, 4.0), trial(1, 4, 1.5), trial(1, 8, 1.0), trial(1, 16, 0.99)]);
        assert_eq!((tuning.batch_max.get(), tuning.threads.get()), (8, 1));
        assert!((tuning.batch_wait_ms - 4.0).abs() < 1e-12);
        assert!((best(&[trial(1, 1, 100.0), trial(1, 32, 10.0)]).batch_wait_ms - 10.0).abs() < 1e-12);
    }
}
