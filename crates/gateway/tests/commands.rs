//! Goal: `enroll`, `people`, `model`, `doctor` and `simulate` do what they say, here and through a server, with the exit
//! codes that scripts rely on: 0 done, 2 wrong input in one line, 1 anything else.
//! Method: the real binary in an empty home with the scripted model, whose voices are tones.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers panic like the test itself")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn a_simulated_scenario_says_the_same_twice_and_only_the_fair_order_examines_the_owner_first() {
    let home = Home::new();
    let run = |arguments: &[&str]| good(&home.rollcall(&[&["simulate"], arguments].concat()));
    let fair = run(&["seed", "--seed", "5", "--json"]);
    assert_eq!(fair, run(&["seed", "--policy", "fair", "--seed", "5", "--json"]));
    let report: serde_json::Value = serde_json::from_str(&fair).unwrap();
    assert_eq!((&report["scenario"], &report["policy"], &report["seed"]), (&"seed".into(), &"fair".into(), &5.into()));
    assert_eq!(report["owner_examined_first"], true);
    assert_eq!((&report["queries"]["owner"], &report["queries"]["rejector"]), (&1.into(), &0.into()));
    for number in ["worst_wait_s", "bound_s", "override_share"] {
        assert!(report[number].is_number(), "{number}: {report}");
    }
    let fifo: serde_json::Value = serde_json::from_str(&run(&["seed", "--policy", "fifo", "--json"])).unwrap();
    assert_eq!((&fifo["owner_examined_first"], &fifo["queries"]["owner"]), (&false.into(), &0.into()));
}

#[test]
fn without_a_scenario_each_is_said_in_one_line_and_played_and_an_unknown_one_is_refused() {
    let home = Home::new();
    let table = good(&home.rollcall(&["simulate"]));
    for name in ["seed", "household", "meeting", "flood", "resends", "bursts", "overload", "noise"] {
        let lines = table.lines().filter(|line| line.split_whitespace().next() == Some(name)).count();
        assert_eq!(lines, 3, "what it is, and a row for each policy: {table}");
    }
    let line = complaint(&home.rollcall(&["simulate", "storm"]), 2);
    assert!(line.contains("'storm'") && line.contains("household"), "{line}");
}

#[test]
fn a_person_is_enrolled_listed_shown_and_deleted_in_a_store() {
    let home = Home::new();
    life_of_a_person(&home, &[]);
}

#[test]
fn the_same_commands_do_the_same_through_a_running_server() {
    let home = Home::new();
    let server = home.serve();
    life_of_a_person(&home, &["--server", &server.url]);
}

fn life_of_a_person(home: &Home, place: &[&str]) {
    let (one, two) = (home.tone("one.wav", 300.0, 3.0), home.tone("two.wav", 300.0, 4.0));
    let run = |arguments: &[&str]| home.rollcall(&[arguments, place].concat());
    let enrolled = run(&["enroll", "--person", "anna", "--name", "Anna Meier", "--owner", "--pin", &one, &two]);
    assert_eq!(
        good(&enrolled),
        format!(
            "{one}: kept, 3.0 s of speech, quality 0.00\n\
             {two}: kept, 4.0 s of speech, quality 0.00, distance 0.00 to earlier samples\n"
        )
    );
    let line = "anna\tAnna Meier, owner, pinned\t2 samples, 7.0 s of speech\n";
    assert_eq!(good(&run(&["people", "list"])), line);
    assert_eq!(good(&run(&["people", "show", "anna"])), line);
    let json: serde_json::Value = serde_json::from_str(&good(&run(&["people", "list", "--json"]))).unwrap();
    assert_eq!((&json["id"], &json["samples"], &json["is_pinned"]), (&"anna".into(), &2.into(), &true.into()));
    assert_eq!(good(&run(&["people", "delete", "anna"])), "anna is deleted\n");
    assert_eq!(complaint(&run(&["people", "show", "anna"]), 2), "rollcall: there is no person \"anna\"");
    assert_nobody(&run(&["people", "list"]));
    assert_eq!(good(&run(&["people", "list", "--json"])), "");
}

#[test]
fn a_sample_that_is_refused_names_its_file_and_the_good_ones_are_kept() {
    for through_server in [false, true] {
        let home = Home::new();
        let server = through_server.then(|| home.serve());
        let place: Vec<&str> = server.iter().flat_map(|server| ["--server", &server.url]).collect();
        let run = |arguments: &[&str]| home.rollcall(&[arguments, &place[..]].concat());
        let (good_one, short) = (home.tone("good.wav", 300.0, 3.0), home.tone("short.wav", 300.0, 1.0));
        let other = home.tone("other.wav", 900.0, 3.0);
        let text = home.file("notes.txt", b"these are notes, and they are no sound at all");

        let refused = run(&["enroll", "--person", "anna", &short]);
        assert!(complaint(&refused, 2).contains("short.wav: it has 1.0 s of speech"), "{refused:?}");
        assert_nobody(&run(&["people", "list"]));

        let refused = run(&["enroll", "--person", "anna", &good_one, &text, &other, "missing.wav"]);
        let line = complaint(&refused, 2);
        for words in [
            "notes.txt: the file is none of WAV, FLAC",
            "other.wav: it does not sound like earlier samples of anna",
            "enrol it with --force",
            "missing.wav: cannot be read",
        ] {
            assert!(line.contains(words), "{line:?} should say {words:?}");
        }
        assert_eq!(good(&run(&["people", "show", "anna"])), "anna\tanna\t1 samples, 3.0 s of speech\n");
        good(&run(&["enroll", "--person", "anna", "--force", &other]));
    }
}

