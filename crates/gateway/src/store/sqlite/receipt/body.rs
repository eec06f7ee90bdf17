//! A receipt as JSON: the shape in which it is kept, which no client sees.
//!
//! Reading is strict. Whatever this version would not have written is damage: a correction that is lost or read as another
//! one would give somebody the wrong name. The generation of the whole stands in its own column.

use std::collections::{BTreeMap, BTreeSet};

use matcher_core::policy::Role;
use matcher_core::receipt::{Entry, Named, Reach, Rejection, Ruling, SegmentEntry, Source, VoiceName};
use matcher_core::{PersonId, Receipt, Scope, SegmentId, Speaker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    voices: Vec<Voice>,
    segments: Vec<Segment>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Voice {
    speaker: u32,
    recording: String,
    scope: String,
    generation: u64,
    ruling: Decision,
    #[serde(with = "SourceWord", default, skip_serializing_if = "is_here")]
    source: Source,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Segment {
    segment: String,
    speaker: u32,
    recording: String,
    scope: String,
    #[serde(with = "ReachWord")]
    reach: Reach,
    generation: u64,
    ruling: Decision,
    #[serde(with = "SourceWord", default, skip_serializing_if = "is_here")]
    source: Source,
}

/// The tag stands outside, because an inside tag lets unknown fields through.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Decision {
    Is {
        person: String,
        name: String,
        #[serde(with = "RoleWord")]
        role: Role,
    },
    IsNobody,
    NotMe,
    NotPerson {
        person: String,
    },
    NotAPerson,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Reach", rename_all = "snake_case")]
enum ReachWord {
    Voice,
    SegmentOnly,
}

/// Left out where a decision was made here, as in every receipt from before there was anything else.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Source", rename_all = "snake_case")]
enum SourceWord {
    Here,
    Carried,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
const fn is_here(source: &Source) -> bool {
    matches!(source, Source::Here)
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Role", rename_all = "snake_case")]
enum RoleWord {
    Owner,
    Person,
}

pub(super) fn text(receipt: &Receipt) -> String {
    let voices = receipt.voices().map(|(voice, entry)| Voice {
        speaker: voice.speaker.0,
        recording: voice.scope.recording().to_owned(),
        scope: voice.scope.to_string(),
        generation: entry.generation,
        ruling: Decision::of(&entry.ruling),
        source: entry.source,
    });
    let segments = receipt.segments().map(|(segment, held)| Segment {
        segment: segment.to_string(),
        speaker: held.voice.speaker.0,
        recording: held.voice.scope.recording().to_owned(),
        scope: held.voice.scope.to_string(),
        reach: held.reach,
        generation: held.entry.generation,
        ruling: Decision::of(&held.entry.ruling),
        source: held.entry.source,
    });
    let body = Body { voices: voices.collect(), segments: segments.collect() };
    serde_json::to_string(&body).expect("texts, numbers and lists of them always become JSON")
}

/// Reads what [`text`] wrote, or says what is wrong with it.
pub(super) fn parse(generation: i64, text: &[u8]) -> Result<Receipt, String> {
    let of = u64::try_from(generation).ok().filter(|of| *of > 0);
    let of = of.ok_or_else(|| format!("its generation is {generation}"))?;
    let body: Body = serde_json::from_slice(text).map_err(|reason| reason.to_string())?;

    let mut voices = BTreeMap::new();
    for voice in body.voices {
        let name = voice_name(voice.speaker, &voice.recording, &voice.scope);
        let kept = voices.insert(name, entry(voice.generation, of, (voice.ruling, voice.source))?);
        refuse_twice(kept.is_some(), || format!("voice {} of {:?}", voice.speaker, voice.scope))?;
    }
    let (mut segments, mut known) = (Vec::new(), BTreeSet::new());
    for segment in body.segments {
        let held = SegmentEntry {
            voice: voice_name(segment.speaker, &segment.recording, &segment.scope),
            reach: segment.reach,
            entry: entry(segment.generation, of, (segment.ruling, segment.source))?,
        };
        let is_twice = !known.insert((segment.recording, segment.segment.clone()));
        refuse_twice(is_twice, || format!("segment {:?}", segment.segment))?;
        segments.push((SegmentId::new(&segment.segment), held));
    }
    Receipt::restore(of, voices, segments).map_err(|full| full.to_string())
}

fn voice_name(speaker: u32, recording: &str, scope: &str) -> VoiceName {
    VoiceName { speaker: Speaker(speaker), scope: Scope::of(recording, scope) }
}

/// An entry from after the receipt's newest edit would win against every edit to come.
fn entry(generation: u64, of: u64, (decision, source): (Decision, Source)) -> Result<Entry, String> {
    if !(1..=of).contains(&generation) {
        return Err(format!("an entry has generation {generation}, and the receipt has {of}"));
    }
    Ok(Entry { generation, ruling: decision.into_ruling(), source })
}

fn refuse_twice(is_twice: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if is_twice { Err(format!("{} has two entries", what())) } else { Ok(()) }
}

impl Decision {
    fn of(ruling: &Ruling) -> Self {
        match ruling {
            Ruling::Is(named) => {
                Self::Is { person: named.person.to_string(), name: named.name.to_string(), role: named.role }
            }
            Ruling::IsNobody => Self::IsNobody,
            Ruling::Not(Rejection::NotMe) => Self::NotMe,
            Ruling::Not(Rejection::NotPerson(person)) => Self::NotPerson { person: person.to_string() },
            Ruling::Not(Rejection::NotAPerson) => Self::NotAPerson,
        }
    }

    fn into_ruling(self) -> Ruling {
        match self {
            Self::Is { person, name, role } => {
                Ruling::Is(Named { person: PersonId::new(&person), name: name.into(), role })
            }
            Self::IsNobody => Ruling::IsNobody,
            Self::NotMe => Ruling::Not(Rejection::NotMe),
            Self::NotPerson { person } => Ruling::Not(Rejection::NotPerson(PersonId::new(&person))),
            Self::NotAPerson => Ruling::Not(Rejection::NotAPerson),
        }
    }
}
