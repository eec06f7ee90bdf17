//! The recording's thread: numbers lanes, voices and streams anew, and writes lines until there are as many bytes as there may
//! be. Nobody waits for it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use matcher_core::{Generation, LaneId, Monotonic, Scope, Span, Speaker};
use serde::Serialize;

use super::recorder::Brought;
use crate::simulate::trace::line::{Class, Heard, Joined, Of, Reason, Selected};
use crate::simulate::trace::{Event, Header, Line};

/// A lane in one conversation: in the next one it is another lane of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) lane: LaneId,
    generation: Generation,
}

impl Place {
    pub(super) const fn of((lane, generation): (LaneId, Generation)) -> Self {
        Self { lane, generation }
    }
}

/// What the writer hears.
pub(super) enum Message {
    Entry(Entry),
    /// Nothing more is to be written.
    Stop,
}

/// What happened, in the core's terms.
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) at: Monotonic,
    pub(super) what: What,
}

/// See [`Event`].
pub(super) enum What {
    Joined(Joined),
    Heard { ring: Option<Span>, segments: Vec<(Speaker, Scope, Span, u64)> },
    Selected { speaker: Speaker, scope: Scope, waited: Duration },
    Reserved { speaker: Speaker, scope: Scope, spans: Vec<Span> },
    Denied { speaker: Speaker, scope: Scope, reason: &'static str },
    Refused { speaker: Speaker, scope: Scope, reason: &'static str },
    Undelivered { speaker: Speaker, scope: Scope },
    Ran { speaker: Speaker, scope: Scope, took: Duration, brought: Brought },
    Judged { speaker: Speaker, scope: Scope, class: Class },
    Moved { speaker: Speaker, scope: Scope, class: Class },
    Changed,
    Left,
}

impl What {
    /// Stretches of audio that it names: nearly all the memory that it takes.
    fn stretches(&self) -> usize {
        match self {
            Self::Heard { segments, .. } => segments.len(),
            Self::Reserved { spans, .. } => spans.len(),
            Self::Joined(_)
            | Self::Selected { .. }
            | Self::Denied { .. }
            | Self::Refused { .. }
            | Self::Undelivered { .. }
            | Self::Ran { .. }
            | Self::Judged { .. }
            | Self::Moved { .. }
            | Self::Changed
            | Self::Left => 0,
        }
    }
}

/// What follows the first entry after a pause is written with it: waking this thread and writing cost more than an entry. A
/// server that dies loses as much.
const GATHER: Duration = Duration::from_millis(50);

/// Stretches that wait for the disk. A message may bring 512, so the number of entries alone would allow 200 MB; these are
/// three. Beyond them an entry is lost, as beyond the number of entries.
const STRETCHES_MAX: usize = 1 << 16;

/// What waits for the disk, and what found no room. Copies are one.
#[derive(Debug, Clone, Default)]
pub(super) struct Backlog(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    lost: AtomicU64,
    stretches: AtomicUsize,
}

impl Backlog {
    /// Room for what is to be written; without room it is lost. The writer gives the room back.
    pub(super) fn has_taken(&self, what: &What) -> bool {
        let stretches = what.stretches();
        let waiting = self.0.stretches.fetch_add(stretches, Ordering::Relaxed);
        // An entry that finds nothing waiting may be as large as it is.
        let is_room = waiting == 0 || waiting + stretches <= STRETCHES_MAX;
        if !is_room {
            self.lose(what);
        }
        is_room
    }

    /// What had room did not go out.
    pub(super) fn lose(&self, what: &What) {
        self.give_back(what);
        self.0.lost.fetch_add(1, Ordering::Relaxed);
    }

    fn give_back(&self, what: &What) {
        self.0.stretches.fetch_sub(what.stretches(), Ordering::Relaxed);
    }

    fn take_lost(&self) -> u64 {
        self.0.lost.swap(0, Ordering::Relaxed)
    }
}

/// The new numbers of one lane. They go with the lane, so at most as many of these are held as lanes are open. Each number that
/// is heard stands in the file, so the recording's full size bounds them as well: a few tens of bytes for each segment in it.
#[derive(Default)]
struct Numbers {
    lane: u32,
    voices: BTreeMap<Speaker, u32>,
    streams: BTreeMap<Scope, u16>,
}

impl Numbers {
    fn voice(&mut self, speaker: Speaker) -> u32 {
        let next = u32::try_from(self.voices.len() + 1).unwrap_or(u32::MAX);
        *self.voices.entry(speaker).or_insert(next)
    }

    fn stream(&mut self, scope: &Scope) -> u16 {
        if let Some(known) = self.streams.get(scope) {
            return *known;
        }
        let next = u16::try_from(self.streams.len()).unwrap_or(u16::MAX);
        self.streams.insert(scope.clone(), next);
        next
    }
}

/// See the module's text.
pub(super) struct Writer {
    file: BufWriter<File>,
    written: u64,
    bytes_max: u64,
    began: Monotonic,
    lanes: BTreeMap<Place, Numbers>,
    lanes_seen: u32,
    backlog: Backlog,
}

impl Writer {
    pub(super) fn new(file: File, bytes_max: u64, began: Monotonic, backlog: Backlog) -> Self {
        let (file, lanes) = (BufWriter::new(file), BTreeMap::new());
        Self { file, written: 0, bytes_max, began, lanes, lanes_seen: 0, backlog }
    }

    pub(super) fn begin(&mut self, header: &Header) -> io::Result<()> {
        self.write(header)?;
        self.file.flush()
    }

    /// Until nobody records any more, the file has its full size, or the disk takes no more.
    pub(super) fn run(mut self, entries: &Receiver<Message>) {
        if let Err(error) = self.take(entries) {
            tracing::warn!(%error, "the recording cannot be written any more, and ends");
        }
    }

    fn take(&mut self, entries: &Receiver<Message>) -> io::Result<()> {
        let mut latest = 0;
        loop {
            let message = match entries.try_recv() {
                Ok(message) => message,
                Err(TryRecvError::Disconnected) => Message::Stop,
                Err(TryRecvError::Empty) => {
                    // Nothing waits: what there is can be read by anybody now.
                    self.file.flush()?;
                    let first = entries.recv().unwrap_or(Message::Stop);
                    if matches!(first, Message::Entry(_)) {
                        std::thread::sleep(GATHER);
                    }
                    first
                }
            };
            let Message::Entry(entry) = message else { return self.end(latest) };
            self.backlog.give_back(&entry.what);
            let t = nanos(entry.at.since(self.began));
            latest = latest.max(t);
            self.write_lost(t)?;
            if let Some(line) = self.line(entry, t) {
                self.write(&line)?;
            }
            if self.written >= self.bytes_max {
                self.write(&Line { t, lane: 0, event: Event::Full {} })?;
                self.file.flush()?;
                tracing::warn!(
                    bytes = self.written,
                    "the recording has its full size (server.record_mebibytes), and ends"
                );
                return Ok(());
            }
        }
    }

    fn end(&mut self, t: u64) -> io::Result<()> {
        self.write_lost(t)?;
        self.file.flush()
    }

    fn write_lost(&mut self, t: u64) -> io::Result<()> {
        match self.backlog.take_lost() {
            0 => Ok(()),
            entries => self.write(&Line { t, lane: 0, event: Event::Lost { entries } }),
        }
    }

    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.written += bytes.len() as u64;
        self.file.write_all(&bytes)
    }

    /// Nothing for a lane that joined before the recording knew of it.
    fn line(&mut self, Entry { place, what, .. }: Entry, t: u64) -> Option<Line> {
        if let What::Joined(joined) = what {
            self.lanes_seen += 1;
            let lane = self.lanes_seen;
            self.lanes.insert(place, Numbers { lane, ..Numbers::default() });
            return Some(Line { t, lane, event: Event::Joined(joined) });
        }
        if matches!(what, What::Left) {
            let lane = self.lanes.remove(&place)?.lane;
            return Some(Line { t, lane, event: Event::Left {} });
        }
        let numbers = self.lanes.get_mut(&place)?;
        Some(Line { t, lane: numbers.lane, event: numbers.event(what) })
    }
}

impl Numbers {
    fn of(&mut self, speaker: Speaker, scope: &Scope) -> (u32, u16) {
        (self.voice(speaker), self.stream(scope))
    }

