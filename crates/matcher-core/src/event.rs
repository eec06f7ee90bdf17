//! What goes into a scheduler and what comes out: plain values, performed by whoever owns the clock and the sockets.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::continuity::{Device, Reconnect};
use crate::exit::{Cap, ExitReason};
use crate::ids::{Generation, LaneId, PersonId, RequestId, Scope, SegmentId, Speaker};
use crate::memory::{Carried, CarryReason, Memory};
use crate::policy::Gallery;
use crate::queue::Tried;
use crate::span::{Rate, Span, Spans};

/// A lane enters a conversation.
#[derive(Debug, Clone)]
pub struct Join {
    /// The lane's generation from here on.
    pub generation: Generation,
    /// Its samples per second.
    pub rate: Rate,
    /// The people it knows.
    pub gallery: Gallery,
    /// Attempts already spent in this generation, by number: a resumed lane brings them along.
    pub attempts: BTreeMap<Speaker, u32>,
    /// Numbers with a query of the lane's former conversation still in work.
    pub held: Vec<Speaker>,
    /// What the recording's former socket knew in this very conversation; empty for a new recording.
    pub memory: Memory,
    /// The socket's device.
    pub device: Device,
}

impl Join {
    /// A new recording, of a device that is not named.
    #[must_use]
    pub fn new(generation: Generation, rate: Rate, gallery: Gallery) -> Self {
        Self {
            generation,
            rate,
            gallery,
            attempts: BTreeMap::new(),
            held: Vec::new(),
            memory: Memory::default(),
            device: Device::Unknown,
        }
    }
}

/// One segment of speech by one numbered voice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The provider's number.
    pub speaker: Speaker,
    /// The provider stream that the number belongs to.
    pub scope: Scope,
    /// Where the speech lies in the lane's audio.
    pub window: Span,
    /// How many samples of speech the provider claims; the window can be longer where audio was lost.
    pub speech: u64,
    /// The client's id of the segment.
    pub segment: SegmentId,
}

/// All offers of one message, judged together before anything is dispatched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The lane's generation when the message came.
    pub generation: Generation,
    /// The provider stream that was current then: offers of a dead one may come late.
    pub scope: Scope,
    /// What the lane's ring held then; `None` when it was empty.
    pub ring: Option<Span>,
    /// The offers, in order.
    pub offers: Vec<Offer>,
}

/// A slot becomes a query: the lane's socket picks the audio, reserves, and answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// The answer names it.
    pub request: RequestId,
    /// Whose ring and budget.
    pub lane: LaneId,
    /// The lane's generation at the dispatch.
    pub generation: Generation,
    /// The voice's number.
    pub speaker: Speaker,
    /// The voice's scope.
    pub scope: Scope,
    /// The latest segment that the query stands for.
    pub segment: SegmentId,
    /// Speech to choose from.
    pub fresh: Spans,
    /// Samples that the query needs.
    pub needed: u64,
    /// Samples that it may use.
    pub query_max: u64,
    /// Samples of evidence that the voice holds.
    pub evidence: u64,
    /// Samples of fresh speech that it has.
    pub pending: u64,
    /// How long the slot waited.
    pub waited: std::time::Duration,
    /// Whether its age alone decided its place.
    pub by_age: bool,
    /// Whether a query was spent on its number in this generation.
    pub tried: Tried,
}

/// A voice's public state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The owner.
    User,
    /// Another enrolled person.
    NotUser,
    /// Nobody who is enrolled.
    NoMatch,
    /// It claims the owner, and so does another voice.
    Ambiguous,
    /// It just missed the owner.
    Unknown,
    /// Not enough evidence yet; only in snapshots.
    Pending,
}

impl Status {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::NotUser => "not_user",
            Self::NoMatch => "no_match",
            Self::Ambiguous => "ambiguous",
            Self::Unknown => "unknown",
            Self::Pending => "pending",
        }
    }
}

/// Where a name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The voice's evidence.
    Automatic,
    /// A person said so.
    Manual,
    /// Brought along from the conversation before.
    Carried,
}

impl Origin {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Manual => "manual",
            Self::Carried => "carried",
        }
    }
}

