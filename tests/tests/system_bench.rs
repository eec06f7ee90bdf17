//! Goal: `rollcall bench sockets` measures a server that it starts itself, and `rollcall bench fairness` the turns; both say
//! so in the fields that others read.
//! Method: the real command, with a few sockets and a short ring; no number is held against a limit here but those that
//! do not depend on the machine.

use std::process::Command;

use rollcall_tests::server::binary;
use serde_json::Value;

/// A short ring fills soon, and tokens that come back every second make the ramp short. Every third second a voice
/// speaks, so that its fifth second, with which it gets its verdict, ends at 13 s: within the time measured, 8 to 14 s.
const SHORT: [&str; 8] = [
    "--set",
    "matching.query_seconds_max=2",
    "--set",
    "sockets.ring_seconds=5",
    "--set",
    "budget.refill_per_hour=3600",
    "--seconds",
    "6",
];

#[test]
fn a_few_sockets_are_measured_and_nothing_is_dropped() {
    let output = Command::new(binary())
        .args(["bench", "sockets", "--sockets", "6", "--pages", "2", "--json"])
        .args(SHORT)
        .output()
        .expect("the binary was built, so it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!((&report["sockets"], &report["dropped"]), (&6.into(), &0.into()), "{report}");
    assert_eq!((&report["ring_bytes"], &report["model"]), (&160_000.into(), &"scripted".into()), "{report}");
    let (p50, p99) = (report["verdict_ms"]["p50"].as_f64(), report["verdict_ms"]["p99"].as_f64());
    assert!(p50.is_some_and(|p50| p50 > 0.0) && p99 >= p50, "{report}");
    let pages = &report["pages"];
    assert_eq!(pages["pages"], 2, "{report}");
    assert!(pages["bytes_per_s_a_page"].as_f64().is_some_and(|bytes| bytes > 100.0), "both were fed: {report}");
    assert!(pages["cores_a_page"].is_f64(), "{report}");
    for field in ["cpu_cores", "bytes_per_socket", "ratio_to_ring", "queries_per_s", "frames_per_s"] {
        assert!(report[field].as_f64().is_some_and(|value| value > 0.0), "{field}: {report}");
    }
}

#[test]
fn more_sockets_than_files_may_be_open_are_refused_with_the_mend() {
    let command = format!("ulimit -n 100 && exec {} bench sockets --sockets 50", binary().display());
    let output = Command::new("sh").args(["-c", &command]).output().expect("every system has a shell");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("needs 300 open files and 100 are allowed; run: ulimit -n 300"), "{said}");
}

#[test]
fn the_fairness_of_turns_is_printed_as_json_and_as_a_table_and_is_the_same_for_the_same_seed() {
    let said = |args: &[&str]| {
        let output = Command::new(binary()).args(["bench", "fairness", "--seed", "3"]).args(args).output();
        let output = output.expect("the binary was built, so it starts");
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let report: Value = serde_json::from_str(&said(&["--json"])).expect("one JSON object");
    let first = &report["waits"][0];
    assert_eq!((&report["seed"], &first["discipline"], &first["bursting"]), (&3.into(), &"accounts".into(), &1.into()));
    assert!(first["p99_ratio"].as_f64().is_some_and(|ratio| ratio <= 2.0), "{first}");
    let table = said(&[]);
    assert!(table.contains("accounts") && table.contains("rounds") && table.contains("arrival"), "{table}");
    assert_eq!(table, said(&[]));
}
