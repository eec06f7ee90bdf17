//! The margin: how much nearer the best person is than the second, for people who are enrolled and for strangers.
//!
//! A stranger is made of every clip by leaving its own person out of the people it is compared with. So one set of trials
//! gives both distributions. Pure arithmetic.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Kind, Trial};

/// The share of known clips that a margin may cost, and of strangers that it may let through, in per cent.
const TAIL_PERCENT: usize = 5;

/// What the gaps between best and second say. A distribution without clips has no quantiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OpenSet {
    /// Clips with a trial against their own person and one against another.
    pub known_clips: usize,
    /// One known clip in twenty has a smaller gap from its own person to the nearest other; negative: another is nearer.
    pub known_gap_p5: Option<f64>,
    /// The median of these gaps.
    pub known_gap_p50: Option<f64>,
    /// Clips with trials against two other people.
    pub unknown_clips: usize,
    /// The median gap from the nearest stranger to the second.
    pub unknown_gap_p50: Option<f64>,
    /// One unknown clip in twenty has a greater gap.
    pub unknown_gap_p95: Option<f64>,
}

/// What becomes of the clips under one threshold and margin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Outcomes {
    /// Known clips that got their own person.
    pub right: usize,
    /// Known clips that got somebody else.
    pub wrong: usize,
    /// Known clips that got nobody.
    pub rejected: usize,
    /// Unknown clips that got somebody.
    pub unknown_accepted: usize,
}

/// The distances of one clip that matter here.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    own: Option<f64>,
    /// The nearest other person, with its number.
    other: Option<(f64, usize)>,
    /// The nearest person but for that one.
    second: Option<f64>,
}

/// All clips, each with its nearest distances.
#[derive(Debug, Clone)]
pub(super) struct Gaps(Vec<Heard>);

impl Gaps {
    pub(super) fn of(trials: &[Trial]) -> Self {
        let mut clips: BTreeMap<usize, Heard> = BTreeMap::new();
        for trial in trials {
            clips.entry(trial.test).or_default().note(trial);
        }
        Self(clips.into_values().collect())
    }

    pub(super) fn open_set(&self) -> OpenSet {
        let known = sorted(self.0.iter().filter_map(Heard::known_gap));
        let unknown = sorted(self.0.iter().filter_map(Heard::unknown_gap));
        OpenSet {
            known_clips: known.len(),
            known_gap_p5: quantile(&known, TAIL_PERCENT),
            known_gap_p50: quantile(&known, 50),
            unknown_clips: unknown.len(),
            unknown_gap_p50: quantile(&unknown, 50),
            unknown_gap_p95: quantile(&unknown, 100 - TAIL_PERCENT),
        }
    }

    pub(super) fn under(&self, threshold: f64, margin: f64) -> Outcomes {
        let accepted = |best: f64, second: f64| best < threshold && second - best >= margin;
        let mut outcomes = Outcomes::default();
        for heard in &self.0 {
            if let (Some(own), Some(other)) = (heard.own, heard.other()) {
                let second = heard.second.map_or(own, |second| second.min(own));
                let ending = match own < other {
                    true if accepted(own, other) => &mut outcomes.right,
                    false if accepted(other, second) => &mut outcomes.wrong,
                    true | false => &mut outcomes.rejected,
                };
                *ending += 1;
            }
            if let (Some(other), Some(second)) = (heard.other(), heard.second) {
                outcomes.unknown_accepted += usize::from(accepted(other, second));
            }
        }
        outcomes
    }
}

impl OpenSet {
    /// The smallest margin that turns away 95 % of strangers, but none that costs more than 5 % of known clips.
    /// `None` when either was not measured.
    #[must_use]
    pub fn margin(&self) -> Option<f64> {
        Some(self.unknown_gap_p95?.min(self.known_gap_p5?).max(0.0))
    }
}

impl Heard {
    fn note(&mut self, trial: &Trial) {
        let nearer = |held: Option<f64>| Some(held.map_or(trial.distance, |held| held.min(trial.distance)));
        match trial.kind {
            Kind::Target => self.own = nearer(self.own),
            Kind::Nontarget => match self.other {
                // Two prints of one person say nothing about how far apart two people are.
                Some((distance, person)) if person == trial.person => {
                    self.other = Some((distance.min(trial.distance), person));
                }
                Some((distance, _)) if distance <= trial.distance => self.second = nearer(self.second),
                Some(_) | None => {
                    let pushed = self.other.replace((trial.distance, trial.person));
                    self.second = pushed.map(|(distance, _)| distance);
                }
            },
        }
    }

    fn other(&self) -> Option<f64> {
        self.other.map(|(distance, _)| distance)
    }

    fn known_gap(&self) -> Option<f64> {
        Some(self.other()? - self.own?)
    }

    fn unknown_gap(&self) -> Option<f64> {
        Some(self.second? - self.other()?)
    }
}

fn sorted(gaps: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut gaps: Vec<f64> = gaps.collect();
    gaps.sort_by(f64::total_cmp);
    gaps
}

/// By nearest rank: the smallest value that this share of all does not exceed. Nothing is interpolated, so a quantile of
/// few values is one of them.
fn quantile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}
