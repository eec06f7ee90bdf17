//! FAR, FRR, EER and a threshold from two lists of distances. Pure arithmetic.
//!
//! A comparison is accepted when its distance lies strictly below the threshold, as in matching. So both rates are steps:
//! they change just above each distance that occurs, and counts, not rates, are compared.

use serde::Serialize;

/// Cosine distances end here.
pub(super) const DISTANCE_MAX: f64 = 2.0;

/// The share of strangers that the suggested threshold may let through in one comparison, in per cent.
pub(super) const FAR_MAX_PERCENT: usize = 1;

/// Why there are no rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RatesError {
    /// No target trial.
    #[error("there is no target trial, so nothing says how near a person is to itself")]
    NoTargets,
    /// No nontarget trial.
    #[error("there is no nontarget trial, so nothing says how far apart two people are")]
    NoNontargets,
    /// A distance is no number.
    #[error("a distance is not a finite number; a voiceprint is zero")]
    NotFinite,
}

/// The distances of both kinds, in rising order.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    targets: Vec<f64>,
    nontargets: Vec<f64>,
}

/// What one threshold does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Accepted is what lies strictly below.
    pub threshold: f64,
    /// False accepts among the nontarget trials, 0 to 1.
    pub far: f64,
    /// False rejects among the target trials, 0 to 1.
    pub frr: f64,
    /// Nontarget trials that are accepted.
    pub false_accepts: usize,
    /// Target trials that are rejected.
    pub false_rejects: usize,
}

/// Where both errors are equally frequent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Eer {
    /// The rate, 0 to 1; interpolated where the steps cross without meeting.
    pub rate: f64,
    /// The threshold there.
    pub threshold: f64,
}

/// A threshold, and the range in which every other one makes as few false rejects.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Suggestion {
    /// The middle of the range.
    pub point: Point,
    /// Above this distance ...
    pub from: f64,
    /// ... and up to this one.
    pub to: f64,
}

impl Rates {
    /// Sorts the distances. What rounding has put outside 0 to 2 is put back.
    ///
    /// # Errors
    /// When either list is empty or a distance is not finite.
    pub fn new(targets: Vec<f64>, nontargets: Vec<f64>) -> Result<Self, RatesError> {
        if targets.is_empty() {
            return Err(RatesError::NoTargets);
        }
        if nontargets.is_empty() {
            return Err(RatesError::NoNontargets);
        }
        Ok(Self { targets: sorted(targets)?, nontargets: sorted(nontargets)? })
    }

    /// Target trials.
    #[must_use]
    pub fn targets(&self) -> usize {
        self.targets.len()
    }

    /// Nontarget trials.
    #[must_use]
    pub fn nontargets(&self) -> usize {
        self.nontargets.len()
    }

    /// What a threshold does.
    #[must_use]
    pub fn at(&self, threshold: f64) -> Point {
        let false_accepts = below(&self.nontargets, threshold);
        let false_rejects = self.targets.len() - below(&self.targets, threshold);
        Point {
            threshold,
            far: false_accepts as f64 / self.nontargets.len() as f64,
            frr: false_rejects as f64 / self.targets.len() as f64,
            false_accepts,
            false_rejects,
        }
    }

    /// Every distance that occurs, once, rising. The rates are constant above one and up to the next.
    pub(super) fn steps(&self) -> Vec<f64> {
        let mut steps = [self.targets.as_slice(), self.nontargets.as_slice()].concat();
        steps.sort_by(f64::total_cmp);
        steps.dedup();
        steps
    }

    /// The equal error rate.
    #[must_use]
    pub fn eer(&self) -> Eer {
        // Nothing lies strictly below the first step: all are rejected there.
        let mut before = self.at(0.0);
        for threshold in self.steps().into_iter().chain([f64::INFINITY]) {
            let here = self.at(threshold);
            let (accepts, rejects) =
                (here.false_accepts * self.targets.len(), here.false_rejects * self.nontargets.len());
            if accepts == rejects {
                // Equal from the step before to this one.
                return Eer { rate: here.far, threshold: f64::midpoint(before.threshold, threshold.min(DISTANCE_MAX)) };
            }
            if accepts > rejects {
                let (above, under) = (before.frr - before.far, here.far - here.frr);
                let rate = before.far + (here.far - before.far) * above / (above + under);
                return Eer { rate, threshold: before.threshold };
            }
            before = here;
        }
        unreachable!("above the greatest distance everything is accepted, so the curves have crossed")
    }

    /// The fewest false rejects at a FAR of at most one per cent.
    ///
    /// Several thresholds do equally well: from the farthest target trial that is accepted to where one more stranger
    /// would be let in. Their middle keeps the same distance from both errors, which a few trials more would move.
    #[must_use]
    pub fn suggest(&self) -> Suggestion {
        let allowed = self.nontargets.len() * FAR_MAX_PERCENT / 100;
        let to = self.nontargets.get(allowed).copied().expect("one per cent of a list is less than the list");
        let from = self.targets.get(..below(&self.targets, to)).and_then(<[f64]>::last).copied().unwrap_or(0.0);
        Suggestion { point: self.at(middle(from, to)), from, to }
    }
}

/// The middle of a range that its lower end does not belong to; two neighbouring numbers have none but the upper.
fn middle(from: f64, to: f64) -> f64 {
    let middle = f64::midpoint(from, to);
    if middle > from { middle } else { to }
}

fn sorted(mut distances: Vec<f64>) -> Result<Vec<f64>, RatesError> {
    if distances.iter().any(|distance| !distance.is_finite()) {
        return Err(RatesError::NotFinite);
    }
    for distance in &mut distances {
        // Adding zero makes a negative zero positive, so that equal distances are one step.
        *distance = distance.clamp(0.0, DISTANCE_MAX) + 0.0;
    }
    distances.sort_by(f64::total_cmp);
    Ok(distances)
}

fn below(sorted: &[f64], threshold: f64) -> usize {
    sorted.partition_point(|distance| *distance < threshold)
}
