//! Goal: the service's order keeps its bounds in every scenario and for every seed, each control breaks them, and a seed is a
//! whole run.
//! Method: every scenario over many seeds, as many as `ROLLCALL_SIMULATED_SEEDS` says; a failure names its seed.
//!
//! - [`bounds`]: what holds in every run; ten thousand of each scenario;
//! - [`controls`]: what breaks without one thing of the order, and that a second implementation selects the same;
//! - [`options`]: what the options that are off by default gain, cost and hold;
//! - [`recorded`]: that a recording plays as it was, and that a difference is found.

mod bounds;
mod controls;
mod options;
mod recorded;

use super::*;

/// Seeds of every scenario, unless the environment says another number.
const SEEDS: u64 = 10_000;

fn seeds(scenario: Scenario) -> std::ops::Range<u64> {
    let count = std::env::var("ROLLCALL_SIMULATED_SEEDS").ok();
    let count = count.map_or(SEEDS, |count| count.parse().expect("ROLLCALL_SIMULATED_SEEDS is a whole number"));
    0..scenario.runs(count)
}

/// A hundred seeds, always the same, where a share of them is under test.
fn under(scenario: Scenario, policy: Policy) -> Vec<Report> {
    within(scenario, policy, &Setup::default())
}

/// Without the demand, which takes as long to count as the run itself: the index of shares means nothing here.
fn within(scenario: Scenario, policy: Policy, setup: &Setup) -> Vec<Report> {
    let report = |seed| {
        let figures = figures(scenario.script(seed), policy, setup, &BTreeMap::new());
        Report { scenario, policy, seed, figures }
    };
    (0..scenario.runs(100)).map(report).collect()
}

fn share(reports: &[Report], is_so: impl Fn(&Figures) -> bool) -> f64 {
    reports.iter().filter(|report| is_so(&report.figures)).count() as f64 / reports.len() as f64
}

fn json(report: &Report) -> String {
    serde_json::to_string(report).unwrap()
}

#[test]
fn an_untried_owner_is_examined_before_eighty_updates_of_a_rejector_for_the_last_token() {
    for seed in 0..20 {
        let report = simulate(Scenario::Seed, Policy::Fair, seed);
        let figures = &report.figures;
        assert!(figures.owner_examined_first, "{report}");
        assert_eq!(figures.queries, Queries { owner: 1, rejector: 0, person: 0 }, "{report}");
        assert_eq!(figures.reserved, 8 + 10 + 1, "the rejector's eight attempts, ten guests and the owner: {report}");
    }
}

#[test]
fn in_order_of_arrival_the_rejector_takes_the_last_token_and_the_owner_gets_none() {
    for seed in 0..20 {
        let report = simulate(Scenario::Seed, Policy::Fifo, seed);
        let figures = &report.figures;
        assert!(!figures.owner_examined_first && figures.owner_examined_after_s.is_none(), "{report}");
        assert_eq!(figures.queries, Queries { owner: 0, rejector: 1, person: 0 }, "{report}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_gives_others() {
    for scenario in Scenario::ALL.into_iter().filter(|scenario| *scenario != Scenario::Flood) {
        for policy in Policy::ALL {
            let [once, again, other] = [7, 7, 8].map(|seed| simulate(scenario, policy, seed));
            assert_eq!((json(&once), once.to_string()), (json(&again), again.to_string()));
            let unnamed = Report { seed: once.seed, ..other };
            // The scenario of the last token is the same story for every seed; its moments are not.
            assert!(unnamed != once || scenario == Scenario::Seed, "{once}");
        }
    }
}

#[test]
fn a_scenario_a_policy_and_an_option_have_one_name_on_the_command_line_in_json_and_in_words() {
    use clap::ValueEnum;
    for scenario in Scenario::ALL {
        let name = scenario.to_possible_value().unwrap();
        assert_eq!(name.get_name(), scenario.as_str());
        assert!(!scenario.about().is_empty());
        assert_eq!(serde_json::to_value(scenario).unwrap(), scenario.as_str());
    }
    assert_eq!(Scenario::value_variants(), Scenario::ALL);
    for policy in Policy::ALL {
        assert_eq!(policy.to_possible_value().unwrap().get_name(), policy.as_str());
        assert_eq!(serde_json::to_value(policy).unwrap(), policy.as_str());
    }
    assert_eq!(Policy::value_variants(), Policy::ALL);
}

#[test]
fn the_drawings_are_closed_files_with_a_line_for_each_policy_and_no_address_but_their_own_kind() {
    let drawn = drawings(&[Scenario::Seed, Scenario::Bursts], (1, 2), &Setup::default());
    assert_eq!(drawn.len(), 4);
    for Drawing { name, svg } in &drawn {
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
        assert_eq!(svg.matches("http").count(), 1, "{name}: only the name space");
    }
    let lines = drawn.first().map(|drawing| drawing.svg.matches("<polyline").count());
    assert_eq!(lines, Some(2 * 6), "a line for each of six policies in each panel");
    assert_eq!(drawn, drawings(&[Scenario::Seed, Scenario::Bursts], (1, 2), &Setup::default()));
}
