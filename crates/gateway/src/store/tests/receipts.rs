//! Goal: a decision that was answered is never lost, never read as another one, and never overwritten unseen.
//! Method: receipts made by edits, as the service makes them; damage and an old file are written by a second connection.

use matcher_core::policy::Role;
use matcher_core::receipt::{Correction, ENTRIES_MAX, Named, Reach, Rejection, Ruling, Source, Subject, VoiceName};
use matcher_core::{PersonId, Receipt, Scope, SegmentId, Speaker};
use rusqlite::params;

use super::*;

fn voice(speaker: u32, scope: &str) -> VoiceName {
    VoiceName { speaker: Speaker(speaker), scope: Scope::new(scope) }
}

fn is(person: &str, name: &str, role: Role) -> Ruling {
    Ruling::Is(Named { person: PersonId::new(person), name: name.into(), role })
}

fn edit(receipt: &mut Receipt, voice: VoiceName, subject: Subject, ruling: Ruling) {
    receipt.correct(&Correction { voice, subject, ruling }).unwrap();
}

/// A receipt of so many edits, each about another voice.
fn edited(times: u32) -> Receipt {
    let mut receipt = Receipt::default();
    (0..times).for_each(|speaker| edit(&mut receipt, voice(speaker, ""), Subject::Voice, Ruling::IsNobody));
    receipt
}

fn is_changed(result: &Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::ReceiptChanged))
}

#[test]
fn every_ruling_and_reach_is_there_after_reopening() {
    let directory = TemporaryDirectory::new();
    let rulings = [
        is("user", "Anna \"Ann\" O'Neil\n", Role::Owner),
        is("安娜", "安娜 🦀", Role::Person),
        Ruling::IsNobody,
        Ruling::Not(Rejection::NotMe),
        Ruling::Not(Rejection::NotPerson(PersonId::new("bert"))),
        Ruling::Not(Rejection::NotAPerson),
    ];
    let mut receipt = Receipt::default();
    let store = open(&directory);
    let save = |receipt: &Receipt| store.save_receipt("talk", receipt).unwrap();
    for (speaker, ruling) in (0_u32..).zip(&rulings) {
        edit(&mut receipt, voice(u32::MAX - speaker, "socket:0"), Subject::Voice, ruling.clone());
        save(&receipt);
        for (reach, scope) in [(Reach::Voice, ""), (Reach::SegmentOnly, "a b")] {
            let ids = ["x", "y"].map(|part| SegmentId::new(&format!("{part}\u{0}{speaker}{reach:?}")));
            edit(&mut receipt, voice(speaker, scope), Subject::Segments(ids.into(), reach), ruling.clone());
            save(&receipt);
        }
    }
    drop(store);
    assert_eq!((receipt.generation(), receipt.voices().count(), receipt.segments().count()), (18, 6, 24));
    assert_eq!(open(&directory).receipt("talk").unwrap(), Some(receipt));
}

#[test]
fn where_a_decision_was_made_is_there_after_reopening() {
    let directory = TemporaryDirectory::new();
    let (Ruling::Is(named), mut receipt) = (is("anna", "Anna", Role::Person), edited(1)) else { unreachable!() };
    receipt.carry(&[(voice(7, "socket:0"), named)].into()).unwrap();
    let store = open(&directory);
    store.save_receipt("talk", &edited(1)).unwrap();
    store.save_receipt("talk", &receipt).unwrap();
    drop(store);
    let kept = open(&directory).receipt("talk").unwrap().expect("it was saved");
    let sources: Vec<Source> = kept.voices().map(|(_, entry)| entry.source).collect();
    assert_eq!((sources, &kept), (vec![Source::Here, Source::Carried], &receipt));
}

/// Each edit raises both receipts, one after the other; so a reading that saw the second one's edit saw the first one's.
#[test]
fn several_receipts_are_read_as_they_were_at_one_moment() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    let kept = |times| Filed::Kept(edited(times));
    assert_eq!(store.receipts(&[]).unwrap(), []);
    assert_eq!(store.receipts(&["second", "first"]).unwrap(), [kept(0), kept(0)]);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for times in 1..=40 {
                store.save_receipt("first", &edited(times)).unwrap();
                store.save_receipt("second", &edited(times)).unwrap();
            }
        });
        while !writer.is_finished() {
            let generations: Vec<u64> = store.receipts(&["second", "first"]).unwrap().iter().map(generation).collect();
            let [second, first] = generations[..] else { panic!("{generations:?}") };
            assert!(first == second || first == second + 1, "{first} and {second} were never there together");
        }
    });
    store.save_receipt("first", &edited(41)).unwrap();
    assert_eq!(store.receipts(&["second", "first", "second"]).unwrap(), [kept(40), kept(41), kept(40)]);
    store.delete_conversation("first", 1).unwrap();
    assert_eq!(store.receipts(&["second", "first"]).unwrap(), [kept(40), Filed::Deleted]);
}

