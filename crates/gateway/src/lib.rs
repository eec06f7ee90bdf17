//! The Rollcall service and its command: everything around the matcher that touches the outside.

pub mod audio;
pub mod bench;
pub mod calibrate;
pub mod capsule;
pub mod cli;
pub mod client;
pub mod config;
pub mod console;
pub mod engine;
pub mod explain;
pub mod formats;
pub mod history;
pub mod http;
pub mod identify;
pub mod listen;
pub mod live;
pub mod people;
pub mod serve;
pub mod simulate;
pub mod store;
mod svg;

#[cfg(test)]
mod testing;
