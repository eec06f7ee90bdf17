//! Goal: a model of one's own is looked at, tried and put into the home, and is not used before its distances are known.
//! Method: tiny graphs written byte by byte, each with another input, added to a home of the test's own through the real
//! runtime; then good ones in a real extractor.

use std::fs;
use std::path::{Path, PathBuf};

use gpu_worker::extractor::Extractor as _;
use gpu_worker::front_end::{KaldiFbank, LibrosaMel, Scale, Waveform, Window};
use gpu_worker::inspect::{Findings, InspectError, inspect};
use gpu_worker::install::{self, AddError, Added, Addition, State};
use gpu_worker::onnx::{Model, OnnxExtractor};
use gpu_worker::{FrontEnd, Manifest, ManifestError};

#[path = "support/graph.rs"]
mod graph;
mod support;

use graph::{FLOAT, Graph, INT64};

const DISTANCES: [(&str, &str); 9] = [
    ("threshold", "0.5"),
    ("margin", "0.1"),
    ("near_miss_bound", "0.6"),
    ("suggestion_bound", "0.55"),
    ("suggestion_margin", "0.05"),
    ("near_owner_bound", "0.6"),
    ("grouping", "0.4"),
    ("reconnect", "0.4"),
    ("levels", "0.5,0.6,0.7"),
];

#[test]
fn what_a_graph_is_fed_follows_from_its_input_and_its_metadata() {
    let wespeaker = FrontEnd::KaldiFbank80Cmn(KaldiFbank { scale: Scale::Int16, window: Window::Hamming });
    let telephone = Waveform { sample_rate: 8_000.try_into().expect("it is not zero") };
    let cases = [
        (Graph::loudest_row("x", 80), FrontEnd::CAMPPLUS, 80),
        (Graph::loudest_row("x", 80).says("framework", "wespeaker").says("normalize_samples", "0"), wespeaker, 80),
        (Graph::loudest_row("mels", 40), FrontEnd::LibrosaMel40(LibrosaMel::default()), 40),
        (Graph::loudest_samples(&[-1, -1]), FrontEnd::Waveform(Waveform::default()), 16),
        (Graph::loudest_samples(&[-1, -1]).says("sample_rate", "8000"), FrontEnd::Waveform(telephone), 16),
    ];
    let home = Home::new("kinds");
    for (graph, front_end, dimension) in cases {
        let found = home.inspect(graph).expect("it can be fed");
        assert_eq!((found.front_end, found.dimension), (front_end, dimension), "{found:?}");
        assert!(!found.reasons.is_empty());
    }
}

#[test]
fn what_cannot_be_fed_or_tried_is_refused_with_its_reason() {
    let rows = |output: &[i64]| Graph::new(("x", FLOAT, &[-1, -1, 80]), output);
    let cases: [(Graph, &str); 8] = [
        (Graph::loudest_row("x", 64), "neither"),
        (Graph::loudest_row("x", 80).input("length", INT64, &[-1]), "2 inputs"),
        (Graph::loudest_samples(&[1, 16_000]), "exactly 16000 samples"),
        (Graph::loudest_row("x", 80).says("sample_rate", "8000"), "8000 Hz"),
        (Graph::loudest_row("x", 80).says("feature_normalize_type", "per_feature"), "per_feature"),
        (rows(&[-1, -1, 80]).node("Neg", &["x"], "embedding", &[]), "none of them"),
        // The same zeros for everything.
        (
            rows(&[-1, 80]).node("Sub", &["x", "x"], "zeros", &[]).node(
                "ReduceMax",
                &["zeros"],
                "embedding",
                &[("axes", &[1]), ("keepdims", &[0])],
            ),
            "no voiceprint",
        ),
        // The same values for everything: the exponential of zero.
        (
            rows(&[-1, 80]).node("Sub", &["x", "x"], "zeros", &[]).node("Exp", &["zeros"], "ones", &[]).node(
                "ReduceMax",
                &["ones"],
                "embedding",
                &[("axes", &[1]), ("keepdims", &[0])],
            ),
            "same vector",
        ),
    ];
    let home = Home::new("unfit");
    for (graph, says) in cases {
        let error = home.inspect(graph).expect_err(says).to_string();
        assert!(error.contains(says) && error.contains("graph.onnx"), "{error}");
    }
    let path = home.write("no-graph.onnx", b"this is no graph");
    let (runtime, _) = support::runtime_and_model();
    assert!(matches!(inspect(runtime, &path, None), Err(InspectError::Load { .. })));
}

#[test]
fn a_front_end_that_was_named_is_not_concluded_but_tried() {
    let home = Home::new("told");
    let path = home.write("open.onnx", &Graph::loudest_row("x", -1).bytes());
    let (runtime, _) = support::runtime_and_model();
    let error = inspect(runtime, &path, None).expect_err("it does not say its columns").to_string();
    assert!(error.contains("name the front end"), "{error}");
    let found = inspect(runtime, &path, Some(FrontEnd::CAMPPLUS)).expect("it takes any columns");
    assert_eq!((found.front_end, found.dimension), (FrontEnd::CAMPPLUS, 80));
    let error = inspect(runtime, &path, Some(FrontEnd::Waveform(Waveform::default()))).expect_err("it takes rows");
    assert!(matches!(error, InspectError::Unfit { .. }), "{error}");
}