fn generation(filed: &Filed) -> u64 {
    match filed {
        Filed::Kept(receipt) => receipt.generation(),
        Filed::Deleted => panic!("nothing was deleted"),
    }
}

#[test]
fn one_damaged_receipt_of_several_is_an_error() {
    let directory = TemporaryDirectory::new();
    open(&directory).save_receipt("talk", &edited(1)).unwrap();
    damage(&directory, "UPDATE receipts SET body = '{'");
    let store = open(&directory);
    assert!(
        matches!(store.receipts(&["well", "talk"]), Err(StoreError::Damaged { conversation, .. }) if conversation == "talk")
    );
    assert_eq!(store.receipts(&["well"]).unwrap(), [Filed::Kept(Receipt::default())]);
}

#[test]
fn conversations_have_receipts_of_their_own() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    let (long, other) = ("é".repeat(128), format!("{}e", "é".repeat(127)));
    store.save_receipt(&long, &edited(1)).unwrap();
    assert_eq!(store.receipt(&other).unwrap(), None);
    assert_eq!((store.receipt_generation(&other).unwrap(), store.receipt_generation(&long).unwrap()), (0, 1));
    store.save_receipt(&other, &Receipt::restore(1, [].into(), []).unwrap()).unwrap();
    assert_eq!(store.receipt(&long).unwrap(), Some(edited(1)));
}

#[test]
fn an_edit_of_anything_but_the_newest_receipt_is_refused_and_changes_nothing() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    for times in [0, 2] {
        assert!(is_changed(&store.save_receipt("talk", &edited(times))), "generation {times} is no first edit");
    }
    assert_eq!(store.receipt("talk").unwrap(), None);

    store.save_receipt("talk", &edited(1)).unwrap();
    store.save_receipt("talk", &edited(2)).unwrap();
    let mut rival = edited(1);
    edit(&mut rival, voice(9, ""), Subject::Voice, Ruling::Not(Rejection::NotMe));
    let beyond = Receipt::restore(u64::MAX, [].into(), []).unwrap();
    for stale in [Receipt::default(), edited(1), rival, edited(2), edited(4), beyond] {
        assert!(is_changed(&store.save_receipt("talk", &stale)), "{stale:?}");
    }
    assert_eq!(store.receipt("talk").unwrap(), Some(edited(2)));
    store.save_receipt("talk", &edited(3)).unwrap();
}

