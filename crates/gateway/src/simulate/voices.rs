//! Who talks in the scenarios, and how the model would hear them: voiceprints that are given, not extracted.

use matcher_core::policy::{Policy, Print, Role, Suggestions};
use matcher_core::{Embedding, Gallery, PersonId, Speaker};

/// The owner's number in every scenario.
pub(super) const OWNER: u32 = 0;
/// Enrolled people beside the owner have the numbers from here up to, not including, [`REJECTOR`].
pub(super) const FRIEND: u32 = 1;
/// A stranger who sounds nearly like the owner: examined before other strangers, and never named.
pub(super) const REJECTOR: u32 = 4;
/// Strangers have the numbers from here on.
pub(super) const STRANGER: u32 = 5;

/// Axes: one a person, one for the rejector, one for all strangers.
const DIMENSION: usize = 6;
/// The rejector's cosine distance to the owner is 0.72: no near miss, and near enough to be preferred.
const NEARLY: [f32; DIMENSION] = [0.28, 0.0, 0.0, 0.0, 0.96, 0.0];

/// Whether nobody enrolled has this number.
pub(super) const fn is_stranger(speaker: Speaker) -> bool {
    speaker.0 >= REJECTOR
}

/// What the model makes of a voice, whatever it says.
pub(super) fn heard(speaker: Speaker) -> Embedding {
    match speaker.0 {
        REJECTOR => Embedding::new(&NEARLY).expect("the rejector's voice is a direction"),
        number => axis(number.min(STRANGER)),
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

/// The shipped model's distances.
pub(super) const POLICY: Policy = Policy {
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
