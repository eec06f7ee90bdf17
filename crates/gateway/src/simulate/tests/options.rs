//! Goal: each option that is off by default gains what it is for, and keeps the bounds that are stated for it.
//! Method: the reports of each setup beside the default's, and every window of the tokens that were spent.

use super::bounds::beyond;
use super::*;

fn with(variant: Variant, scenario: Scenario) -> Vec<Report> {
    within(scenario, Policy::Fair, &variant.of(&Setup::default()))
}

#[test]
fn every_bound_is_kept_under_every_option() {
    for scenario in Scenario::ALL {
        for variant in Variant::ALL {
            for report in with(variant, scenario) {
                assert!(!report.figures.breaks_a_bound(), "{variant:?}: {report}");
                assert_eq!(report.figures.untried_passed_over, 0, "{variant:?}: {report}");
                assert!(report.figures.idle_s == 0.0, "{variant:?}: {report}");
            }
        }
    }
}

#[test]
fn tokens_in_any_window_stay_within_what_each_option_allows() {
    for scenario in Scenario::ALL.into_iter().filter(|scenario| *scenario != Scenario::Overload) {
        for (variant, most) in [(Variant::Relaxed, 20), (Variant::Renewed, 16), (Variant::All, 20)] {
            let setup = variant.of(&Setup::default());
            for seed in 0..scenario.runs(20) {
                let outcome = world::run(scenario.script(seed), Policy::Fair, &setup);
                let beyond = beyond(&outcome.grants, |length| most + length / 15);
                assert_eq!(beyond, None, "{scenario:?}, {variant:?}, seed {seed}");
                assert!(outcome.attempts_most <= 12, "... between two renewals: {scenario:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn age_that_decides_every_second_selection_examines_an_owner_in_an_overload_at_once_and_the_oldest_wait_longer() {
    let worst = |reports: &[Report], of: fn(&Figures) -> f64| {
        reports.iter().map(|report| of(&report.figures)).fold(0.0, f64::max)
    };
    let [default, second] = [Variant::Default, Variant::EverySecond].map(|variant| with(variant, Scenario::Overload));
    let owner = |figures: &Figures| figures.owner_examined_after_s.unwrap_or(1_000.0);
    assert!(worst(&second, owner) < worst(&default, owner) / 2.0);
    assert!(worst(&second, |figures| figures.worst_wait_s) > worst(&default, |figures| figures.worst_wait_s));
    assert!(share(&default, |figures| figures.override_share > 0.9) >= 1.0, "in an overload age decides nearly all");
    assert!(share(&second, |figures| figures.override_share <= 0.5) >= 1.0);
}

#[test]
fn renewed_attempts_name_an_owner_who_spent_theirs_in_noise_and_the_default_never_does() {
    let named = |variant| share(&with(variant, Scenario::Noise), |figures| figures.owner_named_after_s.is_some());
    assert!(named(Variant::Default) < 0.05 && named(Variant::Renewed) > 0.4);
}

#[test]
fn renewed_attempts_cost_a_household_with_a_television_names_that_the_default_finds() {
    let named = |variant| share(&with(variant, Scenario::Household), |figures| figures.owner_named_after_s.is_some());
    assert!(named(Variant::Renewed) < named(Variant::Default) - 0.2);
}

#[test]
fn relaxed_tokens_bring_the_owner_no_sooner_where_strangers_always_have_new_speech() {
    let median = |variant| {
        let mut waits: Vec<f64> = with(variant, Scenario::Household)
            .iter()
            .map(|report| report.figures.owner_examined_after_s.unwrap_or(1_000.0))
            .collect();
        waits.sort_by(f64::total_cmp);
        waits.get(waits.len() / 2).copied().unwrap()
    };
    assert!(median(Variant::Relaxed) >= median(Variant::Default));
}
