//! The thread that empties a queue: batch after batch to the collector, and a pause when that is away.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::{Shared, Shipment};
use crate::labels::Exported;
use crate::logs;
use crate::otlp::Target;
use crate::otlp::client::{Client, NotSent};

/// What the thread owns.
pub(super) struct Ship<T> {
    shared: Arc<Shared<T>>,
    client: Client,
    target: Target,
    shipment: Shipment<T>,
    is_failing: bool,
}

impl<T> Ship<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, target: &Target, shipment: Shipment<T>) -> Self {
        Self { shared, client: Client::new(target.patience), target: target.clone(), shipment, is_failing: false }
    }

    /// Sends until the last handle is gone.
    pub(super) fn run(mut self) {
        logs::silence_this_thread();
        while let Some(flush) = self.shared.wait() {
            let is_sent = self.send_all();
            match flush {
                Some(over) if over.try_send(is_sent).is_err() => {
                    tracing::debug!("whoever asked for an export has stopped waiting for it");
                }
                // A collector that is away is not asked again at once, however much waits.
                None if !is_sent => self.pause(),
                Some(_) | None => {}
            }
        }
    }

    fn pause(&self) {
        let until = Instant::now() + self.shared.limits.delay;
        let mut state = self.shared.lock();
        while !state.is_closed && state.flush.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.shared.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Says whether the collector was reached for all of it.
    fn send_all(&mut self) -> bool {
        loop {
            let batch = self.shared.take();
            if batch.is_empty() {
                return true;
            }
            if !self.send(batch) {
                return false;
            }
        }
    }

    fn send(&mut self, batch: Vec<T>) -> bool {
        let count = batch.len() as u64;
        let answer = self.client.post(&self.target, (self.shipment.encode)(&batch));
        let outcome = match answer {
            Ok(body) => {
                self.tell(None);
                self.taken(count, (self.shipment.refused)(&body));
                return true;
            }
            Err(outcome) => outcome,
        };
        self.tell(Some(&outcome.to_string()));
        match outcome {
            NotSent::Refused(_) => self.shared.counts.add(self.shared.signal, Exported::Refused, count),
            NotSent::Later(_) => self.shared.put_back(batch),
        }
        false
    }

    fn taken(&self, count: u64, refused: Option<(u64, String)>) {
        let (refused, reason) = refused.unwrap_or_default();
        let refused = refused.min(count);
        self.shared.counts.add(self.shared.signal, Exported::Sent, count - refused);
        self.shared.counts.add(self.shared.signal, Exported::Refused, refused);
        if refused > 0 {
            tracing::warn!(signal = self.shared.signal.as_str(), refused, reason, "the collector refused a part");
        }
    }

    /// An outage is told when it begins and when it ends.
    fn tell(&mut self, reason: Option<&str>) {
        let signal = self.shared.signal.as_str();
        match reason {
            None if self.is_failing => tracing::info!(signal, "the collector is reached again"),
            Some(reason) if !self.is_failing => tracing::warn!(signal, reason, "the collector is not reached"),
            None | Some(_) => {}
        }
        self.is_failing = reason.is_some();
    }
}
