//! The statements by which a voice says who it is: with a number that stands for a person as long as they are enrolled.
//!
//! A deletion takes the number with the person. Voices that have it are nobody from then on, and so is one that comes
//! later and still names them.

use std::borrow::Cow;

use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::store::{LOCAL_ACCOUNT, StoreError, VoiceRecord};

/// A voice as it is written, and the number of who it is. One that names nobody who is enrolled is written as nobody.
pub(super) fn of<'a>(
    transaction: &Transaction<'_>,
    voice: &'a VoiceRecord,
) -> Result<(Cow<'a, VoiceRecord>, Option<i64>), StoreError> {
    let Some(person) = &voice.person else { return Ok((Cow::Borrowed(voice), None)) };
    let number = number(transaction, person)?;
    let written = if number.is_some() { Cow::Borrowed(voice) } else { Cow::Owned(voice.clone().into_nobody()) };
    Ok((written, number))
}

fn number(transaction: &Transaction<'_>, person: &str) -> Result<Option<i64>, StoreError> {
    let key = params![LOCAL_ACCOUNT, person];
    let known = transaction
        .prepare_cached("SELECT number FROM mentions WHERE account = ?1 AND person = ?2")?
        .query_row(key, |row| row.get(0))
        .optional()?;
    if known.is_some() {
        return Ok(known);
    }
    let fresh = transaction
        .prepare_cached(
            "INSERT INTO mentions (account, person) SELECT account, id FROM people WHERE account = ?1 AND id = ?2
             RETURNING number",
        )?
        .query_row(key, |row| row.get(0))
        .optional()?;
    Ok(fresh)
}
