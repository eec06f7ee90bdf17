//! Goal: with the clip gate on, speech that is mostly silence spends no token and says why, and does not stand in the way
//! of speech that is worth a query; with it off nothing is kept back.
//! Method: a real server, and a client whose microphone is nearly silent at first.

use rollcall_tests::server::Server;
use rollcall_tests::socket::Client;
use rollcall_tests::sound::{self, OWNER};
use serde_json::json;

/// A second of a voice, and then five in which a converter makes the least noise that there is.
fn mostly_silence() -> Vec<i16> {
    let hiss = (0..5 * 16_000).map(|n: i32| if n % 7 < 3 { 1 } else { 0 });
    sound::tone(OWNER, 1.0).into_iter().chain(hiss).collect()
}

#[tokio::test]
async fn mostly_silence_costs_no_token_and_the_voice_is_named_by_what_it_says_next() {
    let server = Server::start_with(&["matching.clip_gate=true"]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "one", "talk").await;
    client.audio(&mostly_silence()).await;
    client.segment(&json!(1), 0.0, 6.0).await;
    assert_eq!(client.event("exit").await["reason"], "window_shorter_than_minimum");
    assert_eq!(server.metrics().attempts("reserved"), 0.0);
    // A pause parts the two; without one they would be judged together.
    client.audio(&vec![0; 16_000]).await;
    client.speak(1, OWNER, 8.0).await;
    assert_eq!(client.verdict(1).await["person_id"], "anna");
    assert_eq!(server.metrics().attempts("reserved"), 1.0);
}

#[tokio::test]
async fn without_the_gate_the_model_is_asked() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "one", "talk").await;
    client.audio(&mostly_silence()).await;
    client.segment(&json!(1), 0.0, 6.0).await;
    client.verdict(1).await;
    assert_eq!(server.metrics().attempts("reserved"), 1.0);
}
