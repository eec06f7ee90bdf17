//! Whole clips of any rate from 8 to 48 kHz to the model's rate, nearly always 16 kHz.
//!
//! A clip comes out with the filter's delay removed and with exactly `samples × target ÷ rate` samples, rounded down: no
//! sample lies past the end of the clip. Audio at the model's rate passes untouched. Streaming is not done here; a
//! voiceprint is always computed from a clip.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler as _, WindowFunction};

/// The lowest accepted rate: telephone audio. Below it speech loses what tells voices apart.
pub const RATE_MIN: u32 = 8_000;
/// The highest accepted rate: what recorders use. Above it there is nothing that the model could hear.
pub const RATE_MAX: u32 = 48_000;

/// Input samples in one block of the filter, at least. Longer blocks put its edge closer to half the lower rate: from
/// 2048 the pass band reaches above 7.5 kHz from every common rate.
const BLOCK_MIN: usize = 2_048;
/// Plans kept. Callers use one or two rates; the fifth replaces the oldest.
const PLANS_MAX: usize = 4;

/// Why a clip was not resampled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResampleError {
    /// The rate is outside what is supported.
    #[error("sample_rate is {rate} Hz and must lie from {RATE_MIN} to {RATE_MAX} Hz; record or convert to such a rate")]
    Rate {
        /// What was asked for.
        rate: u32,
    },
    /// The filter refused. It has no reason to, so this is a defect.
    #[error("the resampler failed: {0}")]
    Filter(String),
}

/// Samples that `samples` samples at `rate` become at `target`.
#[must_use]
pub fn length_of(samples: usize, rate: u32, target: u32) -> usize {
    let exact = samples as u128 * u128::from(target) / u128::from(rate.max(1));
    usize::try_from(exact).unwrap_or(usize::MAX)
}

/// Resamples clips, keeping the plans of the rates it has met.
pub struct Resampler {
    target: u32,
    plans: Vec<(u32, Fft<f32>)>,
}

impl Resampler {
    /// A resampler to `target` samples a second, from 8000 to 48000, that has met no rate yet.
    #[must_use]
    pub fn to(target: u32) -> Self {
        Self { target, plans: Vec::new() }
    }

    /// Brings `wave` from `rate` to the target. `out` is overwritten.
    ///
    /// # Errors
    /// When the rate lies outside 8 to 48 kHz.
    pub fn resample(&mut self, wave: &[f32], rate: u32, out: &mut Vec<f32>) -> Result<(), ResampleError> {
        if !(RATE_MIN..=RATE_MAX).contains(&rate) {
            return Err(ResampleError::Rate { rate });
        }
        if rate == self.target || wave.is_empty() {
            out.clear();
            out.extend_from_slice(wave);
            return Ok(());
        }
        let failed = |error: &dyn std::fmt::Display| ResampleError::Filter(error.to_string());
        let plan = self.plan(rate)?;
        // The previous clip's tail is still in the overlap.
        plan.reset();
        out.resize(plan.process_all_needed_output_len(wave.len()), 0.0);
        let input = InterleavedSlice::new(wave, 1, wave.len()).map_err(|error| failed(&error))?;
        let room = out.len();
        let mut output = InterleavedSlice::new_mut(out, 1, room).map_err(|error| failed(&error))?;
        plan.process_all_into_buffer(&input, &mut output, wave.len(), None).map_err(|error| failed(&error))?;
        out.truncate(length_of(wave.len(), rate, self.target));
        Ok(())
    }

    fn plan(&mut self, rate: u32) -> Result<&mut Fft<f32>, ResampleError> {
        if let Some(index) = self.plans.iter().position(|(known, _)| *known == rate) {
            let known = self.plans.remove(index);
            self.plans.push(known);
        } else {
            let plan = plan_for(rate as usize, self.target as usize)?;
            if self.plans.len() == PLANS_MAX {
                self.plans.remove(0);
            }
            self.plans.push((rate, plan));
        }
        let (_, plan) = self.plans.last_mut().expect("the plan was pushed just above");
        Ok(plan)
    }
}

