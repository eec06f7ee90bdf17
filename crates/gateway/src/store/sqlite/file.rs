//! The store's files: that this user alone reads them, that one process alone has them open, and that what was deleted is
//! gone from them.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rusqlite::Connection;

use crate::store::StoreError;

/// Opens a file, made for this user alone if it is missing.
pub(super) fn private(path: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).write(true).mode(0o600).open(path)
}

pub(super) fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join("rollcall.lock");
    let trouble = |source| StoreError::Directory { path: path.clone(), source };
    let file = private(&path).map_err(trouble)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(directory.to_owned())),
        Err(TryLockError::Error(source)) => Err(trouble(source)),
    }
}

/// Deleted rows are zeroed and the file is rewritten without their pages. All of that stands in the log beside the old
/// pages until the log is written back and cut.
pub(super) fn clean(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch("VACUUM").map_err(StoreError::TracesRemain)?;
    cut_log(connection)
}

/// Enough where no voiceprint was deleted: the rows are zeroed, and the log that still has them is gone.
///
/// A reader of the log, such as a backup tool, keeps it from being cut. The statement then succeeds and says so.
pub(super) fn cut_log(connection: &Connection) -> Result<(), StoreError> {
    let is_busy: Result<bool, _> = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    if !is_busy.map_err(StoreError::TracesRemain)? {
        return Ok(());
    }
    let reason = "another process is reading the database".to_owned();
    let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    Err(StoreError::TracesRemain(rusqlite::Error::SqliteFailure(busy, Some(reason))))
}
