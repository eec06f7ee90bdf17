//! Goal: what a scraper of a real server sees is complete before any traffic, balanced after it, and names nobody.
//! Method: a real server before and after a recording that meets verdicts, denials and exits; `promtool` judges both.

use std::collections::BTreeSet;

use gpu_worker::remote::hostile::Hostile;
use rollcall_tests::server::{Page, Server, eventually, http, promtool};
use rollcall_tests::socket::Client;
use rollcall_tests::sound::{OWNER, STRANGER};
use serde_json::json;

const EXIT_REASONS: [&str; 12] = [
    "stale_generation",
    "already_mapped",
    "voice_capacity",
    "no_pcm",
    "segment_shorter_than_minimum",
    "window_outside_buffer",
    "no_fresh_audio",
    "window_shorter_than_minimum",
    "embedding_budget",
    "rejected",
    "manual_decision",
    "authority_unavailable",
];

#[tokio::test]
async fn before_any_traffic_every_accounting_series_is_there_at_0() {
    let page = Server::start().metrics();
    promtool(&page);
    let mut expected = Vec::new();
    for family in ["budget_exits", "budget_voices", "budget_sockets"] {
        expected
            .extend(["voice", "socket", "both"].map(|cap| format!("omi_speaker_id_{family}_total{{cap=\"{cap}\"}}")));
    }
    expected.extend(
        ["reserved", "succeeded", "failed"]
            .map(|outcome| format!("omi_speaker_id_embedding_attempts_total{{outcome=\"{outcome}\"}}")),
    );
    expected.extend(EXIT_REASONS.map(|reason| format!("omi_speaker_id_match_exits_total{{reason=\"{reason}\"}}")));
    for series in &expected {
        assert_eq!(page.value(series), 0.0, "{series}");
        let created = series.replace("_total{", "_created{");
        assert!(page.value(&created) > 1.6e9, "{created} is a moment of our time");
    }
    assert_eq!(page.sum("omi_speaker_id_live_decisions_total"), 0.0);
}

#[tokio::test]
async fn after_traffic_the_books_balance_and_no_id_is_in_any_label() {
    let server = Server::start_with(&["budget.socket_burst=3", "budget.refill_per_hour=1"]);
    server.enrol("needle-person", OWNER, true);
    let page = traffic(&server).await;
    promtool(&page);

    assert_eq!(page.attempts("reserved"), 3.0);
    assert_eq!(page.attempts("succeeded"), 3.0);
    assert_eq!(page.attempts("failed"), 0.0);
    assert!(page.exits("embedding_budget") > 0.0, "something was denied");
    assert_eq!(page.sum("omi_speaker_id_budget_exits_total"), page.exits("embedding_budget"));
    assert_eq!(page.value("omi_speaker_id_live_decisions_total{decision=\"accepted\",target=\"owner\"}"), 1.0);
    assert!(page.value("rollcall_verdict_seconds_count") >= 1.0);
    assert_eq!(page.value("rollcall_voices_total"), 3.0);
    assert_eq!(page.value("rollcall_selection_wait_seconds_count{class=\"first\"}"), 3.0);
    assert_eq!(page.value("rollcall_selections_total{class=\"first\",override=\"no\"}"), 3.0);
    assert!(page.value("rollcall_selections_total{class=\"repeat\",override=\"no\"}") >= 2.0, "those that were denied");
    assert_eq!(page.value("rollcall_first_examination_seconds_count"), 3.0);
    assert_eq!(page.value("rollcall_attempt_of_voice_bucket{le=\"1\"}"), 3.0, "each was its voice's first");
    assert!(page.value("rollcall_frames_total{kind=\"audio\"}") >= 300.0, "thirty seconds in tenths");
    assert!(page.value("rollcall_frames_total{kind=\"message\"}") >= 7.0, "a start, five segments, a stop");
    for (series, _) in page.samples() {
        assert!(!series.contains("needle"), "{series}");
    }
    let log = server.log();
    assert_eq!(log.matches("speaker_id_budget_first_block").count(), 2, "one for each voice that was denied: {log}");
}

#[tokio::test]
async fn open_metrics_is_given_on_request_and_text_otherwise() {
    let server = Server::start();
    let plain = server.get("/metrics");
    assert!(plain.header("content-type").starts_with("text/plain; version=0.0.4"), "{}", plain.head);
    let accept = [("accept", "application/openmetrics-text; version=1.0.0")];
    let open = http(server.address(), "GET", "/metrics", &accept, b"").unwrap();
    assert!(open.header("content-type").starts_with("application/openmetrics-text; version=1.0.0"), "{}", open.head);
    assert!(open.body.ends_with("# EOF\n"));
}

#[tokio::test]
async fn a_recording_that_goes_on_is_not_examined_for_the_first_time_again() {
    let server = Server::start();
    server.enrol("anna", OWNER, true);
    for _ in 0..2 {
        let mut client = Client::start(&server, "going-on", "going-on").await;
        client.speak(1, STRANGER, 6.0).await;
        client.verdict(1).await;
        client.stop().await;
    }
    let page = server.metrics();
    assert!(page.attempts("succeeded") >= 2.0);
    assert_eq!(page.value("rollcall_first_examination_seconds_count"), 1.0);
    assert_eq!(page.value("rollcall_selection_wait_seconds_count{class=\"first\"}"), 1.0);
    assert!(page.value("rollcall_selection_wait_seconds_count{class=\"repeat\"}") >= 1.0);
}

