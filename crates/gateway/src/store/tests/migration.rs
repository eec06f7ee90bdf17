//! Goal: a file of every older format opens with all that it holds, and takes what is new.
//! Method: files as those versions made them, by their own statements.

use matcher_core::Receipt;
use rusqlite::params;

use super::*;

/// The first format, as it was.
const FORMAT_1: &str = "
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
    PRAGMA user_version = 1;
";

/// What the second format added.
const FORMAT_2: &str = "
    CREATE TABLE receipts (
        account      TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        conversation TEXT NOT NULL,
        generation   INTEGER NOT NULL CHECK (generation > 0),
        body         TEXT NOT NULL,
        updated_ms   INTEGER NOT NULL,
        PRIMARY KEY (account, conversation)
    ) STRICT;
    PRAGMA user_version = 2;
";

/// As the second format wrote it.
const BODY_2: &str = r#"{"voices":[{"speaker":1,"scope":"s","generation":1,"ruling":"is_nobody"}],"segments":[]}"#;

/// A file of an older format with one person and her sample, as a connection to it.
fn old_file(directory: &TemporaryDirectory) -> Connection {
    let connection = Connection::open(directory.path().join("rollcall.db")).unwrap();
    connection.execute_batch(FORMAT_1).unwrap();
    connection.execute("INSERT INTO people VALUES ('local', 'anna', 'Anna', 1, 1000, 2000)", []).unwrap();
    let blob: Vec<u8> = vector(0.7).values().iter().flat_map(|value| value.to_le_bytes()).collect();
    let sample = "INSERT INTO samples VALUES (7, 'local', 'anna', 4.5, 0.9, 'model', ?1, 1500)";
    connection.execute(sample, [blob]).unwrap();
    connection
}

#[test]
fn a_database_of_the_first_format_keeps_its_people_and_takes_everything_new() {
    let directory = TemporaryDirectory::new();
    drop(old_file(&directory));
    check(&directory, None);
}

#[test]
fn a_database_of_the_second_format_keeps_its_receipts_as_well() {
    let directory = TemporaryDirectory::new();
    let connection = old_file(&directory);
    connection.execute_batch(FORMAT_2).unwrap();
    connection.execute("INSERT INTO receipts VALUES ('local', 'talk', 1, ?1, 1700)", params![BODY_2]).unwrap();
    drop(connection);
    check(&directory, Some(1));
}

/// All that was there is there, all that is new works, and the file opens a second time.
fn check(directory: &TemporaryDirectory, receipt: Option<u64>) {
    let store = open(directory);
    let anna = Person {
        id: "anna".into(),
        name: "Anna".into(),
        is_owner: true,
        is_pinned: false,
        created_ms: 1000,
        updated_ms: 2000,
    };
    assert_eq!(store.people().unwrap(), [anna]);
    let kept = Sample { id: 7, person: "anna".into(), features: features(0.7), created_ms: 1500 };
    assert_eq!(store.samples().unwrap(), [kept]);
    let generation = |kept: Option<Receipt>| kept.map(|receipt| receipt.generation());
    assert_eq!(generation(store.receipt("talk").unwrap()), receipt);

    store.save_receipt("new", &Receipt::restore(1, [].into(), []).unwrap()).unwrap();
    store.open_conversation("new", 5000).unwrap();
    store.take_capsule(DeviceKey([1; 32]), "token", 5000).unwrap();
    store.update_person("anna", &PersonChange { is_pinned: Some(true), ..PersonChange::default() }, 5000).unwrap();
    drop(store);
    let store = open(directory);
    assert_eq!(generation(store.receipt("new").unwrap()), Some(1));
    assert_eq!(store.conversations(9).unwrap().len(), 1);
    assert!(store.people().unwrap()[0].is_pinned);
}

/// The columns that could hold what must not be kept: text that was said, audio, and a vector that is not sealed.
#[test]
fn no_table_but_samples_and_devices_has_a_place_for_bytes() {
    let directory = TemporaryDirectory::new();
    drop(open(&directory));
    let connection = Connection::open(directory.path().join("rollcall.db")).unwrap();
    let mut query = connection
        .prepare(
            "SELECT tables.name || '.' || columns.name FROM pragma_table_list AS tables
             JOIN pragma_table_info(tables.name) AS columns
             WHERE columns.type = 'BLOB' AND tables.name NOT LIKE 'sqlite%' ORDER BY 1",
        )
        .unwrap();
    let places: Vec<String> = query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(places, ["devices.body", "devices.device", "samples.vector"]);
}