/// Who a voice is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The person.
    pub person: PersonId,
    /// The name to show.
    pub name: Arc<str>,
    /// Where this comes from.
    pub origin: Origin,
}

/// The state of one voice, as events and snapshots tell it.
#[derive(Debug, Clone, PartialEq)]
pub struct VoiceState {
    /// The provider's number.
    pub speaker: Speaker,
    /// Its provider stream.
    pub scope: Scope,
    /// What is known.
    pub status: Status,
    /// Who it is.
    pub identity: Option<Identity>,
    /// Distance to the best print.
    pub distance: Option<f64>,
    /// Distance to the next.
    pub runner_up: Option<f64>,
    /// Seconds of speech behind the verdict.
    pub evidence_seconds: f64,
    /// The latest segment of the voice.
    pub segment: Option<SegmentId>,
}

/// Whether a published verdict changed who the voice is, or only its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The voice has a (new) name.
    Identity,
    /// The name is as it was.
    StatusOnly,
}

/// Whom a decision is about, in the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The owner.
    Owner,
    /// Somebody else.
    Person,
}

/// How a decision ended, in the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// The voice has a name.
    Accepted,
    /// It is nobody.
    Rejected,
    /// It claims the owner in vain.
    Ambiguous,
    /// More evidence is needed.
    Pending,
}

/// What came out of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An update, slot or query ended without a decision.
    Exited {
        /// The lane.
        lane: LaneId,
        /// The voice's number.
        speaker: Speaker,
        /// The segment, when it is known.
        segment: Option<SegmentId>,
        /// Why.
        reason: ExitReason,
        /// The cap, when the reason is the budget.
        cap: Option<Cap>,
    },
    /// A query brought no voiceprint; its reservation is spent.
    Failed {
        /// The lane.
        lane: LaneId,
        /// The voice's number.
        speaker: Speaker,
        /// The segment.
        segment: SegmentId,
    },
    /// A query led to a decision.
    Decided {
        /// The lane.
        lane: LaneId,
        /// The voice's number.
        speaker: Speaker,
        /// Whom it is about.
        target: Target,
        /// How it ended.
        ending: Ending,
    },
    /// A voice's identity or status changed.
    Published {
        /// The lane.
        lane: LaneId,
        /// Its generation.
        generation: Generation,
        /// The new state.
        state: VoiceState,
        /// What changed.
        change: Change,
    },
    /// A name is taken back.
    Retracted {
        /// The lane.
        lane: LaneId,
        /// Its generation.
        generation: Generation,
        /// The voice's number.
        speaker: Speaker,
        /// Its scope.
        scope: Scope,
        /// The latest segment that carried the name.
        segment: Option<SegmentId>,
        /// What the voice is now.
        status: Status,
    },
    /// A pinned person comes close to a voice that has no name.
    Suggested {
        /// The lane.
        lane: LaneId,
        /// Its generation.
        generation: Generation,
        /// The voice's number.
        speaker: Speaker,
        /// Who.
        person: PersonId,
        /// How close: 3 (near) to 1 (far), 0 beyond.
        level: u8,
        /// Whether this takes the suggestion back.
        is_retracted: bool,
    },
    /// A rollover carried a voice's name, or did not.
    RolledOver {
        /// The lane.
        lane: LaneId,
        /// The voice's number.
        speaker: Speaker,
        /// What was carried.
        carried: Carried,
        /// Whom the name means.
        target: Target,
        /// Why.
        reason: CarryReason,
    },
    /// A voice was tried as the owner who reconnects.
    Reconnected {
        /// The lane.
        lane: LaneId,
        /// The voice's number.
        speaker: Speaker,
        /// How it ended.
        ending: Reconnect,
    },
    /// The provider gives one number to everybody, it seems.
    Collapsed {
        /// The lane.
        lane: LaneId,
        /// The number.
        speaker: Speaker,
    },
    /// A query of a conversation that the lane has left ended: its number is free at the lane's current scheduler.
    Released {
        /// The lane.
        lane: LaneId,
        /// The number.
        speaker: Speaker,
    },
    /// A query passed its deadline: whoever holds its lease settles it now.
    Overdue {
        /// The query.
        request: RequestId,
    },
}
