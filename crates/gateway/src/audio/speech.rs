//! How much of a clip is speech, and how good it is: an energy gate, no model.
//!
//! A frame of 20 ms counts as speech when it is loud *for this clip*: within 30 dB of the clip's loud part and, where
//! there are pauses to measure, at least 6 dB above them. What lies between two such frames within 0.2 s is a weak
//! consonant or a breath within a word, and counts as well. It cannot tell speech from music; the model's cohesion with
//! earlier samples does that. It decides nothing: enrolment holds the numbers against its limits.

use super::Audio;

/// Frames a second.
const FRAMES_PER_SECOND: u32 = 50;

/// Speech moves within about 30 dB; below it are breath and room.
const SPEECH_RANGE_DB: f64 = 30.0;

/// A frame this much above the pauses is not the pauses' own noise.
const ABOVE_NOISE_DB: f64 = 6.0;

/// A clip without pauses has no noise floor to measure, so the floor never lifts the gate nearer to the loud part than
/// this.
const GATE_HEADROOM_DB: f64 = 12.0;

/// Below this nothing is speech, however loud for its clip: 16 bits of dither lie around -90.
const SILENCE_DB: f64 = -60.0;

/// The pauses' level is the 10th percentile of the frames, the loud part's the 95th: single clicks do not move them.
const FLOOR_PERCENT: usize = 10;
const LOUD_PERCENT: usize = 95;

/// The longest quiet stretch within running speech: 0.2 s. A longer one is a pause.
const BRIDGED_FRAMES: usize = 10;

/// What was measured on a clip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speech {
    /// Seconds of speech.
    pub seconds: f64,
    /// Share of the clip that is speech, 0 to 1.
    pub share: f64,
    /// Share of samples at full scale, 0 to 1.
    pub clipped: f64,
    /// From 0 (speech barely above its noise, or clipped) to 1 (30 dB above it).
    pub quality: f64,
}

impl Speech {
    /// Measures a clip.
    #[must_use]
    pub fn of(audio: &Audio) -> Self {
        let levels = levels(audio);
        let mut sorted = levels.clone();
        sorted.sort_by(f64::total_cmp);
        let (floor, loud) = (percentile(&sorted, FLOOR_PERCENT), percentile(&sorted, LOUD_PERCENT));
        let gate = (loud - SPEECH_RANGE_DB).max((floor + ABOVE_NOISE_DB).min(loud - GATE_HEADROOM_DB)).max(SILENCE_DB);
        let share = ratio(speaking_frames(&levels, gate), levels.len());
        let clipped = clipped(&audio.pcm);
        Self { seconds: share * audio.seconds(), share, clipped, quality: quality(loud - floor, clipped) }
    }
}

/// The level of each frame, in decibels below full scale. A rest shorter than a frame counts as one.
fn levels(audio: &Audio) -> Vec<f64> {
    let frame = usize::try_from(audio.sample_rate.get() / FRAMES_PER_SECOND).map_or(1, |frame| frame.max(1));
    audio.pcm.chunks(frame).map(level).collect()
}

fn level(frame: &[i16]) -> f64 {
    let energy: f64 = frame.iter().map(|sample| (f64::from(*sample) / 32_768.0).powi(2)).sum();
    // A frame has at most a few thousand samples. The floor keeps the logarithm of silence finite.
    10.0 * (energy / frame.len() as f64).max(1e-12).log10()
}

/// Frames at or above the gate, and the short stretches between them.
fn speaking_frames(levels: &[f64], gate: f64) -> usize {
    let (mut speaking, mut quiet) = (0, None);
    for level in levels {
        if *level < gate {
            quiet = quiet.map(|frames| frames + 1);
            continue;
        }
        speaking += 1 + quiet.filter(|frames| *frames <= BRIDGED_FRAMES).unwrap_or(0);
        quiet = Some(0);
    }
    speaking
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or(SILENCE_DB)
}

fn clipped(pcm: &[i16]) -> f64 {
    ratio(pcm.iter().filter(|sample| sample.unsigned_abs() >= i16::MAX.unsigned_abs()).count(), pcm.len())
}

/// The distance between loud part and pauses, 30 dB being as good as it gets, lessened by clipping. A clip without
/// pauses cannot show that it is clean, and scores low.
fn quality(dynamics_db: f64, clipped: f64) -> f64 {
    let clean = (dynamics_db / SPEECH_RANGE_DB).clamp(0.0, 1.0);
    clean * (1.0 - (clipped * 20.0).min(1.0))
}

fn ratio(part: usize, whole: usize) -> f64 {
    // Both are counts of samples or frames of one clip, far below 2^53.
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
