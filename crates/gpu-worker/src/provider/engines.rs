//! What TensorRT is told about a model: for which shapes it builds its engine, and where it keeps what it built.
//!
//! Left to itself it builds an engine anew, for minutes, whenever a clip is longer or shorter than all before it, and
//! that within a query. With the shapes of every clip that a front end lets pass it builds one, when the session is made.

use std::path::PathBuf;

use ort::ep;

use crate::front_end::{FRAMES_MAX, FRAMES_MIN, FrontEnd};
use crate::manifest::Manifest;
use crate::mel::PART_FRAMES;
use crate::onnx::Model;

/// The length for which an engine is fastest: five seconds, where most queries lie.
const FRAMES_USUAL: usize = 500;

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Engines {
    smallest: String,
    usual: String,
    largest: String,
    /// None where the model's folder cannot be written: then every start builds anew.
    folder: Option<PathBuf>,
}

impl Engines {
    /// For a model whose input has this name.
    pub(crate) fn of(model: &Model, input: &str) -> Self {
        let folder = model.graph().with_file_name("tensorrt");
        let made = std::fs::create_dir_all(&folder);
        if let Err(error) = &made {
            tracing::warn!(folder = %folder.display(), %error, "TensorRT's engine is not kept: every start builds it");
        }
        Self::with(model.manifest(), input, made.is_ok().then_some(folder))
    }

    fn with(manifest: &Manifest, input: &str, folder: Option<PathBuf>) -> Self {
        let batch = manifest.tuning.get(&super::Provider::TensorRt).map_or(1, |tuning| tuning.batch_max.get());
        let [smallest, usual, largest] = sides(manifest.front_end, batch).map(|sides| {
            let sides: Vec<String> = sides.iter().map(usize::to_string).collect();
            format!("{input}:{}", sides.join("x"))
        });
        Self { smallest, usual, largest, folder }
    }

    pub(super) fn tell(&self, provider: ep::TensorRT) -> ep::TensorRT {
        let told = provider
            .with_profile_min_shapes(&self.smallest)
            .with_profile_opt_shapes(&self.usual)
            .with_profile_max_shapes(&self.largest);
        let Some(folder) = &self.folder else { return told };
        let folder = folder.to_string_lossy();
        told.with_engine_cache(true)
            .with_engine_cache_path(&folder)
            .with_timing_cache(true)
            .with_timing_cache_path(folder)
    }
}

/// The input's sides for the shortest clip, a usual one, and the longest ones that share a run.
fn sides(front_end: FrontEnd, batch: usize) -> [Vec<usize>; 3] {
    match front_end {
        FrontEnd::KaldiFbank80Cmn(_) => {
            let columns = front_end.columns().unwrap_or(1);
            [vec![1, FRAMES_MIN, columns], vec![1, FRAMES_USUAL, columns], vec![batch, FRAMES_MAX, columns]]
        }
        // A clip is a batch of parts already, and shares a run with no other.
        FrontEnd::LibrosaMel40(mel) => {
            let columns = front_end.columns().unwrap_or(1);
            let parts = |frames: usize| frames / mel.step_frames.max(1) + 1;
            [1, parts(FRAMES_USUAL), parts(FRAMES_MAX)].map(|parts| vec![parts, PART_FRAMES, columns])
        }
        FrontEnd::Waveform(_) => {
            // A hundred frames a second, and the rest of a window.
            let samples = |frames: usize| usize::try_from(front_end.sample_rate()).unwrap_or(usize::MAX) / 100 * frames;
            [vec![1, samples(FRAMES_MIN)], vec![1, samples(FRAMES_USUAL)], vec![batch, samples(FRAMES_MAX + 10)]]
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroUsize};

    use super::*;
    use crate::front_end::{LibrosaMel, Waveform};
    use crate::provider::Provider;
    use crate::scripted;
    use crate::tuning::Tuning;

    #[test]
    fn an_engine_is_built_for_every_clip_that_the_front_end_lets_pass() {
        let tuning = Tuning { batch_max: NonZeroUsize::new(4).unwrap(), ..Tuning::default() };
        let manifest = Manifest { tuning: [(Provider::TensorRt, tuning)].into(), ..scripted::manifest() };
        let engines = Engines::with(&manifest, "x", None);
        assert_eq!(engines.smallest, "x:1x48x80");
        assert_eq!((engines.usual.as_str(), engines.largest.as_str()), ("x:1x500x80", "x:4x6000x80"));
        let mel = sides(FrontEnd::LibrosaMel40(LibrosaMel::default()), 4);
        assert_eq!(mel, [vec![1, 160, 40], vec![7, 160, 40], vec![78, 160, 40]]);
        let wave = Waveform { sample_rate: NonZeroU32::new(16_000).unwrap() };
        assert_eq!(sides(FrontEnd::Waveform(wave), 2), [vec![1, 7_680], vec![1, 80_000], vec![2, 961_600]]);
    }
}
