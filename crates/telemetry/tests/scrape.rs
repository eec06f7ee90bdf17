//! Goal: what a scraper sees is complete from the first scrape, consistent in every scrape, and well-formed.
//! Method: real telemetry through its public face; pages are parsed back by an independent reader and by `promtool`.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use telemetry::{
    Accounts, Cap, Carried, Circuit, Class, Decision, Denial, Endpoint, EndpointFailure, ExitReason, Exported,
    FailureKind, FrameKind, Incidence, Outcome, Override, Reconnect, Refusal, Settled, Signal, Target, Telemetry,
    Violation,
};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0";

#[test]
fn every_accounting_series_is_at_0_with_its_created_before_any_traffic() {
    let before = unix_seconds();
    let page = scrape(&start());
    let after = unix_seconds();

    let mut series = Vec::new();
    for cap in ["voice", "socket", "both"] {
        for counter in ["budget_exits", "budget_voices", "budget_sockets"] {
            series.push((counter, format!("{{cap=\"{cap}\"}}")));
        }
    }
    for outcome in ["reserved", "succeeded", "failed"] {
        series.push(("embedding_attempts", format!("{{outcome=\"{outcome}\"}}")));
    }
    assert_eq!(series.len(), 12, "four counters of three values each");
    for reason in REASONS {
        series.push(("match_exits", format!("{{reason=\"{reason}\"}}")));
    }
    for target in ["owner", "person"] {
        for decision in ["accepted", "rejected", "ambiguous", "pending"] {
            series.push(("live_decisions", format!("{{decision=\"{decision}\",target=\"{target}\"}}")));
        }
    }
    for (counter, labels) in &series {
        assert_eq!(page.value(&format!("omi_speaker_id_{counter}_total{labels}")), 0.0);
        let created = page.value(&format!("omi_speaker_id_{counter}_created{labels}"));
        assert!((before - 0.001..=after).contains(&created), "{counter} was created at {created}");
    }
    let accounting = page.0.keys().filter(|series| series.starts_with("omi_speaker_id_")).count();
    assert_eq!(accounting, 2 * series.len(), "nothing else carries the accounting prefix");
}

#[test]
fn every_series_of_identity_over_time_is_at_0_with_its_created_before_any_traffic() {
    let before = unix_seconds();
    let page = scrape(&start());
    let after = unix_seconds();
    let mut series = vec![("live_speaker_collapse", String::new())];
    for carried in ["manual", "automatic", "none"] {
        for target in ["owner", "person"] {
            series.push(("live_speaker_rollover", format!("{{carried=\"{carried}\",target=\"{target}\"}}")));
        }
    }
    for (outcome, reason) in RECONNECTS {
        series.push(("owner_reconnect", format!("{{outcome=\"{outcome}\",reason=\"{reason}\"}}")));
    }
    for (counter, labels) in &series {
        assert_eq!(page.value(&format!("omi_{counter}_total{labels}")), 0.0);
        let created = page.value(&format!("omi_{counter}_created{labels}"));
        assert!((before - 0.001..=after).contains(&created), "{counter} was created at {created}");
    }
    let found = page.0.keys().filter(|series| series.starts_with("omi_") && !series.starts_with("omi_speaker_id_"));
    assert_eq!(found.count(), 2 * series.len(), "only pairs that mean something exist");
}

