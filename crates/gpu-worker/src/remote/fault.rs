//! What can go wrong with a query that another machine was asked. Kinds and numbers only: never a body, never a value.

use matcher_core::BadVector;

use crate::engine::Failure;

/// Why an endpoint gave no voiceprint. The query is over either way: it is never asked a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No endpoint is in service: every circuit is open.
    #[error("no extraction server is in service")]
    NoEndpoint,
    /// Too little time was left, and nothing was sent.
    #[error("the deadline had passed before the query was sent")]
    Late,
    /// The caller's deadline came before the endpoint had the time that it may take. Nobody is to blame.
    #[error("the deadline came before the extraction server answered")]
    OutOfTime,
    /// The caller left, or the service ends, and the exchange was broken off from this side. Nobody is to blame.
    #[error("the caller left before the extraction server answered")]
    GivenUp,
    /// No connection came about, or its name is not known.
    #[error("the extraction server cannot be reached")]
    Unreachable,
    /// The connection ended before the answer did.
    #[error("the extraction server broke off")]
    Broken,
    /// It did not answer, or not to the end, in the time that it may take.
    #[error("the extraction server did not answer in time")]
    Stalled,
    /// It answered with a status that is none of success.
    #[error("the extraction server answered {0}")]
    Status(u16),
    /// It answered that this clip cannot be used. Other clips may be.
    #[error("the extraction server refused the clip with {0}")]
    Refused(u16),
    /// It sent more than an answer can be; the rest was not read.
    #[error("the extraction server sent more than an answer can be")]
    TooLarge,
    /// What it sent is not an answer of the protocol.
    #[error("the extraction server's answer cannot be used: {0}")]
    NotAnAnswer(&'static str),
    /// It sent something that is not a voiceprint of this model.
    #[error("the extraction server gave a bad vector: {0}")]
    BadVector(#[from] BadVector),
    /// It answers a clip with another voiceprint than the endpoints before it: it runs another model.
    #[error(
        "the extraction server gives other voiceprints than those before it; every endpoint must run the same model"
    )]
    AnotherModel,
}

impl Fault {
    /// What kind it is, in one word: for counting, where statuses and reasons would be too many.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::NoEndpoint => "no_endpoint",
            Self::Late => "late",
            Self::OutOfTime => "out_of_time",
            Self::GivenUp => "given_up",
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
            Self::Stalled => "stalled",
            Self::Status(_) => "status",
            Self::Refused(_) => "refused",
            Self::TooLarge => "too_large",
            Self::NotAnAnswer(_) => "not_an_answer",
            Self::BadVector(_) => "bad_vector",
            Self::AnotherModel => "another_model",
        }
    }

    /// A refusal where no caller's clip was sent is the server's fault.
    pub(super) fn not_the_clips(self) -> Self {
        if let Self::Refused(status) = self { Self::Status(status) } else { self }
    }

    /// Whether it speaks against the endpoint.
    pub(super) fn is_the_endpoints(self) -> bool {
        match self {
            Self::NoEndpoint | Self::Late | Self::OutOfTime | Self::GivenUp | Self::Refused(_) => false,
            Self::Unreachable
            | Self::Broken
            | Self::Stalled
            | Self::Status(_)
            | Self::TooLarge
            | Self::NotAnAnswer(_)
            | Self::BadVector(_)
            | Self::AnotherModel => true,
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NoEndpoint => Self::Unavailable,
            Fault::Late | Fault::OutOfTime | Fault::Stalled => Self::DeadlinePassed,
            Fault::GivenUp => Self::Cancelled,
            Fault::BadVector(bad) => Self::BadVector(bad),
            Fault::Refused(_) => Self::Encoding(fault.to_string()),
            Fault::Unreachable
            | Fault::Broken
            | Fault::Status(_)
            | Fault::TooLarge
            | Fault::NotAnAnswer(_)
            | Fault::AnotherModel => Self::Extraction(fault.to_string()),
        }
    }
}
