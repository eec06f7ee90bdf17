//! From a clip to the model's input: samples to floats, to 16 kHz, to log-mel features minus their mean.
//!
//! It owns the buffers in between and the limits on a clip's length. The arithmetic is in [`crate::fbank`] and
//! [`crate::resample`].

use crate::engine::Clip;
use crate::extractor::ExtractError;
use crate::fbank::{self, BINS, Fbank};
use crate::resample::{self, Resampler};

/// The shortest input, in frames: 0.5 s. The converted model was compared with the original from here up.
pub const FRAMES_MIN: usize = 48;
/// The longest input, in frames: 60 s, as long as the audio that a socket keeps. One run over it takes 0.8 s on one
/// core, which leaves a slow core time before the run's deadline.
pub const FRAMES_MAX: usize = 6_000;

/// Buffers and tables for one worker.
#[derive(Default)]
pub struct Encoder {
    resampler: Resampler,
    fbank: Fbank,
    samples: Vec<f32>,
    wave: Vec<f32>,
}

impl Encoder {
    /// An encoder that has met no clip yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the features of `clip` to `out` and returns their number of rows.
    ///
    /// # Errors
    /// When the clip is too short or too long for the model, or has a rate that is not supported.
    pub fn append_features(&mut self, clip: &Clip, out: &mut Vec<f32>) -> Result<usize, ExtractError> {
        self.resample(clip)?;
        let start = out.len();
        self.samples.clear();
        self.fbank.log_mel(&self.wave, &mut self.samples);
        fbank::subtract_mean(&mut self.samples);
        out.extend_from_slice(&self.samples);
        Ok((out.len() - start) / BINS)
    }

    /// Appends the samples of `clip` at 16 kHz, from -1 to 1, to `out` and returns their number.
    ///
    /// # Errors
    /// As [`Encoder::append_features`].
    pub fn append_wave(&mut self, clip: &Clip, out: &mut Vec<f32>) -> Result<usize, ExtractError> {
        self.resample(clip)?;
        out.extend_from_slice(&self.wave);
        Ok(self.wave.len())
    }

    fn resample(&mut self, clip: &Clip) -> Result<(), ExtractError> {
        let encoding = |error: &dyn std::fmt::Display| ExtractError::Encoding(error.to_string());
        let rate = clip.sample_rate.get();
        // The length is checked first, so that an oversized clip costs nothing.
        let frames = fbank::frames_of(resample::length_of(clip.pcm.len(), rate));
        if !(FRAMES_MIN..=FRAMES_MAX).contains(&frames) {
            let reason = format!("the clip is {:.2} s long and must have from 0.5 to 60 s", clip.seconds());
            return Err(ExtractError::Encoding(reason));
        }
        self.samples.clear();
        self.samples.extend(clip.pcm.iter().map(|sample| f32::from(*sample) / 32_768.0));
        self.resampler.resample(&self.samples, rate, &mut self.wave).map_err(|error| encoding(&error))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn frames(samples: usize, rate: u32) -> Result<usize, ExtractError> {
        let clip = Clip { pcm: vec![100; samples].into(), sample_rate: NonZeroU32::new(rate).unwrap() };
        Encoder::new().append_features(&clip, &mut Vec::new())
    }

    #[test]
    fn half_a_second_is_enough_at_every_rate() {
        for rate in [8_000, 11_025, 16_000, 44_100, 48_000] {
            assert_eq!(frames(rate as usize / 2, rate), Ok(48), "{rate}");
        }
    }

    #[test]
    fn a_clip_that_is_too_short_too_long_or_of_a_wrong_rate_is_refused_with_its_reason() {
        for (samples, rate, says) in [
            (0, 16_000, "0.5 to 60 s"),
            (7_000, 16_000, "0.44 s"),
            (961_000, 16_000, "60.06 s"),
            (7_000, 7_000, "7000 Hz"),
        ] {
            let Err(ExtractError::Encoding(reason)) = frames(samples, rate) else {
                panic!("{samples} at {rate} passed")
            };
            assert!(reason.contains(says), "{reason}");
        }
    }
}
