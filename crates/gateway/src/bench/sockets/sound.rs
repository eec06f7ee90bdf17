//! The voices of the load: tones, which the scripted extractor tells apart by their pitch. The real model takes them
//! like any audio; what it makes of them does not matter to the time it takes.

use std::sync::Arc;

use bytes::Bytes;

use crate::client::encoded;

/// The rate of all sounds.
pub(super) const RATE: u32 = 16_000;

/// Frames a second: 100 ms each.
pub(super) const FRAMES_PER_SECOND: u32 = 10;

/// People in the store. A household with friends; comparing with more costs nanoseconds each.
const PEOPLE: u32 = 8;

/// Voices that nobody knows. More than any socket hears.
const STRANGERS: u32 = 24;

/// The lowest pitch, and the step between voices: the scripted extractor tells 40 Hz apart.
const PITCH_MIN: u32 = 200;
const PITCH_STEP: u32 = 40;

/// Seconds of a person's sample.
const SAMPLE_SECONDS: u32 = 4;

/// Everybody who is enrolled, each with a WAV file.
pub(super) fn people() -> impl Iterator<Item = (String, Vec<u8>)> {
    (0..PEOPLE).map(|person| (format!("person-{person}"), wav(&tone(pitch(person), SAMPLE_SECONDS))))
}

/// One second of each voice as the frames that go over the wire, shared by all sockets.
#[derive(Debug, Clone)]
pub(super) struct Sounds(Arc<[Vec<Bytes>]>);

impl Sounds {
    pub(super) fn new() -> Self {
        let frame = usize::try_from(RATE / FRAMES_PER_SECOND).expect("1600 is a length");
        let voice = |voice| tone(pitch(voice), 1).chunks(frame).map(encoded).collect();
        Self((0..PEOPLE + STRANGERS).map(voice).collect())
    }

    /// A frame of an enrolled person's voice; every number is somebody's.
    pub(super) fn person(&self, number: u32, frame: u32) -> Bytes {
        self.frame(number % PEOPLE, frame)
    }

    /// A frame of a voice that nobody knows.
    pub(super) fn stranger(&self, number: u32, frame: u32) -> Bytes {
        self.frame(PEOPLE + number % STRANGERS, frame)
    }

    fn frame(&self, voice: u32, frame: u32) -> Bytes {
        let at = |number: u32| usize::try_from(number).expect("a usize holds 32 bits here");
        let frames = self.0.get(at(voice)).expect("voices wrap at their number");
        frames.get(at(frame % FRAMES_PER_SECOND)).expect("a second has all its frames").clone()
    }
}

const fn pitch(voice: u32) -> u32 {
    PITCH_MIN + PITCH_STEP * voice
}

/// Whole cycles a second, so that seconds join without a step.
#[expect(clippy::cast_possible_truncation, reason = "the amplitude is a quarter of full scale")]
fn tone(hertz: u32, seconds: u32) -> Vec<i16> {
    let phase = |n: u32| std::f64::consts::TAU * f64::from(hertz) * f64::from(n) / f64::from(RATE);
    (0..RATE * seconds).map(|n| (8_000.0 * phase(n).sin()).round() as i16).collect()
}

/// A WAV file: the header of 44 bytes for 16-bit mono.
fn wav(samples: &[i16]) -> Vec<u8> {
    let data = encoded(samples);
    let length = u32::try_from(data.len()).expect("a sample is a few seconds");
    let mut file = Vec::from(*b"RIFF");
    file.extend((36 + length).to_le_bytes());
    file.extend(b"WAVEfmt ");
    for word in [16, 0x0001_0001, RATE, RATE * 2, 0x0010_0002] {
        file.extend(u32::to_le_bytes(word));
    }
    file.extend(b"data");
    file.extend(length.to_le_bytes());
    file.extend(data);
    file
}
