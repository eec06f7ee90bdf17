//! Goal: what is kept of a conversation comes back whole, and goes whole when it is deleted or forgotten.
//! Method: pages as the service writes them, in every order; the time is an argument.

use matcher_core::receipt::{Correction, Rejection, Ruling, Subject, VoiceName};
use matcher_core::{PersonId, Receipt, Scope, Speaker};

use super::*;

fn segment(id: &str, speaker: u32, (start, end): (f64, f64)) -> SegmentRecord {
    SegmentRecord { id: id.into(), speaker, scope: "socket:0".into(), start, end }
}

fn unknown(speaker: u32, scope: &str) -> VoiceRecord {
    VoiceRecord {
        speaker,
        scope: scope.into(),
        label: None,
        status: "no_match".into(),
        person: None,
        origin: "automatic".into(),
        distance: None,
        runner_up: None,
        evidence_seconds: 0.0,
        attempts: 0,
    }
}

fn anna(speaker: u32, scope: &str) -> VoiceRecord {
    VoiceRecord {
        label: Some("SPEAKER_00".into()),
        status: "user".into(),
        person: Some("anna".into()),
        distance: Some(0.1 + 0.2),
        runner_up: Some(0.82),
        evidence_seconds: 12.5,
        attempts: u32::MAX,
        ..unknown(speaker, scope)
    }
}

/// A voice that was taken for somebody.
pub(super) fn heard(speaker: u32, person: &str) -> Page {
    page("r", vec![], vec![VoiceRecord { person: Some(person.into()), ..anna(speaker, "") }])
}

fn enrol_anna(store: &SqliteStore) {
    store.create_person("anna", &PersonChange::default(), 1).unwrap();
}

fn page(recording: &str, segments: Vec<SegmentRecord>, voices: Vec<VoiceRecord>) -> Page {
    Page { recording: recording.into(), segments, voices }
}

/// One segment under one id.
fn note(recording: &str) -> Page {
    page(recording, vec![segment("s", 1, (0.0, 1.0))], vec![unknown(1, "")])
}

fn receipt() -> Receipt {
    emptied(1)
}

fn emptied(generation: u64) -> Receipt {
    Receipt::restore(generation, [].into(), []).unwrap()
}

/// A receipt whose newest edit is about somebody.
fn decided(generation: u64, person: &str) -> Receipt {
    let mut receipt = emptied(generation - 1);
    let ruling = Ruling::Not(Rejection::NotPerson(PersonId::new(person)));
    let voice = VoiceName { speaker: Speaker(1), scope: Scope::new("") };
    receipt.correct(&Correction { voice, subject: Subject::Voice, ruling }).unwrap();
    receipt
}

fn ids(store: &SqliteStore) -> Vec<String> {
    store.conversations(9).unwrap().into_iter().map(|record| record.id).collect()
}

#[test]
fn pages_come_back_in_order_with_the_newest_of_each_voice() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    enrol_anna(&store);
    store.open_conversation("talk", 1000).unwrap();
    let (first, second) = (segment("a", 1, (0.0, 0.1 + 0.2)), segment("b", u32::MAX, (5.0, 9.0)));
    store
        .record("talk", &page("r2", vec![second.clone(), first.clone()], vec![unknown(7, "b"), unknown(7, "a")]), 2000)
        .unwrap();
    store.record("talk", &page("r1", vec![segment("a", 3, (1.0, 2.0))], vec![]), 3000).unwrap();
    store.record("talk", &page("r2", vec![], vec![anna(7, "b"), unknown(2, "b")]), 2500).unwrap();
    store.record("other", &note("r1"), 9000).unwrap();
    drop(store);

    let history = open(&directory).history("talk").unwrap().expect("it is kept");
    let record = ConversationRecord { id: "talk".into(), started_ms: 1000, updated_ms: 3000 };
    let pages = vec![
        page("r1", vec![segment("a", 3, (1.0, 2.0))], vec![]),
        page("r2", vec![first, second], vec![unknown(7, "a"), unknown(2, "b"), anna(7, "b")]),
    ];
    assert_eq!(history, History { record, pages, left_out: 0 });
}

#[test]
fn a_segment_in_parts_reaches_from_its_earliest_start_to_its_latest_end() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    for (speaker, span) in [(1, (4.0, 6.0)), (1, (6.0, 8.0)), (2, (3.0, 5.0))] {
        store.record("talk", &page("r", vec![segment("s", speaker, span)], vec![]), 1).unwrap();
    }
    let history = store.history("talk").unwrap().expect("it is kept");
    assert_eq!(history.pages[0].segments, [segment("s", 2, (3.0, 8.0))], "and its number is the newest one");
}

