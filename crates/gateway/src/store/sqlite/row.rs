//! Rows as values, and voiceprints as bytes. A row that is damaged is left out, never a panic.

use matcher_core::Embedding;
use rusqlite::Row;

use crate::store::{Person, Sample, SampleFeatures};

pub(super) fn person(row: &Row<'_>) -> Result<Person, rusqlite::Error> {
    Ok(Person {
        id: row.get(0)?,
        name: row.get(1)?,
        is_owner: row.get(2)?,
        is_pinned: row.get(3)?,
        created_ms: row.get(4)?,
        updated_ms: row.get(5)?,
    })
}

/// `None` for a damaged vector: the person's other samples are still good.
pub(super) fn sample(row: &Row<'_>) -> Result<Option<Sample>, rusqlite::Error> {
    let (id, person): (i64, String) = (row.get(0)?, row.get(1)?);
    let stored: Vec<u8> = row.get(5)?;
    let vector = match vector_of(&stored) {
        Ok(vector) => vector,
        Err(reason) => {
            tracing::warn!(%person, sample = id, %reason, "a damaged sample is left out; enrol the person again");
            return Ok(None);
        }
    };
    let features = SampleFeatures { seconds: row.get(2)?, quality: row.get(3)?, fingerprint: row.get(4)?, vector };
    Ok(Some(Sample { id, person, features, created_ms: row.get(6)? }))
}

/// Little-endian 32-bit floats.
pub(super) fn blob(vector: &Embedding) -> Vec<u8> {
    vector.values().iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn vector_of(blob: &[u8]) -> Result<Embedding, String> {
    let (values, rest) = blob.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(format!("{} bytes are not a whole number of values", blob.len()));
    }
    let values: Vec<f32> = values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Embedding::new(&values).map_err(|reason| reason.to_string())
}
