//! What this process holds at a moment, as Linux counts it. Elsewhere nothing is known.

use std::fmt;
use std::fs;

/// Memory, threads and descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) resident_bytes: u64,
    pub(super) threads: u64,
    pub(super) descriptors: u64,
}

impl Held {
    pub(super) fn now() -> Option<Self> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        // The listing itself is one of the descriptors.
        let descriptors = fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1);
        Some(Self {
            resident_bytes: number(&status, "VmRSS:")? * 1024,
            threads: number(&status, "Threads:")?,
            descriptors: u64::try_from(descriptors).ok()?,
        })
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resident_bytes, threads, descriptors } = self;
        write!(f, "{:.1} MiB, {threads} threads, {descriptors} descriptors", super::report::mib(*resident_bytes))
    }
}

fn number(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}