#[test]
fn every_own_series_with_a_closed_label_set_and_every_histogram_is_there_before_any_traffic() {
    let page = scrape(&start());
    for kind in FailureKind::ALL {
        assert_eq!(page.value(&format!("rollcall_extraction_failures_total{{kind=\"{kind}\"}}")), 0.0);
    }
    for reason in Refusal::ALL {
        assert_eq!(page.value(&format!("rollcall_refused_total{{reason=\"{reason}\"}}")), 0.0);
    }
    for kind in Violation::ALL {
        assert_eq!(page.value(&format!("rollcall_invariant_violations_total{{kind=\"{kind}\"}}")), 0.0);
    }
    for class in Class::ALL {
        assert_eq!(page.value(&format!("rollcall_selection_wait_seconds_count{{class=\"{class}\"}}")), 0.0);
        let bucket = |le| format!("rollcall_selection_wait_seconds_bucket{{class=\"{class}\",le=\"{le}\"}}");
        assert_eq!((page.value(&bucket("5")), page.value(&bucket("+Inf"))), (0.0, 0.0));
        for aged in Override::ALL {
            assert_eq!(page.value(&format!("rollcall_selections_total{{class=\"{class}\",override=\"{aged}\"}}")), 0.0);
        }
    }
    for kind in FrameKind::ALL {
        assert_eq!(page.value(&format!("rollcall_frames_total{{kind=\"{kind}\"}}")), 0.0);
    }
    for signal in Signal::ALL {
        for outcome in Exported::ALL {
            let series = format!("rollcall_telemetry_items_total{{outcome=\"{outcome}\",signal=\"{signal}\"}}");
            assert_eq!(page.value(&series), 0.0);
        }
    }
    assert_eq!(page.value("rollcall_attempt_of_voice_count"), 0.0);
    for histogram in ["verdict", "first_examination", "extraction"] {
        assert_eq!(page.value(&format!("rollcall_{histogram}_seconds_count")), 0.0);
        assert_eq!(page.value(&format!("rollcall_{histogram}_seconds_bucket{{le=\"5\"}}")), 0.0);
        assert_eq!(page.value(&format!("rollcall_{histogram}_seconds_bucket{{le=\"+Inf\"}}")), 0.0);
    }
    assert_eq!(page.value("rollcall_build_info{version=\"1.2.3\"}"), 1.0);
    assert!(page.value("rollcall_process_resident_memory_bytes") > 0.0);
}

#[test]
fn no_label_is_an_id() {
    let telemetry = start();
    book_one_of_each(&telemetry);
    let allowed = [
        "cap", "outcome", "reason", "target", "decision", "kind", "carried", "version", "le", "endpoint", "state",
        "provider", "class", "override", "signal",
    ];
    for series in scrape(&telemetry).0.keys() {
        let labels = series.split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}'));
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let name = label.split_once('=').unwrap().0;
            assert!(allowed.contains(&name), "{series} has the label {name}");
        }
    }
}

