//! The load: sockets in real time, each a conversation of three speakers, and what they hear.
//!
//! Every second another of the three speaks, and at its end its segment is sent. Two are enrolled; the third is a
//! stranger, replaced by a new one now and then, so that there is always somebody to examine and the budget's refill is
//! used up for as long as the measurement takes. All sockets are tasks of one thread, so what they share is plain cells.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::sound::{FRAMES_PER_SECOND, RATE, Sounds};
use crate::client::{Address, ClientError, Events, Heard, Segment, Sender, Start};

/// Time of a frame.
const FRAME: Duration = Duration::from_millis(1000 / FRAMES_PER_SECOND as u64);

/// A stranger is replaced after so many seconds: ten seconds of speech, as much as two queries and more use.
const STRANGER_SECONDS: u32 = 30;

/// Segments whose sending is remembered: a verdict that comes later than a minute is measured by the server alone.
const REMEMBERED: usize = 64;

/// How long a goodbye may take after `stop`: the server waits for its last verdicts.
const GOODBYE_MAX: Duration = Duration::from_secs(30);

/// What happened on all sockets so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Frames sent.
    pub(super) frames: u64,
    /// Frames that left more than a frame's time late.
    pub(super) late: u64,
    /// Sockets that ended without a goodbye.
    pub(super) closed: u64,
    /// Messages that the server refused.
    pub(super) refused: u64,
    /// Queries that failed.
    pub(super) failed: u64,
}

/// What all sockets share.
pub(super) struct Load {
    address: Address,
    sounds: Sounds,
    totals: Cell<Totals>,
    latencies: RefCell<Vec<f64>>,
    is_measuring: Cell<bool>,
    is_stopping: Cell<bool>,
}

/// The part of an event that is looked at.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    status: Option<&'a str>,
    segment_id: Option<&'a str>,
    code: Option<&'a str>,
}

/// When the latest segments were sent, and the number of the first of them.
#[derive(Default)]
struct Sent {
    first: usize,
    at: VecDeque<Instant>,
}

impl Load {
    pub(super) fn new(address: Address) -> Self {
        Self {
            address,
            sounds: Sounds::new(),
            totals: Cell::default(),
            latencies: RefCell::default(),
            is_measuring: Cell::new(false),
            is_stopping: Cell::new(false),
        }
    }

    /// From here on, or no longer, verdicts are measured.
    pub(super) fn measure(&self, on: bool) {
        self.is_measuring.set(on);
    }

    /// Every socket stops after its next frame.
    pub(super) fn stop(&self) {
        self.is_stopping.set(true);
    }

    pub(super) fn totals(&self) -> Totals {
        self.totals.get()
    }

    /// Milliseconds from segment to verdict, ascending.
    pub(super) fn latencies(&self) -> Vec<f64> {
        let mut latencies = self.latencies.borrow().clone();
        latencies.sort_by(f64::total_cmp);
        latencies
    }

    /// Opens a socket, and lets it talk until [`Load::stop`].
    pub(super) async fn open(self: &Rc<Self>, index: u32) -> Result<JoinHandle<()>, ClientError> {
        let (mut sender, mut events) = self.address.connect().await?;
        let id = format!("bench-{index}");
        let start = Start { recording: id.clone(), conversation: id, sample_rate: RATE, verbose: false };
        sender.start(&start).await?;
        let load = self.clone();
        Ok(tokio::task::spawn_local(async move {
            let sent = RefCell::new(Sent::default());
            let ended = tokio::select! {
                biased;
                ended = load.hear(&mut events, &sent) => ended,
                broken = load.talk(index, &mut sender, &sent) => broken.is_ok(),
            };
            if !ended {
                load.add(|totals| totals.closed += 1);
            }
        }))
    }

    fn add(&self, change: impl FnOnce(&mut Totals)) {
        let mut totals = self.totals.get();
        change(&mut totals);
        self.totals.set(totals);
    }

    /// Ends with an error when the connection broke; otherwise the goodbye ends it from outside.
    async fn talk(&self, index: u32, sender: &mut Sender, sent: &RefCell<Sent>) -> Result<(), ClientError> {
        let started = Instant::now();
        for frame in 0_u32.. {
            let due = started + FRAME * frame;
            sleep_until(due).await;
            let second = frame / FRAMES_PER_SECOND;
            sender.audio(self.sound(index, second, frame)).await?;
            let is_late = due.elapsed() > FRAME;
            self.add(|totals| {
                totals.frames += 1;
                totals.late += u64::from(is_late);
            });
            if self.is_stopping.get() {
                break;
            }
            if frame % FRAMES_PER_SECOND == FRAMES_PER_SECOND - 1 {
                sent.borrow_mut().push();
                sender.segments(&[segment(second)]).await?;
            }
        }
        sender.stop().await?;
        tokio::time::sleep(GOODBYE_MAX).await;
        Err(ClientError::Stuck)
    }

    fn sound(&self, index: u32, second: u32, frame: u32) -> bytes::Bytes {
        match second % 3 {
            0 => self.sounds.person(index, frame),
            1 => self.sounds.person(index + 1, frame),
            _ => self.sounds.stranger(index + second / STRANGER_SECONDS, frame),
        }
    }

    /// Reads until the end; says whether that was a goodbye.
    async fn hear(&self, events: &mut Events, sent: &RefCell<Sent>) -> bool {
        while let Ok(Heard::Event(text)) = events.next().await {
            // An event whose text needs unescaping is none of those that are looked at.
            let Ok(event) = serde_json::from_str::<Event<'_>>(&text) else { continue };
            match (event.kind, event.code) {
                ("goodbye", _) => {
                    self.close(events).await;
                    return self.is_stopping.get();
                }
                ("error", Some("extraction_failed")) => self.add(|totals| totals.failed += 1),
                ("error", _) => self.add(|totals| totals.refused += 1),
                ("speaker", _) if event.status != Some("pending") => self.verdict(&event, &sent.borrow()),
                _ => {}
            }
        }
        false
    }

    /// The server closes after its goodbye.
    async fn close(&self, events: &mut Events) {
        timeout(GOODBYE_MAX, async { while let Ok(Heard::Event(_)) = events.next().await {} }).await.ok();
    }

    fn verdict(&self, event: &Event<'_>, sent: &Sent) {
        let number = event.segment_id.and_then(|id| id.parse().ok());
        if let (true, Some(at)) = (self.is_measuring.get(), number.and_then(|number| sent.of(number))) {
            self.latencies.borrow_mut().push(at.elapsed().as_secs_f64() * 1000.0);
        }
    }
}

/// The two known voices have the numbers 0 and 1, each stranger the next one.
fn segment(second: u32) -> Segment {
    let speaker = match second % 3 {
        two @ (0 | 1) => two,
        _ => 2 + second / STRANGER_SECONDS,
    };
    Segment { id: second.to_string(), speaker: speaker.into(), start: f64::from(second), end: f64::from(second + 1) }
}

impl Sent {
    fn push(&mut self) {
        if self.at.len() == REMEMBERED {
            self.at.pop_front();
            self.first += 1;
        }
        self.at.push_back(Instant::now());
    }

    fn of(&self, number: usize) -> Option<Instant> {
        self.at.get(number.checked_sub(self.first)?).copied()
    }
}
