//! Extractors without a model, for tests and for measuring what the service itself costs.
//!
//! [`voices`] tells synthetic voices apart by their pitch, for `--model scripted`. [`Script`] does what it is told, for
//! tests of what happens when a worker misbehaves. Neither says anything about speech.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::engine::Clip;
use crate::extractor::{BuildError, ExtractError, Extractor, Factory};
use crate::front_end::FrontEnd;
use crate::manifest::Manifest;
use crate::tuning::Tunings;

/// The name by which the command line asks for [`voices`].
pub const NAME: &str = "scripted";
/// Pitches are told apart in steps of 20 Hz: a second of audio gives its pitch to half a hertz, and joints between spans
/// add a few crossings more.
const PITCH_STEP_HZ: f64 = 20.0;
/// A hang ends by itself after this long, so that no test leaves a thread behind for good.
const HANG_MAX: Duration = Duration::from_secs(120);

/// A manifest for the scripted extractor: the size and the distances of the shipped model, a wider band of suggestions for
/// tests to aim at, and no file.
#[must_use]
pub fn manifest() -> Manifest {
    Manifest {
        name: NAME.to_owned(),
        file: "none".to_owned(),
        // No file has it; it only keeps these vectors from being compared with a model's.
        fingerprint: "0".repeat(64),
        front_end: FrontEnd::CAMPPLUS,
        dimension: 192,
        threshold: 0.55,
        margin: 0.10,
        near_miss_bound: 0.65,
        suggestion_bound: 0.70,
        suggestion_margin: 0.06,
        near_owner_bound: 0.65,
        grouping: 0.50,
        reconnect: 0.45,
        levels: [0.55, 0.65, 0.75],
        tuning: Tunings::new(),
        source: "no model: a function of the clip's pitch, for tests and measurements".to_owned(),
    }
}

/// A factory of extractors whose vector depends on the clip's pitch alone.
///
/// The pitch is half the number of sign changes a second, to the nearest multiple of 20 Hz. Clips of one tone (or of one
/// voice made of it and its harmonics) give the same vector at any length from half a second and at any rate; tones 40 Hz
/// apart or more give vectors that are about 1.0 apart. Silence has pitch zero. It costs one pass over the samples.
pub fn voices(dimension: usize) -> impl Factory + Clone {
    move || -> Result<Box<dyn Extractor>, BuildError> {
        Ok(Box::new(move |clip: &Clip| voice_of(clip).map(|voice| vector_of(voice, dimension))))
    }
}

/// The vector that [`voices`] gives to audio of this pitch.
#[must_use]
pub fn voice_vector(hertz: f64, dimension: usize) -> Vec<f32> {
    vector_of(step_of(hertz), dimension)
}

fn voice_of(clip: &Clip) -> Result<u32, ExtractError> {
    let seconds = clip.seconds();
    if seconds < 0.01 {
        return Err(ExtractError::Encoding(format!("the clip is {seconds:.3} s long and must have at least 0.01 s")));
    }
    let changes = clip.pcm.iter().zip(clip.pcm.iter().skip(1)).filter(|(a, b)| (**a < 0) != (**b < 0)).count();
    Ok(step_of(changes as f64 / 2.0 / seconds))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a pitch is a small positive number")]
fn step_of(hertz: f64) -> u32 {
    (hertz / PITCH_STEP_HZ).round() as u32
}

/// Pseudo-random values of mean zero, so that two of these vectors are nearly orthogonal.
fn vector_of(seed: u32, dimension: usize) -> Vec<f32> {
    let mut state = u64::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0xD1B5_4A32_D192_ED03);
    let value = |_| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let high = u16::try_from(state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 48).unwrap_or(0);
        f32::from(high) / 32_768.0 - 1.0
    };
    (0..dimension).map(value).collect()
}

/// What a scripted worker does with one clip.
#[derive(Debug, Clone)]
pub enum Step {
    /// Gives this vector.
    Answer(Vec<f32>),
    /// Says that the clip is at fault.
    RefuseClip,
    /// Says that the extractor is at fault.
    Fail,
    /// Gives a vector that is not a number.
    NotANumber,
    /// Panics.
    Panic,
    /// Panics with a payload that panics again when it is dropped: the second panic strikes outside the run.
    PanicTwice,
    /// Does not return until [`Script::release`], then answers by pitch.
    Hang,
}

/// Tells the extractors of one pool what to do. Clones are the same script.
///
/// Steps are taken in order by whichever worker comes next. Without a step a clip is answered by its pitch, as
/// [`voices`] does.
#[derive(Clone)]
pub struct Script {
    shared: Arc<Shared>,
}

struct Shared {
    dimension: usize,
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Default)]
struct State {
    steps: VecDeque<Step>,
    failing_builds: usize,
    builds: usize,
    runs: usize,
    hanging: usize,
    releases: usize,
}

impl Script {
    /// A script without a step.
    #[must_use]
    pub fn new(dimension: usize) -> Self {
        Self { shared: Arc::new(Shared { dimension, state: Mutex::default(), released: Condvar::new() }) }
    }

