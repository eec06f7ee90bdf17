//! Goal: a recording is identified as live audio would be, the same way every time, and bad input says what is wrong.
//! Method: tones as voices and an engine that hears them; folders and clips written to a directory of the test's own.

use std::sync::Arc;
use std::time::Duration;

use gpu_worker::{Engine, Failure};
use matcher_core::policy::Print;
use matcher_core::{Gallery, Limits, PersonId, Role, budget};
use serde_json::json;

use super::*;
use crate::audio::Audio;
use crate::formats;
use crate::testing::{TemporaryDirectory, ToneEngine, manifest, rate, silence, tone, wav};

/// Hertz of each person's voice.
const ANNA: f64 = 300.0;
const BEN: f64 = 700.0;
const STRANGER: f64 = 1100.0;

fn hear(engine: &ToneEngine, hertz: f64) -> matcher_core::Embedding {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let clip = Audio { pcm: tone(hertz, 3.0).into(), sample_rate: rate() }.clip();
    runtime.block_on(engine.submit(clip, Duration::from_secs(1))).unwrap()
}

fn people(engine: &ToneEngine) -> Gallery {
    let print = |id: &str, name: &str, role, hertz| Print {
        person: PersonId::new(id),
        name: name.into(),
        role,
        embedding: hear(engine, hertz),
        is_pinned: false,
    };
    Gallery::new(vec![print("anna", "Anna", Role::Owner, ANNA), print("ben", "Ben", Role::Person, BEN)])
}

/// A recording of these voices (label, hertz, seconds), one after the other, and its segments.
fn talk(turns: &[(&str, f64, f64)]) -> (Audio, Vec<formats::Segment>) {
    let (mut pcm, mut segments, mut start) = (Vec::new(), Vec::new(), 0.0);
    for (label, hertz, seconds) in turns {
        pcm.extend(tone(*hertz, *seconds));
        segments.push(formats::Segment { start, end: start + seconds, label: (*label).into(), text: None });
        start += seconds;
    }
    (Audio { pcm: pcm.into(), sample_rate: rate() }, segments)
}

fn request(engine: &ToneEngine, audio: Audio, segments: Option<Vec<formats::Segment>>) -> Request {
    Request {
        audio,
        segments,
        gallery: people(engine),
        policy: crate::serve::policy(&manifest()),
        limits: Limits::default(),
        budget: budget::Limits::default(),
        ring: Duration::from_secs(60),
        clip_gate: Switch::Off,
    }
}

fn run(engine: &Arc<ToneEngine>, request: Request) -> Report {
    identify(engine.as_ref(), request, &mut |_| {}).unwrap()
}

const TURNS: [(&str, f64, f64); 5] = [
    ("SPEAKER_00", ANNA, 3.0),
    ("SPEAKER_01", STRANGER, 6.0),
    ("SPEAKER_0", ANNA, 3.0),
    ("SPEAKER_02", BEN, 5.5),
    ("SPEAKER_01", STRANGER, 2.0),
];

fn talk_of_three(engine: &ToneEngine) -> Request {
    let (audio, segments) = talk(&TURNS);
    request(engine, audio, Some(segments))
}

#[test]
fn the_report_has_the_shape_that_other_programs_read() {
    let engine = ToneEngine::new();
    let report = run(&engine, talk_of_three(&engine));
    let mut found = serde_json::to_value(&report).unwrap();
    // A distance is a number of the model; what is fixed here is who is near whom.
    for voice in found["voices"].as_array_mut().unwrap() {
        for field in ["distance", "runner_up_distance"] {
            voice[field] = json!(voice[field].as_f64().unwrap().round().abs());
        }
    }
    let segment = |start: f64, end: f64, speaker: u32, label: &str, person: Option<&str>, status: &str| {
        let mut segment = json!({"start": start, "end": end, "speaker": speaker, "label": label, "status": status});
        if let Some(person) = person {
            segment["person_id"] = json!(person);
        }
        segment
    };
    let expected = json!({
        "audio": {"seconds": 19.5, "sample_rate": 16000},
        "model": {"name": "tones", "fingerprint": "f0".repeat(32), "threshold": 0.65, "margin": 0.1},
        "voices": [
            {"speaker": 0, "label": "SPEAKER_00", "status": "user", "person_id": "anna", "person_name": "Anna",
             "distance": 0.0, "runner_up_distance": 1.0, "evidence_seconds": 6.0, "attempts": 2, "decided_at": 12.0},
            {"speaker": 1, "label": "SPEAKER_01", "status": "no_match", "distance": 1.0, "runner_up_distance": 1.0,
             "evidence_seconds": 8.0, "attempts": 2, "decided_at": 9.0},
            {"speaker": 2, "label": "SPEAKER_02", "status": "not_user", "person_id": "ben", "person_name": "Ben",
             "distance": 0.0, "runner_up_distance": 1.0, "evidence_seconds": 5.5, "attempts": 1, "decided_at": 17.5}
        ],
        "segments": [
            segment(0.0, 3.0, 0, "SPEAKER_00", Some("anna"), "user"),
            segment(3.0, 9.0, 1, "SPEAKER_01", None, "no_match"),
            segment(9.0, 12.0, 0, "SPEAKER_0", Some("anna"), "user"),
            segment(12.0, 17.5, 2, "SPEAKER_02", Some("ben"), "not_user"),
            segment(17.5, 19.5, 1, "SPEAKER_01", None, "no_match")
        ],
        "budget": {"reserved": 5, "succeeded": 5, "failed": 0, "denied": {"voice": 0, "socket": 0, "both": 0}},
        "exits": {}
    });
    assert_eq!(found, expected);
}