#[test]
fn a_segment_id_that_comes_again_in_another_stream_is_another_segment() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    let later = SegmentRecord { scope: "socket:1".into(), ..segment("s", 2, (0.5, 3.0)) };
    let segments = vec![segment("s", 1, (0.0, 2.0)), later.clone()];
    store.record("talk", &page("r", segments.clone(), vec![]), 1).unwrap();
    store.record("talk", &page("r", vec![SegmentRecord { end: 4.0, ..later.clone() }], vec![]), 1).unwrap();
    let history = store.history("talk").unwrap().expect("it is kept");
    assert_eq!(history.pages[0].segments, [segments[0].clone(), SegmentRecord { end: 4.0, ..later }]);
}

#[test]
fn voices_of_a_deleted_person_are_nobody_and_whoever_gets_the_id_later_inherits_none() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    enrol_anna(&store);
    let voices = || store.history("talk").unwrap().expect("it is kept").pages.remove(0).voices;
    store.record("talk", &page("r", vec![], vec![anna(1, "")]), 1).unwrap();
    assert_eq!(voices(), [anna(1, "")]);
    store.delete_person("anna").unwrap();
    store.record("talk", &page("r", vec![], vec![anna(2, "")]), 2).unwrap();

    let nobody = |speaker| anna(speaker, "").into_nobody();
    assert_eq!(
        nobody(1),
        VoiceRecord { label: anna(1, "").label, evidence_seconds: 12.5, attempts: u32::MAX, ..unknown(1, "") }
    );
    assert_eq!(voices(), [nobody(1), nobody(2)]);
    enrol_anna(&store);
    assert_eq!(voices(), [nobody(1), nobody(2)]);
    store.record("talk", &page("r", vec![], vec![anna(2, "")]), 3).unwrap();
    assert_eq!(voices(), [nobody(1), anna(2, "")], "the new one has what was heard of her alone");
}

#[test]
fn a_page_that_the_database_refuses_leaves_nothing_behind() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    let bad = page("r", vec![segment("a", 1, (0.0, 1.0)), segment("b", 1, (f64::NAN, 1.0))], vec![]);
    assert!(matches!(store.record("talk", &bad, 1), Err(StoreError::Database(_))));
    assert_eq!(store.history("talk").unwrap(), None);
}

#[test]
fn a_conversation_without_a_page_is_kept_and_one_that_nobody_opened_is_not() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    store.open_conversation("talk", 1000).unwrap();
    store.open_conversation("talk", 2000).unwrap();
    store.open_conversation("talk", 1500).unwrap();
    let record = ConversationRecord { id: "talk".into(), started_ms: 1000, updated_ms: 2000 };
    let empty = History { record, pages: vec![], left_out: 0 };
    assert_eq!(store.history("talk").unwrap(), Some(empty));
    assert_eq!(store.history("other").unwrap(), None);
}

#[test]
fn the_newest_conversations_come_first() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    for (id, now_ms) in [("a", 1), ("b", 2), ("c", 3)] {
        store.open_conversation(id, now_ms).unwrap();
    }
    store.record("a", &note("r"), 4).unwrap();
    assert_eq!(ids(&store), ["a", "c", "b"]);
    assert_eq!(store.conversations(2).unwrap().len(), 2);
    assert_eq!(store.conversations(usize::MAX).unwrap().len(), 3);
    assert_eq!(store.conversations(0).unwrap(), []);
}

#[test]
fn a_deleted_conversation_is_gone_with_all_it_had_and_stays_gone() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    store.record("talk", &page("r", vec![segment("told-by-nobody", 1, (0.0, 1.0))], vec![anna(1, "")]), 1).unwrap();
    store.record("other", &note("r"), 1).unwrap();
    store.save_receipt("talk", &decided(1, "in-a-receipt")).unwrap();
    assert!(holds(directory.path(), b"told-by-nobody"), "the scan finds what is there");

    assert!(store.delete_conversation("talk", 2).unwrap());

    assert!(
        ["told-by-nobody", "in-a-receipt", "SPEAKER_00"].iter().all(|text| !holds(directory.path(), text.as_bytes()))
    );
    store.record("talk", &note("r"), 3).unwrap();
    drop(store);
    let store = open(&directory);
    assert_eq!((store.history("talk").unwrap(), store.receipt("talk").unwrap()), (None, Some(emptied(2))));
    assert_eq!(store.receipts(&["talk", "other"]).unwrap(), [Filed::Deleted, Filed::Kept(Receipt::default())]);
    assert_eq!(ids(&store), ["other"]);
    assert!(!store.delete_conversation("talk", 4).unwrap(), "there is nothing any more");
    assert!(!store.delete_conversation("never", 4).unwrap());
    assert_eq!(store.receipts(&["never"]).unwrap(), [Filed::Kept(Receipt::default())]);
}

