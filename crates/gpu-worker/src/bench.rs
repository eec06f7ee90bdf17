//! What an extraction costs, and how much of it is not the model: `rollcall bench extract`.
//!
//! Whole extractions (samples in, vector out), bare runs of a session on the same features, and the peers that are
//! installed take turns, so that whatever else the machine does falls on all. CPU time is compared, wall time is given
//! beside it. It prints nothing; the command line does.

mod load;
mod peer;
mod report;
mod tune;

use std::fs;
use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};

use crate::engine::{Clip, Failure};
use crate::extractor::{BuildError, ExtractError, Extractor as _};
use crate::fbank::RATE;
use crate::front_end::Encoder;
use crate::onnx::{Form, Model, OnnxExtractor, OnnxFactory, Site};
use crate::runtime::Runtime;
use peer::{Kind, Peer};

pub use load::Load;
pub use report::{EightBits, Ratios, Report, Row, Time};
pub use tune::{Tuned, tune};

/// The clip lengths that are measured: the shortest usual query, the floor of evidence, the longest query.
const SECONDS: [u32; 3] = [2, 5, 10];
/// The first runs of a shape allocate; they are not counted.
const WARM_UP: usize = 2;
/// Rounds of sixteen clips at once, for so many rounds of one.
const ROUNDS_A_LOAD: usize = 6;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The model cannot be loaded.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A run failed.
    #[error("a measured run failed: {0}")]
    Run(#[from] ExtractError),
    /// A query of the pool failed.
    #[error("a measured query failed: {0}")]
    Query(Failure),
    /// No worker of the pool came up.
    #[error("no extraction worker came up: {0}")]
    NotReady(String),
    /// The clips cannot be written for the peers, or no thread can be started.
    #[error("cannot prepare the measurement: {0}")]
    Prepare(#[from] io::Error),
    /// A thread of the measurement panicked.
    #[error("a measuring thread panicked")]
    Panicked,
}

/// A clip and what it is for the model.
struct Sound {
    index: usize,
    seconds: u32,
    clip: Clip,
    features: Vec<f32>,
    parts: usize,
}

/// What is measured, and against what.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// The model.
    pub model: &'a Model,
    /// The same model in eight bits.
    pub int8: Option<&'a Model>,
    /// Rounds for each clip length.
    pub rounds: NonZeroUsize,
    /// The Python that has the peers.
    pub python: &'a Path,
}

/// Measures.
///
/// # Errors
/// When the model cannot be loaded or a run fails. A peer that is missing is left out.
pub fn extract(runtime: &'static Runtime, plan: &Plan<'_>) -> Result<Report, BenchError> {
    let sounds = sounds(plan.model)?;
    let (mut peers, said) = peers(plan, &sounds)?;
    let form = OnnxFactory::new(runtime, plan.model.clone()).form();
    let mut rivals = Rivals::open(runtime, plan.model, form)?;
    let mut rows = Vec::with_capacity(sounds.len());
    for sound in &sounds {
        rows.push(rivals.row(sound, &mut peers, plan.rounds)?);
    }
    let mut loads = Vec::with_capacity(sounds.len());
    for sound in &sounds {
        let rounds = plan.rounds.get().div_ceil(ROUNDS_A_LOAD);
        let peers = peers.each_mut().map(Option::as_mut);
        loads.push(load::Contest { runtime, model: plan.model, sound, peers, rounds }.measure()?);
    }
    let int8 = plan.int8.map(|model| eight_bits(runtime, model, &mut rivals, &sounds, plan.rounds)).transpose()?;
    let longest = *rows.last().expect("there is a row for each of the lengths");
    let Row { ratio, vs_sherpa_onnx, vs_python, audio_s_per_cpu_s, .. } = longest;
    let ratios = Ratios { vs_bare_session: ratio, vs_sherpa_onnx, vs_python };
    let model = plan.model.manifest().name.clone();
    Ok(Report { model, ratios, audio_s_per_cpu_s, load_average: load_average(), rows, loads, int8, peers: said })
}

