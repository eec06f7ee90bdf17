//! How a model is best run on a provider: clips in one run, how long the first waits for the others, threads a session.
//!
//! It stands in the model's manifest, by provider, where `rollcall bench extract --tune` writes what it measured. A
//! provider without an entry runs clip by clip on one thread.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::manifest::ManifestError;
use crate::provider::Provider;

/// Clips in one run, at most: 64 of ten seconds take a device about 2 GB.
const BATCH_MAX: usize = 64;
/// Milliseconds, at most: longer than a run on a device takes, waiting costs more than it brings.
const WAIT_MAX_MS: f64 = 100.0;
/// Threads of one session, at most: more than a large machine's cores.
const THREADS_MAX: usize = 256;

/// What was measured to be best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tuning {
    /// Clips of one shape in one run, at most.
    pub batch_max: NonZeroUsize,
    /// Milliseconds that the first of them waits for others, at most.
    pub batch_wait_ms: f64,
    /// Threads of one session.
    pub threads: NonZeroUsize,
}

/// Tunings by provider.
pub type Tunings = BTreeMap<Provider, Tuning>;

impl Default for Tuning {
    fn default() -> Self {
        Self { batch_max: NonZeroUsize::MIN, batch_wait_ms: 0.0, threads: NonZeroUsize::MIN }
    }
}

impl Tuning {
    /// [`Tuning::batch_wait_ms`], as a time.
    #[must_use]
    pub fn batch_wait(&self) -> Duration {
        Duration::from_secs_f64(self.batch_wait_ms / 1_000.0)
    }

    /// What must be otherwise, when a value is out of its range.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let Self { batch_max, batch_wait_ms, threads } = *self;
        if batch_max.get() > BATCH_MAX {
            return Some("a table whose `batch_max` lies from 1 to 64");
        }
        if !(0.0..=WAIT_MAX_MS).contains(&batch_wait_ms) {
            return Some("a table whose `batch_wait_ms` lies from 0 to 100");
        }
        (threads.get() > THREADS_MAX).then_some("a table whose `threads` lies from 1 to 256")
    }
}

/// Writes a tuning into a manifest file and leaves everything else in it as it is.
///
/// # Errors
/// When the file cannot be read or written, or is no JSON object.
pub fn write(path: &Path, provider: Provider, tuning: &Tuning) -> Result<(), ManifestError> {
    let unreadable = |source| ManifestError::Unreadable { path: path.to_owned(), source };
    let malformed = |source| ManifestError::Malformed { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let mut manifest: Fields = serde_json::from_str(&text).map_err(malformed)?;
    let tunings = manifest.get("tuning").cloned().map(serde_json::from_value::<Tunings>);
    let mut tunings = tunings.transpose().map_err(malformed)?.unwrap_or_default();
    tunings.insert(provider, *tuning);
    manifest.set("tuning", serde_json::to_value(tunings).map_err(malformed)?);
    let text = serde_json::to_string_pretty(&manifest).map_err(malformed)?;
    // Whole or not at all: a manifest that is cut off is a model that is gone.
    let fresh = path.with_extension("json.new");
    let unwritable = |source| ManifestError::Unwritable { path: path.to_owned(), source };
    std::fs::write(&fresh, format!("{text}\n")).map_err(unwritable)?;
    std::fs::rename(&fresh, path).map_err(unwritable)
}

/// The fields of a JSON object in their order, which is whoever wrote them's.
struct Fields(Vec<(String, Value)>);

impl Fields {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    fn set(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|(field, _)| field == name) {
            Some((_, place)) => *place = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;
    use crate::scripted;

    fn tuning(batch_max: usize) -> Tuning {
        Tuning { batch_max: NonZeroUsize::new(batch_max).unwrap(), batch_wait_ms: 2.5, ..Tuning::default() }
    }

    #[test]
    fn a_tuning_is_written_beside_the_others_and_nothing_else_changes() {
        let folder = std::env::temp_dir().join(format!("rollcall-tuning-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(Manifest::FILE_NAME);
        let plain = scripted::manifest();
        let before = serde_json::to_string_pretty(&plain).unwrap();
        std::fs::write(&path, &before).unwrap();
        assert!(!std::fs::read_to_string(&path).unwrap().contains("tuning"), "without a tuning there is no table");
        write(&path, Provider::Cuda, &tuning(16)).unwrap();
        write(&path, Provider::Cpu, &Tuning::default()).unwrap();
        write(&path, Provider::Cuda, &tuning(8)).unwrap();
        let after = std::fs::read_to_string(&path).unwrap();
        assert!(after.starts_with(before.trim_end_matches(['\n', '}'])), "{after}");
        let read = Manifest::read(&path).unwrap();
        let expected = [(Provider::Cpu, Tuning::default()), (Provider::Cuda, tuning(8))].into();
        assert_eq!(read, Manifest { tuning: expected, ..plain });
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_value_out_of_its_range_is_refused() {
        assert_eq!(tuning(64).fault(), None);
        let threads = NonZeroUsize::new(257).unwrap();
        for (wrong, field) in [
            (tuning(65), "batch_max"),
            (Tuning { batch_wait_ms: -1.0, ..tuning(1) }, "batch_wait_ms"),
            (Tuning { batch_wait_ms: f64::NAN, ..tuning(1) }, "batch_wait_ms"),
            (Tuning { threads, ..tuning(1) }, "threads"),
        ] {
            assert!(wrong.fault().unwrap().contains(field));
        }
    }
}
