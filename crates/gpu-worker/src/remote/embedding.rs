//! The embedding service on the wire: a clip as a WAV file in a multipart form, and a vector out of the JSON that comes
//! back. Nothing is sent here.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use serde::Deserialize;

use crate::engine::Clip;
use crate::extractor::ExtractError;

use super::fault::Fault;

/// The service refuses less than half a second.
const SECONDS_MIN: f64 = 0.5;
/// As long as the audio that a socket keeps, and as the longest clip of a model that runs here.
const SECONDS_MAX: f64 = 60.0;
/// Bytes of a WAV file before its samples.
const WAV_HEAD_BYTES: u32 = 44;

/// Checks that the service takes a clip of this length.
pub(super) fn check(clip: &Clip) -> Result<(), ExtractError> {
    let seconds = clip.seconds();
    if (SECONDS_MIN..=SECONDS_MAX).contains(&seconds) {
        return Ok(());
    }
    let reason = format!("the clip is {seconds:.2} s long and must have from {SECONDS_MIN} to {SECONDS_MAX} s");
    Err(ExtractError::Encoding(reason))
}

/// Writes the form into `body` and returns its content type.
pub(super) fn write(clip: &Clip, body: &mut Vec<u8>) -> String {
    let boundary = boundary();
    body.clear();
    body.extend(format!("--{boundary}\r\n").bytes());
    body.extend(b"Content-Disposition: form-data; name=\"file\"; filename=\"clip.wav\"\r\n");
    body.extend(b"Content-Type: audio/wav\r\n\r\n");
    write_wav(clip, body);
    body.extend(format!("\r\n--{boundary}--\r\n").bytes());
    format!("multipart/form-data; boundary={boundary}")
}

/// Another one for each form, so that no speaker can utter samples that end the file early.
fn boundary() -> String {
    let number = || RandomState::new().build_hasher().finish();
    format!("rollcall-{:016x}{:016x}", number(), number())
}

fn write_wav(clip: &Clip, body: &mut Vec<u8>) {
    let rate = clip.sample_rate.get();
    let data = u32::try_from(clip.pcm.len() * 2).expect("a checked clip has at most a minute");
    body.extend(b"RIFF");
    body.extend((data + WAV_HEAD_BYTES - 8).to_le_bytes());
    body.extend(b"WAVEfmt ");
    body.extend(16_u32.to_le_bytes());
    // Plain samples, one channel.
    body.extend([1_u16, 1].iter().flat_map(|value| value.to_le_bytes()));
    body.extend([rate, rate.saturating_mul(2)].iter().flat_map(|value| value.to_le_bytes()));
    // Bytes and bits of a sample.
    body.extend([2_u16, 16].iter().flat_map(|value| value.to_le_bytes()));
    body.extend(b"data");
    body.extend(data.to_le_bytes());
    body.extend(clip.pcm.iter().flat_map(|sample| sample.to_le_bytes()));
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Reply {
    Bare(Values),
    Named { embedding: Values },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    One(Vec<f32>),
    Rows(Vec<Vec<f32>>),
}

/// Reads the vector: a bare array, an array that holds one array, or either as `embedding` of an object.
pub(super) fn read(body: &[u8]) -> Result<Vec<f32>, Fault> {
    // What serde would say may quote the values.
    let Ok(reply) = serde_json::from_slice(body) else {
        return Err(Fault::NotAnAnswer("it is no JSON array, and no object with an `embedding` array"));
    };
    let (Reply::Bare(values) | Reply::Named { embedding: values }) = reply;
    match values {
        Values::One(vector) => Ok(vector),
        Values::Rows(rows) => match <[Vec<f32>; 1]>::try_from(rows) {
            Ok([vector]) => Ok(vector),
            Err(_) => Err(Fault::NotAnAnswer("it holds several vectors for one clip")),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn clip(samples: usize, rate: u32) -> Clip {
        Clip { pcm: vec![-2; samples].into(), sample_rate: NonZeroU32::new(rate).unwrap() }
    }

    #[test]
    fn the_form_holds_one_wav_file_at_the_clips_own_rate() {
        let mut body = vec![7];
        let kind = write(&clip(8_000, 8_000), &mut body);
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        let text = String::from_utf8_lossy(&body).into_owned();
        assert!(text.starts_with(&format!("--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=")));
        assert!(text.ends_with(&format!("\r\n--{boundary}--\r\n")));
        let start = body.windows(4).position(|bytes| bytes == b"RIFF").unwrap();
        let wav = &body[start..body.len() - boundary.len() - 8];
        assert_eq!(wav.len(), 44 + 16_000);
        assert_eq!(wav[4..8], 16_036_u32.to_le_bytes());
        assert_eq!(wav[24..28], 8_000_u32.to_le_bytes());
        assert_eq!(wav[44..46], (-2_i16).to_le_bytes());
        assert_ne!(kind, write(&clip(8_000, 8_000), &mut body), "every form has its own boundary");
    }

    #[test]
    fn clips_that_the_service_refuses_are_not_sent() {
        assert_eq!(check(&clip(8_000, 16_000)), Ok(()));
        for samples in [0, 7_999, 960_001] {
            assert!(matches!(check(&clip(samples, 16_000)), Err(ExtractError::Encoding(_))), "{samples}");
        }
    }

    #[test]
    fn every_form_of_answer_is_read() {
        for text in ["[1, -2.5]", "[[1, -2.5]]", r#"{"embedding":[1,-2.5]}"#, r#"{"n":2,"embedding":[[1,-2.5]]}"#] {
            assert_eq!(read(text.as_bytes()), Ok(vec![1.0, -2.5]), "{text}");
        }
    }

    #[test]
    fn what_is_no_vector_is_refused_without_quoting_it() {
        for text in ["", "{}", "[NaN]", r#"["0.123"]"#, "[[1],[2]]", r#"{"embedding":"secret"}"#, "[1] [2]", "null"] {
            let fault = read(text.as_bytes()).unwrap_err();
            assert!(matches!(fault, Fault::NotAnAnswer(_)), "{text}");
            assert!(!fault.to_string().contains("secret"));
        }
    }
}