#[test]
fn what_is_booked_is_what_is_scraped() {
    let telemetry = start();
    book_one_of_each(&telemetry);
    let page = scrape(&telemetry);
    for (series, value) in [
        ("omi_speaker_id_embedding_attempts_total{outcome=\"reserved\"}", 3.0),
        ("omi_speaker_id_embedding_attempts_total{outcome=\"succeeded\"}", 1.0),
        ("omi_speaker_id_embedding_attempts_total{outcome=\"failed\"}", 1.0),
        ("rollcall_open_queries", 1.0),
        ("rollcall_engine_info{provider=\"remote\"}", 1.0),
        ("rollcall_endpoint_circuit{endpoint=\"0\",state=\"open\"}", 1.0),
        ("rollcall_endpoint_circuit{endpoint=\"0\",state=\"closed\"}", 0.0),
        ("rollcall_endpoint_under_way{endpoint=\"0\"}", 1.0),
        ("rollcall_endpoint_answered_total{endpoint=\"0\"}", 7.0),
        ("rollcall_endpoint_failures_total{endpoint=\"0\",kind=\"broken\"}", 2.0),
        ("rollcall_endpoint_failures_total{endpoint=\"0\",kind=\"stalled\"}", 0.0),
        ("omi_speaker_id_budget_exits_total{cap=\"voice\"}", 1.0),
        ("omi_speaker_id_budget_exits_total{cap=\"both\"}", 2.0),
        ("omi_speaker_id_budget_voices_total{cap=\"voice\"}", 1.0),
        ("omi_speaker_id_budget_voices_total{cap=\"both\"}", 0.0),
        ("omi_speaker_id_budget_sockets_total{cap=\"both\"}", 1.0),
        ("omi_speaker_id_match_exits_total{reason=\"embedding_budget\"}", 3.0),
        ("omi_speaker_id_match_exits_total{reason=\"no_pcm\"}", 1.0),
        ("omi_speaker_id_live_decisions_total{decision=\"ambiguous\",target=\"owner\"}", 1.0),
        ("omi_live_speaker_rollover_total{carried=\"automatic\",target=\"owner\"}", 1.0),
        ("omi_live_speaker_rollover_total{carried=\"none\",target=\"owner\"}", 0.0),
        ("omi_owner_reconnect_total{outcome=\"attempted\",reason=\"lookup\"}", 1.0),
        ("omi_owner_reconnect_total{outcome=\"rejected\",reason=\"donor_authority\"}", 1.0),
        ("omi_owner_reconnect_total{outcome=\"accepted\",reason=\"accepted\"}", 0.0),
        ("omi_live_speaker_collapse_total", 1.0),
        ("rollcall_verdict_seconds_bucket{le=\"0.05\"}", 0.0),
        ("rollcall_verdict_seconds_bucket{le=\"0.1\"}", 1.0),
        ("rollcall_verdict_seconds_sum", 0.06),
        ("rollcall_selection_wait_seconds_bucket{class=\"repeat\",le=\"7.5\"}", 1.0),
        ("rollcall_selection_wait_seconds_bucket{class=\"repeat\",le=\"5\"}", 0.0),
        ("rollcall_selection_wait_seconds_count{class=\"first\"}", 1.0),
        ("rollcall_selections_total{class=\"repeat\",override=\"yes\"}", 1.0),
        ("rollcall_selections_total{class=\"first\",override=\"yes\"}", 0.0),
        ("rollcall_first_examination_seconds_bucket{le=\"5\"}", 1.0),
        ("rollcall_first_examination_seconds_bucket{le=\"2.5\"}", 0.0),
        ("rollcall_attempt_of_voice_bucket{le=\"2\"}", 0.0),
        ("rollcall_attempt_of_voice_bucket{le=\"3\"}", 1.0),
        ("rollcall_voices_total", 1.0),
        ("rollcall_frames_total{kind=\"audio\"}", 1.0),
        ("rollcall_ready", 1.0),
        ("rollcall_history_backlog_rows", 9.0),
        ("rollcall_history_write_failures_total", 2.0),
        ("rollcall_history_lost_rows_total", 1.0),
        ("rollcall_extraction_seconds_count", 1.0),
        ("rollcall_extraction_failures_total{kind=\"worker_panicked\"}", 1.0),
        ("rollcall_refused_total{reason=\"too_large\"}", 1.0),
        ("rollcall_evicted_range_seconds_total", 1.5),
        ("rollcall_queue_slots", 7.0),
        ("rollcall_sockets", 1.0),
        ("rollcall_workers_up", 2.0),
        ("rollcall_store_bytes", 4096.0),
    ] {
        assert!((page.value(series) - value).abs() < 1e-9, "{series} is {}, not {value}", page.value(series));
    }
    assert!(page.value("rollcall_queue_oldest_age_seconds") >= 3.0);
}

#[test]
fn an_impossible_booking_is_a_violation_and_leaves_the_sums_alone() {
    let telemetry = start();
    telemetry.accounts().settled(Settled::Succeeded);
    telemetry.accounts().exited(ExitReason::EmbeddingBudget);
    let page = scrape(&telemetry);
    assert_eq!(page.value("rollcall_invariant_violations_total{kind=\"settled_unreserved\"}"), 1.0);
    assert_eq!(page.value("rollcall_invariant_violations_total{kind=\"exit_without_cap\"}"), 1.0);
    assert_eq!(page.value("omi_speaker_id_match_exits_total{reason=\"embedding_budget\"}"), 0.0);
    assert_balanced(&page);
}

#[test]
fn every_scrape_balances_while_four_threads_book() {
    let telemetry = start();
    let done = AtomicBool::new(false);
    let (rounds, moves) = std::thread::scope(|scope| {
        let (accounts, done) = (telemetry.accounts(), &done);
        let workers: Vec<_> = (0..4).map(|seed| scope.spawn(move || book_until(done, accounts, seed))).collect();
        let stop = StopOnDrop(done);
        let moves = count_moves(&telemetry);
        drop(stop);
        (workers.into_iter().map(|worker| worker.join().unwrap()).sum::<u32>(), moves)
    });
    assert!(moves > 0, "the scrapes saw the counters move");
    let page = scrape(&telemetry);
    assert_balanced(&page);
    assert_eq!(page.value("omi_speaker_id_embedding_attempts_total{outcome=\"reserved\"}"), f64::from(rounds));
    assert_eq!(page.value("rollcall_open_queries"), 0.0);
}

