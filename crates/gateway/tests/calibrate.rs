//! Goal: `rollcall calibrate` prints the same numbers as text and as JSON, draws them, warns of too few clips, and tells
//! wrong input in one line with exit code 2.
//! Method: the real binary with the scripted model, whose voices are tones, in a directory that goes away.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic like the test itself")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[test]
fn people_who_are_told_apart_have_no_errors_and_a_warning_when_they_are_few() {
    let home = Home::new("people");
    home.tones(&["people/anna/1.wav", "people/anna/2.wav"], 300.0);
    home.tones(&["people/ben/1.wav", "people/ben/2.wav"], 600.0);
    home.tones(&["people/cleo/1.wav"], 900.0);
    let output = home.rollcall(&["calibrate", "--people", "people", "--json", "--plot", "curves.svg"]);
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["trials"]["target"], &report["trials"]["nontarget"]), (&4.into(), &10.into()));
    assert_eq!((&report["eer"], &report["suggested"]["frr"]), (&0.0.into(), &0.0.into()));
    assert_eq!((&report["present"]["threshold"], &report["model"]["name"]), (&0.55.into(), &"scripted".into()));
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert!(complaints.contains("only 4 target trials: too few to mean anything"), "{complaints}");
    assert!(std::fs::read_to_string(home.0.join("curves.svg")).unwrap().contains("scripted: 4 target"));

    let text = String::from_utf8(home.rollcall(&["calibrate", "--people", "people"]).stdout).unwrap();
    assert!(text.contains("4 target and 10 nontarget trials") && text.contains("EER 0.00 %"), "{text}");
}

#[test]
fn a_list_of_trials_that_says_nonsense_has_the_error_rate_of_nonsense() {
    let home = Home::new("trials");
    home.tones(&["a.wav", "b.wav"], 300.0);
    home.tones(&["c.wav", "d.wav"], 600.0);
    std::fs::create_dir(home.0.join("lists")).unwrap();
    let list = |text: &str| std::fs::write(home.0.join("lists/trials"), text).unwrap();
    let eer = || {
        let output = home.rollcall(&["calibrate", "--trials", "lists/trials", "--json"]);
        assert!(output.status.success(), "{output:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        report["eer"].as_f64().unwrap()
    };
    list("../a.wav ../b.wav target\n../a.wav ../c.wav nontarget\n");
    assert!(eer().abs() < 1e-9);
    list("../a.wav ../b.wav nontarget\n../a.wav ../c.wav target\n");
    assert!((eer() - 1.0).abs() < 1e-9);
}

#[test]
fn wrong_input_is_one_line_that_names_the_place_and_exit_code_two() {
    let home = Home::new("wrong");
    home.tones(&["people/anna/1.wav", "people/anna/2.wav", "a.wav", "b.wav"], 300.0);
    std::fs::write(home.0.join("one-sided"), "a.wav b.wav target\n").unwrap();
    std::fs::write(home.0.join("torn"), "a.wav b.wav target\na.wav\n").unwrap();
    std::fs::write(home.0.join("notes.txt"), "these are notes, and they are no sound at all").unwrap();
    std::fs::write(home.0.join("deaf"), "a.wav b.wav target\na.wav notes.txt nontarget\n").unwrap();
    for (arguments, words) in [
        (&["--trials", "torn"][..], "--trials torn:2: a line is"),
        (&["--trials", "one-sided"], "--trials one-sided: holds no nontarget trial"),
        (&["--trials", "missing"], "--trials missing: cannot be read"),
        (&["--trials", "deaf"], "--trials deaf:2: notes.txt: the file is none of WAV"),
        (&["--people", "people"], "--people people: holds one person"),
        (&["--people", "people", "--trials", "torn"], "cannot be used with"),
        (&[], "required"),
    ] {
        let output = home.rollcall(&[&["calibrate"], arguments].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text:?} should say {words:?}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_plot_that_has_no_place_is_refused_before_anything_is_heard() {
    let home = Home::new("plot");
    home.tones(&["people/anna/1.wav", "people/anna/2.wav"], 300.0);
    home.tones(&["people/ben/1.wav"], 600.0);
    let output = home.rollcall(&["calibrate", "--people", "people", "--plot", "nowhere/curves.svg"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.starts_with("rollcall: --plot nowhere/curves.svg: cannot be written"), "{text}");
}

/// A directory of its own, removed at the end of the test.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rollcall-calibrate-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn rollcall(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_rollcall"))
            .args(arguments)
            .args(["--model", "scripted"])
            .current_dir(&self.0)
            .env("ROLLCALL_HOME", &self.0)
            .output()
            .unwrap()
    }

    /// WAV files of three seconds of a tone, 16 kHz, at half of full scale.
    fn tones(&self, names: &[&str], hertz: f64) {
        let data: Vec<u8> = (0..48_000_i32).flat_map(|n| sample(hertz, n).to_le_bytes()).collect();
        let length = u32::try_from(data.len()).unwrap();
        let numbers = [(36 + length).to_le_bytes(), 16_000_u32.to_le_bytes(), 32_000_u32.to_le_bytes()];
        let head = [b"RIFF", &numbers[0][..], b"WAVEfmt ", &16_u32.to_le_bytes(), &[1, 0, 1, 0], &numbers[1]].concat();
        let file = [&head[..], &numbers[2], &[2, 0, 16, 0], b"data", &length.to_le_bytes(), &data].concat();
        for name in names {
            let path: &Path = &self.0.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &file).unwrap();
        }
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
