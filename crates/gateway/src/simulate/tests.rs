//! Goal: the service's order keeps its bounds in every scenario, the control does not, and a seed is a whole run.
//! Method: every scenario over many seeds, as many as `ROLLCALL_SIMULATED_SEEDS` says; a failure names its seed.

use matcher_core::Monotonic;

use super::{Policy, Report, Scenario, report, simulate, world};

/// Seeds of every scenario, unless the environment says another number.
const SEEDS: u64 = 1_000;

/// A flood has as many updates as a hundred of the others, and gets fewer seeds.
fn fewer(count: u64, scenario: Scenario) -> u64 {
    if scenario == Scenario::Flood { count.div_ceil(50) } else { count }
}

fn seeds(scenario: Scenario) -> std::ops::Range<u64> {
    let count = std::env::var("ROLLCALL_SIMULATED_SEEDS").ok();
    let count = count.map_or(SEEDS, |count| count.parse().expect("ROLLCALL_SIMULATED_SEEDS is a whole number"));
    0..fewer(count, scenario)
}

/// A hundred seeds, always the same, where a share of them is under test.
fn under(scenario: Scenario, policy: Policy) -> Vec<Report> {
    (0..fewer(100, scenario)).map(|seed| simulate(scenario, policy, seed)).collect()
}

fn share(reports: &[Report], is_so: impl Fn(&Report) -> bool) -> f64 {
    reports.iter().filter(|report| is_so(report)).count() as f64 / reports.len() as f64
}

fn json(report: &Report) -> String {
    serde_json::to_string(report).unwrap()
}

#[test]
fn an_untried_owner_is_examined_before_eighty_updates_of_a_rejector_for_the_last_token() {
    for seed in 0..20 {
        let report = simulate(Scenario::Seed, Policy::Fair, seed);
        assert!(report.owner_examined_first, "{report}");
        assert_eq!(report.queries, report::Queries { owner: 1, rejector: 0, person: 0 }, "{report}");
        assert_eq!(report.reserved, 8 + 10 + 1, "the rejector's eight attempts, ten guests and the owner: {report}");
    }
}

