//! A bound on memory before a frame is buffered: the gate reads the length that a frame declares, and cuts at the
//! header when it is too long. The library behind it would collect the whole frame first and refuse it then.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};

/// A frame declares more than it may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Follows the frames of a byte stream without keeping any of their content.
#[derive(Debug)]
pub(super) struct Gate {
    frame_max: u64,
    text_max: u64,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The first bytes of a frame, until its length is known: at most ten.
    Header { bytes: [u8; 10], have: usize },
    /// The rest of a frame: its mask and its payload.
    Body { left: u64 },
}

const NEW_FRAME: State = State::Header { bytes: [0; 10], have: 0 };
const TEXT: u8 = 1;
const MASK_BYTES: u64 = 4;

impl Gate {
    /// Frames of at most `frame_max` bytes, text frames of at most `text_max`.
    pub(super) const fn new(frame_max: u64, text_max: u64) -> Self {
        Self { frame_max, text_max, state: NEW_FRAME }
    }

    /// Looks at the next bytes of the stream.
    pub(super) fn look(&mut self, mut chunk: &[u8]) -> Result<(), TooLong> {
        while !chunk.is_empty() {
            chunk = match &mut self.state {
                State::Body { left } => {
                    let seen = chunk.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= seen as u64;
                    if *left == 0 {
                        self.state = NEW_FRAME;
                    }
                    chunk.get(seen..).unwrap_or_default()
                }
                State::Header { bytes, have } => {
                    let (Some(place), Some((first, rest))) = (bytes.get_mut(*have), chunk.split_first()) else {
                        return Err(TooLong);
                    };
                    *place = *first;
                    *have += 1;
                    let known = declared(bytes, *have);
                    if let Some(length) = known {
                        let [opcode, masked, ..] = *bytes;
                        self.judge(opcode & 0x0f, length)?;
                        let mask = if masked & 0x80 == 0 { 0 } else { MASK_BYTES };
                        let left = length + mask;
                        self.state = if left == 0 { NEW_FRAME } else { State::Body { left } };
                    }
                    rest
                }
            };
        }
        Ok(())
    }

    const fn judge(&self, opcode: u8, length: u64) -> Result<(), TooLong> {
        let max = if opcode == TEXT { self.text_max } else { self.frame_max };
        if length > max { Err(TooLong) } else { Ok(()) }
    }
}

/// The payload length, once enough of the header is there.
fn declared(bytes: &[u8; 10], have: usize) -> Option<u64> {
    let [_, second, extended @ ..] = bytes;
    match (second & 0x7f, have) {
        (_, 0..2) | (126, 2..4) | (127, 2..10) => None,
        (126, _) => {
            let [high, low, ..] = *extended;
            Some(u64::from(u16::from_be_bytes([high, low])))
        }
        (127, _) => Some(u64::from_be_bytes(*extended)),
        (short, _) => Some(u64::from(short)),
    }
}

/// What the reader of a gated stream knows of it beside its frames.
#[derive(Clone, Default)]
pub(super) struct Behind(Rc<Shared>);

#[derive(Default)]
struct Shared {
    is_too_long: Cell<bool>,
    body: RefCell<Option<Payload>>,
}

impl Behind {
    /// Whether the gate has cut.
    pub(super) fn is_too_long(&self) -> bool {
        self.0.is_too_long.get()
    }

    /// Reads on to the end of the connection and keeps nothing. Bytes that nobody reads would reset the connection
    /// when it ends, and our close frame might be lost with it.
    pub(super) async fn discard(&self) {
        // Taken out: nothing behind the gate is to see another byte.
        let body = self.0.body.take();
        if let Some(mut body) = body {
            while body.next().await.is_some_and(|chunk| chunk.is_ok()) {}
        }
    }
}

/// A request body behind the gate.
pub(super) struct Gated {
    gate: Gate,
    behind: Behind,
}

impl Gated {
    pub(super) fn new(body: Payload, gate: Gate) -> (Self, Behind) {
        let behind = Behind(Rc::new(Shared { is_too_long: Cell::new(false), body: RefCell::new(Some(body)) }));
        (Self { gate, behind: behind.clone() }, behind)
    }
}

impl Stream for Gated {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.behind.is_too_long() {
            return Poll::Ready(None);
        }
        let polled = self.behind.0.body.borrow_mut().as_mut().map(|body| Pin::new(body).poll_next(context));
        let chunk = match polled {
            Some(Poll::Ready(Some(Ok(chunk)))) => chunk,
            Some(other @ (Poll::Ready(_) | Poll::Pending)) => return other,
            None => return Poll::Ready(None),
        };
        if self.gate.look(&chunk).is_ok() {
            return Poll::Ready(Some(Ok(chunk)));
        }
        self.behind.0.is_too_long.set(true);
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a frame is judged by its header, however the bytes arrive, and the next frame is found again.
    //! Method: frames of every header form, cut at every length.

    use super::*;

    fn frame(opcode: u8, payload: usize) -> Vec<u8> {
        let mut bytes = vec![0x80 | opcode];
        match payload {
            0..=125 => bytes.push(0x80 | u8::try_from(payload).unwrap()),
            126..=65_535 => {
                bytes.push(0x80 | 126);
                bytes.extend(u16::try_from(payload).unwrap().to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend((payload as u64).to_be_bytes());
            }
        }
        bytes.extend([0; 4]);
        bytes.extend(std::iter::repeat_n(7, payload));
        bytes
    }

    fn look(bytes: &[u8], chunk: usize) -> Result<(), TooLong> {
        let mut gate = Gate::new(100_000, 1_000);
        bytes.chunks(chunk).try_for_each(|part| gate.look(part))
    }

    #[test]
    fn frames_within_the_limit_pass_in_any_pieces() {
        let stream: Vec<u8> = [frame(2, 0), frame(2, 125), frame(1, 1_000), frame(2, 70_000), frame(9, 3)].concat();
        for chunk in [1, 2, 3, 7, 4_096, stream.len()] {
            assert_eq!(look(&stream, chunk), Ok(()), "pieces of {chunk} bytes");
        }
    }

    #[test]
    fn a_frame_too_long_is_cut_at_its_header() {
        let gibibyte = [vec![0x82, 0x80 | 127], (1_u64 << 30).to_be_bytes().to_vec()].concat();
        let stream = [frame(2, 5), gibibyte].concat();
        for chunk in [1, 3, stream.len()] {
            assert_eq!(look(&stream, chunk), Err(TooLong), "pieces of {chunk} bytes");
        }
        assert_eq!(look(&frame(1, 1_001), 4_096), Err(TooLong), "text has its own limit");
        assert_eq!(look(&[0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 1), Err(TooLong));
    }
}
