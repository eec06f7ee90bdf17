//! The statements about an account's devices: whose turn it is to write a device's capsule, and the sealed capsule itself.
//!
//! ```text
//!   take(token)            the device is token's, revision 0; whatever body was there is handed out, once
//!   keep(token, revision)  only the device's token, only with a higher revision; without a body it withdraws
//! ```
//! A device without a row is nobody's. A withdrawal leaves its revision behind, so that a write from before it that arrives late is refused.

use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::store::{CAPSULE_BYTES_MAX, CAPSULE_LIFE_MS, CapsuleWrite, DeviceKey, LOCAL_ACCOUNT, StoreError};

/// How long a device without news keeps its token. A socket that held one for a day without writing must open anew to
/// write.
const DEVICE_LIFE_MS: i64 = 86_400_000;

pub(super) fn take(
    transaction: &Transaction<'_>,
    device: DeviceKey,
    token: &str,
    now_ms: i64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let held = transaction
        .query_row(
            "SELECT body, written_ms FROM devices WHERE account = ?1 AND device = ?2",
            params![LOCAL_ACCOUNT, device.0],
            |row| Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, i64>(1)?)),
        )
        .optional()?;
    transaction.execute(
        "INSERT INTO devices (account, device, token, revision, written_ms) VALUES (?1, ?2, ?3, 0, ?4)
         ON CONFLICT (account, device) DO UPDATE
         SET token = excluded.token, revision = 0, body = NULL, written_ms = excluded.written_ms",
        params![LOCAL_ACCOUNT, device.0, token, now_ms],
    )?;
    // Of either sign, because the clock of the day may have been set since.
    let is_alive = |written_ms: &i64| written_ms.abs_diff(now_ms) <= CAPSULE_LIFE_MS;
    Ok(held.filter(|(_, written_ms)| is_alive(written_ms)).and_then(|(body, _)| body))
}

pub(super) fn keep(
    transaction: &Transaction<'_>,
    device: DeviceKey,
    (token, revision): (&str, u64),
    body: Option<&[u8]>,
    now_ms: i64,
) -> Result<CapsuleWrite, StoreError> {
    let bytes = body.map_or(0, <[u8]>::len);
    if bytes > CAPSULE_BYTES_MAX {
        return Err(StoreError::Full(format!("a capsule has {bytes} bytes, and {CAPSULE_BYTES_MAX} are the most")));
    }
    let revision = i64::try_from(revision)
        .map_err(|_| StoreError::Full(format!("{revision} is beyond the last revision that a capsule can have")))?;
    let written = transaction.execute(
        "UPDATE devices SET revision = ?4, body = ?5, written_ms = ?6
         WHERE account = ?1 AND device = ?2 AND token = ?3 AND revision < ?4",
        params![LOCAL_ACCOUNT, device.0, token, revision, body, now_ms],
    )?;
    Ok(if written > 0 { CapsuleWrite::Written } else { CapsuleWrite::Superseded })
}

/// Removes every capsule and takes every device from its socket, so that a write that is under way is refused. Whoever
/// talks now writes no capsule until their next socket opens.
pub(super) fn take_all(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    transaction.execute("DELETE FROM devices WHERE account = ?1", [LOCAL_ACCOUNT])?;
    Ok(())
}

/// Removes capsules that nobody may take any more, and devices without news for a day.
pub(super) fn forget(transaction: &Transaction<'_>, now_ms: i64) -> Result<(), StoreError> {
    transaction.execute(
        "DELETE FROM devices WHERE account = ?1 AND written_ms < ?2",
        params![LOCAL_ACCOUNT, now_ms.saturating_sub(DEVICE_LIFE_MS)],
    )?;
    let life = i64::try_from(CAPSULE_LIFE_MS).expect("two minutes fit");
    transaction.execute(
        "UPDATE devices SET body = NULL WHERE account = ?1 AND written_ms NOT BETWEEN ?2 AND ?3 AND body IS NOT NULL",
        params![LOCAL_ACCOUNT, now_ms.saturating_sub(life), now_ms.saturating_add(life)],
    )?;
    Ok(())
}
