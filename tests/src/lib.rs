//! What the stories in this package's `tests/` folder share. There are two stages: the live actors on virtual time
//! ([`actors`]), and a real server process with real sockets ([`server`], [`socket`]).

pub mod actors;
pub mod browser;
pub mod collector;
pub mod directory;
pub mod observers;
pub mod server;
pub mod servers;
pub mod socket;
pub mod sound;
