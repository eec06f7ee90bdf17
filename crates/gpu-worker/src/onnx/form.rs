//! In which form a graph is run: as its file has it, or with cheaper nodes in some places, see [`crate::graph`].
//!
//! The file, and with it the fingerprint, is the model's; the cheaper form is made in memory and never written. It is
//! used only after it was seen to give what the file's own graph gives.

use std::num::NonZeroU32;
use std::path::Path;

use super::{Model, OnnxExtractor, Site};
use crate::engine::Clip;
use crate::extractor::{BuildError, Extractor as _};
use crate::fbank::RATE;
use crate::graph;
use crate::provider::Provider;
use crate::runtime::Runtime;

/// How far the two forms' values may lie apart, as a share of the largest. The shipped model's differ by 3e-6; batches of
/// other sizes and other processors' instructions differ as much.
const APART_MAX: f32 = 1e-4;
/// Lengths on which they are compared: within one segment of the shipped model, and over several, the last one partly.
const SECONDS_TENTHS: [u32; 2] = [11, 47];

/// In which form a graph is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// As the file has it.
    #[default]
    AsFiled,
    /// With cheaper nodes where they mean the same.
    Faster,
}

/// The cheaper form of a graph, when it has one.
pub(super) fn faster(graph: &Path) -> Option<Vec<u8>> {
    graph::faster(&std::fs::read(graph).ok()?)
}

/// The form to run a model in: the faster one on the processors, when it gives the same vectors.
pub(super) fn best(runtime: &'static Runtime, model: &Model, provider: Provider) -> Form {
    if provider != Provider::Cpu {
        return Form::AsFiled;
    }
    match apart(runtime, model) {
        Ok(apart) if apart <= APART_MAX => {
            tracing::debug!(apart, "the graph's faster form gives the same vectors and is used");
            Form::Faster
        }
        Ok(apart) => {
            tracing::warn!(apart, "the graph's faster form gives other vectors and is not used");
            Form::AsFiled
        }
        Err(reason) => {
            tracing::debug!(reason = %reason.0, "the graph is used as its file has it");
            Form::AsFiled
        }
    }
}

/// How far the vectors of the two forms lie apart.
fn apart(runtime: &'static Runtime, model: &Model) -> Result<f32, BuildError> {
    if faster(model.graph()).is_none() {
        return Err(BuildError("there is nothing to make faster".to_owned()));
    }
    let open = |form| OnnxExtractor::open_on(runtime, model, Site { form, ..Site::default() });
    let (mut filed, mut faster) = (open(Form::AsFiled)?, open(Form::Faster)?);
    let mut apart = 0.0_f32;
    for tenths in SECONDS_TENTHS {
        let clip = noise(tenths * RATE / 10);
        let extract = |extractor: &mut OnnxExtractor| extractor.extract(&clip).map_err(|e| BuildError(e.to_string()));
        let (filed, faster) = (extract(&mut filed)?, extract(&mut faster)?);
        let largest = filed.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
        // Not `fold(max)`: what is not a number must not vanish in a comparison.
        for (a, b) in filed.iter().zip(&faster) {
            let share = (a - b).abs() / largest;
            apart = if share <= apart { apart } else { share };
        }
    }
    Ok(apart)
}

/// So many samples of noise at 16 kHz, always the same.
pub(super) fn noise(samples: u32) -> Clip {
    let mut state = 3_u32;
    let sample = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i16::try_from(state >> 19).unwrap_or(0) - 4_096
    };
    let rate = NonZeroU32::new(RATE).expect("sixteen thousand is not zero");
    Clip { pcm: (0..samples).map(sample).collect(), sample_rate: rate }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_graph_has_no_faster_form() {
        for bytes in [&b""[..], b"not a graph", &[0x3a, 0x02, 0x0a], &[0x3a, 0x00]] {
            assert_eq!(graph::faster(bytes), None);
        }
    }
}
