//! The store's files: that this user alone reads them, that one process alone has them open, and that what was deleted is
//! gone from them.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

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

/// Writes every table that knows people anew, and cuts the log.
///
/// `secure_delete` zeroes a row where it is deleted. It leaves the copies that stayed behind in free space when a page
/// was split or joined and the row moved on; only a page that is given up is zeroed whole. To clear a table gives up all
/// of its pages, so that nothing of it remains but the rows that are put back. These tables are small beside the history,
/// which knows people by number alone.
pub(super) fn rewrite_people(connection: &mut Connection) -> Result<(), StoreError> {
    // A cleared table is given up page by page only where no foreign key wants to see each row, and the rows that point
    // at these ones must not go with them.
    connection.pragma_update(None, "foreign_keys", false).map_err(StoreError::TracesRemain)?;
    let rewritten = rewrite(connection, &["people", "samples", "mentions", "devices"]);
    connection.pragma_update(None, "foreign_keys", true)?;
    rewritten.map_err(StoreError::TracesRemain)?;
    cut_log(connection)
}

fn rewrite(connection: &mut Connection, tables: &[&str]) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for table in tables {
        transaction.execute_batch(&format!(
            "CREATE TEMP TABLE kept AS SELECT * FROM main.{table} ORDER BY rowid;
             DELETE FROM main.{table};
             INSERT INTO main.{table} SELECT * FROM kept ORDER BY rowid;
             DROP TABLE kept;"
        ))?;
    }
    transaction.commit()
}

/// Enough where no person was deleted: the rows are zeroed, and the log that still has them is gone.
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
