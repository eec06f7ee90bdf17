//! Goal: sockets of one conversation share it and no budget, and nothing that a client does refills a budget.
//! Method: a real server; several sockets in one conversation; a storm of reconnects of one recording.

use std::time::Instant;

use rollcall_tests::server::{Server, eventually};
use rollcall_tests::socket::{Client, End, start};
use rollcall_tests::sound::{OWNER, PERSON, STRANGER};
use serde_json::{Value, json};

#[tokio::test]
async fn two_sockets_of_one_conversation_are_two_lanes_with_voices_and_budgets_of_their_own() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    server.enrol("ben", PERSON, false);
    let mut phone = Client::start(&server, "phone", "meeting").await;
    let mut laptop = Client::start(&server, "laptop", "meeting").await;
    phone.speak(0, OWNER, 6.0).await;
    laptop.speak(0, PERSON, 6.0).await;
    let (owner, other) = (phone.verdict(0).await, laptop.verdict(0).await);
    assert_eq!((&owner["person_id"], &owner["status"]), (&json!("anna"), &json!("user")));
    assert_eq!((&other["person_id"], &other["status"]), (&json!("ben"), &json!("not_user")));

    // A voice with too little speech waits and is shown with it.
    laptop.speak(1, STRANGER, 1.0).await;
    laptop.event("exit").await;
    let shown = server.conversation("meeting");
    let lanes = shown["lanes"].as_array().unwrap();
    assert_eq!((lanes.len(), &shown["conversation_id"]), (2, &json!("meeting")));
    for lane in lanes {
        assert_eq!((&lane["budget"]["reserved"], &lane["queue"]), (&json!(1), &json!([])), "{lane}");
        assert!(lane["socket_tokens"].as_f64().is_some_and(|tokens| (15.0..15.5).contains(&tokens)), "{lane}");
    }
    let waiting = lanes.iter().flat_map(|lane| lane["voices"].as_array().unwrap()).find(|voice| voice["speaker"] == 1);
    assert_eq!(waiting.map(|voice| &voice["pending_seconds"]), Some(&json!(1.0)));
    let listed = server.get("/v1/conversations").json();
    assert_eq!(
        (&listed["conversations"][0]["id"], &listed["conversations"][0]["live"]),
        (&json!("meeting"), &json!(true))
    );

    assert_eq!(phone.stop().await["voices"][0]["person_id"], "anna");
    assert_eq!(laptop.stop().await["voices"][0]["person_id"], "ben");
    let ended = || (server.conversation("meeting")["live"] == false).then_some(());
    eventually("the conversation ends with its last socket", ended).await;
}

#[tokio::test]
async fn a_ninth_socket_of_a_conversation_is_refused_and_may_have_another() {
    let server = Server::start();
    let mut sockets = Vec::new();
    for index in 0..8 {
        sockets.push(Client::start(&server, &format!("device-{index}"), "room").await);
    }
    let mut ninth = Client::connect(&server).await;
    ninth.send(&start("device-8", "room")).await;
    assert_eq!(ninth.error().await, ("conversation_full".to_owned(), "conversation_id".to_owned()));
    ninth.send(&start("device-8", "other room")).await;
    ninth.event("ready").await;
}

#[tokio::test]
async fn a_second_socket_of_a_recording_takes_it_over() {
    let server = Server::start();
    let mut first = Client::start(&server, "one", "one").await;
    let _second = Client::start(&server, "one", "one").await;
    assert_eq!(first.event("goodbye").await["reason"], "taken_over");
    assert_eq!(first.end().await, End::Code(1000));
}

#[tokio::test]
async fn fifty_reconnects_of_a_recording_refill_nothing() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    let began = Instant::now();
    let mut reserved = Value::Null;
    for round in 0..50 {
        let mut client = Client::start(&server, "storm", "storm").await;
        // Voices that nobody knows are worth examining again and again.
        for voice in 0..4 {
            client.speak(voice, STRANGER + 40 * voice, 3.0).await;
        }
        let goodbye = client.stop().await;
        reserved = goodbye["budget"]["reserved"].clone();
        let allowed = 16 + began.elapsed().as_secs() / 15;
        assert!(reserved.as_u64().is_some_and(|reserved| reserved <= allowed), "round {round}: {goodbye}");
    }
    assert!(reserved.as_u64().is_some_and(|reserved| reserved >= 16), "the whole burst was spent: {reserved}");
    let page = server.metrics();
    assert!(page.sum("omi_speaker_id_budget_exits_total") > 0.0, "some were denied");
    assert_eq!(json!(page.attempts("reserved")), json!(reserved.as_f64()));
}
