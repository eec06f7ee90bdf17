//! Goal: people who are taught or deleted reach running conversations at once, and a device finds its owner again when the
//! server was restarted in between.
//! Method: a real server process with its real database and real sockets.

use rollcall_tests::server::Server;
use rollcall_tests::socket::{Client, start};
use rollcall_tests::sound::{OWNER, STRANGER};
use serde_json::{Value, json};

#[tokio::test]
async fn a_person_who_is_deleted_disappears_from_every_live_verdict() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    server.enrol("ben", STRANGER, false);
    let mut clients = [Client::start(&server, "one", "one").await, Client::start(&server, "two", "two").await];
    for client in &mut clients {
        client.speak(1, STRANGER, 6.0).await;
        assert_eq!(client.verdict(1).await["person_id"], "ben");
    }
    let asked = server.metrics().value("omi_speaker_id_embedding_attempts_total{outcome=\"reserved\"}");
    assert_eq!(server.delete("/v1/people/ben").status, 204);
    for client in &mut clients {
        assert_eq!(client.event("retract").await["speaker"], 1);
    }
    for id in ["one", "two"] {
        let conversation = server.conversation(id);
        assert!(!conversation.to_string().contains("ben"), "{conversation}");
    }
    let after = server.metrics().value("omi_speaker_id_embedding_attempts_total{outcome=\"reserved\"}");
    assert_eq!(after, asked, "nothing was asked of the model for it");
}

#[tokio::test]
async fn a_person_who_is_taught_while_they_talk_is_recognised_without_another_query() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "recording", "talk").await;
    client.speak(1, STRANGER, 6.0).await;
    assert_eq!(client.verdict(1).await["status"], "no_match");
    server.enrol("ben", STRANGER, false);
    let named = client.event_where("speaker", |event| event["person_id"] == "ben").await;
    assert_eq!(named["status"], "not_user");
    assert_eq!(client.stop().await["budget"]["reserved"], 1);
}

/// A socket on a device, on a stream of its own.
async fn on_device(server: &Server, recording: &str) -> Client {
    let mut message: Value = start(recording, recording);
    message["device_id"] = json!("phone");
    let mut client = Client::connect(server).await;
    client.send(&message).await;
    client.event("ready").await;
    client
}

#[tokio::test]
async fn a_device_finds_its_owner_again_after_the_server_was_restarted() {
    let mut server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut client = on_device(&server, "before").await;
    client.speak(1, OWNER, 6.0).await;
    assert_eq!(client.verdict(1).await["person_id"], "anna");
    server.terminate();
    assert!(server.ended().success());

    let server = server.again();
    let mut client = on_device(&server, "after").await;
    client.speak(7, OWNER, 2.0).await;
    let verdict = client.verdict(7).await;
    assert_eq!((&verdict["person_id"], &verdict["evidence_seconds"]), (&json!("anna"), &json!(2.0)));
    let accepted = "omi_owner_reconnect_total{outcome=\"accepted\",reason=\"accepted\"}";
    assert_eq!(server.metrics().value(accepted), 1.0);
}
