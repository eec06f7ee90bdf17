//! The closed label sets: every value that a metric's label can ever take.
//!
//! They are enums, so that no id can become a label and the number of series is known when the program is compiled.
//! What the values mean for matching is decided elsewhere; here they are only spelled.

/// Declares an enum whose variants are label values, with `ALL` and `as_str`.
macro_rules! labels {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The value as it is spelled in metrics and records.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

labels! {
    /// Which budget denied a query, from the one snapshot after the refill. Exactly one applies to a denial.
    Cap {
        /// The voice's attempts are spent; the lane still has a token.
        Voice => "voice",
        /// The voice has attempts left; the lane has no token.
        Socket => "socket",
        /// Both are spent.
        Both => "both",
    }
}

labels! {
    /// What became of attempts to extract a voiceprint: `Reserved` = `Succeeded` + `Failed` + those still open.
    Outcome {
        /// An attempt and a token were taken.
        Reserved => "reserved",
        /// Encoding and extraction returned a valid vector in time.
        Succeeded => "succeeded",
        /// Anything else. Nothing is refunded.
        Failed => "failed",
    }
}

labels! {
    /// Whether an extraction server is asked.
    Circuit {
        /// It is in service.
        Closed => "closed",
        /// It failed, and is given a rest.
        Open => "open",
        /// It is being tried, with a clip that nobody waits for.
        Probing => "probing",
    }
}

labels! {
    /// What went wrong with a query that was sent to an extraction server.
    EndpointFailure {
        /// The caller's deadline came before the server had the time that it may take.
        OutOfTime => "out_of_time",
        /// The caller left, and the exchange was broken off from this side.
        GivenUp => "given_up",
        /// No connection came about.
        Unreachable => "unreachable",
        /// The connection ended before the answer did.
        Broken => "broken",
        /// It did not answer in the time that it may take.
        Stalled => "stalled",
        /// It answered with a status that is none of success.
        Status => "status",
        /// It refused the clip.
        Refused => "refused",
        /// It sent more than an answer can be.
        TooLarge => "too_large",
        /// It sent what is no answer of the protocol.
        NotAnAnswer => "not_an_answer",
        /// It sent what is no voiceprint.
        BadVector => "bad_vector",
        /// It runs another model than the servers before it.
        AnotherModel => "another_model",
    }
}

labels! {
    /// Why an update led to no verdict.
    ExitReason {
        /// The conversation or the generation moved on while the work waited.
        StaleGeneration => "stale_generation",
        /// The voice had its verdict already.
        AlreadyMapped => "already_mapped",
        /// The lane holds as many voices as it may.
        VoiceCapacity => "voice_capacity",
        /// The ring gave no audio.
        NoPcm => "no_pcm",
        /// The window lies outside the ring and is shorter than the minimum.
        SegmentShorterThanMinimum => "segment_shorter_than_minimum",
        /// The window lies outside the ring.
        WindowOutsideBuffer => "window_outside_buffer",
        /// Nothing is left after the audio that was already used.
        NoFreshAudio => "no_fresh_audio",
        /// The fresh audio is shorter than what the voice needs now.
        WindowShorterThanMinimum => "window_shorter_than_minimum",
        /// The reservation was denied. Booked through [`Accounts::denied`](crate::Accounts::denied) alone.
        EmbeddingBudget => "embedding_budget",
        /// A manual decision rejects the voice.
        Rejected => "rejected",
        /// A manual decision names the voice.
        ManualDecision => "manual_decision",
        /// The manual decisions could not be read.
        AuthorityUnavailable => "authority_unavailable",
    }
}

labels! {
    /// Whom a decision was about.
    Target {
        /// The owner of the account.
        Owner => "owner",
        /// Another enrolled person, or nobody.
        Person => "person",
    }
}

labels! {
    /// What a decision said.
    Decision {
        /// A person was named.
        Accepted => "accepted",
        /// Nobody was near enough.
        Rejected => "rejected",
        /// Two were too near to each other, or two voices claimed the owner.
        Ambiguous => "ambiguous",
        /// The evidence does not reach the floor yet.
        Pending => "pending",
    }
}

labels! {
    /// Why a new conversation on the same socket knows a voice from the old one.
    Carried {
        /// A person had decided about the voice.
        Manual => "manual",
        /// Its evidence went over and was accepted again.
        Automatic => "automatic",
        /// It does not: the voice is examined anew.
        None => "none",
    }
}

labels! {
    /// A step of recognising the owner after a reconnect. Only these pairs of outcome and reason exist as series; the text
    /// of a value is its reason.
    Reconnect {
        /// A socket asked for what its device had left behind.
        Attempted => "lookup",
        /// The owner was recognised after the short evidence.
        Accepted => "accepted",
        /// The client named no device.
        NoDevice => "no_device",
        /// Nothing had been left behind.
        Absent => "absent",
        /// What had been left behind could not be read.
        Corrupt => "corrupt",
        /// The store could not be asked, or not in time.
        Unavailable => "unavailable",
        /// It was too old, or made with another voiceprint of the owner.
        ExpiredOrProfile => "expired_or_profile",
        /// People's decisions about the old conversation forbid it, or have changed since.
        DonorAuthority => "donor_authority",
        /// The voice is too far from the owner or from the voice before.
        Acoustic => "acoustic",
        /// Another voice has the better claim to the owner.
        Arbitration => "arbitration",
    }
}

impl Reconnect {
    /// The outcome that this step is counted under.
    #[must_use]
    pub const fn outcome(self) -> &'static str {
        match self {
            Self::Attempted => "attempted",
            Self::Accepted => "accepted",
            Self::NoDevice
            | Self::Absent
            | Self::Corrupt
            | Self::Unavailable
            | Self::ExpiredOrProfile
            | Self::DonorAuthority
            | Self::Acoustic
            | Self::Arbitration => "rejected",
        }
    }
}

