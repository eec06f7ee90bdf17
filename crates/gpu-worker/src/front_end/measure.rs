//! What the front ends cost, beside the libraries whose numbers they give: `rollcall bench frontend`.
//!
//! Each front end works on the same clip, in one thread, in its CPU time; the libraries do so in a Python that has them,
//! in the same run. It prints nothing; the command line does.

use std::fs;
use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::process::Command;

use cpu_time::ThreadTime;
use serde::{Deserialize, Serialize};

use super::{Encoder, FrontEnd, LibrosaMel, Waveform};
use crate::engine::Clip;
use crate::extractor::ExtractError;
use crate::fbank::RATE;

const PEERS: &str = include_str!("../../bench/peer_front_ends.py");
/// The longest query.
const SECONDS: u32 = 10;
/// The first runs allocate; they are not counted.
const WARM_UP: usize = 3;

/// What one front end costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which one.
    pub front_end: &'static str,
    /// CPU milliseconds for ten seconds of audio; the median.
    pub cpu_ms: f64,
    /// Seconds of audio that one second of CPU takes in.
    pub audio_s_per_cpu_s: f64,
    /// The library that computes the same.
    pub peer: Option<&'static str>,
    /// CPU milliseconds of that library, where it is installed.
    pub peer_cpu_ms: Option<f64>,
    /// How many times longer the library takes.
    pub times_faster: Option<f64>,
}

/// Medians by package, in seconds.
#[derive(Default, Deserialize)]
struct Peers {
    kaldi_native_fbank: Option<f64>,
    librosa: Option<f64>,
}

/// Measures each front end for `rounds` runs, and the libraries as often in `python`.
///
/// # Errors
/// When a clip cannot be encoded, which would be a defect. A library that is not there is no error.
pub fn measure(rounds: NonZeroUsize, python: &Path) -> Result<Vec<Row>, ExtractError> {
    let clip = noise();
    let peers = peers(python, &clip, rounds).unwrap_or_default();
    let kinds = [
        ("kaldi_fbank80_cmn", FrontEnd::CAMPPLUS, Some("kaldi-native-fbank"), peers.kaldi_native_fbank),
        ("librosa_mel40", FrontEnd::LibrosaMel40(LibrosaMel::default()), Some("librosa"), peers.librosa),
        ("waveform", FrontEnd::Waveform(Waveform::default()), None, None),
    ];
    kinds.into_iter().map(|(name, kind, peer, theirs)| row(name, kind, (&clip, rounds), (peer, theirs))).collect()
}

fn row(
    front_end: &'static str,
    kind: FrontEnd,
    (clip, rounds): (&Clip, NonZeroUsize),
    (peer, theirs): (Option<&'static str>, Option<f64>),
) -> Result<Row, ExtractError> {
    let (mut encoder, mut out) = (Encoder::new(kind), Vec::new());
    let mut times = Vec::with_capacity(rounds.get());
    for round in 0..rounds.get() + WARM_UP {
        out.clear();
        let started = ThreadTime::now();
        encoder.append(clip, &mut out)?;
        if round >= WARM_UP {
            times.push(started.elapsed().as_secs_f64() * 1_000.0);
        }
    }
    times.sort_by(f64::total_cmp);
    let cpu_ms = times.get(times.len() / 2).copied().unwrap_or(f64::NAN);
    let peer_cpu_ms = theirs.map(|seconds| seconds * 1_000.0);
    Ok(Row {
        front_end,
        cpu_ms,
        audio_s_per_cpu_s: f64::from(SECONDS) * 1_000.0 / cpu_ms,
        peer,
        peer_cpu_ms,
        times_faster: peer_cpu_ms.map(|peer| peer / cpu_ms),
    })
}

/// What the libraries take, or nothing when Python cannot be run.
fn peers(python: &Path, clip: &Clip, rounds: NonZeroUsize) -> Option<Peers> {
    let pcm = std::env::temp_dir().join(format!("rollcall-front-ends-{}.pcm", std::process::id()));
    let bytes: Vec<u8> = clip.pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let asked =
        |()| -> io::Result<_> { Command::new(python).args(["-c", PEERS]).arg(&pcm).arg(rounds.to_string()).output() };
    let printed = fs::write(&pcm, bytes).and_then(asked);
    if let Err(error) = fs::remove_file(&pcm) {
        tracing::debug!(%error, "the measurement's samples could not be removed");
    }
    serde_json::from_slice(&printed.ok()?.stdout).ok()
}

/// What is said does not matter.
fn noise() -> Clip {
    let mut state = 7_u32;
    let sample = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i16::try_from(state >> 18).unwrap_or(0) - 8_192
    };
    let sample_rate = NonZeroU32::new(RATE).expect("sixteen thousand is not zero");
    Clip { pcm: (0..SECONDS * RATE).map(sample).collect(), sample_rate }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_front_end_is_measured_also_without_a_python() {
        let rows = measure(NonZeroUsize::MIN, Path::new("/nowhere/python")).unwrap();
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|row| row.cpu_ms > 0.0 && row.peer_cpu_ms.is_none()), "{rows:?}");
    }
}
