//! Mel bands as librosa computes them, and the parts that GE2E models average: 16 kHz audio to parts of 160 rows of 40.
//!
//! A quiet clip is raised first, by what is missing to the model's loudness. Frames of 400 samples lie around every 160th
//! sample, with silence before the first and after the last; each gets a periodic Hann window and a power spectrum, which
//! is summed by 40 triangles on the Slaney mel scale from 0 to 8000 Hz, each of area one. There is neither a logarithm nor
//! a mean. A part has 160 rows, 1.6 s; the next begins `step_frames` later. The last part is filled up with silence, and
//! left out when less than three quarters of it are audio, unless it is the only one. Silent stretches are not cut out:
//! what reaches the model is speech already.

use std::f64::consts::PI;

use crate::bank::{Bank, Side, TOGETHER};
use crate::fbank::RATE;
use crate::front_end::LibrosaMel;
use crate::narrow::narrow;
use crate::spectrum::Spectra;

/// Values in one row.
pub const BANDS: usize = 40;
/// Rows in one part.
pub const PART_FRAMES: usize = 160;

const FRAME: usize = 400;
const HOP: usize = 160;
const BINS_USED: usize = FRAME / 2 + 1;
/// A last part with a smaller share of audio than this is left out.
const COVERAGE_MIN: f64 = 0.75;

/// Tables and buffers.
pub struct Mel {
    kind: LibrosaMel,
    spectra: Spectra,
    window: [f32; FRAME],
    bank: Bank,
    energies: [Side; BANDS],
    padded: Vec<f32>,
    rows: Vec<f32>,
}

