//! Goal: a device's capsule is given to one socket, once, in time; and nobody but the device's newest socket replaces it.
//! Method: the bodies are arbitrary bytes, because the store opens none; the time is an argument.

use super::*;

const PHONE: DeviceKey = DeviceKey([1; 32]);
const TABLET: DeviceKey = DeviceKey([2; 32]);

/// A moment far from zero.
const NOW: i64 = 1_700_000_000_000;

/// A store in which the socket `old` has left a capsule on the phone.
fn with_capsule(directory: &TemporaryDirectory) -> SqliteStore {
    let store = open(directory);
    assert_eq!(store.take_capsule(PHONE, "old", NOW).unwrap(), None, "nothing is there at first");
    assert_eq!(keep(&store, ("old", 1), Some(b"sealed")), CapsuleWrite::Written);
    store
}

fn keep(store: &SqliteStore, turn: (&str, u64), body: Option<&[u8]>) -> CapsuleWrite {
    store.keep_capsule(PHONE, turn, body, NOW).unwrap()
}

fn take(store: &SqliteStore, token: &str) -> Option<Vec<u8>> {
    store.take_capsule(PHONE, token, NOW).unwrap()
}

#[test]
fn a_capsule_is_taken_once_also_after_a_restart() {
    let directory = TemporaryDirectory::new();
    drop(with_capsule(&directory));
    let store = open(&directory);
    assert_eq!(store.take_capsule(TABLET, "new", NOW).unwrap(), None, "another device gets nothing");
    assert_eq!(take(&store, "new").as_deref(), Some(b"sealed".as_slice()));
    assert_eq!(take(&store, "newer"), None);
}

#[test]
fn of_two_sockets_that_race_for_a_capsule_one_gets_it_and_the_last_to_ask_writes_the_next() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    for round in 0..50_u64 {
        let (base, rivals) = (format!("base-{round}"), ["left", "right"].map(|side| format!("{side}-{round}")));
        take(&store, &base);
        assert_eq!(keep(&store, (&base, 1), Some(b"sealed")), CapsuleWrite::Written);
        let taken = std::thread::scope(|scope| {
            let takers = [0, 1].map(|side| {
                scope.spawn({
                    let (store, rivals) = (&store, &rivals);
                    move || take(store, &rivals[side])
                })
            });
            takers.map(|taker| taker.join().unwrap())
        });
        assert_eq!(taken.iter().flatten().count(), 1, "round {round}: {taken:?}");
        // Who got the capsule asked first, so the other one has the device.
        let winner = usize::from(taken[1].is_some());
        assert_eq!(keep(&store, (&rivals[winner], 1), Some(b"late")), CapsuleWrite::Superseded);
        assert_eq!(keep(&store, (&rivals[1 - winner], 1), Some(b"next")), CapsuleWrite::Written);
    }
}

#[test]
fn a_socket_whose_device_was_taken_over_can_neither_write_nor_withdraw() {
    let directory = TemporaryDirectory::new();
    let store = with_capsule(&directory);
    take(&store, "new");
    assert_eq!(keep(&store, ("old", 2), Some(b"late")), CapsuleWrite::Superseded);
    assert_eq!(keep(&store, ("new", 1), Some(b"fresh")), CapsuleWrite::Written, "revisions begin anew with a token");
    assert_eq!(keep(&store, ("old", 9), None), CapsuleWrite::Superseded);
    assert_eq!(take(&store, "newer").as_deref(), Some(b"fresh".as_slice()));
}

#[test]
fn a_device_that_nobody_took_is_nobodys_to_write() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    assert_eq!(keep(&store, ("old", 1), Some(b"sealed")), CapsuleWrite::Superseded);
    assert_eq!(take(&store, "new"), None);
}

