//! Speaker embeddings from audio.
//!
//! Embeddable alone: build a [`Pool`], submit a [`Clip`], await (or wait for) its voiceprint. No actor system and no
//! async runtime is needed; [`pool`] shows how in six lines. Which voice is whose is not decided here.
//!
//! ```text
//! caller ──Turn── turnstile (whose turn: turns)
//!    │ submit                                      supervisor ──▶ starts, gives up, sees out
//!    ▼                                                 │ roster (what becomes of workers: intensity)
//!  Pool ──▶ shared (the one lock: queue, runs) ◀───────┤
//!                    ▲ take, tell                      ▼
//!                    └─────────────── worker thread: Extractor = front end (resample, fbank, mel) + session (onnx, runtime)
//! ```
//! The rules stand in [`turns`], [`intensity`], batching (what shares a run) and the roster, which know neither threads nor
//! clocks. [`provider`] says on what a model runs, [`tuning`] how, and graph makes its nodes cheaper. [`install`] fetches
//! the runtime and the models, [`inspect`] looks at others, [`mod@bench`] measures, [`scripted`] stands in for the model, [`remote`] asks another machine.

mod bank;
mod batching;
pub mod bench;
mod course;
mod digest;
mod engine;
pub mod extractor;
pub mod faults;
pub mod fbank;
pub mod front_end;
mod graph;
pub mod inspect;
pub mod install;
pub mod intensity;
mod manifest;
pub mod mel;
mod narrow;
pub mod onnx;
pub mod pool;
pub mod provider;
pub mod remote;
mod reply;
pub mod resample;
mod roster;
pub mod runtime;
pub mod scripted;
mod shared;
mod spectrum;
mod state;
mod supervisor;
mod ticket;
pub mod tuning;
pub mod turns;
pub mod turnstile;
mod worker;

pub use course::{Course, Request};
pub use engine::{Clip, Engine, Failure, Health, Ticket};
pub use front_end::FrontEnd;
pub use manifest::{DistanceError, Draft, Manifest, ManifestError};
pub use pool::{Pool, Settings};
pub use tuning::{Tuning, Tunings};
