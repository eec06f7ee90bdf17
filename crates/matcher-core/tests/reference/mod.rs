//! The core and a naive model of it, side by side.
//!
//! - [`words`]: the small world they share, and what is told;
//! - [`moves`] and [`generator`]: what happens, from a seed;
//! - [`model`]: the rules once more, with a [`mistake`] if one is planted;
//! - [`world`]: plays moves to both and compares;
//! - [`tally`]: how often each rule was applied;
//! - [`runs`]: many sequences, and the shortest that shows a difference.

mod generator;
mod mistake;
mod model;
mod moves;
mod runs;
mod tally;
mod words;
mod world;

pub(crate) use generator::moves;
pub(crate) use mistake::Mistake;
pub(crate) use runs::{find, play, replay};
pub(crate) use tally::{Rule, Tally};
