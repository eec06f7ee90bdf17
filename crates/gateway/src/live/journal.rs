//! Recording of what the schedulers did, for `rollcall simulate --trace`: `rollcall serve --record FILE`.
//!
//! ```text
//!   Conversation ── Recorder ──entries (bounded, never waited for)──▶ writer thread ── numbers anew ──▶ FILE
//! ```
//! Metadata only. Ids, labels, words, audio and voiceprints never come here; recordings, speakers and provider streams are
//! numbered anew on the way to the disk, and times begin with the recording. Recording decides nothing and delays nobody: an
//! entry that finds the writer behind is counted, and the count is written; a server that may make no more files runs without.
//! The lines are [`crate::simulate::trace::line`]'s.

mod recorder;
mod writer;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::clock::Clock;
use crate::simulate::trace::Header;

pub(super) use recorder::{Brought, Recorder, Resumed, told_in};
use writer::{Backlog, Message, Writer};

/// Entries that wait for the disk: a second of a busy server. Beyond it they are lost, counted, and the count is written.
const ENTRIES_MAX: usize = 8192;

/// Recordings of one name that are kept, because none is overwritten: with `server.record_mebibytes` this bounds the disk that
/// a server takes which is started again and again. Beyond it a start records nothing, and says so.
const FILES_MAX: u32 = 10;

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
#[error("server.record {}: cannot be written: {source}; name another file, or leave it out", path.display())]
pub struct JournalError {
    path: PathBuf,
    source: io::Error,
}

/// Where the schedulers' recorders lead to; off, they lead nowhere. Copies are one recording.
#[derive(Clone, Default)]
pub struct Journal(Option<Arc<Recording>>);

struct Recording {
    entries: SyncSender<Message>,
    backlog: Backlog,
    writer: Mutex<Option<JoinHandle<()>>>,
    path: PathBuf,
}

impl Journal {
    /// Records nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self(None)
    }

    /// Records into a new file: at `path`, or, because no recording is overwritten, at the first of `path.1` to `path.9` that
    /// is free. When none is, nothing is recorded. At `bytes_max` the recording ends.
    ///
    /// # Errors
    /// When no file can be made at such a place.
    pub fn start(path: &Path, header: &Header, bytes_max: u64, clock: Clock) -> Result<Self, JournalError> {
        let wrong = |source| JournalError { path: path.to_owned(), source };
        let Some((file, path)) = create(path).map_err(wrong)? else {
            tracing::warn!(
                file = %path.display(),
                files = FILES_MAX,
                "nothing is recorded: as many recordings as are kept of server.record are there; move them away"
            );
            return Ok(Self::off());
        };
        let backlog = Backlog::default();
        let mut writer = Writer::new(file, bytes_max, clock.now(), backlog.clone());
        writer.begin(header).map_err(wrong)?;
        let (entries, received) = sync_channel(ENTRIES_MAX);
        let thread = std::thread::Builder::new().name("journal".to_owned());
        let thread = thread.spawn(move || writer.run(&received)).map_err(wrong)?;
        tracing::info!(file = %path.display(), bytes_max, "what the schedulers do is recorded, as metadata only");
        Ok(Self(Some(Arc::new(Recording { entries, backlog, writer: Mutex::new(Some(thread)), path }))))
    }

    /// The file, when there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.as_ref().map(|recording| recording.path.as_path())
    }

    /// For one scheduler.
    #[must_use]
    pub(super) fn recorder(&self) -> Recorder {
        Recorder::new(self.0.as_ref().map(|recording| (recording.entries.clone(), recording.backlog.clone())))
    }

    /// Ends the recording: what the writer has been told by now is on disk when this returns. Blocks for that long.
    pub fn finish(&self) {
        let Some(recording) = &self.0 else { return };
        // A writer that has ended before hears nothing, and needs not.
        recording.entries.send(Message::Stop).ok();
        let writer = recording.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if writer.is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the recording's thread was lost");
        }
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Journal").field(&self.path()).finish()
    }
}

/// Only its owner may read it: who spoke when is nobody else's business, even without names. None, when every name is taken.
fn create(path: &Path) -> io::Result<Option<(File, PathBuf)>> {
    for number in 0..FILES_MAX {
        let candidate = if number == 0 { path.to_owned() } else { numbered(path, number) };
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&candidate) {
            Ok(file) => return Ok(Some((file, candidate))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
