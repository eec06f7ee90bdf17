//! The options of the budget and the queue that are off by default, each as a setup to be held against the defaults.

use std::num::NonZeroU32;
use std::time::Duration;

use matcher_core::budget::{Relaxation, Renewal};
use serde::Serialize;

use super::setup::Setup;

/// A setup with one option, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// As it is.
    Default,
    /// `queue.override_every=2`.
    EverySecond,
    /// `budget.relaxed_tokens=4`.
    Relaxed,
    /// `budget.renewal_speech_seconds=30`.
    Renewed,
    /// All three.
    All,
}

impl Variant {
    /// Each of them.
    pub const ALL: [Self; 5] = [Self::Default, Self::EverySecond, Self::Relaxed, Self::Renewed, Self::All];

    /// The settings that make it, or what it is.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::EverySecond => "override_every=2",
            Self::Relaxed => "relaxed_tokens=4",
            Self::Renewed => "renewal_speech=30",
            Self::All => "all three",
        }
    }

    /// The setup with this option.
    #[must_use]
    pub fn of(self, setup: &Setup) -> Setup {
        let mut setup = setup.clone();
        if matches!(self, Self::EverySecond | Self::All) {
            setup.limits.override_every = number(2);
        }
        if matches!(self, Self::Relaxed | Self::All) {
            setup.budget.relaxation = Some(Relaxation { tokens: number(4), speech: Duration::from_secs(10) });
        }
        if matches!(self, Self::Renewed | Self::All) {
            setup.budget.renewal = Some(Renewal { speech: Duration::from_secs(30) });
        }
        setup
    }
}

fn number(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).expect("an option is not zero")
}
