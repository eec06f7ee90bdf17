//! Goal: what the module's text proves holds in every run of every scenario. Method: ten thousand seeds each, one test a
//! scenario, so that they run side by side. The flood is played short in these, because after its 128th number each is refused
//! at the door, and whole in two hundred runs.

use matcher_core::Monotonic;

use super::*;

fn check(scenario: Scenario, script: Script, seed: u64) {
    let setup = Setup::default();
    let bounds = super::super::bounds(&script, &setup);
    let outcome = world::run(script, Policy::Fair, &setup);
    let case = format!("{}, seed {seed}", scenario.as_str());
    check_waits(&outcome, bounds, &case);
    // The overload's budget is without end.
    if scenario != Scenario::Overload {
        assert!(outcome.attempts_most <= 12, "{case}: {} attempts", outcome.attempts_most);
        assert_eq!(beyond(&outcome.grants, |length| 16 + length / 15), None, "{case}: a window holds too many tokens");
    }
}

fn check_waits(outcome: &meter::Outcome, bounds: setup::Bounds, case: &str) {
    let (wait, first) = (outcome.worst_wait.as_secs_f64(), outcome.worst_first_wait.as_secs_f64());
    assert!(wait <= bounds.any, "{case}: a slot waited {wait} s, and its bound is {} s", bounds.any);
    assert!(first <= bounds.first, "{case}: a first examination waited {first} s, bound {} s", bounds.first);
    assert_eq!(outcome.passed_over, 0, "{case}: an examined voice went before an untried one");
    assert!(outcome.idle.is_zero(), "{case}: a worker stood idle while somebody waited");
    assert_eq!(outcome.forgotten, std::collections::BTreeSet::new(), "{case}: these wait for ever");
}

fn check_all(scenario: Scenario) {
    for seed in seeds(scenario) {
        check(scenario, scenario.script(seed), seed);
    }
}

#[test]
fn the_bounds_hold_for_ten_thousand_seeds_of_the_last_token() {
    check_all(Scenario::Seed);
}

#[test]
fn the_bounds_hold_for_ten_thousand_seeds_of_a_household() {
    check_all(Scenario::Household);
}

#[test]
fn the_bounds_hold_for_ten_thousand_seeds_of_a_meeting() {
    check_all(Scenario::Meeting);
}

#[test]
fn the_bounds_hold_for_two_hundred_seeds_of_a_flood_of_ten_thousand_numbers() {
    check_all(Scenario::Flood);
}

#[test]
fn the_bounds_hold_for_ten_thousand_seeds_of_the_beginning_of_a_flood() {
    for seed in 0..seeds(Scenario::Flood).end * 50 {
        check(Scenario::Flood, scenario::beginning_of_flood(seed), seed);
    }
}

#[test]
fn the_bounds_hold_for_ten_thousand_seeds_of_resends() {
    check_all(Scenario::Resends);
}

#[test]
fn the_bounds_hold_for_ten_thousand_seeds_of_bursts() {
    check_all(Scenario::Bursts);
}

#[test]
fn the_bounds_hold_for_ten_thousand_seeds_of_an_overload() {
    check_all(Scenario::Overload);
}

#[test]
fn the_bounds_hold_for_ten_thousand_seeds_of_noise() {
    check_all(Scenario::Noise);
}

#[test]
fn the_bounds_are_what_the_text_says() {
    // By the order: two workers, runs of at most 0.5 s.
    let first_of = |scenario| simulate(scenario, Policy::Fair, 0).figures.first_bound_s;
    let any_of = |scenario| simulate(scenario, Policy::Fair, 0).figures.bound_s;
    let numbers = 12.0; // The rejector, ten guests, the owner.
    assert!((first_of(Scenario::Seed) - 0.5 * (2.0 + numbers - 1.0) / 2.0).abs() < 1e-9);
    // By the budget, of which the wait for one's own number is no part when one was never examined.
    let by_budget = 0.5 * (2.0 + 16.0) / (2.0 - 0.5 / 15.0);
    assert!((first_of(Scenario::Flood) - by_budget).abs() < 1e-9);
    assert!((any_of(Scenario::Flood) - 0.5 - by_budget).abs() < 1e-9);
    // By the order, with the age: one worker, runs of at most 1.5 s, nine voices.
    assert!((any_of(Scenario::Bursts) - (5.0 + 1.5 * 9.0)).abs() < 1e-9);
    let mut setup = Setup::default();
    setup.limits.override_every = std::num::NonZeroU32::new(2).unwrap();
    let overload = simulate_within(Scenario::Overload, Policy::Fair, 0, &setup).figures;
    assert!((overload.bound_s - (5.0 + 1.5 * 36.0)).abs() < 1e-9, "18 voices, each with one other: {overload}");
}