labels! {
    /// Whether a turn is the first of its number in this generation.
    Class {
        /// No query was spent on the number before.
        First => "first",
        /// One was.
        Repeat => "repeat",
    }
}

labels! {
    /// Whether a voice's age alone gave it its turn.
    Override {
        /// It had waited for the age override, and such a voice's turn it was.
        Yes => "yes",
        /// Its turn came by the ordinary order.
        No => "no",
    }
}

labels! {
    /// What a frame carries.
    FrameKind {
        /// Audio: a binary frame.
        Audio => "audio",
        /// A message: a text frame.
        Message => "message",
    }
}

labels! {
    /// What is sent to a collector item by item.
    Signal {
        /// Queries' traces.
        Traces => "traces",
        /// Log records.
        Logs => "logs",
    }
}

labels! {
    /// What became of an item for the collector.
    Exported {
        /// The collector took it.
        Sent => "sent",
        /// It found the queue full, because the collector is slow or away.
        Dropped => "dropped",
        /// The collector refused it.
        Refused => "refused",
    }
}

labels! {
    /// Why a query brought no voiceprint.
    FailureKind {
        /// The clip could not be turned into features.
        Encoding => "encoding",
        /// The model session returned an error.
        Extraction => "extraction",
        /// The vector was not finite, zero, or of the wrong size.
        BadVector => "bad_vector",
        /// The worker panicked on the clip.
        WorkerPanicked => "worker_panicked",
        /// The worker's thread ended before it answered.
        WorkerLost => "worker_lost",
        /// The run, or the wait for it, passed its deadline.
        DeadlinePassed => "deadline_passed",
        /// The caller left.
        Cancelled => "cancelled",
        /// The pool's queue was full.
        QueueFull => "queue_full",
        /// No worker could extract.
        Unavailable => "unavailable",
    }
}

labels! {
    /// Why audio, a message or a socket was refused at the door.
    Refusal {
        /// Not JSON, or not an object with a `type`.
        Malformed => "malformed",
        /// A `type` that the protocol does not have.
        UnknownType => "unknown_type",
        /// A field is missing, out of range, not finite or reversed.
        InvalidField => "invalid_field",
        /// A frame, a list or an id is longer than its limit.
        TooLarge => "too_large",
        /// Audio or a message came before `start`, or `start` came twice.
        OutOfOrder => "out_of_order",
        /// Well-formed, but not offered by this server.
        Unsupported => "unsupported",
        /// The WebSocket protocol itself was violated.
        ProtocolViolation => "protocol_violation",
        /// What came was no handshake of ours: no WebSocket, or another subprotocol.
        Handshake => "handshake",
        /// A limit of the process or of the conversation is reached.
        Capacity => "capacity",
        /// The client does not read its events.
        SlowClient => "slow_client",
        /// The server is shutting down.
        Draining => "draining",
    }
}

labels! {
    /// A broken invariant: a bug in the program, never the user's doing. Every value stays at 0 in a healthy process.
    Violation {
        /// A lane's own ledger did not balance.
        LaneBooks => "lane_books",
        /// An attempt was settled that was not open; it was not booked.
        SettledUnreserved => "settled_unreserved",
        /// A budget exit came without its cap; it was not booked.
        ExitWithoutCap => "exit_without_cap",
        /// A conversation's scheduler panicked.
        SchedulerLost => "scheduler_lost",
        /// A socket's actor panicked.
        SocketLost => "socket_lost",
    }
}

/// How an open attempt ended: the two values of [`Outcome`] that close one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Settled {
    /// Encoding and extraction returned a valid vector in time, even if it is stale or later rejected.
    Succeeded,
    /// Anything else.
    Failed,
}

impl Settled {
    /// The outcome that this ending is counted under.
    #[must_use]
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Succeeded => Outcome::Succeeded,
            Self::Failed => Outcome::Failed,
        }
    }
}
