//! Goal: a capsule comes back to its own device exactly as it was, and nothing else ever comes out.
//! Method: one capsule, sealed; then every way to spoil it, one at a time.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::testing::TemporaryDirectory;

fn phone() -> DeviceKey {
    device_key("local", "phone")
}

fn capsule() -> Capsule {
    Capsule {
        conversation: "talk \u{0} 安娜".into(),
        recording: "r".repeat(256),
        speaker: u32::MAX,
        scope: String::new(),
        receipt_generation: u64::MAX,
        device: phone(),
        print: print_digest(&Embedding::new(&[3.0, 4.0]).unwrap()),
        centroid: (1..=192_u8).map(|index| (f32::from(index) * 0.7).sin()).collect(),
        seconds: 7.3,
        observed_ms: 1_700_000_000_123,
    }
}

#[test]
fn what_was_sealed_is_opened_bit_by_bit() {
    let sealer = Sealer::ephemeral();
    let opened = sealer.open_sealed(phone(), &sealer.seal(&capsule())).unwrap();
    let bits = |capsule: &Capsule| capsule.centroid.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&opened), bits(&capsule()));
    assert_eq!(opened, capsule());
}

#[test]
fn nothing_of_a_sealed_capsule_can_be_read_and_no_two_seals_are_alike() {
    let sealer = Sealer::ephemeral();
    let (first, second) = (sealer.seal(&capsule()), sealer.seal(&capsule()));
    let is_in = |bytes: &[u8], piece: &[u8]| bytes.windows(piece.len()).any(|window| window == piece);
    let clear = layout::bytes(&capsule());
    let piece: Vec<u8> = capsule().centroid[..2].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert!(is_in(&clear, &piece) && is_in(&clear, b"talk"), "the search finds what is there");
    assert!([&first, &second].iter().all(|sealed| !is_in(sealed, &piece) && !is_in(sealed, b"talk")));
    assert_ne!(first[1..25], second[1..25]);
    assert_ne!(first[25..], second[25..]);
}

#[test]
fn every_flipped_bit_and_every_cut_is_damage() {
    let sealer = Sealer::ephemeral();
    let sealed = sealer.seal(&capsule());
    for index in 1..sealed.len() {
        let mut flipped = sealed.clone();
        flipped[index] ^= 1 << (index % 8);
        assert_eq!(sealer.open_sealed(phone(), &flipped), Err(NotOpened::Damaged), "byte {index}");
        assert_eq!(sealer.open_sealed(phone(), &sealed[..index]), Err(NotOpened::Damaged), "cut at {index}");
    }
    let longer = [sealed.as_slice(), &[0]].concat();
    assert_eq!(sealer.open_sealed(phone(), &longer), Err(NotOpened::Damaged));
    assert!(sealer.open_sealed(phone(), &sealed).is_ok());
}

#[test]
fn garbage_is_damage() {
    let sealer = Sealer::ephemeral();
    for garbage in [vec![], vec![VERSION], vec![VERSION; 41], vec![VERSION; 16_384], b"{\"version\":1}".to_vec()] {
        assert!(sealer.open_sealed(phone(), &garbage).is_err(), "{} bytes", garbage.len());
    }
}

#[test]
fn another_version_is_named() {
    let sealer = Sealer::ephemeral();
    for version in [0, 2, 255] {
        let mut sealed = sealer.seal(&capsule());
        sealed[0] = version;
        assert_eq!(sealer.open_sealed(phone(), &sealed), Err(NotOpened::Version(version)));
    }
}

#[test]
fn another_device_and_another_account_open_nothing() {
    let sealer = Sealer::ephemeral();
    let sealed = sealer.seal(&capsule());
    for stranger in [device_key("local", "tablet"), device_key("other", "phone")] {
        assert_eq!(sealer.open_sealed(stranger, &sealed), Err(NotOpened::Damaged));
    }
}

