//! Bands of a spectrum: for each band a run of weights, and the sums of powers under them, for several frames at once.
//!
//! Frames lie side by side ([`Side`]: a value for each of [`TOGETHER`] frames), so that one weight meets as many powers as
//! a vector register holds and no float sum has to be reordered. Which weights a filterbank has is decided by
//! [`crate::fbank`] and [`crate::mel`].

use crate::narrow::narrow;

/// Frames that are summed together: one register of the widest common kind, or two of the usual one.
pub(crate) const TOGETHER: usize = 8;

/// One value for each of several frames.
pub(crate) type Side = [f32; TOGETHER];

/// The weights of all bands.
pub(crate) struct Bank {
    bands: Vec<Band>,
}

/// One band: weights from the spectrum's bin `first` on.
struct Band {
    first: usize,
    weights: Vec<f32>,
}

impl Bank {
    /// Bands whose weight at a bin `weight(band, bin)` gives, zero wherever the band has no part of the bin.
    pub(crate) fn new(bands: usize, bins: usize, weight: impl Fn(usize, usize) -> f64) -> Self {
        let band = |band| {
            let first = (0..bins).find(|bin| weight(band, *bin) > 0.0).unwrap_or(bins);
            let weights = (first..bins).map(|bin| weight(band, bin)).take_while(|weight| *weight > 0.0);
            Band { first, weights: weights.map(narrow).collect() }
        };
        Self { bands: (0..bands).map(band).collect() }
    }

    /// The energies of all bands, `out` being one row for each band.
    pub(crate) fn sum(&self, power: &[Side], out: &mut [Side]) {
        for (energy, band) in out.iter_mut().zip(&self.bands) {
            let mut sum = [0.0; TOGETHER];
            for (power, weight) in power.iter().skip(band.first).zip(&band.weights) {
                sum.iter_mut().zip(power).for_each(|(sum, power)| *sum += power * weight);
            }
            *energy = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_is_summed_by_itself_under_each_bands_weights() {
        // Band 0 holds bins 0 and 1, band 1 bin 2 twice, and band 2 nothing.
        let weights = [[1.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0; 3]];
        let bank = Bank::new(3, 3, |band, bin| weights[band][bin]);
        let power = [1.0_f32, 10.0, 100.0].map(|value| std::array::from_fn(|frame| value * frame as f32));
        let mut out = [[-1.0; TOGETHER]; 3];
        bank.sum(&power, &mut out);
        for frame in 0..TOGETHER {
            assert_eq!(out.map(|band| band[frame]), [11.0, 200.0, 0.0].map(|value| value * frame as f32));
        }
    }
}
