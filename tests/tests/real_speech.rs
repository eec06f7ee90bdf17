//! Goal: on real speech, everybody who is enrolled is named right, nobody wrong, and whoever is left out is nobody.
//! Method: the real model and the matcher as `rollcall identify` runs them, on the demo's own voices and, where it is at
//! hand, on a corpus beside the repository. Segments carry anonymous labels; the truth stays here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use gateway::audio::{Limits, decode};
use gateway::config::{Config, Home};
use gateway::formats::{self, Segment};
use gateway::identify::{Folders, Request, identify};
use gateway::{engine, serve};
use gpu_worker::{Engine as _, Pool};
use matcher_core::Gallery;
use matcher_core::policy::{Print, Role};
use serde_json::Value;

#[test]
fn the_demos_people_are_named_right_and_its_stranger_is_nobody() {
    let voices = home().path().join("voices");
    assert!(voices.is_dir(), "the demo's voices are missing in {}; run `make setup`", voices.display());
    let people = enrolled(&voices.join("people"), |_| true);
    assert_eq!(people.len(), 3);
    let talk = Talk::read(&voices.join("conversation.wav"), &voices.join("conversation.truth.rttm"));
    assert_eq!(talk.speakers().len(), 4, "three people and a stranger");
    talk.check(&people);
}

#[test]
fn the_corpus_people_are_named_right_and_whoever_is_left_out_is_nobody() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/speech");
    let Ok(manifest) = std::fs::read_to_string(corpus.join("manifest.json")) else {
        eprintln!("no corpus at {}: only the demo's voices are heard", corpus.display());
        return;
    };
    let manifest: Value = serde_json::from_str(&manifest).expect("the manifest is JSON");
    let people = enrolled(&corpus.join("clips"), |person| manifest["clips"][person]["role"] == "enrol");
    assert_eq!(people.len(), 8);
    for (name, speakers) in [("spe1_two_clean", 2), ("spe2_four_overlap", 4)] {
        let file = |extension: &str| corpus.join("conversations").join(name).with_extension(extension);
        let talk = Talk::read(&file("flac"), &file("rttm"));
        assert_eq!(talk.speakers().len(), speakers, "{name}");
        talk.check(&people);
    }
}

/// A recording and who really spoke when.
struct Talk {
    audio: gateway::audio::Audio,
    truth: Vec<Segment>,
}

impl Talk {
    fn read(audio: &Path, truth: &Path) -> Self {
        let bytes = std::fs::read(audio).unwrap_or_else(|error| panic!("{}: {error}", audio.display()));
        let text = std::fs::read_to_string(truth).unwrap_or_else(|error| panic!("{}: {error}", truth.display()));
        let audio = decode(bytes, Limits::RECORDING).expect("the recording can be decoded");
        Self { audio, truth: formats::read(&text).expect("the truth is RTTM") }
    }

    /// Everybody who is heard, with an anonymous label.
    fn speakers(&self) -> BTreeMap<&str, String> {
        let mut speakers = BTreeMap::new();
        for segment in &self.truth {
            let label = format!("SPEAKER_{:02}", speakers.len());
            speakers.entry(segment.label.as_str()).or_insert(label);
        }
        speakers
    }

    /// With everybody enrolled, and again with each speaker left out, nobody has another name than their own.
    fn check(&self, people: &[Print]) {
        self.check_without(people, None);
        for speaker in self.speakers().into_keys() {
            if people.iter().any(|print| print.person.as_str() == speaker) {
                self.check_without(people, Some(speaker));
            }
        }
    }

    fn check_without(&self, people: &[Print], left_out: Option<&str>) {
        let speakers = self.speakers();
        let mut present: Vec<Print> =
            people.iter().filter(|print| Some(print.person.as_str()) != left_out).cloned().collect();
        // The account's owner is one of those who speak.
        let owner = present.iter_mut().find(|print| speakers.contains_key(print.person.as_str()));
        owner.expect("somebody who is enrolled speaks").role = Role::Owner;
        let expected = |speaker: &str| {
            let person = present.iter().find(|print| print.person.as_str() == speaker);
            person.map(|print| print.person.as_str().to_owned())
        };
        let expected: BTreeMap<String, Option<String>> =
            speakers.iter().map(|(speaker, label)| (label.clone(), expected(speaker))).collect();
        assert_eq!(self.named(&speakers, present), expected, "without {left_out:?}");
    }

    /// Who is behind each anonymous label, by the matcher.
    fn named(&self, speakers: &BTreeMap<&str, String>, people: Vec<Print>) -> BTreeMap<String, Option<String>> {
        let anonymous = self
            .truth
            .iter()
            .map(|segment| Segment { label: speakers[segment.label.as_str()].clone(), ..segment.clone() });
        let (config, engine) = (Config::default(), engine());
        let request = Request {
            audio: self.audio.clone(),
            segments: Some(anonymous.collect()),
            gallery: Gallery::new(people),
            policy: serve::policy(engine.manifest()),
            limits: serve::limits(&config),
            budget: serve::budget_limits(&config),
            ring: Duration::from_secs_f64(config.sockets.ring_seconds),
            clip_gate: config.matching.clip_gate,
        };
        let report = identify(engine, request, &mut |_| {}).expect("the segments lie in the recording");
        let report = serde_json::to_value(report).expect("a report is JSON");
        let voices = report["voices"].as_array().expect("it lists the voices");
        voices
            .iter()
            .map(|voice| {
                let text = |field: &str| voice[field].as_str().map(str::to_owned);
                (text("label").expect("a voice has its label"), text("person_id"))
            })
            .collect()
    }
}

/// Everybody in a directory who is chosen.
fn enrolled(directory: &Path, is_chosen: impl Fn(&str) -> bool) -> Vec<Print> {
    let folders = Folders::list(directory, None).unwrap_or_else(|error| panic!("{error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime can be built");
    let gallery = runtime.block_on(folders.gallery(engine(), &|_| {})).unwrap_or_else(|error| panic!("{error}"));
    gallery.iter().filter(|print| is_chosen(print.person.as_str())).cloned().collect()
}

/// The installed model, started once. A missing one fails the test: what is not checked must not look green.
fn engine() -> &'static Pool {
    static ENGINE: OnceLock<Pool> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let opened = engine::open(&Config::default(), &home());
        opened.unwrap_or_else(|error| panic!("{error}; run `make setup` first"))
    })
}

/// `ROLLCALL_HOME`, else the home in the repository.
fn home() -> Home {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.rollcall");
    Home::at(std::env::var_os("ROLLCALL_HOME").map_or(repository, PathBuf::from))
}
