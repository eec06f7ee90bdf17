//! What the unit tests of this crate share: a place on disk that goes away, sounds, and an engine that hears tones.
//!
//! No test double of the database or of the HTTP layer is here: both are used as they are.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gpu_worker::{Clip, Engine, Failure, FrontEnd, Health, Manifest, Ticket};
use matcher_core::Embedding;

/// A directory of its own, removed at the end of the test.
pub(crate) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("rollcall-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("the system's temporary directory is writable");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // A directory that stays behind fails no test.
        std::fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

/// The sample rate of the sounds below.
pub(crate) const RATE: u32 = 16_000;

/// Values in a voiceprint of [`ToneEngine`]: one a hundred hertz.
const DIMENSION: usize = 32;

/// A manifest with the distances that the decision rules are stated for.
pub(crate) fn manifest() -> Manifest {
    Manifest {
        name: "tones".into(),
        file: "tones.onnx".into(),
        fingerprint: "f0".repeat(32),
        front_end: FrontEnd::CAMPPLUS,
        dimension: DIMENSION,
        threshold: 0.65,
        margin: 0.10,
        near_miss_bound: 0.70,
        suggestion_bound: 0.70,
        suggestion_margin: 0.06,
        near_owner_bound: 0.75,
        grouping: 0.50,
        reconnect: 0.35,
        levels: [0.65, 0.75, 0.85],
        tuning: gpu_worker::Tunings::new(),
        source: "a test".into(),
    }
}

/// A tone at half of full scale.
pub(crate) fn tone(hertz: f64, seconds: f64) -> Vec<i16> {
    let samples = 0..samples(seconds);
    samples.map(|n| sample(16_000.0 * (f64::from(n) * hertz * std::f64::consts::TAU / f64::from(RATE)).sin())).collect()
}

pub(crate) fn silence(seconds: f64) -> Vec<i16> {
    vec![0; usize::try_from(samples(seconds)).unwrap()]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test sounds are a few seconds long")]
fn samples(seconds: f64) -> u32 {
    (seconds * f64::from(RATE)) as u32
}

#[expect(clippy::cast_possible_truncation, reason = "the amplitude is half of full scale")]
fn sample(value: f64) -> i16 {
    value as i16
}

/// A WAV file of 16-bit mono samples.
pub(crate) fn wav(pcm: &[i16]) -> Vec<u8> {
    let data: Vec<u8> = pcm.iter().flat_map(|value| value.to_le_bytes()).collect();
    wav_of(1, 1, RATE, 16, &data)
}

/// A WAV file of anything, right or wrong.
pub(crate) fn wav_of(tag: u16, channels: u16, rate: u32, bits: u16, data: &[u8]) -> Vec<u8> {
    let align = channels.wrapping_mul(bits / 8);
    let length = u32::try_from(data.len()).unwrap();
    let mut bytes = Vec::from(*b"RIFF");
    bytes.extend((36 + length).to_le_bytes());
    bytes.extend(b"WAVEfmt ");
    bytes.extend(16_u32.to_le_bytes());
    bytes.extend(tag.to_le_bytes());
    bytes.extend(channels.to_le_bytes());
    bytes.extend(rate.to_le_bytes());
    bytes.extend(rate.wrapping_mul(u32::from(align)).to_le_bytes());
    bytes.extend(align.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    bytes.extend(b"data");
    bytes.extend(length.to_le_bytes());
    bytes.extend(data);
    bytes
}

/// Hears the frequency of a tone: tones of one hundred hertz of range have one voiceprint, others are at right angles.
pub(crate) struct ToneEngine {
    manifest: Manifest,
    failures: Mutex<Vec<Failure>>,
    clips: AtomicU64,
}

impl ToneEngine {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { manifest: manifest(), failures: Mutex::new(Vec::new()), clips: AtomicU64::new(0) })
    }

    /// The next query fails so; several are used up from the last.
    pub(crate) fn fail_next(&self, failure: Failure) {
        self.failures.lock().unwrap().push(failure);
    }

    /// How many clips were submitted.
    pub(crate) fn clips(&self) -> u64 {
        self.clips.load(Ordering::Relaxed)
    }

    fn hear(&self, clip: &Clip) -> Result<Embedding, Failure> {
        if let Some(failure) = self.failures.lock().unwrap().pop() {
            return Err(failure);
        }
        let rising = clip.pcm.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
        let hertz = u32::try_from(rising).unwrap_or(u32::MAX);
        let band = (f64::from(hertz) / clip.seconds() / 100.0).round();
        let mut values = vec![0.0; DIMENSION];
        values[(0..DIMENSION).find(|index| band <= *index as f64).unwrap_or(DIMENSION - 1)] = 1.0;
        Embedding::of_size(&values, DIMENSION).map_err(Failure::BadVector)
    }
}

impl Engine for ToneEngine {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn submit(&self, clip: Clip, _patience: Duration) -> Ticket {
        self.clips.fetch_add(1, Ordering::Relaxed);
        let answer = self.hear(&clip);
        Box::pin(async move { answer })
    }

    fn health(&self) -> Health {
        Health { workers_up: 1, workers: 1, restarts: 0, trouble: None }
    }

    fn turns_max(&self) -> usize {
        2
    }
}

/// The sample rate of [`tone`], as a clip wants it.
pub(crate) fn rate() -> NonZeroU32 {
    NonZeroU32::new(RATE).expect("the rate is not zero")
}
