//! Goal: a message that is wrong gets an error that names the field, the socket goes on, and nothing is spent.
//! Method: a real server and one socket a test; each wrong message is followed by right ones that must work.

use rollcall_tests::server::Server;
use rollcall_tests::socket::{Client, start};
use rollcall_tests::sound::{self, OWNER, STRANGER};
use serde_json::{Value, json};

#[tokio::test]
async fn a_wrong_start_names_its_field_and_a_right_one_still_works() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    let long = "x".repeat(300);
    for (path, value, field) in [
        ("/audio/sample_rate", json!(0), "audio.sample_rate"),
        ("/audio/sample_rate", json!(-16_000), "audio.sample_rate"),
        ("/audio/sample_rate", json!(1_000_000), "audio.sample_rate"),
        ("/audio/sample_rate", json!(16_000.5), "audio.sample_rate"),
        ("/audio/channels", json!(0), "audio.channels"),
        ("/audio/channels", json!(9), "audio.channels"),
        ("/audio/encoding", json!("gsm"), "audio.encoding"),
        ("/audio", json!(null), "audio"),
        ("/recording_id", json!(long), "recording_id"),
        ("/recording_id", json!(""), "recording_id"),
        ("/recording_id", json!("a\u{0}b"), "recording_id"),
        ("/conversation_id", json!(long), "conversation_id"),
    ] {
        let mut message = start("right", "right");
        *message.pointer_mut(path).expect("the message has this field") = value;
        client.send(&message).await;
        assert_eq!(client.error().await, ("invalid_field".to_owned(), field.to_owned()), "{path}");
    }
    client.send(&start("right", "right")).await;
    client.event("ready").await;
}

#[tokio::test]
async fn audio_before_the_start_is_an_error_and_the_socket_stays_open() {
    let server = Server::start();
    let mut client = Client::connect(&server).await;
    client.binary(vec![1, 2, 3]).await;
    assert_eq!(client.error().await.0, "out_of_order");
    client.send(&json!({"type": "segments", "segments": []})).await;
    assert_eq!(client.error().await.0, "out_of_order");
    client.send(&start("after", "after")).await;
    client.event("ready").await;
}

#[tokio::test]
async fn text_where_audio_is_due_is_an_error_and_the_recording_goes_on() {
    let (server, mut client) = live().await;
    for (text, code) in [
        ("END_OF_AUDIO", "malformed"),
        ("", "malformed"),
        ("[1]", "malformed"),
        ("{\"type\":7}", "malformed"),
        ("{\"type\":\"frobnicate\"}", "unknown_type"),
        ("{\"type\":\"segments\",\"segments\":[{\"start\":NaN}]}", "malformed"),
        ("{\"type\":\"segments\"}", "invalid_field"),
        ("{\"type\":\"explain\",\"speaker\":7}", "invalid_field"),
        ("{\"type\":\"rollover\"}", "invalid_field"),
        ("{\"type\":\"audio_gap\",\"seconds\":-1}", "invalid_field"),
        ("{\"type\":\"provider\",\"name\":\"x\"}", "invalid_field"),
        ("{\"type\":\"provider_message\",\"message\":{}}", "not_supported"),
    ] {
        client.text(text).await;
        assert_eq!(client.error().await.0, code, "{text}");
    }
    goes_on(&server, client).await;
}

#[tokio::test]
async fn a_second_start_is_refused_and_the_first_recording_goes_on() {
    let (server, mut client) = live().await;
    client.send(&start("other", "other")).await;
    assert_eq!(client.error().await.0, "out_of_order");
    goes_on(&server, client).await;
}

#[tokio::test]
async fn a_wrong_segment_is_refused_on_its_own_and_the_others_of_its_message_are_taken() {
    let (server, mut client) = live().await;
    client.audio(&sound::tone(OWNER, 6.0)).await;
    let segment = |id: &str, speaker: Value, start: f64, end: f64| json!({"id": id, "speaker": speaker, "start": start, "end": end});
    let wrong = [
        (segment("reversed", json!(0), 126.66, 102.96), "segments[0].end"),
        (segment("empty", json!(0), 1.0, 1.0), "segments[1].end"),
        (segment("negative", json!(0), -1.0, 1.0), "segments[2].start"),
        (segment("endless", json!(0), 0.0, 1e10), "segments[3].end"),
        (segment("fraction", json!(1.5), 0.0, 1.0), "segments[4].speaker"),
        (segment("below", json!(-1), 0.0, 1.0), "segments[5].speaker"),
        (segment(&"x".repeat(300), json!(0), 0.0, 1.0), "segments[6].id"),
        (segment("label", json!("l".repeat(300)), 0.0, 1.0), "segments[7].speaker"),
        (json!({"id": "timeless", "speaker": 0}), "segments[8].start"),
        (json!(7), "segments[9]"),
    ];
    let right = segment("right", json!(0), 0.0, 6.0);
    let all: Vec<Value> = wrong.iter().map(|(segment, _)| segment.clone()).chain([right]).collect();
    client.send(&json!({"type": "segments", "segments": all})).await;
    for (segment, field) in &wrong {
        let (code, found) = client.error().await;
        assert_eq!(code, "invalid_field", "{segment}");
        assert!(found.starts_with(field), "{segment}: {found}");
    }
    let verdict = client.verdict(0).await;
    assert_eq!((&verdict["person_id"], &verdict["segment_id"]), (&json!("anna"), &json!("right")));
    assert_eq!(server.metrics().attempts("reserved"), 1.0);
}

