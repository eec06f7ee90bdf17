//! What a lane knows of its voices, so that it can outlive the lane's place in a conversation: for the socket that resumes
//! the recording, and for the conversation that follows a rollover. Owns values alone; what of them holds in their new
//! place is decided there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::embedding::{Centroid, Embedding};
use crate::event::{Identity, Status};
use crate::evidence::Evidence;
use crate::ids::{Generation, Scope, Speaker};
use crate::policy::Decision;
use crate::receipt::{Receipt, VoiceName};
use crate::span::Spans;

/// What a lane takes along when it leaves a conversation.
#[derive(Debug, Clone, Default)]
pub struct HandOver {
    /// Numbers whose query is still in work; [`crate::Event::Released`] follows for each.
    pub held: Vec<Speaker>,
    /// What it knows.
    pub memory: Memory,
}

/// See the module's text. Bounded like the voices of a lane.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    pub(crate) voices: Vec<Remembered>,
    /// The owner's print that the voices were judged by.
    pub(crate) owner: Option<Embedding>,
    /// The provider streams in the order in which they came.
    pub(crate) scopes: Vec<Scope>,
    /// Whether the owner is kept for the device's next socket.
    pub(crate) is_kept: bool,
    /// The words of other conversations, as they were heard last.
    pub(crate) donors: BTreeMap<Arc<str>, Donor>,
}

impl Memory {
    /// Whether there is nothing in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.voices.is_empty()
    }

    /// Conversations on whose word a name rests that was given after a reconnect.
    #[must_use]
    pub fn grounds(&self) -> Vec<Arc<str>> {
        let grounds = self.voices.iter().filter_map(|voice| voice.ground.as_ref());
        let mut conversations: Vec<Arc<str>> = grounds.map(|ground| ground.conversation.clone()).collect();
        conversations.sort();
        conversations.dedup();
        conversations
    }
}

/// One voice of a [`Memory`].
#[derive(Debug, Clone)]
pub(crate) struct Remembered {
    pub(crate) name: VoiceName,
    pub(crate) evidence: Evidence,
    pub(crate) covered: Spans,
    pub(crate) row: Option<(Centroid, Decision)>,
    pub(crate) identity: Option<Identity>,
    pub(crate) named_by: NamedBy,
    pub(crate) status: Option<Status>,
    pub(crate) heard: Heard,
    pub(crate) ground: Option<Ground>,
}

/// Who gave a voice its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedBy {
    People,
    Evidence,
}

/// Where a voice's evidence comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// From this conversation.
    Here,
    /// From the conversation before, and nothing was added.
    Before,
    /// From the conversation before, to compete only: it is never published, and fresh evidence takes its place.
    Competing,
}

/// What a name rests on that was given on less evidence than usual: the owner of another conversation, as long as nobody
/// decided anything there and the owner's print is the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Ground {
    /// The other conversation, as its keeper calls it.
    pub conversation: Arc<str>,
    /// The owner's voice there.
    pub voice: VoiceName,
    /// The generation of its receipt then.
    pub receipt_generation: u64,
    /// The owner's print then.
    pub print: Embedding,
}

/// What people decided in another conversation, as its keeper answered when it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Donor {
    /// There was no answer.
    Unavailable,
    /// The conversation was deleted.
    Deleted,
    /// This.
    Read(Arc<Receipt>),
}

impl Donor {
    /// Whether this says more than what is known: readings can overtake each other. What was deleted stays deleted.
    pub(crate) fn is_newer_than(&self, known: &Self) -> bool {
        match (known, self) {
            (Self::Deleted, _) | (_, Self::Unavailable) => false,
            (Self::Read(known), Self::Read(receipt)) => receipt.generation() > known.generation(),
            (Self::Unavailable, Self::Deleted | Self::Read(_)) | (Self::Read(_), Self::Deleted) => true,
        }
    }
}

impl Ground {
    /// Whether it still carries, by the other conversation's word.
    pub(crate) fn holds(&self, word: Option<&Donor>) -> bool {
        match word {
            Some(Donor::Read(receipt)) => {
                receipt.generation() == self.receipt_generation && receipt.standing(&self.voice).is_free()
            }
            Some(Donor::Unavailable | Donor::Deleted) | None => false,
        }
    }
}

/// A lane asks its new conversation to take over what may be carried. Comes after the receipt of the new conversation,
/// which holds the names that people gave.
#[derive(Debug, Clone)]
pub struct Carry {
    /// The lane's generation when it asked.
    pub generation: Generation,
    /// The provider stream that goes on.
    pub scope: Scope,
    /// What the lane knew in the conversation before.
    pub memory: Memory,
    /// Attempts that it had spent there, by number.
    pub attempts: BTreeMap<Speaker, u32>,
    /// What people decided there.
    pub donor: Donor,
}

/// What of a voice a rollover carried, in the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carried {
    /// The name that people gave.
    Manual,
    /// The owner, by the voice's evidence.
    Automatic,
    /// Nothing.
    Nothing,
}

/// Why a rollover carried a voice's name, or did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CarryReason {
    /// People named it, and their decision is carried.
    Manual,
    /// People named it, and their decision speaks for another stream, for single segments, or for several people; or a
    /// newer one was made here.
    ManualNotCopied,
    /// Only the owner is carried by evidence.
    NonOwner,
    /// The stream has no name by which it could be known again.
    NoScope,
    /// What people decided in the conversation before could not be read.
    DonorUnavailable,
    /// The conversation before was deleted.
    DonorIneligible,
    /// The voice belongs to another stream than the one that goes on.
    ScopeChanged,
    /// People decided otherwise.
    ManualOverride,
    /// There is no evidence to carry.
    NoEvidence,
    /// The lane has moved on meanwhile.
    StaleGeneration,
    /// The owner is not enrolled any more.
    ProfileUnavailable,
    /// The owner's print is another one now.
    ProfileChanged,
    /// The voice was examined here already.
    CurrentEvidence,
    /// The lane holds its most voices.
    VoiceCapacity,
    /// It is carried.
    Automatic,
    /// Another voice claims the owner as well.
    OwnerContended,
    /// The name rested on another conversation, whose word does not hold any more.
    DonorAuthority,
    /// The evidence does not say owner among the people of today.
    VoiceprintRejected,
}

impl CarryReason {
    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::ManualNotCopied => "manual_not_copied",
            Self::NonOwner => "non_owner",
            Self::NoScope => "no_scope",
            Self::DonorUnavailable => "donor_unavailable",
            Self::DonorIneligible => "donor_ineligible",
            Self::ScopeChanged => "scope_changed",
            Self::ManualOverride => "manual_override",
            Self::NoEvidence => "no_evidence",
            Self::StaleGeneration => "stale_generation",
            Self::ProfileUnavailable => "profile_unavailable",
            Self::ProfileChanged => "profile_changed",
            Self::CurrentEvidence => "current_evidence",
            Self::VoiceCapacity => "voice_capacity",
            Self::Automatic => "automatic",
            Self::OwnerContended => "owner_contended",
            Self::DonorAuthority => "donor_authority",
            Self::VoiceprintRejected => "voiceprint_rejected",
        }
    }
}
