//! What people decide, as a store and a conversation's actor would bring it to the core; and results whose authority
//! could not be read. `moves` moves lanes, this changes what holds for their voices.

use matcher_core::budget::Outcome;
use matcher_core::receipt::{Correction, Named, Reach, Receipt, Rejection, Ruling, Subject, VoiceName};
use matcher_core::{Donor, Embedding, PersonId, Role, Scope, SegmentId, Speaker};

use super::{Driver, Open};

pub(crate) fn voice_in(scope: &str, speaker: u32) -> VoiceName {
    VoiceName { speaker: Speaker(speaker), scope: Scope::new(scope) }
}

pub(crate) fn is(person: &str, role: Role) -> Ruling {
    Ruling::Is(Named { person: PersonId::new(person), name: person.into(), role })
}

pub(crate) fn not_me() -> Ruling {
    Ruling::Not(Rejection::NotMe)
}

pub(crate) fn segment(id: &str, reach: Reach) -> Subject {
    Subject::Segments(vec![SegmentId::new(id)], reach)
}

impl Driver {
    /// Corrects a voice in the conversation that the lane is in.
    pub(crate) fn correct(&mut self, voice: VoiceName, subject: Subject, ruling: Ruling) {
        self.correct_in(self.lane().conversation, voice, subject, ruling);
    }

    /// Corrects a voice in any conversation, also in one that the lane has left.
    pub(crate) fn correct_in(&mut self, conversation: usize, voice: VoiceName, subject: Subject, ruling: Ruling) {
        let mut receipt = self.conversations[conversation].receipt().clone();
        receipt.correct(&Correction { voice, subject, ruling }).expect("a test's receipt has room");
        self.hear_receipt(conversation, receipt);
    }

    pub(crate) fn hear_receipt(&mut self, conversation: usize, receipt: Receipt) {
        let mut out = Vec::new();
        self.conversations[conversation].handle_receipt(receipt, &mut out);
        self.perform(conversation, out);
    }

    /// What a conversation answers when another one asks what people decided in it.
    pub(crate) fn word_of(&self, conversation: usize) -> Donor {
        Donor::Read(self.conversations[conversation].receipt().clone().into())
    }

    /// The open query at this position brings a voiceprint, and what people decided cannot be read.
    pub(crate) fn extract_unauthorised(&mut self, at: usize, vector: [f32; 2]) {
        let Open { conversation, request, lane, reservation, .. } = self.open.remove(at);
        self.settle(lane, reservation, Outcome::Extracted);
        let mut out = Vec::new();
        let embedding = Embedding::new(&vector).expect("scripted vectors are voiceprints");
        self.conversations[conversation].handle_unauthorised(request, embedding, self.now, &mut out);
        self.perform(conversation, out);
    }
}
