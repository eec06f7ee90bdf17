//! The small world that both sides share: streams, segments, people, sounds; and what is told of voices, as plain values.
//!
//! Voiceprints are sixteen signs: two of them are as far apart as they have signs that differ, in eighths. All distances
//! of single clips are exact, so that ties and margins that are just kept are frequent.

use std::fmt;

use matcher_core::{Carried, CarryReason, Change, Ending, Event, Origin, Reconnect, Status, Target, VoiceState};

/// Half a second of speech is one sample.
pub(crate) const HERTZ: u32 = 2;
pub(crate) const CONVERSATIONS: usize = 4;
pub(crate) const LANES: usize = 2;
pub(crate) const SCOPES: [&str; 3] = ["a:0", "b:0", ""];
pub(crate) const SEGMENTS: [&str; 5] = ["s0", "s1", "s2", "s3", "s4"];
/// The last is the number of the assistant's own questions.
pub(crate) const SPEAKERS: [u32; 4] = [0, 1, 2, 99];

/// A voice by number and stream.
pub(crate) type Name = (u32, &'static str);

/// The signs of a voiceprint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sound(pub(crate) u16);

pub(crate) const OWNER: Sound = Sound(0x0000);
pub(crate) const OWNER_ANEW: Sound = Sound(0x8000);
pub(crate) const SARAH: Sound = Sound(0x003F);
pub(crate) const PAUL: Sound = Sound(0x07C0);

/// What a voice can sound like. From the owner, Sarah and Paul they are as many eighths away as the comment says.
pub(crate) const SOUNDS: [Sound; 18] = [
    OWNER,
    Sound(0x0001), // 1, 5, 6
    Sound(0x0003), // 2, 4, 7: the margin is just kept
    Sound(0x0007), // 3, 3, 8: a tie
    Sound(0x000F), // 4, 2, 9: the margin is just kept
    SARAH,
    Sound(0xF800), // 5, 11, 10: just misses the owner
    Sound(0x7800), // 4, 10, 9
    Sound(0x1800), // 2, 8, 7
    Sound(0x6000), // 2, 8, 7: the same person as the one before, or four away from it
    Sound(0x00C0), // 2, 8, 3: too close a call
    Sound(0x01C0), // 3, 9, 2: suggests Paul
    PAUL,
    Sound(0xFFC0), // 10, 16, 5: suggests Paul from afar
    Sound(0xFFFF), // 16, 10, 11: the owner's opposite; the mean of both is nothing
    Sound(0xAAAA), // 8, 8, 9: a stranger
    Sound(0xF83F), // 11, 5, 16: just misses Sarah
    OWNER_ANEW,
];

impl Sound {
    pub(crate) fn values(self) -> [f32; 16] {
        std::array::from_fn(|at| if self.0 & (1 << at) == 0 { 0.25 } else { -0.25 })
    }
}

/// These voiceprints are made up. What they say is how many eighths they are away from whom.
impl fmt::Debug for Sound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let eighths = |other: Self| (self.0 ^ other.0).count_ones();
        let (owner, sarah, paul) = (eighths(OWNER), eighths(SARAH), eighths(PAUL));
        write!(f, "Sound({:#06x}: owner {owner}, Sarah {sarah}, Paul {paul})", self.0)
    }
}

/// An enrolled person.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Person {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) is_owner: bool,
    pub(crate) is_pinned: bool,
    pub(crate) sound: Sound,
}

const fn person(id: &'static str, name: &'static str, sound: Sound) -> Person {
    Person { id, name, is_owner: false, is_pinned: false, sound }
}

const USER: Person = Person { is_owner: true, ..person("user", "User", OWNER) };
const USER_ANEW: Person = Person { sound: OWNER_ANEW, ..USER };
const SARAH_HERE: Person = person("p1", "Sarah", SARAH);
const PAUL_HERE: Person = Person { is_pinned: true, ..person("p2", "Paul", PAUL) };

/// Who is enrolled, in turn.
pub(crate) const GALLERIES: [&[Person]; 8] = [
    &[USER, SARAH_HERE, PAUL_HERE],
    &[USER],
    &[SARAH_HERE, PAUL_HERE],
    &[],
    &[USER_ANEW, SARAH_HERE],
    &[person("p3", "Double", OWNER), USER],
    &[person("p1", "Sara", SARAH), USER, person("p2", "Paul", PAUL)],
    &[USER, SARAH_HERE],
];

/// Who a voice is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Identity {
    pub(crate) person: &'static str,
    pub(crate) name: &'static str,
    pub(crate) origin: Origin,
}

