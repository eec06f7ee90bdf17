//! What a device keeps of its owner: how the one voice sounds that is the owner by its own full evidence, on the stream that
//! is current. Renewed at most every thirty seconds, withdrawn as soon as no voice is the owner any more.

use matcher_core::Status;

use crate::reference::tally::Rule;
use crate::reference::words::Name;

use super::hearing::{Vector, owner};
use super::lane::{FLOOR, Lane};
use super::receipt::Ruled;
use super::voice::{Device, Voice};

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

/// What the device keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum InStore {
    Nothing,
    /// The owner of the conversation before a rollover.
    FromBefore,
    Here(Kept),
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
            if self.kept == InStore::Nothing || self.voices.iter().any(|voice| self.is_owner_by_evidence(voice)) {
                return None;
            }
            self.rules.saw(Rule::Withdrawn);
            self.kept = InStore::Nothing;
            return Some(Keepsake::Withdraw);
        };
        if let InStore::Here(before) = self.kept {
            let is_another = before.voice != kept.voice || before.receipt != kept.receipt;
            let is_due = before.observed < kept.observed && before.at + EVERY <= now;
            if !is_another && !is_due {
                return None;
            }
            self.rules.saw(Rule::KeptAgain);
        }
        self.rules.saw(Rule::Kept);
        self.kept = InStore::Here(kept);
        Some(Keepsake::Keep(kept))
    }

    fn is_owner_by_evidence(&self, voice: &Voice) -> bool {
        voice.status() == Some(Status::User) && self.ruled(voice.name) == Ruled::Free
    }

    fn keeper(&self, now: u64) -> Option<Kept> {
        let current = self.current?;
        let is_owner_here = |voice: &&Voice| voice.name.1 == current && self.is_owner_by_evidence(voice);
        let owners: Vec<&Voice> = self.voices.iter().filter(is_owner_here).collect();
        let [voice] = owners.as_slice() else { return None };
        let (half_seconds, observed, receipt) = (voice.half_seconds(), voice.observed?, self.receipt.generation);
        owner(self.people)?;
        let centroid = voice.judged.filter(|_| half_seconds >= FLOOR)?;
        Some(Kept { voice: voice.name, centroid, half_seconds, observed, receipt, at: now })
    }
}