#[test]
fn open_metrics_is_given_on_request_and_has_its_shape() {
    let telemetry = start();
    book_one_of_each(&telemetry);
    let (content_type, body) = telemetry.encode(Some(OPEN_METRICS));
    assert_eq!(content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(body.ends_with("\n# EOF\n") && body.matches("# EOF").count() == 1);
    let mut families = Vec::new();
    let mut kind = "";
    for line in body.lines() {
        if let Some(header) = line.strip_prefix("# TYPE ") {
            let (family, of) = header.split_once(' ').unwrap();
            assert!(!families.contains(&family), "{family} is described twice");
            assert!(of != "counter" || !family.ends_with("_total"), "{family} names a sample, not a family");
            families.push(family);
            kind = of;
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let suffix = name.strip_prefix(*families.last().unwrap()).expect("a sample stands below its own family");
            let allowed: &[&str] = match kind {
                "counter" => &["_total", "_created"],
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(allowed.contains(&suffix), "{name} in a {kind}");
        }
    }
    let text = scrape(&telemetry);
    let open_metrics = Page::parse(&body.replace(".0\"}", "\"}"));
    let steady = |page: &Page| {
        let series = page.0.iter().filter(|(series, _)| !series.contains("_process_") && !series.contains("_age_"));
        series.map(|(series, value)| (series.clone(), *value)).collect::<Vec<_>>()
    };
    assert_eq!(steady(&text), steady(&open_metrics), "both formats say the same");
}

#[test]
fn text_is_the_default_format() {
    let (content_type, body) = start().encode(None);
    assert_eq!(content_type, "text/plain; version=0.0.4");
    assert!(!body.contains("# EOF"));
}

#[test]
fn promtool_has_nothing_to_say() {
    let telemetry = start();
    assert_promtool_silent(&telemetry.encode(None).1);
    book_one_of_each(&telemetry);
    assert_promtool_silent(&telemetry.encode(None).1);
}

/// The reasons as the outside relies on them, written out so that a renamed variant is noticed.
const REASONS: [&str; 12] = [
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

/// Outcome and reason of every step of a reconnect, written out for the same reason.
const RECONNECTS: [(&str, &str); 10] = [
    ("attempted", "lookup"),
    ("accepted", "accepted"),
    ("rejected", "no_device"),
    ("rejected", "absent"),
    ("rejected", "corrupt"),
    ("rejected", "unavailable"),
    ("rejected", "expired_or_profile"),
    ("rejected", "donor_authority"),
    ("rejected", "acoustic"),
    ("rejected", "arbitration"),
];

fn start() -> Telemetry {
    Telemetry::start("1.2.3").unwrap()
}

fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

fn book_one_of_each(telemetry: &Telemetry) {
    let accounts = telemetry.accounts();
    for _ in 0..3 {
        accounts.reserved();
    }
    accounts.settled(Settled::Succeeded);
    accounts.settled(Settled::Failed);
    let denial = |cap, voice, socket| accounts.denied(Denial { cap, voice, socket });
    denial(Cap::Voice, Incidence::First, Incidence::Repeat);
    denial(Cap::Both, Incidence::Repeat, Incidence::First);
    denial(Cap::Both, Incidence::Repeat, Incidence::Repeat);
    accounts.exited(ExitReason::NoPcm);
    accounts.decided(Target::Owner, Decision::Ambiguous);
    let metrics = telemetry.metrics();
    metrics.verdict(Duration::from_millis(60), None);
    metrics.selected(Class::Repeat, Override::Yes, Duration::from_secs(6), None);
    metrics.selected(Class::First, Override::No, Duration::from_millis(6), None);
    metrics.voice_heard();
    metrics.first_examined(Duration::from_secs(3), None);
    metrics.attempted(3);
    metrics.frame(FrameKind::Audio);
    metrics.extracted(Duration::from_millis(140), None);
    metrics.extraction_failed(FailureKind::WorkerPanicked);
    metrics.refused(Refusal::TooLarge);
    metrics.rolled_over(Carried::Automatic, Target::Owner);
    metrics.reconnect(Reconnect::Attempted);
    metrics.reconnect(Reconnect::DonorAuthority);
    metrics.collapsed();
    let failures = vec![(EndpointFailure::Broken, 2)];
    let endpoint = Endpoint { circuit: Circuit::Open, under_way: 1, answered: 7, failures };
    metrics.levels().engine.set("remote", vec![endpoint]);
    for seconds in [1.5, -2.0, f64::NAN, f64::INFINITY] {
        metrics.range_evicted(seconds);
    }
    let mut watch = metrics.levels().queue_ages.watch();
    watch.set(Instant::now().checked_sub(Duration::from_secs(3)));
    let mut slots = metrics.levels().queue_slots.share();
    slots.set(7);
    let socket = metrics.levels().sockets.one();
    // The closure owns what keeps the levels up, and asks for the rest, as the service does.
    metrics.before_scrape(move |levels| {
        let _held = (&watch, &slots, &socket);
        levels.workers_up.set(2);
        levels.store_bytes.set(4096);
        levels.ready.set(1);
        levels.history.waiting.set(9);
        levels.history.failures.set(2);
        levels.history.lost.set(1);
    });
}

/// Reserves, is denied and settles, over and over; says how often.
fn book_until(done: &AtomicBool, accounts: &Accounts, seed: u32) -> u32 {
    let mut rounds = 0;
    while !done.load(Ordering::Relaxed) {
        accounts.reserved();
        let pick = (seed + rounds).wrapping_mul(2_654_435_761) >> 28;
        let cap = if pick.is_multiple_of(3) { Cap::Voice } else { Cap::Both };
        let incidence = if pick.is_multiple_of(5) { Incidence::First } else { Incidence::Repeat };
        accounts.denied(Denial { cap, voice: incidence, socket: incidence });
        accounts.settled(if pick.is_multiple_of(2) { Settled::Succeeded } else { Settled::Failed });
        rounds += 1;
    }
    rounds
}

/// Ends the booking threads also when a scrape fails the test, which would otherwise wait for them for ever.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Scrapes many times; says how many scrapes saw more exits than the one before.
fn count_moves(telemetry: &Telemetry) -> u32 {
    let (mut moves, mut last) = (0, 0.0);
    for _ in 0..200 {
        let page = scrape(telemetry);
        assert_balanced(&page);
        let exits = page.value("omi_speaker_id_match_exits_total{reason=\"embedding_budget\"}");
        moves += u32::from(exits > last);
        last = exits;
    }
    moves
}

fn assert_balanced(page: &Page) {
    let exits: f64 =
        Cap::ALL.iter().map(|cap| page.value(&format!("omi_speaker_id_budget_exits_total{{cap=\"{cap}\"}}"))).sum();
    assert_eq!(exits, page.value("omi_speaker_id_match_exits_total{reason=\"embedding_budget\"}"));
    let attempts =
        |outcome: Outcome| page.value(&format!("omi_speaker_id_embedding_attempts_total{{outcome=\"{outcome}\"}}"));
    let closed = attempts(Outcome::Succeeded) + attempts(Outcome::Failed);
    assert_eq!(attempts(Outcome::Reserved), closed + page.value("rollcall_open_queries"));
}

fn scrape(telemetry: &Telemetry) -> Page {
    Page::parse(&telemetry.encode(None).1)
}

/// A page, read back: each series (labels sorted by name) with its value.
struct Page(BTreeMap<String, f64>);

impl Page {
    fn parse(text: &str) -> Self {
        let mut samples = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let value = value.parse().unwrap_or_else(|_| panic!("{line} has no number"));
            assert!(samples.insert(series.to_owned(), value).is_none(), "{series} stands twice");
        }
        Self(samples)
    }

    fn value(&self, series: &str) -> f64 {
        *self.0.get(series).unwrap_or_else(|| panic!("{series} is absent"))
    }
}

/// Runs `promtool check metrics` on a page. It exits with 0 and prints nothing when it finds no fault.
fn assert_promtool_silent(page: &str) {
    let mut promtool = Command::new(promtool())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool was found, so it starts");
    promtool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.is_empty(), "promtool: {} {said}", output.status);
}

fn promtool() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.rollcall/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain([workspace]).map(|folder| folder.join("promtool"));
    places.find(|file| file.is_file()).expect("promtool is neither on the PATH nor in .rollcall/bin: run `make setup`")
}
