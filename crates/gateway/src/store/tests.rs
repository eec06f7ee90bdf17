//! Goal: what is stored survives, what is deleted leaves no trace, and a bad file is refused or worked around.
//! Method: the real SQLite store in a temporary directory; damage is done with a second connection to a closed store.

mod capsules;
mod conversations;
mod migration;
mod receipts;

use std::collections::BTreeSet;
use std::path::Path;

use matcher_core::Embedding;
use rusqlite::Connection;

use super::*;
use crate::testing::TemporaryDirectory;

fn open(directory: &TemporaryDirectory) -> SqliteStore {
    SqliteStore::open(directory.path()).unwrap()
}

/// Odd values, so that their bytes occur nowhere else.
fn vector(seed: f32) -> Embedding {
    let values: Vec<f32> = (1_u8..=192).map(|index| (f32::from(index) * seed).sin()).collect();
    Embedding::new(&values).unwrap()
}

fn features(seed: f32) -> SampleFeatures {
    SampleFeatures { seconds: 4.5, quality: 0.9, fingerprint: "model".into(), vector: vector(seed) }
}

fn owner() -> PersonChange {
    PersonChange { is_owner: Some(true), ..PersonChange::default() }
}

#[test]
fn what_was_enrolled_is_there_after_reopening() {
    let directory = TemporaryDirectory::new();
    let change = PersonChange { name: Some("Anna".into()), ..owner() };
    open(&directory).enrol("anna", &change, &features(0.7), 1000).unwrap();
    let store = open(&directory);
    let expected = Person {
        id: "anna".into(),
        name: "Anna".into(),
        is_owner: true,
        is_pinned: false,
        created_ms: 1000,
        updated_ms: 1000,
    };
    assert_eq!(store.people().unwrap(), [expected]);
    let samples = store.samples().unwrap();
    assert_eq!(samples.len(), 1);
    assert_eq!((samples[0].person.as_str(), &samples[0].features), ("anna", &features(0.7)));
}

#[test]
fn a_second_owner_is_refused_and_nothing_of_the_request_is_kept() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    store.create_person("anna", &owner(), 1).unwrap();
    let refused = store.enrol("bert", &owner(), &features(0.7), 2);
    assert!(matches!(refused, Err(StoreError::OwnerExists(id)) if id == "anna"));
    assert_eq!((store.people().unwrap().len(), store.samples().unwrap().len()), (1, 0));
    store.update_person("anna", &PersonChange { is_owner: Some(false), ..PersonChange::default() }, 3).unwrap();
    assert!(store.enrol("bert", &owner(), &features(0.7), 4).unwrap().is_owner);
}

#[test]
fn a_person_is_pinned_until_somebody_says_otherwise() {
    let directory = TemporaryDirectory::new();
    let pinned = |is_pinned| PersonChange { is_pinned: Some(is_pinned), ..PersonChange::default() };
    let store = open(&directory);
    store.create_person("bert", &PersonChange::default(), 1).unwrap();
    assert!(store.enrol("anna", &pinned(true), &features(0.7), 1).unwrap().is_pinned);
    assert!(store.update_person("anna", &owner(), 2).unwrap().is_pinned, "another change leaves it");
    drop(store);
    let store = open(&directory);
    let shown = |store: &SqliteStore| store.people().unwrap().iter().map(|person| person.is_pinned).collect::<Vec<_>>();
    assert_eq!(shown(&store), [true, false]);
    store.update_person("anna", &pinned(false), 3).unwrap();
    assert_eq!(shown(&store), [false, false]);
}

#[test]
fn a_taken_id_and_a_missing_person_are_refused() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    let nothing = PersonChange::default();
    store.create_person("anna", &nothing, 1).unwrap();
    assert!(matches!(store.create_person("anna", &nothing, 2), Err(StoreError::PersonExists(_))));
    assert!(matches!(store.update_person("bert", &nothing, 2), Err(StoreError::NoSuchPerson(_))));
    assert!(matches!(store.delete_person("bert"), Err(StoreError::NoSuchPerson(_))));
}

#[test]
fn a_person_takes_a_bounded_number_of_samples() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    let nothing = PersonChange::default();
    let refusal = (0..100).find_map(|_| store.enrol("anna", &nothing, &features(0.7), 1).err());
    assert!(matches!(refusal, Some(StoreError::Full(_))));
    assert_eq!(store.samples().unwrap().len(), 64);
}

