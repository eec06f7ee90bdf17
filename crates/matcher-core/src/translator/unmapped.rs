//! Why a provider's window has no place in the audio, in words and in a stable name. Decides nothing.

/// Why a provider's times are no window of the audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Reason {
    /// A time is no number. One that was read from outside arrives here as NaN.
    #[error("must be a number of seconds")]
    NonNumeric,
    /// A time is infinite, or further off than [`Rate::SECONDS_MAX`](crate::Rate::SECONDS_MAX).
    #[error("must be a number of seconds of at most 1000000000")]
    NonFinite,
    /// The end does not lie at least one sample after the start.
    #[error("must lie after `start`")]
    ZeroLength,
    /// The time lies where the stream was sent nothing.
    #[error("lies outside the audio that this provider stream was sent")]
    OutsideAcceptedSends,
    /// The end lies on the other side of audio that the stream was not sent, or of time that it spent on other audio.
    #[error("lies past a stretch of audio that this provider stream was not sent; send each side as its own segment")]
    DiscontinuousInterval,
    /// Both times fall on one edge of what the stream was sent.
    #[error("falls together with `start` on the edge of the audio that this provider stream was sent")]
    CollapsedInterval,
    /// The time lies in sends that are forgotten.
    #[error("lies before the oldest audio that is remembered of this provider stream")]
    EvictedInterval,
}

impl Reason {
    /// All seven.
    pub const ALL: [Self; 7] = [
        Self::NonNumeric,
        Self::NonFinite,
        Self::ZeroLength,
        Self::OutsideAcceptedSends,
        Self::DiscontinuousInterval,
        Self::CollapsedInterval,
        Self::EvictedInterval,
    ];

    /// The reason's short, stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NonNumeric => "non_numeric",
            Self::NonFinite => "non_finite",
            Self::ZeroLength => "zero_length",
            Self::OutsideAcceptedSends => "outside_accepted_sends",
            Self::DiscontinuousInterval => "discontinuous_interval",
            Self::CollapsedInterval => "collapsed_interval",
            Self::EvictedInterval => "evicted_interval",
        }
    }
}

/// One end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Its first sample.
    Start,
    /// One past its last sample.
    End,
}

/// A window that was refused: which end is to be mended, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} ({})", .reason.as_str())]
pub struct Unmapped {
    /// The end that is wrong.
    pub edge: Edge,
    /// What is wrong with it.
    pub reason: Reason,
}

impl Edge {
    /// The name of the field that holds it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
        }
    }

    pub(super) const fn refuses(self, reason: Reason) -> Unmapped {
        Unmapped { edge: self, reason }
    }
}
