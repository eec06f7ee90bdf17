//! The answer of a calibration: its shape in JSON, and how it reads as text.

use std::fmt::{Display, Formatter, Result as Written};

use gpu_worker::Manifest;
use serde::Serialize;

use super::gaps::Gaps;
use super::rates::FAR_MAX_PERCENT;
use super::{Eer, Kind, OpenSet, Outcomes, Point, Rates, RatesError, Suggestion, Trial};
use crate::people::SPEECH_SECONDS_MIN;

/// With fewer target trials one clip moves the FRR by more than three points.
const TARGETS_MIN: usize = 30;

/// With fewer nontarget trials one per cent of them is not one trial.
const NONTARGETS_MIN: usize = 100;

/// With fewer clips the outermost twentieth is a single clip.
const GAPS_MIN: usize = 20;

/// Rows of the table: every twentieth up to where two people are as far apart as chance puts them.
const TABLE_STEP: f64 = 0.05;
const TABLE_ROWS: u32 = 20;

/// Where the trials come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A list of pairs.
    Trials,
    /// A directory with one folder a person.
    People,
}

/// Everything that a calibration found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    model: Model,
    source: Source,
    trials: Counts,
    eer: f64,
    eer_threshold: f64,
    table: Vec<Point>,
    suggested: Suggested,
    present: Rule,
    open_set: OpenSet,
    warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Model {
    name: String,
    fingerprint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Counts {
    target: usize,
    nontarget: usize,
}

/// A threshold with a margin, and what they do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Rule {
    #[serde(flatten)]
    point: Point,
    margin: Option<f64>,
    outcomes: Option<Outcomes>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Suggested {
    #[serde(flatten)]
    rule: Rule,
    threshold_from: f64,
    threshold_to: f64,
    threshold_is: String,
    margin_is: &'static str,
}

/// How the margin is chosen.
const MARGIN_IS: &str = "the smaller of two gaps between the best and the second: the one that 95 % of unknown clips \
                         stay below, and the one that 95 % of known clips exceed";

impl Report {
    /// Works out everything. `present` holds the threshold and the margin in use; `short` counts the clips with too
    /// little speech to be samples.
    ///
    /// # Errors
    /// When a kind of trial is missing or a distance is no number.
    pub fn new(present: &Manifest, source: Source, trials: &[Trial], short: usize) -> Result<Self, RatesError> {
        let rates = rates(trials)?;
        let gaps = Gaps::of(trials);
        let (open_set, Eer { rate, threshold }) = (gaps.open_set(), rates.eer());
        let rule = |point: Point, margin: Option<f64>| {
            let outcomes = margin.map(|margin| gaps.under(point.threshold, margin));
            Rule { point, margin, outcomes }
        };
        let Suggestion { point, from, to } = rates.suggest();
        Ok(Self {
            model: Model { name: present.name.clone(), fingerprint: present.fingerprint.clone() },
            source,
            trials: Counts { target: rates.targets(), nontarget: rates.nontargets() },
            eer: rate,
            eer_threshold: threshold,
            table: (1..=TABLE_ROWS).map(|row| rates.at(row_threshold(row))).collect(),
            suggested: Suggested {
                rule: rule(point, open_set.margin()),
                threshold_from: from,
                threshold_to: to,
                threshold_is: threshold_is(),
                margin_is: MARGIN_IS,
            },
            present: rule(rates.at(present.threshold), Some(present.margin)),
            open_set,
            warnings: warnings(&rates, &open_set, short),
        })
    }

    /// What makes these numbers doubtful, each one line.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The model's name, for a title.
    pub(super) fn model(&self) -> &str {
        &self.model.name
    }

    /// What is marked in a plot: the threshold in use, the suggested one and the EER.
    pub(super) fn marks(&self) -> (Point, Point, Eer) {
        let eer = Eer { rate: self.eer, threshold: self.eer_threshold };
        (self.present.point, self.suggested.rule.point, eer)
    }
}

/// The distances by kind.
///
/// # Errors
/// When a kind of trial is missing or a distance is no number.
pub(super) fn rates(trials: &[Trial]) -> Result<Rates, RatesError> {
    let of = |kind| trials.iter().filter(move |trial| trial.kind == kind).map(|trial| trial.distance).collect();
    Rates::new(of(Kind::Target), of(Kind::Nontarget))
}

/// Of a whole number of steps, so that 0.15 is written as 0.15.
fn row_threshold(row: u32) -> f64 {
    f64::from(row) / (1.0 / TABLE_STEP).round()
}

fn threshold_is() -> String {
    format!("the smallest FRR at FAR <= {FAR_MAX_PERCENT} %; of the thresholds with that FRR, the middle")
}

fn warnings(rates: &Rates, open_set: &OpenSet, short: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    let (targets, nontargets) = (rates.targets(), rates.nontargets());
    if targets < TARGETS_MIN {
        warnings.push(format!(
            "only {targets} target trials: too few to mean anything; add clips until there are {TARGETS_MIN}"
        ));
    }
    if nontargets < NONTARGETS_MIN {
        warnings.push(format!(
            "only {nontargets} nontarget trials: a FAR of {FAR_MAX_PERCENT} % cannot be told from 0; add people until there are {NONTARGETS_MIN}"
        ));
    }
    if open_set.margin().is_none() {
        warnings.push(
            "no margin is suggested: that needs clips compared with their own person and with two others".to_owned(),
        );
    } else if open_set.known_clips.min(open_set.unknown_clips) < GAPS_MIN {
        warnings.push(format!(
            "the margin rests on {} known and {} unknown clips; {GAPS_MIN} of each are the least for a twentieth",
            open_set.known_clips, open_set.unknown_clips
        ));
    }
    if short > 0 {
        warnings.push(format!("clips with less than {SPEECH_SECONDS_MIN} s of speech: {short}; people are not told apart well by so little"));
    }
    warnings
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        let Counts { target, nontarget } = self.trials;
        writeln!(f, "model {} ({:.12})", self.model.name, self.model.fingerprint)?;
        writeln!(f, "{target} target and {nontarget} nontarget trials; {}", self.source)?;
        writeln!(f, "EER {:.2} % at threshold {:.3}\n", self.eer * 100.0, self.eer_threshold)?;
        writeln!(f, "threshold      FAR %      FRR %   false accepts   false rejects")?;
        for row in &self.table {
            write_row(f, row, "")?;
        }
        write_row(f, &self.present.point, "   in use")?;
        write_row(f, &self.suggested.rule.point, "   suggested")?;
        self.write_gaps(f)?;
        writeln!(f, "\n            threshold   margin   known right / wrong / rejected   unknown accepted")?;
        self.write_rule(f, "in use", &self.present)?;
        self.write_rule(f, "suggested", &self.suggested.rule)?;
        let Suggested { threshold_from, threshold_to, threshold_is, margin_is, .. } = &self.suggested;
        writeln!(f, "\nthreshold: {threshold_is} (from {threshold_from:.3} to {threshold_to:.3})")?;
        writeln!(f, "margin: {margin_is}")
    }
}

