//! One connection of the hostile server: it reads requests, and answers them as well or as badly as it is told.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::remote::http::DEADLINE_HEADER;
use crate::scripted::voice_vector;

use super::{LOOK, Manner, Seen, Shared};

/// Bytes of a body that is far too long, in pieces.
static FLOOD: [u8; 64 * 1024] = [b'1'; 64 * 1024];

/// Serves one connection until either side has had enough.
pub(super) fn serve(shared: &Shared, stream: TcpStream) {
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
        let mut request = Request {
            is_post: words.next() == Some("POST"),
            seen: Seen {
                path: words.next()?.to_owned(),
                host: header("Host")?.to_owned(),
                deadline_ms: header(DEADLINE_HEADER).and_then(|value| value.parse().ok()),
                traceparent: header("traceparent").map(str::to_owned),
                body_bytes,
                parts: 1,
            },
        };
        while self.unread.len() < body_bytes {
            self.more()?;
        }
        let body: Vec<u8> = self.unread.drain(..body_bytes).collect();
        request.seen.parts = parts_of(&body).unwrap_or(1);
        Some(request)
    }

    /// Answers; none when the connection is to be closed.
    fn answer(&mut self, request: Request) -> Option<()> {
        if request.is_post {
            let is_infer = request.seen.path.ends_with("/infer");
            let parts = request.seen.parts;
            let manner = self.shared.count(request.seen);
            if manner == Manner::Well && is_infer && parts > 1 {
                return self.send(&batch(parts, self.shared.dimension));
            }
            return self.misbehave(manner, is_infer);
        }
        let Seen { path, .. } = request.seen;
        let dimension = self.shared.dimension;
        if path.ends_with("/ready") {
            let status = if self.shared.state().ready { 200 } else { 503 };
            return self.send(&head(status, 0, None));
        }
        let input = self.shared.state().takes;
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

/// The first of three sides of the request's input.
fn parts_of(body: &[u8]) -> Option<usize> {
    const SHAPE: &[u8] = b"\"shape\":[";
    let start = body.windows(SHAPE.len()).position(|bytes| bytes == SHAPE)? + SHAPE.len();
    let rest = body.get(start..)?;
    let sides = rest.get(..rest.iter().position(|byte| *byte == b']')?)?;
    let sides: Vec<&str> = std::str::from_utf8(sides).ok()?.split(',').collect();
    if let [parts, _, _] = *sides { parts.parse().ok() } else { None }
}

/// A good answer for a batch: other vectors for each part, whose mean is the voiceprint.
fn batch(parts: usize, dimension: usize) -> Vec<u8> {
    let good = voice_vector(400.0, dimension);
    let aside = |part: usize| match part {
        last if last + 1 == parts && last.is_multiple_of(2) => 0.0,
        even if even.is_multiple_of(2) => 0.25,
        _ => -0.25,
    };
    let vectors: Vec<f32> = (0..parts).flat_map(|part| good.iter().map(move |value| value + aside(part))).collect();
    answer(&vectors, parts, dimension)
}

/// A whole answer whose head says that it has `rows` times `size` values.
fn answer(values: &[f32], rows: usize, size: usize) -> Vec<u8> {
    let bytes = values.len() * 4;
    let json = format!(
        r#"{{"outputs":[{{"name":"y","datatype":"FP32","shape":[{rows},{size}],"parameters":{{"binary_data_size":{bytes}}}}}]}}"#
    );
    let tensor: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let head = head(200, json.len() + tensor.len(), Some(json.len()));
    [head, json.into_bytes(), tensor].concat()
}

/// A whole answer for one clip, whose head says that it has `size` values.
fn reply(vector: &[f32], size: usize, is_infer: bool) -> Vec<u8> {
    if is_infer {
        return answer(vector, 1, size);
    }
    // A shape that is wrong has a counterpart here: several vectors in one answer.
    let values: Vec<String> = vector.iter().map(f32::to_string).collect();
    let values = values.join(",");
    let json = if size == vector.len() { format!("[{values}]") } else { format!("[[{values}],[{values}]]") };
    [head(200, json.len(), None), json.into_bytes()].concat()
}
