//! Goal: the fault run and the soak are commands whose verdict a script can rely on, and both find the engine well.
//! Method: the real binary, with fewer queries and for a shorter time than their defaults. The hour is
//! `rollcall bench soak`; `ROLLCALL_SOAK_MINUTES=60` makes this test run it with the scripted model, and continuous
//! integration runs five minutes.

use std::process::{Command, Output};

use rollcall_tests::server::binary;
use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(binary()).arg("bench").args(arguments).output().expect("the binary was built, so it starts")
}

/// The one JSON object of a run that found nothing wrong.
fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert!(output.status.success() && said.is_empty(), "{said} {report}");
    report
}

#[test]
fn a_fault_run_answers_every_query_and_says_so() {
    let report = report(&bench(&["faults", "--queries", "800", "--json"]));
    assert!(report["queries"].as_u64().is_some_and(|queries| queries >= 800), "{report}");
    assert_eq!(report["troubles"], Value::Array(Vec::new()), "{report}");
    let rows = report["rows"].as_array().expect("it lists the faults");
    assert!(rows.len() > 20, "faults of workers, and of servers in both protocols");
    for row in rows {
        let met: u64 = ["failed", "left"].iter().filter_map(|ending| row[ending].as_u64()).sum();
        assert!(met > 0, "nobody met the fault: {row}");
        assert_eq!(row["unanswered"], 0, "{row}");
    }
}

#[test]
fn a_fault_run_prints_a_line_for_each_fault() {
    let output = bench(&["faults", "--queries", "100"]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(table.contains("worker hangs") && table.contains("servers stall mid-body, embedding"), "{table}");
    assert!(table.contains("0 threads and 0 descriptors left behind"), "{table}");
}

#[test]
fn the_engine_at_full_load_holds_what_it_held() {
    let minutes = std::env::var("ROLLCALL_SOAK_MINUTES").unwrap_or_else(|_| "0.5".to_owned());
    let report = report(&bench(&["soak", "--minutes", &minutes, "--model", "scripted", "--json"]));
    assert_eq!((&report["flat"], &report["failed"]), (&true.into(), &0.into()), "{report}");
    assert!(report["answered"].as_u64().is_some_and(|answered| answered > 100), "{report}");
    for level in ["resident_bytes", "threads", "descriptors"] {
        let [start, max, end] = ["start", "max", "end"].map(|of| report[level][of].as_u64().unwrap_or_default());
        assert!(start > 0 && end > 0 && max >= start.max(end), "{level}: {report}");
    }
}

#[test]
fn a_soak_without_a_length_is_refused() {
    let output = bench(&["soak", "--minutes", "0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--minutes"), "{output:?}");
}
