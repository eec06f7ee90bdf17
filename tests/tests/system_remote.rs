//! Goal: a service whose voiceprints come from other machines says how those stand, spends nothing while none of them
//! answers, and goes on by itself when one does; and the commands work with them as with a model of their own.
//! Method: the real binary against an extraction server of this process that dies and misbehaves as it is told, and
//! against a real Triton and a real embedding service where `scripts/servers.sh` has installed them; with those the demo's
//! real speech is heard.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpu_worker::remote::hostile::{Hostile, Manner};
use rollcall_tests::server::{Server, binary, eventually};
use rollcall_tests::servers::Foreign;
use rollcall_tests::socket::Client;
use rollcall_tests::sound::{self, OWNER, STRANGER};
use serde_json::{Value, json};

/// Values in a voiceprint of the scripted model's manifest.
const DIMENSION: usize = 192;

/// Deaths are noticed and rests are over soon.
const QUICK: [&str; 4] = [
    "extraction.engine=remote",
    "remote.check_seconds=0.05",
    "remote.pause_max_seconds=0.1",
    "remote.timeout_seconds=1",
];

fn embedding(server: &Hostile) -> String {
    format!("remote.endpoints={}", server.url("/v2/embedding"))
}

fn serve(endpoints: &str) -> Server {
    Server::start_with(&[&QUICK[..], &["remote.protocol=embedding", endpoints]].concat())
}

async fn until_ready(server: &Server) -> Value {
    eventually("the service is ready", || Some(server.get("/readyz")).filter(|answer| answer.status == 200))
        .await
        .json()
}

async fn until_not_ready(server: &Server) -> String {
    eventually("the service is not ready", || Some(server.get("/readyz")).filter(|answer| answer.status == 503))
        .await
        .body
}

/// How the page says that the only endpoint stands.
fn circuit(server: &Server, state: &str) -> f64 {
    server.metrics().value(&format!("rollcall_endpoint_circuit{{endpoint=\"0\",state=\"{state}\"}}"))
}

#[tokio::test]
async fn while_no_server_answers_nothing_is_spent_and_when_it_comes_back_the_voice_is_named() {
    let mut there = Hostile::start(DIMENSION).expect("a port is free");
    let server = serve(&embedding(&there));
    let ready = until_ready(&server).await;
    assert_eq!(
        (&ready["engine"]["provider"], &ready["engine"]["endpoints"][0]["circuit"]),
        (&"remote".into(), &"closed".into())
    );
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "one", "talk").await;
    client.speak(1, OWNER, 6.0).await;
    assert_eq!(client.verdict(1).await["person_id"], "anna");

    there.die();
    let told = until_not_ready(&server).await;
    assert!(told.contains("no extraction server is in service"), "{told}");
    assert!(circuit(&server, "closed") < 1.0);
    client.speak(2, STRANGER, 6.0).await;
    eventually("the voice waits", || {
        let waiting = server.conversation("talk")["lanes"][0]["queue"][0]["speaker"] == 2;
        waiting.then_some(())
    })
    .await;

    there.revive().expect("its port is still free");
    // There is one voiceprint for everybody, so the second voice claims the owner as well.
    let verdict = client.event_where("speaker", |event| event["speaker"] == 2).await;
    assert_eq!(verdict["status"], "ambiguous", "{verdict}");
    until_ready(&server).await;
    let page = server.metrics();
    let books = ["reserved", "succeeded", "failed"].map(|outcome| page.attempts(outcome));
    assert_eq!(books, [2.0, 2.0, 0.0], "the outage cost no token");
    assert_eq!(page.value("rollcall_engine_info{provider=\"remote\"}"), 1.0);
    assert_eq!(circuit(&server, "closed"), 1.0);
    let port = there.url("").rsplit(':').next().unwrap_or_default().to_owned();
    assert!(!page.text().contains(&port), "no machine is a label");
    let log = server.log();
    for words in ["an extraction server is out of service", "an extraction server is in service"] {
        assert!(log.contains(words), "{words}: {log}");
    }
}

