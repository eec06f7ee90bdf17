//! Power spectra of several frames, side by side, as [`crate::bank`] sums them. How a frame is cut and shaped is the front
//! ends' own.
//!
//! Each frame has a transform of its own. Two frames in one complex transform would take half its time, a quarter of the
//! front end's, and let the rounding of a loud frame into a silent one beside it.

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