#[test]
fn a_deleted_conversation_that_is_opened_begins_anew() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    store.record("talk", &note("old"), 9000).unwrap();
    store.delete_conversation("talk", 9000).unwrap();
    store.record("talk", &note("late"), 9000).unwrap();
    store.open_conversation("talk", 5000).unwrap();
    store.record("talk", &note("new"), 5001).unwrap();
    let record = ConversationRecord { id: "talk".into(), started_ms: 5000, updated_ms: 5001 };
    assert_eq!(store.history("talk").unwrap(), Some(History { record, pages: vec![note("new")], left_out: 0 }));
    assert_eq!(store.receipts(&["talk"]).unwrap(), [Filed::Kept(Receipt::default())]);
}

#[test]
fn a_conversation_of_which_only_corrections_are_kept_can_be_deleted_too() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    for edit in [1, 3] {
        store.save_receipt("talk", &decided(edit, "anna")).unwrap();
        assert!(store.delete_conversation("talk", 1).unwrap(), "edit {edit}");
        assert!(!store.delete_conversation("talk", 1).unwrap(), "there is nothing any more");
        assert_eq!(store.receipt("talk").unwrap(), Some(emptied(edit + 1)));
        assert_eq!(store.receipts(&["talk"]).unwrap(), [Filed::Deleted]);
    }
}

/// A scheduler that knows generation 3 would take the first three edits after a fresh start for ones that it has.
#[test]
fn the_generation_of_a_deleted_conversation_goes_on_until_it_is_forgotten() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    store.open_conversation("talk", 1000).unwrap();
    (1..=3).for_each(|edit| store.save_receipt("talk", &decided(edit, "anna")).unwrap());
    store.delete_conversation("talk", 1000).unwrap();
    assert_eq!(store.receipt_generation("talk").unwrap(), 4);
    assert!(matches!(store.save_receipt("talk", &decided(1, "anna")), Err(StoreError::ReceiptChanged)));

    store.open_conversation("talk", 1001).unwrap();
    assert_eq!(store.receipts(&["talk"]).unwrap(), [Filed::Kept(emptied(4))]);
    store.save_receipt("talk", &decided(5, "ben")).unwrap();
    assert_eq!(store.receipt("talk").unwrap(), Some(decided(5, "ben")));

    store.delete_conversation("talk", 1002).unwrap();
    store.forget(1002, 1002).unwrap();
    assert_eq!(store.receipts(&["talk"]).unwrap(), [Filed::Deleted], "that is remembered as long as anything");
    store.forget(1003, 1003).unwrap();
    assert_eq!((store.receipt("talk").unwrap(), store.receipt_generation("talk").unwrap()), (None, 0));
    assert_eq!(rows(store, &directory), 0);
}

#[test]
fn a_conversation_that_says_now_and_then_that_it_goes_on_keeps_its_receipt() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    store.open_conversation("talk", 1000).unwrap();
    store.save_receipt("talk", &decided(1, "anna")).unwrap();
    corrected_at(store, &directory, &[("talk", 1000)]);
    let store = open(&directory);
    for hour in 2..9 {
        store.open_conversation("talk", hour * 1000).unwrap();
        assert_eq!(store.forget(hour * 1000, hour * 1000).unwrap(), 0);
        assert_eq!(store.receipt("talk").unwrap(), Some(decided(1, "anna")), "hour {hour}");
    }
    assert_eq!(store.forget(8001, 8001).unwrap(), 1, "then it ended");
    assert_eq!(store.receipt("talk").unwrap(), None);
}

