//! What many seeds came to: one row for a scenario and a policy, or for a scenario and an option.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use matcher_core::Speaker;
use serde::Serialize;

use super::meter::Outcome;
use super::policy::Policy;
use super::report::{Figures, percentile, seconds_or_never};
use super::scenario::Scenario;
use super::setup::Setup;
use super::variant::Variant;
use super::{bounds, demand, world};

/// Many seeds of one scenario under one policy and one setup.
pub(super) struct Many {
    pub(super) figures: Vec<Figures>,
    /// Of all seeds, in order.
    pub(super) first_waits: Vec<Duration>,
    /// Voices that could be examined, in all seeds.
    pub(super) heard: usize,
}

/// Plays each seed under each policy and setup, and counts once what it demands under each setup.
pub(super) fn play(scenario: Scenario, seeds: Range<u64>, cases: &[(Policy, Setup)]) -> Vec<Many> {
    let mut all: Vec<Many> =
        cases.iter().map(|_| Many { figures: Vec::new(), first_waits: Vec::new(), heard: 0 }).collect();
    for seed in seeds {
        let script = scenario.script(seed);
        let mut demands: Vec<(&Setup, BTreeMap<Speaker, u32>)> = Vec::new();
        for ((policy, setup), many) in cases.iter().zip(&mut all) {
            if demands.last().is_none_or(|(of, _)| *of != setup) {
                demands.push((setup, demand(&script, setup)));
            }
            let demand = demands.last().map(|(_, demand)| demand).expect("the demand was just counted");
            let (machine, bounds) = (setup.machine(script.machine), bounds(&script, setup));
            let outcome: Outcome = world::run(script.clone(), *policy, setup);
            many.figures.push(Figures::new(&outcome, demand, machine, bounds));
            many.heard += outcome.heard.len();
            many.first_waits.extend(outcome.first_waits);
        }
    }
    all.iter_mut().for_each(|many| many.first_waits.sort_unstable());
    all
}

/// One row. Times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What happened.
    pub scenario: Scenario,
    /// Who was examined next.
    pub policy: Policy,
    /// Under which option.
    pub option: Variant,
    /// Seeds that were played.
    pub runs: usize,
    /// Of these, the share in which the owner was examined.
    pub owner_examined: f64,
    /// Within so long of having said enough the owner was examined in half of all runs; null when they were in fewer.
    pub owner_examined_p50_s: Option<f64>,
    /// ... and in nine of ten.
    pub owner_examined_p90_s: Option<f64>,
    /// The share in which the owner had their name in the end.
    pub owner_named: f64,
    /// ... within so long of having said enough, in half of these.
    pub owner_named_p50_s: f64,
    /// 99 of 100 first examinations waited no longer for their selection.
    pub first_wait_p99_s: f64,
    /// The longest wait of any slot in any run.
    pub worst_wait_s: f64,
    /// The largest part of its bound that a wait came to.
    pub wait_to_bound: f64,
    /// ... and the wait of a first examination.
    pub first_wait_to_bound: f64,
    /// The share of runs in which a wait exceeded its bound.
    pub bound_broken: f64,
    /// The share of runs in which an examined voice went before one never examined, and not for its age.
    pub untried_passed_over: f64,
    /// Selections that went by age alone, as a share of all.
    pub override_share: f64,
    /// Tokens spent on voices whose latest verdict was that they are nobody, as a share of all.
    pub rejected_share: f64,
    /// Jain's index of what each voice got of its fair share.
    pub jain: f64,
    /// Voices that were examined, as a share of those that could be.
    pub examined: f64,
    /// Tokens spent.
    pub reserved: f64,
    /// Time of workers that stood idle while somebody could be examined.
    pub idle_s: f64,
}

