//! What this process costs: CPU time, memory, open files and threads, read from `/proc` before a scrape.
//!
//! Where `/proc` is absent or unreadable the last known value stays: a number missing from a graph must not break a
//! scrape, let alone the service.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opentelemetry::metrics::Meter;

/// Clock ticks a second in `/proc`. Linux fixes this for user space on every architecture that Rust supports.
const TICKS_A_SECOND: f64 = 100.0;

/// The last sample. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Process(Arc<Sample>);

#[derive(Default)]
struct Sample {
    cpu_ticks: AtomicU64,
    resident_bytes: AtomicU64,
    open_files: AtomicU64,
    threads: AtomicU64,
}

impl Process {
    /// Reads `/proc` anew.
    pub(crate) fn sample(&self) {
        if let Some(ticks) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(cpu_ticks) {
            self.0.cpu_ticks.store(ticks, Ordering::Relaxed);
        }
        if let Ok(status) = fs::read_to_string("/proc/self/status") {
            if let Some(kibibytes) = status_number(&status, "VmRSS:") {
                self.0.resident_bytes.store(kibibytes.saturating_mul(1024), Ordering::Relaxed);
            }
            if let Some(threads) = status_number(&status, "Threads:") {
                self.0.threads.store(threads, Ordering::Relaxed);
            }
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            // The listing itself is one of the open files.
            let open = u64::try_from(files.count().saturating_sub(1)).unwrap_or(u64::MAX);
            self.0.open_files.store(open, Ordering::Relaxed);
        }
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
        let gauge = |name, unit, help, read: fn(&Sample) -> &AtomicU64| {
            let sample = self.clone();
            let gauge = meter.u64_observable_gauge(name).with_unit(unit).with_description(help);
            gauge.with_callback(move |gauge| gauge.observe(read(&sample.0).load(Ordering::Relaxed), &[])).build();
        };
        gauge("rollcall_process_resident_memory", "By", "Memory of the process that is resident.", |sample| {
            &sample.resident_bytes
        });
        gauge("rollcall_process_open_fds", "", "Open file descriptors, sockets included.", |sample| &sample.open_files);
        gauge("rollcall_process_threads", "", "Threads of the process.", |sample| &sample.threads);
    }

    fn cpu_seconds(&self) -> f64 {
        // Ticks of a century of CPU time are exact in an f64.
        self.0.cpu_ticks.load(Ordering::Relaxed) as f64 / TICKS_A_SECOND
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

/// The number after `key` in a `status` file.
fn status_number(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_ascii_whitespace().next()?.parse().ok()
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
        assert_eq!(status_number("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t7\n", "VmRSS:"), Some(2048));
        assert_eq!(status_number("Name:\tx\n", "VmRSS:"), None);
    }

    #[test]
    fn this_process_has_memory_files_and_threads() {
        let process = Process::default();
        process.sample();
        assert!(process.0.resident_bytes.load(Ordering::Relaxed) > 100_000);
        assert!(process.0.open_files.load(Ordering::Relaxed) >= 3);
        assert!(process.0.threads.load(Ordering::Relaxed) >= 1);
    }
}