#[test]
fn the_same_input_gives_the_same_output_byte_for_byte() {
    let engine = ToneEngine::new();
    let text = || serde_json::to_string(&run(&engine, talk_of_three(&engine))).unwrap();
    assert_eq!(text(), text());
}

#[test]
fn the_order_of_the_segments_in_the_file_changes_nothing() {
    let engine = ToneEngine::new();
    let mut reversed = talk_of_three(&engine);
    reversed.segments.as_mut().unwrap().reverse();
    assert_eq!(run(&engine, reversed), run(&engine, talk_of_three(&engine)));
}

#[test]
fn a_recording_without_segments_is_one_voice_named_as_early_as_live() {
    let engine = ToneEngine::new();
    let audio = Audio { pcm: tone(BEN, 20.25).into(), sample_rate: rate() };
    let report = run(&engine, request(&engine, audio, None));
    assert_eq!(report.voices.len(), 1);
    let voice = &report.voices[0];
    assert_eq!(
        (voice.label.as_deref(), voice.status, voice.person_id.as_deref()),
        (Some("SPEAKER_00"), "not_user", Some("ben"))
    );
    assert_eq!((voice.decided_at, voice.attempts, voice.evidence_seconds), (Some(5.0), 3, 5.0));
    assert_eq!(report.segments.len(), 1);
    assert_eq!((report.segments[0].start, report.segments[0].end), (0.0, 20.25));
}

#[test]
fn the_budget_refills_with_the_recordings_time() {
    let engine = ToneEngine::new();
    // A stranger is examined again with all that it says, up to twelve times; then the voice's limit denies.
    let turns = vec![("x", STRANGER, 5.0); 20];
    let (audio, segments) = talk(&turns);
    let report = run(&engine, request(&engine, audio, Some(segments)));
    assert_eq!((report.voices[0].attempts, report.budget.reserved), (12, 12));
    assert_eq!((report.budget.denied.voice, report.exits.get("embedding_budget")), (8, Some(&8)));

    // Sixteen strangers spend the burst within 96 s, in which six tokens return.
    let labels: Vec<String> = (0..30).map(|n| format!("v{n}")).collect();
    let turns: Vec<_> = labels.iter().map(|label| (label.as_str(), STRANGER, 5.0)).collect();
    let (audio, segments) = talk(&turns);
    let report = run(&engine, request(&engine, audio, Some(segments)));
    let by_then = 16 + 145 / 15;
    assert_eq!((report.budget.reserved, report.budget.denied.socket), (by_then, 30 - by_then));
}

#[test]
fn a_failed_query_is_spent_and_told_and_the_recording_goes_on() {
    let engine = ToneEngine::new();
    let request = talk_of_three(&engine);
    engine.fail_next(Failure::Extraction("no".into()));
    let report = run(&engine, request);
    assert_eq!((report.budget.reserved, report.budget.failed), (5, 1));
    assert_eq!(report.failures, [("extraction failed: no".to_owned(), 1)].into());
    assert_eq!(report.voices[0].person_id.as_deref(), Some("anna"), "the failed speech was examined again");
}

#[test]
fn a_segment_beyond_the_recording_exits_and_the_others_stand() {
    let engine = ToneEngine::new();
    let mut request = talk_of_three(&engine);
    let beyond = formats::Segment { start: 30.0, end: 36.0, label: "SPEAKER_02".into(), text: None };
    request.segments.as_mut().unwrap().push(formats::Segment { label: "late".into(), ..beyond });
    let report = run(&engine, request);
    assert_eq!(report.exits, [("window_outside_buffer", 1)].into());
    assert_eq!(report.voices.last().map(|voice| voice.status), Some("pending"));
    assert_eq!(report.voices[2].person_id.as_deref(), Some("ben"));
}

#[test]
fn an_empty_gallery_asks_the_model_nothing() {
    let engine = ToneEngine::new();
    let request = Request { gallery: Gallery::default(), ..talk_of_three(&engine) };
    let before = engine.clips();
    let report = run(&engine, request);
    assert_eq!((report.budget.reserved, engine.clips()), (0, before));
    assert!(report.voices.iter().all(|voice| voice.status == "pending"));
}

