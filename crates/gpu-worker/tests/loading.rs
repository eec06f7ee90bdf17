//! Goal: what cannot be loaded is named with its mend, and does not stand in the way of what can.
//! Method: wrong files of every kind before the right ones, in a process of their own because a runtime is loaded once;
//! then the real model in a pool, its runs cut short.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gpu_worker::extractor::{BuildError, ExtractError, Extractor, Stopper};
use gpu_worker::install::{self, State};
use gpu_worker::onnx::{Model, ModelError, OnnxExtractor, OnnxFactory};
use gpu_worker::runtime::{self, RuntimeError};
use gpu_worker::{Clip, Engine as _, Failure, Manifest, Pool, Settings, intensity};

mod support;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_wrong_runtime_is_named_and_the_right_one_loads_afterwards() {
    let folder = Folder::new("runtime");
    let missing = folder.path("nothing.so");
    assert!(
        matches!(runtime::open(Some(&missing), folder.root()), Err(RuntimeError::NotThere { path }) if path == missing)
    );
    let none = runtime::find(None, folder.root()).expect_err("nothing is installed there");
    assert!(none.to_string().contains("model install"), "{none}");

    let installed = folder.write("runtime/libonnxruntime.so.9", b"not a library");
    assert_eq!(runtime::find(None, folder.root()).ok(), fs::canonicalize(&installed).ok());
    // Another test of this process may have loaded the right one before; then that one is given.
    match runtime::open(None, folder.root()) {
        Err(RuntimeError::Load { path, .. }) => assert_eq!(Some(path), fs::canonicalize(&installed).ok()),
        Err(other) => panic!("{other}"),
        Ok(loaded) => assert!(loaded.library().starts_with(fs::canonicalize(support::home()).expect("it is there"))),
    }

    let (loaded, _) = support::runtime_and_model();
    let again = runtime::load(&missing).expect("the one that is loaded is given");
    assert_eq!(loaded.library(), again.library());
}

#[test]
fn a_model_that_is_not_there_is_named_with_the_command_that_installs_it() {
    let folder = Folder::new("no-model");
    let error = Model::find("campplus", folder.root()).expect_err("nothing is installed there");
    assert!(error.to_string().contains("rollcall model install campplus"), "{error}");
}

#[test]
fn a_manifest_with_a_wrong_field_is_refused_by_the_fields_name() {
    let good = serde_json::to_value(real_manifest()).expect("a manifest is JSON");
    let wrong = [
        ("threshold", serde_json::json!(2.5)),
        ("margin", serde_json::json!(-0.1)),
        ("suggestion_bound", serde_json::json!(0.5)),
        ("suggestion_margin", serde_json::json!(0.11)),
        ("levels", serde_json::json!([0.7, 0.6, 0.5])),
        ("dimension", serde_json::json!(0)),
        ("fingerprint", serde_json::json!("ABC")),
        ("file", serde_json::json!("../secret.onnx")),
        ("front_end", serde_json::json!("mfcc")),
        ("tuning", serde_json::json!({"cpu": {"batch_max": 65}})),
        ("surprise", serde_json::json!(1)),
    ];
    let folder = Folder::new("manifest");
    for (field, value) in wrong {
        let mut manifest = good.clone();
        manifest[field] = value;
        let path = folder.write(Manifest::FILE_NAME, manifest.to_string().as_bytes());
        let error = Manifest::read(&path).expect_err(field).to_string();
        assert!(error.contains(field) || error.contains("mfcc"), "{field}: {error}");
    }
    let mut older = good.clone();
    older.as_object_mut().expect("a manifest is an object").remove("suggestion_bound");
    let path = folder.write(Manifest::FILE_NAME, older.to_string().as_bytes());
    let error = Manifest::read(&path).expect_err("a field is missing").to_string();
    assert!(error.contains("suggestion_bound") && error.contains("rollcall model install"), "{error}");
    let path = folder.write(Manifest::FILE_NAME, good.to_string().as_bytes());
    assert_eq!(Manifest::read(&path).expect("it is the shipped one"), real_manifest());
}

#[test]
fn a_graph_that_was_changed_is_not_used() {
    let folder = Folder::new("changed");
    folder.write(Manifest::FILE_NAME, &serde_json::to_vec(&real_manifest()).expect("a manifest is JSON"));
    assert!(matches!(Model::open(folder.root()), Err(ModelError::Unreadable { .. })));
    folder.write("campplus.onnx", b"something else");
    assert!(matches!(Model::open(folder.root()), Err(ModelError::Fingerprint { .. })));
}