#[test]
fn a_model_is_not_used_before_every_distance_is_known_and_can_be_calibrated_all_the_same() {
    let home = Home::new("distances");
    let path = home.write("ours.onnx", &Graph::loudest_row("x", 80).says("comment", "made by hand").bytes());
    let added = home.add(&path, &[]).expect("it is a good graph");
    assert_eq!((added.draft.missing().len(), added.draft.manifest().source.as_str()), (9, "made by hand"));
    let refused = Model::find("ours", home.path()).expect_err("it has no distances").to_string();
    assert!(refused.contains("threshold") && refused.contains("rollcall calibrate"), "{refused}");
    let to_calibrate = Model::find_to_calibrate("ours", home.path()).expect("that needs none");
    assert!(to_calibrate.manifest().threshold == 0.0, "nobody is named");
    let checks = install::inventory(home.path());
    let check = checks.iter().find(|check| check.name == "ours").expect("it is listed");
    assert_eq!(check.state, State::Uncalibrated);

    let ours = Path::new("ours");
    let some = home.add(ours, &DISTANCES[..4]).expect("they are distances");
    assert_eq!(some.draft.missing().len(), 5);
    assert!(matches!(home.add(ours, &[("threshold", "5")]), Err(AddError::Distance(_))));
    let apart = [&DISTANCES[4..], &[("suggestion_bound", "0.3")]].concat();
    let error = home.add(ours, &apart).expect_err("suggestions would begin below the threshold").to_string();
    assert!(error.contains("suggestion_bound"), "{error}");
    home.add(ours, &DISTANCES[4..]).expect("these are the others");

    let model = Model::find("ours", home.path()).expect("it has all of them now");
    assert_eq!((model.manifest().threshold, model.manifest().levels), (0.5, [0.5, 0.6, 0.7]));
    let (runtime, _) = support::runtime_and_model();
    let mut extractor = OnnxExtractor::open(runtime, &model).expect("it loads");
    let vector = extractor.extract(&support::clip(support::signal(1, 24_000), 16_000)).expect("it runs");
    assert_eq!(vector.len(), 80);
    assert!(install::verify(home.path()).iter().any(|check| check.name == "ours" && check.state == State::Good));
}

#[test]
fn a_model_of_parts_is_averaged_and_one_of_samples_gets_its_own_rate() {
    let home = Home::new("kinds-run");
    for (name, graph, size) in [
        ("parts", Graph::loudest_row("mels", 40), 40),
        ("samples", Graph::loudest_samples(&[-1, -1]).says("sample_rate", "8000"), 16),
    ] {
        let path = home.write(&format!("{name}.onnx"), &graph.bytes());
        home.add(&path, &DISTANCES).expect("it is a good graph");
        let (runtime, _) = support::runtime_and_model();
        let model = Model::find(name, home.path()).expect("it was added");
        let mut extractor = OnnxExtractor::open(runtime, &model).expect("it loads");
        let clip = support::clip(support::signal(2, 48_000), 16_000);
        let alone = extractor.extract(&clip).expect("it runs");
        let together = extractor.extract_batch(&[clip.clone(), clip]).expect("it runs");
        assert_eq!(together, [alone.clone(), alone.clone()], "{name}");
        assert_eq!(alone.len(), size, "{name}");
    }
}

#[test]
fn a_source_or_a_name_that_cannot_be_used_is_refused_and_changes_nothing() {
    let home = Home::new("names");
    let good = home.write("ours.onnx", &Graph::loudest_row("x", 80).bytes());
    let other = home.write("other.onnx", &Graph::loudest_row("mels", 40).bytes());
    home.add(&good, &[]).expect("it is a good graph");
    let before = Manifest::read(&home.path().join("models/ours/manifest.json")).expect_err("no distances").to_string();
    for (source, name, says) in [
        (Path::new("nobody"), None, "nobody"),
        (home.path(), None, "2 ONNX files"),
        (&*good, Some("campplus"), "rollcall model list"),
        (&*good, Some("../up"), "letters"),
        (&*other, Some("ours"), "another model has it"),
    ] {
        let error = home.add_as(source, name, &[]).expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }
    let after = Manifest::read(&home.path().join("models/ours/manifest.json"));
    assert!(matches!(after, Err(ManifestError::Undecided { .. })));
    assert_eq!(after.expect_err("as before").to_string(), before);
    fs::copy(&other, home.path().join("models/ours/ours.onnx")).expect("the home is writable");
    let error = home.add(Path::new("ours"), &[]).expect_err("the manifest is another graph's");
    assert!(matches!(error, AddError::AnotherGraph { .. }), "{error}");
    let left = fs::read_dir(home.path()).expect("it is there").filter_map(Result::ok);
    let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".install")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A home that goes with the test.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rollcall-adding-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary folder is writable");
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("the home is writable");
        path
    }

    fn inspect(&self, graph: Graph) -> Result<Findings, InspectError> {
        let (runtime, _) = support::runtime_and_model();
        inspect(runtime, &self.write("graph.onnx", &graph.bytes()), None)
    }

    fn add(&self, source: &Path, distances: &[(&str, &str)]) -> Result<Added, AddError> {
        self.add_as(source, None, distances)
    }

    fn add_as(&self, source: &Path, name: Option<&str>, distances: &[(&str, &str)]) -> Result<Added, AddError> {
        let (runtime, _) = support::runtime_and_model();
        let distances: Vec<_> = distances.iter().map(|(field, value)| ((*field).into(), (*value).into())).collect();
        install::add(&self.0, runtime, &Addition { source, name, front_end: None, distances: &distances })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
