//! The statements that read and write a conversation's receipt. A damaged one is an error that names the conversation,
//! never an empty receipt: nothing decided and something unreadable are not the same to the matching.

mod body;

use matcher_core::Receipt;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use crate::store::{Filed, LOCAL_ACCOUNT, StoreError};

pub(super) fn read(connection: &Connection, conversation: &str) -> Result<Option<Receipt>, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT generation, body FROM receipts WHERE account = ?1 AND conversation = ?2")?;
    let row = query
        .query_row([LOCAL_ACCOUNT, conversation], |row| {
            // As bytes: a text of damaged bytes is this receipt's damage, not the database's.
            Ok((row.get::<_, i64>(0)?, row.get_ref(1)?.as_bytes()?.to_vec()))
        })
        .optional()?;
    let damaged = |reason| StoreError::Damaged { conversation: conversation.to_owned(), reason };
    row.map(|(generation, text)| body::parse(generation, &text).map_err(damaged)).transpose()
}

/// The receipts of several conversations, where the caller's transaction makes it one moment.
pub(super) fn filed(transaction: &Transaction<'_>, conversations: &[&str]) -> Result<Vec<Filed>, StoreError> {
    let of = |conversation: &&str| {
        if is_deleted(transaction, conversation)? {
            return Ok(Filed::Deleted);
        }
        Ok(Filed::Kept(read(transaction, conversation)?.unwrap_or_default()))
    };
    conversations.iter().map(of).collect()
}

fn is_deleted(connection: &Connection, conversation: &str) -> Result<bool, StoreError> {
    let mut query = connection
        .prepare_cached("SELECT 1 FROM conversations WHERE account = ?1 AND id = ?2 AND deleted_ms IS NOT NULL")?;
    Ok(query.exists([LOCAL_ACCOUNT, conversation])?)
}

pub(super) fn generation(connection: &Connection, conversation: &str) -> Result<u64, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT generation FROM receipts WHERE account = ?1 AND conversation = ?2")?;
    let stored: Option<i64> = query.query_row([LOCAL_ACCOUNT, conversation], |row| row.get(0)).optional()?;
    u64::try_from(stored.unwrap_or(0)).map_err(|_| StoreError::Damaged {
        conversation: conversation.to_owned(),
        reason: "its generation is negative".to_owned(),
    })
}

/// The stored generation decides alone. So a damaged receipt is never begun anew, and somebody who still has it in memory
/// mends it with the next edit.
pub(super) fn write(transaction: &Transaction<'_>, conversation: &str, receipt: &Receipt) -> Result<(), StoreError> {
    let stored: Option<i64> = transaction
        .query_row(
            "SELECT generation FROM receipts WHERE account = ?1 AND conversation = ?2",
            [LOCAL_ACCOUNT, conversation],
            |row| row.get(0),
        )
        .optional()?;
    let next = stored.map_or(Some(1), |stored| stored.checked_add(1).filter(|next| *next > 1));
    let generation = i64::try_from(receipt.generation()).ok().filter(|generation| Some(*generation) == next);
    let generation = generation.ok_or(StoreError::ReceiptChanged)?;

    // The database's own clock: it decides alone when a receipt is old enough to be forgotten.
    transaction.execute(
        "INSERT INTO receipts (account, conversation, generation, body, updated_ms)
         VALUES (?1, ?2, ?3, ?4, CAST(unixepoch('subsec') * 1000 AS INTEGER))
         ON CONFLICT (account, conversation) DO UPDATE
         SET generation = excluded.generation, body = excluded.body, updated_ms = excluded.updated_ms",
        params![LOCAL_ACCOUNT, conversation, generation, body::text(receipt)],
    )?;
    Ok(())
}

/// The conversation is deleted: nothing of its receipt stays but the count of its edits, which goes on. Whoever still has
/// it in memory reads a higher generation, and takes no later edit for one that it knows. Says whether there was one that
/// no deletion had emptied before.
pub(super) fn empty(transaction: &Transaction<'_>, conversation: &str, now_ms: i64) -> Result<bool, StoreError> {
    let nothing = body::text(&Receipt::default());
    let emptied = transaction.execute(
        "UPDATE receipts SET generation = generation + 1, body = ?3, updated_ms = ?4
         WHERE account = ?1 AND conversation = ?2 AND (body <> ?3 OR NOT EXISTS (
             SELECT 1 FROM conversations WHERE account = ?1 AND id = ?2 AND deleted_ms IS NOT NULL))",
        params![LOCAL_ACCOUNT, conversation, nothing, now_ms],
    )?;
    Ok(emptied > 0)
}