#[test]
fn a_graph_that_is_no_speaker_model_of_that_size_is_refused_when_it_is_built() {
    let (runtime, real) = support::runtime_and_model();
    let folder = Folder::new("garbage");
    let garbage = b"this is no graph";
    let fingerprint = "f8dd7d8b5dd05b8a3e0e4f4cb5d7cd7e14f9a30ac1e5a6d7a8f0f1e2d3c4b5a6".to_owned();
    let mut manifest = Manifest { fingerprint, ..real_manifest() };
    folder.write("campplus.onnx", garbage);
    folder.write(Manifest::FILE_NAME, &serde_json::to_vec(&manifest).expect("a manifest is JSON"));
    let Err(ModelError::Fingerprint { found, .. }) = Model::open(folder.root()) else {
        panic!("it has another digest")
    };
    manifest.fingerprint = found;
    folder.write(Manifest::FILE_NAME, &serde_json::to_vec(&manifest).expect("a manifest is JSON"));
    let model = Model::open(folder.root()).expect("the digest is right now");
    let error = OnnxExtractor::open(runtime, &model).err().expect("it is no graph").to_string();
    assert!(error.contains("campplus.onnx"), "{error}");

    fs::copy(real.graph(), folder.path("campplus.onnx")).expect("there is room for a copy");
    let other_size = Manifest { dimension: 256, ..real_manifest() };
    folder.write(Manifest::FILE_NAME, &serde_json::to_vec(&other_size).expect("a manifest is JSON"));
    let model = Model::open(folder.root()).expect("the digest is right");
    let error = OnnxExtractor::open(runtime, &model).err().expect("it gives 192 values").to_string();
    assert!(error.contains("256"), "{error}");
}

#[test]
fn features_of_an_impossible_shape_are_refused_and_the_session_goes_on() {
    let mut extractor = support::extractor();
    for (values, batch) in [(0, 1), (79, 1), (80, 0), (160, 3)] {
        let refused = extractor.run(&vec![0.5; values], batch);
        assert!(matches!(refused, Err(ExtractError::Encoding(_))), "{values} values as {batch} clips");
    }
    assert!(extractor.extract(&support::clip(support::signal(1, 24_000), 16_000)).is_ok());
}

#[test]
fn what_is_installed_verifies_and_installing_it_again_changes_nothing() {
    let home = support::home();
    support::runtime_and_model();
    assert!(install::verify(&home).iter().all(|check| check.state == State::Good), "{:?}", install::verify(&home));
    let written = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).expect("it is there");
    let files: Vec<PathBuf> = install::verify(&home).into_iter().map(|check| check.path).collect();
    let before: Vec<_> = files.iter().map(|path| written(path)).collect();
    install::runtime(&home, &mut |_| {}).expect("it is installed");
    install::model(&home, "campplus", &mut |_| {}).expect("it is installed");
    assert_eq!(files.iter().map(|path| written(path)).collect::<Vec<_>>(), before);
    let unknown = install::model(&home, "resnet", &mut |_| {}).expect_err("there is no such model");
    assert!(unknown.to_string().contains("campplus"), "{unknown}");
}

