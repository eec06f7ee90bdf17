//! Kaldi log-mel features: 16 kHz audio in -1..1 to rows of 80 values, as CAM++, ERes2Net and WeSpeaker were trained on.
//!
//! Exact, not approximate: a filterbank with other edges moves a voiceprint by a cosine distance of 0.10. Per frame of
//! 400 samples, every 160: subtract the frame's mean, pre-emphasise by 0.97, apply the window, pad to 512, take the power
//! spectrum, sum it by 80 triangles on the Kaldi mel scale from 20 to 8000 Hz, take the natural logarithm above a floor.
//! Frames that would reach past the end are left out. Window and full scale are the model's; the scale matters because
//! the floor is absolute. Changing the sample rate is [`crate::resample`]'s work. All buffers are kept between clips.

use std::f64::consts::PI;

use crate::bank::{Bank, Side, TOGETHER};
use crate::front_end::{KaldiFbank, Window};
use crate::narrow::narrow;
use crate::spectrum::Spectra;

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

/// Tables and buffers.
pub struct Fbank {
    spectra: Spectra,
    window: [f32; FRAME],
    bank: Bank,
    energies: [Side; BINS],
}

impl Default for Fbank {
    fn default() -> Self {
        Self::new(KaldiFbank::default())
    }
}

impl Fbank {
    /// Plans the transform and computes the tables.
    #[must_use]
    pub fn new(kind: KaldiFbank) -> Self {
        Self {
            spectra: Spectra::new(POINTS, BINS_USED),
            window: window(kind),
            bank: Bank::new(BINS, BINS_USED, weight),
            energies: [[0.0; TOGETHER]; BINS],
        }
    }

    /// Log-mel features of `wave`, row by row, before the mean is subtracted. `out` is overwritten, and empty when the
    /// wave is shorter than one frame.
    pub fn log_mel(&mut self, wave: &[f32], out: &mut Vec<f32>) {
        out.resize(frames_of(wave.len()) * BINS, 0.0);
        let mut frames = wave.windows(FRAME).step_by(HOP);
        for rows in out.chunks_mut(TOGETHER * BINS) {
            for (at, samples) in frames.by_ref().take(TOGETHER).enumerate() {
                self.spectra.take(at, |frame| shape(frame, samples, &self.window));
            }
            self.bank.sum(self.spectra.power(), &mut self.energies);
            self.energies.iter_mut().for_each(logarithms);
            for (at, row) in rows.chunks_exact_mut(BINS).enumerate() {
                for (value, side) in row.iter_mut().zip(&self.energies) {
                    *value = side.get(at).copied().unwrap_or_default();
                }
            }
        }
    }
}

/// Mean, pre-emphasis and window. The rest of the frame is the padding, which a transform may have overwritten.
fn shape(frame: &mut [f32], samples: &[f32], window: &[f32; FRAME]) {
    let mean = sum(samples) / FRAME as f32;
    let (shaped, padding) = frame.split_at_mut(FRAME);
    let step = |now: f32, before: f32, weight: f32| ((now - mean) - PREEMPHASIS * (before - mean)) * weight;
    for (((out, now), before), weight) in
        shaped.iter_mut().skip(1).zip(samples.iter().skip(1)).zip(samples).zip(window.iter().skip(1))
    {
        *out = step(*now, *before, *weight);
    }
    // Before its first sample a frame holds that sample once more.
    if let (Some(out), Some(first), Some(weight)) = (shaped.first_mut(), samples.first(), window.first()) {
        *out = step(*first, *first, *weight);
    }
    padding.fill(0.0);
}

/// Natural logarithms above the floor, which is the smallest step of a float above one, as in Kaldi.
fn logarithms(values: &mut Side) {
    values.iter_mut().for_each(|value| *value = ln(value.max(f32::EPSILON)));
}

