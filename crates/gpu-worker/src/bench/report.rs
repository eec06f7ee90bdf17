//! What `rollcall bench extract` found, as it is printed with `--json`. The numbers are made next door.

use serde::Serialize;

use super::Load;

/// The measurement, as the command prints it with `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Which model.
    pub model: String,
    /// Of the longest clip.
    pub ratios: Ratios,
    /// Seconds of audio that one second of CPU extracts, whole, in clips of the longest length.
    pub audio_s_per_cpu_s: f64,
    /// The machine's load over the last minute, when that is known: how much else was going on.
    pub load_average: Option<f64>,
    /// Each length, one clip at a time on one thread.
    pub rows: Vec<Row>,
    /// Sixteen clips at once on all cores, for each length.
    pub loads: Vec<Load>,
    /// The same model in eight bits, when it is installed: another precision, and no rival of the others.
    pub int8: Option<EightBits>,
    /// Which releases of the peers were measured, and why one was not.
    pub peers: Vec<String>,
}

/// CPU time relative to something else.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Ratios {
    /// To a session alone, which runs the file's own graph on the same features: 1.0 would mean that everything else is
    /// free, or that it is made up for by a cheaper form of the graph.
    pub vs_bare_session: f64,
    /// To sherpa-onnx with the same model, when its Python package is installed. Its time includes its front end and
    /// taking the samples over from Python.
    pub vs_sherpa_onnx: Option<f64>,
    /// To ONNX Runtime behind a front end in Python, when it is installed.
    pub vs_python: Option<f64>,
}

/// One clip length, batch 1, one thread. Medians but where it says otherwise.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Row {
    /// Length of the clip.
    pub clip_s: u32,
    /// CPU milliseconds from samples to vector.
    pub whole_cpu_ms: f64,
    /// The shortest.
    pub whole_cpu_ms_min: f64,
    /// Wall milliseconds from samples to vector.
    pub whole_wall_ms: f64,
    /// CPU milliseconds of the session alone, in the form in which the whole extraction runs it.
    pub session_cpu_ms: f64,
    /// CPU milliseconds of a session alone on the file's own graph.
    pub bare_cpu_ms: f64,
    /// The shortest.
    pub bare_cpu_ms_min: f64,
    /// Wall milliseconds of the same.
    pub bare_wall_ms: f64,
    /// CPU milliseconds of sherpa-onnx.
    pub sherpa_onnx_cpu_ms: Option<f64>,
    /// CPU milliseconds of ONNX Runtime in Python.
    pub python_cpu_ms: Option<f64>,
    /// Median of the ratios of neighbouring runs: whole by bare.
    pub ratio: f64,
    /// The same: whole by sherpa-onnx.
    pub vs_sherpa_onnx: Option<f64>,
    /// The same: whole by ONNX Runtime in Python.
    pub vs_python: Option<f64>,
    /// Seconds of audio that one second of CPU extracts, whole.
    pub audio_s_per_cpu_s: f64,
}

/// The model in eight bits.
#[derive(Debug, Clone, Serialize)]
pub struct EightBits {
    /// Which model.
    pub model: String,
    /// Each length, without peers.
    pub rows: Vec<Row>,
    /// Cosine distance of its vectors from those of the full model, for each length's clip. The clips are noise, which is
    /// farther from what either was made for than speech is.
    pub distances: Vec<f64>,
}

/// How long something took.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Time {
    /// CPU time, in milliseconds.
    pub cpu_ms: f64,
    /// Wall time, in milliseconds.
    pub wall_ms: f64,
}
