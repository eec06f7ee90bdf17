//! Goal: a conversation is there after its end as it is known by then: exported, corrected, listed, and removed for good.
//! Method: a real server process with its real database; what was heard is asked for over HTTP, also after a restart.

use rollcall_tests::server::{Answer, Server, eventually, http};
use rollcall_tests::socket::{Client, start};
use rollcall_tests::sound::{OWNER, STRANGER, tone};
use serde_json::{Value, json};

const TALK: &str = "/v1/conversations/talk";
const LABELS: &str = "/v1/conversations/talk/labels";

/// The owner as voice 1, then a stranger as voice 2.
async fn talk(server: &Server) -> Client {
    server.enrol("anna", OWNER, true);
    assert_eq!(server.post("/v1/people", &json!({"id": "ben", "name": "Ben B."})).status, 201);
    let mut message = start("phone", "talk");
    message["provider"] = json!({"name": "any", "scope": "stream:0"});
    let mut client = Client::connect(server).await;
    client.send(&message).await;
    client.event("ready").await;
    client.speak(1, OWNER, 6.0).await;
    assert_eq!(client.verdict(1).await["person_id"], "anna");
    client.speak(2, STRANGER, 6.0).await;
    assert_eq!(client.verdict(2).await["status"], "no_match");
    client
}

async fn ended(server: &Server) -> Value {
    let ended = || Some(server.conversation("talk")).filter(|shown| shown["live"] == false);
    eventually("the conversation ends with its last socket", ended).await
}

fn export(server: &Server, format: &str) -> Answer {
    server.get(&format!("{TALK}/export?format={format}"))
}

/// Person, status, source and decision of every segment.
fn truths(server: &Server) -> Value {
    let export = export(server, "json").json();
    let told = |segment: &Value| {
        let keys = ["segment_id", "person_id", "status", "source", "manual"];
        Value::Array(keys.map(|key| segment.get(key).cloned().unwrap_or_default()).into())
    };
    export["segments"].as_array().expect("an export has segments").iter().map(told).collect()
}

#[tokio::test]
async fn an_ended_conversation_is_exported_corrected_and_exported_with_the_correction_also_after_a_restart() {
    let mut server = Server::start();
    talk(&server).await.stop().await;
    let shown = ended(&server).await;
    let voices = &shown["lanes"][0]["voices"];
    assert_eq!((&shown["lanes"][0]["recording_id"], &voices[0]["person_id"]), (&json!("phone"), &json!("anna")));
    let heard =
        json!([["segment-0", "anna", "user", "automatic", null], ["segment-1", null, "no_match", "automatic", null],]);
    assert_eq!(truths(&server), heard);
    assert_eq!(
        export(&server, "rttm").body,
        "SPEAKER phone 1 0.000 6.000 <NA> <NA> anna <NA> <NA>\n\
         SPEAKER phone 1 6.000 6.000 <NA> <NA> SPEAKER_02 <NA> <NA>\n"
    );
    assert_eq!(
        export(&server, "vtt").body,
        "WEBVTT\n\n00:00:00.000 --> 00:00:06.000\n<v anna>anna\n\n\
         00:00:06.000 --> 00:00:12.000\n<v SPEAKER_02>SPEAKER_02\n"
    );

    let stranger = json!({"type": "label", "speaker": 1, "person_id": "ben", "segment_ids": ["segment-1"]});
    assert_eq!(server.post(LABELS, &stranger).json()["code"], "other_voice");
    assert_eq!(truths(&server), heard, "nothing was written");
    for (edit, generation) in [
        (json!({"type": "label", "speaker": 2, "person_id": "ben"}), 1),
        (
            json!({"type": "reject", "speaker": 1, "kind": "not_me", "segment_ids": ["segment-0"], "segment_only": true}),
            2,
        ),
    ] {
        assert_eq!(server.post(LABELS, &edit).json(), json!({"receipt_generation": generation}));
    }
    let corrected = json!([
        ["segment-0", null, "no_match", "manual", {"generation": 2, "segment_only": true}],
        ["segment-1", "ben", "not_user", "manual", {"generation": 1}],
    ]);
    assert_eq!(truths(&server), corrected);
    assert!(export(&server, "vtt").body.ends_with("<v Ben B.>Ben B.\n"));

    server.kill();
    let server = server.again();
    assert_eq!(truths(&server), corrected);
    assert_eq!(server.conversation("talk")["lanes"][0]["voices"][1]["person_name"], "Ben B.");
}

#[tokio::test]
async fn a_conversation_is_removed_for_good_once_it_has_ended() {
    let server = Server::start();
    let client = talk(&server).await;
    let delete = || http(server.address(), "DELETE", TALK, &[], b"").unwrap();
    assert_eq!((delete().status, delete().json()["code"].as_str()), (409, Some("conversation_live")));
    client.stop().await;
    ended(&server).await;
    assert_eq!(server.get("/v1/conversations").json()["conversations"][0]["id"], "talk");
    assert_eq!(delete().status, 204);
    assert_eq!(server.get("/v1/conversations").json(), json!({"conversations": []}));
    for path in [TALK, "/v1/conversations/talk/export"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    assert_eq!(delete().status, 404);
}

#[tokio::test]
async fn a_live_conversation_is_exported_as_it_is_known_so_far_by_its_clients_labels() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.audio(&tone(STRANGER, 6.0)).await;
    client.segment(&json!("Guest"), 0.0, 6.0).await;
    let told = || Some(export(&server, "json").json()).filter(|export| export["segments"][0]["label"] == "Guest");
    let segment = eventually("the segment is on disk", told).await["segments"][0].clone();
    assert_eq!((&segment["segment_id"], &segment["end"]), (&json!("segment-0"), &json!(6.0)), "{segment}");
    assert_eq!(export(&server, "rttm").body, "SPEAKER phone 1 0.000 6.000 <NA> <NA> Guest <NA> <NA>\n");
    assert_eq!(server.conversation("talk")["live"], true);
}

#[tokio::test]
async fn what_was_heard_is_on_disk_when_the_server_has_stopped() {
    let mut server = Server::start();
    let _client = talk(&server).await;
    server.terminate();
    assert!(server.ended().success());
    let server = server.again();
    assert_eq!(truths(&server)[0], json!(["segment-0", "anna", "user", "automatic", null]));
    assert_eq!(truths(&server)[1][2], "no_match");
}
