//! What the tests with the real model share: where it lies, and clips.

#![allow(dead_code, reason = "each test file uses its own part of this module")]

use std::num::NonZeroU32;
use std::path::PathBuf;

use gpu_worker::Clip;
use gpu_worker::onnx::{Model, OnnxExtractor};
use gpu_worker::runtime::{self, Runtime};

/// The home with runtime and model: `ROLLCALL_HOME`, else `.rollcall` in the workspace.
pub(crate) fn home() -> PathBuf {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("ROLLCALL_HOME").map_or_else(|| workspace.join(".rollcall"), PathBuf::from)
}

/// The runtime and the installed model. A missing one fails the test: what is not checked must not look green.
pub(crate) fn runtime_and_model() -> (&'static Runtime, Model) {
    let runtime = runtime::open(None, &home()).unwrap_or_else(|error| panic!("{error}; run `make setup` first"));
    let model = Model::find("campplus", &home()).unwrap_or_else(|error| panic!("{error}; run `make setup` first"));
    (runtime, model)
}

/// An extractor of the installed model.
pub(crate) fn extractor() -> OnnxExtractor {
    let (runtime, model) = runtime_and_model();
    OnnxExtractor::open(runtime, &model).expect("the installed model loads")
}

/// An extractor of one of the models that need not be installed.
pub(crate) fn extractor_of(name: &str) -> Option<OnnxExtractor> {
    let (runtime, _) = runtime_and_model();
    match Model::find(name, &home()) {
        Ok(model) => Some(OnnxExtractor::open(runtime, &model).expect("an installed model loads")),
        Err(error) => {
            println!("left out: {error}");
            None
        }
    }
}

/// A mono clip.
pub(crate) fn clip(samples: Vec<i16>, rate: u32) -> Clip {
    Clip { pcm: samples.into(), sample_rate: NonZeroU32::new(rate).expect("a test names a real rate") }
}

/// Three chirps and seeded noise at 16 kHz: the twin of `signal` in `reference/make_reference.py`, bit by bit.
pub(crate) fn signal(seed: u32, count: u32) -> Vec<i16> {
    let mut state = u64::from(seed);
    let mut phases = [0.0_f64; 3];
    let mut sample = |n: u32| {
        let mut value = 0.0;
        for (phase, k) in phases.iter_mut().zip([1.0, 2.0, 3.0]) {
            let start = 90.0 * k + 35.0 * f64::from(seed);
            let end = 700.0 * k + 150.0 * f64::from(seed);
            *phase += (start + (end - start) * (f64::from(n) / f64::from(count))) / 16_000.0;
            *phase -= phase.floor();
            let p = 2.0 * *phase - 1.0;
            value += 0.6 * p * (1.0 - p.abs());
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let high = u16::try_from(state >> 48).expect("sixteen bits are left");
        let noise = (f64::from(high) - 32_768.0) / 32_768.0;
        round((value + 0.03 * noise) * 32_767.0)
    };
    (0..count).map(&mut sample).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "the signals stay well inside the range of a sample")]
fn round(value: f64) -> i16 {
    (value + 0.5).floor() as i16
}
