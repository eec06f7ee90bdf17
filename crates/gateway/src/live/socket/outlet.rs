//! The bounded way to the client. A full outlet means a client that does not read: its socket is closed, and what it
//! has not read yet is not lost on anyone else.

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
    overflow: Arc<Overflow>,
}

#[derive(Debug, Default)]
struct Overflow {
    happened: AtomicBool,
    notify: Notify,
}

/// The receiving end.
#[derive(Debug)]
pub struct Outflow {
    events: mpsc::Receiver<Outbound>,
    overflow: Arc<Overflow>,
}

/// An outlet that holds `events_max` events.
#[must_use]
pub fn outlet(events_max: usize) -> (Outlet, Outflow) {
    let (sender, receiver) = mpsc::channel(events_max);
    let overflow = Arc::new(Overflow::default());
    (Outlet { events: sender, overflow: overflow.clone() }, Outflow { events: receiver, overflow })
}

impl Outlet {
    pub(super) fn send(&self, event: &Event) {
        self.push(Outbound::Text(event.to_json()));
    }

    pub(super) fn close(&self, code: u16, reason: &'static str) {
        self.push(Outbound::Close { code, reason });
    }

    fn push(&self, outbound: Outbound) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.events.try_send(outbound) {
            self.overflow.happened.store(true, Ordering::SeqCst);
            self.overflow.notify.notify_one();
        }
    }
}

impl Outflow {
    /// The next thing to send; `None` when the socket has ended. An overflow goes before everything that waits.
    pub async fn next(&mut self) -> Option<Outbound> {
        const TOO_SLOW: Outbound = Outbound::Close { code: 1008, reason: "too slow: events were not read in time" };
        if self.overflow.happened.load(Ordering::SeqCst) {
            return Some(TOO_SLOW);
        }
        tokio::select! {
            biased;
            () = self.overflow.notify.notified() => Some(TOO_SLOW),
            outbound = self.events.recv() => outbound,
        }
    }
}
