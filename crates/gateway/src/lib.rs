//! The Rollcall service and its command: everything around the matcher that touches the outside.

pub mod audio;
pub mod config;
pub mod formats;
pub mod http;
pub mod live;
pub mod people;
pub mod store;

#[cfg(test)]
mod testing;
