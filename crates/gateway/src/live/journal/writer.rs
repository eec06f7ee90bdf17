//! The recording's thread: numbers lanes, voices and streams anew, and writes lines until there are as many bytes as there may
//! be. Nobody waits for it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
    Changed,
    Left,
}

/// Entries that found no room.
#[derive(Debug, Clone, Default)]
pub(super) struct Losses(Arc<AtomicU64>);

impl Losses {
    pub(super) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// The new numbers of one lane. They go with the lane, so at most as many are held as lanes are open.
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
    losses: Losses,
}

impl Writer {
    pub(super) fn new(file: File, bytes_max: u64, began: Monotonic, losses: Losses) -> Self {
        let (file, lanes) = (BufWriter::new(file), BTreeMap::new());
        Self { file, written: 0, bytes_max, began, lanes, lanes_seen: 0, losses }
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
        loop {
            let message = match entries.try_recv() {
                Ok(message) => message,
                Err(TryRecvError::Disconnected) => Message::Stop,
                Err(TryRecvError::Empty) => {
                    // Nothing waits: what there is can be read by anybody now.
                    self.file.flush()?;
                    entries.recv().unwrap_or(Message::Stop)
                }
            };
            let Message::Entry(entry) = message else { return self.file.flush() };
            let t = nanos(entry.at.since(self.began));
            let lost = self.losses.take();
            if lost > 0 {
                self.write(&Line { t, lane: 0, event: Event::Lost { entries: lost } })?;
            }
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
