//! Goal: every query has one trace that says where its time went and what came of it, and a collector gets it whole,
//! with the records and metrics of the same process; one that is away, slow or hostile disturbs nobody.
//! Method: a real server, and the live actors for what a server cannot be made to do, send to a collector of the test's
//! own, which decodes what it gets. A real collector (rotel) and a real Prometheus are asked as well where `.rollcall` has
//! them.

use std::time::Duration;

use gpu_worker::Failure;
use gpu_worker::remote::hostile::{Hostile, Manner as Remote};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use rollcall_tests::actors::{self, Answer, World, at_distance, pass, run};
use rollcall_tests::collector::{Collector, Manner, Trace, as_text, attributes, hex};
use rollcall_tests::observers::Observer;
use rollcall_tests::server::{PATIENCE, Server, eventually, http};
use rollcall_tests::socket::Client;
use rollcall_tests::sound::{OWNER, STRANGER};

/// Values in a voiceprint of the scripted model.
const DIMENSION: usize = 192;

/// Soon enough for a test, and everything stays as it is otherwise.
const QUICK: [(&str, &str); 3] =
    [("OTEL_BSP_SCHEDULE_DELAY", "50"), ("OTEL_BLRP_SCHEDULE_DELAY", "50"), ("OTEL_METRIC_EXPORT_INTERVAL", "100")];

fn serve(collector: &Collector, settings: &[&str]) -> Server {
    let endpoint = collector.endpoint();
    let variables = [&QUICK[..], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]].concat();
    Server::start_under(&variables, settings)
}

fn outcome(outcome: &'static str) -> impl Fn(&Trace) -> bool {
    move |trace| trace.attribute("speaker_id.outcome") == outcome
}

fn code(span: &Span) -> StatusCode {
    span.status.as_ref().map_or(StatusCode::Unset, |status| status.code())
}

/// Every step lies within the query, below it, and none ends before it begins.
fn check(trace: &Trace) {
    let root = &trace.root;
    assert!(root.parent_span_id.is_empty() && root.kind() == SpanKind::Server);
    assert_eq!((root.trace_id.len(), root.span_id.len()), (16, 8));
    let mut numbers: Vec<_> = trace.steps.iter().map(|step| step.span_id.clone()).collect();
    for step in &trace.steps {
        let parent = if step.name == "POST" { trace.step("extract") } else { root };
        assert_eq!(step.parent_span_id, parent.span_id, "{}", step.name);
        assert!(step.start_time_unix_nano <= step.end_time_unix_nano, "{}", step.name);
        let within = root.start_time_unix_nano..=root.end_time_unix_nano;
        assert!(
            within.contains(&step.start_time_unix_nano) && within.contains(&step.end_time_unix_nano),
            "{}",
            step.name
        );
    }
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), trace.steps.len(), "every span has a number of its own");
}

fn milliseconds(span: &Span) -> u64 {
    (span.end_time_unix_nano - span.start_time_unix_nano) / 1_000_000
}

