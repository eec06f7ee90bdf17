//! Audio files as people have them, turned into mono samples, and how much speech is in them.
//!
//! [`decode`] takes the bytes of a WAV, FLAC, MP3, Ogg (Vorbis or Opus) or M4A file. Whatever the bytes are, the answer
//! is samples or one clear error; a decoder that panics is caught here. Nothing is resampled: the model's front end
//! takes any rate that is accepted here. Live audio does not come this way, it arrives as plain samples on a socket.

mod container;
mod flac;
pub mod gate;
mod mono;
mod speech;
mod wav;

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use gpu_worker::Clip;

pub use speech::Speech;

/// Sample rates that the model's front end resamples from: telephone to studio. Higher ones hold nothing more of a voice.
pub const SAMPLE_RATES: RangeInclusive<u32> = 8_000..=48_000;

/// Channels that are mixed to one: up to 7.1. More is not a recording of people but a mixing desk.
pub const CHANNELS: RangeInclusive<usize> = 1..=8;

/// How much of a file is taken. Beyond either the file is refused, never cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Bytes of the file.
    pub bytes_max: usize,
    /// Seconds of audio, counted while decoding, whatever the header says.
    pub seconds_max: u32,
}

impl Limits {
    /// A clip that comes over HTTP, held in memory twice: five minutes of 48 kHz stereo at 16 bit take 58 MB.
    pub const UPLOAD: Self = Self { bytes_max: 64 << 20, seconds_max: 300 };

    /// A recording on this machine: four hours at 48 kHz are 1.4 GB of samples, which a workstation can hold.
    pub const RECORDING: Self = Self { bytes_max: 2 << 30, seconds_max: 4 * 3600 };
}

/// Decoded audio, one channel.
#[derive(Clone, PartialEq)]
pub struct Audio {
    /// Mono samples; several channels are averaged.
    pub pcm: Arc<[i16]>,
    /// Samples per second, in [`SAMPLE_RATES`].
    pub sample_rate: NonZeroU32,
}

impl Audio {
    /// How long it is.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        // Four hours at 48 kHz are under 2^30 samples: exact in an f64.
        self.pcm.len() as f64 / f64::from(self.sample_rate.get())
    }

    /// The samples as one query's clip; nothing is copied.
    #[must_use]
    pub fn clip(&self) -> Clip {
        Clip { pcm: Arc::clone(&self.pcm), sample_rate: self.sample_rate }
    }

    /// Cuts into as few pieces of about equal length as keep each at or below `seconds_max`.
    #[must_use]
    pub fn pieces(&self, seconds_max: u32) -> Vec<Self> {
        let longest = (u64::from(seconds_max) * u64::from(self.sample_rate.get())).max(1);
        let longest = usize::try_from(longest).unwrap_or(usize::MAX);
        let count = self.pcm.len().div_ceil(longest).max(1);
        let length = self.pcm.len().div_ceil(count).max(1);
        self.pcm.chunks(length).map(|piece| Self { pcm: piece.into(), sample_rate: self.sample_rate }).collect()
    }
}

/// Audio is personal: a `{:?}` shows its size alone.
impl std::fmt::Debug for Audio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Audio({} samples at {} Hz)", self.pcm.len(), self.sample_rate)
    }
}

/// Why bytes are not audio that we take. Each message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AudioError {
    /// No samples at all.
    #[error("the file holds no audio")]
    Empty,
    /// More bytes than are taken.
    #[error("the file has {found} bytes; at most {most} are taken. Cut it, or compress it with FLAC or Opus")]
    TooLarge {
        /// Bytes that came.
        found: usize,
        /// Bytes that are taken.
        most: usize,
    },
    /// More audio than is taken.
    #[error("the file is longer than {most} s, the most that is taken here; cut it")]
    TooLong {
        /// Seconds that are taken.
        most: u32,
    },
    /// The bytes are in no format that is known.
    #[error("the file is none of WAV, FLAC, MP3, Ogg (Vorbis, Opus) and M4A; {CONVERT}")]
    UnknownFormat,
    /// The format is known, and this kind of it is not supported.
    #[error("{0} is not supported; {CONVERT}")]
    Unsupported(String),
    /// The rate is out of range.
    #[error("the sample rate is {0} Hz; it must lie between 8000 and 48000 Hz. {CONVERT}")]
    SampleRate(u32),
    /// Too many channels, or none.
    #[error("the file has {0} channels; it must have 1 to 8. {CONVERT}")]
    Channels(usize),
    /// A float sample is NaN or infinite.
    #[error("a sample is not a finite number; whatever wrote the file is at fault")]
    NotFinite,
    /// The header tells of more samples than could be decoded.
    #[error(
        "only {found} of the file's {told} samples can be decoded: it is cut off or damaged, or something else follows its last frame; export it anew"
    )]
    Incomplete {
        /// Samples of one channel that could be decoded.
        found: u64,
        /// Samples of one channel that the header tells of.
        told: u64,
    },
    /// The bytes contradict themselves.
    #[error("the file is damaged: {0}")]
    Damaged(String),
}

/// What to do with a file that is not taken as it is.
const CONVERT: &str = "convert it with: ffmpeg -i FILE -ac 1 -ar 16000 FILE.wav";

/// Decodes a whole file.
///
/// # Errors
/// When the bytes are too many, no known format, out of range, or damaged.
pub fn decode(bytes: Vec<u8>, limits: Limits) -> Result<Audio, AudioError> {
    if bytes.is_empty() {
        return Err(AudioError::Empty);
    }
    if bytes.len() > limits.bytes_max {
        return Err(AudioError::TooLarge { found: bytes.len(), most: limits.bytes_max });
    }
    // The decoders are libraries, and the bytes come from anywhere. What they leave behind on a panic is dropped.
    std::panic::catch_unwind(AssertUnwindSafe(|| decode_checked(bytes, limits)))
        .unwrap_or_else(|_| Err(AudioError::Damaged("the decoder gave up on it".to_owned())))
}

fn decode_checked(mut bytes: Vec<u8>, limits: Limits) -> Result<Audio, AudioError> {
    if wav::is_wav(&bytes) {
        wav::mend(&mut bytes)?;
    }
    flac::drop_tag(&mut bytes);
    container::decode(bytes, limits.seconds_max)
}

#[cfg(test)]
mod tests;