/// Rows of conversations and receipts.
fn rows(store: SqliteStore, directory: &TemporaryDirectory) -> i64 {
    drop(store);
    let connection = Connection::open(directory.path().join("rollcall.db")).unwrap();
    let count = "SELECT (SELECT count(*) FROM conversations) + (SELECT count(*) FROM receipts)";
    connection.query_row(count, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_deletion_that_a_reader_keeps_from_cleaning_says_so_and_is_one_all_the_same() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    store.record("talk", &page("r", vec![segment("told-by-nobody", 1, (0.0, 1.0))], vec![]), 1).unwrap();
    let reader = Connection::open(directory.path().join("rollcall.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM people;").unwrap();
    assert!(matches!(store.delete_conversation("talk", 2), Err(StoreError::TracesRemain(_))));
    assert_eq!(store.history("talk").unwrap(), None);
    reader.execute_batch("COMMIT").unwrap();
    assert!(!store.delete_conversation("talk", 3).unwrap());
    assert!(!holds(directory.path(), b"told-by-nobody"), "the second deletion cleans");
}

#[test]
fn a_conversation_holds_its_most_segments_and_says_that_there_were_more() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    let segments =
        |range: std::ops::Range<u32>| range.map(|index| segment(&format!("s{index}"), 1, (0.0, 1.0))).collect();
    store.record("talk", &page("r1", segments(0..60_000), vec![]), 1).unwrap();
    store.record("talk", &page("r2", segments(0..40_003), vec![]), 1).unwrap();
    store
        .record("talk", &page("r1", vec![segment("s7", 1, (0.5, 9.0)), segment("new", 1, (0.0, 1.0))], vec![]), 1)
        .unwrap();
    store.record("other", &page("r1", segments(0..1), vec![]), 1).unwrap();
    let history = store.history("talk").unwrap().expect("it is kept");
    let lengths: Vec<usize> = history.pages.iter().map(|page| page.segments.len()).collect();
    assert_eq!((lengths, history.left_out), (vec![60_000, 40_000], 4));
    let grown = history.pages[0].segments.iter().find(|segment| segment.id == "s7").expect("it was there");
    assert_eq!((grown.start, grown.end), (0.0, 9.0), "what is kept goes on growing");
    store.delete_conversation("talk", 2).unwrap();
    store.open_conversation("talk", 3).unwrap();
    store.record("talk", &note("r"), 3).unwrap();
    let history = store.history("talk").unwrap().expect("it begins anew");
    assert_eq!((history.pages, history.left_out), (vec![note("r")], 0), "with all its room");
}

#[test]
fn a_conversation_holds_its_most_voices() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    enrol_anna(&store);
    let voices = (0..8193).map(|speaker| unknown(speaker, "")).collect();
    store.record("talk", &page("r", vec![], voices), 1).unwrap();
    store.record("talk", &page("r", vec![], vec![anna(0, "")]), 2).unwrap();
    let history = store.history("talk").unwrap().expect("it is kept");
    assert_eq!((history.pages[0].voices.len(), history.left_out), (8192, 1));
    assert_eq!(history.pages[0].voices[0], anna(0, ""));
}

#[test]
fn what_had_no_news_is_forgotten_with_its_corrections() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    for (id, now_ms) in [("old", 1000), ("corrected", 1000), ("new", 1000), ("deleted", 1000)] {
        store
            .record(id, &page("r", vec![segment(&format!("in-{id}"), 1, (0.0, 1.0))], vec![anna(1, "")]), now_ms)
            .unwrap();
    }
    store.record("new", &note("r"), 2000).unwrap();
    for id in ["old", "corrected", "new", "old and alone", "new and alone"] {
        store.save_receipt(id, &receipt()).unwrap();
    }
    corrected_at(
        store,
        &directory,
        &[("old", 1999), ("corrected", 2000), ("new", 1), ("old and alone", 1999), ("new and alone", 2000)],
    );
    let store = open(&directory);
    store.delete_conversation("deleted", 1999).unwrap();

    assert_eq!(store.forget(2000, 2000).unwrap(), 1, "of those that nobody had deleted");

    assert_eq!(ids(&store), ["new", "corrected"]);
    let is_kept = |id: &str| store.receipt(id).unwrap().is_some();
    assert_eq!(
        ["old", "corrected", "new", "old and alone", "new and alone"].map(is_kept),
        [false, true, true, false, true]
    );
    let nothing = || Filed::Kept(Receipt::default());
    assert_eq!(store.receipts(&["old", "deleted"]).unwrap(), [nothing(), nothing()], "nor that it was deleted");
    assert!(!holds(directory.path(), b"in-old") && holds(directory.path(), b"in-new"));
    assert_eq!(store.forget(2000, 2000).unwrap(), 0);
}

/// The database's clock says when a correction was made, so another one is put in by hand.
fn corrected_at(store: SqliteStore, directory: &TemporaryDirectory, times: &[(&str, i64)]) {
    drop(store);
    let connection = Connection::open(directory.path().join("rollcall.db")).unwrap();
    for (id, time) in times {
        let set = "UPDATE receipts SET updated_ms = ?2 WHERE conversation = ?1";
        assert_eq!(connection.execute(set, rusqlite::params![id, time]).unwrap(), 1);
    }
}
