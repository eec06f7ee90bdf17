//! The counters of identity over time: what outlives a conversation, a socket, or a provider that runs voices together.
//!
//! Their names are those of the system we start from. Does not own the accounting counters (see `accounts`): no sum ties
//! these to any other, so they move without the accounts' lock.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use crate::labels::{Carried, Reconnect, Target};

/// The instruments.
pub(crate) struct Identity {
    rollovers: Counter<u64>,
    reconnects: Counter<u64>,
    collapses: Counter<u64>,
}

impl Identity {
    /// Creates the counters with all their series at 0.
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |name: &'static str, help: &'static str| meter.u64_counter(name).with_description(help).build();
        let identity = Self {
            rollovers: counter(
                "omi_live_speaker_rollover",
                "Named voices at the change to a new conversation, by what carried the name over and whom it is about.",
            ),
            reconnects: counter(
                "omi_owner_reconnect",
                "Attempts to recognise the owner early after a reconnect, by outcome and reason.",
            ),
            collapses: counter(
                "omi_live_speaker_collapse",
                "Runs of segments in which the provider seems to have put several people under one number.",
            ),
        };
        identity.create_series();
        identity
    }

    fn create_series(&self) {
        for carried in Carried::ALL {
            for target in Target::ALL {
                self.rollover(*carried, *target, 0);
            }
        }
        for step in Reconnect::ALL {
            self.reconnect(*step, 0);
        }
        self.collapse(0);
    }

    pub(crate) fn rollover(&self, carried: Carried, target: Target, by: u64) {
        let labels = [KeyValue::new("carried", carried.as_str()), KeyValue::new("target", target.as_str())];
        self.rollovers.add(by, &labels);
    }

    pub(crate) fn reconnect(&self, step: Reconnect, by: u64) {
        let labels = [KeyValue::new("outcome", step.outcome()), KeyValue::new("reason", step.as_str())];
        self.reconnects.add(by, &labels);
    }

    pub(crate) fn collapse(&self, by: u64) {
        self.collapses.add(by, &[]);
    }
}
