//! An extraction server that misbehaves as it is told, for tests and for the fault run. It computes nothing: every clip
//! has the same voiceprint.
//!
//! It speaks both protocols: the Open Inference paths of any model, and the embedding service at every other path. It
//! listens on a free port of this machine only, and its threads end with it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

mod connection;

/// How often a thread that waits looks whether the server was stopped.
const LOOK: Duration = Duration::from_millis(5);

/// What the server does with a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Answers well.
    Well,
    /// Closes the connection without a word.
    Dies,
    /// Takes the request and says nothing.
    Stalls,
    /// Sends the head and half of the body, and then nothing.
    StallsMidBody,
    /// Sends the body a byte at a time, for ever in time.
    Trickles,
    /// Sends half of the body and closes.
    BreaksOff,
    /// Answers with this status.
    Status(u16),
    /// Sends the asker elsewhere.
    Redirects,
    /// Sends a body without an end.
    Floods,
    /// Sends what is not HTTP.
    Babbles,
    /// Gives a vector of three values.
    WrongSize,
    /// Says that its tensor has another shape than it has.
    WrongShape,
    /// Gives values that are not numbers.
    NotANumber,
    /// Gives nothing but zeros.
    Zeros,
    /// Gives the voiceprint of another model.
    AnotherModel,
}

/// What a request looked like to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its path.
    pub path: String,
    /// Its `Host` header.
    pub host: String,
    /// What was left of its deadline, in milliseconds.
    pub deadline_ms: Option<u64>,
    /// Its `traceparent` header.
    pub traceparent: Option<String>,
    /// Bytes of its body.
    pub body_bytes: usize,
    /// Inputs in its batch; one where it has no batch.
    pub parts: usize,
}

/// The server. Dropping it stops it.
pub struct Hostile {
    shared: Arc<Shared>,
    socket: SocketAddr,
    listening: Option<JoinHandle<()>>,
}

struct Shared {
    dimension: usize,
    state: Mutex<State>,
    connections: AtomicUsize,
}

struct State {
    manner: Manner,
    /// Every so-manieth clip meets the manner; the others are answered well.
    every: usize,
    ready: bool,
    /// The sides of its model's input.
    takes: &'static str,
    stopped: bool,
    clips: usize,
    last: Option<Seen>,
}

impl Hostile {
    /// Starts a server whose voiceprints have `dimension` values, and which answers well.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start(dimension: usize) -> std::io::Result<Self> {
        let state = State {
            manner: Manner::Well,
            every: 1,
            ready: true,
            takes: "-1,-1,80",
            stopped: true,
            clips: 0,
            last: None,
        };
        let shared = Shared { dimension, state: Mutex::new(state), connections: AtomicUsize::new(0) };
        let socket = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut server = Self { shared: Arc::new(shared), socket, listening: None };
        server.revive()?;
        Ok(server)
    }

    /// Its address, as for [`super::Config::endpoints`], with a path behind it.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.socket)
    }

    /// From now on it does this with every so-manieth clip, and answers the others well. Zero counts as one.
    pub fn behave(&self, manner: Manner, every: usize) {
        let mut state = self.shared.state();
        state.manner = manner;
        state.every = every.max(1);
    }

    /// Whether it says that it is ready.
    pub fn say_ready(&self, ready: bool) {
        self.shared.state().ready = ready;
    }

    /// From now on its model's input has these sides, such as `-1,-1,80`, where -1 is any.
    pub fn take(&self, sides: &'static str) {
        self.shared.state().takes = sides;
    }

    /// Clips that it was sent, probes among them.
    #[must_use]
    pub fn clips(&self) -> usize {
        self.shared.state().clips
    }

    /// The last clip's request.
    #[must_use]
    pub fn last(&self) -> Option<Seen> {
        self.shared.state().last.clone()
    }

    /// Connections that are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Stops: nobody listens any more, and every connection is closed. Waits for its threads.
    pub fn die(&mut self) {
        self.shared.state().stopped = true;
        if let Some(thread) = self.listening.take() {
            drop(thread.join());
        }
        while self.connections() > 0 {
            std::thread::sleep(LOOK);
        }
    }

    /// Listens again, on the same port.
    ///
    /// # Errors
    /// When the port was taken meanwhile.
    pub fn revive(&mut self) -> std::io::Result<()> {
        if self.listening.is_some() {
            return Ok(());
        }
        let listener = TcpListener::bind(self.socket)?;
        listener.set_nonblocking(true)?;
        self.socket = listener.local_addr()?;
        self.shared.state().stopped = false;
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("hostile".to_owned());
        self.listening = Some(thread.spawn(move || listen(&shared, &listener))?);
        Ok(())
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.die();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Counts a clip and says what is to be done with it.
    fn count(&self, seen: Seen) -> Manner {
        let mut state = self.state();
        state.clips += 1;
        state.last = Some(seen);
        if state.clips.is_multiple_of(state.every) { state.manner } else { Manner::Well }
    }
}

fn listen(shared: &Arc<Shared>, listener: &TcpListener) {
    while !shared.is_stopped() {
        match listener.accept() {
            Ok((stream, _)) => {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let open = Open(Arc::clone(shared));
                // A connection without a thread is closed.
                let thread = std::thread::Builder::new().name("hostile-conn".to_owned());
                drop(thread.spawn(move || connection::serve(&open.0, stream)));
            }
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Counts an open connection.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}
