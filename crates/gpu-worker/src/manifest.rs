//! What a speaker model is: its file, its front end and the distances at which its vectors mean something.
//!
//! Thresholds belong to the model; no field is ever computed from another. A manifest that lacks some of them is a
//! [`Draft`]: its model can be calibrated, and names nobody until they are there.

mod draft;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::front_end::FrontEnd;
use crate::tuning::{Tuning, Tunings};

pub use draft::{DistanceError, Draft};

/// Speaker models give 128 to 512 values; eight times that is surely a slip of the pen.
const DIMENSION_MAX: usize = 4096;

/// A model manifest (`manifest.json` beside the model file). Distances are cosine distances, 0 to 2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Short name, as in `--model NAME`.
    pub name: String,
    /// File name of the ONNX graph, beside the manifest.
    pub file: String,
    /// SHA-256 of the ONNX file, lower-case hex. Voiceprints of another fingerprint are never compared.
    pub fingerprint: String,
    /// How audio becomes input.
    pub front_end: FrontEnd,
    /// Values in one voiceprint.
    pub dimension: usize,
    /// A voice is a person when the distance is strictly below.
    pub threshold: f64,
    /// ... and the next person is at least this much farther.
    pub margin: f64,
    /// An owner at a distance from `threshold` up to (not including) this is a near miss.
    pub near_miss_bound: f64,
    /// A pinned person at a distance from `threshold` up to (not including) this is suggested, when the margin holds.
    pub suggestion_bound: f64,
    /// A pinned person below `threshold` whose runner-up is at least this much, and less than `margin`, farther is suggested.
    pub suggestion_margin: f64,
    /// A rejected voice whose best print is the owner, nearer than this, is examined earlier.
    pub near_owner_bound: f64,
    /// Two voices of different provider streams closer than this are one voice.
    pub grouping: f64,
    /// A reconnecting owner is recognised after two seconds below this.
    pub reconnect: f64,
    /// Candidate levels 3, 2 and 1 lie below these distances.
    pub levels: [f64; 3],
    /// How the model is best run, by provider: measured by `rollcall bench extract --tune`, and optional.
    #[serde(default, skip_serializing_if = "Tunings::is_empty")]
    pub tuning: Tunings,
    /// Where the model comes from and under which licence.
    pub source: String,
}

/// Why a manifest cannot be used. The message names the file and the field.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file cannot be read.
    #[error("cannot read the manifest `{}`: {source}", path.display())]
    Unreadable {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the manifest `{}`: {source}", path.display())]
    Unwritable {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a manifest.
    #[error("`{}` is not a model manifest: {source}; `rollcall model install` writes that of a shipped model anew", path.display())]
    Malformed {
        /// Where.
        path: PathBuf,
        /// What is wrong with it, with line and column.
        source: serde_json::Error,
    },
    /// The distances are not all there.
    #[error(
        "`{}` lacks {}, and no model is used without; measure its distances with `rollcall calibrate --model NAME` and set \
         each with `rollcall model add NAME --distance FIELD=VALUE`, or, for a shipped model, run `rollcall model install`",
        path.display(), fields.join(", ")
    )]
    Undecided {
        /// Where.
        path: PathBuf,
        /// The fields that are missing.
        fields: Vec<&'static str>,
    },
    /// A field holds something that makes no sense.
    #[error("`{}`: `{field}` must be {expected}", path.display())]
    Field {
        /// Where.
        path: PathBuf,
        /// Which field.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

impl Manifest {
    /// The name of the manifest's file, beside the model's.
    pub const FILE_NAME: &str = "manifest.json";

    /// Reads and checks a manifest file.
    ///
    /// # Errors
    /// When the file cannot be read, is not JSON of this shape, lacks distances, or a field is out of its range.
    pub fn read(path: &Path) -> Result<Self, ManifestError> {
        Draft::read(path)?.finish(path)
    }

    /// The first field out of its range, and what it must be.
    fn fault(&self) -> Option<(&'static str, &'static str)> {
        let distances = [
            ("threshold", self.threshold),
            ("margin", self.margin),
            ("near_miss_bound", self.near_miss_bound),
            ("suggestion_bound", self.suggestion_bound),
            ("suggestion_margin", self.suggestion_margin),
            ("near_owner_bound", self.near_owner_bound),
            ("grouping", self.grouping),
            ("reconnect", self.reconnect),
        ];
        let levels = self.levels.iter().map(|level| ("levels", *level));
        // `contains` is false for NaN, which no distance may be.
        let distance = distances.into_iter().chain(levels).find(|(_, value)| !(0.0..=2.0).contains(value));
        if let Some((field, _)) = distance {
            return Some((field, "a cosine distance from 0 to 2"));
        }
        if self.suggestion_bound < self.threshold {
            return Some(("suggestion_bound", "at least `threshold`, where suggestions begin"));
        }
        if self.suggestion_margin > self.margin {
            return Some(("suggestion_margin", "at most `margin`, where suggestions end"));
        }
        if !self.levels.is_sorted() {
            return Some(("levels", "three distances in rising order"));
        }
        if !(1..=DIMENSION_MAX).contains(&self.dimension) {
            return Some(("dimension", "a number of values from 1 to 4096"));
        }
        if let Some(expected) = self.tuning.values().find_map(Tuning::fault) {
            return Some(("tuning", expected));
        }
        if let Some(expected) = self.front_end.fault() {
            return Some(("front_end", expected));
        }
        let hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if self.fingerprint.len() != 64 || !self.fingerprint.bytes().all(hex) {
            return Some(("fingerprint", "the SHA-256 of the model file in 64 lower-case hex digits"));
        }
        if self.file.is_empty() || self.file.contains('/') {
            return Some(("file", "the name of a file beside the manifest, without folders"));
        }
        self.name.is_empty().then_some(("name", "a short name"))
    }
}
