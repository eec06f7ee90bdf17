//! What can happen, readable when it is printed. Queries and rollovers that are not there are taken modulo those that are,
//! so that any part of a sequence is a sequence.

use matcher_core::receipt::Reach;

use super::words::{Name, Sound};

/// One thing that happens.
#[derive(Debug, Clone)]
pub(crate) enum Move {
    /// Speech, and the query that follows from it is answered at once.
    Hear(Said, Sound),
    /// Speech.
    Offer(Said),
    /// Speech of a generation that is over.
    OfferLate(Said),
    /// A query starts, if one can.
    Turn { lane: usize },
    /// A query would start: its socket is asked to reserve.
    Dispatch { lane: usize },
    /// A socket answers whether it reserved.
    Reserve { dispatch: Which, answer: Reserved },
    /// An open query, of whatever generation, is answered, after what people decided is read.
    Answer { query: Which, sound: Sound },
    /// ... and it cannot be read.
    Unread { query: Which, sound: Sound },
    /// An open query ends without an answer.
    Fail { query: Which },
    /// People decide something, all of it at one moment. Told at once, or only kept.
    Correct { conversation: usize, edits: Vec<(Name, About, Says)>, is_told: bool },
    /// The receipt of so many edits ago is told.
    Deliver { conversation: usize, back: usize },
    /// Other people are enrolled.
    People { lane: usize, people: usize },
    /// A rollover begins: the lane leaves, and what it may bring along waits for the word of the conversation before.
    RollOver { lane: usize, to: usize },
    /// The word of the conversation before a rollover arrives.
    Bring { moving: Which, answer: Asked },
    /// A rollover that carries nothing.
    Leave { lane: usize, to: usize, device: Kept },
    /// Another socket takes the recording over.
    Resume { lane: usize, device: Kept },
    /// The lane starts anew, and remembers nothing.
    Clear { lane: usize, device: Kept },
    /// The word of another conversation arrives.
    Word { lane: usize, of: usize, answer: Asked },
    /// A conversation is deleted.
    Delete { conversation: usize },
    /// A provider stream starts.
    Provider { lane: usize, scope: &'static str },
    /// Time goes by.
    Pass { seconds: u64 },
}

/// Which of those that there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Which {
    Newest,
    Number(usize),
}

/// What a socket answers to a dispatch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reserved {
    Yes,
    No,
    /// The question never reached it.
    Lost,
}

/// Speech by one voice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    pub(crate) lane: usize,
    pub(crate) speaker: u32,
    /// `None` is the stream that is current.
    pub(crate) scope: Option<&'static str>,
    pub(crate) segment: &'static str,
    pub(crate) half_seconds: u64,
}

/// What a decision is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum About {
    Voice,
    Segment(&'static str, Reach),
}

/// What people decide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Says {
    Owner,
    Sarah,
    /// Who is enrolled nowhere.
    Nina,
    Nobody,
    NotMe,
    NotSarah,
    NotAPerson,
}

/// Whether there is an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Asked {
    Answers,
    IsSilent,
    /// An answer arrives that was given one edit ago, before any deletion.
    AnsweredBefore,
}

/// What a socket finds of its device's owner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kept {
    NoDevice,
    Nothing,
    Owner { of: usize, voice: Name, sound: Sound, print: Sound, is_outdated: bool, seconds: u64 },
}
