//! Recognising the owner again who was heard on the same device moments ago: what is kept of them, and what a new socket
//! may make of it. Owns the words; a lane decides when to keep and when to believe.

use crate::embedding::Embedding;
use crate::memory::Ground;
use crate::receipt::VoiceName;
use crate::time::Monotonic;

/// What a socket found of its device's owner: enough to accept them on two seconds of speech.
#[derive(Debug, Clone, PartialEq)]
pub struct Hint {
    /// Where they were heard, and by which print.
    pub ground: Ground,
    /// How they sounded.
    pub centroid: Embedding,
    /// Until when it counts.
    pub usable_until: Monotonic,
}

/// A device's socket in a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Device {
    /// The client names no device: nothing is kept, nothing is believed.
    #[default]
    Unknown,
    /// A device of which nothing is known.
    Fresh,
    /// A device whose owner was heard moments ago.
    Reconnecting(Box<Hint>),
}

/// What is to become of a device's kept owner.
#[derive(Debug, Clone, PartialEq)]
pub enum Keepsake {
    /// This replaces what is kept.
    Keep(Box<Kept>),
    /// Nothing is to be kept any more.
    Withdraw,
}

/// The owner as a lane hears them.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// The owner's voice.
    pub voice: VoiceName,
    /// How they sound.
    pub centroid: Embedding,
    /// The print by which they are known.
    pub print: Embedding,
    /// Seconds of speech behind it.
    pub seconds: f64,
    /// When they were heard last.
    pub observed: Monotonic,
    /// The generation of the conversation's receipt.
    pub receipt_generation: u64,
}

/// How a try to recognise a reconnecting owner ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reconnect {
    /// It is them.
    Accepted,
    /// It does not sound like them.
    Acoustic,
    /// The conversation where they were heard does not vouch for it any more.
    DonorAuthority,
    /// Another voice claims the owner as well, or what people decided here could not be read.
    Arbitration,
}