#[tokio::test]
async fn a_voice_that_waits_is_seen_to_and_is_counted_as_one_that_age_gave_its_turn_when_it_came() {
    let mut engine = Hostile::start(192).expect("a port is free");
    let endpoint = format!("remote.endpoints={}", engine.url("/v2/embedding"));
    let remote = ["extraction.engine=remote", "remote.protocol=embedding", "remote.check_seconds=0.05", &endpoint];
    let server = Server::start_with(&[&remote[..], &["queue.age_override_seconds=0.1"]].concat());
    let is = |ready: f64| (server.metrics().value("rollcall_ready") == ready).then_some(());
    eventually("it is ready", || is(1.0)).await;
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "patient", "patient").await;
    engine.die();
    eventually("nothing can be extracted", || is(0.0)).await;
    client.speak(1, OWNER, 6.0).await;
    let oldest = || server.metrics().value("rollcall_queue_oldest_age_seconds");
    eventually("the voice has waited for a tenth of a second", || (oldest() > 0.1).then_some(())).await;
    assert_eq!(server.metrics().value("rollcall_queue_slots"), 1.0);
    engine.revive().expect("its port is still free");
    assert_eq!(client.verdict(1).await["person_id"], "anna");
    let page = server.metrics();
    assert_eq!(page.value("rollcall_selections_total{class=\"first\",override=\"yes\"}"), 1.0);
    assert_eq!(page.value("rollcall_selections_total{class=\"first\",override=\"no\"}"), 0.0);
    assert_eq!(page.value("rollcall_queue_slots"), 0.0);
}

#[tokio::test]
async fn a_thousand_conversations_add_no_series() {
    let server = Server::start_with(&["extraction.workers=2"]);
    server.enrol("anna", OWNER, true);
    let before = names(&server.metrics());
    assert!(before.len() < SERIES_MAX, "{} series before any traffic", before.len());
    let talks = (0..16).map(|part| converse_often(&server, part));
    futures_util::future::join_all(talks).await;
    let page = server.metrics();
    assert_eq!(page.value("rollcall_voices_total"), 1024.0);
    assert_eq!(page.attempts("reserved"), 1024.0, "each was examined");
    assert_eq!(names(&page), before);
}

#[tokio::test]
async fn who_is_turned_away_at_the_handshake_is_counted() {
    let server = Server::start_with(&["sockets.sockets_max=1"]);
    let refused = |reason: &str| server.metrics().value(&format!("rollcall_refused_total{{reason=\"{reason}\"}}"));
    assert_eq!(server.get("/v1/listen").status, 400);
    assert_eq!((refused("handshake"), refused("capacity")), (1.0, 0.0));
    let _only = Client::start(&server, "only", "only").await;
    let page = server.metrics();
    assert_eq!((page.value("rollcall_sockets"), page.value("rollcall_sockets_max")), (1.0, 1.0));
    assert_eq!(page.value("rollcall_queue_capacity"), 100.0, "one lane's slots");
    let second = http(server.address(), "GET", "/v1/listen", &[("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")], b"");
    assert_eq!(second.unwrap().status, 503);
    assert_eq!((refused("handshake"), refused("capacity")), (1.0, 1.0));
}

#[tokio::test]
async fn a_server_that_is_about_to_stop_says_that_it_is_not_ready() {
    let server = Server::start();
    eventually("it is ready", || (server.metrics().value("rollcall_ready") == 1.0).then_some(())).await;
    // A client that has not gone yet: until it has, the server answers scrapes.
    let mut client = Client::start(&server, "last", "last").await;
    server.terminate();
    client.event("goodbye").await;
    eventually("it is not", || (server.metrics().value("rollcall_ready") == 0.0).then_some(())).await;
}

/// Series of a process, far below what any Prometheus minds.
const SERIES_MAX: usize = 500;

/// Sixty-four conversations after one another, each with an id, a recording and a voice of its own.
async fn converse_often(server: &Server, part: u32) {
    for talk in 0..64 {
        let name = format!("talk-{part}-{talk}");
        let mut client = Client::start(server, &name, &name).await;
        client.speak(talk, STRANGER, 2.5).await;
        client.stop().await;
    }
}

fn names(page: &Page) -> BTreeSet<String> {
    page.samples().iter().map(|(series, _)| series.clone()).collect()
}

/// The owner is recognised with one token, two strangers use up the others, and what comes then is denied.
async fn traffic(server: &Server) -> Page {
    let mut client = Client::start(server, "needle-recording", "needle-conversation").await;
    client.speak(0, OWNER, 6.0).await;
    assert_eq!(client.verdict(0).await["status"], "user");
    for voice in 1..=2 {
        client.speak(voice, STRANGER + 40 * voice, 6.0).await;
        assert_eq!(client.verdict(voice).await["status"], "no_match");
    }
    for voice in 1..=2 {
        client.speak(voice, STRANGER + 40 * voice, 6.0).await;
        let exit = client.event_where("exit", |exit| exit["speaker"] == voice).await;
        assert_eq!((&exit["reason"], &exit["cap"]), (&json!("embedding_budget"), &json!("socket")));
    }
    client.stop().await;
    server.metrics()
}
