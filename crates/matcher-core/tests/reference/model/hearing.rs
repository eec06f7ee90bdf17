//! What evidence says: the mean of its clips, how far that is from everybody, and who it is.

use crate::reference::mistake::Mistake;
use crate::reference::tally::Rule;
use crate::reference::words::{Person, Sound};

use super::Rules;

pub(crate) const THRESHOLD: f64 = 0.625;
pub(crate) const MARGIN: f64 = 0.25;
pub(crate) const NEAR_MISS: f64 = 0.875;
pub(crate) const GROUPING: f64 = 0.5;
pub(crate) const RECONNECT: f64 = 0.375;
pub(crate) const SUGGESTED_BELOW: f64 = 0.875;
pub(crate) const SUGGESTED_FROM: f64 = 0.125;
pub(crate) const LEVELS: [f64; 3] = [0.3, 0.7, 0.8];

pub(crate) type Vector = [f64; 16];

pub(crate) fn vector(sound: Sound) -> Vector {
    sound.values().map(f64::from)
}

/// The mean, brought to length one; nothing stays nothing.
pub(crate) fn centroid(sounds: &[Sound]) -> Vector {
    let mut sum = [0.0; 16];
    for sound in sounds {
        for (total, value) in sum.iter_mut().zip(vector(*sound)) {
            *total += value;
        }
    }
    let norm = norm(&sum);
    if norm > 0.0 { sum.map(|value| value / norm) } else { sum }
}

fn norm(vector: &Vector) -> f64 {
    vector.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// One minus the cosine; not a number when one of them is nothing.
pub(crate) fn distance(one: &Vector, other: &Vector) -> f64 {
    let dot: f64 = one.iter().zip(other).map(|(a, b)| a * b).sum();
    1.0 - dot / (norm(one) * norm(other))
}

/// What evidence says against the people.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Decision {
    /// Position of the nearest, and how far.
    pub(crate) best: Option<(usize, f64)>,
    pub(crate) runner_up: f64,
    pub(crate) is_accepted: bool,
}

pub(crate) fn owner(people: &[Person]) -> Option<&Person> {
    people.iter().find(|person| person.is_owner)
}

pub(crate) fn decide(centroid: &Vector, people: &[Person], rules: &Rules) -> Decision {
    let mut ranked: Vec<(usize, f64)> = Vec::new();
    for (at, person) in people.iter().enumerate() {
        let far = distance(centroid, &vector(person.sound));
        if !far.is_nan() {
            ranked.push((at, far));
        }
    }
    if rules.errs(Mistake::TiesFavourTheLater) {
        ranked.reverse();
    }
    ranked.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let best = ranked.first().copied();
    let runner_up = ranked.get(1).map_or(f64::INFINITY, |(_, far)| *far);
    let near = best.map_or(f64::INFINITY, |(_, far)| far);
    let is_near = near < THRESHOLD || near == THRESHOLD && rules.errs(Mistake::ThresholdIsInclusive);
    let gap = runner_up - near;
    let is_clear = gap > MARGIN || gap == MARGIN && !rules.errs(Mistake::MarginIsStrict);
    if is_near && gap == MARGIN {
        rules.saw(Rule::MarginJustKept);
    }
    if near == runner_up {
        rules.saw(Rule::TieOfPrints);
    }
    Decision { best, runner_up, is_accepted: is_near && is_clear }
}

impl Decision {
    pub(crate) fn gap(&self) -> f64 {
        self.best.map_or(f64::NAN, |(_, far)| self.runner_up - far)
    }

    pub(crate) fn best_is_owner(&self, people: &[Person]) -> bool {
        self.best.is_some_and(|(at, _)| people[at].is_owner)
    }

    pub(crate) fn is_near_miss(&self, people: &[Person]) -> bool {
        let is_near = self.best.is_some_and(|(_, far)| (THRESHOLD..NEAR_MISS).contains(&far));
        !self.is_accepted && self.best_is_owner(people) && is_near && self.gap() >= MARGIN
    }

    /// The pinned person whom this nearly names.
    pub(crate) fn suggests<'a>(&self, people: &'a [Person]) -> Option<&'a Person> {
        let (at, far) = self.best?;
        let person = &people[at];
        let is_far = (THRESHOLD..SUGGESTED_BELOW).contains(&far) && self.gap() >= MARGIN;
        let is_close_call = far < THRESHOLD && (SUGGESTED_FROM..MARGIN).contains(&self.gap());
        let is_wanted = person.is_pinned && !person.is_owner && !self.is_accepted;
        (is_wanted && (is_far || is_close_call)).then_some(person)
    }
}

pub(crate) fn level(far: f64) -> u8 {
    let mut level = 0;
    for bound in LEVELS {
        if far < bound {
            level += 1;
        }
    }
    level
}
