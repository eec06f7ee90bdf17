//! What a process holds: threads and descriptors, as Linux counts them. Elsewhere nothing is known.

use std::fs;
use std::time::{Duration, Instant};

/// How long what is ending may take to end.
const SETTLE_MAX: Duration = Duration::from_secs(10);

/// What the process holds at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    threads: usize,
    descriptors: usize,
}

impl Held {
    pub(super) fn now() -> Option<Self> {
        let count = |folder: &str| fs::read_dir(folder).map(Iterator::count).ok();
        Some(Self { threads: count("/proc/self/task")?, descriptors: count("/proc/self/fd")? })
    }
}

/// What was left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Threads more than before.
    pub threads: usize,
    /// Descriptors more than before.
    pub descriptors: usize,
}

impl Left {
    /// Waits until no more is held than `before`, and gives up after a while.
    pub(super) fn since(before: Held) -> Option<Self> {
        let started = Instant::now();
        loop {
            let now = Held::now()?;
            let left = Self {
                threads: now.threads.saturating_sub(before.threads),
                descriptors: now.descriptors.saturating_sub(before.descriptors),
            };
            if left == (Self { threads: 0, descriptors: 0 }) || started.elapsed() > SETTLE_MAX {
                return Some(left);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
