//! A collector that takes everything and keeps nothing but counts: what an exporting server sends to in a measurement.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module's text. Its threads end with their connections, and the process.
pub(super) struct Sink {
    address: SocketAddr,
    taken: Arc<Taken>,
}

#[derive(Default)]
struct Taken {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Sink {
    /// Listens on a free port of this machine.
    pub(super) fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, taken) = (listener.local_addr()?, Arc::new(Taken::default()));
        let counting = Arc::clone(&taken);
        std::thread::Builder::new().name("sink".to_owned()).spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let taken = Arc::clone(&counting);
                std::thread::spawn(move || serve(stream, &taken));
            }
        })?;
        Ok(Self { address, taken })
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests and bytes of their bodies so far.
    pub(super) fn taken(&self) -> (u64, u64) {
        (self.taken.requests.load(Ordering::SeqCst), self.taken.bytes.load(Ordering::SeqCst))
    }
}

fn serve(stream: TcpStream, taken: &Taken) {
    let Ok(mut answers) = stream.try_clone() else { return };
    let mut requests = BufReader::new(stream);
    while let Some(bytes) = request(&mut requests) {
        taken.requests.fetch_add(1, Ordering::SeqCst);
        taken.bytes.fetch_add(bytes, Ordering::SeqCst);
        if answers.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

/// Reads one request and says how long its body was; none at the end of the connection.
fn request(stream: &mut impl BufRead) -> Option<u64> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let Some((name, value)) = line.split_once(':') else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let read = std::io::copy(&mut stream.take(length), &mut std::io::sink()).ok()?;
    (read == length).then_some(length)
}