fn sounds(model: &Model) -> Result<Vec<Sound>, BenchError> {
    let mut encoder = Encoder::new(model.manifest().front_end);
    let mut sound = |(index, seconds): (usize, u32)| {
        let (clip, mut features) = (clip(seconds), Vec::new());
        let parts = encoder.append(&clip, &mut features)?.parts;
        Ok(Sound { index, seconds, clip, features, parts })
    };
    SECONDS.into_iter().enumerate().map(&mut sound).collect()
}

type Peers = [Option<Peer>; 2];

/// Starts the peers, and says of each which it is or why there is none.
fn peers(plan: &Plan<'_>, sounds: &[Sound]) -> Result<(Peers, Vec<String>), BenchError> {
    let folder = Folder::new()?;
    let paths = sounds.iter().map(|sound| folder.write(sound)).collect::<io::Result<Vec<_>>>()?;
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let mut said = Vec::new();
    let peers = [Kind::Sherpa, Kind::Python].map(|kind| {
        let started = Peer::start(kind, plan.python, plan.model.graph(), &paths, cores);
        said.push(match &started {
            Ok(peer) => format!("{} {}", kind.name(), peer.version),
            Err(reason) => format!("left out: {reason}"),
        });
        started.ok()
    });
    Ok((peers, said))
}

/// Who takes turns in this process: the whole extraction, its session alone, and a bare session.
struct Rivals {
    whole: OnnxExtractor,
    bare: OnnxExtractor,
}

impl Rivals {
    fn open(runtime: &'static Runtime, model: &Model, form: Form) -> Result<Self, BuildError> {
        let whole = OnnxExtractor::open_on(runtime, model, Site { form, ..Site::default() })?;
        Ok(Self { whole, bare: OnnxExtractor::open(runtime, model)? })
    }

    fn row(&mut self, sound: &Sound, peers: &mut Peers, rounds: NonZeroUsize) -> Result<Row, BenchError> {
        let mut times: [Vec<Time>; 5] = Default::default();
        for round in 0..rounds.get() + WARM_UP {
            let mut measured = [None; 5];
            // Who goes first rotates: the next finds its caches warm.
            for turn in 0..measured.len() {
                let who = (round + turn) % measured.len();
                let time = self.turn(who, sound, peers)?;
                if let Some(place) = measured.get_mut(who) {
                    *place = time;
                }
            }
            if round >= WARM_UP {
                times.iter_mut().zip(measured).for_each(|(times, time)| times.extend(time));
            }
        }
        Ok(row_of(sound.seconds, &times))
    }

    fn turn(&mut self, who: usize, sound: &Sound, peers: &mut Peers) -> Result<Option<Time>, ExtractError> {
        let [sherpa, python] = peers;
        Ok(match who {
            0 => Some(Time::of_thread(|| self.whole.extract(&sound.clip))?),
            1 => Some(Time::of_thread(|| self.bare.run(&sound.features, sound.parts))?),
            2 => Some(Time::of_thread(|| self.whole.run(&sound.features, sound.parts))?),
            3 => sherpa.as_mut().and_then(|peer| peer.run(sound.index)),
            _ => python.as_mut().and_then(|peer| peer.run(sound.index)),
        })
    }
}

