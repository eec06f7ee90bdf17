//! An extraction server that misbehaves as it is told, for tests and for the fault run. It computes nothing: every clip
//! has the same voiceprint.
//!
//! It speaks both protocols: the Open Inference paths of any model, and the embedding service at every other path. It
//! listens on a free port of this machine only, and its threads end with it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::scripted::voice_vector;

use super::http::DEADLINE_HEADER;

/// How often a thread that waits looks whether the server was stopped.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes of a body that is far too long, in pieces.
static FLOOD: [u8; 64 * 1024] = [b'1'; 64 * 1024];

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
    /// Bytes of its body.
    pub body_bytes: usize,
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
    takes_samples: bool,
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
            takes_samples: false,
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

    /// From now on its model takes samples and not features.
    pub fn take_samples(&self) {
        self.shared.state().takes_samples = true;
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
                drop(thread.spawn(move || serve(&open.0, stream)));
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

/// Serves one connection until either side has had enough.
fn serve(shared: &Shared, stream: TcpStream) {
    let mut connection = Connection { shared, stream, unread: Vec::new() };
    let prepared = connection.stream.set_nonblocking(false).is_ok()
        && connection.stream.set_nodelay(true).is_ok()
        && connection.stream.set_read_timeout(Some(LOOK)).is_ok()
        && connection.stream.set_write_timeout(Some(Duration::from_secs(5))).is_ok();
    while prepared
        && let Some(request) = connection.request()
        && connection.answer(request).is_some()
    {}
}

struct Connection<'a> {
    shared: &'a Shared,
    stream: TcpStream,
    unread: Vec<u8>,
}

struct Request {
    is_post: bool,
    seen: Seen,
}

impl Connection<'_> {
    /// Reads more; none when the other side has left or the server stops.
    fn more(&mut self) -> Option<()> {
        let mut piece = [0; 16 * 1024];
        while !self.shared.is_stopped() {
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => {
                    self.unread.extend_from_slice(piece.get(..count)?);
                    return Some(());
                }
                Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {}
                Err(_) => return None,
            }
        }
        None
    }

    fn request(&mut self) -> Option<Request> {
        let head_bytes = loop {
            match self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => self.more()?,
            }
        };
        let head: Vec<u8> = self.unread.drain(..head_bytes).collect();
        let head = String::from_utf8(head).ok()?;
        let header = |name: &str| {
            let named = head.lines().filter_map(|line| line.split_once(": "));
            named.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
        };
        let body_bytes = header("Content-Length").map_or(Some(0), |value| value.parse().ok())?;
        let mut words = head.split(' ');
        let request = Request {
            is_post: words.next() == Some("POST"),
            seen: Seen {
                path: words.next()?.to_owned(),
                host: header("Host")?.to_owned(),
                deadline_ms: header(DEADLINE_HEADER).and_then(|value| value.parse().ok()),
                body_bytes,
            },
        };
        while self.unread.len() < body_bytes {
            self.more()?;
        }
        self.unread.drain(..body_bytes);
        Some(request)
    }

    /// Answers; none when the connection is to be closed.
    fn answer(&mut self, request: Request) -> Option<()> {
        if request.is_post {
            let is_infer = request.seen.path.ends_with("/infer");
            let manner = self.shared.count(request.seen);
            return self.misbehave(manner, is_infer);
        }
        let Seen { path, .. } = request.seen;
        let dimension = self.shared.dimension;
        if path.ends_with("/ready") {
            let status = if self.shared.state().ready { 200 } else { 503 };
            return self.send(&head(status, 0, None));
        }
        let input = if self.shared.state().takes_samples { "-1,-1" } else { "-1,-1,80" };
        let body = format!(
            r#"{{"name":"any","inputs":[{{"name":"x","datatype":"FP32","shape":[{input}]}}],"outputs":[{{"name":"y","datatype":"FP32","shape":[-1,{dimension}]}}]}}"#
        );
        self.send(&[head(200, body.len(), None), body.into_bytes()].concat())
    }

    fn misbehave(&mut self, manner: Manner, is_infer: bool) -> Option<()> {
        let dimension = self.shared.dimension;
        let good = voice_vector(400.0, dimension);
        let well = reply(&good, dimension, is_infer);
        let half = well.len() - 16;
        match manner {
            Manner::Well => self.send(&well),
            Manner::Dies => None,
            Manner::Stalls => self.stall(),
            Manner::StallsMidBody => self.send(well.get(..half)?).and_then(|()| self.stall()),
            Manner::BreaksOff => self.send(well.get(..half)?).and(None),
            Manner::Trickles => well.iter().try_for_each(|byte| {
                std::thread::sleep(LOOK);
                self.send(&[*byte])
            }),
            Manner::Status(status) => self.send(&head(status, 0, None)),
            Manner::Redirects => {
                self.send(b"HTTP/1.1 307 Elsewhere\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
            }
            Manner::Floods => {
                self.send(&head(200, usize::MAX / 4, None))?;
                while !self.shared.is_stopped() {
                    self.send(&FLOOD)?;
                }
                None
            }
            Manner::Babbles => self.send(b"\x16\x03\x01 what is this?\r\n\r\n").and(None),
            Manner::WrongSize => self.send(&reply(&[1.0, 2.0, 3.0], 3, is_infer)),
            Manner::WrongShape => self.send(&reply(&good, dimension + 1, is_infer)),
            Manner::NotANumber => self.send(&reply(&vec![f32::NAN; dimension], dimension, is_infer)),
            Manner::Zeros => self.send(&reply(&vec![0.0; dimension], dimension, is_infer)),
            Manner::AnotherModel => self.send(&reply(&voice_vector(1_000.0, dimension), dimension, is_infer)),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).ok()
    }

    /// Says nothing until the other side leaves or the server stops.
    fn stall(&mut self) -> Option<()> {
        while self.more().is_some() {}
        None
    }
}

fn head(status: u16, length: usize, json: Option<usize>) -> Vec<u8> {
    let json = json.map(|bytes| format!("Inference-Header-Content-Length: {bytes}\r\n")).unwrap_or_default();
    format!("HTTP/1.1 {status} So\r\n{json}Content-Length: {length}\r\n\r\n").into_bytes()
}

/// A whole answer whose head says that it has `size` values.
fn reply(vector: &[f32], size: usize, is_infer: bool) -> Vec<u8> {
    if is_infer {
        let bytes = vector.len() * 4;
        let json = format!(
            r#"{{"outputs":[{{"name":"y","datatype":"FP32","shape":[1,{size}],"parameters":{{"binary_data_size":{bytes}}}}}]}}"#
        );
        let tensor: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
        let head = head(200, json.len() + tensor.len(), Some(json.len()));
        return [head, json.into_bytes(), tensor].concat();
    }
    // A shape that is wrong has a counterpart here: several vectors in one answer.
    let values: Vec<String> = vector.iter().map(f32::to_string).collect();
    let values = values.join(",");
    let json = if size == vector.len() { format!("[{values}]") } else { format!("[[{values}],[{values}]]") };
    [head(200, json.len(), None), json.into_bytes()].concat()
}
