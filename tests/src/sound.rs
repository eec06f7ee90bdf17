//! Voices for the scripted model, which tells tones apart by their pitch.

/// Samples per second of every sound here.
pub const RATE: u32 = 16_000;

/// The pitch of the owner, of another enrolled person, and the first of the strangers'. Voices lie 40 Hz apart.
pub const OWNER: u32 = 200;
/// Somebody who is enrolled and not the owner.
pub const PERSON: u32 = 240;
/// Somebody who is not enrolled; strangers follow every 40 Hz.
pub const STRANGER: u32 = 400;

/// A tone at a quarter of full scale.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test sounds are a few seconds long")]
pub fn tone(hertz: u32, seconds: f64) -> Vec<i16> {
    let step = std::f64::consts::TAU * f64::from(hertz) / f64::from(RATE);
    let samples = (seconds * f64::from(RATE)).round() as u32;
    (0..samples).map(|n| (8_000.0 * (step * f64::from(n)).sin()).round() as i16).collect()
}

/// Samples as they go over the wire.
#[must_use]
pub fn bytes(samples: &[i16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

/// A WAV file of 16-bit mono.
#[must_use]
pub fn wav(samples: &[i16]) -> Vec<u8> {
    let length = u32::try_from(samples.len() * 2).expect("test sounds are a few seconds long");
    wav_that_claims(length, samples)
}

/// A WAV file whose header claims `length` bytes of samples.
#[must_use]
pub fn wav_that_claims(length: u32, samples: &[i16]) -> Vec<u8> {
    let mut file = Vec::from(*b"RIFF");
    file.extend(length.saturating_add(36).to_le_bytes());
    file.extend(b"WAVEfmt ");
    for word in [16, 0x0001_0001, RATE, RATE * 2, 0x0010_0002] {
        file.extend(u32::to_le_bytes(word));
    }
    file.extend(b"data");
    file.extend(length.to_le_bytes());
    file.extend(bytes(samples));
    file
}