#[test]
fn another_key_opens_nothing() {
    let sealed = Sealer::ephemeral().seal(&capsule());
    assert_eq!(Sealer::ephemeral().open_sealed(phone(), &sealed), Err(NotOpened::Damaged));
}

/// Whoever has the key still cannot bring a capsule in that no matcher would have written.
#[test]
fn a_capsule_that_no_matcher_writes_is_damage() {
    let sealer = Sealer::ephemeral();
    let refused = |change: fn(&mut Capsule)| {
        let mut changed = capsule();
        change(&mut changed);
        sealer.open_sealed(phone(), &sealer.seal(&changed)) == Err(NotOpened::Damaged)
    };
    assert!(refused(|capsule| capsule.centroid.clear()));
    assert!(refused(|capsule| capsule.centroid[3] = f32::NAN));
    assert!(refused(|capsule| capsule.centroid[0] = f32::INFINITY));
    assert!(refused(|capsule| capsule.centroid.fill(0.0)));
    assert!(refused(|capsule| capsule.seconds = f64::NAN));
    assert!(refused(|capsule| capsule.seconds = -0.5));
    assert!(!refused(|capsule| capsule.seconds = 0.0));
}

#[test]
fn a_layout_with_wrong_lengths_or_texts_is_refused() {
    let clear = layout::bytes(&capsule());
    assert_eq!(layout::capsule(&clear), Some(capsule()));
    for end in 0..clear.len() {
        assert_eq!(layout::capsule(&clear[..end]), None, "cut at {end}");
    }
    assert_eq!(layout::capsule(&[clear.as_slice(), &[0]].concat()), None, "and nothing may follow");
    let mut endless = clear.clone();
    endless[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(layout::capsule(&endless), None);
    let mut no_text = clear;
    no_text[4] = 0xff;
    assert_eq!(layout::capsule(&no_text), None);
}

#[test]
fn a_printed_capsule_shows_nothing_of_the_voice() {
    let mut capsule = capsule();
    capsule.centroid = vec![0.123_456_78; 4];
    let (printed, sealer) = (format!("{capsule:?}"), format!("{:?}", Sealer::ephemeral()));
    assert!(printed.contains("安娜") && !printed.contains("0.1234") && !printed.contains("centroid"), "{printed}");
    assert_eq!(sealer, "Sealer { .. }");
}

#[test]
fn the_key_of_a_directory_is_made_once_and_read_by_its_user_alone() {
    let (directory, other) = (TemporaryDirectory::new(), TemporaryDirectory::new());
    let sealed = Sealer::open(directory.path()).unwrap().seal(&capsule());
    assert!(Sealer::open(directory.path()).unwrap().open_sealed(phone(), &sealed).is_ok(), "after a restart");
    assert!(Sealer::open(other.path()).unwrap().open_sealed(phone(), &sealed).is_err(), "in another directory");
    let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].file_name(), "capsules.key");
    let metadata = files[0].metadata().unwrap();
    assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (32, 0o600));
}

#[test]
fn a_file_that_is_no_key_is_an_error_that_says_how_to_mend_it() {
    let directory = TemporaryDirectory::new();
    std::fs::write(directory.path().join("capsules.key"), [7; 31]).unwrap();
    let error = Sealer::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("capsules.key") && error.contains("31") && error.contains("delete the file"), "{error}");
    assert!(Sealer::open(&directory.path().join("missing")).is_err());
}

#[test]
fn keys_of_devices_and_prints_differ_where_the_parts_do() {
    assert_eq!(phone(), device_key("local", "phone"));
    assert_ne!(device_key("ab", "c"), device_key("a", "bc"));
    assert_ne!(device_key("", "ab"), device_key("ab", ""));
    let print = |second: f32| print_digest(&Embedding::new(&[0.5, second]).unwrap());
    assert_eq!(print(0.5), print(0.5));
    assert_ne!(print(0.5), print(0.500_01));
}
