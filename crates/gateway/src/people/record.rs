//! A person as matching sees one: name, ownership, pin, and the mean of the samples that the current model made.
//!
//! Vectors of other models stay in the store and are named here, so that somebody can say "enrol again"; they are never
//! compared with anything.

use std::collections::{BTreeMap, BTreeSet};

use gpu_worker::Manifest;
use matcher_core::{Centroid, Embedding};

use crate::store::{Sample, Store, StoreError};

/// One enrolled person, as of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct PersonRecord {
    /// The id by which clients name the person.
    pub id: String,
    /// The name that people read.
    pub name: String,
    /// Whether this is the owner.
    pub is_owner: bool,
    /// Whether this person is suggested where a voice comes close and does not suffice for a name.
    pub is_pinned: bool,
    /// The voiceprint; `None` while there is no sample of the current model.
    pub print: Option<Embedding>,
    /// Seconds of speech behind the print.
    pub seconds: f64,
    /// Samples behind the print.
    pub samples: usize,
    /// Seconds of speech in samples that the model in use cannot judge.
    pub other_seconds: f64,
    /// Samples that the model in use cannot judge.
    pub other_samples: usize,
    /// Fingerprints of other models that this person has samples of.
    pub other_models: Vec<String>,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970.
    pub updated_ms: i64,
}

impl PersonRecord {
    /// Whether the person was enrolled, but only with other models.
    #[must_use]
    pub fn needs_enrolment(&self) -> bool {
        self.print.is_none() && !self.other_models.is_empty()
    }

    /// Cosine distance, 0 to 2, from the person's voiceprint; `None` while there is none.
    #[must_use]
    pub fn distance(&self, voice: &Embedding) -> Option<f64> {
        // Rounding can put a vector a hair nearer to itself than zero.
        Some(self.print.as_ref()?.distance(voice)?.clamp(0.0, 2.0))
    }
}

/// A person and how far a voice is from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// The person's id.
    pub person_id: String,
    /// The person's name.
    pub person_name: String,
    /// Whether this is the owner.
    pub is_owner: bool,
    /// Cosine distance, 0 to 2.
    pub distance: f64,
}

/// Reads everybody, by id.
pub(super) fn load(store: &dyn Store, model: &Manifest) -> Result<Vec<PersonRecord>, StoreError> {
    let mut samples: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    for sample in store.samples()? {
        samples.entry(sample.person.clone()).or_default().push(sample);
    }
    let people = store.people()?.into_iter().map(|person| {
        let of_person = samples.remove(&person.id).unwrap_or_default();
        let (ours, others): (Vec<_>, Vec<_>) = of_person.iter().partition(|sample| is_comparable(sample, model));
        let other_models: BTreeSet<String> = others.iter().map(|sample| sample.features.fingerprint.clone()).collect();
        PersonRecord {
            print: print_of(&person.id, &ours),
            seconds: seconds_of(&ours),
            samples: ours.len(),
            other_seconds: seconds_of(&others),
            other_samples: others.len(),
            other_models: other_models.into_iter().collect(),
            id: person.id,
            name: person.name,
            is_owner: person.is_owner,
            is_pinned: person.is_pinned,
            created_ms: person.created_ms,
            updated_ms: person.updated_ms,
        }
    });
    Ok(people.collect())
}

/// From zero, because the standard sum of no numbers is -0.0, and people would read that.
fn seconds_of(samples: &[&Sample]) -> f64 {
    samples.iter().fold(0.0, |seconds, sample| seconds + sample.features.seconds)
}

/// A vector that claims the model but has another size was written by something else; the others still match.
fn is_comparable(sample: &Sample, model: &Manifest) -> bool {
    if sample.features.fingerprint != model.fingerprint {
        return false;
    }
    let (found, expected) = (sample.features.vector.size(), model.dimension);
    if found != expected {
        tracing::warn!(person = %sample.person, sample = sample.id, found, expected, "a sample of another size is left out");
    }
    found == expected
}

fn print_of(person: &str, samples: &[&Sample]) -> Option<Embedding> {
    let centroid = Centroid::of_iter(samples.iter().map(|sample| &sample.features.vector))?;
    let print = mean(&centroid);
    if print.is_none() {
        tracing::warn!(%person, "the samples cancel one another out, so the person has no voiceprint; enrol again");
    }
    print
}

/// A centroid as a voiceprint; `None` when it is zero.
pub(super) fn mean(centroid: &Centroid) -> Option<Embedding> {
    Embedding::new(&centroid.values().iter().copied().map(narrow).collect::<Vec<f32>>()).ok()
}

#[expect(clippy::cast_possible_truncation, reason = "a normalised value lies in -1..=1; rounding to f32 is the intent")]
fn narrow(value: f64) -> f32 {
    value as f32
}

/// Everybody with a print, nearest first; equal distances by id.
pub(super) fn rank(people: &[PersonRecord], voice: &Embedding) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> = people
        .iter()
        .filter_map(|person| {
            let distance = person.distance(voice)?;
            Some(Ranked {
                person_id: person.id.clone(),
                person_name: person.name.clone(),
                is_owner: person.is_owner,
                distance,
            })
        })
        .collect();
    ranked.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    ranked
}
