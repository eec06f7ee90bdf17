//! Bytes from a client as mono samples: any frame length, one to eight channels, 16-bit integers or floats.
//!
//! A sample may be split between two frames; the rest waits for the next one. Channels are averaged at the door. A float
//! that is no number becomes silence and is counted, so that the audio clock stays true.

use std::num::NonZeroUsize;

/// How samples are written on the wire, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// 16-bit signed integers.
    PcmS16Le,
    /// 32-bit floats, full scale at ±1; beyond it they are clamped.
    PcmF32Le,
}

impl Encoding {
    const fn bytes(self) -> usize {
        match self {
            Self::PcmS16Le => 2,
            Self::PcmF32Le => 4,
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct Intake {
    encoding: Encoding,
    channels: NonZeroUsize,
    rest: Vec<u8>,
}

impl Intake {
    /// An intake for one format.
    #[must_use]
    pub const fn new(encoding: Encoding, channels: NonZeroUsize) -> Self {
        Self { encoding, channels, rest: Vec::new() }
    }

    /// Decodes a frame into `samples` (cleared first) and says how many values were no numbers.
    pub fn decode(&mut self, frame: &[u8], samples: &mut Vec<i16>) -> usize {
        samples.clear();
        let size = self.encoding.bytes() * self.channels.get();
        let mut frame = frame;
        let mut bad = 0;
        if !self.rest.is_empty() {
            let missing = (size - self.rest.len()).min(frame.len());
            let (head, tail) = frame.split_at(missing);
            self.rest.extend_from_slice(head);
            frame = tail;
            if self.rest.len() < size {
                return 0;
            }
            let whole = std::mem::take(&mut self.rest);
            bad += self.mix(&whole, samples);
        }
        let whole = frame.len() - frame.len() % size;
        let (frames, rest) = frame.split_at(whole);
        if size == Encoding::PcmS16Le.bytes() {
            // What nearly every client sends: nothing to mix, and a loop that the compiler turns into a copy.
            samples.extend(frames.as_chunks::<2>().0.iter().map(|bytes| i16::from_le_bytes(*bytes)));
        } else {
            samples.reserve(whole / size);
            bad += frames.chunks_exact(size).map(|frame| self.mix(frame, samples)).sum::<usize>();
        }
        self.rest.extend_from_slice(rest);
        bad
    }

    fn mix(&self, frame: &[u8], samples: &mut Vec<i16>) -> usize {
        match self.encoding {
            Encoding::PcmS16Le => {
                let values = frame.as_chunks::<2>().0.iter().map(|bytes| i32::from(i16::from_le_bytes(*bytes)));
                let channels = i32::try_from(self.channels.get()).unwrap_or(i32::MAX);
                let mean = values.sum::<i32>() / channels;
                samples.push(i16::try_from(mean).expect("a mean of 16-bit samples is one"));
                0
            }
            Encoding::PcmF32Le => {
                let values = frame.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
                let bad = values.clone().filter(|value| !value.is_finite()).count();
                let sum: f32 = values.map(|value| if value.is_finite() { value.clamp(-1.0, 1.0) } else { 0.0 }).sum();
                samples.push(to_i16(sum / self.channels.get() as f32));
                bad
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the value lies in -1..=1, and the product within 16 bits")]
fn to_i16(value: f32) -> i16 {
    (value * f32::from(i16::MAX)).round() as i16
}

#[cfg(test)]
mod tests {
    //! Goal: no frame length, channel count or hostile float moves the audio clock or shifts a byte.
    //! Method: known samples cut at every length.

    use super::*;

    fn decode(encoding: Encoding, channels: usize, bytes: &[u8], chunk: usize) -> (Vec<i16>, usize) {
        let mut intake = Intake::new(encoding, NonZeroUsize::new(channels).unwrap());
        let (mut all, mut part, mut bad) = (Vec::new(), Vec::new(), 0);
        for frame in bytes.chunks(chunk) {
            bad += intake.decode(frame, &mut part);
            all.extend_from_slice(&part);
        }
        (all, bad)
    }

    #[test]
    fn a_sample_split_between_frames_is_whole_again() {
        let samples: Vec<i16> = (1000..1100).collect();
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        for chunk in 1..=13 {
            assert_eq!(decode(Encoding::PcmS16Le, 1, &bytes, chunk), (samples.clone(), 0), "frames of {chunk} bytes");
        }
    }

    #[test]
    fn channels_are_averaged() {
        let bytes: Vec<u8> = [100_i16, 300, -100, -300].iter().flat_map(|sample| sample.to_le_bytes()).collect();
        assert_eq!(decode(Encoding::PcmS16Le, 2, &bytes, 3), (vec![200, -200], 0));
        let loud: Vec<u8> = [i16::MIN; 8].iter().flat_map(|sample| sample.to_le_bytes()).collect();
        assert_eq!(decode(Encoding::PcmS16Le, 8, &loud, 16), (vec![i16::MIN], 0));
    }

    #[test]
    fn floats_are_clamped_and_what_is_no_number_is_silence_that_counts() {
        let values = [0.5_f32, 2.0, f32::NAN, f32::NEG_INFINITY, -1.0];
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(decode(Encoding::PcmF32Le, 1, &bytes, 5), (vec![16_384, i16::MAX, 0, 0, -i16::MAX], 2));
    }
}
