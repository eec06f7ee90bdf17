//! Speaker embeddings from audio.
//!
//! Embeddable alone: build a pool, submit a [`Clip`], await (or wait for) its voiceprint. No actor system is needed.

mod digest;
mod engine;
pub mod extractor;
pub mod fbank;
pub mod front_end;
pub mod install;
pub mod intensity;
mod manifest;
pub mod onnx;
pub mod pool;
mod reply;
pub mod resample;
mod roster;
pub mod runtime;
pub mod scripted;
mod shared;
mod supervisor;
pub mod turns;
pub mod turnstile;
mod worker;

pub use engine::{Clip, Engine, Failure, Health, Ticket};
pub use manifest::{FrontEnd, Manifest, ManifestError};
pub use pool::{Pool, Settings};