#[tokio::test]
async fn a_verdict_has_one_trace_from_its_message_to_what_was_published() {
    let collector = Collector::start();
    let server = serve(&collector, &[]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.speak(7, OWNER, 6.0).await;
    assert_eq!(client.verdict(7).await["status"], "user");

    let trace = collector.trace("the query's trace", outcome("succeeded")).await;
    check(&trace);
    assert_eq!(trace.names(), ["offer", "queue.wait", "reserve", "batch.wait", "extract", "decide"]);
    assert_eq!(trace.step("offer").start_time_unix_nano, trace.root.start_time_unix_nano);
    assert_eq!(code(&trace.root), StatusCode::Unset);
    for (name, value) in [
        ("conversation", "talk"),
        ("recording", "phone"),
        ("segment", "segment-0"),
        ("speaker", "7"),
        ("class", "first"),
        ("attempts_before", "0"),
        ("audio_seconds", "6"),
        ("target", "owner"),
        ("decision", "accepted"),
        ("verdict", "user"),
    ] {
        assert_eq!(trace.attribute(&format!("speaker_id.{name}")), value, "{name}");
    }
    let distance: f64 = trace.attribute("speaker_id.distance").parse().expect("a distance");
    assert!(distance.abs() < 0.5, "{distance}");

    client.speak(8, STRANGER, 6.0).await;
    client.verdict(8).await;
    client.speak(8, STRANGER, 6.0).await;
    let again = |trace: &Trace| trace.attribute("speaker_id.class") == "repeat";
    let repeat = collector.trace("the repeat's trace", again).await;
    assert_eq!(repeat.attribute("speaker_id.attempts_before"), "1");
    assert_eq!(collector.traces().len(), 3, "one a query");
}

#[tokio::test]
async fn a_denial_has_its_trace_and_its_record_belongs_to_it() {
    let collector = Collector::start();
    let server = serve(&collector, &["budget.socket_burst=1", "budget.refill_per_hour=1"]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.speak(0, OWNER, 6.0).await;
    client.verdict(0).await;
    client.speak(1, STRANGER, 6.0).await;

    let trace = collector.trace("the denial's trace", outcome("denied")).await;
    check(&trace);
    assert_eq!(trace.names(), ["offer", "queue.wait", "reserve"]);
    assert_eq!(
        (trace.attribute("speaker_id.cap"), trace.attribute("speaker_id.speaker")),
        ("socket".into(), "1".into())
    );
    assert_eq!(code(&trace.root), StatusCode::Unset, "the budget did what it is for");

    let blocked = "speaker_id_budget_first_block";
    let find = || collector.records().into_iter().find(|record| as_text(record.body.as_ref()) == blocked);
    let record = eventually("the record", find).await;
    assert_eq!((record.trace_id, record.span_id), (trace.root.trace_id.clone(), trace.root.span_id.clone()));
    assert_eq!(attributes(&record.attributes)["cap"], "socket");
    let line = server.log().lines().find(|line| line.contains(blocked)).map(str::to_owned).expect("it is logged");
    assert!(line.contains(&format!("\"trace_id\":\"{}\"", hex(&trace.root.trace_id))), "{line}");
}

#[tokio::test]
async fn a_query_that_another_machine_answers_takes_its_trace_along() {
    let collector = Collector::start();
    let there = Hostile::start(DIMENSION).expect("a port is free");
    let url = there.url("/v2/embedding");
    let endpoints = format!("remote.endpoints={url}");
    let settings = ["extraction.engine=remote", "remote.protocol=embedding", &endpoints, "remote.check_seconds=0.05"];
    let server = serve(&collector, &settings);
    eventually("the service is ready", || Some(server.get("/readyz")).filter(|answer| answer.status == 200)).await;
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.speak(0, OWNER, 6.0).await;
    client.verdict(0).await;

    let trace = collector.trace("the query's trace", outcome("succeeded")).await;
    check(&trace);
    assert_eq!(trace.names(), ["offer", "queue.wait", "reserve", "batch.wait", "extract", "POST", "decide"]);
    let request = trace.step("POST");
    assert_eq!(request.kind(), SpanKind::Client);
    let expected = format!("00-{}-{}-01", hex(&request.trace_id), hex(&request.span_id));
    assert_eq!(there.last().and_then(|seen| seen.traceparent), Some(expected));
    let described = attributes(&request.attributes);
    let port = url.rsplit(':').next().and_then(|rest| rest.split('/').next()).expect("a port");
    assert_eq!((described["server.address"].as_str(), described["server.port"].as_str()), ("127.0.0.1", port));
    assert_eq!(described["http.request.method"], "POST");

    there.behave(Remote::Status(500), 1);
    client.speak(1, STRANGER, 6.0).await;
    let failed = collector.trace("the failure's trace", outcome("failed")).await;
    check(&failed);
    let request = failed.step("POST");
    assert_eq!((code(&failed.root), code(request), code(failed.step("extract"))), [StatusCode::Error; 3].into());
    let described = attributes(&request.attributes);
    assert_eq!((described["error.type"].as_str(), described["http.response.status_code"].as_str()), ("status", "500"));
    assert_eq!(failed.attribute("error.type"), "extraction");
}

#[test]
fn a_lost_worker_a_leaving_client_and_a_passed_deadline_each_say_so() {
    let collector = Collector::start();
    run(async {
        let world = World::exporting(2, &collector.endpoint());
        world.script(1, &[Answer::Failure(Failure::WorkerLost)]);
        world.script(2, &[Answer::Hangs]);
        world.script(3, &[Answer::Vector(at_distance(0.1))]);
        world.queries_take(Duration::from_millis(40));
        let mut client = world.client("phone", "talk").await;
        client.say(1, 1, 6.0).await;
        client.say(2, 2, 6.0).await;
        pass(6.0).await;
        client.say(3, 3, 6.0).await;
        pass(1.0).await;
        let mut other = world.client("other", "elsewhere").await;
        other.say(4, 2, 6.0).await;
        other.leave().await;
        assert!(world.service.telemetry.flush(PATIENCE), "the collector is there");
    });
    let of = |speaker: &str| {
        let traces = collector.traces().into_iter();
        let mut found: Vec<Trace> = traces.filter(|trace| trace.attribute("speaker_id.speaker") == speaker).collect();
        assert_eq!(found.len(), 1, "one a query");
        found.remove(0)
    };
    for (speaker, error, took) in [("1", "worker_lost", 40), ("2", "deadline_passed", 5_000), ("4", "cancelled", 1)] {
        let trace = of(speaker);
        check(&trace);
        assert_eq!(
            (trace.attribute("speaker_id.outcome"), trace.attribute("error.type")),
            ("failed".into(), error.into())
        );
        assert_eq!(trace.names(), ["offer", "queue.wait", "reserve", "batch.wait"], "{error}");
        let wait = trace.step("batch.wait");
        assert_eq!((code(&trace.root), code(wait)), (StatusCode::Error, StatusCode::Error), "{error}");
        // Virtual time, to the timer's millisecond.
        assert!((took..=took + 2).contains(&milliseconds(wait)), "{error} after {} ms", milliseconds(wait));
    }
    let named = of("3");
    assert_eq!((named.names().last(), milliseconds(named.step("extract"))), (Some(&"decide"), 40));
}

#[test]
fn a_query_whose_scheduler_is_lost_says_so_and_the_next_one_is_told_as_ever() {
    let collector = Collector::start();
    run(async {
        let world = World::exporting(1, &collector.endpoint());
        world.script(1, &[Answer::Panics, Answer::Vector(at_distance(0.1))]);
        let mut client = world.client("phone", "talk").await;
        client.say(1, 1, 6.0).await;
        pass(1.0).await;
        assert!(world.service.telemetry.flush(PATIENCE), "the collector is there");
    });
    let traces = collector.traces();
    traces.iter().for_each(check);
    let told: Vec<_> = traces.iter().map(|trace| trace.attribute("speaker_id.outcome")).collect();
    assert_eq!(told, ["failed", "succeeded"]);
    assert_eq!(traces[0].attribute("error.type"), "scheduler_lost");
    assert_eq!(code(&traces[0].root), StatusCode::Error);
}

#[tokio::test]
async fn metrics_traces_and_records_say_the_same_of_who_sent_them() {
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=one"),
        ("OTEL_SERVICE_NAME", "front-door"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
    ];
    let server = Server::start_under(&[&QUICK[..], &variables].concat(), &[]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.speak(0, OWNER, 6.0).await;
    client.verdict(0).await;
    collector.trace("a trace", |_| true).await;
    eventually("a record", || collector.records().pop()).await;
    eventually("the verdict's metric", || {
        collector.metrics().iter().any(|name| name == "rollcall_verdict").then_some(())
    })
    .await;
    let resources = collector.resources();
    assert_eq!(resources.len(), 1, "{resources:?}");
    let resource = &resources[0];
    assert_eq!(resource["service.name"], "front-door");
    assert_eq!(resource["deployment.environment.name"], "test");
    assert!(!resource["service.version"].is_empty() && !resource["service.instance.id"].is_empty());
    for (path, head) in collector.requests() {
        assert!(head.to_ascii_lowercase().contains("x-tenant: one"), "{path}: {head}");
    }
}

#[tokio::test]
async fn a_latency_points_to_the_trace_of_its_query_in_open_metrics_alone() {
    let collector = Collector::start();
    let server = serve(&collector, &[]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.speak(0, OWNER, 6.0).await;
    client.verdict(0).await;
    let trace = collector.trace("the query's trace", outcome("succeeded")).await;
    let accept = [("accept", "application/openmetrics-text; version=1.0.0")];
    let page = http(server.address(), "GET", "/metrics", &accept, b"").expect("the server answers").body;
    let pointer = format!("# {{trace_id=\"{}\"}}", hex(&trace.root.trace_id));
    for histogram in ["verdict", "selection_wait", "first_examination", "extraction"] {
        let bucket = format!("rollcall_{histogram}_seconds_bucket{{");
        let pointing = page.lines().filter(|line| line.starts_with(&bucket) && line.contains(&pointer));
        assert_eq!(pointing.count(), 1, "{histogram}: {page}");
    }
    assert!(!server.get("/metrics").body.contains("trace_id"), "the text format has no exemplars");
}

#[tokio::test]
async fn a_real_prometheus_keeps_the_traces_that_latencies_point_to() {
    let collector = Collector::start();
    let server = serve(&collector, &[]);
    let Some(prometheus) = Observer::prometheus(server.address()) else { return };
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.speak(0, OWNER, 6.0).await;
    client.verdict(0).await;
    let trace = collector.trace("the query's trace", outcome("succeeded")).await;
    let id = hex(&trace.root.trace_id);
    for histogram in ["verdict", "selection_wait", "first_examination", "extraction"] {
        let query = format!("/api/v1/query_exemplars?query=rollcall_{histogram}_seconds_bucket&start=0&end=9999999999");
        let asked =
            || http(prometheus.address(), "GET", &query, &[], b"").ok().filter(|answer| answer.body.contains(&id));
        eventually(&format!("the exemplar of {histogram}"), asked).await;
    }
    let up = http(prometheus.address(), "GET", "/api/v1/targets", &[], b"").expect("it answers").body;
    assert!(up.contains("\"health\":\"up\"") && up.contains("\"lastError\":\"\""), "{up}");
}

#[tokio::test]
async fn a_real_collector_takes_and_hands_on_all_three_signals() {
    let behind = Collector::start();
    let Some(rotel) = Observer::rotel(&behind.endpoint()) else { return };
    let endpoint = format!("http://{}", rotel.address());
    let server = Server::start_under(&[&QUICK[..], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]].concat(), &[]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.speak(0, OWNER, 6.0).await;
    client.verdict(0).await;
    let trace = behind.trace("the query's trace", |trace| trace.steps.len() == 6).await;
    check(&trace);
    assert_eq!(trace.attribute("speaker_id.verdict"), "user");
    eventually("a record", || behind.records().pop()).await;
    eventually("the metrics", || behind.metrics().contains(&"rollcall_verdict".to_owned()).then_some(())).await;
    assert!(behind.resources().iter().all(|resource| resource["service.name"] == "rollcall"));
}

#[tokio::test]
async fn a_collector_that_is_away_or_says_nothing_costs_nobody_a_verdict_and_what_is_lost_is_counted() {
    let collector = Collector::start();
    collector.behave(Manner::Stalls);
    let endpoint = collector.endpoint();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "2"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "60000"),
    ];
    let mut server = Server::start_under(&[&QUICK[..], &variables].concat(), &[]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.speak(0, OWNER, 6.0).await;
    assert_eq!(client.verdict(0).await["person_id"], "anna");
    for voice in 1..=6 {
        client.speak(voice, STRANGER + 40 * voice, 6.0).await;
        client.verdict(voice).await;
    }
    let dropped = "rollcall_telemetry_items_total{outcome=\"dropped\",signal=\"traces\"}";
    eventually("the drops are counted", || (server.metrics().value(dropped) >= 1.0).then_some(())).await;
    server.terminate();
    assert!(server.ended().success(), "a collector that hangs holds no shutdown: {}", server.log());
    assert!(server.log().contains("the collector was not reached in time"), "{}", server.log());
}

#[tokio::test]
async fn an_outage_is_told_once_and_what_waited_comes_after_it() {
    let collector = Collector::start();
    collector.behave(Manner::Status(503));
    let server = serve(&collector, &[]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.speak(0, OWNER, 6.0).await;
    client.verdict(0).await;
    let asked = || collector.requests().iter().filter(|(path, _)| path == "/v1/traces").count();
    eventually("it is asked again and again", || (asked() >= 3).then_some(())).await;
    collector.behave(Manner::Well);
    collector.trace("the trace that waited", outcome("succeeded")).await;
    let told = server.log().matches("the collector is not reached").count();
    // Traces, records; and metrics in their own words.
    assert!((1..=2).contains(&told), "{}", server.log());
    let records = collector.records();
    let of_exporters = records.iter().filter(|record| as_text(record.body.as_ref()).contains("the collector is not"));
    assert_eq!(of_exporters.count(), 0, "an exporter does not report itself to the collector");
}

#[tokio::test]
async fn a_shutdown_brings_the_last_trace_and_the_last_records() {
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    // Nothing is sent by itself within this test.
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "600000"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "600000"),
    ];
    let mut server = Server::start_under(&variables, &[]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.speak(0, OWNER, 6.0).await;
    client.verdict(0).await;
    assert!(collector.traces().is_empty());
    server.terminate();
    assert!(server.ended().success());
    assert_eq!(collector.traces().len(), 1);
    let bodies: Vec<String> = collector.records().iter().map(|record| as_text(record.body.as_ref())).collect();
    assert!(bodies.iter().any(|body| body == "draining"), "{bodies:?}");
}

#[tokio::test]
async fn a_sampler_that_takes_nothing_leaves_neither_traces_nor_exemplars() {
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_TRACES_SAMPLER", "always_off")];
    let server = Server::start_under(&[&QUICK[..], &variables].concat(), &[]);
    server.enrol("anna", OWNER, true);
    let mut client = Client::start(&server, "phone", "talk").await;
    client.speak(0, OWNER, 6.0).await;
    client.verdict(0).await;
    eventually("metrics arrive", || collector.metrics().pop()).await;
    let accept = [("accept", "application/openmetrics-text; version=1.0.0")];
    let page = http(server.address(), "GET", "/metrics", &accept, b"").expect("the server answers").body;
    assert!(!page.contains("trace_id"));
    assert!(collector.traces().is_empty());
}

#[tokio::test]
async fn a_whole_run_tells_no_words_no_names_no_audio_and_no_vectors() {
    let collector = Collector::start();
    let server = serve(&collector, &["budget.socket_burst=2", "budget.refill_per_hour=1"]);
    server.enrol("anna", OWNER, true);
    let renamed = http(
        server.address(),
        "PATCH",
        "/v1/people/anna",
        &[("content-type", "application/json")],
        b"{\"name\":\"Needlename\"}",
    )
    .expect("the server answers");
    assert_eq!(renamed.status, 200, "{}", renamed.body);
    let mut client = Client::start(&server, "phone", "talk").await;
    let start = client.seconds();
    client.audio(&rollcall_tests::sound::tone(OWNER, 6.0)).await;
    let end = client.seconds();
    client
        .send(&serde_json::json!({"type": "segments", "segments": [
            {"id": "one", "speaker": 0, "start": start, "end": end, "text": "needlewords were spoken"}]}))
        .await;
    assert_eq!(client.verdict(0).await["person_name"], "Needlename");
    for voice in 1..=2 {
        client.speak(voice, STRANGER + 40 * voice, 6.0).await;
    }
    collector.trace("a denial's trace", outcome("denied")).await;
    client.stop().await;
    eventually("the record of the denial", || {
        let bodies = collector.records().into_iter().map(|record| as_text(record.body.as_ref()));
        bodies.into_iter().find(|body| body == "speaker_id_budget_first_block")
    })
    .await;

    let exported = collector.bytes();
    let told = [exported.clone(), server.log().into_bytes(), server.get("/metrics").body.into_bytes()].concat();
    let lower: Vec<u8> = told.iter().map(u8::to_ascii_lowercase).collect();
    let contains = |haystack: &[u8], needle: &[u8]| haystack.windows(needle.len()).any(|bytes| bytes == needle);
    for needle in ["needlename", "needlewords", "were spoken"] {
        assert!(!contains(&lower, needle.as_bytes()), "{needle}");
    }
    // Any four samples in a row of the first audio, as they came; and any two values of the owner's voiceprint, as they
    // would be sent in protobuf.
    let audio = rollcall_tests::sound::bytes(&rollcall_tests::sound::tone(OWNER, 0.01));
    for piece in audio.chunks_exact(8).filter(|piece| piece.iter().any(|byte| *byte != 0)) {
        assert!(!contains(&told, piece), "audio");
    }
    let print = gpu_worker::scripted::voice_vector(f64::from(OWNER), DIMENSION);
    for pair in print.chunks_exact(2) {
        let single: Vec<u8> = pair.iter().flat_map(|value| value.to_le_bytes()).collect();
        let double: Vec<u8> = pair.iter().flat_map(|value| f64::from(*value).to_le_bytes()).collect();
        assert!(!contains(&told, &single) && !contains(&told, &double), "a vector");
    }
    assert!(contains(&exported, b"speaker_id.conversation"), "there was something to search");
}

#[test]
fn the_cost_of_it_is_measured_with_and_without_under_the_same_load() {
    let output = std::process::Command::new(rollcall_tests::server::binary())
        .args(["bench", "traces", "--rounds", "1", "--seconds", "1", "--sockets", "2", "--json"])
        .output()
        .expect("the binary was built, so it starts");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let number = |field: &str| report[field].as_f64().unwrap_or_else(|| panic!("{field}: {report}"));
    assert!(number("queries_per_s") > 1.0 && number("requests") >= 2.0, "{report}");
    assert!(number("cpu_us_with") > 0.0 && number("cpu_us_without") > 0.0 && number("ratio") > 0.0, "{report}");
    // Six spans and their attributes take more than this.
    assert!(number("bytes_per_query") > 500.0, "{report}");
}

#[test]
fn a_variable_that_cannot_be_used_stops_the_start_with_its_name_and_its_mend() {
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    let output = std::process::Command::new(rollcall_tests::server::binary())
        .args(["serve", "--model", "scripted", "--listen", "127.0.0.1:0", "--data"])
        .arg(std::env::temp_dir().join(format!("rollcall-traces-{}", std::process::id())))
        .envs([("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_TRACES_SAMPLER", "sometimes")])
        .output()
        .expect("the binary was built, so it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("OTEL_TRACES_SAMPLER: `sometimes` is not supported; use always_on"), "{said}");
}

#[test]
fn without_a_collector_no_query_is_traced() {
    run(async {
        let world = World::new(1);
        world.script(1, &[Answer::Vector(at_distance(0.1))]);
        let mut client = world.client("phone", "talk").await;
        client.say(1, 1, 6.0).await;
        assert!(!world.service.telemetry.tracer().is_on());
        assert_eq!(world.service.telemetry.tracer().begin(), None);
        assert_eq!(actors::of_type(&client.events().await, "speaker").len(), 1);
    });
}
