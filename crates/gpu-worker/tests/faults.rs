//! Goal: whatever workers and extraction servers do, every query is answered, the books balance, everything is well again
//! in the stated time, and neither threads nor descriptors are left behind.
//! Method: the fault run, with 2000 queries or as many as `ROLLCALL_FAULT_QUERIES` says. It is alone in this file, since it
//! counts the process's threads.

use gpu_worker::faults;

#[test]
fn a_fault_run_finds_no_trouble() {
    let queries = std::env::var("ROLLCALL_FAULT_QUERIES").map_or(2_000, |count| count.parse().expect("it is a number"));
    let report = faults::run(queries, &mut |_| {}).expect("it can be started");
    println!("{report}");
    assert!(report.queries() >= queries);
    assert_eq!(report.troubles(), Vec::<String>::new());
    let spoiled: Vec<&str> =
        report.rows.iter().filter(|row| row.failed + row.left == 0).map(|row| row.fault.as_str()).collect();
    assert_eq!(spoiled, Vec::<&str>::new(), "a fault that no query met shows nothing");
}