#[tokio::test]
async fn what_a_server_does_wrong_is_counted_by_its_place_and_kind_and_the_query_is_spent() {
    let there = Hostile::start(DIMENSION).expect("a port is free");
    let server = serve(&embedding(&there));
    until_ready(&server).await;
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "one", "talk").await;
    there.behave(Manner::Status(500), 1);
    client.speak(1, OWNER, 6.0).await;
    let failures = "rollcall_endpoint_failures_total{endpoint=\"0\",kind=\"status\"}";
    eventually("the failure is counted", || (server.metrics().value(failures) > 0.0).then_some(())).await;
    there.behave(Manner::Well, 1);
    until_ready(&server).await;
    client.speak(1, OWNER, 6.0).await;
    assert_eq!(client.verdict(1).await["person_id"], "anna");
    let page = server.metrics();
    assert_eq!((page.attempts("reserved"), page.attempts("failed")), (2.0, 1.0));
    // A sample of the enrolment and a query of the voice were answered.
    assert_eq!(page.value("rollcall_endpoint_answered_total{endpoint=\"0\"}"), 2.0);
}

#[tokio::test]
async fn the_query_of_a_recording_that_ends_is_given_up_at_the_server_and_speaks_against_nobody() {
    let there = Hostile::start(DIMENSION).expect("a port is free");
    let endpoints = embedding(&there);
    let settings = [
        "extraction.engine=remote",
        "remote.protocol=embedding",
        "remote.timeout_seconds=60",
        "extraction.run_deadline_seconds=60",
        "extraction.reservation_deadline_seconds=120",
        "extraction.workers=1",
        &endpoints,
    ];
    let server = Server::start_with(&settings);
    until_ready(&server).await;
    server.enrol("anna", OWNER, true);
    there.behave(Manner::StallsMidBody, 1);
    let before = there.clips();
    let mut client = Client::start(&server, "one", "talk").await;
    client.speak(1, OWNER, 6.0).await;
    eventually("its query is at the server", || (there.clips() > before).then_some(())).await;
    drop(client);
    let given_up = "rollcall_endpoint_failures_total{endpoint=\"0\",kind=\"given_up\"}";
    eventually("it is given up", || (server.metrics().value(given_up) > 0.0).then_some(())).await;

    // The one worker is free, and the server is still asked.
    there.behave(Manner::Well, 1);
    let mut client = Client::start(&server, "two", "other").await;
    client.speak(1, OWNER, 6.0).await;
    assert_eq!(client.verdict(1).await["person_id"], "anna");
    let page = server.metrics();
    let books = ["reserved", "succeeded", "failed"].map(|outcome| page.attempts(outcome));
    assert_eq!(books, [2.0, 1.0, 1.0]);
    assert_eq!(circuit(&server, "closed"), 1.0);
}

#[tokio::test]
async fn a_service_starts_before_its_servers_do() {
    let mut there = Hostile::start(DIMENSION).expect("a port is free");
    let endpoints = embedding(&there);
    there.die();
    let server = serve(&endpoints);
    until_not_ready(&server).await;
    there.revive().expect("its port is still free");
    until_ready(&server).await;
}

/// A command with the same settings as the server, in an empty home.
fn rollcall(server: &Server, arguments: &[&str], settings: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(arguments).args(["--model", "scripted"]).env("ROLLCALL_HOME", server.path("home"));
    command.arg("--data").arg(server.path("others")).current_dir(server.path(""));
    for setting in QUICK.iter().chain(settings) {
        command.args(["--set", setting]);
    }
    command.output().expect("the binary was built, so it starts")
}

#[tokio::test]
async fn identify_and_doctor_ask_the_same_servers() {
    let mut there = Hostile::start(DIMENSION).expect("a port is free");
    let endpoints = embedding(&there);
    let settings = ["remote.protocol=embedding", &endpoints];
    let server = serve(&endpoints);
    std::fs::create_dir_all(server.path("people/anna")).expect("the test's directory is writable");
    let files = [("people/anna/clip.wav", 4.0), ("talk.wav", 6.0)];
    let [_, talk] = files.map(|(name, seconds)| server.file(name, &sound::wav(&sound::tone(OWNER, seconds))));
    let (talk, people) = (talk.display().to_string(), server.path("people").display().to_string());
    let found = rollcall(&server, &["identify", &talk, "--people", &people, "--owner", "anna"], &settings);
    let report: Value = serde_json::from_slice(&found.stdout).unwrap_or_else(|_| panic!("{found:?}"));
    assert_eq!(report["voices"][0]["person_id"], json!("anna"), "{report}");

    let line = |output: &Output| {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.lines().find(|line| line.contains("servers")).map(ToOwned::to_owned).unwrap_or(said)
    };
    let well = line(&rollcall(&server, &["doctor"], &settings));
    assert!(well.starts_with("ok") && well.contains(&there.url("/v2/embedding")), "{well}");
    there.die();
    let dead = rollcall(&server, &["doctor"], &settings);
    assert!(line(&dead).starts_with("WRONG") && line(&dead).contains("cannot be reached"), "{dead:?}");
    assert_eq!(dead.status.code(), Some(1));
}