#[test]
fn the_bursts_make_slots_so_old_that_age_decides_and_come_near_the_bounds() {
    let reports = under(Scenario::Bursts, Policy::Fair);
    assert!(share(&reports, |figures| figures.override_share > 0.0) >= 0.9);
    let parts = reports.iter().map(|report| report.figures.worst_first_wait_s / report.figures.first_bound_s);
    let nearest = parts.fold(0.0, f64::max);
    assert!(nearest > 0.6, "a bound that nothing comes near says little: {nearest}");
}

/// Every window counts, not only the one that starts at zero.
#[test]
fn tokens_in_any_window_stay_within_burst_and_refill_and_a_voice_within_its_attempts() {
    for scenario in Scenario::ALL.into_iter().filter(|scenario| *scenario != Scenario::Overload) {
        for policy in [Policy::Fair, Policy::Fifo] {
            for seed in 0..scenario.runs(20) {
                let outcome = world::run(scenario.script(seed), policy, &Setup::default());
                assert!(outcome.attempts_most <= 12, "{scenario:?}, {policy:?}, seed {seed}: {outcome:?}");
                let beyond = beyond(&outcome.grants, |length| 16 + length / 15);
                assert_eq!(beyond, None, "{scenario:?}, {policy:?}, seed {seed}");
            }
        }
    }
}

/// The first grant of a window that holds more than `most` of its length in seconds.
pub(super) fn beyond(grants: &[Monotonic], most: impl Fn(u64) -> u64) -> Option<Monotonic> {
    (0..).zip(grants).find_map(|(index, from)| {
        let windows = grants.iter().skip(index).zip(1..);
        windows.filter(|(to, spent)| *spent > most(to.since(*from).as_secs())).map(|_| *from).next()
    })
}

/// Whoever knows the rules: ninety voices that were examined before speak at once, and two that nearly are the owner's hold the
/// worker until age decides; or ninety that never were examined. Every run takes the longest.
struct Adversary {
    script: Script,
    bounds: setup::Bounds,
}

const VOICES: u32 = 90;

fn adversary(tried_before: std::ops::Range<u32>) -> Adversary {
    use super::super::script::{Machine, Message, Plenty, Runs, Update};
    use super::super::voices::{IMPOSTOR, STRANGER};
    use std::time::Duration;

    let machine = Machine { workers: 1, slowest: Duration::from_millis(500) };
    let second = Duration::from_secs;
    let says = |speaker, start: u64, end: u64| Update { speaker, start: second(start), end: second(end) };
    let together = |at, updates| Message { at: second(at), updates };
    let (strangers, impostors) = (STRANGER..STRANGER + VOICES, IMPOSTOR..IMPOSTOR + 2);
    let mut messages: Vec<Message> = tried_before
        .clone()
        .map(|n| together(10 + u64::from(n), vec![says(STRANGER + n, 8 + u64::from(n), 10 + u64::from(n))]))
        .collect();
    if !tried_before.is_empty() {
        messages.extend(impostors.clone().map(|impostor| together(5, vec![says(impostor, 0, 5)])));
        // More of both whenever one of them was just answered.
        let insisting = |at: u64| together(at, impostors.clone().map(|impostor| says(impostor, at - 40, at)).collect());
        messages.extend((120..126).map(insisting));
    }
    messages.push(together(120, strangers.map(|stranger| says(stranger, 110, 120)).collect()));
    let script = Script::scripted(machine, messages).with(Plenty);
    let runs = Runs::Recorded { of: BTreeMap::new(), typical: machine.slowest };
    let bounds = super::super::bounds(&script, &Setup::default());
    Adversary { script: Script { runs, ..script }, bounds }
}

