//! The bounded way to the client. A full outlet means a client that does not read: its socket is closed, and what it
//! has not read yet is not lost on anyone else.
//!
//! Answers that a client's own messages bring about may come faster than any connection takes them. So whoever hands
//! its messages on waits for [`Room`] first: a client that reads is slowed down, and never closed for what it asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, mpsc};

use crate::live::protocol::Event;

/// What goes to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outbound {
    /// A text frame.
    Text(String),
    /// The connection ends, with an RFC 6455 code.
    Close {
        /// The code.
        code: u16,
        /// At most 123 bytes.
        reason: &'static str,
    },
}

/// The sending end. Clones share it.
#[derive(Debug, Clone)]
pub struct Outlet {
    events: mpsc::Sender<Outbound>,
    pressure: Arc<Pressure>,
}

#[derive(Debug, Default)]
struct Pressure {
    has_overflown: AtomicBool,
    overflow: Notify,
    room: Notify,
}

/// Waits for room in an outlet, and does not keep it open. One waits at a time.
#[derive(Debug)]
pub struct Room {
    events: mpsc::WeakSender<Outbound>,
    pressure: Arc<Pressure>,
}

/// The receiving end.
#[derive(Debug)]
pub struct Outflow {
    events: mpsc::Receiver<Outbound>,
    pressure: Arc<Pressure>,
}

/// An outlet that holds `events_max` events.
#[must_use]
pub fn outlet(events_max: usize) -> (Outlet, Outflow) {
    let (sender, receiver) = mpsc::channel(events_max);
    let pressure = Arc::new(Pressure::default());
    (Outlet { events: sender, pressure: pressure.clone() }, Outflow { events: receiver, pressure })
}

impl Outlet {
    /// For whoever hands the client's messages on.
    #[must_use]
    pub fn room(&self) -> Room {
        Room { events: self.events.downgrade(), pressure: self.pressure.clone() }
    }

    pub(super) fn send(&self, event: &Event) {
        self.push(Outbound::Text(event.to_json()));
    }

    pub(super) fn close(&self, code: u16, reason: &'static str) {
        self.push(Outbound::Close { code, reason });
    }

    fn push(&self, outbound: Outbound) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.events.try_send(outbound) {
            self.pressure.has_overflown.store(true, Ordering::SeqCst);
            self.pressure.overflow.notify_one();
        }
    }
}

impl Room {
    /// Waits until half of the outlet is free, or one of its ends is gone.
    pub async fn wait(&self) {
        while self.is_scarce() {
            self.pressure.room.notified().await;
        }
    }

    fn is_scarce(&self) -> bool {
        let events = self.events.upgrade();
        events.is_some_and(|events| !events.is_closed() && events.capacity() < events.max_capacity() / 2)
    }
}

impl Outflow {
    /// Whether the client let more events wait than the outlet holds.
    #[must_use]
    pub fn has_overflown(&self) -> bool {
        self.pressure.has_overflown.load(Ordering::SeqCst)
    }

    /// The next thing to send; `None` when the socket has ended. An overflow goes before everything that waits.
    pub async fn next(&mut self) -> Option<Outbound> {
        const TOO_SLOW: Outbound = Outbound::Close { code: 1008, reason: "too slow: events were not read in time" };
        if self.has_overflown() {
            return Some(TOO_SLOW);
        }
        let outbound = tokio::select! {
            biased;
            () = self.pressure.overflow.notified() => Some(TOO_SLOW),
            outbound = self.events.recv() => outbound,
        };
        self.pressure.room.notify_one();
        outbound
    }
}

/// Nobody is to wait for room in an outlet that nothing leaves any more.
impl Drop for Outflow {
    fn drop(&mut self) {
        self.events.close();
        self.pressure.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a client that reads is slowed down and never closed for its own questions; one that does not read is closed.
    //! Method: an outlet of four; the waits are polled by hand.

    use futures_util::FutureExt as _;

    use super::*;

    fn text(number: u8) -> Outbound {
        Outbound::Text(number.to_string())
    }

    #[test]
    fn room_is_there_while_half_of_the_outlet_is_free_and_comes_back_with_what_leaves() {
        let (outlet, mut outflow) = outlet(4);
        let room = outlet.room();
        (0..2).for_each(|number| outlet.push(text(number)));
        assert_eq!(room.wait().now_or_never(), Some(()));
        outlet.push(text(2));
        let mut waiting = Box::pin(room.wait());
        assert_eq!(waiting.as_mut().now_or_never(), None);
        assert_eq!(outflow.next().now_or_never(), Some(Some(text(0))));
        assert_eq!(waiting.now_or_never(), Some(()));
    }

    #[test]
    fn nobody_waits_for_room_in_an_outlet_whose_end_is_gone() {
        for sender_first in [true, false] {
            let (outlet, outflow) = outlet(4);
            let room = outlet.room();
            (0..4).for_each(|number| outlet.push(text(number)));
            let mut waiting = Box::pin(room.wait());
            assert_eq!(waiting.as_mut().now_or_never(), None);
            if sender_first {
                drop((outlet, outflow))
            } else {
                drop((outflow, outlet))
            }
            assert_eq!(waiting.now_or_never(), Some(()));
        }
    }

    #[test]
    fn an_overflow_goes_before_everything_that_waits() {
        let (outlet, mut outflow) = outlet(2);
        (0..3).for_each(|number| outlet.push(text(number)));
        let next = outflow.next().now_or_never();
        assert!(matches!(next, Some(Some(Outbound::Close { code: 1008, .. }))), "{next:?}");
    }
}
