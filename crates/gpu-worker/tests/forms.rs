//! Goal: the faster form of a graph gives the vectors of its file, and a graph of which that is not so runs as it is.
//! Method: the installed models in both forms on clips of every kind of length: within one segment of a hundred frames, on
//! its edge, over several; alone and in a batch.

mod support;

use std::path::Path;

use gpu_worker::extractor::Extractor as _;
use gpu_worker::onnx::{Form, Model, OnnxExtractor, OnnxFactory, Site};
use matcher_core::Embedding;

#[test]
fn the_shipped_model_runs_in_its_faster_form_and_gives_the_same_vectors() {
    let (runtime, model) = support::runtime_and_model();
    assert_eq!(OnnxFactory::new(runtime, model.clone()).form(), Form::Faster);
    check(&model, 1e-9);
}

#[test]
fn the_model_in_eight_bits_gives_the_very_same_vectors() {
    let (runtime, _) = support::runtime_and_model();
    match Model::find("campplus-int8", &support::home()) {
        Ok(model) => {
            assert_eq!(OnnxFactory::new(runtime, model.clone()).form(), Form::Faster);
            check(&model, 1e-12);
        }
        Err(error) => println!("left out: {error}"),
    }
}

#[test]
fn a_model_without_the_places_or_of_another_precision_runs_as_its_file_has_it() {
    let (runtime, _) = support::runtime_and_model();
    for name in ["resemblyzer", "campplus-fp16"] {
        match Model::find(name, &support::home()) {
            Ok(model) => assert_eq!(OnnxFactory::new(runtime, model).form(), Form::AsFiled),
            Err(error) => println!("left out: {error}"),
        }
    }
}

/// Both forms of `model` agree to within `distance`.
fn check(model: &Model, distance: f64) {
    let (runtime, _) = support::runtime_and_model();
    let open = |form| OnnxExtractor::open_on(runtime, model, Site { form, ..Site::default() }).expect("it loads");
    let (mut filed, mut faster) = (open(Form::AsFiled), open(Form::Faster));
    assert!(Path::new(model.graph()).is_file(), "the file is as it was");
    // Frames after the second convolution: 24, 100, 101, 200 and 512.
    for samples in [8_000, 32_240, 32_560, 64_240, 164_080] {
        let clips = [4, 5, 6].map(|seed| support::clip(support::signal(seed, samples), 16_000));
        let together = faster.extract_batch(&clips).expect("it runs");
        for (clip, together) in clips.iter().zip(together) {
            let vector = |values: Vec<f32>| Embedding::new(&values).expect("it is a voiceprint");
            let expected = vector(filed.extract(clip).expect("it runs"));
            let alone = vector(faster.extract(clip).expect("it runs"));
            assert!(alone.distance(&expected).expect("they have one size") <= distance, "{samples} samples");
            assert!(
                vector(together).distance(&expected).expect("they have one size") <= distance.max(1e-9),
                "{samples}"
            );
        }
    }
}
