//! Who talks, and how the model would hear them: voiceprints that are given, not extracted, and what a recorded lane's
//! verdicts were.

use std::collections::{BTreeMap, BTreeSet};

use matcher_core::policy::{Policy, Print, Role, Suggestions, Verdict};
use matcher_core::queue::{NearOwner, Voice};
use matcher_core::{Centroid, Embedding, Gallery, PersonId, Speaker};
use serde::{Deserialize, Serialize};

/// The owner's number in every scenario.
pub(super) const OWNER: u32 = 0;
/// Enrolled people beside the owner have the numbers from here up to, not including, [`REJECTOR`].
pub(super) const FRIEND: u32 = 1;
/// A stranger who sounds nearly like the owner: examined before other strangers, and never named.
pub(super) const REJECTOR: u32 = 4;
/// Strangers have the numbers from here on.
pub(super) const STRANGER: u32 = 5;

/// Strangers from here on sound as near to the owner as the rejector.
pub(super) const IMPOSTOR: u32 = 30_000;

/// Axes: one a person, one for the rejector, one for all strangers.
const DIMENSION: usize = 6;
/// The rejector's cosine distance to the owner is 0.72: no near miss, and near enough to be preferred.
const NEARLY: [f32; DIMENSION] = [0.28, 0.0, 0.0, 0.0, 0.96, 0.0];

/// How well a voice can be heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hearing {
    /// As it is.
    Clear,
    /// Through so much noise that it sounds like nobody.
    Noisy,
}

/// What a verdict says of a voice, as far as the order of examination asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// There is too little evidence.
    Pending,
    /// It is the owner.
    Owner,
    /// It is somebody else who is enrolled.
    Person,
    /// It is nobody, and nearly was the owner.
    NearOwner,
    /// It is nobody.
    Nobody,
}

impl Class {
    pub(super) const fn is_named(self) -> bool {
        matches!(self, Self::Owner | Self::Person)
    }

    pub(super) const fn is_rejected(self) -> bool {
        matches!(self, Self::NearOwner | Self::Nobody)
    }

    pub(super) const fn near_owner(self) -> NearOwner {
        match self {
            Self::NearOwner => NearOwner::Near,
            Self::Pending | Self::Owner | Self::Person | Self::Nobody => NearOwner::Far,
        }
    }
}

/// Who somebody is in truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Owner,
    Person,
    Stranger,
}

/// Who has which number, and what the model says of them.
#[derive(Debug, Clone)]
pub(super) enum Cast {
    /// A scenario's: numbers say it, and verdicts are the core's own over the voiceprints here.
    Scripted,
    /// A recorded lane's: what was said of each voice, verdict after verdict.
    Recorded(BTreeMap<Voice, Vec<Class>>),
}

impl Cast {
    pub(super) fn part(&self, speaker: Speaker) -> Part {
        match self {
            Self::Scripted if speaker.0 == OWNER => Part::Owner,
            Self::Scripted if speaker.0 < REJECTOR => Part::Person,
            Self::Scripted => Part::Stranger,
            Self::Recorded(told) => {
                let of = |class| told.iter().any(|(voice, said)| voice.speaker == speaker && said.contains(&class));
                match (of(Class::Owner), of(Class::Person)) {
                    (true, _) => Part::Owner,
                    (false, true) => Part::Person,
                    (false, false) => Part::Stranger,
                }
            }
        }
    }

    /// The numbers that are the owner's.
    pub(super) fn owners(&self) -> BTreeSet<Speaker> {
        match self {
            Self::Scripted => BTreeSet::from([Speaker(OWNER)]),
            Self::Recorded(told) => {
                let owners = told.iter().filter(|(_, said)| said.contains(&Class::Owner));
                owners.map(|(voice, _)| voice.speaker).collect()
            }
        }
    }

    /// The verdict on a voice after so many answered queries, when there is evidence enough for one.
    pub(super) fn verdict(&self, voice: Voice, answered: usize, centroid: Option<Centroid>) -> Option<Class> {
        match self {
            Self::Scripted => centroid.map(|centroid| class_of(&centroid)),
            Self::Recorded(told) => {
                let said = told.get(&voice).map(Vec::as_slice).unwrap_or_default();
                said.get(answered.saturating_sub(1)).or(said.last()).copied()
            }
        }
    }
}

fn class_of(centroid: &Centroid) -> Class {
    let decision = POLICY.decide(&gallery().distances(centroid));
    match (decision.verdict, decision.best.map(|best| best.role)) {
        (Verdict::Accepted, Some(Role::Owner)) => Class::Owner,
        (Verdict::Accepted, _) => Class::Person,
        (Verdict::Nobody, _) if POLICY.is_near_owner(&decision) => Class::NearOwner,
        (Verdict::Nobody, _) => Class::Nobody,
    }
}

/// What the model makes of a voice, whatever it says.
pub(super) fn heard(speaker: Speaker, hearing: Hearing) -> Embedding {
    match (hearing, speaker.0) {
        (Hearing::Noisy, _) => axis(STRANGER),
        (Hearing::Clear, REJECTOR | IMPOSTOR..) => {
            Embedding::new(&NEARLY).expect("the rejector's voice is a direction")
        }
        (Hearing::Clear, number) => axis(number.min(STRANGER)),
    }
}

/// Everybody who is enrolled.
pub(super) fn gallery() -> Gallery {
    let print = |number: u32| Print {
        person: PersonId::new(&format!("person-{number}")),
        name: "Somebody".into(),
        role: if number == OWNER { Role::Owner } else { Role::Person },
        embedding: axis(number),
        is_pinned: false,
    };
    Gallery::new((OWNER..REJECTOR).map(print).collect())
}

/// Distances that scripted voices are decided by. They are equal or at right angles, so any model's would do.
pub(crate) const POLICY: Policy = Policy {
    threshold: 0.65,
    margin: 0.10,
    near_miss_bound: 0.70,
    near_owner_bound: 0.75,
    grouping: 0.50,
    reconnect: 0.35,
    suggestions: Suggestions::Off,
    levels: [0.65, 0.75, 0.85],
};

fn axis(number: u32) -> Embedding {
    let values: Vec<f32> = (0..=STRANGER).map(|index| if index == number { 1.0 } else { 0.0 }).collect();
    Embedding::new(&values).expect("an axis is a direction")
}
