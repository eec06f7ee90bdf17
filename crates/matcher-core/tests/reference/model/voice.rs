//! One voice as the model keeps it, and what a name can rest on.

use matcher_core::{Origin, Status};

use crate::reference::words::{Identity, Name, Sound};

use super::hearing::Vector;

/// Where a voice's evidence comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Heard {
    Here,
    /// The conversation before, and nothing was added.
    Before,
    /// The conversation before, to compete only.
    Competing,
}

/// Another conversation on whose word a name rests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ground {
    pub(crate) of: usize,
    pub(crate) voice: Name,
    pub(crate) receipt: u64,
    pub(crate) print: Sound,
}

/// What a socket found of its device's owner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hint {
    pub(crate) ground: Ground,
    pub(crate) sound: Sound,
    pub(crate) until: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Device {
    Unknown,
    Fresh,
    Reconnecting(Hint),
}

/// What a voice is: nothing yet, or a status and who it is.
pub(crate) type State = Option<(Status, Option<Identity>)>;

#[derive(Debug, Clone)]
pub(crate) struct Voice {
    pub(crate) name: Name,
    /// The newest three clips and their half seconds.
    pub(crate) clips: Vec<(Sound, u64)>,
    /// How it sounded when it was last judged.
    pub(crate) judged: Option<Vector>,
    pub(crate) heard: Heard,
    pub(crate) ground: Option<Ground>,
    pub(crate) is: State,
    /// What the client was told.
    pub(crate) told: State,
    pub(crate) segment: Option<&'static str>,
    pub(crate) observed: Option<u64>,
    pub(crate) suggestion: Option<(&'static str, u8)>,
}

impl Voice {
    pub(crate) const fn new(name: Name) -> Self {
        Self {
            name,
            clips: Vec::new(),
            judged: None,
            heard: Heard::Here,
            ground: None,
            is: None,
            told: None,
            segment: None,
            observed: None,
            suggestion: None,
        }
    }

    pub(crate) fn half_seconds(&self) -> u64 {
        self.clips.iter().map(|(_, half_seconds)| half_seconds).sum()
    }

    pub(crate) fn identity(&self) -> Option<Identity> {
        self.is.and_then(|(_, identity)| identity)
    }

    pub(crate) fn status(&self) -> Option<Status> {
        self.is.map(|(status, _)| status)
    }

    pub(crate) fn has_name_from_evidence(&self) -> bool {
        self.identity().is_some_and(|identity| match identity.origin {
            Origin::Automatic => true,
            Origin::Carried => self.heard == Heard::Before,
            Origin::Manual => false,
        })
    }
}
