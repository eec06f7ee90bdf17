//! Goal: whoever asks why a voice has no name is told the reason, over HTTP and on the socket while it is live, and over HTTP
//! after the end.
//! Method: a real server process; a stranger and an owner, told apart by their tones.

use rollcall_tests::server::Server;
use rollcall_tests::socket::Client;
use rollcall_tests::sound::{OWNER, STRANGER};
use serde_json::{Value, json};

fn sentences(told: &Value, part: &str) -> String {
    let list = told[part].as_array().unwrap_or_else(|| panic!("no {part} in {told}"));
    list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_refused_stranger_is_told_everywhere_why_and_what_would_change_it() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "recording", "talk").await;
    client.speak(1, STRANGER, 6.0).await;
    assert_eq!(client.verdict(1).await["status"], "no_match");

    let path = "/v1/conversations/talk/voices/1/explain";
    let explained = server.get(path).json();
    let voice = &explained["voices"][0];
    assert_eq!(
        (&explained["live"], &voice["status"], &voice["recording_id"]),
        (&json!(true), &json!("no_match"), &json!("recording"))
    );
    assert_eq!(voice["candidates"][0]["person_id"], "anna");
    assert_eq!(voice["budget"]["voice_attempts_left"], 11);
    let told = &voice["explanation"];
    assert!(told["summary"].as_str().unwrap().starts_with("Nobody who is enrolled is near enough"), "{told}");
    assert!(sentences(told, "asked").contains("1 of 12 questions"), "{told}");
    assert!(sentences(told, "missing").contains("A distance below"), "{told}");
    assert!(sentences(told, "would_change").contains("Enrolling who this is"), "{told}");

    client.send(&json!({"type": "explain", "speaker": 1})).await;
    let on_socket = client.event("explained").await;
    assert_eq!(on_socket["explanation"]["summary"], told["summary"], "{on_socket}");

    let lane = server.conversation("talk")["lanes"][0].clone();
    assert_eq!((&lane["recording_id"], &lane["limits"]["voice_attempts"]), (&json!("recording"), &json!(12)), "{lane}");
    assert_eq!(lane["voices"][0]["summary"], told["summary"]);
    let shown = &lane["segments"][0];
    assert_eq!((&shown["speaker"], &shown["start"], &shown["end"]), (&json!(1), &json!(0.0), &json!(6.0)), "{lane}");

    client.stop().await;
    let ended = server.get(path).json();
    assert_eq!(
        (&ended["live"], &ended["voices"][0]["explanation"]["summary"]),
        (&json!(false), &json!("It got no name."))
    );
    assert_eq!(server.get("/v1/conversations/talk/voices/2/explain").status, 404);
}

#[tokio::test]
async fn a_voice_with_a_name_lacks_nothing_and_one_that_said_too_little_is_told_how_much_is_missing() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "recording", "talk").await;
    client.speak(1, OWNER, 6.0).await;
    assert_eq!(client.verdict(1).await["person_id"], "anna");
    client.speak(2, STRANGER, 1.0).await;
    client.event_where("exit", |exit| exit["reason"] == "window_shorter_than_minimum").await;

    let explanation = |speaker: u32| {
        server.get(&format!("/v1/conversations/talk/voices/{speaker}/explain")).json()["voices"][0]["explanation"]
            .clone()
    };
    let named = explanation(1);
    assert!(named["summary"].as_str().unwrap().starts_with("This is "), "{named}");
    assert_eq!(named["missing"], json!([]));
    let short = explanation(2);
    assert_eq!(short["summary"], "Too little was heard for a verdict: 0.0 s of 5.0 s.");
    assert!(sentences(&short, "missing").contains("1.0 s of fresh speech"), "{short}");
}