/// A voice's public state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Face {
    pub(crate) voice: Name,
    pub(crate) status: Status,
    pub(crate) identity: Option<Identity>,
    pub(crate) distance: Option<f64>,
    pub(crate) runner_up: Option<f64>,
    pub(crate) seconds: f64,
    pub(crate) segment: Option<&'static str>,
}

/// What is told. Exits and the endings of queries are the business of other tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Told {
    Published { lane: u64, generation: u64, face: Face, change: Change },
    Retracted { lane: u64, generation: u64, voice: Name, segment: Option<&'static str>, status: Status },
    Suggested { lane: u64, generation: u64, speaker: u32, person: &'static str, level: u8, is_retracted: bool },
    Reconnected { lane: u64, speaker: u32, ending: Reconnect },
    Decided { lane: u64, speaker: u32, target: Target, ending: Ending },
    RolledOver { lane: u64, speaker: u32, carried: Carried, target: Target, reason: CarryReason },
}

impl Told {
    /// What happens to one voice happens in order; among voices, and among the streams of a number, the order is nobody's
    /// business.
    pub(crate) const fn place(&self) -> (u64, u32, u8, &'static str) {
        match self {
            Self::Published { lane, face, .. } => (*lane, face.voice.0, 0, face.voice.1),
            Self::Retracted { lane, voice, .. } => (*lane, voice.0, 0, voice.1),
            Self::Suggested { lane, speaker, person, .. } => (*lane, *speaker, 1, person),
            Self::Reconnected { lane, speaker, .. } => (*lane, *speaker, 2, ""),
            Self::Decided { lane, speaker, .. } => (*lane, *speaker, 3, ""),
            Self::RolledOver { lane, speaker, reason, .. } => (*lane, *speaker, 4, reason.as_str()),
        }
    }
}

const TEXTS: [&str; 19] = [
    "a:0", "b:0", "", "s0", "s1", "s2", "s3", "s4", "user", "p1", "p2", "p3", "p9", "User", "Sarah", "Sara", "Paul",
    "Double", "Nina",
];

/// The same text, for as long as the program runs.
pub(crate) fn lasting(text: &str) -> &'static str {
    TEXTS.into_iter().find(|known| *known == text).unwrap_or_else(|| panic!("{text:?} is not of this world"))
}

pub(crate) fn face(state: &VoiceState) -> Face {
    let identity = state.identity.as_ref().map(|identity| Identity {
        person: lasting(identity.person.as_str()),
        name: lasting(&identity.name),
        origin: identity.origin,
    });
    Face {
        voice: (state.speaker.0, lasting(state.scope.as_str())),
        status: state.status,
        identity,
        distance: state.distance,
        runner_up: state.runner_up,
        seconds: state.evidence_seconds,
        segment: state.segment.as_ref().map(|segment| lasting(segment.as_str())),
    }
}

/// What an event of the core tells; `None` for what is compared elsewhere.
pub(crate) fn told(event: &Event) -> Option<Told> {
    let told = match event {
        Event::Published { lane, generation, state, change } => {
            Told::Published { lane: lane.0, generation: generation.0, face: face(state), change: *change }
        }
        Event::Retracted { lane, generation, speaker, scope, segment, status } => Told::Retracted {
            lane: lane.0,
            generation: generation.0,
            voice: (speaker.0, lasting(scope.as_str())),
            segment: segment.as_ref().map(|segment| lasting(segment.as_str())),
            status: *status,
        },
        Event::Suggested { lane, generation, speaker, person, level, is_retracted } => Told::Suggested {
            lane: lane.0,
            generation: generation.0,
            speaker: speaker.0,
            person: lasting(person.as_str()),
            level: *level,
            is_retracted: *is_retracted,
        },
        Event::Reconnected { lane, speaker, ending } => {
            Told::Reconnected { lane: lane.0, speaker: speaker.0, ending: *ending }
        }
        Event::Decided { lane, speaker, target, ending } => {
            Told::Decided { lane: lane.0, speaker: speaker.0, target: *target, ending: *ending }
        }
        Event::RolledOver { lane, speaker, carried, target, reason } => {
            Told::RolledOver { lane: lane.0, speaker: speaker.0, carried: *carried, target: *target, reason: *reason }
        }
        Event::Exited { .. }
        | Event::Failed { .. }
        | Event::Collapsed { .. }
        | Event::Released { .. }
        | Event::Overdue { .. } => return None,
    };
    Some(told)
}