/// The samples alternate, so that rows of everybody share pages, are moved on when neighbours go, and leave copies behind.
#[test]
fn a_deleted_person_leaves_no_byte_of_a_vector_a_name_or_an_id_on_disk() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    let ids = ["annabelle", "bartholomew", "christabel", "desdemona"];
    let seed = |person: u16, sample: u16| 0.05 + 0.015 * f32::from(person * 64 + sample);
    for sample in 0..64 {
        for (person, id) in (0..).zip(ids) {
            let change = PersonChange { name: Some(format!("Name of {id}")), ..PersonChange::default() };
            store.enrol(id, &change, &features(seed(person, sample)), 1).unwrap();
            store.record(&format!("talk {sample}"), &conversations::heard(u32::from(person), id), 1).unwrap();
        }
    }
    let remains = |person: u16, id: &str| {
        let scan = Scan::of(directory.path());
        let vectors = (0..64).filter(|sample| scan.holds_vector(seed(person, *sample))).count();
        (vectors, holds(directory.path(), id.as_bytes()))
    };
    for person in [1, 3, 0] {
        let id = ids[usize::from(person)];
        assert_eq!(remains(person, id), (64, true), "the scan finds what is there of {id}");
        store.delete_person(id).unwrap();
        assert_eq!(remains(person, id), (0, false), "{id} remains on disk");
    }
    assert_eq!(remains(2, "christabel"), (64, true), "who stays is untouched");
    let people = store.people().unwrap();
    assert_eq!((people.len(), people[0].name.as_str()), (1, "Name of christabel"));
    let kept: Vec<_> = store.samples().unwrap().into_iter().map(|sample| (sample.id, sample.features)).collect();
    let expected: Vec<_> = (0..64).map(|sample| (i64::from(sample * 4 + 3), features(seed(2, sample)))).collect();
    assert_eq!(kept, expected);
}

#[test]
fn a_deletion_that_a_reader_keeps_from_cleaning_says_that_traces_remain() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    store.enrol("anna", &PersonChange::default(), &features(0.7), 1).unwrap();
    let reader = Connection::open(directory.path().join("rollcall.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM people;").unwrap();
    assert!(matches!(store.delete_person("anna"), Err(StoreError::TracesRemain(_))));
    assert!(store.people().unwrap().is_empty(), "she is gone from the matching all the same");

    reader.execute_batch("COMMIT").unwrap();
    assert!(matches!(store.delete_person("anna"), Err(StoreError::NoSuchPerson(_))));
    assert!(!on_disk(directory.path(), 0.7), "the second deletion cleans");
}

#[test]
fn voiceprints_can_be_read_by_their_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = TemporaryDirectory::new();
    let inner = directory.path().join("data");
    let store = SqliteStore::open(&inner).unwrap();
    store.enrol("anna", &PersonChange::default(), &features(0.7), 1).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&inner), 0o700);
    for entry in std::fs::read_dir(&inner).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

/// Every eight bytes that stand one after the other in a file of a directory: its database, the log and the log's index.
struct Scan(BTreeSet<[u8; 8]>);

impl Scan {
    fn of(directory: &Path) -> Self {
        let files = std::fs::read_dir(directory).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        Self(files.flat_map(|bytes| bytes.array_windows().copied().collect::<Vec<_>>()).collect())
    }

    /// Whether eight bytes of the vector, from any of its quarters, are there.
    fn holds_vector(&self, seed: f32) -> bool {
        let (vector, bytes) = (vector(seed), |pair: &[f32]| [pair[0].to_le_bytes(), pair[1].to_le_bytes()].concat());
        let mut pieces = vector.values().chunks_exact(2).step_by(24).map(bytes);
        pieces.any(|piece| self.0.contains(piece.as_slice()))
    }
}

fn on_disk(directory: &Path, seed: f32) -> bool {
    Scan::of(directory).holds_vector(seed)
}

/// Whether these bytes stand in any file of the directory.
fn holds(directory: &Path, piece: &[u8]) -> bool {
    std::fs::read_dir(directory).unwrap().any(|entry| {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        bytes.windows(piece.len()).any(|window| window == piece)
    })
}

#[test]
fn a_second_process_is_kept_out_while_the_store_is_open() {
    let directory = TemporaryDirectory::new();
    let first = open(&directory);
    assert!(matches!(SqliteStore::open(directory.path()), Err(StoreError::InUse(_))));
    drop(first);
    open(&directory);
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_left_alone() {
    let directory = TemporaryDirectory::new();
    drop(open(&directory));
    let file = directory.path().join("rollcall.db");
    Connection::open(&file).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = SqliteStore::open(directory.path()).err().expect("the file is newer").to_string();
    assert!(error.contains("format 99") && error.contains("use the newer version"), "{error}");
    let version: i64 = Connection::open(&file).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 99);
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let directory = TemporaryDirectory::new();
    std::fs::write(directory.path().join("rollcall.db"), vec![7; 4096]).unwrap();
    assert!(matches!(SqliteStore::open(directory.path()), Err(StoreError::Database(_))));
}

#[test]
fn damaged_vectors_are_left_out_and_the_others_stay() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    for _ in 0..4 {
        store.enrol("anna", &PersonChange::default(), &features(0.7), 1).unwrap();
    }
    drop(store);
    let connection = Connection::open(directory.path().join("rollcall.db")).unwrap();
    for (id, blob) in [(1, vec![1, 2, 3]), (2, f32::NAN.to_le_bytes().to_vec()), (3, Vec::new())] {
        connection.execute("UPDATE samples SET vector = ?2 WHERE id = ?1", rusqlite::params![id, blob]).unwrap();
    }
    drop(connection);
    let left: Vec<i64> = open(&directory).samples().unwrap().iter().map(|sample| sample.id).collect();
    assert_eq!(left, [4]);
}

#[test]
fn the_size_on_disk_is_known() {
    let directory = TemporaryDirectory::new();
    assert!(open(&directory).size_bytes() > 4096);
}