/// A block must hold whole periods of both rates, and an even number of samples on both sides: the filter's centre lies
/// in the middle of the block, and half a sample of delay could not be cut off. Rates without a common divisor get blocks
/// of two seconds, which costs memory and nothing else.
fn plan_for(rate: usize, target: usize) -> Result<Fft<f32>, ResampleError> {
    let period = rate / common_divisor(rate, target);
    let block = period * BLOCK_MIN.div_ceil(period).next_multiple_of(2);
    Fft::new_custom(rate, target, block, 1, 1, WindowFunction::BlackmanHarris2, FixedSync::Both)
        .map_err(|error| ResampleError::Filter(error.to_string()))
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use crate::fbank::RATE;

    const RATES: [u32; 10] = [8_000, 11_025, 12_000, 22_050, 24_000, 32_000, 44_100, 48_000, 15_999, 47_999];

    #[expect(clippy::cast_possible_truncation, reason = "samples are single precision")]
    fn tone(hertz: f64, rate: u32, samples: usize) -> Vec<f32> {
        (0..samples).map(|n| (0.5 * (2.0 * PI * hertz * n as f64 / f64::from(rate)).sin()) as f32).collect()
    }

    fn resampled(wave: &[f32], rate: u32) -> Vec<f32> {
        let mut out = Vec::new();
        Resampler::to(RATE).resample(wave, rate, &mut out).unwrap();
        out
    }

    fn level(wave: &[f32]) -> f64 {
        (wave.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / wave.len() as f64).sqrt()
    }

    #[test]
    fn a_tone_keeps_its_pitch_its_level_and_its_moment() {
        for rate in RATES {
            for hertz in [300.0, 1_000.0, 3_000.0] {
                let out = resampled(&tone(hertz, rate, rate as usize * 2), rate);
                let expected = tone(hertz, RATE, RATE as usize * 2);
                // The first and last tenth of a second hold the step from and to silence.
                let middle = 1_600..out.len() - 1_600;
                let off: Vec<f32> = out[middle.clone()].iter().zip(&expected[middle]).map(|(a, b)| a - b).collect();
                assert!(level(&off) < 0.000_5, "{rate} Hz, tone {hertz} Hz: off by {}", level(&off));
                assert!((level(&out[1_600..30_000]) / level(&expected[1_600..30_000]) - 1.0).abs() < 0.01, "{rate}");
            }
        }
    }

    #[test]
    fn what_the_model_cannot_hear_is_suppressed_instead_of_folded_down() {
        for (rate, hertz) in [(48_000, 9_000.0), (48_000, 15_000.0), (44_100, 12_000.0), (22_050, 9_500.0)] {
            let out = resampled(&tone(hertz, rate, rate as usize), rate);
            let quiet = level(&out[1_600..14_000]);
            assert!(quiet < 0.000_5, "{hertz} Hz at {rate} Hz leaves {quiet}");
        }
    }

    #[test]
    fn the_length_is_exact_and_rounded_down() {
        for rate in RATES {
            for samples in [1, 2, 999, 4_000, 44_100, 100_001] {
                let out = resampled(&vec![0.25; samples], rate);
                assert_eq!(out.len(), samples * 16_000 / rate as usize, "{samples} samples at {rate} Hz");
            }
        }
        assert!(resampled(&[], 8_000).is_empty());
    }

    #[test]
    fn audio_at_sixteen_kilohertz_passes_untouched() {
        let wave = tone(777.0, RATE, 5_000);
        assert_eq!(resampled(&wave, RATE), wave);
    }

    #[test]
    fn another_target_is_reached_with_the_same_care() {
        for (target, rate) in [(8_000, 16_000), (8_000, 44_100), (24_000, 16_000), (48_000, 8_000)] {
            let mut out = Vec::new();
            Resampler::to(target).resample(&tone(1_000.0, rate, rate as usize), rate, &mut out).unwrap();
            let expected = tone(1_000.0, target, target as usize);
            assert_eq!(out.len(), expected.len());
            let middle = out.len() / 10..out.len() * 9 / 10;
            let off: Vec<f32> = out[middle.clone()].iter().zip(&expected[middle]).map(|(a, b)| a - b).collect();
            assert!(level(&off) < 0.000_5, "{rate} to {target} Hz: off by {}", level(&off));
        }
    }

    #[test]
    fn a_rate_outside_the_range_is_refused_by_name() {
        for rate in [0, 7_999, 48_001, u32::MAX] {
            let refused = Resampler::to(RATE).resample(&[0.0; 100], rate, &mut Vec::new());
            assert_eq!(refused, Err(ResampleError::Rate { rate }));
        }
    }

    #[test]
    fn a_clip_does_not_hear_the_one_before_it_nor_a_replaced_plan() {
        let mut resampler = Resampler::to(RATE);
        let wave = tone(500.0, 8_000, 8_000);
        let (mut first, mut out) = (Vec::new(), Vec::new());
        resampler.resample(&wave, 8_000, &mut first).unwrap();
        for rate in RATES {
            resampler.resample(&vec![1.0; 20_000], rate, &mut out).unwrap();
        }
        resampler.resample(&[0.7; 9_001], 8_000, &mut out).unwrap();
        resampler.resample(&wave, 8_000, &mut out).unwrap();
        assert_eq!(first, out);
        assert!(resampler.plans.len() <= PLANS_MAX);
    }
}
