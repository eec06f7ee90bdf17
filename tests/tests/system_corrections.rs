//! Goal: a correction that was answered holds, also when the process dies right after; and it can be made over HTTP, while
//! the conversation is live and after it ended.
//! Method: a real server process with its real database, killed without a warning.

use rollcall_tests::server::Server;
use rollcall_tests::socket::{Client, start};
use rollcall_tests::sound::{OWNER, STRANGER};
use serde_json::{Value, json};

/// A recording whose provider stream has a name of its own, so that its numbers mean the same on the next socket.
async fn talk(server: &Server) -> Client {
    let mut message = start("recording", "talk");
    message["provider"] = json!({"name": "any", "scope": "stream:0"});
    let mut client = Client::connect(server).await;
    client.send(&message).await;
    client.event("ready").await;
    client
}

#[tokio::test]
async fn a_correction_survives_a_kill_right_after_its_answer() {
    let mut server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut client = talk(&server).await;
    client.speak(1, OWNER, 6.0).await;
    assert_eq!(client.verdict(1).await["person_id"], "anna");
    client.send(&json!({"type": "reject", "speaker": 1, "kind": "not_me"})).await;
    client.event("corrected").await;
    server.kill();

    let server = server.again();
    let mut client = talk(&server).await;
    client.speak(1, OWNER, 6.0).await;
    assert_eq!(client.event("exit").await["reason"], "rejected");
    let conversation = server.conversation("talk");
    let voice = &conversation["lanes"][0]["voices"][0];
    assert_eq!((&voice["status"], &voice["attempts"]), (&json!("no_match"), &json!(0)), "{conversation}");
}

#[tokio::test]
async fn labels_are_made_over_http_while_the_conversation_lives_and_after_it_ended() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let labels = "/v1/conversations/talk/labels";
    let empty = json!({"generation": 0, "voices": [], "segments": []});
    assert_eq!(server.get(labels).json(), empty);

    let mut client = talk(&server).await;
    client.speak(3, STRANGER, 6.0).await;
    client.verdict(3).await;
    let wrong = server.post(labels, &json!({"type": "label", "speaker": 3, "person_id": "nobody"}));
    assert_eq!((wrong.status, &wrong.json()["field"]), (422, &json!("person_id")));
    let made = server.post(labels, &json!({"type": "label", "speaker": 3, "person_id": "anna"}));
    assert_eq!((made.status, made.json()), (200, json!({"receipt_generation": 1})));
    let told = client.event("speaker").await;
    assert_eq!((&told["person_id"], &told["origin"]), (&json!("anna"), &json!("manual")), "{told}");
    assert_eq!(client.stop().await["voices"][0]["person_id"], "anna");

    let unheard = server.post(labels, &json!({"type": "reject", "speaker": 4, "kind": "not_me"}));
    assert_eq!((unheard.status, &unheard.json()["code"]), (422, &json!("unheard")), "{}", unheard.json());
    let rejected = json!({"type": "reject", "speaker": 3, "kind": "not_me"});
    assert_eq!(server.post(labels, &rejected).json(), json!({"receipt_generation": 2}));
    let shown: Value = server.get(labels).json();
    assert_eq!(
        shown["voices"],
        json!([{"generation": 2, "rejected": "not_me", "speaker": 3, "recording_id": "recording", "scope": "stream:0"}]),
        "{shown}"
    );
}

#[tokio::test]
async fn a_recording_alone_says_whose_number_is_meant_while_two_recordings_have_it() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut first = Client::start(&server, "first", "talk").await;
    first.speak(3, STRANGER, 6.0).await;
    first.verdict(3).await;
    let mut second = Client::start(&server, "second", "talk").await;
    second.speak(3, STRANGER, 6.0).await;
    second.verdict(3).await;

    let labels = "/v1/conversations/talk/labels";
    let label = json!({"type": "label", "speaker": 3, "person_id": "anna", "recording_id": "first"});
    assert_eq!(server.post(labels, &label).status, 200);
    let told = first.event("speaker").await;
    assert_eq!((&told["person_id"], &told["origin"]), (&json!("anna"), &json!("manual")), "{told}");
    let voices = |recording: &str| {
        let lanes = server.conversation("talk")["lanes"].clone();
        let lane = lanes.as_array().unwrap().iter().find(|lane| lane["recording_id"] == recording).cloned();
        lane.expect("the recording is live")["voices"][0]["person_id"].clone()
    };
    assert_eq!(
        (voices("first"), voices("second")),
        (json!("anna"), Value::Null),
        "the other, heard later, keeps its own"
    );

    let unheard =
        server.post(labels, &json!({"type": "label", "speaker": 3, "person_id": "anna", "recording_id": "third"}));
    assert_eq!((unheard.status, &unheard.json()["code"]), (422, &json!("unheard")), "{}", unheard.json());
}