#[test]
fn an_adversary_makes_a_slot_wait_for_nearly_its_bound_and_never_for_more() {
    let Adversary { script, bounds } = adversary(0..VOICES);
    let outcome = world::run(script, Policy::Fair, &Setup::default());
    let part = outcome.worst_wait.as_secs_f64() / bounds.any;
    assert!((0.95..=1.0).contains(&part), "{part} of {} s", bounds.any);
}

#[test]
fn an_adversary_makes_a_first_examination_wait_for_nearly_its_bound_and_never_for_more() {
    let Adversary { script, bounds } = adversary(0..0);
    let outcome = world::run(script, Policy::Fair, &Setup::default());
    let part = outcome.worst_first_wait.as_secs_f64() / bounds.first;
    assert!((0.95..=1.0).contains(&part), "{part} of {} s", bounds.first);
}

/// Ninety voices for five slots: who has none asks again with the next update, and whoever has one is served in time.
#[test]
fn a_queue_of_five_slots_keeps_the_bounds_of_whoever_has_one() {
    let mut setup = Setup::default();
    setup.limits.slots_max = std::num::NonZeroUsize::new(5).unwrap();
    for tried_before in [0..VOICES, 0..0] {
        let Adversary { script, .. } = adversary(tried_before);
        let (voices, bounds) = (script.numbers(), super::super::bounds(&script, &setup));
        let outcome = world::run(script, Policy::Fair, &setup);
        assert!((bounds.any - (5.0 + 0.5 * 5.0)).abs() < 1e-9, "five slots, one worker: {bounds:?}");
        check_waits(&outcome, bounds, "five slots");
        assert!(outcome.heard.len() <= voices && outcome.grants.len() < 2 * voices, "some found no slot");
        assert!(outcome.worst_wait.as_secs_f64() >= 2.0, "the slots were full: {:?}", outcome.worst_wait);
    }
    for seed in 0..50 {
        for scenario in [Scenario::Bursts, Scenario::Overload] {
            let script = scenario.script(seed);
            let bounds = super::super::bounds(&script, &setup);
            let outcome = world::run(script, Policy::Fair, &setup);
            check_waits(&outcome, bounds, &format!("five slots, {}, seed {seed}", scenario.as_str()));
        }
    }
}

#[test]
fn the_bounds_hold_where_runs_take_longer_than_the_age_and_a_lane_may_use_one_worker_of_two() {
    let mut setup = Setup::default();
    setup.limits.age_override = std::time::Duration::from_millis(200);
    setup.limits.queries_max = std::num::NonZeroUsize::MIN;
    for scenario in [Scenario::Seed, Scenario::Household, Scenario::Meeting, Scenario::Bursts, Scenario::Overload] {
        for seed in 0..50 {
            let script = scenario.script(seed);
            let bounds = super::super::bounds(&script, &setup);
            let outcome = world::run(script, Policy::Fair, &setup);
            check_waits(&outcome, bounds, &format!("{}, seed {seed}", scenario.as_str()));
        }
    }
    let figures = simulate_within(Scenario::Seed, Policy::Fair, 0, &setup).figures;
    assert_eq!(figures.workers, 1, "{figures}");
    assert!((figures.bound_s - (0.5 + 0.5 * 12.0)).abs() < 1e-9, "twelve slots, one worker, runs of 0.5 s: {figures}");
}

#[test]
fn a_deadline_that_a_scenarios_runs_pass_is_the_settings_fault_and_said_so() {
    let mut setup = Setup::default();
    setup.limits.reservation_deadline = std::time::Duration::from_millis(1200);
    let said = setup.check(&Scenario::ALL).unwrap_err();
    assert!(said.starts_with("extraction.reservation_deadline_seconds: 1.2 s") && said.contains("bursts"), "{said}");
    assert_eq!(setup.check(&[Scenario::Seed]), Ok(()));
}
