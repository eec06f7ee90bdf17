//! Goal: audio is what the client sent, however it was cut, and what the ring no longer holds enough of is never asked.
//! Method: a real server with a ring of ten seconds; the voice is a tone, which one lost byte would turn into noise.

use rollcall_tests::server::Server;
use rollcall_tests::socket::Client;
use rollcall_tests::sound::{self, OWNER, STRANGER};
use serde_json::json;

const SHORT_RING: &str = "sockets.ring_seconds=10";

#[tokio::test]
async fn a_segment_that_overlaps_the_ring_by_400_samples_spends_no_token() {
    let server = Server::start_with(&[SHORT_RING]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "edge", "edge").await;
    client.audio(&sound::tone(OWNER, 20.0)).await;
    // The ring holds 10 s to 20 s.
    let segment = client.segment(&json!(0), 7.0, 10.025).await;
    let exit = client.event("exit").await;
    assert_eq!((&exit["segment_id"], &exit["reason"]), (&json!(segment), &json!("window_shorter_than_minimum")));
    client.segment(&json!(0), 2.0, 9.0).await;
    assert_eq!(client.event("exit").await["reason"], "window_outside_buffer");
    client.segment(&json!(0), 1.0, 1.5).await;
    assert_eq!(client.event("exit").await["reason"], "segment_shorter_than_minimum");
    assert_eq!(client.stop().await["budget"]["reserved"], 0);
    assert_eq!(server.metrics().attempts("reserved"), 0.0);
}

#[tokio::test]
async fn frames_of_odd_length_keep_every_sample_whole() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "odd", "odd").await;
    let bytes = sound::bytes(&sound::tone(OWNER, 6.0));
    let mut rest = bytes.as_slice();
    for length in [1, 3, 7, 3_201, 1_599].iter().cycle() {
        let (frame, later) = rest.split_at(rest.len().min(*length));
        client.binary(frame.to_vec()).await;
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    client.segment(&json!(0), 0.0, 6.0).await;
    let verdict = client.verdict(0).await;
    assert_eq!(verdict["person_id"], "anna");
    assert!(verdict["distance"].as_f64().is_some_and(|distance| distance < 1e-6), "{verdict}");
}

#[tokio::test]
async fn a_segment_of_audio_that_has_not_come_yet_waits_for_the_next_update() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "early", "early").await;
    client.segment(&json!(0), 0.0, 6.0).await;
    assert_eq!(client.event("exit").await["reason"], "no_pcm");
    client.audio(&sound::tone(OWNER, 6.0)).await;
    client.segment(&json!(0), 0.0, 6.0).await;
    assert_eq!(client.verdict(0).await["person_id"], "anna");
}

#[tokio::test]
async fn a_query_takes_the_newest_ten_seconds_of_a_ring_that_has_turned() {
    let server = Server::start_with(&[SHORT_RING]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "turned", "turned").await;
    client.audio(&sound::tone(STRANGER, 30.0)).await;
    client.audio(&sound::tone(OWNER, 10.0)).await;
    client.segment(&json!(0), 0.0, 40.0).await;
    let verdict = client.verdict(0).await;
    assert_eq!((&verdict["person_id"], &verdict["evidence_seconds"]), (&json!("anna"), &json!(10.0)));
}
