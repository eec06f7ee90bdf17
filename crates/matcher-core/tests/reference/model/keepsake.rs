//! What a device keeps of its owner: how the one voice sounds that is the owner by its own full evidence, on the stream that
//! is current. Renewed at most every thirty seconds, withdrawn as soon as there is no such voice.

use matcher_core::Status;

use crate::reference::tally::Rule;
use crate::reference::words::Name;

use super::hearing::{Vector, owner};
use super::lane::{FLOOR, Lane};
use super::receipt::Ruled;
use super::voice::Device;

const EVERY: u64 = 30;

/// What was kept last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Kept {
    pub(crate) voice: Name,
    pub(crate) centroid: Vector,
    pub(crate) half_seconds: u64,
    pub(crate) observed: u64,
    pub(crate) receipt: u64,
    at: u64,
}

/// What is to become of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Keepsake {
    Keep(Kept),
    Withdraw,
}

impl Lane {
    pub(crate) fn keepsake(&mut self, now: u64) -> Option<Keepsake> {
        if self.device == Device::Unknown {
            return None;
        }
        let Some(kept) = self.keeper(now) else {
            return self.kept.take().map(|_| self.rules.saw(Rule::Withdrawn)).map(|()| Keepsake::Withdraw);
        };
        if let Some(before) = self.kept {
            let is_another = before.voice != kept.voice || before.receipt != kept.receipt;
            let is_due = before.observed < kept.observed && before.at + EVERY <= now;
            if !is_another && !is_due {
                return None;
            }
            self.rules.saw(Rule::KeptAgain);
        }
        self.rules.saw(Rule::Kept);
        self.kept = Some(kept);
        Some(Keepsake::Keep(kept))
    }

    fn keeper(&self, now: u64) -> Option<Kept> {
        let current = self.current?;
        let mut owners = Vec::new();
        for voice in &self.voices {
            let is_owner = voice.status() == Some(Status::User) && voice.name.1 == current;
            if is_owner && self.ruled(voice.name) == Ruled::Free {
                owners.push(voice);
            }
        }
        let [voice] = owners.as_slice() else { return None };
        let (half_seconds, observed, receipt) = (voice.half_seconds(), voice.observed?, self.receipt.generation);
        owner(self.people)?;
        let centroid = voice.judged.filter(|_| half_seconds >= FLOOR)?;
        Some(Kept { voice: voice.name, centroid, half_seconds, observed, receipt, at: now })
    }
}
