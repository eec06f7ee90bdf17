//! What an ONNX file would be fed, and why: looks at its ports and its metadata, then runs it once on made-up sounds.
//!
//! This happens when a model is added, never when it is used: what is found out here is written into a manifest, which
//! rules from then on. Distances are not found out: sounds that nobody made say nothing about voices. Putting the model
//! where it belongs is [`crate::install`]'s work.

mod ports;
mod trial;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::front_end::FrontEnd;
use crate::onnx;
use crate::runtime::Runtime;

pub use ports::Port;

/// The keys of a graph's metadata that say something about its input or its origin, as sherpa-onnx's converters write
/// them.
const KEYS: [&str; 7] =
    ["framework", "sample_rate", "normalize_samples", "feature_normalize_type", "output_dim", "comment", "license"];

/// What was found out about a graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// What it takes.
    pub inputs: Vec<Port>,
    /// What it gives.
    pub outputs: Vec<Port>,
    /// What its metadata says, as far as it is understood here.
    pub metadata: Vec<(&'static str, String)>,
    /// What it would be fed.
    pub front_end: FrontEnd,
    /// Why: one sentence for each thing that was concluded.
    pub reasons: Vec<String>,
    /// Values in one vector.
    pub dimension: usize,
}

/// Why a graph cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The runtime cannot load it.
    #[error("cannot load `{}`: {reason}", path.display())]
    Load {
        /// Which file.
        path: PathBuf,
        /// What the runtime says.
        reason: String,
    },
    /// It takes or gives something that no front end here fits.
    #[error("`{}` cannot be fed: {reason}", path.display())]
    Unfit {
        /// Which file.
        path: PathBuf,
        /// What does not fit, and what would.
        reason: String,
    },
    /// It fails on a clip, or its vectors are of no use.
    #[error("`{}` was fed {fed} and {reason}", path.display())]
    Trial {
        /// Which file.
        path: PathBuf,
        /// What it was fed.
        fed: String,
        /// What went wrong.
        reason: String,
    },
}

impl InspectError {
    /// The same error of another file: a copy is inspected, and its original is what its owner knows.
    pub(crate) fn at(self, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::Load { reason, .. } => Self::Load { path, reason },
            Self::Unfit { reason, .. } => Self::Unfit { path, reason },
            Self::Trial { fed, reason, .. } => Self::Trial { path, fed, reason },
        }
    }
}

/// Inspects a graph. `told` is the front end when somebody knows it; then nothing is concluded, but still tried.
///
/// # Errors
/// When the graph cannot be loaded, fits no front end, or gives no vectors that depend on its input.
pub fn inspect(runtime: &'static Runtime, graph: &Path, told: Option<FrontEnd>) -> Result<Findings, InspectError> {
    let path = || graph.to_owned();
    let mut session = onnx::session(runtime, graph).map_err(|reason| InspectError::Load { path: path(), reason })?;
    let inputs: Vec<Port> = session.inputs().iter().map(Port::of).collect();
    let outputs: Vec<Port> = session.outputs().iter().map(Port::of).collect();
    let metadata = metadata(&session);
    let mut reasons = Vec::new();
    let unfit = |reason| InspectError::Unfit { path: path(), reason };
    let front_end = match told {
        Some(front_end) => {
            reasons.push("the front end was named".to_owned());
            front_end
        }
        None => ports::front_end(&inputs, &metadata, &mut reasons).map_err(unfit)?,
    };
    let input = ports::input(&inputs, &front_end).map_err(unfit)?;
    let output = ports::output(&outputs).map_err(unfit)?;
    let tried = trial::run(&mut session, &input, &output, front_end);
    let dimension = tried.map_err(|trial::Failed { fed, reason }| InspectError::Trial { path: path(), fed, reason })?;
    reasons.push(format!("on made-up sounds `{output}` gave {dimension} values, which change with the sound"));
    Ok(Findings { inputs, outputs, metadata, front_end, reasons, dimension })
}

fn metadata(session: &ort::session::Session) -> Vec<(&'static str, String)> {
    let Ok(metadata) = session.metadata() else { return Vec::new() };
    KEYS.into_iter().filter_map(|key| Some((key, metadata.custom(key)?))).collect()
}