#[test]
fn a_second_owner_is_refused_with_the_first_ones_id() {
    for through_server in [false, true] {
        let home = Home::new();
        let server = through_server.then(|| home.serve());
        let place: Vec<&str> = server.iter().flat_map(|server| ["--server", &server.url]).collect();
        let run = |arguments: &[&str]| home.rollcall(&[arguments, &place[..]].concat());
        let (one, two) = (home.tone("one.wav", 300.0, 3.0), home.tone("two.wav", 900.0, 3.0));
        good(&run(&["enroll", "--person", "anna", "--owner", &one]));
        let line = complaint(&run(&["enroll", "--person", "bert", "--owner", &two, &one]), 2);
        assert_eq!(line.matches("\"anna\" is the owner already").count(), 1, "{line}");
        assert_eq!(good(&run(&["people", "list"])).lines().count(), 1, "bert is not made");
    }
}

#[test]
fn the_same_clip_twice_is_refused_by_what_it_is() {
    let home = Home::new();
    let one = home.tone("one.wav", 300.0, 3.0);
    let line = complaint(&home.rollcall(&["enroll", "--person", "anna", &one, &one]), 2);
    assert!(line.contains("one.wav: this clip is enrolled already"), "{line}");
    assert!(good(&home.rollcall(&["people", "show", "anna"])).contains("1 samples, 3.0 s"));
}

#[test]
fn a_form_is_answered_with_the_upload_that_works() {
    let home = Home::new();
    let server = home.serve();
    good(&home.rollcall(&["enroll", "--person", "anna", "--server", &server.url, &home.tone("one.wav", 300.0, 3.0)]));
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    for path in ["/v1/people/anna/samples", "/v1/identify"] {
        let request = agent.post(format!("{}{path}", server.url)).content_type("multipart/form-data; boundary=x");
        let mut response = request.send("--x\r\n\r\nRIFF\r\n--x--\r\n").unwrap();
        let body = response.body_mut().read_to_string().unwrap();
        assert_eq!(response.status().as_u16(), 415, "{path}: {body}");
        assert!(body.contains("curl --data-binary @clip.wav URL"), "{path}: {body}");
    }
}

#[test]
fn a_mistyped_data_directory_is_an_error_and_is_not_made() {
    let home = Home::new();
    let typo = home.0.join("typo");
    for action in [&["list"][..], &["show", "anna"], &["delete", "anna"]] {
        let arguments = [&["people"], action, &["--data", typo.to_str().unwrap()]].concat();
        let line = complaint(&home.rollcall(&arguments), 2);
        assert!(line.contains("typo: there is no store here"), "{line}");
        assert!(!typo.exists(), "{action:?}");
    }
}

#[test]
fn without_the_model_samples_are_counted_and_said_to_be_beyond_judgement() {
    let home = Home::new();
    let one = home.tone("one.wav", 300.0, 3.0);
    good(&home.rollcall(&["enroll", "--person", "anna", &one]));
    for action in [&["list"][..], &["show", "anna"]] {
        let line = good(&home.rollcall(&[&["people", "--model", "campplus"], action].concat()));
        let expected = "1 samples, 3.0 s of speech; model campplus is not installed, so these samples cannot be judged";
        assert!(line.contains(expected) && !line.contains("re-enrolment"), "{line}");
    }
    let doctor = home.command(&["doctor", "--model", "campplus"]).output().unwrap();
    let text = String::from_utf8(doctor.stdout).unwrap();
    assert!(text.contains("without the model their samples cannot be judged"), "{text}");
}

#[test]
fn the_help_of_every_command_about_people_models_and_this_machine_has_an_example() {
    let home = Home::new();
    for command in [
        "people",
        "people list",
        "people show",
        "people delete",
        "model",
        "model list",
        "model install",
        "model add",
        "model verify",
        "doctor",
        "enroll",
    ] {
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = good(&home.command(&arguments).output().unwrap());
        assert!(help.contains(&format!("Example: rollcall {command}")), "{help}");
    }
}

#[test]
fn a_store_that_a_server_has_open_is_not_changed_behind_its_back() {
    let home = Home::new();
    let _server = home.serve();
    let line = complaint(&home.rollcall(&["people", "list"]), 1);
    assert!(line.contains("in use by another rollcall process") && line.contains("--server"), "{line}");
}

