//! Goal: a recording holds what happened and nothing else, has a limit, overwrites nothing, and delays nobody.
//! Method: recorders fed by hand, and the file read back.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use matcher_core::{
    Batch, Gallery, Generation, Join, LaneId, Limits, Monotonic, Offer, Rate, Sample, Scope, SegmentId, Span, Speaker,
    budget,
};

use super::*;
use crate::simulate::Trace;
use crate::simulate::trace::header::VERSION;
use crate::simulate::trace::{Event, Line, Settings};

const LANE: LaneId = LaneId(41);
const GENERATION: Generation = Generation(7);

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rollcall-journal-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn header() -> Header {
    let settings = Settings::of(&Limits::default(), &budget::Limits::default());
    Header { rollcall_trace: VERSION, workers: NonZeroUsize::new(2).unwrap(), settings }
}

fn journal(folder: &Folder, bytes_max: u64) -> Journal {
    Journal::start(&folder.0.join("trace.jsonl"), &header(), bytes_max, Clock::start()).unwrap()
}

fn join() -> Join {
    Join::new(GENERATION, Rate::new(NonZeroU32::new(16_000).unwrap()), Gallery::default())
}

fn batch(speaker: u32) -> Batch {
    let window = Span::new(Sample(0), Sample(32_000)).unwrap();
    let segment = SegmentId::new("a secret segment");
    let offer =
        Offer { speaker: Speaker(speaker), scope: Scope::new("a secret stream"), window, speech: 32_000, segment };
    Batch { generation: GENERATION, scope: Scope::new("a secret stream"), ring: Some(window), offers: vec![offer] }
}

fn at(millis: u64) -> Monotonic {
    Monotonic::from_origin(Duration::from_millis(millis))
}

fn lines(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn numbers_are_new_and_what_has_a_name_is_not_there() {
    let folder = Folder::new("numbers");
    let journal = journal(&folder, 1 << 20);
    let mut recorder = journal.recorder();
    recorder.joined((LANE, &join()), 15.9, Resumed::of(&join()), at(1));
    recorder.heard(LANE, &batch(907), at(2));
    recorder.heard(LANE, &batch(3), at(3));
    recorder.heard(LANE, &batch(907), at(4));
    recorder.left(LANE, at(5));
    journal.finish();
    let path = journal.path().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    for secret in ["secret", "907", "41"] {
        assert!(!text.lines().skip(1).any(|line| line.contains(secret)), "{secret}: {text}");
    }
    let told: Vec<Event> = lines(path).into_iter().map(|line| line.event).collect();
    let mut voices = Vec::new();
    for event in &told {
        if let Event::Heard(heard) = event {
            voices.extend(heard.segments.iter().map(|segment| segment[0]));
        }
    }
    assert_eq!(voices, [1, 2, 1], "in order of appearance, and the same number for the same voice");
    assert!(matches!(told.first(), Some(Event::Joined(joined)) if joined.tokens == 15 && !joined.resumed));
    assert!(matches!(told.last(), Some(Event::Left {})));
    let report = Trace::read(path).unwrap().replay(None);
    assert_eq!((report.lanes.len(), report.lost, report.is_cut), (1, 0, false));
}

#[tokio::test]
async fn a_recording_ends_at_its_full_size_and_says_so() {
    let folder = Folder::new("size");
    let journal = journal(&folder, 2_000);
    let mut recorder = journal.recorder();
    recorder.joined((LANE, &join()), 16.0, Resumed::No, at(1));
    for n in 0..200 {
        recorder.heard(LANE, &batch(1), at(n));
    }
    journal.finish();
    let path = journal.path().unwrap();
    let size = std::fs::metadata(path).unwrap().len();
    assert!((2_000..2_300).contains(&size), "one line more than its size: {size}");
    assert!(matches!(lines(path).last(), Some(Line { event: Event::Full {}, .. })));
    assert!(Trace::read(path).unwrap().replay(None).is_cut);
}

#[tokio::test]
async fn no_recording_is_overwritten_and_only_its_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("names");
    let journals: Vec<Journal> = (0..3).map(|_| journal(&folder, 1 << 20)).collect();
    let names: Vec<_> = journals.iter().filter_map(|journal| journal.path()?.file_name()?.to_str()).collect();
    assert_eq!(names, ["trace.jsonl", "trace.jsonl.1", "trace.jsonl.2"]);
    let mode = std::fs::metadata(folder.0.join("trace.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    journals.iter().for_each(Journal::finish);
}

#[tokio::test]
async fn a_place_that_is_none_is_refused_with_the_setting_and_the_mend() {
    let error =
        Journal::start(Path::new("/nowhere/trace"), &header(), 1 << 20, Clock::start()).unwrap_err().to_string();
    assert!(
        error.starts_with("server.record /nowhere/trace: cannot be written") && error.contains("leave it out"),
        "{error}"
    );
}

#[tokio::test]
async fn without_a_recording_nothing_is_kept_and_ending_it_twice_is_no_harm() {
    let mut recorder = Journal::off().recorder();
    recorder.joined((LANE, &join()), 16.0, Resumed::No, at(1));
    recorder.heard(LANE, &batch(1), at(2));
    Journal::off().finish();
    let folder = Folder::new("twice");
    let journal = journal(&folder, 1 << 20);
    journal.finish();
    journal.finish();
    journal.recorder().joined((LANE, &join()), 16.0, Resumed::No, at(3));
}
