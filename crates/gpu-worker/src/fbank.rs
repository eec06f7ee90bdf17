//! Kaldi log-mel features: 16 kHz audio in -1..1 to rows of 80 values, as the CAM++ models were trained on.
//!
//! Exact, not approximate: a filterbank with other edges moves a voiceprint by a cosine distance of 0.10. Per frame of
//! 400 samples, every 160: subtract the frame's mean, pre-emphasise by 0.97, apply the Povey window, pad to 512, take
//! the power spectrum, sum it by 80 triangles on the Kaldi mel scale from 20 to 8000 Hz, take the natural logarithm
//! above a floor. Frames that would reach past the end are left out. Samples stay in -1..1, because the floor is
//! absolute. Changing the sample rate is [`crate::resample`]'s work. All buffers are kept between clips.

use std::f64::consts::PI;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

/// Samples per second that the features are defined for.
pub const RATE: u32 = 16_000;
/// Values in one row of features.
pub const BINS: usize = 80;
/// Samples in one frame: 25 ms.
pub const FRAME: usize = 400;
/// Samples from one frame to the next: 10 ms.
pub const HOP: usize = 160;

/// The transform's length: the next power of two above a frame.
const POINTS: usize = 512;
/// The bin at the Nyquist frequency belongs to no triangle.
const BINS_USED: usize = POINTS / 2;
const PREEMPHASIS: f32 = 0.97;
const LOWEST_HZ: f64 = 20.0;
const HIGHEST_HZ: f64 = 8_000.0;
/// Sums are kept in this many lanes, so that the compiler may use vector registers without reordering a float sum.
const LANES: usize = 8;

/// Rows of features that `samples` samples give.
#[must_use]
pub const fn frames_of(samples: usize) -> usize {
    if samples < FRAME { 0 } else { 1 + (samples - FRAME) / HOP }
}

