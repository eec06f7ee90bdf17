//! The fault run: thousands of queries against workers and extraction servers that misbehave on purpose.
//!
//! Every row is one fault. It counts how each query ended, how long the slowest took, and how long after the fault's end
//! everything was well again; at the very end it counts what was left behind. It judges itself by the rules of
//! [`Row::troubles`] and prints nothing; a command line shows the [`Report`], which displays as a table. What a fault looks
//! like is the affair of [`crate::scripted`] and [`crate::remote::hostile`].

mod drive;
mod leaks;
mod local;
mod report;
mod servers;

use std::time::Duration;

use crate::engine::Clip;
use crate::remote::StartError;
use crate::scripted;

pub use leaks::Left;
pub use report::{Report, Row};

use leaks::Held;

/// Values in a voiceprint of the run.
const DIMENSION: usize = 192;
/// The pitch of the clip that every query asks about, whose voiceprint is known.
const HERTZ: f64 = 400.0;
/// Patience of a query. None of them may take longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much later an answer may come before it counts as none: a busy machine delays even the telling.
const GRACE: Duration = Duration::from_secs(5);
/// How long after a fault everything must be well again: a pause of a circuit or of a restart (50 ms), a stalled probe
/// (100 ms), and much time for a machine that does other things. How long it took stands in the table.
const RECOVERY_MAX: Duration = Duration::from_secs(10);

/// Why the run came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum FaultRunError {
    /// A server, a pool or a caller cannot be started.
    #[error("the fault run cannot be started: {0}")]
    Start(#[from] std::io::Error),
    /// The servers cannot be asked.
    #[error(transparent)]
    Remote(#[from] StartError),
    /// The pool did not come up although nothing was wrong yet.
    #[error("no worker came up before the first fault: {0}")]
    NotReady(String),
}

/// Runs at least so many queries, and tells of each row as it is done. Blocks for some 3 ms a query.
///
/// Wanted panics are not printed while it runs; other panics of this process's extraction workers are not either.
///
/// # Errors
/// When it cannot be started. What it finds is no error: ask [`Report::troubles`].
pub fn run(queries: usize, tell: &mut dyn FnMut(&Row)) -> Result<Report, FaultRunError> {
    let _quiet = drive::QuietPanics::new();
    let before = Held::now();
    let enough = |share: &usize| local::queries(*share) + servers::queries(*share) >= queries;
    let share = (1..usize::MAX / 100).find(enough).unwrap_or(1);
    let mut rows = Vec::new();
    let mut done = |row: Row| {
        tell(&row);
        rows.push(row);
    };
    local::run(share, &mut done)?;
    servers::run(share, &mut done)?;
    Ok(Report { rows, left: before.and_then(Left::since) })
}

/// A square wave, one second long.
fn clip() -> Clip {
    let half = 20;
    let square = (0..16_000).map(|n: i32| if (n / half).rem_euclid(2) == 0 { 5_000 } else { -5_000 });
    Clip { pcm: square.collect(), sample_rate: std::num::NonZeroU32::MIN.saturating_add(15_999) }
}

/// What every query is to be answered with.
fn expected() -> matcher_core::Embedding {
    matcher_core::Embedding::new(&scripted::voice_vector(HERTZ, DIMENSION)).expect("a scripted voice is a good vector")
}
