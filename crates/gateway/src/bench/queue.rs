//! What one conversation's scheduler costs: `rollcall bench queue`.
//!
//! Drives the very [`Scheduler`] that the service runs, on one thread, with a full queue, and measures updates a second,
//! queries a second, and resident memory a conversation. It prints nothing, and measures neither actors nor the model.

mod load;

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

use load::Load;

/// What is measured, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How long updates are counted, and then how long queries are.
    pub time: Duration,
    /// Conversations whose memory is measured: enough that an allocator's own pages do not show.
    pub conversations: u32,
    /// ... and of the worst kind, which are about thirty times as large.
    pub worst_conversations: u32,
}

impl Default for Plan {
    fn default() -> Self {
        Self { time: Duration::from_secs(3), conversations: 2000, worst_conversations: 100 }
    }
}

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QueueReport {
    /// Updates a second that one core takes while every slot is full and each update coalesces.
    pub offers_per_s: f64,
    /// Queries a second, from choosing the slot to the published verdict, while every slot is full.
    pub dispatches_per_s: f64,
    /// Memory of a conversation with every slot full, four ranges each, and no evidence.
    pub bytes_per_conversation: u64,
    /// Memory of a conversation at every limit at once: 128 voices of 128 ranges and three clips of evidence each.
    pub bytes_worst_case: u64,
    /// Slots that were full.
    pub slots: usize,
    /// Values in a voiceprint.
    pub dimension: usize,
    /// People in the gallery.
    pub people: usize,
}

impl fmt::Display for QueueReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slots, people, dimension, .. } = self;
        writeln!(f, "with {slots} slots full, {people} people, voiceprints of {dimension} values, on one core:")?;
        writeln!(f, "updates a second        {:>12.0}", self.offers_per_s)?;
        writeln!(f, "queries a second        {:>12.0}", self.dispatches_per_s)?;
        writeln!(
            f,
            "bytes a conversation    {:>12}   ({slots} slots of 4 ranges, no evidence)",
            self.bytes_per_conversation
        )?;
        writeln!(f, "bytes in the worst case {:>12}   (128 voices of 128 ranges and 3 clips)", self.bytes_worst_case)
    }
}

/// Why nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// Memory is read from `/proc`.
    #[error("this system does not say how much memory a process uses (/proc/self/status has no VmRSS)")]
    NoMemoryFigure,
    /// A count of nothing has no average.
    #[error("at least one conversation of each kind is needed")]
    NoConversations,
}

/// Measures.
///
/// # Errors
/// When the system does not tell a process's memory, or the plan measures nothing.
pub fn measure(plan: &Plan) -> Result<QueueReport, QueueError> {
    let (ordinary, bytes_per_conversation) = held(plan.conversations, || Load::new().with_ranges(load::FEW))?;
    let worst = || Load::new().with_evidence().with_ranges(load::MOST);
    let (worst, bytes_worst_case) = held(plan.worst_conversations, worst)?;
    drop((ordinary, worst));
    let mut load = Load::new().with_ranges(load::FEW);
    let offers_per_s = per_second(plan.time, || load.update_all());
    let dispatches_per_s = per_second(plan.time, || load.query_all());
    let (slots, dimension, people) = (load.slots(), load::DIMENSION, load::PEOPLE);
    Ok(QueueReport {
        offers_per_s,
        dispatches_per_s,
        bytes_per_conversation,
        bytes_worst_case,
        slots,
        dimension,
        people,
    })
}

/// How often a second `round` did what it counts, over at least `time`.
fn per_second(time: Duration, mut round: impl FnMut() -> u64) -> f64 {
    let started = Instant::now();
    let mut done = 0;
    while started.elapsed() < time {
        done += round();
    }
    // A count of this process's lifetime is far below 2^52: exact in an f64.
    done as f64 / started.elapsed().as_secs_f64()
}

/// So many of something, and the memory of each. They are handed on, because memory that is given back is used again by
/// the next measurement and hides it.
fn held<T>(count: u32, make: impl Fn() -> T) -> Result<(Vec<T>, u64), QueueError> {
    let before = resident_bytes()?;
    let all = (0..count).map(|_| make()).collect();
    let grown = resident_bytes()?.saturating_sub(before);
    let each = grown.checked_div(u64::from(count)).ok_or(QueueError::NoConversations)?;
    Ok((all, each))
}

fn resident_bytes() -> Result<u64, QueueError> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|_| QueueError::NoMemoryFigure)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or(QueueError::NoMemoryFigure)?;
    let kibibytes: u64 =
        line.split_whitespace().next().and_then(|n| n.parse().ok()).ok_or(QueueError::NoMemoryFigure)?;
    Ok(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    //! Goal: the report measures what it says.
    //! Method: a short run; the speeds depend on the machine, what is full and what is used does not.

    use super::*;

    #[test]
    fn the_report_measures_a_full_queue_and_says_so_in_json_and_in_words() {
        let plan = Plan { time: Duration::from_millis(20), conversations: 50, worst_conversations: 5 };
        let report = measure(&plan).unwrap();
        assert_eq!(report.slots, 100);
        assert!(report.offers_per_s > 0.0 && report.dispatches_per_s > 0.0, "{report}");
        let json = serde_json::to_value(report).unwrap();
        for field in ["offers_per_s", "dispatches_per_s", "bytes_per_conversation", "bytes_worst_case"] {
            assert!(json.get(field).is_some_and(serde_json::Value::is_number), "{field}");
        }
        assert!(report.to_string().contains("100 slots full"));
    }

    #[test]
    fn a_plan_without_conversations_is_refused() {
        let plan = Plan { conversations: 0, ..Plan::default() };
        assert_eq!(measure(&plan), Err(QueueError::NoConversations));
    }
}
