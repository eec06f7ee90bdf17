//! Goal: the front end and the model give the reference's numbers on real speech too.
//! Method: a folder of reference vectors beside a folder of speech, neither of them part of this repository: named by
//! `ROLLCALL_GOLDEN` (its sibling `speech` holds the audio), or `../shared/golden` beside the workspace. Without one
//! there is nothing to compare, and the test says so; `reference.rs` compares with what is committed.

use std::fs::File;
use std::path::{Path, PathBuf};

use gpu_worker::extractor::Extractor as _;
use gpu_worker::fbank::Fbank;
use gpu_worker::front_end::{Encoder, FrontEnd, LibrosaMel};
use gpu_worker::mel::{BANDS, Mel};
use matcher_core::Embedding;
use serde::Deserialize;
use symphonia::core::formats::{FormatOptions, TrackType};
use symphonia::core::io::MediaSourceStream;

mod support;

/// Rounding in the quietest bands of real speech, where the reference took its logarithms in single precision.
const LOG_UNITS_MAX: f32 = 5e-3;

#[derive(Deserialize)]
struct Entry {
    audio: String,
    samples: usize,
    what: String,
    file: String,
}

#[test]
fn real_speech_gives_the_reference_features_and_voiceprints() {
    let Some(folder) = golden() else {
        println!("left out: there are no reference vectors of real speech on this machine");
        return;
    };
    let index = std::fs::read_to_string(folder.join("index.json")).expect("the folder has an index");
    let entries: Vec<Entry> = serde_json::from_str(&index).expect("the index lists files");
    let mut extractor = support::extractor();
    let mut resemblyzer = support::extractor_of("resemblyzer");
    let mut checked = 0;
    for entry in &entries {
        let pcm = || decoded(&folder.join("../speech").join(&entry.audio), entry.samples);
        let expected = stored(&folder.join(&entry.file));
        match entry.what.as_str() {
            "fbank80_raw" => {
                let wave: Vec<f32> = pcm().iter().map(|sample| f32::from(*sample) / 32_768.0).collect();
                let mut features = Vec::new();
                Fbank::default().log_mel(&wave, &mut features);
                check_features(&features, &expected, entry);
            }
            "fbank80_cmn" => {
                let mut features = Vec::new();
                let clip = support::clip(pcm(), 16_000);
                Encoder::new(FrontEnd::CAMPPLUS).append(&clip, &mut features).expect("it is a good clip");
                check_features(&features, &expected, entry);
            }
            "campp_unit" => {
                let vector = extractor.extract(&support::clip(pcm(), 16_000)).expect("the model runs");
                check_voiceprint(&vector, &expected, entry);
            }
            "resem_mel_nov" => {
                let wave: Vec<f32> = pcm().iter().map(|sample| f32::from(*sample) / 32_768.0).collect();
                let mut rows = Vec::new();
                Mel::new(LibrosaMel::default()).mel(&wave, expected.len() / BANDS, &mut rows);
                check_mel(&rows, &expected, entry);
            }
            "resem_unit_novad" => {
                let Some(extractor) = &mut resemblyzer else { continue };
                let vector = extractor.extract(&support::clip(pcm(), 16_000)).expect("the model runs");
                check_voiceprint(&vector, &expected, entry);
            }
            // Vectors of the model before normalisation, and of front ends that are not computed here.
            _ => continue,
        }
        checked += 1;
    }
    assert!(checked >= 3, "the index names nothing that could be checked");
}

fn golden() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden");
    let folder = std::env::var_os("ROLLCALL_GOLDEN").map_or(beside, PathBuf::from);
    folder.join("index.json").is_file().then_some(folder)
}

fn check_features(found: &[f32], expected: &[f32], entry: &Entry) {
    assert_eq!(found.len(), expected.len(), "{}", entry.file);
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("{}: largest difference {worst:.1e} log units", entry.file);
    assert!(worst < LOG_UNITS_MAX, "{}: off by {worst} log units", entry.file);
}

fn check_mel(found: &[f32], expected: &[f32], entry: &Entry) {
    let loudest = expected.iter().copied().fold(0.0, f32::max);
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("{}: largest difference {worst:.1e} of {loudest:.1e}", entry.file);
    assert!(found.len() == expected.len() && worst < loudest * 1e-4, "{}: off by {worst} of {loudest}", entry.file);
}

fn check_voiceprint(found: &[f32], expected: &[f32], entry: &Entry) {
    let found = Embedding::of_size(found, expected.len()).expect("the model gives voiceprints");
    let distance =
        found.distance(&Embedding::new(expected).expect("the reference is one")).expect("both have one size");
    println!("{}: distance {distance:.1e}", entry.file);
    assert!(distance < 1e-4, "{}: {distance} away from the reference", entry.file);
}

fn stored(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).expect("the index names files that are there");
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().expect("chunks have four bytes"))).collect()
}

/// The first samples of a mono FLAC file.
fn decoded(path: &Path, count: usize) -> Vec<i16> {
    let file = File::open(path).expect("the audio lies beside the vectors");
    let stream = MediaSourceStream::new(Box::new(file), Default::default());
    let probe = symphonia::default::get_probe();
    let mut reader = probe
        .probe(&Default::default(), stream, FormatOptions::default(), Default::default())
        .expect("it is an audio file");
    let track = reader.default_track(TrackType::Audio).expect("it has a track");
    let parameters = track.codec_params.as_ref().and_then(|codec| codec.audio()).expect("the track is audio");
    let codecs = symphonia::default::get_codecs();
    let mut decoder = codecs.make_audio_decoder(parameters, &Default::default()).expect("it is FLAC");
    let (mut pcm, mut block): (Vec<i16>, Vec<i16>) = (Vec::new(), Vec::new());
    while pcm.len() < count
        && let Some(packet) = reader.next_packet().expect("the file is whole")
    {
        decoder.decode(&packet).expect("the file is whole").copy_to_vec_interleaved(&mut block);
        pcm.extend_from_slice(&block);
    }
    pcm.truncate(count);
    assert_eq!(pcm.len(), count, "{}", path.display());
    pcm
}
