//! What can be told of a voice when its conversation is over: what was kept of it, with what people decided by now.

use std::sync::Arc;

use matcher_core::policy::Shortfall;

use super::words::{distance, seconds};
use super::{Rules, Told};

/// What is left to tell of a voice when its conversation is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// The name that holds by now.
    pub name: Option<Arc<str>>,
    /// Whether somebody decided who it is, or is not.
    pub is_decided: bool,
    /// Distance to the best print, and to the next.
    pub distances: (Option<f64>, Option<f64>),
    /// Seconds of speech behind it.
    pub evidence_seconds: f64,
    /// Questions spent.
    pub attempts: u32,
}

/// About a voice of a conversation that is over.
#[must_use]
pub fn ended(past: &Past, rules: &Rules) -> Told {
    let summary = match (&past.name, past.is_decided) {
        (Some(name), true) => format!("Somebody said that this is {name}."),
        (Some(name), false) => format!("This is {name}."),
        (None, true) => "Somebody said that this is nobody with a name here, or not who it seemed to be.".to_owned(),
        (None, false) => "It got no name.".to_owned(),
    };
    let came_out = match past.distances {
        (Some(best), Some(next)) => {
            format!("The nearest person was at {}, the next at {}.", distance(best), distance(next))
        }
        (Some(best), None) => format!("The nearest person was at {}.", distance(best)),
        (None, _) => "Nothing was compared.".to_owned(),
    };
    Told {
        summary,
        heard: vec![format!("{} of its speech were kept as evidence.", seconds(past.evidence_seconds))],
        asked: vec![format!("{} of {} questions to the model were spent on it.", past.attempts, rules.attempts)],
        came_out: vec![came_out],
        missing: past.missing(rules),
        would_change: vec!["A correction: what somebody says holds at once.".to_owned()],
    }
}

impl Past {
    fn missing(&self, rules: &Rules) -> Vec<String> {
        let mut told = Vec::new();
        if self.name.is_some() || self.is_decided {
            return told;
        }
        let short = rules.evidence_seconds - self.evidence_seconds;
        if short > 0.0 {
            told.push(format!("{} of examined speech.", seconds(short)));
        }
        let (best, next) = self.distances;
        match best.and_then(|best| rules.policy.shortfall(best, next.unwrap_or(f64::INFINITY))) {
            Some(Shortfall::Far) => told.push(format!("A distance below {}.", distance(rules.policy.threshold))),
            Some(Shortfall::Close) => told.push(format!("{} between the nearest two.", distance(rules.policy.margin))),
            None => {}
        }
        told
    }
}
