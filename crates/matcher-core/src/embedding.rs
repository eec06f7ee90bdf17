//! Voiceprints as vectors: validated at the door, compared by cosine distance in double precision.
//!
//! An [`Embedding`] is finite, not empty and has a length; whatever is not never enters evidence or a gallery.
//! A [`Centroid`] is the mean of embeddings and may be the zero vector, whose distance to anything is not a number.

use std::fmt;
use std::sync::Arc;

/// Why a vector is not a voiceprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadVector {
    /// It has no values at all.
    #[error("the vector is empty")]
    Empty,
    /// A value is NaN or infinite.
    #[error("the vector holds a value that is not finite")]
    NotFinite,
    /// All values are zero, so it points nowhere.
    #[error("the vector has zero length")]
    ZeroNorm,
    /// It has another size than the model gives.
    #[error("the vector has {found} values where the model gives {expected}")]
    WrongSize {
        /// What the model's manifest says.
        expected: usize,
        /// What came.
        found: usize,
    },
}

/// One finite, non-zero vector, L2-normalised. Cheap to clone: the values are shared.
#[derive(Clone, PartialEq)]
pub struct Embedding {
    values: Arc<[f32]>,
}

impl Embedding {
    /// Checks and normalises `values`.
    ///
    /// # Errors
    /// When the vector is empty, not finite or has zero length.
    pub fn new(values: &[f32]) -> Result<Self, BadVector> {
        if values.is_empty() {
            return Err(BadVector::Empty);
        }
        if values.iter().any(|value| !value.is_finite()) {
            return Err(BadVector::NotFinite);
        }
        let norm = norm(values.iter().map(|value| f64::from(*value)));
        if norm == 0.0 {
            return Err(BadVector::ZeroNorm);
        }
        Ok(Self { values: values.iter().map(|value| narrow(f64::from(*value) / norm)).collect() })
    }

    /// As [`Embedding::new`], and the size must be `expected`.
    ///
    /// # Errors
    /// When the vector has another size, is not finite or has zero length.
    pub fn of_size(values: &[f32], expected: usize) -> Result<Self, BadVector> {
        if values.len() != expected {
            return Err(BadVector::WrongSize { expected, found: values.len() });
        }
        Self::new(values)
    }

    /// The normalised values.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// How many values the vector has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.values.len()
    }

    /// Cosine distance (0 to 2) to another vector; `None` when the sizes differ.
    #[must_use]
    pub fn distance(&self, other: &Self) -> Option<f64> {
        Centroid::of(std::slice::from_ref(self)).and_then(|centroid| centroid.distance(other))
    }
}

/// A voiceprint is biometric data: its values never reach a log by way of `{:?}`.
impl fmt::Debug for Embedding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Embedding({} values)", self.values.len())
    }
}

/// The plain mean of embeddings, length-normalised; a zero mean stays zero.
#[derive(Clone, PartialEq)]
pub struct Centroid {
    values: Arc<[f64]>,
}

impl Centroid {
    /// The centroid of `embeddings`, or `None` when there are none or their sizes differ.
    #[must_use]
    pub fn of(embeddings: &[Embedding]) -> Option<Self> {
        Self::of_iter(embeddings.iter())
    }

    /// As [`Centroid::of`], over borrowed embeddings.
    #[must_use]
    pub fn of_iter<'a>(embeddings: impl Iterator<Item = &'a Embedding>) -> Option<Self> {
        let mut sum: Vec<f64> = Vec::new();
        for embedding in embeddings {
            if sum.is_empty() {
                sum.resize(embedding.size(), 0.0);
            }
            if sum.len() != embedding.size() {
                return None;
            }
            for (total, value) in sum.iter_mut().zip(embedding.values()) {
                *total += f64::from(*value);
            }
        }
        if sum.is_empty() {
            return None;
        }
        let norm = norm(sum.iter().copied());
        if norm > 0.0 {
            sum.iter_mut().for_each(|value| *value /= norm);
        }
        Some(Self { values: sum.into() })
    }

    /// Cosine distance (0 to 2) to a voiceprint: `None` when the sizes differ, NaN when this centroid is zero.
    #[must_use]
    pub fn distance(&self, print: &Embedding) -> Option<f64> {
        self.distance_to(print.size(), print.values().iter().map(|value| f64::from(*value)))
    }

    /// Cosine distance (0 to 2) to another centroid.
    #[must_use]
    pub fn distance_to_centroid(&self, other: &Self) -> Option<f64> {
        self.distance_to(other.values.len(), other.values.iter().copied())
    }

    /// The values, of length one or all zero.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// This centroid as a voiceprint, to compare others with; `None` when it is zero.
    #[must_use]
    pub fn to_embedding(&self) -> Option<Embedding> {
        Embedding::new(&self.values.iter().copied().map(narrow).collect::<Vec<f32>>()).ok()
    }

    fn distance_to(&self, size: usize, other: impl Iterator<Item = f64> + Clone) -> Option<f64> {
        if size != self.values.len() {
            return None;
        }
        let dot: f64 = self.values.iter().zip(other.clone()).map(|(a, b)| a * b).sum();
        Some(1.0 - dot / (norm(self.values.iter().copied()) * norm(other)))
    }
}

impl fmt::Debug for Centroid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Centroid({} values)", self.values.len())
    }
}

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}

#[expect(clippy::cast_possible_truncation, reason = "a normalised value lies in -1..=1; rounding to f32 is the intent")]
fn narrow(value: f64) -> f32 {
    value as f32
}
