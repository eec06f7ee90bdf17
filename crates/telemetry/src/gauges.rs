//! How the levels are shown: each as a gauge, or as a counter where it only ever rises.
//!
//! Does not own what they mean or who keeps them (see `levels`), nor what `/proc` says (see `process`).

use std::time::Instant;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use crate::levels::{Level, Levels};

/// Registers everything that is asked for at a scrape.
pub(crate) fn observe(levels: &Levels, meter: &Meter, version: &str) {
    work(levels, meter);
    room(levels, meter);
    kept(levels, meter);
    oldest(levels, meter);
    levels.engine.observe(meter);
    let version = [KeyValue::new("version", version.to_owned())];
    meter
        .u64_observable_gauge("rollcall_build_info")
        .with_description("Always 1; the label says which version runs.")
        .with_callback(move |gauge| gauge.observe(1, &version))
        .build();
}

/// What is there and under way now.
fn work(levels: &Levels, meter: &Meter) {
    gauge(
        meter,
        "rollcall_ready",
        "1 while the service takes new sockets and can extract, as /readyz says; else 0.",
        &levels.ready,
    );
    gauge(meter, "rollcall_queue_slots", "Voices waiting to be examined, in all conversations.", &levels.queue_slots);
    gauge(meter, "rollcall_open_queries", "Voiceprint queries reserved and not yet settled.", &levels.open_queries);
    gauge(meter, "rollcall_sockets", "Open sockets.", &levels.sockets);
    gauge(meter, "rollcall_conversations", "Live conversations.", &levels.conversations);
    gauge(meter, "rollcall_workers_up", "Extraction workers that are able to extract.", &levels.workers_up);
    let restarts = "Extraction workers that were started again after a panic, a hang or a lost thread.";
    counter(meter, "rollcall_worker_restarts", restarts, &levels.worker_restarts);
}

/// What there can be at most.
fn room(levels: &Levels, meter: &Meter) {
    let capacity = "Voices that the queues of all open sockets hold at most.";
    gauge(meter, "rollcall_queue_capacity", capacity, &levels.queue_capacity);
    gauge(
        meter,
        "rollcall_turns",
        "Queries that may be under way at once, running and prefetched together.",
        &levels.turns,
    );
    gauge(meter, "rollcall_workers", "Extraction workers that are configured.", &levels.workers);
    gauge(meter, "rollcall_sockets_max", "Sockets that the process takes at most.", &levels.sockets_max);
    gauge(
        meter,
        "rollcall_conversations_max",
        "Conversations that the process holds at most.",
        &levels.conversations_max,
    );
}

/// What is kept on disk, or waits for it.
fn kept(levels: &Levels, meter: &Meter) {
    gauge(meter, "rollcall_people", "Enrolled people.", &levels.people);
    let store = meter.u64_observable_gauge("rollcall_store").with_unit("By");
    let bytes = levels.store_bytes.clone();
    store
        .with_description("Size of the store on disk.")
        .with_callback(move |gauge| gauge.observe(bytes.value(), &[]))
        .build();
    let rows = "Segments and voices of the history that are not on disk yet.";
    gauge(meter, "rollcall_history_backlog_rows", rows, &levels.history.waiting);
    let rows_max = "Segments and voices of the history that may wait for the disk; beyond it the oldest are left out.";
    gauge(meter, "rollcall_history_backlog_rows_max", rows_max, &levels.history.waiting_max);
    let failures = "Writings of the history that failed and were tried again.";
    counter(meter, "rollcall_history_write_failures", failures, &levels.history.failures);
    let lost = "Segments and voices of the history that were left out, because too many waited for the disk.";
    counter(meter, "rollcall_history_lost_rows", lost, &levels.history.lost);
}

fn oldest(levels: &Levels, meter: &Meter) {
    let ages = levels.queue_ages.clone();
    meter
        .f64_observable_gauge("rollcall_queue_oldest_age")
        .with_unit("s")
        .with_description("How long the oldest waiting voice has waited; 0 when none waits.")
        .with_callback(move |gauge| gauge.observe(ages.oldest(Instant::now()).as_secs_f64(), &[]))
        .build();
}

fn gauge(meter: &Meter, name: &'static str, help: &'static str, level: &Level) {
    let level = level.clone();
    let gauge = meter.u64_observable_gauge(name).with_description(help);
    gauge.with_callback(move |gauge| gauge.observe(level.value(), &[])).build();
}

fn counter(meter: &Meter, name: &'static str, help: &'static str, level: &Level) {
    let level = level.clone();
    let counter = meter.u64_observable_counter(name).with_description(help);
    counter.with_callback(move |counter| counter.observe(level.value(), &[])).build();
}
