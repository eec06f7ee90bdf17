//! Goal: the tables and drawings of docs/simulation.md and of the decision on the options are what the commands print and draw
//! today, byte for byte.
//! Method: the real binary. `ROLLCALL_WRITE_DOCS=1` writes what it prints instead of comparing; a reader then sees the change.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic like the test itself")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn is_to_write() -> bool {
    std::env::var("ROLLCALL_WRITE_DOCS").is_ok_and(|value| value == "1")
}

/// In an empty directory, so that no settings of this machine hold.
fn rollcall(arguments: &[&str]) -> String {
    let folder = std::env::temp_dir();
    let output = Command::new(env!("CARGO_BIN_EXE_rollcall")).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const OPENS: &str = "<!-- rollcall ";

/// The text with each block after `<!-- rollcall … -->` as the command prints it.
fn printed(text: &str) -> String {
    let mut parts = text.split(OPENS);
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        let (command, rest) = part.split_once(" -->\n```text\n").expect("a command stands above its block");
        let (_, after) = rest.split_once("```\n").expect("a block ends");
        let arguments: Vec<&str> = command.split_whitespace().collect();
        whole.push_str(&format!("{OPENS}{command} -->\n```text\n{}```\n{after}", rollcall(&arguments)));
    }
    whole
}

fn check(path: &Path, today: &str) {
    if is_to_write() {
        return std::fs::write(path, today).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let differs = committed.lines().zip(today.lines()).find(|(committed, today)| committed != today);
    assert!(
        committed == today,
        "{} is not what the command says today; ROLLCALL_WRITE_DOCS=1 writes it. First difference: {differs:?}",
        path.display()
    );
}

fn check_tables(file: &str, tables: usize) {
    let path = docs().join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches(OPENS).count(), tables, "{file}");
    check(&path, &printed(&text));
}

#[test]
fn the_tables_of_the_simulation_are_what_the_commands_print() {
    check_tables("simulation.md", 2);
}

#[test]
fn the_tables_of_the_decision_on_the_options_are_what_the_commands_print() {
    check_tables("decisions/0015-options.md", 3);
}

#[test]
fn the_drawings_of_the_simulation_are_what_the_command_draws() {
    let folder = std::env::temp_dir().join(format!("rollcall-drawings-{}", std::process::id()));
    let said = rollcall(&["simulate", "--plot", folder.to_str().unwrap()]);
    let names: Vec<&str> = said.lines().filter_map(|line| Path::new(line).file_name()?.to_str()).collect();
    assert_eq!(names.len(), 4, "{said}");
    for name in names {
        let drawn = std::fs::read_to_string(folder.join(name)).unwrap();
        check(&docs().join("images").join(name), &drawn);
        let text = std::fs::read_to_string(docs().join("simulation.md")).unwrap();
        assert!(text.contains(&format!("(images/{name})")), "{name} is shown nowhere");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
