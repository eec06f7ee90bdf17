//! The statements that change people and samples, each inside a transaction of its caller.
//!
//! Every check comes before the first write of its statement; a refusal rolls the transaction back.

use rusqlite::{OptionalExtension as _, Transaction, params};

use super::row;
use crate::store::{LOCAL_ACCOUNT, Person, PersonChange, SampleFeatures, StoreError};

/// People of one account. A verdict compares a voice with all of them; a thousand cost it well under a millisecond.
const PEOPLE_MAX: i64 = 1000;

/// Samples of one person. Their mean hardly moves after the first ten; the rest is room for other models and days.
const SAMPLES_PER_PERSON_MAX: i64 = 64;

pub(super) fn person(transaction: &Transaction<'_>, id: &str) -> Result<Option<Person>, StoreError> {
    Ok(transaction
        .query_row(
            "SELECT id, name, is_owner, is_pinned, created_ms, updated_ms FROM people WHERE account = ?1 AND id = ?2",
            [LOCAL_ACCOUNT, id],
            row::person,
        )
        .optional()?)
}

pub(super) fn insert_person(transaction: &Transaction<'_>, id: &str, now_ms: i64) -> Result<(), StoreError> {
    let people: i64 =
        transaction.query_row("SELECT count(*) FROM people WHERE account = ?1", [LOCAL_ACCOUNT], |row| row.get(0))?;
    if people >= PEOPLE_MAX {
        return Err(StoreError::Full(format!(
            "{PEOPLE_MAX} people are enrolled, the most there can be; delete some first"
        )));
    }
    transaction.execute(
        "INSERT INTO people (account, id, name, is_owner, created_ms, updated_ms) VALUES (?1, ?2, ?2, 0, ?3, ?3)",
        params![LOCAL_ACCOUNT, id, now_ms],
    )?;
    Ok(())
}

pub(super) fn apply(
    transaction: &Transaction<'_>,
    id: &str,
    change: &PersonChange,
    now_ms: i64,
) -> Result<Person, StoreError> {
    let before = person(transaction, id)?.ok_or_else(|| StoreError::NoSuchPerson(id.to_owned()))?;
    let after = Person {
        name: change.name.clone().unwrap_or(before.name),
        is_owner: change.is_owner.unwrap_or(before.is_owner),
        is_pinned: change.is_pinned.unwrap_or(before.is_pinned),
        updated_ms: now_ms,
        ..before
    };
    if after.is_owner {
        refuse_second_owner(transaction, id)?;
    }
    transaction.execute(
        "UPDATE people SET name = ?3, is_owner = ?4, is_pinned = ?5, updated_ms = ?6 WHERE account = ?1 AND id = ?2",
        params![LOCAL_ACCOUNT, id, after.name, after.is_owner, after.is_pinned, now_ms],
    )?;
    Ok(after)
}

fn refuse_second_owner(transaction: &Transaction<'_>, id: &str) -> Result<(), StoreError> {
    let owner: Option<String> = transaction
        .query_row(
            "SELECT id FROM people WHERE account = ?1 AND is_owner = 1 AND id <> ?2",
            [LOCAL_ACCOUNT, id],
            |row| row.get(0),
        )
        .optional()?;
    owner.map_or(Ok(()), |owner| Err(StoreError::OwnerExists(owner)))
}

pub(super) fn insert_sample(
    transaction: &Transaction<'_>,
    id: &str,
    features: &SampleFeatures,
    now_ms: i64,
) -> Result<(), StoreError> {
    let samples: i64 = transaction.query_row(
        "SELECT count(*) FROM samples WHERE account = ?1 AND person = ?2",
        [LOCAL_ACCOUNT, id],
        |row| row.get(0),
    )?;
    if samples >= SAMPLES_PER_PERSON_MAX {
        return Err(StoreError::Full(format!(
            "{id:?} has {SAMPLES_PER_PERSON_MAX} samples, the most there can be; delete the person and enrol again with the best"
        )));
    }
    transaction.execute(
        "INSERT INTO samples (account, person, seconds, quality, fingerprint, vector, created_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            LOCAL_ACCOUNT,
            id,
            features.seconds,
            features.quality,
            features.fingerprint,
            row::blob(&features.vector),
            now_ms
        ],
    )?;
    Ok(())
}
