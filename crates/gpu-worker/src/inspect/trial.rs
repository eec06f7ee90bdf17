//! One run of a graph on made-up sounds: how long its vectors are, and whether they depend on what it is fed.

use std::num::NonZeroU32;

use matcher_core::Embedding;
use ort::session::Session;
use ort::value::TensorRef;

use crate::engine::Clip;
use crate::fbank::RATE;
use crate::front_end::{Encoder, FrontEnd};

/// Two sounds whose vectors are closer than this are the same to the model. Real voices lie ten thousand times as far
/// apart, and rounding a hundred times less.
const SAME: f64 = 1e-5;
/// What it was fed, and what went wrong.
pub(super) struct Failed {
    pub(super) fed: String,
    pub(super) reason: String,
}

/// A graph under trial.
struct Trial<'a> {
    session: &'a mut Session,
    input: &'a str,
    output: &'a str,
    encoder: Encoder,
    columns: Option<usize>,
}

/// Runs the graph on two sounds, and on one of them in two lengths, since a graph may have kept the length that it was
/// exported with. Returns the size of its vectors.
pub(super) fn run(session: &mut Session, input: &str, output: &str, front_end: FrontEnd) -> Result<usize, Failed> {
    let encoder = Encoder::new(front_end);
    let mut trial = Trial { session, input, output, encoder, columns: front_end.columns() };
    let (saw, noise, shorter) = (trial.voiceprint(&saw(3))?, trial.voiceprint(&noise(3))?, trial.voiceprint(&saw(2))?);
    let failed = |reason: &str| Failed { fed: "two different sounds".to_owned(), reason: reason.to_owned() };
    if shorter.size() != saw.size() {
        return Err(Failed { fed: "clips of 3 s and 2 s".to_owned(), ..failed("gave vectors of different sizes") });
    }
    match saw.distance(&noise) {
        Some(distance) if distance > SAME => Ok(saw.size()),
        Some(_) => Err(failed("gave the same vector for both")),
        None => Err(failed("gave vectors of different sizes")),
    }
}

impl Trial<'_> {
    /// The vector of a clip, or of the first of its parts.
    fn voiceprint(&mut self, clip: &Clip) -> Result<Embedding, Failed> {
        let mut values = Vec::new();
        let shape = self.encoder.append(clip, &mut values);
        let shape = shape.map_err(|error| Failed { fed: "a clip".to_owned(), reason: error.to_string() })?;
        let sides: Vec<usize> = [shape.parts, shape.length].into_iter().chain(self.columns).collect();
        let failed = |reason| Failed { fed: format!("{:.0} s of sound as {sides:?}", clip.seconds()), reason };
        let given = self.given(&sides, &values).map_err(|reason| failed(format!("failed: {reason}")))?;
        if given.is_empty() || !given.len().is_multiple_of(shape.parts) {
            return Err(failed(format!("gave {} values for {} inputs", given.len(), shape.parts)));
        }
        let vector = given.chunks_exact(given.len() / shape.parts).next().unwrap_or_default();
        Embedding::new(vector).map_err(|error| failed(format!("gave no voiceprint: {error}")))
    }

    fn given(&mut self, sides: &[usize], values: &[f32]) -> Result<Vec<f32>, String> {
        let failed = |error: ort::Error| error.to_string();
        let view = TensorRef::from_array_view((sides.to_vec(), values)).map_err(failed)?;
        let outputs = self.session.run(ort::inputs![self.input => view]).map_err(failed)?;
        let given = outputs.get(self.output).ok_or_else(|| format!("it gave no `{}`", self.output))?;
        let (_, values) = given.try_extract_tensor::<f32>().map_err(failed)?;
        Ok(values.to_vec())
    }
}

/// A saw of 125 Hz under a slow swell.
fn saw(seconds: u32) -> Clip {
    sound(seconds, |n| (n % 128 - 64) * (16 + n / 64 % 128))
}

/// Noise from a linear congruential generator.
fn noise(seconds: u32) -> Clip {
    let mut state = 1_u32;
    sound(seconds, |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i32::try_from(state >> 18).unwrap_or_default() - 8_192
    })
}

fn sound(seconds: u32, mut sample: impl FnMut(i32) -> i32) -> Clip {
    let count = i32::try_from(seconds * RATE).unwrap_or(i32::MAX);
    let pcm = (0..count).map(|n| i16::try_from(sample(n)).unwrap_or_default()).collect();
    Clip { pcm, sample_rate: NonZeroU32::new(RATE).expect("sixteen thousand is not zero") }
}
