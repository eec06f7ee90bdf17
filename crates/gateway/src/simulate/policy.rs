//! Who is examined next: the service's order, ideal ones, and controls, each of which lacks one thing.

use std::time::Duration;

use clap::ValueEnum;
use matcher_core::Limits;
use serde::Serialize;

use super::discipline::{Discipline, Fair};
use super::jobs::{Jobs, Line};
use super::script::Script;
use super::slots::{Order, Slots};
use super::voices::Cast;

/// Who is examined next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The service's order: one slot a voice, the untried first, from five seconds of age the oldest
    Fair,
    /// A plain queue: every update a job of its own, in order of arrival
    Fifo,
    /// Ideal for the owner: an oracle that knows who everybody is examines the owner first, then people, then strangers
    Oracle,
    /// Ideal for even shares: whoever was examined least
    Even,
    /// The youngest slot first
    Youngest,
    /// The service's order without the age: nobody goes first for having waited
    NoAge,
    /// The service's order without the untried: who was never examined has no preference
    NoUntried,
    /// The service's order without slots: every update a job of its own
    NoCoalescing,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Fair,
        Self::Fifo,
        Self::Oracle,
        Self::Even,
        Self::Youngest,
        Self::NoAge,
        Self::NoUntried,
        Self::NoCoalescing,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::Fifo => "fifo",
            Self::Oracle => "oracle",
            Self::Even => "even",
            Self::Youngest => "youngest",
            Self::NoAge => "no-age",
            Self::NoUntried => "no-untried",
            Self::NoCoalescing => "no-coalescing",
        }
    }

    /// Starts it for a script. A recorded lane's verdicts are given, so there the core's queue goes without the core's lane.
    pub(super) fn discipline(self, script: &Script, limits: Limits) -> Box<dyn Discipline> {
        let (rate, cast) = (script.rate, script.cast.clone());
        let slots = |order, limits| -> Box<dyn Discipline> { Box::new(Slots::new(rate, limits, order, cast.clone())) };
        let ageless = |limits| Limits { age_override: Duration::MAX, ..limits };
        match (self, &script.cast) {
            (Self::Fair, Cast::Scripted) => Box::new(Fair::new(rate, limits)),
            (Self::NoAge, Cast::Scripted) => Box::new(Fair::new(rate, ageless(limits))),
            (Self::Fair, Cast::Recorded(_)) => slots(Order::Service, limits),
            (Self::NoAge, Cast::Recorded(_)) => slots(Order::Service, ageless(limits)),
            (Self::Fifo, _) => Box::new(Jobs::new(rate, limits, Line::Arrival, cast.clone())),
            (Self::NoCoalescing, _) => Box::new(Jobs::new(rate, limits, Line::Service, cast.clone())),
            (Self::Oracle, _) => slots(Order::Owner, limits),
            (Self::Even, _) => slots(Order::Even, limits),
            (Self::Youngest, _) => slots(Order::Youngest, limits),
            (Self::NoUntried, _) => slots(Order::NoUntried, limits),
        }
    }
}

/// The service's order over the core's queue, with verdicts from outside the core.
#[cfg(test)]
pub(super) fn service_twin(script: &Script, limits: Limits) -> Box<dyn Discipline> {
    Box::new(Slots::new(script.rate, limits, Order::Service, script.cast.clone()))
}
