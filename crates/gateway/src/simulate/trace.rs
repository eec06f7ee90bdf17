//! What a server recorded, played again: `rollcall simulate --trace FILE`.
//!
//! - [`header`], [`line`]: the file's lines;
//! - [`follow`]: the core's queue, fed the recorded moments, selects in the recorded order, or where it does not;
//! - [`replay`]: a recorded lane in the simulated world, under any policy.
//!
//! A trace tells when who spoke, for how long, and what became of it; it knows no name, no word, no voice. A lane is played
//! with the pool to itself, whatever else went on in the server: what conversations do to each other is
//! [`crate::bench::fairness`]'s.

mod follow;
pub mod header;
pub mod line;
mod replay;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

pub use follow::Followed;
pub use header::{Header, Settings};
pub use line::{Event, Line};
pub use replay::{LaneReport, TraceReport};

/// Why a trace cannot be played. The message names the file, the line and the mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--trace {0}")]
pub struct TraceError(String);

/// One recorded lane: from its joining to its leaving.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::simulate) struct RecordedLane {
    pub(super) number: u32,
    pub(super) joined: line::Joined,
    /// Nanoseconds since the recording began, and what happened; in order.
    pub(super) events: Vec<(u64, Event)>,
}

/// A recording, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    pub(in crate::simulate) header: Header,
    pub(in crate::simulate) lanes: Vec<RecordedLane>,
    /// Entries that the recorder could not keep.
    lost: u64,
    /// Whether it ends before its server did, or in the middle of a line.
    is_cut: bool,
}

impl Trace {
    /// Reads a recording.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is none of a recording's.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        let wrong = |trouble: &dyn std::fmt::Display| TraceError(format!("{}: {trouble}", path.display()));
        let file = File::open(path).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
        Self::parse(BufReader::new(file)).map_err(|trouble| wrong(&trouble))
    }

    /// A last line without an end was not written to its end: its server died, and what is before it is a recording.
    pub(in crate::simulate) fn parse(mut lines: impl BufRead) -> Result<Self, String> {
        let first = next_line(&mut lines)
            .map_err(|error| format!("line 1: {error}"))?
            .ok_or("is empty; `rollcall serve --record FILE` records a trace")?;
        let header = Header::parse(&first).map_err(|error| format!("line 1: {error}"))?;
        let mut trace = Self { header, lanes: Vec::new(), lost: 0, is_cut: false };
        for number in 2_u64.. {
            let at = |error: &dyn std::fmt::Display| format!("line {number}: {error}");
            let Some(text) = next_line(&mut lines).map_err(|error| at(&error))? else { break };
            match serde_json::from_str(&text) {
                Ok(line) => trace.add(line).map_err(|error| at(&error))?,
                Err(_) if !text.ends_with('\n') => trace.is_cut = true,
                Err(error) => return Err(at(&error)),
            }
        }
        Ok(trace)
    }

    fn add(&mut self, line: Line) -> Result<(), String> {
        line.check()?;
        let Line { t, lane, event } = line;
        match event {
            Event::Lost { entries } => self.lost += entries,
            Event::Full {} => self.is_cut = true,
            Event::Joined(joined) => self.lanes.push(RecordedLane { number: lane, joined, events: Vec::new() }),
            Event::Heard(_)
            | Event::Selected(_)
            | Event::Reserved { .. }
            | Event::Denied(_)
            | Event::Refused(_)
            | Event::Undelivered(_)
            | Event::Ran { .. }
            | Event::Judged { .. }
            | Event::Moved { .. }
            | Event::Changed {}
            | Event::Left {} => {
                let held = self.lanes.iter_mut().rev().find(|held| held.number == lane);
                let held = held.ok_or_else(|| format!("lane {lane} did not join before"))?;
                if held.events.last().is_some_and(|(before, _)| *before > t) {
                    return Err(format!("lane {lane} goes back in time"));
                }
                held.events.push((t, event));
            }
        }
        Ok(())
    }
}

/// With its end, where it has one; none after the last.
fn next_line(lines: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut line = String::new();
    let read = lines.read_line(&mut line).map_err(|error| error.to_string())?;
    Ok((read > 0).then_some(line))
}