#[test]
fn of_edits_made_at_once_one_is_kept_and_the_others_are_told() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    let results: Vec<_> = std::thread::scope(|scope| {
        let edits: Vec<_> = (0..8).map(|_| scope.spawn(|| store.save_receipt("talk", &edited(1)))).collect();
        edits.into_iter().map(|edit| edit.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(results.iter().filter(|result| is_changed(result)).count(), 7);
}

/// What a process that is killed leaves is what stands in its files at that moment.
#[test]
fn a_receipt_that_was_saved_is_in_the_files_of_a_store_that_is_never_closed() {
    let (directory, left) = (TemporaryDirectory::new(), TemporaryDirectory::new());
    let store = open(&directory);
    store.save_receipt("talk", &edited(1)).unwrap();
    store.save_receipt("talk", &edited(2)).unwrap();
    for file in ["rollcall.db", "rollcall.db-wal"] {
        std::fs::copy(directory.path().join(file), left.path().join(file)).unwrap();
    }
    assert_eq!(open(&left).receipt("talk").unwrap(), Some(edited(2)));
}

#[test]
fn a_receipt_holds_its_most_entries_and_one_more_is_damage() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    let ids = (1..ENTRIES_MAX).map(|index| SegmentId::new(&format!("segment-{index}"))).collect();
    let mut receipt = edited(1);
    let named = is("anna", "Anna", Role::Person);
    edit(&mut receipt, voice(1, "socket:0"), Subject::Segments(ids, Reach::SegmentOnly), named);
    store.save_receipt("talk", &edited(1)).unwrap();
    store.save_receipt("talk", &receipt).unwrap();
    let kept = store.receipt("talk").unwrap().expect("it was saved");
    assert_eq!(kept.voices().count() + kept.segments().count(), 4096);
    assert_eq!(kept, receipt);
    drop(store);

    let more = r#"replace(body, '"voices":[', '"voices":[{"speaker":7,"recording":"","scope":"","generation":1,"ruling":"not_me"},')"#;
    damage(&directory, &format!("UPDATE receipts SET body = {more}"));
    let error = open(&directory).receipt("talk").unwrap_err().to_string();
    assert!(error.contains("\"talk\"") && error.contains("holds its most corrections"), "{error}");
}

fn damage(directory: &TemporaryDirectory, statement: &str) {
    let connection = Connection::open(directory.path().join("rollcall.db")).unwrap();
    connection.execute_batch(&format!("PRAGMA ignore_check_constraints = ON; {statement}")).unwrap();
}

#[test]
fn a_damaged_receipt_is_an_error_that_names_its_conversation() {
    let whole = r#"{"voices":[{"speaker":1,"recording":"r","scope":"s","generation":2,"ruling":"is_nobody"}],"segments":[{"segment":"a","speaker":1,"recording":"r","scope":"s","reach":"voice","generation":1,"ruling":{"is":{"person":"p","name":"P","role":"owner"}}}]}"#;
    check(2, whole.as_bytes(), None);
    check(2, whole.replacen("\"is_nobody\"", "\"is_nobody\",\"source\":\"carried\"", 1).as_bytes(), None);
    check(1, whole.as_bytes(), Some("generation 2"));
    check(0, br#"{"voices":[],"segments":[]}"#, Some("generation is 0"));
    check(-1, whole.as_bytes(), Some("-1"));
    check(2, &whole.as_bytes()[..whole.len() - 1], Some("EOF"));
    check(2, b"", Some("EOF"));
    check(2, b"null", Some("null"));
    check(2, b"{}", Some("missing field"));
    check(2, format!("{whole}{{}}").as_bytes(), Some("trailing"));
    check(2, &"[".repeat(100_000).into_bytes(), Some("invalid type"));
    check(2, &whole.bytes().map(|byte| if byte == b'P' { 0xff } else { byte }).collect::<Vec<_>>(), Some("unicode"));
    for (from, to, reason) in [
        ("is_nobody", "is_somebody", "is_somebody"),
        ("\"is\"", "\"was\"", "was"),
        ("owner", "admin", "admin"),
        (r#""reach":"voice""#, r#""reach":"all""#, "all"),
        (r#""ruling":"is_nobody""#, r#""ruling":"is_nobody","source":"guessed""#, "guessed"),
        (r#""ruling":"is_nobody""#, r#""ruling":"is_nobody","source":null"#, "expected value"),
        (r#","role":"owner""#, "", "role"),
        (r#","role":"owner""#, r#","role":"owner","age":3"#, "age"),
        (r#""scope":"s","generation":2"#, r#""scope":"s","generation":2,"sure":true"#, "sure"),
        (r#""segment":"a""#, r#""segment":"a","end":1"#, "end"),
        (r#""segments""#, r#""words":[],"segments""#, "words"),
        (r#""speaker":1"#, r#""speaker":-1"#, "-1"),
        (r#""speaker":1"#, r#""speaker":4294967296"#, "4294967296"),
        (r#""generation":2"#, r#""generation":0"#, "generation 0"),
        (r#""generation":1"#, r#""generation":3"#, "generation 3"),
    ] {
        let damaged = whole.replacen(from, to, 1);
        assert_ne!(damaged, whole, "{from} occurs");
        check(2, damaged.as_bytes(), Some(reason));
    }
    for (list, twice) in [("voices", "voice 1 of \"s\""), ("segments", "segment \"a\"")] {
        let mut body: serde_json::Value = serde_json::from_str(whole).unwrap();
        let entries = body[list].as_array_mut().unwrap();
        entries.push(entries[0].clone());
        check(2, body.to_string().as_bytes(), Some(twice));
    }
}

/// A row as given is read, or is an error with this in it. Either way its neighbour is well.
fn check(generation: i64, body: &[u8], reason: Option<&str>) {
    let directory = TemporaryDirectory::new();
    open(&directory).save_receipt("well", &edited(1)).unwrap();
    let connection = Connection::open(directory.path().join("rollcall.db")).unwrap();
    connection.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    let row = "INSERT INTO receipts VALUES ('local', 'talk', ?1, CAST(?2 AS TEXT), 0)";
    connection.execute(row, params![generation, body]).unwrap();
    drop(connection);

    let (store, shown) = (open(&directory), String::from_utf8_lossy(body));
    match (store.receipt("talk"), reason) {
        (Ok(Some(_)), None) => {}
        (Err(error @ StoreError::Damaged { .. }), Some(reason)) => {
            let text = error.to_string();
            assert!(text.contains("\"talk\"") && text.contains(reason), "{text}, for {shown}");
            assert!(is_changed(&store.save_receipt("talk", &edited(1))), "begun anew: {shown}");
        }
        (other, _) => panic!("{other:?}, for generation {generation} of {shown}"),
    }
    assert_eq!(store.receipt("well").unwrap(), Some(edited(1)));
}

#[test]
fn a_receipt_keeps_the_name_of_a_person_who_was_deleted() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    store.enrol("anna", &PersonChange::default(), &features(0.7), 1).unwrap();
    let mut receipt = Receipt::default();
    edit(&mut receipt, voice(1, ""), Subject::Voice, is("anna", "Anna", Role::Person));
    store.save_receipt("talk", &receipt).unwrap();
    store.delete_person("anna").unwrap();
    assert_eq!(store.receipt("talk").unwrap(), Some(receipt));
}