#[test]
fn wrong_input_is_one_line_and_exit_code_two() {
    let home = Home::new();
    let one = home.tone("one.wav", 300.0, 3.0);
    for (arguments, words) in [
        (&["enroll", "--person", "../x", &one][..], "--person: id holds '/'"),
        (&["enroll", "--person", "x", "--name", "\n", &one], "--name: name must have"),
        (&["enroll", "--person", "x", &one, "--model", "nobody"], "rollcall model install nobody"),
        (&["people", "list", "--server", "ftp://x"], "--server ftp://x"),
        (&["people", "list", "--set", "queue.slots=0"], "queue.slots is 0; it must lie between 1 and 1000"),
        (&["people", "list", "--config", "missing.toml"], "missing.toml cannot be read"),
        (&["model", "install", "nobody"], "there is no model `nobody`"),
        (&["model", "add", "x.onnx", "--distance", "threshold"], "FIELD=VALUE"),
        (&["model", "add", "x.onnx", "--front-end", "mfcc"], "unknown variant `mfcc`"),
        (&["people"], "rollcall"),
    ] {
        let line = complaint(&home.rollcall(arguments), 2);
        assert!(line.contains(words), "{arguments:?}: {line:?} should say {words:?}");
    }
}

#[test]
fn a_server_that_is_not_there_is_a_failure_and_not_wrong_input() {
    let home = Home::new();
    let line = complaint(&home.rollcall(&["people", "list", "--server", "http://127.0.0.1:1"]), 1);
    assert!(line.contains("--server http://127.0.0.1:1"), "{line}");
}

#[test]
fn doctor_and_verify_say_what_an_empty_home_lacks() {
    let home = Home::new();
    let doctor = home.command(&["doctor", "--model", "campplus"]).output().unwrap();
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    let text = String::from_utf8(doctor.stdout).unwrap();
    for (what, mend) in [("runtime", "rollcall model install campplus"), ("model", "rollcall model install campplus")] {
        let line = text.lines().find(|line| line.starts_with("WRONG") && line.contains(what)).unwrap_or_default();
        assert!(line.contains(mend), "{text}");
    }
    assert!(text.lines().any(|line| line.starts_with("ok") && line.contains("data")), "{text}");
    let line = complaint(&home.rollcall(&["model", "verify"]), 1);
    assert!(line.contains("campplus is missing"), "{line}");
    assert!(good(&home.rollcall(&["model", "list"])).contains("campplus\tnot installed"));
}

/// A home, a data directory and a working directory of their own.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("rollcall-commands-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
        command.args(arguments).current_dir(&self.0).env("ROLLCALL_HOME", &self.0).env_remove("ROLLCALL_RUNTIME");
        command
    }

    fn rollcall(&self, arguments: &[&str]) -> Output {
        let model: &[&str] = if arguments.contains(&"--model") { &[] } else { &["--model", "scripted"] };
        self.command(&[arguments, model].concat()).output().unwrap()
    }

    fn serve(&self) -> Server {
        let mut child = self
            .command(&["serve", "--listen", "127.0.0.1:0", "--model", "scripted"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").expect("the server says where it listens").to_owned();
        Server { child, url }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path: &Path = &self.0.join(name);
        std::fs::write(path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A WAV file of a tone at half of full scale, 16 kHz.
    fn tone(&self, name: &str, hertz: f64, seconds: f64) -> String {
        let samples = (0..).take_while(|n| f64::from(*n) < seconds * 16_000.0);
        let data: Vec<u8> = samples.flat_map(|n: i32| sample(hertz, n).to_le_bytes()).collect();
        let length = u32::try_from(data.len()).unwrap();
        let format = [1_u16.to_le_bytes(), 1_u16.to_le_bytes()].concat();
        let rates = [16_000_u32.to_le_bytes(), 32_000_u32.to_le_bytes()].concat();
        let frame = [2_u16.to_le_bytes(), 16_u16.to_le_bytes()].concat();
        let riff = [&b"RIFF"[..], &(36 + length).to_le_bytes(), b"WAVEfmt ", &16_u32.to_le_bytes()].concat();
        self.file(name, &[riff, format, rates, frame, b"data".to_vec(), length.to_le_bytes().to_vec(), data].concat())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

#[expect(clippy::cast_possible_truncation, reason = "half of full scale fits")]
fn sample(hertz: f64, n: i32) -> i16 {
    (16_000.0 * (f64::from(n) * hertz * std::f64::consts::TAU / 16_000.0).sin()) as i16
}

struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // How a server stops well is another file's story.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(|_| ()).unwrap_or_default();
    }
}

/// Standard output of a command that did its work and complained of nothing.
fn good(output: &Output) -> String {
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A list of nobody has no rows, and says so beside them.
fn assert_nobody(output: &Output) {
    assert!(complaint(output, 0).contains("nobody is enrolled") && output.stdout.is_empty(), "{output:?}");
}

/// The one line on standard error of a command that ended with `code`.
fn complaint(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1, "{text:?}");
    lines[0].to_owned()
}
