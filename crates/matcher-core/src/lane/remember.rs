//! What of a lane outlives it, and how it comes back.

use std::collections::BTreeMap;

use super::{Authority, Lane, Told, VoiceRecord, Work};
use crate::exit::ExitReason;
use crate::ids::{RequestId, Scope};
use crate::memory::{Heard, Memory, NamedBy, Remembered};
use crate::queue::Voice;
use crate::receipt::VoiceName;

impl Lane {
    /// The lane ends: what it knows, and its open queries.
    pub(crate) fn leave(self) -> (Memory, BTreeMap<RequestId, Work>) {
        let owner = self.gallery.owner().map(|print| print.embedding.clone());
        let voices = self.voices.iter().filter_map(|(voice, record)| self.remembered(*voice, record)).collect();
        let voices: Vec<Remembered> = voices;
        let is_used = |scope: &Scope| voices.iter().any(|voice| voice.name.scope == *scope);
        let scopes = self.scopes.into_iter().filter(is_used).collect();
        (Memory { owner, donors: self.donors, scopes, is_kept: self.kept.is_some(), voices }, self.work)
    }

    fn remembered(&self, voice: Voice, record: &VoiceRecord) -> Option<Remembered> {
        if record.row.is_none() && record.identity.is_none() && record.evidence.samples() == 0 {
            return None;
        }
        Some(Remembered {
            name: VoiceName { speaker: voice.speaker, scope: self.scope(voice).clone() },
            evidence: record.evidence.clone(),
            covered: self.queue.covered(voice).cloned().unwrap_or_default(),
            row: record.row.as_ref().map(|row| (row.centroid.clone(), row.decision)),
            identity: record.identity.clone(),
            named_by: if self.ruled(voice).is_free() { NamedBy::Evidence } else { NamedBy::People },
            status: record.status,
            heard: record.heard,
            ground: record.ground.as_deref().cloned(),
        })
    }

    /// The recording goes on in another socket: voices, evidence and names are as they were. The ranges are gone, for the
    /// clock of the audio starts anew.
    pub(super) fn recall(&mut self, memory: Memory) {
        self.donors = memory.donors;
        self.scopes = memory.scopes; // A newer stream stays the newer one.
        for remembered in memory.voices {
            let (identity, status, heard) = (remembered.identity.clone(), remembered.status, remembered.heard);
            let evidence = remembered.evidence.clone();
            let Ok(voice) = self.restore(remembered, heard) else { continue };
            if let Some(record) = self.voices.get_mut(&voice) {
                record.told = Told::NotYet;
                if self.authority == Authority::Read {
                    (record.identity, record.status) = (identity, status);
                }
                record.evidence = evidence; // A competitor's is what it said since.
            }
        }
        let mut nobody_has_heard_yet = Vec::new();
        self.publish(&mut nobody_has_heard_yet);
        assert!(nobody_has_heard_yet.is_empty(), "a voice was published before it was heard");
    }

    /// A voice with its evidence, and nothing published of it.
    pub(super) fn restore(&mut self, remembered: Remembered, heard: Heard) -> Result<Voice, ExitReason> {
        let voice = self.admit(remembered.name.speaker, &remembered.name.scope)?;
        let centroid = remembered.row.map(|(centroid, _)| centroid);
        let record = self.voices.get_mut(&voice).expect("an admitted voice has a record");
        record.heard = heard;
        record.ground = remembered.ground.map(Box::new);
        if heard != Heard::Competing {
            record.evidence = remembered.evidence;
        }
        let record = self.voices.get(&voice).expect("an admitted voice has a record");
        let row = centroid.map(|centroid| Box::new(self.weigh(record, centroid)));
        if let Some(record) = self.voices.get_mut(&voice) {
            record.row = row;
        }
        Ok(voice)
    }
}