fn row_of(clip_s: u32, [whole, bare, session, sherpa, python]: &[Vec<Time>; 5]) -> Row {
    let there = |times: &Vec<Time>| (!times.is_empty()).then(|| median_of(times).cpu_ms);
    let ratio = |to: &Vec<Time>| median(whole.iter().zip(to).map(|(whole, to)| whole.cpu_ms / to.cpu_ms).collect());
    let vs = |to: &Vec<Time>| (!to.is_empty()).then(|| ratio(to));
    let (whole_median, bare_median) = (median_of(whole), median_of(bare));
    Row {
        clip_s,
        whole_cpu_ms: whole_median.cpu_ms,
        whole_cpu_ms_min: least(whole),
        whole_wall_ms: whole_median.wall_ms,
        session_cpu_ms: median_of(session).cpu_ms,
        bare_cpu_ms: bare_median.cpu_ms,
        bare_cpu_ms_min: least(bare),
        bare_wall_ms: bare_median.wall_ms,
        sherpa_onnx_cpu_ms: there(sherpa),
        python_cpu_ms: there(python),
        ratio: ratio(bare),
        vs_sherpa_onnx: vs(sherpa),
        vs_python: vs(python),
        audio_s_per_cpu_s: f64::from(clip_s) * 1_000.0 / whole_median.cpu_ms,
    }
}

fn eight_bits(
    runtime: &'static Runtime,
    model: &Model,
    full: &mut Rivals,
    sounds: &[Sound],
    rounds: NonZeroUsize,
) -> Result<EightBits, BenchError> {
    let form = OnnxFactory::new(runtime, model.clone()).form();
    let mut rivals = Rivals::open(runtime, model, form)?;
    let (mut rows, mut distances) = (Vec::new(), Vec::new());
    for sound in sounds {
        rows.push(rivals.row(sound, &mut [None, None], rounds)?);
        let (a, b) = (full.whole.extract(&sound.clip)?, rivals.whole.extract(&sound.clip)?);
        distances.push(distance(&a, &b));
    }
    Ok(EightBits { model: model.manifest().name.clone(), rows, distances })
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    1.0 - dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

impl Time {
    fn of_thread<T>(run: impl FnOnce() -> Result<T, ExtractError>) -> Result<Self, ExtractError> {
        let (cpu, wall) = (ThreadTime::now(), Instant::now());
        let done = run();
        let time = Self { cpu_ms: ms(cpu.elapsed()), wall_ms: ms(wall.elapsed()) };
        done.map(|_| time)
    }

    fn of_process<T, E>(run: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        let (cpu, wall) = (ProcessTime::now(), Instant::now());
        let done = run();
        let time = Self { cpu_ms: ms(cpu.elapsed()), wall_ms: ms(wall.elapsed()) };
        done.map(|_| time)
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn median_of(times: &[Time]) -> Time {
    let of = |part: fn(&Time) -> f64| median(times.iter().map(part).collect());
    Time { cpu_ms: of(|time| time.cpu_ms), wall_ms: of(|time| time.wall_ms) }
}

fn least(times: &[Time]) -> f64 {
    times.iter().map(|time| time.cpu_ms).fold(f64::INFINITY, f64::min)
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

/// Where the clips lie while the peers read them.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("rollcall-bench-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn write(&self, sound: &Sound) -> io::Result<PathBuf> {
        let path = self.0.join(format!("{}.pcm", sound.seconds));
        let bytes: Vec<u8> = sound.clip.pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        fs::write(&path, bytes).map(|()| path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::debug!(%error, "the benchmark's samples could not be removed");
        }
    }
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

    #[test]
    fn a_row_compares_neighbouring_runs_and_leaves_out_who_was_not_there() {
        let times = |values: &[f64]| values.iter().map(|ms| Time { cpu_ms: *ms, wall_ms: 2.0 * ms }).collect();
        // The machine was half as fast in the second round, which falls on both.
        let measured = [times(&[10.0, 20.0]), times(&[8.0, 16.0]), times(&[9.0, 18.0]), times(&[20.0, 40.0]), vec![]];
        let row = row_of(10, &measured);
        assert!((row.ratio - 1.25).abs() < 1e-12 && (row.vs_sherpa_onnx.unwrap() - 0.5).abs() < 1e-12);
        assert_eq!((row.python_cpu_ms, row.vs_python), (None, None));
        assert!((row.whole_cpu_ms_min - 10.0).abs() < 1e-12 && (row.audio_s_per_cpu_s - 10_000.0 / 15.0).abs() < 1e-9);
    }
}