#[test]
fn a_write_that_comes_after_a_later_withdrawal_is_refused() {
    let directory = TemporaryDirectory::new();
    let store = with_capsule(&directory);
    assert_eq!(keep(&store, ("old", 3), None), CapsuleWrite::Written);
    for late in [0, 1, 2, 3] {
        assert_eq!(keep(&store, ("old", late), Some(b"late")), CapsuleWrite::Superseded, "revision {late}");
    }
    assert_eq!(take(&store, "new"), None, "it stays withdrawn");
    assert_eq!(keep(&store, ("new", 0), Some(b"late")), CapsuleWrite::Superseded, "the first revision is 1");
}

#[test]
fn a_capsule_is_given_for_two_minutes_and_no_longer() {
    for (age, is_given) in [(0, true), (120_000, true), (120_001, false), (i64::MAX - NOW, false), (-120_001, false)] {
        let directory = TemporaryDirectory::new();
        let store = with_capsule(&directory);
        assert_eq!(store.take_capsule(PHONE, "new", NOW + age).unwrap().is_some(), is_given, "after {age} ms");
        assert_eq!(take(&store, "newer"), None, "what was too old for one is not there for the next");
    }
}

#[test]
fn a_capsule_has_a_largest_size_and_one_beyond_it_changes_nothing() {
    let directory = TemporaryDirectory::new();
    let store = with_capsule(&directory);
    let largest = vec![7; CAPSULE_BYTES_MAX];
    let refused = store.keep_capsule(PHONE, ("old", 2), Some(&[largest.as_slice(), &[7]].concat()), NOW);
    assert!(matches!(&refused, Err(StoreError::Full(text)) if text.contains("16385") && text.contains("16384")));
    assert!(matches!(store.keep_capsule(PHONE, ("old", u64::MAX), None, NOW), Err(StoreError::Full(_))));
    assert_eq!(keep(&store, ("old", 2), Some(&largest)), CapsuleWrite::Written, "revision 2 is still to come");
    assert_eq!(take(&store, "new"), Some(largest));
}

#[test]
fn a_deleted_person_takes_every_capsule_off_the_disk_and_every_device_from_its_socket() {
    let directory = TemporaryDirectory::new();
    let store = open(&directory);
    store.create_person("anna", &PersonChange::default(), 1).unwrap();
    for device in [PHONE, TABLET] {
        store.take_capsule(device, "old", NOW).unwrap();
        store.keep_capsule(device, ("old", 5), Some(b"a sealed body of its own"), NOW).unwrap();
    }
    assert!(holds(directory.path(), b"a sealed body of its own"), "the scan finds what is there");
    assert!(matches!(store.delete_person("bert"), Err(StoreError::NoSuchPerson(_))));

    store.delete_person("anna").unwrap();

    assert!(!holds(directory.path(), b"a sealed body of its own"));
    assert_eq!(keep(&store, ("old", 6), Some(b"under way")), CapsuleWrite::Superseded, "a write that was under way");
    assert_eq!(take(&store, "new"), None);
    assert_eq!(keep(&store, ("old", 7), Some(b"late")), CapsuleWrite::Superseded);
    assert_eq!(keep(&store, ("new", 1), Some(b"fresh")), CapsuleWrite::Written, "the next socket has the device");
    assert_eq!(store.take_capsule(TABLET, "new", NOW).unwrap(), None);
}

#[test]
fn capsules_are_forgotten_after_two_minutes_and_devices_after_a_day() {
    let directory = TemporaryDirectory::new();
    let store = with_capsule(&directory);
    let forget = |after: i64| store.forget(0, NOW + after).unwrap();
    assert_eq!(forget(120_000), 0);
    assert!(holds(directory.path(), b"sealed"));
    forget(120_001);
    assert!(!holds(directory.path(), b"sealed"));
    assert_eq!(keep(&store, ("old", 2), None), CapsuleWrite::Written, "the socket is still the device's newest");
    forget(86_400_000);
    assert_eq!(keep(&store, ("old", 3), None), CapsuleWrite::Written);
    forget(86_400_001);
    assert_eq!(keep(&store, ("old", 4), None), CapsuleWrite::Superseded);
}