    fn event(&mut self, what: What) -> Event {
        match what {
            What::Joined(joined) => Event::Joined(joined),
            What::Left => Event::Left {},
            What::Changed => Event::Changed {},
            What::Heard { ring, segments } => {
                let segments = segments.iter().map(|(speaker, scope, window, speech)| {
                    let (voice, stream) = self.of(*speaker, scope);
                    [voice.into(), stream.into(), window.start().0, window.end().0, *speech]
                });
                Event::Heard(Heard { segments: segments.collect(), ring: ring.map(ends) })
            }
            What::Selected { speaker, scope, waited } => {
                let (voice, stream) = self.of(speaker, &scope);
                Event::Selected(Selected { voice, stream, waited: nanos(waited) })
            }
            What::Reserved { speaker, scope, spans } => {
                let (voice, stream) = self.of(speaker, &scope);
                Event::Reserved { voice, stream, spans: spans.into_iter().map(ends).collect() }
            }
            What::Denied { speaker, scope, reason } => Event::Denied(self.reason(speaker, &scope, reason)),
            What::Refused { speaker, scope, reason } => Event::Refused(self.reason(speaker, &scope, reason)),
            What::Undelivered { speaker, scope } => {
                let (voice, stream) = self.of(speaker, &scope);
                Event::Undelivered(Of { voice, stream })
            }
            What::Ran { speaker, scope, took, brought } => {
                let (voice, stream) = self.of(speaker, &scope);
                Event::Ran { voice, stream, took: nanos(took), brought: brought == Brought::Voiceprint }
            }
            What::Judged { speaker, scope, class } => {
                let (voice, stream) = self.of(speaker, &scope);
                Event::Judged { voice, stream, class }
            }
            What::Moved { speaker, scope, class } => {
                let (voice, stream) = self.of(speaker, &scope);
                Event::Moved { voice, stream, class }
            }
        }
    }

    fn reason(&mut self, speaker: Speaker, scope: &Scope, reason: &str) -> Reason {
        let (voice, stream) = self.of(speaker, scope);
        Reason { voice, stream, reason: reason.to_owned() }
    }
}

fn ends(span: Span) -> [u64; 2] {
    [span.start().0, span.end().0]
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
