//! The statements by which a conversation begins, ends and is forgotten, each inside a transaction of its caller. What is
//! kept of its segments and voices is read and written in `history.rs`.
//!
//! ```text
//!   unknown ──open, record──▶ kept ──delete──▶ deleted ──open──▶ kept, begun anew
//!      ▲                       │                  │
//!      └───────────────────────┴─────forget───────┘
//! ```

use rusqlite::{Connection, Row, Transaction, params};

use super::receipt;
use crate::store::{ConversationRecord, LOCAL_ACCOUNT, StoreError};

/// A clock that goes back takes no news away, so the newest time stays.
pub(super) fn open(transaction: &Transaction<'_>, id: &str, now_ms: i64) -> Result<(), StoreError> {
    transaction
        .prepare_cached(
            "INSERT INTO conversations (account, id, started_ms, updated_ms) VALUES (?1, ?2, ?3, ?3)
             ON CONFLICT (account, id) DO UPDATE SET
                 started_ms = iif(deleted_ms IS NULL, started_ms, excluded.started_ms),
                 updated_ms = iif(deleted_ms IS NULL, max(updated_ms, excluded.updated_ms), excluded.updated_ms),
                 deleted_ms = NULL",
        )?
        .execute(params![LOCAL_ACCOUNT, id, now_ms])?;
    Ok(())
}

/// Opens a conversation for one more page. `false` when it was deleted: then nothing is changed.
pub(super) fn touch(transaction: &Transaction<'_>, id: &str, now_ms: i64) -> Result<bool, StoreError> {
    let touched = transaction
        .prepare_cached(
            "INSERT INTO conversations (account, id, started_ms, updated_ms) VALUES (?1, ?2, ?3, ?3)
             ON CONFLICT (account, id) DO UPDATE SET updated_ms = max(updated_ms, excluded.updated_ms)
             WHERE deleted_ms IS NULL",
        )?
        .execute(params![LOCAL_ACCOUNT, id, now_ms])?;
    Ok(touched > 0)
}

pub(super) fn newest(connection: &Connection, limit: usize) -> Result<Vec<ConversationRecord>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT id, started_ms, updated_ms FROM conversations WHERE account = ?1 AND deleted_ms IS NULL
         ORDER BY updated_ms DESC, id LIMIT ?2",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let records = query.query_map(params![LOCAL_ACCOUNT, limit], record)?;
    Ok(records.collect::<Result<_, _>>()?)
}

fn record(row: &Row<'_>) -> Result<ConversationRecord, rusqlite::Error> {
    Ok(ConversationRecord { id: row.get(0)?, started_ms: row.get(1)?, updated_ms: row.get(2)? })
}

/// Whether there was anything. The generation of its receipt stays. A conversation of which only a receipt is kept is marked as deleted too, for the receipt may
/// be somebody's authority.
pub(super) fn delete(transaction: &Transaction<'_>, id: &str, now_ms: i64) -> Result<bool, StoreError> {
    let key = [LOCAL_ACCOUNT, id];
    let receipts = receipt::empty(transaction, id, now_ms)?;
    transaction.execute("DELETE FROM segments WHERE account = ?1 AND conversation = ?2", key)?;
    transaction.execute("DELETE FROM voices WHERE account = ?1 AND conversation = ?2", key)?;
    let marked = transaction.execute(
        "UPDATE conversations SET deleted_ms = ?3, segments = 0, voices = 0, left_out = 0
         WHERE account = ?1 AND id = ?2 AND deleted_ms IS NULL",
        params![LOCAL_ACCOUNT, id, now_ms],
    )?;
    if receipts && marked == 0 {
        transaction.execute(
            "INSERT INTO conversations (account, id, started_ms, updated_ms, deleted_ms) VALUES (?1, ?2, ?3, ?3, ?3)
             ON CONFLICT (account, id) DO UPDATE SET deleted_ms = excluded.deleted_ms",
            params![LOCAL_ACCOUNT, id, now_ms],
        )?;
    }
    Ok(receipts || marked > 0)
}

/// Forgets what had no news since `before_ms`, and says how many conversations that were. A correction is news of its
/// conversation, and what is news of a conversation keeps its receipt. Segments and voices go with their conversation, by
/// the foreign key.
pub(super) fn forget(transaction: &Transaction<'_>, before_ms: i64) -> Result<u64, StoreError> {
    let limits = params![LOCAL_ACCOUNT, before_ms];
    transaction.execute("DELETE FROM conversations WHERE account = ?1 AND deleted_ms < ?2", limits)?;
    let gone = transaction.execute(
        "DELETE FROM conversations WHERE account = ?1 AND updated_ms < ?2 AND deleted_ms IS NULL AND NOT EXISTS (
             SELECT 1 FROM receipts
             WHERE account = ?1 AND conversation = conversations.id AND receipts.updated_ms >= ?2)",
        limits,
    )?;
    transaction.execute(
        "DELETE FROM receipts WHERE account = ?1 AND updated_ms < ?2 AND NOT EXISTS (
             SELECT 1 FROM conversations WHERE account = ?1 AND id = receipts.conversation)",
        limits,
    )?;
    Ok(u64::try_from(gone).expect("a count of rows fits"))
}
