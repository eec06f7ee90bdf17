//! Power spectra of several frames, side by side, as [`crate::bank`] sums them. How a frame is cut and shaped is the front
//! ends' own.
//!
//! Each frame has a transform of its own: two in one complex transform would let the rounding of a loud frame into a silent
//! one beside it. A complex transform of half the length, untangled for all frames at once, was measured too: a twentieth
//! faster, and not worth its arithmetic.

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

use crate::bank::{Side, TOGETHER};

/// A transform's plan and its buffers.
pub(crate) struct Spectra {
    plan: Arc<dyn RealToComplex<f32>>,
    frame: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    power: Vec<Side>,
}

impl Spectra {
    /// Plans a transform of `points` points, of whose bins the lowest `bins` are wanted.
    pub(crate) fn new(points: usize, bins: usize) -> Self {
        let plan = RealFftPlanner::<f32>::new().plan_fft_forward(points);
        Self {
            frame: plan.make_input_vec(),
            spectrum: plan.make_output_vec(),
            scratch: plan.make_scratch_vec(),
            power: vec![[0.0; TOGETHER]; bins],
            plan,
        }
    }

    /// Takes the power spectrum of the frame that `shape` writes as frame `at` of those that lie side by side. The buffer
    /// that `shape` gets holds the remains of an earlier transform.
    pub(crate) fn take(&mut self, at: usize, shape: impl FnOnce(&mut [f32])) {
        shape(&mut self.frame);
        self.plan
            .process_with_scratch(&mut self.frame, &mut self.spectrum, &mut self.scratch)
            .expect("the buffers were made by the plan, so their sizes fit");
        for (powers, bin) in self.power.iter_mut().zip(&self.spectrum) {
            if let Some(power) = powers.get_mut(at) {
                *power = bin.re * bin.re + bin.im * bin.im;
            }
        }
    }

    /// The spectra taken last, a row for each bin.
    pub(crate) fn power(&self) -> &[Side] {
        &self.power
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use crate::narrow::narrow;

    fn noise(seed: usize, count: usize) -> Vec<f32> {
        (0..count).map(|n| narrow(((n + seed) * 7_919 % 1_009) as f64 / 1_009.0 - 0.5)).collect()
    }

    /// The definition, in double precision.
    fn expected(frame: &[f32], bin: usize) -> f64 {
        let (mut re, mut im) = (0.0, 0.0);
        for (n, sample) in frame.iter().enumerate() {
            let turn = 2.0 * PI * (bin * n % frame.len()) as f64 / frame.len() as f64;
            re += f64::from(*sample) * turn.cos();
            im += f64::from(*sample) * turn.sin();
        }
        re * re + im * im
    }

    #[test]
    fn the_power_of_every_bin_is_that_of_the_definition() {
        for points in [400, 512, 6] {
            let frames: Vec<Vec<f32>> = (0..TOGETHER).map(|seed| noise(seed * 31, points)).collect();
            let mut spectra = Spectra::new(points, points / 2 + 1);
            for (at, samples) in frames.iter().enumerate() {
                spectra.take(at, |frame| frame.copy_from_slice(samples));
            }
            let power = spectra.power();
            assert_eq!(power.len(), points / 2 + 1);
            for (bin, side) in power.iter().enumerate() {
                for (frame, found) in frames.iter().zip(side) {
                    let expected = expected(frame, bin);
                    assert!((f64::from(*found) - expected).abs() < 1e-4 * expected.max(1.0), "{points}: bin {bin}");
                }
            }
        }
    }

    #[test]
    fn a_silent_frame_beside_loud_ones_is_exactly_silent() {
        let mut spectra = Spectra::new(512, 257);
        for at in 0..TOGETHER {
            spectra.take(at, |frame| frame.fill(0.0));
            if at != 3 {
                spectra.take(at, |frame| frame.copy_from_slice(&noise(at, 512)));
            }
        }
        assert!(spectra.power().iter().all(|side| side[3] == 0.0 && side[2] > 0.0));
    }
}
