//! A page of metrics, read by a reader that knows nothing of how it was written; and the tool that judges it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The samples of one scrape.
#[derive(Debug, Clone)]
pub struct Page {
    text: String,
    samples: Vec<(String, f64)>,
}

impl Page {
    /// Reads the text format.
    ///
    /// # Panics
    /// When a line is no sample.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let samples = lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?} is no sample"));
            (series.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line:?} has no number")))
        });
        Self { samples: samples.collect(), text: text.to_owned() }
    }

    /// The page itself.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every series and its value.
    #[must_use]
    pub fn samples(&self) -> &[(String, f64)] {
        &self.samples
    }

    /// The value of one series, written as on the page.
    ///
    /// # Panics
    /// When it is not there.
    #[must_use]
    pub fn value(&self, series: &str) -> f64 {
        let found = self.samples.iter().find(|(name, _)| name == series);
        found.unwrap_or_else(|| panic!("there is no {series}")).1
    }

    /// Attempts by outcome.
    #[must_use]
    pub fn attempts(&self, outcome: &str) -> f64 {
        self.value(&format!("omi_speaker_id_embedding_attempts_total{{outcome=\"{outcome}\"}}"))
    }

    /// Updates that led to no verdict, by reason.
    #[must_use]
    pub fn exits(&self, reason: &str) -> f64 {
        self.value(&format!("omi_speaker_id_match_exits_total{{reason=\"{reason}\"}}"))
    }

    /// The sum of a family over its label values.
    #[must_use]
    pub fn sum(&self, family: &str) -> f64 {
        let of_family = |series: &str| series.strip_prefix(family).is_some_and(|rest| rest.starts_with('{'));
        self.samples.iter().filter(|(series, _)| of_family(series)).map(|(_, value)| value).sum()
    }
}

/// Runs `promtool check metrics` on a page. It exits with 0 and prints nothing when it finds no fault.
///
/// # Panics
/// When it has something to say, or is not there.
pub fn promtool(page: &Page) {
    let mut promtool = Command::new(tool())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool was found, so it starts");
    let mut input = promtool.stdin.take().expect("its input is piped");
    input.write_all(page.text.as_bytes()).expect("it reads all of its input");
    drop(input);
    let output = promtool.wait_with_output().expect("it ends with its input");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.is_empty(), "promtool: {} {said}", output.status);
}

/// In the home directory's `bin`, else on the path.
fn tool() -> PathBuf {
    let home = std::env::var_os("ROLLCALL_HOME").map(PathBuf::from);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.rollcall");
    let installed = home.into_iter().chain([repository]).map(|home| home.join("bin/promtool"));
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&on_path).map(|folder| folder.join("promtool")).collect::<Vec<_>>();
    let found = installed.chain(on_path).find(|path| path.is_file());
    found.expect("promtool is missing; `make setup` installs it")
}