impl Mel {
    /// Plans the transform and computes the tables.
    #[must_use]
    pub fn new(kind: LibrosaMel) -> Self {
        let edges = edges();
        Self {
            kind,
            spectra: Spectra::new(FRAME, BINS_USED),
            window: std::array::from_fn(|index| narrow(0.5 - 0.5 * (2.0 * PI * index as f64 / FRAME as f64).cos())),
            bank: Bank::new(BANDS, BINS_USED, |band, bin| weight(&edges, band, bin)),
            energies: [[0.0; TOGETHER]; BANDS],
            padded: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Appends the parts of `wave`, whose samples lie from -1 to 1, and returns their number.
    pub fn append_parts(&mut self, wave: &[f32], out: &mut Vec<f32>) -> usize {
        let parts = parts_of(wave.len(), self.kind.step_frames);
        let rows = (parts - 1) * self.kind.step_frames + PART_FRAMES;
        let mut all = std::mem::take(&mut self.rows);
        self.mel(wave, rows, &mut all);
        for part in all.windows(PART_FRAMES * BANDS).step_by(self.kind.step_frames * BANDS) {
            out.extend_from_slice(part);
        }
        self.rows = all;
        parts
    }

    /// The first `rows` rows of the mel bands of `wave`, made as loud as the model wants it, with silence after its end.
    /// `out` is overwritten.
    pub fn mel(&mut self, wave: &[f32], rows: usize, out: &mut Vec<f32>) {
        let gain = gain(wave, f64::from(self.kind.loudness_min_db));
        // The first frame reaches half its length before the first sample.
        self.padded.clear();
        self.padded.resize(FRAME / 2, 0.0);
        self.padded.extend(wave.iter().map(|sample| sample * gain));
        self.padded.resize(rows.saturating_sub(1) * HOP + FRAME, 0.0);
        out.resize(rows * BANDS, 0.0);
        let mut frames = self.padded.windows(FRAME).step_by(HOP);
        for block in out.chunks_mut(TOGETHER * BANDS) {
            for (at, samples) in frames.by_ref().take(TOGETHER).enumerate() {
                self.spectra.take(at, |frame| shape(frame, samples, &self.window));
            }
            self.bank.sum(self.spectra.power(), &mut self.energies);
            for (at, row) in block.chunks_exact_mut(BANDS).enumerate() {
                for (value, side) in row.iter_mut().zip(&self.energies) {
                    *value = side.get(at).copied().unwrap_or_default();
                }
            }
        }
    }
}

fn shape(frame: &mut [f32], samples: &[f32], window: &[f32; FRAME]) {
    for ((out, sample), weight) in frame.iter_mut().zip(samples).zip(window) {
        *out = sample * weight;
    }
}

/// By how much a clip is raised to reach `loudness_min_db`; never below one. Silence is raised to nothing.
fn gain(wave: &[f32], loudness_min_db: f64) -> f32 {
    let power = wave.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / wave.len().max(1) as f64;
    if power == 0.0 {
        return 1.0;
    }
    narrow(10.0_f64.powf((loudness_min_db - 10.0 * power.log10()) / 20.0).max(1.0))
}

/// How many parts a clip of so many samples has; at least one.
fn parts_of(samples: usize, step: usize) -> usize {
    let frames = (samples + 1).div_ceil(HOP);
    let starts = (frames + step + 1).saturating_sub(PART_FRAMES).max(1).div_ceil(step);
    let last = (starts - 1) * step * HOP;
    let covered = samples.saturating_sub(last) as f64 / (PART_FRAMES * HOP) as f64;
    if covered < COVERAGE_MIN && starts > 1 { starts - 1 } else { starts }
}

/// Hertz at the edges of the bands: evenly spaced on the Slaney scale, which is linear to 1000 Hz and logarithmic above.
fn edges() -> [f64; BANDS + 2] {
    const HERTZ_PER_MEL: f64 = 200.0 / 3.0;
    const LINEAR_TO: f64 = 15.0;
    // From 1000 Hz to 6400 Hz there are 27 mels.
    let growth = 6.4_f64.ln() / 27.0;
    let highest = LINEAR_TO + (f64::from(RATE) / 2.0 / 1_000.0).ln() / growth;
    std::array::from_fn(|index| {
        let mel = highest * index as f64 / (BANDS + 1) as f64;
        if mel < LINEAR_TO { mel * HERTZ_PER_MEL } else { 1_000.0 * (growth * (mel - LINEAR_TO)).exp() }
    })
}

fn weight(edges: &[f64; BANDS + 2], band: usize, bin: usize) -> f64 {
    let Some([left, centre, right]) = edges.get(band..).and_then(<[f64]>::first_chunk) else { return 0.0 };
    let hertz = bin as f64 * f64::from(RATE) / FRAME as f64;
    let height = ((hertz - left) / (centre - left)).min((right - hertz) / (right - centre));
    height.max(0.0) * 2.0 / (right - left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_begin_every_seventy_seven_frames_and_the_last_is_well_filled() {
        // The numbers are those of Resemblyzer's own cutting.
        for (samples, parts) in
            [(8_000, 1), (25_599, 1), (25_600, 1), (31_519, 1), (31_520, 2), (80_000, 5), (160_000, 12)]
        {
            assert_eq!(parts_of(samples, 77), parts, "{samples} samples");
        }
    }

    #[test]
    fn a_short_clip_fills_one_part_with_silence_behind_it() {
        let mut out = Vec::new();
        assert_eq!(Mel::new(LibrosaMel::default()).append_parts(&[0.1; 8_000], &mut out), 1);
        assert_eq!(out.len(), PART_FRAMES * BANDS);
        let (speech, silence) = out.split_at(52 * BANDS);
        assert!(speech.iter().any(|value| *value > 0.0) && silence.iter().all(|value| *value == 0.0));
    }

    #[test]
    fn a_quiet_clip_is_raised_and_a_loud_one_is_left_alone() {
        let tone = |level: f32| -> Vec<f32> { (0..16_000).map(|n| if n % 40 < 20 { level } else { -level }).collect() };
        for level in [1e-4, 0.01, 0.031] {
            let gain = gain(&tone(level), -30.0);
            assert!((f64::from(level * gain) - 10.0_f64.powf(-1.5)).abs() < 1e-6, "{level}: {gain}");
        }
        assert_eq!((gain(&tone(0.032), -30.0), gain(&tone(0.9), -30.0), gain(&[0.0; 100], -30.0)), (1.0, 1.0, 1.0));
    }

    #[test]
    fn a_tone_is_loudest_in_the_band_around_it() {
        let edges = edges();
        let mut mel = Mel::new(LibrosaMel::default());
        for hertz in [300.0, 950.0, 2_000.0, 6_000.0] {
            let wave: Vec<f32> =
                (0..8_000).map(|n| narrow((2.0 * PI * hertz * f64::from(n) / f64::from(RATE)).sin() * 0.5)).collect();
            let mut rows = Vec::new();
            mel.mel(&wave, 50, &mut rows);
            let row = &rows[20 * BANDS..21 * BANDS];
            let loudest = (0..BANDS).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
            assert!(
                (edges[loudest] - 40.0..edges[loudest + 2] + 40.0).contains(&hertz),
                "{hertz} Hz in band {loudest}"
            );
        }
    }

    #[test]
    fn a_second_clip_is_not_coloured_by_the_first() {
        let mut mel = Mel::new(LibrosaMel::default());
        let noise: Vec<f32> = (0..40_000).map(|n: u32| narrow(f64::from(n * 7_919 % 1_000) / 1_000.0 - 0.5)).collect();
        let (mut once, mut again) = (Vec::new(), Vec::new());
        mel.append_parts(&noise, &mut once);
        mel.append_parts(&[0.9; 90_000], &mut Vec::new());
        mel.append_parts(&noise, &mut again);
        assert_eq!(once, again);
    }
}
