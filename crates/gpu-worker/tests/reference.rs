//! Goal: the front end and the model give the numbers that an independent implementation gives.
//! Method: signals made by the same arithmetic here and in `reference/make_reference.py`; its features and voiceprints
//! lie beside it. Features within 1e-3 log units, mel bands within 1e-5 of the loudest, voiceprints within a cosine distance
//! of 1e-4, alone and in a batch. Models that are not installed are left out, and the test says so.

use std::path::PathBuf;

use gpu_worker::extractor::Extractor as _;
use gpu_worker::fbank::{self, BINS, Fbank};
use gpu_worker::front_end::{Encoder, FrontEnd, KaldiFbank, LibrosaMel, Scale, Shape, Window};
use gpu_worker::mel;
use matcher_core::Embedding;

mod support;

/// Twice what a transform in single precision leaves of the quietest bands.
const LOG_UNITS_MAX: f32 = 1e-3;
const DISTANCE_MAX: f64 = 1e-4;
/// Seed and samples of the signals, as in the script.
const SIGNALS: [(u32, u32); 4] = [(1, 24_000), (2, 48_000), (3, 48_000), (4, 48_000)];
const ROWS_EVERY: usize = 8;
/// Eight bits move a voiceprint; this is twice what they move these.
const INT8_DISTANCE_MAX: f64 = 0.03;

#[test]
fn log_mel_features_match_before_the_mean_is_subtracted() {
    let wave: Vec<f32> = support::signal(1, 24_000).iter().map(|sample| f32::from(*sample) / 32_768.0).collect();
    let mut features = Vec::new();
    Fbank::default().log_mel(&wave, &mut features);
    check_features(&features, &stored("short.log_mel.f32"));
}

#[test]
fn features_match_after_the_mean_is_subtracted() {
    check_features(&features(FrontEnd::CAMPPLUS, 1, 24_000), &stored("short.features.f32"));
    check_features(&sparse(&features(FrontEnd::CAMPPLUS, 2, 48_000), BINS), &stored("long_a.features.f32"));
}

#[test]
fn features_match_with_the_range_and_the_window_of_wespeaker() {
    let wespeaker = FrontEnd::KaldiFbank80Cmn(KaldiFbank { scale: Scale::Int16, window: Window::Hamming });
    check_features(&sparse(&features(wespeaker, 1, 24_000), BINS), &stored("short.wespeaker.f32"));
}

#[test]
fn mel_parts_match_librosas() {
    let signal = support::signal(2, 48_000);
    check_parts(signal.clone(), ROWS_EVERY, "long_a.mel_parts.f32");
    let quiet = signal.into_iter().map(|sample| sample >> 6).collect();
    check_parts(quiet, 4 * ROWS_EVERY, "quiet.mel_parts.f32");
}

fn check_parts(samples: Vec<i16>, rows_every: usize, name: &str) {
    let mut parts = Vec::new();
    let kind = FrontEnd::LibrosaMel40(LibrosaMel::default());
    let clip = support::clip(samples, 16_000);
    let shape = Encoder::new(kind).append(&clip, &mut parts).expect("the signal is a good clip");
    assert_eq!(shape, Shape { parts: 3, length: mel::PART_FRAMES });
    let found: Vec<f32> = parts.chunks_exact(mel::BANDS).step_by(rows_every).flatten().copied().collect();
    let expected = stored(name);
    assert_eq!(found.len(), expected.len());
    let loudest = expected.iter().copied().fold(0.0, f32::max);
    let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("largest difference {worst:.1e} of {loudest}");
    assert!(worst < loudest * 1e-5, "off by {worst} of {loudest}");
}

#[test]
fn voiceprints_of_resemblyzer_match() {
    let Some(mut extractor) = support::extractor_of("resemblyzer") else { return };
    for ((seed, count), expected) in SIGNALS.into_iter().zip(voiceprints("resemblyzer.f32", 256)) {
        let vector = extractor.extract(&support::clip(support::signal(seed, count), 16_000)).unwrap();
        check_voiceprint(&vector, &expected, DISTANCE_MAX);
    }
}

#[test]
fn voiceprints_in_eight_bits_lie_close_to_the_others() {
    let Some(mut extractor) = support::extractor_of("campplus-int8") else { return };
    for ((seed, count), expected) in SIGNALS.into_iter().zip(voiceprints("embeddings.f32", 192)) {
        let vector = extractor.extract(&support::clip(support::signal(seed, count), 16_000)).unwrap();
        check_voiceprint(&vector, &expected, INT8_DISTANCE_MAX);
    }
}

#[test]
fn voiceprints_in_half_precision_are_those_of_the_whole() {
    let Some(mut extractor) = support::extractor_of("campplus-fp16") else { return };
    for ((seed, count), expected) in SIGNALS.into_iter().zip(voiceprints("embeddings.f32", 192)) {
        let vector = extractor.extract(&support::clip(support::signal(seed, count), 16_000)).unwrap();
        check_voiceprint(&vector, &expected, DISTANCE_MAX);
    }
}

#[test]
fn voiceprints_match_one_clip_at_a_time() {
    let mut extractor = support::extractor();
    for ((seed, count), expected) in SIGNALS.into_iter().zip(voiceprints("embeddings.f32", 192)) {
        let vector = extractor.extract(&support::clip(support::signal(seed, count), 16_000)).unwrap();
        check_voiceprint(&vector, &expected, DISTANCE_MAX);
    }
}

#[test]
fn voiceprints_match_in_a_batch_of_three() {
    let clips = SIGNALS[1..].iter().map(|(seed, count)| support::clip(support::signal(*seed, *count), 16_000));
    let vectors = support::extractor().extract_batch(&clips.collect::<Vec<_>>()).unwrap();
    assert_eq!(vectors.len(), 3);
    for (vector, expected) in vectors.iter().zip(&voiceprints("embeddings.f32", 192)[1..]) {
        check_voiceprint(vector, expected, DISTANCE_MAX);
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

fn features(kind: FrontEnd, seed: u32, count: u32) -> Vec<f32> {
    let mut features = Vec::new();
    let clip = support::clip(support::signal(seed, count), 16_000);
    let shape = Encoder::new(kind).append(&clip, &mut features).expect("the signal is a good clip");
    assert_eq!(shape, Shape { parts: 1, length: fbank::frames_of(count as usize) });
    features
}

/// The rows that are stored.
fn sparse(features: &[f32], columns: usize) -> Vec<f32> {
    features.chunks_exact(columns).step_by(ROWS_EVERY).flatten().copied().collect()
}

fn check_features(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("largest difference {worst:.1e} log units");
    assert!(worst < LOG_UNITS_MAX, "off by {worst} log units");
}

fn check_voiceprint(found: &[f32], expected: &Embedding, distance_max: f64) {
    let found = Embedding::of_size(found, expected.size()).expect("the model gives voiceprints");
    let distance = found.distance(expected).expect("both have the same size");
    println!("distance {distance:.1e}");
    assert!(distance < distance_max, "{distance} away from the reference");
}

fn voiceprints(name: &str, size: usize) -> Vec<Embedding> {
    stored(name).chunks_exact(size).map(|values| Embedding::new(values).expect("a stored voiceprint is good")).collect()
}

fn stored(name: &str) -> Vec<f32> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(name);
    let bytes = std::fs::read(path).expect("the reference vectors lie beside this test");
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().expect("chunks have four bytes"))).collect()
}
