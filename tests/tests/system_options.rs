//! Goal: the options of the budget that are off by default do through a real server what they say, and nothing without being set.
//! Method: a server process whose budget is nearly nothing, and a client whose voices have new speech.

use std::time::Duration;

use rollcall_tests::server::Server;
use rollcall_tests::socket::Client;
use rollcall_tests::sound::{OWNER, STRANGER};

/// One token, and another in an hour.
const ONE_TOKEN: [&str; 2] = ["budget.socket_burst=1", "budget.refill_per_hour=1"];

#[tokio::test]
async fn without_relaxed_tokens_the_second_voice_is_denied_and_with_them_it_is_named() {
    for relaxed in [false, true] {
        let more: &[&str] = if relaxed { &["budget.relaxed_tokens=1", "budget.relaxed_speech_seconds=5"] } else { &[] };
        let server = Server::start_with(&[&ONE_TOKEN, more].concat());
        server.enrol("anna", OWNER, true);
        let mut client = Client::start(&server, "recording", "talk").await;
        client.speak(1, STRANGER, 6.0).await;
        assert_eq!(client.verdict(1).await["status"], "no_match");
        client.speak(2, OWNER, 6.0).await;
        if relaxed {
            assert_eq!(client.verdict(2).await["person_id"], "anna");
        } else {
            let exit = client.event_where("exit", |exit| exit["speaker"] == 2).await;
            assert_eq!((&exit["reason"], &exit["cap"]), (&"embedding_budget".into(), &"socket".into()));
        }
        let goodbye = client.stop().await;
        assert_eq!(goodbye["budget"]["reserved"], if relaxed { 2 } else { 1 }, "{goodbye}");
    }
}

#[tokio::test]
async fn a_voice_that_spent_its_attempts_is_examined_again_after_new_speech_and_as_much_time() {
    let server = Server::start_with(&["budget.voice_attempts=1", "budget.renewal_speech_seconds=3"]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "recording", "talk").await;
    // Three seconds are a query and no verdict; the attempt is spent.
    client.speak(1, OWNER, 3.0).await;
    client.speak(1, OWNER, 2.0).await;
    let exit = client.event_where("exit", |exit| exit["reason"] == "embedding_budget").await;
    assert_eq!(exit["cap"], "voice");
    tokio::time::sleep(Duration::from_secs(3)).await;
    client.speak(1, OWNER, 2.0).await;
    assert_eq!(client.verdict(1).await["person_id"], "anna");
    assert_eq!(client.stop().await["budget"]["reserved"], 2);
}

#[test]
fn speech_that_the_ring_never_holds_is_refused_at_the_start_with_the_field() {
    for setting in ["budget.renewal_speech_seconds=90", "budget.relaxed_speech_seconds=90"] {
        let mut command = std::process::Command::new(rollcall_tests::server::binary());
        let arguments = ["serve", "--model", "scripted", "--set", "budget.relaxed_tokens=1", "--set", setting];
        let output = command.args(arguments).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        let field = setting.split('=').next().unwrap();
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains(field) && complaint.contains("sockets.ring_seconds"), "{complaint}");
    }
}