#[test]
fn in_order_of_arrival_the_rejector_takes_the_last_token_and_the_owner_gets_none() {
    for seed in 0..20 {
        let report = simulate(Scenario::Seed, Policy::Fifo, seed);
        assert!(!report.owner_examined_first && report.owner_examined_after_s.is_none(), "{report}");
        assert_eq!(report.queries, report::Queries { owner: 0, rejector: 1, person: 0 }, "{report}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_gives_others() {
    for scenario in Scenario::ALL {
        for policy in [Policy::Fair, Policy::Fifo] {
            let [once, again, other] = [7, 7, 8].map(|seed| simulate(scenario, policy, seed));
            assert_eq!((json(&once), once.to_string()), (json(&again), again.to_string()));
            let unnamed = Report { seed: once.seed, ..other };
            // The scenario of the last token is the same story for every seed; its moments are not.
            assert!(unnamed != once || scenario == Scenario::Seed, "{once}");
        }
    }
}

#[test]
fn in_the_services_order_every_bound_holds_in_every_scenario_and_for_every_seed() {
    for scenario in Scenario::ALL {
        for seed in seeds(scenario) {
            let report = simulate(scenario, Policy::Fair, seed);
            assert!(report.worst_wait_s <= report.bound_s, "a slot waited beyond its bound: {report}");
            assert!(report.worst_first_wait_s <= report.first_bound_s, "a first examination came late: {report}");
            assert_eq!(report.untried_passed_over, 0, "an examined voice went before an untried one: {report}");
            assert!(report.idle_s == 0.0, "a worker stood idle while somebody waited: {report}");
        }
    }
}

#[test]
fn the_bounds_are_what_the_text_says() {
    // By the order: two workers, runs of at most 0.5 s.
    let report = simulate(Scenario::Seed, Policy::Fair, 0);
    let numbers = 12.0; // The rejector, ten guests, the owner.
    assert!((report.first_bound_s - 0.5 * (2.0 + numbers - 1.0) / 2.0).abs() < 1e-9, "{report}");
    // By the budget, of which the wait for one's own number is no part when one was never examined.
    let by_budget = 0.5 * (2.0 + 16.0) / (2.0 - 0.5 / 15.0);
    let flood = simulate(Scenario::Flood, Policy::Fair, 0);
    assert!((flood.first_bound_s - by_budget).abs() < 1e-9, "{flood}");
    assert!((flood.bound_s - 0.5 - by_budget).abs() < 1e-9, "{flood}");
    // By the order, with the age: one worker, runs of at most 1.5 s, nine voices.
    let bursts = simulate(Scenario::Bursts, Policy::Fair, 0);
    assert!((bursts.bound_s - (5.0 + 1.5 * 9.0)).abs() < 1e-9, "{bursts}");
}

/// Each scenario, and the least share of seeds in which the control breaks what the test above holds. In the flood nobody is
/// examined twice, so there is nothing to pass over.
const BROKEN: [(Scenario, f64); 6] = [
    (Scenario::Seed, 1.0),
    (Scenario::Household, 0.75),
    (Scenario::Meeting, 0.95),
    (Scenario::Flood, 0.0),
    (Scenario::Resends, 0.1),
    (Scenario::Bursts, 0.95),
];

#[test]
fn the_order_of_arrival_breaks_what_the_services_order_holds() {
    let is_broken = |report: &Report| {
        report.worst_wait_s > report.bound_s
            || report.worst_first_wait_s > report.first_bound_s
            || report.untried_passed_over > 0
    };
    for (scenario, least) in BROKEN {
        let reports = under(scenario, Policy::Fifo);
        let broken = share(&reports, is_broken);
        assert!(broken >= least, "{scenario:?}: {broken}");
    }
    let bursts = under(Scenario::Bursts, Policy::Fifo);
    assert!(share(&bursts, |report| report.worst_first_wait_s > report.first_bound_s) >= 0.9, "the bounds can tell");
    assert!(share(&bursts, |report| report.worst_wait_s > report.bound_s) > 0.0, "... both of them");
    let meetings = under(Scenario::Meeting, Policy::Fifo);
    assert!(share(&meetings, |report| report.idle_s > 0.0) >= 0.95, "jobs that wait for their number hold workers");
}

#[test]
fn the_owner_is_examined_sooner_than_in_order_of_arrival_in_every_scenario() {
    for scenario in Scenario::ALL {
        // Who was never examined waited longer than any scenario lasts.
        let mean = |policy| {
            let reports = under(scenario, policy);
            let waits = reports.iter().map(|report| report.owner_examined_after_s.unwrap_or(1_000.0));
            waits.sum::<f64>() / reports.len() as f64
        };
        let (fair, fifo) = (mean(Policy::Fair), mean(Policy::Fifo));
        assert!(fair < fifo, "{scenario:?}: {fair} s, and {fifo} s in order of arrival");
    }
}

#[test]
fn the_bursts_make_slots_so_old_that_age_decides_and_come_near_the_bounds() {
    let reports = under(Scenario::Bursts, Policy::Fair);
    assert!(share(&reports, |report| report.override_share > 0.0) >= 0.9);
    let nearest = reports.iter().map(|report| report.worst_first_wait_s / report.first_bound_s).fold(0.0, f64::max);
    assert!(nearest > 0.6, "a bound that nothing comes near says little: {nearest}");
}

/// Every window counts, not only the one that starts at zero.
#[test]
fn tokens_in_any_window_stay_within_burst_and_refill_and_a_voice_within_its_attempts() {
    for scenario in Scenario::ALL {
        for policy in [Policy::Fair, Policy::Fifo] {
            for seed in 0..fewer(20, scenario) {
                let outcome = world::run(scenario.script(seed), policy, seed);
                assert!(outcome.attempts_most <= 12, "{scenario:?}, {policy:?}, seed {seed}: {outcome:?}");
                for (index, from) in outcome.grants.iter().enumerate() {
                    let within = |to: &Monotonic| 16 + to.since(*from).as_secs() / 15;
                    let beyond = outcome.grants.iter().skip(index).zip(1..).find(|(to, spent)| *spent > within(to));
                    assert_eq!(beyond, None, "{scenario:?}, {policy:?}, seed {seed}, from {from:?}");
                }
            }
        }
    }
}

#[test]
fn a_scenario_and_a_policy_have_one_name_on_the_command_line_in_json_and_in_words() {
    use clap::ValueEnum;
    for scenario in Scenario::ALL {
        let name = scenario.to_possible_value().unwrap();
        assert_eq!(name.get_name(), scenario.as_str());
        assert!(!scenario.about().is_empty());
        assert_eq!(serde_json::to_value(scenario).unwrap(), scenario.as_str());
    }
    assert_eq!(Scenario::value_variants(), Scenario::ALL);
    for policy in [Policy::Fair, Policy::Fifo] {
        assert_eq!(policy.to_possible_value().unwrap().get_name(), policy.as_str());
        assert_eq!(serde_json::to_value(policy).unwrap(), policy.as_str());
    }
}
