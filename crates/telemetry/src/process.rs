//! What this process costs: CPU time, memory, open files and threads, and how much of each it may have; read from `/proc`
//! before a scrape.
//!
//! Where `/proc` is absent or unreadable the last known value stays: a number missing from a graph must not break a
//! scrape, let alone the service. What never was known is not shown: a limit of 0 would say that everything is used up.

mod room;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opentelemetry::metrics::Meter;

use room::number_after;

/// Clock ticks a second in `/proc`. Linux fixes this for user space on every architecture that Rust supports.
const TICKS_A_SECOND: f64 = 100.0;

/// The last sample. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Process(Arc<Sample>);

/// 0 is what was never known: a process that runs has some of everything.
#[derive(Default)]
struct Sample {
    cpu_ticks: AtomicU64,
    cores: AtomicU64,
    resident_bytes: AtomicU64,
    memory_max_bytes: AtomicU64,
    open_files: AtomicU64,
    files_max: AtomicU64,
    threads: AtomicU64,
}

/// One level: its name, its unit, what it measures, and where it lies.
type Shown = (&'static str, &'static str, &'static str, fn(&Sample) -> &AtomicU64);

const SHOWN: [Shown; 6] = [
    ("rollcall_process_resident_memory", "By", "Memory of the process that is resident.", |sample| {
        &sample.resident_bytes
    }),
    (
        "rollcall_process_memory_max",
        "By",
        "Memory that the process may use: the least of the machine's and of its control groups' limits.",
        |sample| &sample.memory_max_bytes,
    ),
    ("rollcall_process_open_fds", "", "Open file descriptors, sockets included.", |sample| &sample.open_files),
    ("rollcall_process_max_fds", "", "File descriptors that the process may have open.", |sample| &sample.files_max),
    ("rollcall_process_threads", "", "Threads of the process.", |sample| &sample.threads),
    ("rollcall_process_cores", "", "Processor cores that the process may use.", |sample| &sample.cores),
];

impl Process {
    /// Reads `/proc` anew.
    pub(crate) fn sample(&self) {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        keep(&self.0.cpu_ticks, stat.as_deref().and_then(cpu_ticks));
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        keep(&self.0.resident_bytes, number_after(&status, "VmRSS:").map(|kibibytes| kibibytes.saturating_mul(1024)));
        keep(&self.0.threads, number_after(&status, "Threads:"));
        keep(&self.0.open_files, open_files());
        keep(&self.0.files_max, room::files_max(Path::new("/")));
        keep(&self.0.memory_max_bytes, room::memory_max(Path::new("/")));
        keep(
            &self.0.cores,
            std::thread::available_parallelism().ok().and_then(|cores| u64::try_from(cores.get()).ok()),
        );
    }

    /// Registers the instruments that show the last sample.
    pub(crate) fn observe(&self, meter: &Meter) {
        let sample = self.clone();
        meter
            .f64_observable_counter("rollcall_process_cpu")
            .with_unit("s")
            .with_description("CPU time that the process has used, in user and system mode together.")
            .with_callback(move |counter| counter.observe(sample.cpu_seconds(), &[]))
            .build();
        for (name, unit, help, place) in SHOWN {
            let sample = self.clone();
            let gauge = meter.u64_observable_gauge(name).with_unit(unit).with_description(help);
            gauge
                .with_callback(move |gauge| {
                    let value = place(&sample.0).load(Ordering::Relaxed);
                    if value > 0 {
                        gauge.observe(value, &[]);
                    }
                })
                .build();
        }
    }

    fn cpu_seconds(&self) -> f64 {
        // Ticks of a century of CPU time are exact in an f64.
        self.0.cpu_ticks.load(Ordering::Relaxed) as f64 / TICKS_A_SECOND
    }
}

fn keep(place: &AtomicU64, value: Option<u64>) {
    if let Some(value) = value {
        place.store(value, Ordering::Relaxed);
    }
}

/// User and system ticks of a `stat` line. The command name may hold spaces and brackets; the fields start after the
/// last bracket with field 3, and the two times are fields 14 and 15.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn open_files() -> Option<u64> {
    let files = fs::read_dir("/proc/self/fd").ok()?;
    // The listing itself is one of the open files.
    u64::try_from(files.count().saturating_sub(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_behind_a_command_name_with_spaces_and_brackets() {
        let stat = "42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 300 20 0 0 20 0 5 0 100";
        assert_eq!(cpu_ticks(stat), Some(320));
        assert_eq!(cpu_ticks("nonsense"), None);
    }

    #[test]
    fn a_status_number_is_found_by_its_key() {
        assert_eq!(number_after("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t7\n", "VmRSS:"), Some(2048));
        assert_eq!(number_after("Name:\tx\n", "VmRSS:"), None);
    }

    #[test]
    fn this_process_has_some_of_everything_and_less_than_it_may() {
        let process = Process::default();
        process.sample();
        let value = |place: &AtomicU64| place.load(Ordering::Relaxed);
        assert!(value(&process.0.resident_bytes) > 100_000);
        assert!(value(&process.0.resident_bytes) < value(&process.0.memory_max_bytes));
        assert!((3..value(&process.0.files_max)).contains(&value(&process.0.open_files)));
        assert!(value(&process.0.threads) >= 1 && value(&process.0.cores) >= 1);
    }
}
