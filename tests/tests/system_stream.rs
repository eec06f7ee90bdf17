//! Goal: `rollcall stream` is a client that people can rely on: events as lines, exit codes, and a reason on one line.
//! Method: the real command against a real server, with files written by the test; audio goes in forty times as fast.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use rollcall_tests::server::{Server, binary};
use rollcall_tests::sound::{self, OWNER, STRANGER};
use serde_json::{Value, json};

const TURNS: &str = "SPEAKER talk 1 0.000 6.000 <NA> <NA> SPEAKER_00 <NA> <NA>\n\
                     SPEAKER talk 1 6.000 6.000 <NA> <NA> SPEAKER_01 <NA> <NA>\n";

#[test]
fn a_recording_is_streamed_and_every_event_is_one_json_line() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let (audio, turns) = talk(&server);
    let output = stream(&[&audio, "--segments", &turns, "--server", &server.url(), "--speed", "40"]);
    assert!(output.status.success(), "{output:?}");
    let events: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["type"], &events[events.len() - 1]["type"]), (&json!("ready"), &json!("goodbye")));
    let named = |event: &&Value| event["label"] == "SPEAKER_00" && event["person_id"] == "anna";
    assert!(events.iter().filter(|event| event["type"] == "speaker").any(|event| named(&event)), "{events:?}");
    let voices = events[events.len() - 1]["voices"].as_array().unwrap();
    let statuses: Vec<&Value> = voices.iter().map(|voice| &voice["status"]).collect();
    assert_eq!(statuses, ["user", "no_match"]);
    // Each segment was sent when all of its audio had been: a query sees the whole turn.
    assert!(voices.iter().all(|voice| voice["evidence_seconds"] == 6.0), "{voices:?}");
}

#[test]
fn the_same_recording_again_goes_on_with_its_budget() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let (audio, turns) = talk(&server);
    let arguments = [&audio, "--segments", &turns, "--server", &server.url(), "--speed", "40", "--recording", "tape 7"];
    let reserved = || {
        let output = stream(&arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        let goodbye: Value = serde_json::from_str(text.lines().next_back().unwrap()).unwrap();
        goodbye["budget"]["reserved"].as_u64().unwrap()
    };
    let first = reserved();
    assert!(first > 0 && reserved() > first, "the books of the first time were continued");
}

#[test]
fn what_is_wrong_is_one_line_with_the_right_exit_code() {
    let server = Server::start();
    let (audio, turns) = talk(&server);
    let notes = text(&server.file("notes.txt", b"these are notes"));
    let url = server.url();
    let nobody = "http://127.0.0.1:1";
    for (arguments, code, words) in [
        (vec!["nowhere.wav", "--segments", &turns, "--server", &url], 2, "nowhere.wav: cannot be read"),
        (vec![&notes, "--segments", &turns, "--server", &url], 2, "notes.txt: the file is none of WAV"),
        (vec![&audio, "--segments", &notes, "--server", &url], 2, "notes.txt: line 1"),
        (vec![&audio, "--segments", &turns, "--server", "127.0.0.1"], 2, "is not like http://127.0.0.1:8700"),
        (vec![&audio, "--segments", &turns, "--server", &url, "--speed", "0"], 2, "--speed 0"),
        (vec![&audio, "--segments", &turns, "--server", &url, "--speed", "NaN"], 2, "--speed NaN"),
        (vec![&audio, "--segments", &turns, "--server", &url, "--recording", ""], 2, "recording_id"),
        (vec![&audio, "--segments", &turns, "--server", nobody], 1, "start one with: rollcall serve"),
    ] {
        let output = stream(&arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{arguments:?}: {said}");
    }
}

#[test]
fn a_server_that_stops_meanwhile_ends_the_command_with_1_and_its_goodbye() {
    let mut server = Server::start();
    let (audio, turns) = talk(&server);
    let streaming = command(&[&audio, "--segments", &turns, "--server", &server.url()]).spawn().unwrap();
    while server.metrics().value("rollcall_conversations") < 1.0 {
        std::thread::yield_now();
    }
    server.terminate();
    let output = streaming.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("\"goodbye\""));
    assert!(String::from_utf8(output.stderr).unwrap().contains("ended the recording early: draining"));
    assert!(server.ended().success());
}

/// Twelve seconds of two voices, and who spoke when.
fn talk(server: &Server) -> (String, String) {
    let samples = [sound::tone(OWNER, 6.0), sound::tone(STRANGER, 6.0)].concat();
    let audio = server.file("talk.wav", &sound::wav(&samples));
    let turns = server.file("talk.rttm", TURNS.as_bytes());
    (text(&audio), text(&turns))
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("stream").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn stream(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}
