//! From a clip to the model's input: samples to floats, to the model's rate, to what its manifest's front end says.
//!
//! It owns the buffers in between and the limits on a clip's length. The arithmetic is in [`crate::fbank`],
//! [`crate::mel`] and [`crate::resample`].

mod kind;
pub mod measure;

use crate::engine::Clip;
use crate::extractor::ExtractError;
use crate::fbank::{self, BINS, Fbank};
use crate::mel::{Mel, PART_FRAMES};
use crate::resample::{self, Resampler};

pub use kind::{FrontEnd, KaldiFbank, LibrosaMel, Scale, Waveform, Window};

/// The shortest input, in frames: 0.5 s. The converted model was compared with the original from here up.
pub const FRAMES_MIN: usize = 48;
/// The longest input, in frames: 60 s, as long as the audio that a socket keeps. One run over it takes 0.8 s on one
/// core, which leaves a slow core time before the run's deadline.
pub const FRAMES_MAX: usize = 6_000;

/// What a clip became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Inputs that the model is run on as one batch, and whose vectors are averaged.
    pub parts: usize,
    /// Rows in each of them, or samples where the model takes samples.
    pub length: usize,
}

/// Buffers and tables for one worker.
pub struct Encoder {
    pipeline: Pipeline,
    resampler: Resampler,
    samples: Vec<f32>,
    wave: Vec<f32>,
}

/// The tables of the one front end that is used.
enum Pipeline {
    Fbank(Box<Fbank>),
    Mel(Box<Mel>),
    Waveform,
}

impl Encoder {
    /// An encoder that has met no clip yet.
    #[must_use]
    pub fn new(kind: FrontEnd) -> Self {
        let pipeline = match kind {
            FrontEnd::KaldiFbank80Cmn(fbank) => Pipeline::Fbank(Box::new(Fbank::new(fbank))),
            FrontEnd::LibrosaMel40(mel) => Pipeline::Mel(Box::new(Mel::new(mel))),
            FrontEnd::Waveform(_) => Pipeline::Waveform,
        };
        let resampler = Resampler::to(kind.sample_rate());
        Self { pipeline, resampler, samples: Vec::new(), wave: Vec::new() }
    }

    /// Appends the model's input for `clip` to `out`, part by part, and returns its shape.
    ///
    /// # Errors
    /// When the clip is too short or too long for the model, or has a rate that is not supported.
    pub fn append(&mut self, clip: &Clip, out: &mut Vec<f32>) -> Result<Shape, ExtractError> {
        self.resample(clip)?;
        Ok(match &mut self.pipeline {
            Pipeline::Fbank(fbank) => {
                fbank.log_mel(&self.wave, &mut self.samples);
                fbank::subtract_mean(&mut self.samples);
                out.extend_from_slice(&self.samples);
                Shape { parts: 1, length: self.samples.len() / BINS }
            }
            Pipeline::Mel(mel) => Shape { parts: mel.append_parts(&self.wave, out), length: PART_FRAMES },
            Pipeline::Waveform => {
                out.extend_from_slice(&self.wave);
                Shape { parts: 1, length: self.wave.len() }
            }
        })
    }

    fn resample(&mut self, clip: &Clip) -> Result<(), ExtractError> {
        let encoding = |error: &dyn std::fmt::Display| ExtractError::Encoding(error.to_string());
        let rate = clip.sample_rate.get();
        // The length is checked first, so that an oversized clip costs nothing. It is counted in the frames of the
        // filterbank whatever the model takes, so that a clip is as good for one model as for another.
        let frames = fbank::frames_of(resample::length_of(clip.pcm.len(), rate, fbank::RATE));
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

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Full-scale noise, silence and everything between, at every rate.
        #[test]
        fn every_clip_becomes_finite_values(
            loudest in 0..=i16::MAX,
            seed in any::<u32>(),
            samples in 4_000_usize..16_000,
            rate in 8_000_u32..=48_000,
        ) {
            let mut state = seed;
            let noise = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let bits = u16::try_from(state >> 16).expect("sixteen bits are left").cast_signed();
                bits.clamp(-loudest, loudest)
            };
            let pcm = (0..samples).map(noise).collect();
            let clip = Clip { pcm, sample_rate: NonZeroU32::new(rate).expect("it is at least 8000") };
            for kind in [
                FrontEnd::CAMPPLUS,
                FrontEnd::KaldiFbank80Cmn(KaldiFbank { scale: Scale::Int16, window: Window::Hamming }),
                FrontEnd::LibrosaMel40(LibrosaMel::default()),
                FrontEnd::Waveform(Waveform::default()),
            ] {
                let mut out = Vec::new();
                let long_enough = samples * 2 >= rate as usize;
                let shape = Encoder::new(kind).append(&clip, &mut out);
                prop_assert!(shape.is_ok() || !long_enough, "{shape:?}");
                prop_assert!(out.iter().all(|value| value.is_finite()), "{kind:?}");
            }
        }
    }

    fn clip(samples: usize, rate: u32) -> Clip {
        Clip { pcm: vec![100; samples].into(), sample_rate: NonZeroU32::new(rate).unwrap() }
    }

    fn frames(samples: usize, rate: u32) -> Result<usize, ExtractError> {
        Encoder::new(FrontEnd::CAMPPLUS).append(&clip(samples, rate), &mut Vec::new()).map(|shape| shape.length)
    }

    #[test]
    fn the_shape_is_that_of_what_was_appended() {
        let telephone = Waveform { sample_rate: NonZeroU32::new(8_000).unwrap() };
        for (kind, shape) in [
            (FrontEnd::CAMPPLUS, Shape { parts: 1, length: 298 }),
            (FrontEnd::LibrosaMel40(LibrosaMel::default()), Shape { parts: 3, length: 160 }),
            (FrontEnd::Waveform(Waveform::default()), Shape { parts: 1, length: 48_000 }),
            (FrontEnd::Waveform(telephone), Shape { parts: 1, length: 24_000 }),
        ] {
            let (mut encoder, mut out) = (Encoder::new(kind), vec![7.0]);
            assert_eq!(encoder.append(&clip(144_000, 48_000), &mut out), Ok(shape), "{kind:?}");
            assert_eq!(out.len(), 1 + shape.parts * shape.length * kind.columns().unwrap_or(1), "{kind:?}");
        }
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
