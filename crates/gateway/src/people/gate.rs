//! Whether a clip is fit to be a sample: enough speech, not clipped, and the same voice as before. No effects.
//!
//! A bad sample is worse than none, because it moves the print for every later verdict; so what is doubtful is refused
//! with a reason that says how to record a better one.

use crate::audio::{Audio, Speech};
use crate::store::SampleFeatures;

/// Seconds of speech that a sample needs. Below, distances of one person to itself spread as far as to strangers.
pub const SPEECH_SECONDS_MIN: f64 = 2.0;

/// A clip with less speech than this share is a recording of a room. People who pause a lot reach a third.
const SPEECH_SHARE_MIN: f64 = 0.2;

/// Above one sample in a hundred at full scale the waveform's shape is lost, and with it the voice's.
const CLIPPED_SHARE_MAX: f64 = 0.01;

/// The engine may add up one clip's numbers in another order; two recordings are never as near as this.
const SAME_CLIP_DISTANCE_MAX: f64 = 1e-4;

/// Why a clip was not taken as a sample.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Too little speech.
    #[error("it has {found:.1} s of speech, and a sample needs {SPEECH_SECONDS_MIN:.1} s; speak for longer")]
    TooLittleSpeech {
        /// Seconds of speech.
        found: f64,
    },
    /// Hardly any speech for its length.
    #[error("it is mostly silence: {speech:.1} s of speech in {seconds:.1} s; cut it to the speech")]
    MostlySilence {
        /// Seconds of speech.
        speech: f64,
        /// Seconds in all.
        seconds: f64,
    },
    /// Recorded too loud.
    #[error(
        "it is clipped: {percent:.1} % of its samples are at full scale, at most 1 % may be; record with less gain"
    )]
    Clipped {
        /// Share of samples at full scale, in per cent.
        percent: f64,
    },
    /// Another voice.
    #[error(
        "it does not sound like earlier samples of {person}: distance {distance:.2}, at most {most:.2}; if it is the same person, enrol it with --force (over HTTP: ?force=true)"
    )]
    AnotherVoice {
        /// Whose sample it was to be.
        person: String,
        /// Cosine distance to the earlier samples.
        distance: f64,
        /// The largest distance that is taken.
        most: f64,
    },
    /// The same clip as a sample that is kept. A second copy would count one recording twice and add no voice.
    #[error("this clip is enrolled already; record another one")]
    EnrolledAlready,
}

/// Holds what was measured against the limits.
pub(super) fn check_clip(audio: &Audio, speech: &Speech) -> Result<(), Refusal> {
    if speech.seconds < SPEECH_SECONDS_MIN {
        return Err(Refusal::TooLittleSpeech { found: speech.seconds });
    }
    if speech.share < SPEECH_SHARE_MIN {
        return Err(Refusal::MostlySilence { speech: speech.seconds, seconds: audio.seconds() });
    }
    if speech.clipped > CLIPPED_SHARE_MAX {
        return Err(Refusal::Clipped { percent: speech.clipped * 100.0 });
    }
    Ok(())
}

/// Holds the distance to the person's earlier samples against the model's near-miss bound: farther than what could
/// still be the owner on a bad day is somebody else.
pub(super) fn check_cohesion(person: &str, distance: Option<f64>, most: f64) -> Result<(), Refusal> {
    match distance {
        Some(distance) if distance > most => Err(Refusal::AnotherVoice { person: person.to_owned(), distance, most }),
        Some(_) | None => Ok(()),
    }
}

/// Whether two samples are of one clip: what was measured on the audio is equal to the last bit, and so are the voices
/// but for rounding.
pub(super) fn is_same_clip(one: &SampleFeatures, other: &SampleFeatures) -> bool {
    one.fingerprint == other.fingerprint
        && one.seconds.total_cmp(&other.seconds).is_eq()
        && one.quality.total_cmp(&other.quality).is_eq()
        && one.vector.distance(&other.vector).is_some_and(|distance| distance < SAME_CLIP_DISTANCE_MAX)
}
