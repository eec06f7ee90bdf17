//! One recording through the very same matcher as live audio: who speaks where, and what it cost.
//!
//! ```text
//!  recording ─▶ player: audio clock ─▶ Timeline · Scheduler · Budget ─▶ engine, one query at a time ─▶ Report
//! ```
//! The position in the audio is the clock, and each query is finished before the clock goes on. So the same input gives
//! the same output on every machine, and the budget refills with the recording's time, not with ours. Owns what is asked
//! and how it is answered; playing is [`player`]'s, the shape of the answer [`report`]'s, and who is enrolled comes from
//! [`folders`] or from the caller.

mod folders;
mod player;
mod report;

use std::time::Duration;

use gpu_worker::Engine;
use matcher_core::policy::Policy;
use matcher_core::{BadTime, Gallery, Limits, budget};

use crate::audio::Audio;
use crate::config::Switch;
use crate::formats;

pub use folders::{FolderError, Folders};
pub use report::{Report, Segment};

/// What is to be identified, by whom and within which limits.
#[derive(Debug, Clone)]
pub struct Request {
    /// The recording.
    pub audio: Audio,
    /// Who spoke when, with anonymous labels. `None`: the whole recording is one voice.
    pub segments: Option<Vec<formats::Segment>>,
    /// Everybody who is enrolled.
    pub gallery: Gallery,
    /// The model's distances.
    pub policy: Policy,
    /// The scheduler's limits.
    pub limits: Limits,
    /// The budget's limits.
    pub budget: budget::Limits,
    /// How much audio is kept to examine.
    pub ring: Duration,
    /// Whether clips that are not worth a query are told before a token is spent.
    pub clip_gate: Switch,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum IdentifyError {
    /// A segment's time is no position in audio.
    #[error("segment {number}: `{field}` {trouble}")]
    Time {
        /// Counted from one, in the order of the segments' ends.
        number: usize,
        /// `start` or `end`.
        field: &'static str,
        /// What is wrong with it.
        trouble: BadTime,
    },
    /// More labels than one recording can have.
    #[error("segment {number}: its label is one too many; a recording has at most 1024 different ones")]
    Labels {
        /// Counted from one, in the order of the segments' ends.
        number: usize,
    },
    /// The runtime that waits for the engine cannot be started.
    #[error("cannot start the runtime: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Identifies the voices of a recording. `progress` is told the seconds of audio that are done.
///
/// Blocks until all queries are answered; never call it on a thread that runs async tasks. A query that brings no
/// voiceprint is spent and reported, as in live audio, and the recording goes on.
///
/// # Errors
/// When a segment has no place in the audio, or the runtime cannot be started.
pub fn identify(engine: &dyn Engine, request: Request, progress: &mut dyn FnMut(f64)) -> Result<Report, IdentifyError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let said = report::Said::of(&request)?;
    let mut player = player::Player::new(&request);
    for batch in said.batches() {
        runtime.block_on(player.play(engine, batch));
        progress(player.seconds());
    }
    player.finish();
    progress(player.seconds());
    Ok(report::report(engine.manifest(), &request, &said, player))
}

#[cfg(test)]
mod tests;
