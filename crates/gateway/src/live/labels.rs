//! The core's words as telemetry's closed label sets, and nothing else.

use gpu_worker::Failure;
use matcher_core::budget::{self, Outcome};
use matcher_core::queue::Tried;
use matcher_core::{Cap, Carried, Ending, ExitReason, Reconnect, Target};
use telemetry::FailureKind;

pub(super) const fn cap(cap: Cap) -> telemetry::Cap {
    match cap {
        Cap::Voice => telemetry::Cap::Voice,
        Cap::Socket => telemetry::Cap::Socket,
        Cap::Both => telemetry::Cap::Both,
    }
}

pub(super) const fn settled(settled: budget::Settled) -> telemetry::Settled {
    match settled {
        budget::Settled::Succeeded => telemetry::Settled::Succeeded,
        budget::Settled::Failed => telemetry::Settled::Failed,
    }
}

pub(super) const fn exit(reason: ExitReason) -> telemetry::ExitReason {
    match reason {
        ExitReason::StaleGeneration => telemetry::ExitReason::StaleGeneration,
        ExitReason::AlreadyMapped => telemetry::ExitReason::AlreadyMapped,
        ExitReason::VoiceCapacity => telemetry::ExitReason::VoiceCapacity,
        ExitReason::NoPcm => telemetry::ExitReason::NoPcm,
        ExitReason::SegmentShorterThanMinimum => telemetry::ExitReason::SegmentShorterThanMinimum,
        ExitReason::WindowOutsideBuffer => telemetry::ExitReason::WindowOutsideBuffer,
        ExitReason::NoFreshAudio => telemetry::ExitReason::NoFreshAudio,
        ExitReason::WindowShorterThanMinimum => telemetry::ExitReason::WindowShorterThanMinimum,
        ExitReason::EmbeddingBudget => telemetry::ExitReason::EmbeddingBudget,
        ExitReason::Rejected => telemetry::ExitReason::Rejected,
        ExitReason::ManualDecision => telemetry::ExitReason::ManualDecision,
        ExitReason::AuthorityUnavailable => telemetry::ExitReason::AuthorityUnavailable,
    }
}

pub(super) const fn target(target: Target) -> telemetry::Target {
    match target {
        Target::Owner => telemetry::Target::Owner,
        Target::Person => telemetry::Target::Person,
    }
}

pub(super) const fn carried(carried: Carried) -> telemetry::Carried {
    match carried {
        Carried::Manual => telemetry::Carried::Manual,
        Carried::Automatic => telemetry::Carried::Automatic,
        Carried::Nothing => telemetry::Carried::None,
    }
}

pub(super) const fn reconnect(ending: Reconnect) -> telemetry::Reconnect {
    match ending {
        Reconnect::Accepted => telemetry::Reconnect::Accepted,
        Reconnect::Acoustic => telemetry::Reconnect::Acoustic,
        Reconnect::DonorAuthority => telemetry::Reconnect::DonorAuthority,
        Reconnect::Arbitration => telemetry::Reconnect::Arbitration,
    }
}

pub(super) const fn class(tried: Tried) -> telemetry::Class {
    match tried {
        Tried::Never => telemetry::Class::First,
        Tried::Before => telemetry::Class::Repeat,
    }
}

pub(super) const fn by_age(by_age: bool) -> telemetry::Override {
    if by_age { telemetry::Override::Yes } else { telemetry::Override::No }
}

pub(super) const fn decision(ending: Ending) -> telemetry::Decision {
    match ending {
        Ending::Accepted => telemetry::Decision::Accepted,
        Ending::Rejected => telemetry::Decision::Rejected,
        Ending::Ambiguous => telemetry::Decision::Ambiguous,
        Ending::Pending => telemetry::Decision::Pending,
    }
}

/// How a failure is booked, and how it is counted.
pub(crate) const fn failure(failure: &Failure) -> (Outcome, FailureKind) {
    match failure {
        Failure::Encoding(_) => (Outcome::EncodingFailed, FailureKind::Encoding),
        Failure::Extraction(_) => (Outcome::ExtractionFailed, FailureKind::Extraction),
        Failure::BadVector(_) => (Outcome::ExtractionFailed, FailureKind::BadVector),
        Failure::WorkerPanicked => (Outcome::WorkerLost, FailureKind::WorkerPanicked),
        Failure::WorkerLost => (Outcome::WorkerLost, FailureKind::WorkerLost),
        Failure::DeadlinePassed => (Outcome::DeadlinePassed, FailureKind::DeadlinePassed),
        Failure::Cancelled => (Outcome::Cancelled, FailureKind::Cancelled),
        Failure::QueueFull => (Outcome::Cancelled, FailureKind::QueueFull),
        Failure::Unavailable => (Outcome::ExtractionFailed, FailureKind::Unavailable),
    }
}