impl Row {
    fn new((scenario, policy, option): (Scenario, Policy, Variant), many: &Many) -> Self {
        let figures = &many.figures;
        let mean = |of: fn(&Figures) -> f64| figures.iter().map(of).sum::<f64>() / figures.len() as f64;
        let most = |of: fn(&Figures) -> f64| figures.iter().map(of).fold(0.0, f64::max);
        let examined = times(figures, |figures| figures.owner_examined_after_s);
        let named = times(figures, |figures| figures.owner_named_after_s);
        let one_if = |is_so: bool| f64::from(u8::from(is_so));
        Self {
            scenario,
            policy,
            option,
            runs: figures.len(),
            owner_examined: examined.len() as f64 / figures.len() as f64,
            owner_examined_p50_s: within(&examined, (figures.len(), 50)),
            owner_examined_p90_s: within(&examined, (figures.len(), 90)),
            owner_named: named.len() as f64 / figures.len() as f64,
            owner_named_p50_s: percentile(&named, 50),
            first_wait_p99_s: percentile(&many.first_waits, 99),
            worst_wait_s: most(|figures| figures.worst_wait_s),
            wait_to_bound: most(|figures| figures.worst_wait_s / figures.bound_s),
            first_wait_to_bound: most(|figures| figures.worst_first_wait_s / figures.first_bound_s),
            bound_broken: figures.iter().map(|figures| one_if(figures.breaks_a_bound())).sum::<f64>()
                / figures.len() as f64,
            untried_passed_over: figures.iter().map(|figures| one_if(figures.untried_passed_over > 0)).sum::<f64>()
                / figures.len() as f64,
            override_share: mean(|figures| figures.override_share),
            rejected_share: mean(|figures| figures.rejected_share),
            jain: mean(|figures| figures.jain),
            examined: mean(|figures| figures.examined as f64 / figures.voices.max(1) as f64),
            reserved: mean(|figures| figures.reserved as f64),
            idle_s: mean(|figures| figures.idle_s),
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let [half, nine_of_ten] =
            [self.owner_examined_p50_s, self.owner_examined_p90_s].map(|s| seconds_or_never(s, 1));
        let owner = format!("{half} / {nine_of_ten}");
        let to_bound = format!("{:.2} / {:.2}", self.wait_to_bound, self.first_wait_to_bound);
        writeln!(
            f,
            "{:<10} {name:<17} {:>4}  {owner:>15}  {:>6}  {:>7.2} s  {:>6.1} s  {to_bound:>11}  {:>6}  {:>6}  {:>6}  {:>8}  {:>5.2}  {:>7.1}  {:>6.1} s",
            self.scenario.as_str(),
            self.runs,
            percent(self.owner_named),
            self.first_wait_p99_s,
            self.worst_wait_s,
            percent(self.bound_broken),
            percent(self.untried_passed_over),
            percent(self.override_share),
            percent(self.rejected_share),
            self.jain,
            self.reserved,
            self.idle_s,
        )
    }
}

/// The times that there are, in order.
fn times(figures: &[Figures], of: fn(&Figures) -> Option<f64>) -> Vec<Duration> {
    let mut times: Vec<Duration> = figures.iter().filter_map(of).map(Duration::from_secs_f64).collect();
    times.sort_unstable();
    times
}

/// The time within which so many of a hundred of all runs had come to it; whoever never did counts as the longest.
fn within(sorted: &[Duration], (runs, percent): (usize, usize)) -> Option<f64> {
    let rank = (runs * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map(Duration::as_secs_f64)
}

/// Every scenario under several policies, or under several options.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The first seed.
    pub seed: u64,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Summary {
    /// The scenarios under these policies. A flood has as many updates as a hundred of the others, and gets fewer seeds.
    #[must_use]
    pub fn of_policies(scenarios: &[Scenario], policies: &[Policy], (seed, count): (u64, u64), setup: &Setup) -> Self {
        let cases: Vec<_> = policies.iter().map(|policy| (*policy, Variant::Default, setup.clone())).collect();
        Self::of(scenarios, &cases, (seed, count))
    }

    /// The scenarios in the service's order, under each option beside the defaults.
    #[must_use]
    pub fn of_options(scenarios: &[Scenario], (seed, count): (u64, u64), setup: &Setup) -> Self {
        let cases: Vec<_> = Variant::ALL.iter().map(|option| (Policy::Fair, *option, option.of(setup))).collect();
        Self::of(scenarios, &cases, (seed, count))
    }

    fn of(scenarios: &[Scenario], cases: &[(Policy, Variant, Setup)], (seed, count): (u64, u64)) -> Self {
        let played: Vec<(Policy, Setup)> = cases.iter().map(|(policy, _, setup)| (*policy, setup.clone())).collect();
        let rows = scenarios.iter().flat_map(|scenario| {
            let many = play(*scenario, seed..seed + scenario.runs(count), &played);
            let rows = cases.iter().zip(many);
            rows.map(|((policy, option, _), many)| Row::new((*scenario, *policy, *option), &many)).collect::<Vec<_>>()
        });
        Self { seed, rows: rows.collect() }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_of_options = self.rows.iter().any(|row| row.option != Variant::Default);
        writeln!(
            f,
            "{:<10} {:<17} {:>4}  {:>15}  {:>6}  {:>9}  {:>8}  {:>11}  {:>6}  {:>6}  {:>6}  {:>8}  {:>5}  {:>7}  {:>8}",
            "scenario",
            if is_of_options { "option" } else { "policy" },
            "runs",
            "owner p50/p90",
            "named",
            "first p99",
            "worst",
            "of bound",
            "broken",
            "passed",
            "by age",
            "rejected",
            "Jain",
            "queries",
            "idle"
        )?;
        for row in &self.rows {
            row.write(f, if is_of_options { row.option.as_str() } else { row.policy.as_str() })?;
        }
        Ok(())
    }
}
