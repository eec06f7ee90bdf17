//! What a model is fed, as its manifest says it: the kinds of front end and their parameters. It computes nothing.
//!
//! In a manifest a front end is an object with one key, `{"kaldi_fbank80_cmn": {"scale": "int16", "window": "hamming"}}`; a
//! parameter that is left out has the value of the model that the kind is named after here, and the key alone, as a
//! string, means all of these.

use std::num::NonZeroU32;

use serde::{Deserialize, Deserializer, Serialize};

use crate::fbank::{BINS, RATE};
use crate::mel;
use crate::resample::{RATE_MAX, RATE_MIN};

/// How audio becomes the model's input. Nothing is guessed at run time: a model is fed what its manifest says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FrontEnd {
    /// 80 Kaldi filterbank bins at 16 kHz, minus each bin's mean over the clip: CAM++, ERes2Net, WeSpeaker.
    KaldiFbank80Cmn(KaldiFbank),
    /// 40 mel bands as librosa computes them, at 16 kHz, cut into overlapping parts: GE2E, Resemblyzer.
    LibrosaMel40(LibrosaMel),
    /// The samples themselves, from -1 to 1: the features are part of the graph.
    Waveform(Waveform),
}

/// Parameters of [`FrontEnd::KaldiFbank80Cmn`]; the defaults are those of CAM++ and ERes2Net.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KaldiFbank {
    /// The range of the samples. It matters because the floor under the logarithm is absolute.
    pub scale: Scale,
    /// What each frame is multiplied by.
    pub window: Window,
}

/// The range of the samples that a filterbank sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// From -1 to 1, as 3D-Speaker's models were trained.
    #[default]
    Unit,
    /// From -32768 to 32767, as WeSpeaker's models were trained.
    Int16,
}

/// What a frame is multiplied by before its spectrum is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// Kaldi's own: a Hann window to the power of 0.85.
    #[default]
    Povey,
    /// WeSpeaker's choice.
    Hamming,
}

/// Parameters of [`FrontEnd::LibrosaMel40`]; the defaults are those of Resemblyzer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LibrosaMel {
    /// A clip that is quieter than this (its mean power in dB of full scale) is raised to it; none is lowered.
    pub loudness_min_db: i8,
    /// Frames of 10 ms from one part of 160 frames to the next. The parts' vectors are averaged.
    pub step_frames: usize,
}

/// Parameters of [`FrontEnd::Waveform`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Waveform {
    /// Samples per second that the graph expects.
    pub sample_rate: NonZeroU32,
}

impl Default for LibrosaMel {
    fn default() -> Self {
        // 1.3 parts a second.
        Self { loudness_min_db: -30, step_frames: 77 }
    }
}

impl Default for Waveform {
    fn default() -> Self {
        Self { sample_rate: NonZeroU32::new(RATE).expect("sixteen thousand is not zero") }
    }
}

impl Scale {
    /// Full scale: what a sample of one becomes.
    #[must_use]
    pub const fn full(self) -> f32 {
        match self {
            Self::Unit => 1.0,
            Self::Int16 => 32_768.0,
        }
    }
}

impl FrontEnd {
    /// What CAM++ is fed.
    pub const CAMPPLUS: Self = Self::KaldiFbank80Cmn(KaldiFbank { scale: Scale::Unit, window: Window::Povey });

    /// Values in one row of the input, or nothing when the input is a row of samples.
    #[must_use]
    pub const fn columns(&self) -> Option<usize> {
        match self {
            Self::KaldiFbank80Cmn(_) => Some(BINS),
            Self::LibrosaMel40(_) => Some(mel::BANDS),
            Self::Waveform(_) => None,
        }
    }

    /// Samples per second that the front end works with.
    #[must_use]
    pub const fn sample_rate(&self) -> u32 {
        match self {
            Self::KaldiFbank80Cmn(_) | Self::LibrosaMel40(_) => RATE,
            Self::Waveform(waveform) => waveform.sample_rate.get(),
        }
    }

