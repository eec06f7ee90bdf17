//! Who spoke, as far as anybody knows by now: what people decided, and only where they decided nothing what the voice's
//! evidence said last. Pure.
//!
//! For a segment the newest of its own entry, its voice's entry and a rejection that speaks for the voice holds, a
//! rejection on ties. An entry for one segment alone says nothing about another.

use std::collections::BTreeMap;

use matcher_core::receipt::{self, Entry, Reach, Receipt, Ruling, SegmentEntry, Standing, VoiceName};
use matcher_core::{Role, Scope, Speaker, Status};
use serde::Serialize;

use crate::store::VoiceRecord;

/// The names of everyone who is enrolled, by id.
pub type Names = BTreeMap<String, String>;

/// Where a truth comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The voice's evidence.
    Automatic,
    /// A person decided it, in this conversation.
    Manual,
    /// Brought along from the conversation before.
    Carried,
    /// Nothing is known.
    None,
}

/// The decision behind a truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Manual {
    /// The receipt's generation after it.
    pub generation: u64,
    /// Whether it is for this segment alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub segment_only: bool,
}

/// Who a voice or a segment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Truth {
    /// The status on the wire.
    pub status: String,
    /// Who it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person_id: Option<String>,
    /// The name to show: today's, and that of the time for somebody who is no longer enrolled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person_name: Option<String>,
    /// Where this comes from.
    pub source: Source,
    /// The decision, when people made one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manual: Option<Manual>,
}

/// What people decided about one voice and its segments.
#[derive(Debug)]
pub struct Rulings<'a> {
    names: &'a Names,
    /// What holds for the whole voice, and for each segment that has nothing newer.
    wide: Option<&'a Entry>,
    own: BTreeMap<&'a str, &'a SegmentEntry>,
    /// Another voice is the owner by word of a person, so that this one's evidence may not say so.
    is_owner_taken: bool,
}

impl<'a> Rulings<'a> {
    /// Those of a voice in a receipt, told with today's names.
    #[must_use]
    pub fn of(voice: &VoiceName, receipt: &'a Receipt, names: &'a Names) -> Self {
        let own: BTreeMap<_, _> =
            receipt.segments().filter(|(_, held)| held.voice == *voice).map(|(id, held)| (id.as_str(), held)).collect();
        let wide = receipt.voices().find(|(name, _)| *name == voice).map(|(_, entry)| entry);
        let standing = receipt.standing(voice);
        let is_owner_taken = standing == Standing::Free && receipt.is_owner_reserved();
        let spoken = own.values().filter(|held| held.reach == Reach::Voice).map(|held| &held.entry);
        let rejections = wide.into_iter().chain(spoken).filter(|entry| is_rejection(entry));
        let wide = match standing {
            Standing::Rejected => rejections.max_by_key(|entry| entry.generation),
            Standing::Free | Standing::Named(..) | Standing::Nobody | Standing::Silenced => wide,
        };
        Self { names, wide, own, is_owner_taken }
    }

    /// Who the voice is; `record` is what its evidence said last.
    #[must_use]
    pub fn of_voice(&self, record: Option<&VoiceRecord>) -> Truth {
        self.truth(None, record)
    }

    /// Who one of its segments is.
    #[must_use]
    pub fn of_segment(&self, segment: &str, record: Option<&VoiceRecord>) -> Truth {
        self.truth(self.own.get(segment).copied(), record)
    }

    fn truth(&self, own: Option<&SegmentEntry>, record: Option<&VoiceRecord>) -> Truth {
        let own = own.map(|held| (&held.entry, held.reach == Reach::SegmentOnly));
        let decisions = own.into_iter().chain(self.wide.map(|entry| (entry, false)));
        match decisions.max_by_key(|(entry, _)| (entry.generation, is_rejection(entry))) {
            Some((entry, segment_only)) => self.decided(entry, segment_only),
            None => record.map_or_else(Truth::unknown, |record| self.heard(record)),
        }
    }

    fn decided(&self, entry: &Entry, segment_only: bool) -> Truth {
        let (status, person) = match &entry.ruling {
            Ruling::Is(named) if named.role == Role::Owner => (Status::User, Some(named)),
            Ruling::Is(named) => (Status::NotUser, Some(named)),
            Ruling::IsNobody | Ruling::Not(_) => (Status::NoMatch, None),
        };
        let name = |named: &receipt::Named| self.name(named.person.as_str()).unwrap_or_else(|| named.name.to_string());
        Truth {
            status: status.as_str().to_owned(),
            person_id: person.map(|named| named.person.to_string()),
            person_name: person.map(name),
            source: match entry.source {
                receipt::Source::Here => Source::Manual,
                receipt::Source::Carried => Source::Carried,
            },
            manual: Some(Manual { generation: entry.generation, segment_only }),
        }
    }

    /// What the evidence said, as far as it still may: it names nobody who is no longer enrolled, and no second owner.
    fn heard(&self, record: &VoiceRecord) -> Truth {
        let nobody = |status: Status| (status.as_str().to_owned(), None, None);
        let name = record.person.as_deref().and_then(|person| self.name(person));
        let (status, person_id, person_name) = match (&record.person, name) {
            (Some(_), None) => nobody(Status::NoMatch),
            (Some(_), Some(_)) if self.is_owner_taken && record.status == Status::User.as_str() => {
                nobody(Status::Ambiguous)
            }
            (person, name) => (record.status.clone(), person.clone(), name),
        };
        let source = if status == Status::Pending.as_str() { Source::None } else { origin(&record.origin) };
        Truth { status, person_id, person_name, source, manual: None }
    }

    fn name(&self, person: &str) -> Option<String> {
        self.names.get(person).cloned()
    }
}

impl Truth {
    fn unknown() -> Self {
        let status = Status::Pending.as_str().to_owned();
        Self { status, person_id: None, person_name: None, source: Source::None, manual: None }
    }
}

/// The name of a recorded voice in a receipt.
#[must_use]
pub fn voice_name(recording: &str, speaker: u32, scope: &str) -> VoiceName {
    VoiceName { speaker: Speaker(speaker), scope: Scope::of(recording, scope) }
}

fn is_rejection(entry: &Entry) -> bool {
    matches!(entry.ruling, Ruling::Not(_))
}

fn origin(on_the_wire: &str) -> Source {
    match on_the_wire {
        "manual" => Source::Manual,
        "carried" => Source::Carried,
        _ => Source::Automatic,
    }
}
