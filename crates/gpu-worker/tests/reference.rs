//! Goal: the front end and the model give the numbers that an independent implementation gives.
//! Method: signals made by the same arithmetic here and in `reference/make_reference.py`; its features and voiceprints
//! lie beside it. Features within 5e-3 log units, voiceprints within a cosine distance of 1e-4, alone and in a batch.

use std::path::PathBuf;

use gpu_worker::extractor::Extractor as _;
use gpu_worker::fbank::{self, BINS, Fbank};
use gpu_worker::front_end::Encoder;
use matcher_core::Embedding;

mod support;

const LOG_UNITS_MAX: f32 = 5e-3;
const DISTANCE_MAX: f64 = 1e-4;
/// Seed and samples of the signals, as in the script.
const SIGNALS: [(u32, u32); 4] = [(1, 24_000), (2, 48_000), (3, 48_000), (4, 48_000)];
const LONG_ROWS_EVERY: usize = 8;

#[test]
fn log_mel_features_match_before_the_mean_is_subtracted() {
    let wave: Vec<f32> = support::signal(1, 24_000).iter().map(|sample| f32::from(*sample) / 32_768.0).collect();
    let mut features = Vec::new();
    Fbank::new().log_mel(&wave, &mut features);
    check_features(&features, &stored("short.log_mel.f32"));
}

#[test]
fn features_match_after_the_mean_is_subtracted() {
    check_features(&features(1, 24_000), &stored("short.features.f32"));
    let long: Vec<f32> = features(2, 48_000).chunks_exact(BINS).step_by(LONG_ROWS_EVERY).flatten().copied().collect();
    check_features(&long, &stored("long_a.features.f32"));
}

#[test]
fn voiceprints_match_one_clip_at_a_time() {
    let mut extractor = support::extractor();
    for ((seed, count), expected) in SIGNALS.into_iter().zip(voiceprints()) {
        let vector = extractor.extract(&support::clip(support::signal(seed, count), 16_000)).unwrap();
        check_voiceprint(&vector, &expected, "alone");
    }
}

#[test]
fn voiceprints_match_in_a_batch_of_three() {
    let clips = SIGNALS[1..].iter().map(|(seed, count)| support::clip(support::signal(*seed, *count), 16_000));
    let vectors = support::extractor().extract_batch(&clips.collect::<Vec<_>>()).unwrap();
    assert_eq!(vectors.len(), 3);
    for (vector, expected) in vectors.iter().zip(&voiceprints()[1..]) {
        check_voiceprint(vector, expected, "in a batch");
    }
}

#[test]
fn a_batch_of_unequal_clips_is_refused() {
    let clips = [(1, 24_000), (2, 48_000)].map(|(seed, count)| support::clip(support::signal(seed, count), 16_000));
    let error = support::extractor().extract_batch(&clips).unwrap_err();
    assert!(error.to_string().contains("equal length"), "{error}");
}

#[test]
fn the_same_voice_at_another_rate_stays_the_same_voice() {
    let mut extractor = support::extractor();
    let original = support::signal(2, 48_000);
    let at_16k = Embedding::new(&extractor.extract(&support::clip(original.clone(), 16_000)).unwrap()).unwrap();
    // Every sample three times is a crude 48 kHz, whose images above 8 kHz the resampler has to remove.
    let tripled = original.iter().flat_map(|sample| [*sample; 3]).collect();
    let at_48k = Embedding::new(&extractor.extract(&support::clip(tripled, 48_000)).unwrap()).unwrap();
    let distance = at_16k.distance(&at_48k).unwrap();
    assert!(distance < 0.1, "the two are {distance} apart");
}

#[test]
fn silence_still_gives_a_finite_vector() {
    let vector = support::extractor().extract(&support::clip(vec![0; 32_000], 16_000)).unwrap();
    assert!(Embedding::of_size(&vector, 192).is_ok());
}

fn features(seed: u32, count: u32) -> Vec<f32> {
    let mut features = Vec::new();
    let clip = support::clip(support::signal(seed, count), 16_000);
    let rows = Encoder::new().append_features(&clip, &mut features).expect("the signal is a good clip");
    assert_eq!(rows, fbank::frames_of(count as usize));
    features
}

fn check_features(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("largest difference {worst:.1e} log units");
    assert!(worst < LOG_UNITS_MAX, "off by {worst} log units");
}

fn check_voiceprint(found: &[f32], expected: &Embedding, how: &str) {
    let found = Embedding::of_size(found, 192).expect("the model gives voiceprints");
    let distance = found.distance(expected).expect("both have 192 values");
    println!("{how}: distance {distance:.1e}");
    assert!(distance < DISTANCE_MAX, "{how}: {distance} away from the reference");
}

fn voiceprints() -> Vec<Embedding> {
    stored("embeddings.f32")
        .chunks_exact(192)
        .map(|values| Embedding::new(values).expect("a stored voiceprint is good"))
        .collect()
}

fn stored(name: &str) -> Vec<f32> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(name);
    let bytes = std::fs::read(path).expect("the reference vectors lie beside this test");
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().expect("chunks have four bytes"))).collect()
}
