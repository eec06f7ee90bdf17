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
    // A line that is being written has no end yet.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
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
    assert!(!text.contains("secret"), "{text}");
    assert!(lines(path).iter().all(|line| line.lane == 1), "the only lane: {text}");
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
async fn a_server_that_is_started_again_and_again_keeps_ten_recordings_and_then_runs_without() {
    let folder = Folder::new("restarts");
    let journals: Vec<Journal> = (0..12).map(|_| journal(&folder, 1 << 20)).collect();
    assert_eq!(journals.iter().filter(|journal| journal.path().is_some()).count(), 10);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 10);
    let last = journals.last().unwrap();
    last.recorder().joined((LANE, &join()), 16.0, Resumed::No, at(1));
    journals.iter().for_each(Journal::finish);
}

/// A disk that takes nothing: the writer is told of nothing until everything was said.
struct Stalled {
    entries: std::sync::mpsc::SyncSender<Message>,
    received: std::sync::mpsc::Receiver<Message>,
    backlog: Backlog,
}

impl Stalled {
    fn new(entries_max: usize) -> Self {
        let (entries, received) = sync_channel(entries_max);
        Self { entries, received, backlog: Backlog::default() }
    }

    fn recorder(&self) -> Recorder {
        Recorder::new(Some((self.entries.clone(), self.backlog.clone())))
    }

    /// What is written once the disk takes something again; nobody records any more.
    fn written(self, folder: &Folder) -> Vec<Line> {
        let Self { entries, received, backlog } = self;
        drop(entries);
        let path = folder.0.join("trace.jsonl");
        let mut writer = Writer::new(File::create(&path).unwrap(), 1 << 30, at(0), backlog);
        writer.begin(&header()).unwrap();
        writer.run(&received);
        lines(&path)
    }
}

fn lost(lines: &[Line]) -> u64 {
    let lost = |line: &Line| if let Event::Lost { entries } = line.event { entries } else { 0 };
    lines.iter().map(lost).sum()
}

#[test]
fn what_a_stalled_disk_does_not_take_is_counted_also_when_nothing_is_said_afterwards_and_delays_nobody() {
    let folder = Folder::new("stalled");
    let stalled = Stalled::new(3);
    let mut recorder = stalled.recorder();
    recorder.joined((LANE, &join()), 16.0, Resumed::No, at(1));
    // A call that waited for room would wait for ever: nobody reads.
    for n in 0..10 {
        recorder.heard(LANE, &batch(1), at(n));
    }
    drop(recorder);
    let written = stalled.written(&folder);
    let heard = written.iter().filter(|line| matches!(line.event, Event::Heard(_))).count();
    assert_eq!((heard, lost(&written)), (2, 8), "{written:?}");
}

#[test]
fn messages_of_many_segments_are_lost_sooner_so_that_what_waits_stays_small() {
    let folder = Folder::new("segments");
    let stalled = Stalled::new(ENTRIES_MAX);
    let mut recorder = stalled.recorder();
    recorder.joined((LANE, &join()), 16.0, Resumed::No, at(1));
    let one = batch(1);
    let many = Batch { offers: vec![one.offers[0].clone(); 512], ..one };
    for n in 0..200 {
        recorder.heard(LANE, &many, at(n));
    }
    drop(recorder);
    let written = stalled.written(&folder);
    let heard = written.iter().filter(|line| matches!(line.event, Event::Heard(_))).count();
    assert_eq!((heard, lost(&written)), (128, 72), "65,536 segments wait, and no more");
}

#[test]
fn what_waited_gives_its_room_back_once_it_is_written() {
    let folder = Folder::new("room");
    let journal = journal(&folder, 1 << 30);
    let mut recorder = journal.recorder();
    recorder.joined((LANE, &join()), 16.0, Resumed::No, at(1));
    let one = batch(1);
    let many = Batch { offers: vec![one.offers[0].clone(); 40_000], ..one };
    for n in 0..4 {
        recorder.heard(LANE, &many, at(n));
        // Each fills more than half of what may wait.
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while lines(journal.path().unwrap()).len() < usize::try_from(n).unwrap() + 2 {
            assert!(std::time::Instant::now() < deadline, "the writer takes what it is told");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    journal.finish();
    assert_eq!(lost(&lines(journal.path().unwrap())), 0);
}

#[test]
fn a_recorder_whose_writer_has_ended_lets_go_of_everything() {
    let stalled = Stalled::new(8);
    let mut recorder = stalled.recorder();
    recorder.joined((LANE, &join()), 16.0, Resumed::No, at(1));
    assert!(recorder.is_on());
    drop(stalled.received);
    recorder.heard(LANE, &batch(1), at(2));
    assert!(!recorder.is_on());
    recorder.heard(LANE, &batch(1), at(3));
    recorder.changed(at(4));
    recorder.left(LANE, at(5));
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