/// The natural logarithm of a normal positive float, to its last bit or two. The library's own goes through one value at
/// a time and took a third of the front end; this one is a handful of operations that the compiler runs side by side.
fn ln(value: f32) -> f32 {
    /// The square root of a half: mantissas lie around one.
    const LOWEST: u32 = 0x3f35_04f3;
    let bits = value.to_bits();
    let exponent = bits.wrapping_sub(LOWEST).cast_signed() >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub(exponent.cast_unsigned() << 23));
    let over = mantissa - 1.0;
    // ln(1 + f) = 2 artanh(f / (2 + f)), whose series ends soon because the quotient is below 0.172.
    let quotient = over / (2.0 + over);
    let square = quotient * quotient;
    let series = 2.0 / 3.0 + square * (2.0 / 5.0 + square * (2.0 / 7.0 + square * (2.0 / 9.0)));
    exponent as f32 * std::f32::consts::LN_2 + (2.0 * quotient + quotient * square * series)
}

/// A float sum in a fixed order, in as many lanes as the compiler may keep in vector registers.
fn sum(samples: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let blocks = samples.chunks_exact(LANES);
    let rest: f32 = blocks.remainder().iter().sum();
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().sum::<f32>() + rest
}

/// The window, with full scale in it: everything up to the spectrum is linear.
fn window(kind: KaldiFbank) -> [f32; FRAME] {
    std::array::from_fn(|index| {
        let cosine = (2.0 * PI * index as f64 / (FRAME - 1) as f64).cos();
        let weight = match kind.window {
            Window::Povey => (0.5 - 0.5 * cosine).powf(0.85),
            Window::Hamming => 0.54 - 0.46 * cosine,
        };
        narrow(weight * f64::from(kind.scale.full()))
    })
}

fn mel(hertz: f64) -> f64 {
    1127.0 * (1.0 + hertz / 700.0).ln()
}

/// Triangles that are linear on the mel scale, with a height of one and no normalisation of their area.
fn weight(band: usize, bin: usize) -> f64 {
    let lowest = mel(LOWEST_HZ);
    let step = (mel(HIGHEST_HZ) - lowest) / (BINS + 1) as f64;
    let left = lowest + band as f64 * step;
    let at = (mel(bin as f64 * f64::from(RATE) / POINTS as f64) - left) / step;
    at.min(2.0 - at).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front_end::Scale;

    fn features(wave: &[f32]) -> Vec<f32> {
        let mut out = Vec::new();
        Fbank::default().log_mel(wave, &mut out);
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
        let mut fbank = Fbank::default();
        let (mut once, mut again) = (Vec::new(), Vec::new());
        fbank.log_mel(&noise, &mut once);
        fbank.log_mel(&[0.9; 9_000], &mut again);
        fbank.log_mel(&noise, &mut again);
        assert_eq!(once, again);
    }

    #[test]
    fn every_band_has_weight() {
        assert!((0..BINS).all(|band| (0..BINS_USED).any(|bin| weight(band, bin) > 0.0)));
    }

    #[test]
    fn the_logarithm_is_that_of_the_library() {
        let mut value = f32::EPSILON;
        while value < 1e12 {
            let expected = value.ln();
            assert!((ln(value) - expected).abs() <= 2e-7 * expected.abs().max(1.0), "{value}");
            value *= 1.000_7;
        }
        assert_eq!((ln(1.0), ln(f32::EPSILON)), (0.0, f32::EPSILON.ln()));
    }

    #[test]
    fn int16_samples_lie_higher_by_the_logarithm_of_their_range() {
        let noise: Vec<f32> = (0..4_000).map(|n: u32| narrow(f64::from(n * 7_919 % 1_000) / 1_000.0 - 0.5)).collect();
        let mut wide = Vec::new();
        Fbank::new(KaldiFbank { scale: Scale::Int16, ..KaldiFbank::default() }).log_mel(&noise, &mut wide);
        for (wide, unit) in wide.iter().zip(features(&noise)) {
            assert!((wide - unit - 2.0 * 32_768.0_f32.ln()).abs() < 1e-4, "{wide} and {unit}");
        }
    }
}
