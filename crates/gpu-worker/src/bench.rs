//! What an extraction costs, and how much of it is not the model: `rollcall bench extract`.
//!
//! Whole extractions (samples in, vector out) and bare session runs on the same features take turns in one thread, so
//! that whatever else the machine does falls on both. Times are the thread's own CPU time; wall time is given beside it.
//! A peer is measured when it is installed. It prints nothing; the command line does.

use std::fs;
use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use serde::Serialize;

use crate::engine::Clip;
use crate::extractor::{BuildError, ExtractError, Extractor as _};
use crate::fbank::RATE;
use crate::front_end::Encoder;
use crate::onnx::{Model, OnnxExtractor};
use crate::runtime::Runtime;

const PEER: &str = include_str!("../bench/peer_sherpa.py");
/// The clip lengths that are measured: the shortest usual query, the floor of evidence, the longest query.
const SECONDS: [u32; 3] = [2, 5, 10];
/// The first runs of a shape allocate; they are not counted.
const WARM_UP: usize = 2;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The model cannot be loaded.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A run failed.
    #[error("a measured run failed: {0}")]
    Run(#[from] ExtractError),
}

/// The measurement, as the command prints it with `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Of the longest clip.
    pub ratios: Ratios,
    /// Seconds of audio that one second of CPU extracts, whole, in clips of the longest length.
    pub audio_s_per_cpu_s: f64,
    /// The machine's load over the last minute, when that is known: how much else was going on.
    pub load_average: Option<f64>,
    /// Each length.
    pub rows: Vec<Row>,
}

/// CPU time relative to something else.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Ratios {
    /// To the session alone on the same features: 1.0 would mean that everything else is free.
    pub vs_bare_session: f64,
    /// To sherpa-onnx with the same model, when its Python package is installed. Its time includes its front end and
    /// taking the samples over from Python.
    pub vs_sherpa_onnx: Option<f64>,
}

/// One clip length, batch 1, one thread. Medians.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Row {
    /// Length of the clip.
    pub clip_s: u32,
    /// CPU milliseconds from samples to vector.
    pub whole_cpu_ms: f64,
    /// Wall milliseconds from samples to vector.
    pub whole_wall_ms: f64,
    /// CPU milliseconds of the session alone.
    pub bare_cpu_ms: f64,
    /// Wall milliseconds of the session alone.
    pub bare_wall_ms: f64,
    /// Median of the ratios of neighbouring runs.
    pub ratio: f64,
    /// Seconds of audio that one second of CPU extracts, whole.
    pub audio_s_per_cpu_s: f64,
}

/// Measures `rounds` pairs of runs for each length.
///
/// # Errors
/// When the model cannot be loaded or a run fails.
pub fn extract(runtime: &'static Runtime, model: &Model, rounds: NonZeroUsize) -> Result<Report, BenchError> {
    let mut extractor = OnnxExtractor::open(runtime, model)?;
    let mut rows = Vec::with_capacity(SECONDS.len());
    for seconds in SECONDS {
        rows.push(row(&mut extractor, model, seconds, rounds)?);
    }
    let longest = *rows.last().expect("there is a row for each of the lengths");
    let peer = peer_cpu_ms(model, &clip(longest.clip_s), rounds);
    let ratios =
        Ratios { vs_bare_session: longest.ratio, vs_sherpa_onnx: peer.map(|peer| longest.whole_cpu_ms / peer) };
    Ok(Report { ratios, audio_s_per_cpu_s: longest.audio_s_per_cpu_s, load_average: load_average(), rows })
}

fn row(extractor: &mut OnnxExtractor, model: &Model, seconds: u32, rounds: NonZeroUsize) -> Result<Row, BenchError> {
    let clip = clip(seconds);
    let mut features = Vec::new();
    let parts = Encoder::new(model.manifest().front_end).append(&clip, &mut features)?.parts;
    let (mut whole, mut bare) = (Times::default(), Times::default());
    for round in 0..rounds.get() + WARM_UP {
        if round == WARM_UP {
            (whole, bare) = (Times::default(), Times::default());
        }
        // Who goes first alternates too: the second finds its caches warm.
        if round.is_multiple_of(2) {
            whole.measure(|| extractor.extract(&clip))?;
            bare.measure(|| extractor.run(&features, parts))?;
        } else {
            bare.measure(|| extractor.run(&features, parts))?;
            whole.measure(|| extractor.extract(&clip))?;
        }
    }
    let ratio = median(whole.cpu.iter().zip(&bare.cpu).map(|(whole, bare)| whole / bare).collect());
    let whole_cpu = median(whole.cpu);
    Ok(Row {
        clip_s: seconds,
        whole_cpu_ms: whole_cpu,
        whole_wall_ms: median(whole.wall),
        bare_cpu_ms: median(bare.cpu),
        bare_wall_ms: median(bare.wall),
        ratio,
        audio_s_per_cpu_s: f64::from(seconds) * 1_000.0 / whole_cpu,
    })
}

/// Milliseconds of each run.
#[derive(Default)]
struct Times {
    cpu: Vec<f64>,
    wall: Vec<f64>,
}

impl Times {
    fn measure<T>(&mut self, run: impl FnOnce() -> Result<T, ExtractError>) -> Result<(), ExtractError> {
        let (cpu, wall) = (ThreadTime::now(), Instant::now());
        let done = run();
        self.cpu.push(ms(cpu.elapsed()));
        self.wall.push(ms(wall.elapsed()));
        done.map(drop)
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (upper, lower) = (values.len() / 2, values.len().saturating_sub(1) / 2);
    match (values.get(lower), values.get(upper)) {
        (Some(a), Some(b)) => f64::midpoint(*a, *b),
        (None, _) | (_, None) => f64::NAN,
    }
}

/// Noise: what an extraction costs does not depend on what is said.
fn clip(seconds: u32) -> Clip {
    let mut state = 7_u32;
    let noise = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i16::try_from(state >> 18).unwrap_or(0) - 8_192
    };
    let rate = NonZeroU32::new(RATE).expect("sixteen thousand is not zero");
    Clip { pcm: (0..seconds * RATE).map(noise).collect(), sample_rate: rate }
}

fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// CPU milliseconds of the peer, or nothing when it cannot be run.
fn peer_cpu_ms(model: &Model, clip: &Clip, rounds: NonZeroUsize) -> Option<f64> {
    let pcm = std::env::temp_dir().join(format!("rollcall-bench-{}.pcm", std::process::id()));
    let printed = write_pcm(&pcm, clip).and_then(|()| {
        let mut python = Command::new("python3");
        python.args(["-c", PEER]).arg(model.graph()).arg(&pcm).arg(rounds.to_string()).output()
    });
    if let Err(error) = fs::remove_file(&pcm) {
        tracing::debug!(%error, "the benchmark's samples could not be removed");
    }
    let seconds: f64 = String::from_utf8(printed.ok()?.stdout).ok()?.trim().parse().ok()?;
    Some(seconds * 1_000.0)
}

fn write_pcm(path: &Path, clip: &Clip) -> io::Result<()> {
    fs::write(path, clip.pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert!((median(vec![4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-12);
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!(median(Vec::new()).is_nan());
    }
}