    /// A factory whose extractors follow this script.
    pub fn factory(&self) -> impl Factory + Clone + use<> {
        let script = self.clone();
        move || -> Result<Box<dyn Extractor>, BuildError> {
            script.build()?;
            let script = script.clone();
            Ok(Box::new(move |clip: &Clip| script.run(clip)))
        }
    }

    /// Adds a step for the next clip that has none.
    pub fn then(&self, step: Step) -> &Self {
        self.state().steps.push_back(step);
        self
    }

    /// The next `count` extractors cannot be built.
    pub fn fail_builds(&self, count: usize) {
        self.state().failing_builds = count;
    }

    /// Lets every hanging run go on.
    pub fn release(&self) {
        self.state().releases += 1;
        self.shared.released.notify_all();
    }

    /// Extractors built or tried.
    #[must_use]
    pub fn builds(&self) -> usize {
        self.state().builds
    }

    /// Clips that reached an extractor.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.state().runs
    }

    /// Runs that hang at the moment.
    #[must_use]
    pub fn hanging(&self) -> usize {
        self.state().hanging
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build(&self) -> Result<(), BuildError> {
        let mut state = self.state();
        state.builds += 1;
        if state.failing_builds > 0 {
            state.failing_builds -= 1;
            return Err(BuildError("the script lets this build fail".to_owned()));
        }
        Ok(())
    }

    fn run(&self, clip: &Clip) -> Result<Vec<f32>, ExtractError> {
        let step = {
            let mut state = self.state();
            state.runs += 1;
            state.steps.pop_front()
        };
        let dimension = self.shared.dimension;
        match step {
            None => voice_of(clip).map(|voice| vector_of(voice, dimension)),
            Some(Step::Answer(vector)) => Ok(vector),
            Some(Step::RefuseClip) => Err(ExtractError::Encoding("the script refuses this clip".to_owned())),
            Some(Step::Fail) => Err(ExtractError::Session("the script lets this run fail".to_owned())),
            Some(Step::NotANumber) => Ok(vec![f32::NAN; dimension]),
            Some(Step::Panic) => panic!("the script lets this run panic"),
            Some(Step::PanicTwice) => std::panic::panic_any(PanicsWhenDropped),
            Some(Step::Hang) => {
                self.hang();
                voice_of(clip).map(|voice| vector_of(voice, dimension))
            }
        }
    }

    fn hang(&self) {
        let mut state = self.state();
        let before = state.releases;
        state.hanging += 1;
        let held = |state: &mut State| state.releases == before;
        let waited = self.shared.released.wait_timeout_while(state, HANG_MAX, held);
        waited.unwrap_or_else(PoisonError::into_inner).0.hanging -= 1;
    }
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("the script lets this payload panic");
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use matcher_core::Embedding;

    use super::*;

    fn tone(hertz: f64, rate: u32, seconds: f64, phase: f64) -> Clip {
        let count = (0..).map(f64::from).take_while(|n| *n < seconds * f64::from(rate));
        let value = |n: f64| (8_000.0 * (std::f64::consts::TAU * hertz * n / f64::from(rate) + phase).sin()).round();
        #[expect(clippy::cast_possible_truncation, reason = "the amplitude is 8000")]
        let pcm = count.map(|n| value(n) as i16).collect();
        Clip { pcm, sample_rate: NonZeroU32::new(rate).unwrap() }
    }

    fn print(clip: &Clip) -> Embedding {
        Embedding::of_size(&voices(192).build().unwrap().extract(clip).unwrap(), 192).unwrap()
    }

    #[test]
    fn a_tone_is_one_voice_at_any_length_rate_and_phase() {
        for hertz in [100.0, 220.0, 440.0, 1_000.0] {
            let first = print(&tone(hertz, 16_000, 2.0, 0.0));
            for (rate, seconds, phase) in [(8_000, 0.5, 1.0), (44_100, 3.3, 2.0), (48_000, 10.0, 3.0)] {
                assert!(first.distance(&print(&tone(hertz, rate, seconds, phase))).unwrap() < 1e-9, "{hertz} {rate}");
            }
            assert_eq!(first, Embedding::new(&voice_vector(hertz, 192)).unwrap());
        }
    }

    #[test]
    fn other_tones_are_strangers() {
        let prints: Vec<Embedding> =
            (2..60).map(|step| print(&tone(f64::from(step) * 40.0, 16_000, 1.0, 0.5))).collect();
        for (index, one) in prints.iter().enumerate() {
            for other in &prints[..index] {
                assert!(one.distance(other).unwrap() > 0.65, "two tones are alike");
            }
        }
    }

    #[test]
    fn silence_is_a_voice_too_and_nothing_is_an_error() {
        assert_eq!(print(&tone(0.0, 16_000, 1.0, 0.0)), Embedding::new(&voice_vector(0.0, 192)).unwrap());
        let empty = Clip { pcm: [].into(), sample_rate: NonZeroU32::new(16_000).unwrap() };
        assert!(matches!(voices(192).build().unwrap().extract(&empty), Err(ExtractError::Encoding(_))));
    }
}
