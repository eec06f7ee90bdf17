//! Goal: the scenarios can tell: first in, first out breaks what the service's order holds, and so does the service's order
//! without its age, without its untried, or without its slots. And the order is told twice: a second implementation selects
//! what the core selects.
//! Method: the reports of each control against the bounds that the service's order keeps.

use super::*;

/// The least share of seeds in which the order of arrival breaks what the service's order holds. The flood and the noise are not
/// here: in the flood nobody is examined twice, so there is nothing to pass over, and the budget bounds every wait; in the noise
/// there is hardly anybody but the owner.
const BROKEN: [(Scenario, f64); 6] = [
    (Scenario::Seed, 1.0),
    (Scenario::Household, 0.75),
    (Scenario::Meeting, 0.95),
    (Scenario::Resends, 0.1),
    (Scenario::Bursts, 0.95),
    (Scenario::Overload, 1.0),
];

#[test]
fn the_order_of_arrival_breaks_what_the_services_order_holds() {
    for (scenario, least) in BROKEN {
        let reports = under(scenario, Policy::Fifo);
        let broken = share(&reports, |figures| figures.breaks_a_bound() || figures.untried_passed_over > 0);
        assert!(broken >= least, "{scenario:?}: {broken}");
    }
    let bursts = under(Scenario::Bursts, Policy::Fifo);
    let is_late = |figures: &Figures| figures.worst_first_wait_s > figures.first_bound_s;
    assert!(share(&bursts, is_late) >= 0.9, "the bounds can tell");
    assert!(share(&bursts, |figures| figures.worst_wait_s > figures.bound_s) > 0.0, "... both of them");
    let meetings = under(Scenario::Meeting, Policy::Fifo);
    assert!(share(&meetings, |figures| figures.idle_s > 0.0) >= 0.95, "jobs that wait for their number hold workers");
}

#[test]
fn the_order_of_arrival_breaks_both_bounds_in_every_one_of_many_overloads() {
    for seed in 0..seeds(Scenario::Overload).end.div_ceil(10) {
        let script = Scenario::Overload.script(seed);
        let figures = figures(script, Policy::Fifo, &Setup::default(), &BTreeMap::new());
        assert!(figures.worst_wait_s > figures.bound_s, "seed {seed}: {figures}");
        assert!(figures.worst_first_wait_s > figures.first_bound_s, "seed {seed}: {figures}");
        assert!(figures.untried_passed_over > 0, "seed {seed}: {figures}");
    }
}

#[test]
fn without_the_age_whoever_is_nobodys_preference_waits_beyond_every_bound() {
    let reports = under(Scenario::Overload, Policy::NoAge);
    assert!(share(&reports, |figures| figures.worst_wait_s > 2.0 * figures.bound_s) >= 0.95);
    assert!(
        share(&reports, |figures| figures.worst_first_wait_s <= figures.first_bound_s) >= 1.0,
        "only the tried starve"
    );
}

#[test]
fn without_the_untried_first_the_rejector_takes_the_last_token_and_the_untried_are_passed_over() {
    let reports = under(Scenario::Seed, Policy::NoUntried);
    assert!(share(&reports, |figures| figures.owner_examined_after_s.is_none()) >= 1.0);
    for scenario in [Scenario::Household, Scenario::Meeting, Scenario::Bursts] {
        let reports = under(scenario, Policy::NoUntried);
        let passed = share(&reports, |figures| figures.untried_passed_over > 0);
        assert!(passed >= 0.6, "{scenario:?}: {passed}");
    }
}

#[test]
fn without_slots_repeated_updates_of_one_voice_make_the_others_wait_beyond_every_bound() {
    let reports = under(Scenario::Overload, Policy::NoCoalescing);
    assert!(share(&reports, |figures| figures.worst_wait_s > figures.bound_s) >= 1.0);
    assert!(share(&reports, |figures| figures.worst_first_wait_s > figures.first_bound_s) >= 1.0);
}

#[test]
fn the_youngest_first_starves_the_old_and_an_oracle_has_the_owner_at_once() {
    let reports = under(Scenario::Overload, Policy::Youngest);
    assert!(share(&reports, |figures| figures.worst_wait_s > figures.bound_s) >= 1.0);
    assert!(share(&reports, |figures| figures.worst_first_wait_s > figures.first_bound_s) >= 1.0);
    for scenario in [Scenario::Bursts, Scenario::Overload] {
        let [oracle, fair] = [Policy::Oracle, Policy::Fair].map(|policy| {
            let waits = under(scenario, policy).into_iter();
            waits.map(|report| report.figures.owner_examined_after_s.unwrap()).fold(0.0, f64::max)
        });
        // One run that was under way, and the choice.
        assert!(oracle <= 1.5 && oracle < fair, "{scenario:?}: {oracle} s, and {fair} s in the service's order");
    }
}

#[test]
fn whoever_was_examined_least_goes_first_where_shares_are_to_be_even() {
    for scenario in [Scenario::Meeting, Scenario::Bursts, Scenario::Overload] {
        let mean = |policy| {
            let jain = (0..100).map(|seed| simulate(scenario, policy, seed).figures.jain);
            jain.sum::<f64>() / 100.0
        };
        let [even, fair, fifo] = [Policy::Even, Policy::Fair, Policy::Fifo].map(mean);
        assert!(even > 0.95 && fair > 0.9, "{scenario:?}: {even}, {fair}");
        assert!(even >= fair && fair > fifo, "{scenario:?}: {even}, {fair}, {fifo}");
    }
}

#[test]
fn the_owner_is_examined_sooner_than_in_order_of_arrival_in_every_scenario() {
    for scenario in Scenario::ALL.into_iter().filter(|scenario| *scenario != Scenario::Noise) {
        // Who was never examined waited longer than any scenario lasts.
        let mean = |policy| {
            let reports = under(scenario, policy);
            let waits = reports.iter().map(|report| report.figures.owner_examined_after_s.unwrap_or(1_000.0));
            waits.sum::<f64>() / reports.len() as f64
        };
        let (fair, fifo) = (mean(Policy::Fair), mean(Policy::Fifo));
        assert!(fair < fifo, "{scenario:?}: {fair} s, and {fifo} s in order of arrival");
    }
}

/// What replays a recorded lane, whose verdicts are given, is no other order.
#[test]
fn the_cores_queue_with_a_book_of_its_own_selects_what_the_core_selects() {
    for scenario in Scenario::ALL {
        for seed in 0..scenario.runs(60) {
            for variant in [Variant::Default, Variant::All] {
                let setup = variant.of(&Setup::default());
                let core = world::run(scenario.script(seed), Policy::Fair, &setup);
                let twin = world::run_with(scenario.script(seed), policy::service_twin, &setup);
                assert_eq!(core.selected, twin.selected, "{scenario:?}, seed {seed}, {variant:?}");
                assert_eq!(core, twin, "{scenario:?}, seed {seed}, {variant:?}");
            }
        }
    }
}