#[tokio::test]
async fn an_end_far_in_the_future_is_clamped_to_the_audio_that_there_is() {
    let (server, mut client) = live().await;
    client.audio(&sound::tone(OWNER, 6.0)).await;
    client.segment(&json!(0), 0.0, 1e9).await;
    assert_eq!(client.verdict(0).await["evidence_seconds"], 6.0);
    assert_eq!(server.metrics().attempts("reserved"), 1.0);
}

#[tokio::test]
async fn six_hundred_segments_in_one_message_are_refused_whole() {
    let (server, mut client) = live().await;
    let segment = json!({"id": "s", "speaker": 0, "start": 0.0, "end": 1.0});
    client.send(&json!({"type": "segments", "segments": vec![segment; 600]})).await;
    assert_eq!(client.error().await, ("too_large".to_owned(), "segments".to_owned()));
    goes_on(&server, client).await;
}

#[tokio::test]
async fn labels_on_a_socket_that_began_with_numbers_are_refused() {
    let (server, mut client) = live().await;
    client.audio(&sound::tone(OWNER, 1.0)).await;
    client.segment(&json!(0), 0.0, 1.0).await;
    client.segment(&json!("SPEAKER_00"), 0.0, 1.0).await;
    assert_eq!(client.error().await, ("invalid_field".to_owned(), "segments[0].speaker".to_owned()));
    goes_on(&server, client).await;
}

#[tokio::test]
async fn ten_thousand_speakers_of_one_recording_end_at_the_voices_there_is_room_for() {
    let (server, mut client) = live().await;
    client.audio(&sound::tone(STRANGER, 1.0)).await;
    for message in 0..20 {
        let of = |speaker: u32| json!({"id": format!("s{speaker}"), "speaker": speaker, "start": 0.0, "end": 1.0});
        let segments: Vec<Value> = (message * 500..(message + 1) * 500).map(of).collect();
        client.send(&json!({"type": "segments", "segments": segments})).await;
        // Every one of them is told; reading along keeps this client from being a slow one.
        for _ in 0..500 {
            client.event("exit").await;
        }
    }
    let page = server.metrics();
    assert_eq!(page.exits("voice_capacity"), 10_000.0 - 128.0);
    assert_eq!(page.exits("window_shorter_than_minimum"), 128.0);
    assert_eq!(page.attempts("reserved"), 0.0, "nothing was asked of the model");
}

#[tokio::test]
async fn floats_that_are_no_numbers_become_silence_that_is_told() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut client = Client::connect(&server).await;
    let mut message = start("floats", "floats");
    message["audio"]["encoding"] = json!("pcm_f32le");
    client.send(&message).await;
    client.event("ready").await;
    let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30].iter().flat_map(|value| value.to_le_bytes());
    client.binary(bad.collect()).await;
    assert_eq!(client.error().await, ("bad_audio".to_owned(), "audio".to_owned()));
    for frame in sound::tone(OWNER, 6.0).chunks(1_600) {
        let floats = frame.iter().flat_map(|sample| (f32::from(*sample) / 32_768.0).to_le_bytes());
        client.binary(floats.collect()).await;
    }
    client.segment(&json!(0), 0.0, 6.0).await;
    assert_eq!(client.verdict(0).await["person_id"], "anna");
}

#[tokio::test]
async fn silence_asks_nothing_of_the_model() {
    let (server, mut client) = live().await;
    client.audio(&vec![0; 96_000]).await;
    client.segment(&json!(1), 0.0, 6.0).await;
    assert_eq!(client.event("exit").await["reason"], "no_pcm");
    goes_on(&server, client).await;
}

/// A server that knows one person, and a recording on it.
async fn live() -> (Server, Client) {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let client = Client::start(&server, "recording", "conversation").await;
    (server, client)
}

/// After whatever went wrong the owner is recognised with the first token that is spent.
async fn goes_on(server: &Server, mut client: Client) {
    assert_eq!(server.metrics().attempts("reserved"), 0.0, "nothing was asked of the model so far");
    client.speak(0, OWNER, 6.0).await;
    assert_eq!(client.verdict(0).await["person_id"], "anna");
    assert_eq!(client.stop().await["budget"]["reserved"], 1);
}
