//! A manifest on its way: everything about the model is known, and perhaps not yet its distances.
//!
//! Distances that are not known are zero, so that nobody is ever named by them: a distance is strictly below a threshold
//! or not at all. They are never guessed.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Manifest, ManifestError};

/// The fields that hold distances.
const DISTANCES: [&str; 9] = [
    "threshold",
    "margin",
    "near_miss_bound",
    "suggestion_bound",
    "suggestion_margin",
    "near_owner_bound",
    "grouping",
    "reconnect",
    LEVELS,
];
/// The one that holds three.
const LEVELS: &str = "levels";

/// A manifest whose distances may be missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    manifest: Manifest,
    missing: Vec<&'static str>,
}

/// Why a distance was not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DistanceError {
    /// There is no such field.
    #[error("there is no distance `{field}`; there are {}", DISTANCES.join(", "))]
    Unknown {
        /// What was named.
        field: String,
    },
    /// It is no number, or not three of them.
    #[error("`{field}` is `{value}` and must be {expected}")]
    Value {
        /// Which field.
        field: &'static str,
        /// What was given.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
}

impl Draft {
    /// `manifest` without any of its distances.
    #[must_use]
    pub fn without_distances(manifest: Manifest) -> Self {
        Self { manifest: unset(manifest), missing: DISTANCES.to_vec() }
    }

    /// Reads a manifest file, complete or not.
    ///
    /// # Errors
    /// When the file cannot be read, or is not JSON of this shape.
    pub fn read(path: &Path) -> Result<Self, ManifestError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ManifestError::Unreadable { path: path.to_owned(), source })?;
        let malformed = |source| ManifestError::Malformed { path: path.to_owned(), source };
        // Read whole first: an error then names its line and column.
        let whole = match serde_json::from_str(&text) {
            Ok(manifest) => return Ok(Self { manifest, missing: Vec::new() }),
            Err(error) => error,
        };
        let Ok(mut fields) = serde_json::from_str::<Map<String, Value>>(&text) else { return Err(malformed(whole)) };
        let missing: Vec<_> = DISTANCES.into_iter().filter(|field| !fields.contains_key(*field)).collect();
        if missing.is_empty() {
            return Err(malformed(whole));
        }
        for field in &missing {
            fields.insert((*field).to_owned(), if *field == LEVELS { Value::from(vec![0.0; 3]) } else { 0.0.into() });
        }
        let manifest = serde_json::from_value(Value::Object(fields)).map_err(malformed)?;
        Ok(Self { manifest, missing })
    }

    /// The same distances for a manifest that `describe` makes of this one's.
    #[must_use]
    pub fn described(self, describe: impl FnOnce(Manifest) -> Manifest) -> Self {
        Self { manifest: describe(self.manifest), ..self }
    }

    /// The manifest, complete or not.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The fields that are missing.
    #[must_use]
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// Sets one distance, `value` being a number, or three with commas between them for `levels`. Whether the distances go
    /// together is looked at by [`Draft::finish`].
    ///
    /// # Errors
    /// When there is no such field, or the value is no distance.
    pub fn set(&mut self, field: &str, value: &str) -> Result<(), DistanceError> {
        let unknown = || DistanceError::Unknown { field: field.to_owned() };
        let field = DISTANCES.into_iter().find(|known| *known == field).ok_or_else(unknown)?;
        let wrong = |expected| DistanceError::Value { field, value: value.to_owned(), expected };
        let numbers: Option<Vec<f64>> = value.split(',').map(|part| part.trim().parse().ok()).collect();
        let numbers = numbers.filter(|numbers| numbers.iter().all(|number| (0.0..=2.0).contains(number)));
        let expected = if field == LEVELS { "three distances with commas between" } else { "a number from 0 to 2" };
        let numbers = numbers.ok_or_else(|| wrong(expected))?;
        if field == LEVELS {
            self.manifest.levels = numbers.try_into().map_err(|_| wrong(expected))?;
        } else {
            let [number] = numbers.try_into().map_err(|_| wrong(expected))?;
            *self.distance(field).ok_or_else(unknown)? = number;
        }
        self.missing.retain(|missing| *missing != field);
        Ok(())
    }

    fn distance(&mut self, field: &str) -> Option<&mut f64> {
        let manifest = &mut self.manifest;
        Some(match field {
            "threshold" => &mut manifest.threshold,
            "margin" => &mut manifest.margin,
            "near_miss_bound" => &mut manifest.near_miss_bound,
            "suggestion_bound" => &mut manifest.suggestion_bound,
            "suggestion_margin" => &mut manifest.suggestion_margin,
            "near_owner_bound" => &mut manifest.near_owner_bound,
            "grouping" => &mut manifest.grouping,
            "reconnect" => &mut manifest.reconnect,
            _ => return None,
        })
    }

    /// The complete manifest. `path` is where it was read from, for errors.
    ///
    /// # Errors
    /// When distances are missing, or a field is out of its range.
    pub fn finish(self, path: &Path) -> Result<Manifest, ManifestError> {
        if !self.missing.is_empty() {
            return Err(ManifestError::Undecided { path: path.to_owned(), fields: self.missing });
        }
        checked(self.manifest, path)
    }

    /// The manifest to calibrate with: when distances are missing it has none, so that nobody is named by the others.
    ///
    /// # Errors
    /// When a field is out of its range.
    pub fn to_calibrate(self, path: &Path) -> Result<Manifest, ManifestError> {
        let manifest = if self.missing.is_empty() { self.manifest } else { unset(self.manifest) };
        checked(manifest, path)
    }

    /// The file's text: JSON, without what is missing.
    #[must_use]
    pub fn text(&self) -> String {
        let mut fields =
            serde_json::to_value(&self.manifest).expect("a manifest of plain numbers and text is valid JSON");
        if let Value::Object(fields) = &mut fields {
            fields.retain(|field, _| !self.missing.contains(&field.as_str()));
        }
        format!("{fields:#}\n")
    }
}

