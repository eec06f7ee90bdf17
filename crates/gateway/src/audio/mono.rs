//! Decoded frames of any channel count gathered into mono 16-bit samples, within a limit.
//!
//! It knows no file format; what it refuses is refused for every one of them.

use std::num::NonZeroU32;

use super::{Audio, AudioError, CHANNELS, SAMPLE_RATES};

/// Gathers frames of one stream.
pub(super) struct Mono {
    pcm: Vec<i16>,
    stream: Option<Stream>,
    seconds_max: u32,
    /// Frames that the file says it holds.
    frames_told: Option<u64>,
}

/// What may not change within a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stream {
    sample_rate: NonZeroU32,
    channels: usize,
}

impl Mono {
    pub(super) fn new(seconds_max: u32) -> Self {
        Self { pcm: Vec::new(), stream: None, seconds_max, frames_told: None }
    }

    /// Fewer frames than the file says it holds are then an error: speech is not lost in silence.
    pub(super) fn of_frames(self, frames_told: Option<u64>) -> Self {
        Self { frames_told, ..self }
    }

    /// Adds interleaved samples, full scale at one.
    pub(super) fn add(&mut self, samples: &[f32], sample_rate: u32, channels: usize) -> Result<(), AudioError> {
        let stream = self.stream_of(sample_rate, channels)?;
        if samples.iter().any(|sample| !sample.is_finite()) {
            return Err(AudioError::NotFinite);
        }
        self.make_room(samples.len() / stream.channels, stream.sample_rate)?;
        // At most eight channels: exact in an f32.
        let share = 1.0 / stream.channels as f32;
        self.pcm.extend(samples.chunks_exact(stream.channels).map(|frame| narrow(frame.iter().sum::<f32>() * share)));
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Audio, AudioError> {
        let found = self.pcm.len() as u64;
        if let Some(told) = self.frames_told.filter(|told| found < *told) {
            return Err(AudioError::Incomplete { found, told });
        }
        match self.stream {
            Some(stream) if !self.pcm.is_empty() => Ok(Audio { pcm: self.pcm.into(), sample_rate: stream.sample_rate }),
            Some(_) | None => Err(AudioError::Empty),
        }
    }

    fn stream_of(&mut self, sample_rate: u32, channels: usize) -> Result<Stream, AudioError> {
        let new = checked(sample_rate, channels)?;
        if *self.stream.get_or_insert(new) != new {
            return Err(AudioError::Damaged("the sample rate or the channels change within it".to_owned()));
        }
        Ok(new)
    }

    fn make_room(&self, frames: usize, sample_rate: NonZeroU32) -> Result<(), AudioError> {
        let most = u64::from(self.seconds_max) * u64::from(sample_rate.get());
        if u64::try_from(self.pcm.len() + frames).is_ok_and(|total| total <= most) {
            return Ok(());
        }
        Err(AudioError::TooLong { most: self.seconds_max })
    }
}

/// Refuses what is out of range.
fn checked(sample_rate: u32, channels: usize) -> Result<Stream, AudioError> {
    if !CHANNELS.contains(&channels) {
        return Err(AudioError::Channels(channels));
    }
    match NonZeroU32::new(sample_rate) {
        Some(rate) if SAMPLE_RATES.contains(&sample_rate) => Ok(Stream { sample_rate: rate, channels }),
        Some(_) | None => Err(AudioError::SampleRate(sample_rate)),
    }
}

/// Refuses a header's numbers before anything is decoded.
pub(super) fn check(sample_rate: u32, channels: usize) -> Result<(), AudioError> {
    checked(sample_rate, channels).map(|_| ())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float to integer cast saturates, which is what a loud sample needs"
)]
fn narrow(sample: f32) -> i16 {
    (sample * 32_768.0).round() as i16
}