impl Report {
    fn write_gaps(&self, f: &mut Formatter<'_>) -> Written {
        let set = &self.open_set;
        writeln!(f, "\ngap from the best to the second, each clip's own person in (known) and left out (unknown)")?;
        writeln!(
            f,
            "known    {:>5} clips   p5 {}   median {}",
            set.known_clips,
            number(set.known_gap_p5),
            number(set.known_gap_p50)
        )?;
        writeln!(
            f,
            "unknown  {:>5} clips   median {}   p95 {}",
            set.unknown_clips,
            number(set.unknown_gap_p50),
            number(set.unknown_gap_p95)
        )
    }

    fn write_rule(&self, f: &mut Formatter<'_>, name: &str, rule: &Rule) -> Written {
        let (known, unknown) = (self.open_set.known_clips, self.open_set.unknown_clips);
        write!(f, "{name:<11} {:>9.3}   {:>6}", rule.point.threshold, number(rule.margin))?;
        match rule.outcomes {
            Some(Outcomes { right, wrong, rejected, unknown_accepted }) => {
                writeln!(f, "   {right} / {wrong} / {rejected} of {known:<14} {unknown_accepted} of {unknown}")
            }
            None => writeln!(f, "   -"),
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        f.write_str(match self {
            Self::Trials => "one clip against another, as listed; target trials join clips to people",
            Self::People => {
                "each clip against the mean of its person's other clips, and against each other person's mean"
            }
        })
    }
}

fn write_row(f: &mut Formatter<'_>, row: &Point, remark: &str) -> Written {
    let Point { threshold, far, frr, false_accepts, false_rejects } = row;
    let (far, frr) = (far * 100.0, frr * 100.0);
    writeln!(f, "{threshold:>9.3}   {far:>8.2}   {frr:>8.2}   {false_accepts:>13}   {false_rejects:>13}{remark}")
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}