/// Runs itself once more without any program on the path.
#[test]
fn installing_without_python_names_what_to_install() {
    if std::env::var_os("ROLLCALL_TEST_WITHOUT_PYTHON").is_some() {
        let folder = Folder::new("no-python");
        let error = install::runtime(folder.root(), &mut |_| {}).expect_err("there is no Python").to_string();
        assert!(error.contains("apt-get install python3 python3-venv"), "{error}");
        let error = install::model(folder.root(), "campplus", &mut |_| {}).expect_err("there is no Python").to_string();
        assert!(error.contains("apt-get install python3 python3-venv"), "{error}");
        assert_eq!(fs::read_dir(folder.root()).expect("it is still there").count(), 0, "nothing is left behind");
        return;
    }
    let mut itself = Command::new(std::env::current_exe().expect("a test knows its program"));
    itself.args(["--exact", "installing_without_python_names_what_to_install"]);
    let output = itself.env("PATH", "/nowhere").env("ROLLCALL_TEST_WITHOUT_PYTHON", "1").output();
    let output = output.expect("a test can be started");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[test]
fn an_empty_home_verifies_as_missing_and_a_broken_one_as_wrong() {
    let folder = Folder::new("verify");
    assert!(install::inventory(folder.root()).iter().all(|check| check.state == State::Missing));
    assert_eq!(install::verify(folder.root()).len(), 2, "the runtime and the shipped model must be there");
    for check in install::inventory(folder.root()) {
        fs::create_dir_all(check.path.parent().expect("it lies in a folder")).expect("the test's folder is writable");
        fs::write(&check.path, b"half a file").expect("the test's folder is writable");
    }
    assert!(install::verify(folder.root()).iter().all(|check| matches!(check.state, State::Wrong { .. })));
    assert_eq!(install::list().len(), install::verify(folder.root()).len(), "what lies there is checked");
}

#[test]
fn a_pool_with_the_real_model_extracts_what_the_extractor_alone_does() {
    let (runtime, model) = support::runtime_and_model();
    let manifest = model.manifest().clone();
    let pool =
        Pool::start(settings(2, LONG), manifest, OnnxFactory::new(runtime, model)).expect("threads can be started");
    pool.wait_ready(LONG).expect("the model loads");
    let clip = support::clip(support::signal(3, 48_000), 16_000);
    let alone = support::extractor().extract(&clip).expect("the model runs");
    let alone = matcher_core::Embedding::new(&alone).expect("the model gives a voiceprint");
    let tickets: Vec<_> = (0..4).map(|_| pool.submit(clip.clone(), LONG)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be built");
    for ticket in tickets {
        let pooled = runtime.block_on(ticket).expect("nothing is wrong");
        assert!(pooled.distance(&alone).expect("both have 192 values") < 1e-9);
    }
    let short = support::clip(vec![0; 100], 16_000);
    assert!(matches!(pool.extract_blocking(short), Err(Failure::Encoding(reason)) if reason.contains("0.5 to 60 s")));
    assert_eq!(pool.health().restarts, 0);
    assert_eq!(pool.shutdown().threads_left, 0);
}

#[test]
fn a_real_run_that_passes_its_deadline_is_stopped_and_not_only_abandoned() {
    let (runtime, model) = support::runtime_and_model();
    let manifest = model.manifest().clone();
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&outcomes);
    let factory = move || -> Result<Box<dyn Extractor>, BuildError> {
        Ok(Box::new(Watched { inner: OnnxExtractor::open(runtime, &model)?, seen: Arc::clone(&seen) }))
    };
    let pool = Pool::start(settings(1, Duration::from_millis(50)), manifest, factory).expect("threads can be started");
    pool.wait_ready(LONG).expect("the model loads");
    // A minute of audio takes the model most of a second.
    let answer = pool.extract_blocking(support::clip(vec![1_000; 960_000], 16_000));
    assert_eq!(answer, Err(Failure::DeadlinePassed));
    let started = Instant::now();
    while outcomes.lock().expect("no test panics under it").is_empty() {
        assert!(started.elapsed() < LONG, "the run never ends");
        std::thread::sleep(Duration::from_millis(5));
    }
    let outcomes = outcomes.lock().expect("no test panics under it");
    assert!(
        matches!(&outcomes[..], [Err(ExtractError::Session(reason))] if reason.contains("terminate")),
        "{outcomes:?}"
    );
}

/// Remembers how runs ended.
struct Watched {
    inner: OnnxExtractor,
    seen: Arc<Mutex<Vec<Result<usize, ExtractError>>>>,
}

impl Extractor for Watched {
    fn extract(&mut self, clip: &Clip) -> Result<Vec<f32>, ExtractError> {
        let done = self.inner.extract(clip);
        self.seen.lock().expect("no test panics under it").push(done.clone().map(|vector| vector.len()));
        done
    }

    fn stopper(&self) -> Option<Stopper> {
        self.inner.stopper()
    }
}

fn settings(workers: usize, run_max: Duration) -> Settings {
    let workers = NonZeroUsize::new(workers).expect("a test names at least one worker");
    let one_strike = intensity::Limits { failures_max: 1, ..intensity::Limits::default() };
    Settings {
        workers,
        run_max,
        build_max: LONG,
        patience: LONG,
        intensity: one_strike,
        probe_every: LONG,
        ..Settings::default()
    }
}

fn real_manifest() -> Manifest {
    support::runtime_and_model().1.manifest().clone()
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rollcall-loading-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary folder is writable");
        Self(path)
    }

    fn root(&self) -> &Path {
        &self.0
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it lies in the folder")).expect("the test's folder is writable");
        fs::write(&path, bytes).expect("the test's folder is writable");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
