//! Goal: what a server did can be recorded as metadata and played again: the core's queue selects in the recorded order, other
//! policies are measured on the same conversation, and nothing that names anybody is in the file.
//! Method: a real server process that records, a client with an owner, a friend and strangers, and the command on what came out.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rollcall_tests::server::{Server, binary};
use rollcall_tests::socket::Client;
use rollcall_tests::sound::{self, OWNER, PERSON, STRANGER};
use serde_json::{Value, json};

/// A server with one worker that records, and where.
fn recording_server() -> (Server, PathBuf) {
    let folder =
        std::env::temp_dir().join(format!("rollcall-trace-{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::create_dir_all(&folder).unwrap();
    let trace = folder.join("trace.jsonl");
    std::fs::remove_file(&trace).ok();
    let server = Server::start_with(&[&format!("server.record={}", trace.display()), "extraction.workers=1"]);
    (server, trace)
}

fn simulate(trace: &Path, arguments: &[&str]) -> Output {
    Command::new(binary()).arg("simulate").arg("--trace").arg(trace).args(arguments).output().unwrap()
}

fn replayed(trace: &Path, arguments: &[&str]) -> Value {
    let output = simulate(trace, &[&["--json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The provider's number of the owner.
const OF_OWNER: u32 = 901;

/// Who speaks when: speaker, pitch, seconds. Numbers fall, and two say as much as two others: a recording, which numbers in
/// order of appearance, turns the order of their numbers round.
const TALK: [(u32, u32, f64); 7] = [
    (905, STRANGER, 3.0),
    (904, STRANGER + 40, 4.0),
    (905, STRANGER, 5.0),
    (903, STRANGER + 80, 3.0),
    (902, PERSON, 6.0),
    (904, STRANGER + 40, 4.0),
    (OF_OWNER, OWNER, 6.0),
];

/// Everything that was said, in one message, so that slots wait for each other; the owner last.
async fn talk(client: &mut Client) {
    say(client, &TALK).await;
}

async fn say(client: &mut Client, turns: &[(u32, u32, f64)]) {
    let mut segments = Vec::new();
    for (index, (speaker, hertz, seconds)) in turns.iter().enumerate() {
        let start = client.seconds();
        client.audio(&sound::tone(*hertz, *seconds)).await;
        let (id, end) = (format!("confidential-{}-{index}", client.seconds()), client.seconds());
        segments.push(json!({"id": id, "speaker": speaker, "start": start, "end": end}));
    }
    client.send(&json!({"type": "segments", "segments": segments})).await;
}

#[tokio::test]
async fn a_recorded_conversation_is_replayed_in_the_recorded_order_and_under_other_policies() {
    let (mut server, trace) = recording_server();
    server.enrol("anna-confidential", OWNER, true);
    server.enrol("ben-confidential", PERSON, false);
    let mut client = Client::start(&server, "recording-confidential", "talk-confidential").await;
    talk(&mut client).await;
    assert_eq!(client.verdict(OF_OWNER).await["status"], "user");
    talk(&mut client).await;
    client.stop().await;
    server.terminate();
    assert!(server.ended().success());

    let report = replayed(&trace, &[]);
    assert_eq!(
        (&report["lost"], &report["is_cut"], report["lanes"].as_array().map(Vec::len)),
        (&json!(0), &json!(false), Some(1))
    );
    let order = &report["lanes"][0]["recorded_order"];
    let selections = order["selections"].as_u64().unwrap();
    assert!(selections >= 7, "{report}");
    assert_eq!(
        (&order["same"], &order["difference"], &order["not_compared"]),
        (&json!(selections), &Value::Null, &json!(0)),
        "{report}"
    );
    let policies = report["lanes"][0]["policies"].as_array().unwrap();
    let names: Vec<&str> = policies.iter().filter_map(|played| played["policy"].as_str()).collect();
    assert_eq!(names, ["fair", "fifo"]);
    for played in policies {
        assert_eq!(played["updates"], 14, "{played}");
        assert!(played["jain"].as_f64().is_some_and(|jain| jain > 0.3 && jain <= 1.0), "{played}");
        assert!(played["owner_named_after_s"].is_number(), "{played}");
    }
    assert_eq!(policies[0]["untried_passed_over"], 0);
    let oracle = replayed(&trace, &["--policy", "oracle"]);
    assert_eq!(oracle["lanes"][0]["policies"][0]["owner_examined_first"], true, "{oracle}");
    assert_eq!(
        oracle["lanes"][0]["recorded_order"], *order,
        "which policy is played does not change what was recorded"
    );

    let words = String::from_utf8(simulate(&trace, &[]).stdout).unwrap();
    assert!(
        words.contains(&format!("{selections} of {selections} selections compared, and in the recorded order")),
        "{words}"
    );
}

#[tokio::test]
async fn a_name_that_a_second_number_of_the_owner_takes_away_is_followed() {
    let (mut server, trace) = recording_server();
    server.enrol("anna-confidential", OWNER, true);
    let mut client = Client::start(&server, "recording", "talk").await;
    let (first, second, stranger) = ((901, OWNER, 6.0), (902, OWNER, 6.0), (903, STRANGER, 6.0));
    say(&mut client, &[first, stranger]).await;
    assert_eq!(client.verdict(901).await["status"], "user");
    say(&mut client, &[second]).await;
    client.event("retract").await;
    // Both claim the owner, and wait again.
    say(&mut client, &[first, second, (904, STRANGER + 40, 6.0)]).await;
    client.verdict(904).await;
    client.stop().await;
    server.terminate();
    assert!(server.ended().success());
    let text = std::fs::read_to_string(&trace).unwrap();
    assert!(text.contains("\"moved\""), "{text}");
    let report = replayed(&trace, &[]);
    let order = &report["lanes"][0]["recorded_order"];
    assert_eq!((&order["difference"], &order["not_compared"]), (&Value::Null, &json!(0)), "{report}");
    assert!(order["same"].as_u64().is_some_and(|same| same >= 5), "the first was examined again: {report}");
}

#[tokio::test]
async fn a_recording_names_nobody_and_says_nothing_that_was_said() {
    let (mut server, trace) = recording_server();
    server.enrol("anna-confidential", OWNER, true);
    let mut client = Client::start(&server, "recording-confidential", "talk-confidential").await;
    talk(&mut client).await;
    let said = json!({"id": "confidential-last", "speaker": OF_OWNER, "start": 0.0, "end": 1.0, "text": "the password is swordfish"});
    client.send(&json!({"type": "segments", "segments": [said]})).await;
    client.verdict(OF_OWNER).await;
    client.stop().await;
    server.terminate();
    assert!(server.ended().success());
    let text = std::fs::read_to_string(&trace).unwrap();
    for secret in ["confidential", "anna", "swordfish", "password"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let keys = [
        "t",
        "lane",
        "joined",
        "heard",
        "selected",
        "reserved",
        "denied",
        "refused",
        "undelivered",
        "ran",
        "judged",
        "moved",
        "changed",
        "left",
    ];
    let mut found = 0;
    for line in text.lines().skip(1) {
        let told: Value = serde_json::from_str(line).unwrap();
        assert!(told.as_object().unwrap().keys().all(|key| keys.contains(&key.as_str())), "{line}");
        let segments = told["heard"]["segments"].as_array().cloned().unwrap_or_default();
        let told = told.as_object().unwrap().values().map(|event| &event["voice"]);
        let voices: Vec<u64> =
            segments.iter().map(|segment| &segment[0]).chain(told).filter_map(Value::as_u64).collect();
        assert!(voices.iter().all(|voice| (1..=5).contains(voice)), "numbered anew: {line}");
        found += voices.len();
    }
    assert!(found > TALK.len(), "segments, and what became of them");
}

#[tokio::test]
async fn what_people_decide_ends_the_comparison_and_not_the_recording() {
    let (mut server, trace) = recording_server();
    server.enrol("anna-confidential", OWNER, true);
    let mut client = Client::start(&server, "recording", "talk").await;
    talk(&mut client).await;
    client.verdict(OF_OWNER).await;
    client.send(&json!({"type": "label", "speaker": 905, "person_id": null})).await;
    client.event("corrected").await;
    talk(&mut client).await;
    client.stop().await;
    server.terminate();
    assert!(server.ended().success());
    let report = replayed(&trace, &[]);
    let order = &report["lanes"][0]["recorded_order"];
    assert_eq!(order["difference"], Value::Null, "{report}");
    let [same, left, all] = ["same", "not_compared", "selections"].map(|field| order[field].as_u64().unwrap());
    assert!(same > 0 && left > 0 && same + left == all, "{report}");
}

#[test]
fn a_file_that_is_no_recording_is_refused_in_one_line() {
    for (content, trouble) in [("", "is empty"), ("{\"a\":1}\n", "line 1: is not the first line of a recording")] {
        let path = std::env::temp_dir().join(format!("rollcall-no-trace-{}-{}", std::process::id(), content.len()));
        std::fs::write(&path, content).unwrap();
        let output = simulate(&path, &[]);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), complaint.lines().count()), (Some(2), 1), "{complaint}");
        assert!(complaint.contains("--trace") && complaint.contains(trouble), "{complaint}");
        std::fs::remove_file(&path).ok();
    }
}
