//! Speaker embeddings from audio.
//!
//! Embeddable alone: build a pool, submit a [`Clip`], await (or wait for) its voiceprint. No actor system is needed.

mod digest;
mod engine;
pub mod install;
mod manifest;

pub use engine::{Clip, Engine, Failure, Health, Ticket};
pub use manifest::{FrontEnd, Manifest, ManifestError};
