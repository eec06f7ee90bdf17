//! The words for closed sets and for numbers.

use matcher_core::ExitReason;
use matcher_core::queue::Precedence;

/// Seconds with one decimal.
pub(super) fn seconds(value: f64) -> String {
    format!("{value:.1} s")
}

/// A cosine distance with two decimals. Two equal vectors can come out a rounding below nothing.
pub(super) fn distance(value: f64) -> String {
    format!("{:.2}", value.max(0.0))
}

/// What an exit means, for somebody who has never heard of it.
#[must_use]
pub const fn exit(reason: ExitReason) -> &'static str {
    match reason {
        ExitReason::StaleGeneration => "it came from a conversation that is over.",
        ExitReason::AlreadyMapped => "the voice had got its name meanwhile.",
        ExitReason::VoiceCapacity => "the conversation follows its most voices.",
        ExitReason::NoPcm => "no audio had arrived yet.",
        ExitReason::SegmentShorterThanMinimum => {
            "its audio is not kept any more, and it was shorter than a query needs."
        }
        ExitReason::WindowOutsideBuffer => "its audio is not kept any more, or has not arrived yet.",
        ExitReason::NoFreshAudio => "all of it was examined before.",
        ExitReason::WindowShorterThanMinimum => "too little fresh speech for a question yet.",
        ExitReason::EmbeddingBudget => "the budget was spent.",
        ExitReason::Rejected => "somebody said that the voice is not who it seemed to be.",
        ExitReason::ManualDecision => "somebody has decided who the voice is.",
        ExitReason::AuthorityUnavailable => "what people decided could not be read.",
    }
}

/// Why a slot goes before the one behind it.
#[must_use]
pub const fn precedence(why: Precedence) -> &'static str {
    match why {
        Precedence::Age => "has waited so long that age decides",
        Precedence::FirstTry => "was never examined; the next one was",
        Precedence::NearOwner => "was nearly the owner",
        Precedence::MoreSpeech => "has more fresh speech than the next one",
        Precedence::Older => "has waited longer than the next one",
        Precedence::SmallerNumber => "is equal to the next one; the smaller number goes first",
        Precedence::BetweenAges => "goes before older ones, because age has its turn only now and then",
        Precedence::Alone => "nobody is behind it",
        Precedence::Held => "waits: a query of its number is under way, or nobody is enrolled",
    }
}

/// The name on the wire.
#[must_use]
pub(crate) const fn precedence_name(why: Precedence) -> &'static str {
    match why {
        Precedence::Age => "age",
        Precedence::FirstTry => "first_try",
        Precedence::NearOwner => "near_owner",
        Precedence::MoreSpeech => "more_speech",
        Precedence::Older => "older",
        Precedence::SmallerNumber => "smaller_number",
        Precedence::BetweenAges => "between_ages",
        Precedence::Alone => "alone",
        Precedence::Held => "held",
    }
}