fn checked(manifest: Manifest, path: &Path) -> Result<Manifest, ManifestError> {
    match manifest.fault() {
        Some((field, expected)) => Err(ManifestError::Field { path: path.to_owned(), field, expected }),
        None => Ok(manifest),
    }
}

fn unset(manifest: Manifest) -> Manifest {
    Manifest {
        threshold: 0.0,
        margin: 0.0,
        near_miss_bound: 0.0,
        suggestion_bound: 0.0,
        suggestion_margin: 0.0,
        near_owner_bound: 0.0,
        grouping: 0.0,
        reconnect: 0.0,
        levels: [0.0; 3],
        ..manifest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted;

    const PATH: &str = "/nowhere/manifest.json";

    #[test]
    fn a_draft_is_complete_when_every_distance_was_set() {
        let complete = scripted::manifest();
        let fields = serde_json::to_value(&complete).unwrap();
        let mut draft = Draft::without_distances(complete.clone());
        for field in DISTANCES {
            let refused = draft.clone().finish(Path::new(PATH)).unwrap_err().to_string();
            assert!(refused.contains(field) && refused.contains("rollcall calibrate"), "{refused}");
            draft.set(field, fields[field].to_string().trim_matches(['[', ']'])).unwrap();
        }
        assert_eq!(draft.finish(Path::new(PATH)).unwrap(), complete);
    }

    #[test]
    fn what_is_missing_is_not_written_and_reads_as_missing() {
        let folder = std::env::temp_dir().join(format!("rollcall-draft-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(Manifest::FILE_NAME);
        let mut draft = Draft::without_distances(scripted::manifest());
        draft.set("margin", "0.2").unwrap();
        std::fs::write(&path, draft.text()).unwrap();
        let read = Draft::read(&path).unwrap();
        assert_eq!(read, draft);
        assert!(matches!(Manifest::read(&path), Err(ManifestError::Undecided { fields, .. }) if fields.len() == 8));
        let to_calibrate = read.to_calibrate(&path).unwrap();
        assert_eq!((to_calibrate.threshold, to_calibrate.margin), (0.0, 0.0), "nobody is named");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_distance_that_is_none_is_refused_by_its_fields_name() {
        let mut draft = Draft::without_distances(scripted::manifest());
        for (field, value, says) in [
            ("treshold", "0.5", "near_miss_bound"),
            ("threshold", "half", "`threshold`"),
            ("threshold", "2.5", "0 to 2"),
            ("threshold", "0.5,0.6", "a number"),
            ("levels", "0.5", "three"),
            ("margin", "NaN", "`margin`"),
        ] {
            let error = draft.set(field, value).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert_eq!(draft.missing().len(), 9);
    }
}