#[test]
fn ten_thousand_speakers_are_refused_by_their_first_label_too_many() {
    let engine = ToneEngine::new();
    let segment = |n: u32| {
        let start = f64::from(n) / 100.0;
        formats::Segment { start, end: start + 0.01, label: format!("v{n}"), text: None }
    };
    let audio = Audio { pcm: silence(1.0).into(), sample_rate: rate() };
    let many = request(&engine, audio.clone(), Some((0..10_000).map(segment).collect()));
    let error = identify(engine.as_ref(), many, &mut |_| {}).unwrap_err();
    assert_eq!(
        error.to_string(),
        "segment 1025: its label is one too many; a recording has at most 1024 different ones"
    );

    let thousand = run(&engine, request(&engine, audio, Some((0..1000).map(segment).collect())));
    assert_eq!((thousand.voices.len(), thousand.segments.len()), (128, 1000));
    assert_eq!(thousand.exits.get("voice_capacity"), Some(&872));
}

#[test]
fn a_segment_without_a_place_in_audio_names_its_field() {
    let engine = ToneEngine::new();
    let cases = [
        (f64::NAN, 1.0, "start"),
        (-1.0, 1.0, "start"),
        (0.0, f64::INFINITY, "end"),
        (2.0, 1.0, "end"),
        (1.0, 1.0, "end"),
    ];
    for (start, end, field) in cases {
        let segment = formats::Segment { start, end, label: "x".into(), text: None };
        let audio = Audio { pcm: silence(3.0).into(), sample_rate: rate() };
        let bad = request(&engine, audio, Some(vec![segment]));
        let error = identify(engine.as_ref(), bad, &mut |_| {}).unwrap_err().to_string();
        assert!(error.starts_with(&format!("segment 1: `{field}` must ")), "{start}..{end}: {error}");
    }
}

#[test]
fn every_format_names_people_and_leaves_strangers_their_label() {
    let engine = ToneEngine::new();
    let report = run(&engine, talk_of_three(&engine));
    let rttm = report.to_rttm("talk");
    let read = formats::read(&rttm).unwrap();
    let labels: Vec<&str> = read.iter().map(|segment| segment.label.as_str()).collect();
    assert_eq!(labels, ["anna", "SPEAKER_01", "anna", "ben", "SPEAKER_01"]);
    assert!(report.to_vtt().contains("<v Anna>"));
    assert!(report.to_srt().contains("SPEAKER_01"));
}

#[test]
fn progress_reaches_the_end_of_the_recording() {
    let engine = ToneEngine::new();
    let mut told = Vec::new();
    identify(engine.as_ref(), talk_of_three(&engine), &mut |seconds| told.push(seconds)).unwrap();
    assert!(told.is_sorted());
    assert_eq!(told.last(), Some(&19.5));
}

/// Name and content.
type File = (&'static str, Vec<u8>);

/// A directory with these files.
fn directory(files: &[File]) -> TemporaryDirectory {
    let directory = TemporaryDirectory::new();
    for (name, bytes) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    directory
}

fn gallery_of(directory: &TemporaryDirectory, owner: Option<&str>) -> Result<Gallery, FolderError> {
    let engine = ToneEngine::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let folders = Folders::list(directory.path(), owner)?;
    runtime.block_on(folders.gallery(engine.as_ref(), &|_| {}))
}

#[test]
fn folders_of_clips_become_people_and_other_files_are_passed_over() {
    let people = directory(&[
        ("anna/a.wav", wav(&tone(ANNA, 3.0))),
        ("anna/B.WAV", wav(&tone(ANNA, 2.0))),
        ("anna/LICENSE", b"free".to_vec()),
        ("ben/clip.wav", wav(&tone(BEN, 3.0))),
        (".hidden/clip.wav", wav(&tone(BEN, 3.0))),
        ("README.md", b"people".to_vec()),
    ]);
    let gallery = gallery_of(&people, Some("ben")).unwrap();
    let told: Vec<_> = gallery.iter().map(|print| (print.person.as_str().to_owned(), print.role)).collect();
    assert_eq!(told, [("anna".to_owned(), Role::Person), ("ben".to_owned(), Role::Owner)]);
}

#[test]
fn a_directory_that_gives_no_gallery_says_which_part_of_it() {
    let good = || ("anna/a.wav", wav(&tone(ANNA, 3.0)));
    let cases: [(Vec<File>, Option<&str>, &str); 7] = [
        (vec![("clip.wav", wav(&tone(ANNA, 3.0)))], None, "one folder a person"),
        (vec![good(), ("ben/notes.txt", b"x".to_vec())], None, "ben: holds no audio clips"),
        (vec![good(), ("b n/a.wav", b"x".to_vec())], None, "is to be a person's id, and this id holds ' '"),
        (vec![good()], Some("ben"), "--owner ben: no folder of"),
        (vec![("anna/a.wav", b"no wave".to_vec())], None, "anna/a.wav: the file is none of WAV"),
        (vec![("anna/a.wav", wav(&tone(ANNA, 1.0)))], None, "anna: its clips hold 1.0 s of speech"),
        (vec![("anna/a.wav", wav(&[]))], None, "anna/a.wav: "),
    ];
    for (files, owner, expected) in cases {
        let directory = directory(&files);
        let error = gallery_of(&directory, owner).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected:?} is not in {error:?}");
        assert!(!error.contains('\n'));
    }
    let missing = Folders::list(std::path::Path::new("/nowhere/at/all"), None).unwrap_err();
    assert!(missing.to_string().starts_with("/nowhere/at/all: cannot be read"), "{missing}");
}