    /// What the parameters must be, when one of them is out of its range.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match self {
            Self::KaldiFbank80Cmn(_) => None,
            Self::LibrosaMel40(mel) if !(1..=mel::PART_FRAMES).contains(&mel.step_frames) => {
                Some("a front end whose `step_frames` lies from 1 to 160, where parts touch")
            }
            Self::LibrosaMel40(mel) if !(-60..=0).contains(&mel.loudness_min_db) => {
                Some("a front end whose `loudness_min_db` lies from -60 to 0")
            }
            Self::LibrosaMel40(_) => None,
            Self::Waveform(waveform) => (!(RATE_MIN..=RATE_MAX).contains(&waveform.sample_rate.get()))
                .then_some("a front end whose `sample_rate` lies from 8000 to 48000 Hz"),
        }
    }
}

impl<'de> Deserialize<'de> for FrontEnd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Written {
            KaldiFbank80Cmn(KaldiFbank),
            LibrosaMel40(LibrosaMel),
            #[serde(alias = "waveform_16k")]
            Waveform(Waveform),
        }
        let given = serde_json::Value::deserialize(deserializer)?;
        let written = if let Some(kind) = given.as_str() { serde_json::json!({ kind: {} }) } else { given };
        let written = serde_json::from_value(written)
            .map_err(|error| serde::de::Error::custom(format!("`front_end`: {error}")))?;
        Ok(match written {
            Written::KaldiFbank80Cmn(fbank) => Self::KaldiFbank80Cmn(fbank),
            Written::LibrosaMel40(mel) => Self::LibrosaMel40(mel),
            Written::Waveform(waveform) => Self::Waveform(waveform),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<FrontEnd, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_alone_means_the_defaults_and_a_left_out_parameter_its_default() {
        assert_eq!(read(r#""kaldi_fbank80_cmn""#), Ok(FrontEnd::CAMPPLUS));
        assert_eq!(read(r#""waveform_16k""#), Ok(FrontEnd::Waveform(Waveform::default())));
        let wespeaker = KaldiFbank { scale: Scale::Int16, window: Window::Povey };
        assert_eq!(read(r#"{"kaldi_fbank80_cmn":{"scale":"int16"}}"#), Ok(FrontEnd::KaldiFbank80Cmn(wespeaker)));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let telephone = Waveform { sample_rate: NonZeroU32::new(8_000).unwrap() };
        let wespeaker = KaldiFbank { scale: Scale::Int16, window: Window::Hamming };
        let slow = LibrosaMel { step_frames: 143, ..LibrosaMel::default() };
        for kind in [
            FrontEnd::CAMPPLUS,
            FrontEnd::KaldiFbank80Cmn(wespeaker),
            FrontEnd::LibrosaMel40(slow),
            FrontEnd::Waveform(telephone),
        ] {
            assert_eq!(read(&serde_json::to_string(&kind).unwrap()), Ok(kind));
            assert_eq!(kind.fault(), None);
        }
    }

    #[test]
    fn an_unknown_kind_or_parameter_is_named() {
        for (text, says) in [
            (r#""mfcc""#, "mfcc"),
            (r#"{"kaldi_fbank80_cmn":{"bins":40}}"#, "bins"),
            (r#"{"kaldi_fbank80_cmn":{"scale":3}}"#, "front_end"),
            (r#"{"waveform":{"sample_rate":0}}"#, "nonzero"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_parameter_out_of_its_range_is_a_fault() {
        for (text, says) in [
            (r#"{"librosa_mel40":{"step_frames":0}}"#, "step_frames"),
            (r#"{"librosa_mel40":{"step_frames":161}}"#, "step_frames"),
            (r#"{"librosa_mel40":{"loudness_min_db":3}}"#, "loudness_min_db"),
            (r#"{"waveform":{"sample_rate":4000}}"#, "sample_rate"),
        ] {
            assert!(read(text).unwrap().fault().unwrap().contains(says), "{text}");
        }
    }
}