/// Subtracts from each of the 80 columns its mean over the clip.
pub fn subtract_mean(features: &mut [f32]) {
    let rows = features.len() / BINS;
    if rows == 0 {
        return;
    }
    let mut sums = [0.0_f64; BINS];
    for row in features.chunks_exact(BINS) {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let means = sums.map(|sum| narrow(sum / rows as f64));
    for row in features.chunks_exact_mut(BINS) {
        row.iter_mut().zip(means).for_each(|(value, mean)| *value -= mean);
    }
}

/// The transform's plan, tables and buffers.
pub struct Fbank {
    plan: Arc<dyn RealToComplex<f32>>,
    window: [f32; FRAME],
    triangles: Vec<Triangle>,
    frame: [f32; POINTS],
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    power: [f32; BINS_USED],
}

/// One mel band: weights from the spectrum's bin `first` on.
struct Triangle {
    first: usize,
    weights: Vec<f32>,
}

impl Default for Fbank {
    fn default() -> Self {
        Self::new()
    }
}

impl Fbank {
    /// Plans the transform and computes the tables.
    #[must_use]
    pub fn new() -> Self {
        let plan = RealFftPlanner::<f32>::new().plan_fft_forward(POINTS);
        Self {
            window: povey(),
            triangles: triangles(),
            frame: [0.0; POINTS],
            spectrum: plan.make_output_vec(),
            scratch: plan.make_scratch_vec(),
            power: [0.0; BINS_USED],
            plan,
        }
    }

    /// Log-mel features of `wave`, row by row, before the mean is subtracted. `out` is overwritten, and empty when the
    /// wave is shorter than one frame.
    pub fn log_mel(&mut self, wave: &[f32], out: &mut Vec<f32>) {
        out.resize(frames_of(wave.len()) * BINS, 0.0);
        for (samples, row) in wave.windows(FRAME).step_by(HOP).zip(out.chunks_exact_mut(BINS)) {
            self.shape_frame(samples);
            self.take_power();
            self.sum_bands(row);
        }
    }

    /// Mean, pre-emphasis and window. The tail of the buffer is the padding, which the transform may have overwritten.
    fn shape_frame(&mut self, samples: &[f32]) {
        let mean = sum(samples) / FRAME as f32;
        let Some((first, _)) = samples.split_first() else { return };
        let before = std::iter::once(first).chain(samples);
        let (shaped, padding) = self.frame.split_at_mut(FRAME);
        for (((out, now), last), weight) in shaped.iter_mut().zip(samples).zip(before).zip(&self.window) {
            *out = ((now - mean) - PREEMPHASIS * (last - mean)) * weight;
        }
        padding.fill(0.0);
    }

    fn take_power(&mut self) {
        self.plan
            .process_with_scratch(&mut self.frame, &mut self.spectrum, &mut self.scratch)
            .expect("the buffers were made by the plan, so their sizes fit");
        for (power, bin) in self.power.iter_mut().zip(&self.spectrum) {
            *power = bin.re * bin.re + bin.im * bin.im;
        }
    }

    fn sum_bands(&self, row: &mut [f32]) {
        for (value, triangle) in row.iter_mut().zip(&self.triangles) {
            let power = self.power.iter().skip(triangle.first);
            let energy: f32 = power.zip(&triangle.weights).map(|(power, weight)| power * weight).sum();
            // The floor is the smallest step of a float above one, as in Kaldi.
            *value = energy.max(f32::EPSILON).ln();
        }
    }
}

fn sum(samples: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let blocks = samples.chunks_exact(LANES);
    let rest: f32 = blocks.remainder().iter().sum();
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().sum::<f32>() + rest
}

fn povey() -> [f32; FRAME] {
    std::array::from_fn(|index| {
        let hann = 0.5 - 0.5 * (2.0 * PI * index as f64 / (FRAME - 1) as f64).cos();
        narrow(hann.powf(0.85))
    })
}

fn mel(hertz: f64) -> f64 {
    1127.0 * (1.0 + hertz / 700.0).ln()
}

/// Triangles that are linear on the mel scale, with a height of one and no normalisation of their area.
fn triangles() -> Vec<Triangle> {
    let lowest = mel(LOWEST_HZ);
    let step = (mel(HIGHEST_HZ) - lowest) / (BINS + 1) as f64;
    (0..BINS)
        .map(|band| {
            let left = lowest + band as f64 * step;
            let weight = |bin: usize| {
                let at = (mel(bin as f64 * f64::from(RATE) / POINTS as f64) - left) / step;
                at.min(2.0 - at).max(0.0)
            };
            let first = (0..BINS_USED).find(|bin| weight(*bin) > 0.0).unwrap_or(BINS_USED);
            let weights = (first..BINS_USED).map(weight).take_while(|weight| *weight > 0.0).map(narrow).collect();
            Triangle { first, weights }
        })
        .collect()
}

#[expect(clippy::cast_possible_truncation, reason = "the features are defined in single precision")]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(wave: &[f32]) -> Vec<f32> {
        let mut out = Vec::new();
        Fbank::new().log_mel(wave, &mut out);
        out
    }

    #[test]
    fn only_whole_frames_count() {
        assert_eq!([0, 399, 400, 559, 560, 16_000].map(frames_of), [0, 0, 1, 1, 2, 98]);
        for samples in [0, 399, 400, 560, 16_000] {
            assert_eq!(features(&vec![0.1; samples]).len(), frames_of(samples) * BINS);
        }
    }

    #[test]
    fn silence_lies_on_the_floor_and_vanishes_with_its_mean() {
        let mut silence = features(&[0.0; 4_000]);
        assert!(silence.iter().all(|value| *value == f32::EPSILON.ln()));
        subtract_mean(&mut silence);
        assert!(silence.iter().all(|value| value.abs() < 1e-5));
    }

    #[test]
    fn a_tone_is_loudest_in_the_band_around_it() {
        for hertz in [100.0, 440.0, 1_000.0, 3_000.0, 7_000.0] {
            let wave: Vec<f32> =
                (0..8_000).map(|n| narrow((2.0 * PI * hertz * f64::from(n) / f64::from(RATE)).sin() * 0.5)).collect();
            let step = (mel(HIGHEST_HZ) - mel(LOWEST_HZ)) / (BINS + 1) as f64;
            for row in features(&wave).chunks_exact(BINS) {
                let loudest = (0..BINS).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
                let centre = mel(LOWEST_HZ) + (loudest + 1) as f64 * step;
                // Low bands are narrower than the transform's own resolution of 31 Hz.
                assert!((centre - mel(hertz)).abs() < step.max(mel(hertz + 31.25) - mel(hertz)), "{hertz} Hz");
            }
        }
    }

    #[test]
    fn a_second_clip_is_not_coloured_by_the_first() {
        let noise: Vec<f32> = (0..4_000).map(|n: u32| narrow(f64::from(n * 7_919 % 1_000) / 1_000.0 - 0.5)).collect();
        let mut fbank = Fbank::new();
        let (mut once, mut again) = (Vec::new(), Vec::new());
        fbank.log_mel(&noise, &mut once);
        fbank.log_mel(&[0.9; 9_000], &mut again);
        fbank.log_mel(&noise, &mut again);
        assert_eq!(once, again);
    }

    #[test]
    fn every_band_has_weight() {
        assert!(triangles().iter().all(|triangle| !triangle.weights.is_empty()));
    }
}