#[test]
fn wrong_settings_are_refused_at_the_start_with_their_field() {
    for (settings, words) in [
        (&["extraction.engine=remote"][..], "remote.endpoints is not set"),
        (&["extraction.engine=elsewhere"], "extraction.engine is \"elsewhere\""),
        (&["extraction.engine=remote", "remote.endpoints=10.0.0.7"], "remote.endpoints names \"10.0.0.7\""),
        (&["extraction.engine=remote", "remote.endpoints=http://a", "remote.model=../x"], "remote.model is"),
    ] {
        let mut command = Command::new(binary());
        command.args(["serve", "--model", "scripted", "--listen", "127.0.0.1:0"]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        let output = command.output().expect("the binary was built, so it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn a_real_triton_names_the_owner() {
    let Some(triton) = Foreign::triton(&home()) else { return };
    let endpoints = format!("remote.endpoints={}", triton.url(""));
    let server = Server::start_with(&["extraction.engine=remote", "remote.model=speaker", &endpoints]);
    until_ready(&server).await;
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "one", "talk").await;
    client.speak(1, OWNER, 6.0).await;
    assert_eq!(client.verdict(1).await["person_id"], "anna");
    let page = server.metrics();
    assert_eq!((page.attempts("reserved"), page.attempts("succeeded")), (1.0, 1.0));
    assert_eq!(page.value("rollcall_endpoint_answered_total{endpoint=\"0\"}"), 2.0);
}

#[tokio::test]
async fn with_a_real_triton_the_demos_people_have_the_names_that_the_model_here_gives_them() {
    let Some(triton) = Foreign::triton(&home()) else { return };
    let endpoints = format!("remote.endpoints={}", triton.url(""));
    check_demo(&["remote.protocol=open_inference", "remote.model=speaker", &endpoints]).await;
}

#[tokio::test]
async fn with_a_real_embedding_service_the_demos_people_have_the_names_that_the_model_here_gives_them() {
    let Some(service) = Foreign::embedding(&home()) else { return };
    // It answers with an array at one path, and with an object at the other.
    for path in ["/v2/embedding", "/v2/embedding/named"] {
        let endpoints = format!("remote.endpoints={}", service.url(path));
        check_demo(&["remote.protocol=embedding", &endpoints]).await;
    }
}

/// The same voices have the same names, at nearly the same distances.
async fn check_demo(remote: &[&str]) {
    // A server that is still loading its model refuses; nothing was asked of it then.
    let there = eventually("the servers are ready", || demo(&[&["extraction.engine=remote"], remote].concat())).await;
    let here = demo(&[]).expect("the model here runs; `make setup` installs it");
    assert_eq!(names(&here).len(), 4, "three people and a stranger");
    assert_eq!(names(&there), names(&here));
    let distances = |report: &Value| -> Vec<f64> {
        let voices = report["voices"].as_array().expect("it lists the voices");
        voices.iter().filter_map(|voice| voice["distance"].as_f64()).collect()
    };
    let (there, here) = (distances(&there), distances(&here));
    assert_eq!(there.len(), here.len());
    for (there, here) in there.iter().zip(&here) {
        assert!((there - here).abs() < 2e-3, "{there} there and {here} here");
    }
}

/// What `identify` says about the demo's conversation; nothing when no server is ready.
fn demo(settings: &[&str]) -> Option<Value> {
    let voices = home().join("voices");
    assert!(voices.is_dir(), "the demo's voices are missing in {}; run `make setup`", voices.display());
    let mut command = Command::new(binary());
    command.arg("identify").arg(voices.join("conversation.wav")).arg("--people").arg(voices.join("people"));
    command.arg("--segments").arg(voices.join("conversation.rttm")).env("ROLLCALL_HOME", home());
    for setting in settings {
        command.args(["--set", setting]);
    }
    let output = command.output().expect("the binary was built, so it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && said.contains("no extraction server is in service") {
        return None;
    }
    Some(serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}")))
}

/// Who is behind each label.
fn names(report: &Value) -> BTreeMap<String, Value> {
    let voices = report["voices"].as_array().expect("it lists the voices");
    let of = |voice: &Value| (voice["label"].to_string(), json!([voice["status"], voice["person_id"]]));
    voices.iter().map(of).collect()
}

/// Where the model, the voices and the servers are installed.
fn home() -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.rollcall");
    std::env::var_os("ROLLCALL_HOME").map_or(repository, PathBuf::from)
}
