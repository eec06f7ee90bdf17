//! The tables of the embedded store, and how an older file becomes a current one.
//!
//! `user_version` counts the migrations that a file has had. Migrations are only ever added at the end.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::store::StoreError;

/// How long a statement waits for a lock. Only a backup tool can hold one, since a second process is kept out.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const MIGRATIONS: [&str; 3] = [PEOPLE, RECEIPTS, CONVERSATIONS];

const PEOPLE: &str = "
    CREATE TABLE accounts (id TEXT PRIMARY KEY) STRICT;
    INSERT INTO accounts (id) VALUES ('local');

    CREATE TABLE people (
        account    TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        id         TEXT NOT NULL,
        name       TEXT NOT NULL,
        is_owner   INTEGER NOT NULL CHECK (is_owner IN (0, 1)),
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        PRIMARY KEY (account, id)
    ) STRICT;
    CREATE UNIQUE INDEX one_owner ON people (account) WHERE is_owner = 1;

    CREATE TABLE samples (
        id          INTEGER PRIMARY KEY AUTOINCREMENT,
        account     TEXT NOT NULL,
        person      TEXT NOT NULL,
        seconds     REAL NOT NULL,
        quality     REAL NOT NULL,
        fingerprint TEXT NOT NULL,
        vector      BLOB NOT NULL,
        created_ms  INTEGER NOT NULL,
        FOREIGN KEY (account, person) REFERENCES people (account, id) ON DELETE CASCADE
    ) STRICT;
    CREATE INDEX samples_of_person ON samples (account, person);
";

/// No reference to people: a receipt outlives them.
const RECEIPTS: &str = "
    CREATE TABLE receipts (
        account      TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        conversation TEXT NOT NULL,
        generation   INTEGER NOT NULL CHECK (generation > 0),
        body         TEXT NOT NULL,
        updated_ms   INTEGER NOT NULL,
        PRIMARY KEY (account, conversation)
    ) STRICT;
";

/// Nothing that was said, no audio, and no vector but in a sealed body. A deleted conversation keeps its row and the
/// generation of its receipt, and nothing else, until it would have been forgotten. `segments` and `voices` count rows,
/// because counting them at each page reads them all.
///
/// A voice says who it is with a number of `mentions`, which goes with its person and is never given again. So whoever is
/// deleted is gone from every voice at once, and who is enrolled under the same id later inherits none. There is no
/// reference from voices: looking for a deleted person's would read all of them.
///
/// An entry of an older receipt does not say which recording it is about, and is kept as one about none. Within a text
/// JSON writes each quotation mark with a backslash, so what is replaced is a field's name and nothing else.
const CONVERSATIONS: &str = r#"
    ALTER TABLE people ADD COLUMN is_pinned INTEGER NOT NULL DEFAULT 0 CHECK (is_pinned IN (0, 1));
    UPDATE receipts SET body = replace(body, '"scope":', '"recording":"","scope":');

    CREATE TABLE conversations (
        account    TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        id         TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        deleted_ms INTEGER,
        segments   INTEGER NOT NULL DEFAULT 0,
        voices     INTEGER NOT NULL DEFAULT 0,
        left_out   INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (account, id)
    ) STRICT;
    CREATE INDEX newest_conversations ON conversations (account, updated_ms);

    CREATE TABLE segments (
        account      TEXT NOT NULL,
        conversation TEXT NOT NULL,
        recording    TEXT NOT NULL,
        scope        TEXT NOT NULL,
        id           TEXT NOT NULL,
        speaker      INTEGER NOT NULL,
        start_s      REAL NOT NULL,
        end_s        REAL NOT NULL,
        PRIMARY KEY (account, conversation, recording, scope, id),
        FOREIGN KEY (account, conversation) REFERENCES conversations (account, id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE mentions (
        number  INTEGER PRIMARY KEY AUTOINCREMENT,
        account TEXT NOT NULL,
        person  TEXT NOT NULL,
        UNIQUE (account, person),
        FOREIGN KEY (account, person) REFERENCES people (account, id) ON DELETE CASCADE
    ) STRICT;

    CREATE TABLE voices (
        account          TEXT NOT NULL,
        conversation     TEXT NOT NULL,
        recording        TEXT NOT NULL,
        scope            TEXT NOT NULL,
        speaker          INTEGER NOT NULL,
        label            TEXT,
        status           TEXT NOT NULL,
        person           INTEGER,
        origin           TEXT NOT NULL,
        distance         REAL,
        runner_up        REAL,
        evidence_seconds REAL NOT NULL,
        attempts         INTEGER NOT NULL,
        PRIMARY KEY (account, conversation, recording, scope, speaker),
        FOREIGN KEY (account, conversation) REFERENCES conversations (account, id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE devices (
        account    TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        device     BLOB NOT NULL CHECK (length(device) = 32),
        token      TEXT NOT NULL,
        revision   INTEGER NOT NULL,
        body       BLOB,
        written_ms INTEGER NOT NULL,
        PRIMARY KEY (account, device)
    ) STRICT;
"#;

/// Sets the connection up and brings the file to the current format.
pub(super) fn prepare(connection: &mut Connection, file: &Path) -> Result<(), StoreError> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let known = i64::try_from(MIGRATIONS.len()).expect("there are few migrations");
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    // Before anything is written: a newer file is left exactly as it is.
    if found > known {
        return Err(StoreError::Newer { path: file.to_owned(), found, known });
    }
    // `temp_store` keeps what a cleaning moves about off the disk.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
         PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;",
    )?;
    for (version, migration) in (1_i64..).zip(MIGRATIONS) {
        if version > found {
            let transaction = connection.transaction()?;
            transaction.execute_batch(migration)?;
            transaction.pragma_update(None, "user_version", version)?;
            transaction.commit()?;
        }
    }
    Ok(())
}

/// A connection that reads beside the other one. What it sorts stays off the disk as well.
pub(super) fn reader(file: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute_batch("PRAGMA temp_store = MEMORY")?;
    Ok(connection)
}
