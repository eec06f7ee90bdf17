//! Why an update led to no verdict: twelve closed reasons, and the cap behind a denial.

/// Exactly one for every return before a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExitReason {
    /// The update, slot or query belongs to a generation or conversation that is over.
    StaleGeneration,
    /// The voice got its name meanwhile.
    AlreadyMapped,
    /// The lane holds its most voices.
    VoiceCapacity,
    /// The ring has no audio there.
    NoPcm,
    /// The window lies outside the ring, and is shorter than the clip minimum.
    SegmentShorterThanMinimum,
    /// The window lies outside the ring.
    WindowOutsideBuffer,
    /// Everything in the window was examined before.
    NoFreshAudio,
    /// The voice's pooled fresh speech does not reach what a query needs now.
    WindowShorterThanMinimum,
    /// The reservation was denied; the denial names the cap.
    EmbeddingBudget,
    /// A person said that this voice is not who it seems.
    Rejected,
    /// A person decided who this voice is.
    ManualDecision,
    /// What people decided could not be read.
    AuthorityUnavailable,
}

impl ExitReason {
    /// All twelve.
    pub const ALL: [Self; 12] = [
        Self::StaleGeneration,
        Self::AlreadyMapped,
        Self::VoiceCapacity,
        Self::NoPcm,
        Self::SegmentShorterThanMinimum,
        Self::WindowOutsideBuffer,
        Self::NoFreshAudio,
        Self::WindowShorterThanMinimum,
        Self::EmbeddingBudget,
        Self::Rejected,
        Self::ManualDecision,
        Self::AuthorityUnavailable,
    ];

    /// The name on the wire and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StaleGeneration => "stale_generation",
            Self::AlreadyMapped => "already_mapped",
            Self::VoiceCapacity => "voice_capacity",
            Self::NoPcm => "no_pcm",
            Self::SegmentShorterThanMinimum => "segment_shorter_than_minimum",
            Self::WindowOutsideBuffer => "window_outside_buffer",
            Self::NoFreshAudio => "no_fresh_audio",
            Self::WindowShorterThanMinimum => "window_shorter_than_minimum",
            Self::EmbeddingBudget => "embedding_budget",
            Self::Rejected => "rejected",
            Self::ManualDecision => "manual_decision",
            Self::AuthorityUnavailable => "authority_unavailable",
        }
    }
}

/// Which limit denied a reservation: exactly one of three, judged after the refill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cap {
    /// The voice has spent its attempts; tokens were left.
    Voice,
    /// The lane's bucket is empty; the voice had attempts left.
    Socket,
    /// Both.
    Both,
}

impl Cap {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Voice, Self::Socket, Self::Both];

    /// The cap behind a denial, or `None` when nothing denies.
    #[must_use]
    pub const fn of(voice_spent: bool, bucket_empty: bool) -> Option<Self> {
        match (voice_spent, bucket_empty) {
            (false, false) => None,
            (true, false) => Some(Self::Voice),
            (false, true) => Some(Self::Socket),
            (true, true) => Some(Self::Both),
        }
    }

    /// The name on the wire and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Voice => "voice",
            Self::Socket => "socket",
            Self::Both => "both",
        }
    }
}
