//! The Rollcall service and its command: everything around the matcher that touches the outside.

pub mod config;
pub mod store;

#[cfg(test)]
mod testing;
