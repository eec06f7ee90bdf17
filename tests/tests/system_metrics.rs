//! Goal: what a scraper of a real server sees is complete before any traffic, balanced after it, and names nobody.
//! Method: a real server before and after a recording that meets verdicts, denials and exits; `promtool` judges both.

use rollcall_tests::server::{Page, Server, http, promtool};
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
