//! Goal: speech becomes evidence exactly once, a verdict comes as early as the evidence allows, and no later.
//! Method: the driver's fixture with a scripted model; audio positions by hand.

#![cfg(test)]

mod driver;

use driver::*;
use matcher_core::budget::Outcome;
use matcher_core::queue::Voice;
use matcher_core::{Ending, ExitReason, Limits, Origin, Spans, Speaker, Status, Target};
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use Answer::{Fails, Vector};

const VOICE: Voice = Voice { speaker: Speaker(0), scope: 0 };

fn fresh(driver: &Driver) -> Spans {
    driver.scheduler().queue(LANE).unwrap().fresh(VOICE).unwrap().clone()
}

fn covered(driver: &Driver) -> Spans {
    driver.scheduler().queue(LANE).unwrap().covered(VOICE).unwrap().clone()
}

// B2.18
#[test]
fn half_the_evidence_says_nothing_and_the_whole_names_the_second_segment() {
    let mut driver = Driver::new();
    driver.update(&[says(0, 0.0, 2.5).named("first")]);
    assert_eq!((driver.status(0), driver.person(0)), (Status::Pending, None));
    assert_eq!(driver.decided(Target::Owner, Ending::Pending), 1);
    assert_eq!(driver.events.len(), 1, "nothing but the pending decision");

    driver.update(&[says(0, 3.0, 5.5).named("second")]);
    assert_eq!(driver.status(0), Status::User);
    assert_eq!(driver.named(), [name(0, "user", "second")]);
}

// B2.19
#[test]
fn one_long_clip_of_an_enrolled_person_names_them() {
    let mut driver = Driver::new();
    driver.by_default(Vector(SARAH));
    driver.update(&[says(0, 0.0, 5.0).named("s")]);
    assert_eq!(driver.status(0), Status::NotUser);
    assert_eq!(driver.named(), [name(0, "p1", "s")]);
}

// B2.20
#[test]
fn a_near_miss_is_unknown_until_better_speech_names_the_owner() {
    let mut driver = Driver::owner_only();
    driver.script(0, [Vector(at(0.67)), Vector(at(0.40))]);
    driver.update(&[says(0, 0.0, 5.0).named("first")]);
    assert_eq!(driver.status(0), Status::Unknown);
    assert_eq!(driver.decided(Target::Owner, Ending::Pending), 1);
    assert_eq!(driver.decided(Target::Owner, Ending::Rejected), 0);
    assert_eq!(driver.named(), []);

    driver.update(&[says(0, 10.0, 15.0).named("second")]);
    assert_eq!(driver.status(0), Status::User);
    assert_eq!(driver.named(), [name(0, "user", "second")]);
}

// B2.21
#[test]
fn an_owner_beyond_the_near_miss_bound_is_no_match() {
    let mut driver = Driver::owner_only();
    driver.by_default(Vector(at(0.737)));
    driver.update(&[says(0, 0.0, 10.0)]);
    assert_eq!((driver.status(0), driver.named()), (Status::NoMatch, vec![]));
    assert_eq!(driver.decided(Target::Owner, Ending::Rejected), 1);
}

// B2.22
#[test]
fn the_mean_of_three_clips_outvotes_a_noisy_third() {
    let mut driver = Driver::new();
    driver.script(0, [Vector(OWNER), Vector(OWNER), Vector(SARAH)]);
    driver.update(&[says(0, 0.0, 2.0)]);
    driver.update(&[says(0, 3.0, 5.0)]);
    driver.update(&[says(0, 6.0, 8.0)]);
    let voice = driver.voice(0).unwrap();
    assert_eq!(voice.status, Status::User);
    assert!((voice.distance.unwrap() - 0.1056).abs() < 1e-3, "{:?}", voice.distance);
    assert!((voice.runner_up.unwrap() - 0.5528).abs() < 1e-3, "{:?}", voice.runner_up);
}

// B2.23
#[test]
fn a_voice_never_holds_more_than_three_clips() {
    for (vector, clips) in [(OWNER, 3), (BETWEEN, 3)] {
        let mut driver = Driver::new();
        driver.by_default(Vector(vector));
        for n in 0..5 {
            driver.update(&[says(0, f64::from(n) * 3.0, f64::from(n) * 3.0 + 2.0)]);
            assert!(driver.explain(0).clips.len() <= 3);
        }
        assert_eq!(driver.explain(0).clips, vec![2.0; clips]);
    }
}

// B2.24
#[test]
fn a_voice_between_two_people_is_no_match() {
    let mut driver = Driver::new();
    driver.by_default(Vector(BETWEEN));
    driver.update(&[says(0, 0.0, 6.0)]);
    assert_eq!((driver.status(0), driver.named()), (Status::NoMatch, vec![]));
}

// B2.25
#[test]
fn the_same_speech_again_adds_nothing_and_its_continuation_does() {
    let mut driver = Driver::new();
    driver.update(&[says(0, 0.0, 3.0)]);
    driver.update(&[says(0, 0.0, 3.0)]);
    assert_eq!((driver.evidence(0), driver.exited(ExitReason::NoFreshAudio)), (3.0, 1));
    assert_eq!(driver.named(), []);

    driver.update(&[says(0, 0.0, 5.0).named("longer")]);
    assert_eq!((driver.evidence(0), driver.named()), (5.0, vec![name(0, "user", "longer")]));
}

// B2.26
#[test]
fn an_overlapping_window_counts_only_what_is_fresh() {
    let mut driver = Driver::new();
    driver.update(&[says(0, 0.0, 3.0)]);
    driver.update(&[says(0, 1.0, 4.0)]);
    assert_eq!((driver.evidence(0), driver.exited(ExitReason::WindowShorterThanMinimum)), (3.0, 1));
    assert_eq!(driver.named(), []);

    driver.update(&[says(0, 0.0, 5.0)]);
    assert_eq!((driver.evidence(0), driver.named().len()), (5.0, 1));
    assert_eq!(driver.selections(0), [spans(&[(0.0, 3.0)]), spans(&[(3.0, 5.0)])]);
}

// B2.27
#[test]
fn one_second_clips_under_a_one_second_minimum_decide_nothing_early() {
    let limits = Limits { clip_minimum: Duration::from_secs(1), ..Limits::default() };
    let mut driver = Driver::with(limits, gallery(), ring_of(60));
    for start in [0.0, 2.0, 4.0] {
        driver.update(&[says(0, start, start + 1.0)]);
    }
    assert_eq!((driver.status(0), driver.named()), (Status::Pending, vec![]));
    assert_eq!(driver.attempts(0), 1, "the third second alone is below its fair share of the evidence");
}

#[test]
fn a_voice_that_keeps_talking_reaches_the_floor_whatever_minimum_is_configured() {
    for milliseconds in [500, 750, 1000, 1400, 1666, 1667, 2000, 3000, 5000] {
        let limits = Limits { clip_minimum: Duration::from_millis(milliseconds), ..Limits::default() };
        let mut driver = Driver::with(limits, gallery(), ring_of(60));
        for segment in fragments(0, 24) {
            driver.update(&[segment]);
        }
        assert_eq!(driver.status(0), Status::User, "with a minimum of {milliseconds} ms");
        assert!(driver.attempts(0) <= 3, "with a minimum of {milliseconds} ms: {}", driver.attempts(0));
    }
}

// B2.28
#[test]
fn ten_fragments_of_half_a_second_name_the_owner_once() {
    let mut driver = Driver::new();
    for (n, segment) in fragments(0, 15).enumerate() {
        driver.update(&[segment.in_scope("socket:0")]);
        assert_eq!(driver.status(0) == Status::User, n >= 9, "fragment {n}");
    }
    assert_eq!(driver.named(), [name(0, "user", "0@4.5")]);
    assert_eq!(driver.voice(0).unwrap().segment.unwrap().as_str(), "0@7", "the next segments are the owner's too");
    assert_eq!(driver.voice(0).unwrap().identity.unwrap().origin, Origin::Automatic);
}

// B2.29
#[test]
fn the_same_fragment_twenty_times_is_still_half_a_second() {
    let mut driver = Driver::new();
    for _ in 0..20 {
        driver.update(&[says(0, 0.0, 0.5)]);
    }
    assert_eq!((driver.evidence(0), driver.queries.len()), (0.0, 0));
    assert_eq!(driver.exited(ExitReason::WindowShorterThanMinimum), 20);
}

fn recovers_from(first: [f32; 2]) {
    let mut driver = Driver::owner_only();
    driver.script(0, [Vector(first), Vector(first), Vector(first)]);
    for segment in fragments(0, 120) {
        driver.pass(0.5);
        driver.update(&[segment]);
    }
    assert_eq!(driver.status(0), Status::User);
    assert!((4..=12).contains(&driver.attempts(0)), "{}", driver.attempts(0));
}

// B2.30
#[test]
fn an_owner_recovers_from_three_clips_of_somebody_else() {
    recovers_from(SARAH);
}

// B2.31
#[test]
fn an_owner_recovers_from_three_clips_just_beyond_the_threshold() {
    recovers_from(at(0.70));
}

// B2.32
#[test]
fn a_rejected_owner_with_clean_speech_takes_the_name_back_from_an_impostor() {
    let mut driver = Driver::owner_only();
    driver.script(1, [Vector(SARAH), Vector(OWNER), Vector(OWNER), Vector(OWNER)]);
    driver.script(2, [Vector(at(0.53))]);
    driver.update(&[says(1, 0.0, 5.0)]);
    assert_eq!(driver.status(1), Status::NoMatch);
    driver.update(&[says(2, 6.0, 11.0).named("impostor")]);
    assert_eq!(driver.person(2), Some("user".into()));

    for start in [12.0, 18.0, 24.0] {
        driver.update(&[says(1, start, start + 5.0)]);
    }
    assert_eq!((driver.person(1), driver.person(2)), (Some("user".into()), None));
    assert_eq!((driver.status(2), driver.retracted()), (Status::Ambiguous, vec![(2, "impostor".into())]));
}

// B2.33
#[test]
fn a_failed_probe_is_outvoted_by_five_clean_seconds() {
    // One-second probes exist only where a fair share of the evidence is a second: five clips for five seconds.
    let clips_kept = NonZeroU32::new(5).unwrap();
    let limits = Limits { clip_minimum: Duration::from_secs(1), clips_kept, ..Limits::default() };
    let mut driver = Driver::with(limits, owner_only(), ring_of(60));
    driver.script(0, [Vector(at(1.0)), Vector(OWNER)]);
    driver.update(&[says(0, 0.0, 1.0)]);
    assert_eq!((driver.attempts(0), driver.evidence(0), driver.status(0)), (1, 1.0, Status::Pending));

    driver.update(&[says(0, 10.0, 15.0)]);
    assert_eq!((driver.status(0), driver.attempts(0), driver.tokens()), (Status::User, 2, 14.0));
}

/// A slot whose older range leaves the ring between the update and the turn.
fn overwritten(capacity: f64, second: f64) -> Driver {
    let mut driver = Driver::with(Limits::default(), gallery(), ring_with(capacity, &[(0.0, 3.0), (10.0, second)]));
    driver.offer(&[says(0, 0.0, 3.0), says(0, 10.0, 10.0 + second)]);
    let lane = driver.lanes.get_mut(&LANE).unwrap();
    lane.timeline.handle_samples_at(matcher_core::Sample(samples(20.0)), samples(3.0));
    driver.drain();
    driver
}

// B2.34
#[test]
fn speech_that_the_ring_has_overwritten_is_left_out_and_the_rest_decides() {
    let driver = overwritten(8.0, 5.0);
    assert_eq!((driver.status(0), driver.evidence(0)), (Status::User, 5.0));
    assert_eq!(covered(&driver), spans(&[(10.0, 15.0)]));
    assert!(driver.counters.exits.is_empty());
}

// B2.35
#[test]
fn what_the_ring_still_holds_can_be_too_little_and_costs_nothing() {
    let driver = overwritten(3.5, 0.5);
    assert_eq!(driver.exited(ExitReason::WindowShorterThanMinimum), 1);
    assert_eq!((driver.evidence(0), driver.tokens(), driver.attempts(0)), (0.0, 16.0, 0));
}

// B2.36
#[test]
fn windows_without_any_audio_exit_once_and_cost_nothing() {
    let mut driver = Driver::with(Limits::default(), gallery(), ring_with(60.0, &[(0.0, 1.0), (50.0, 1.0)]));
    driver.update(&[says(0, 10.0, 13.0), says(0, 20.0, 23.0), says(0, 30.0, 33.0)]);
    assert_eq!(driver.counters.exits, [(ExitReason::NoPcm, 1)].into());
    assert_eq!((driver.tokens(), driver.attempts(0)), (16.0, 0));
}

// B2.37
#[test]
fn a_turn_longer_than_a_query_gives_its_middle_first_and_its_ends_later() {
    let mut driver = Driver::new();
    driver.by_default(Vector(BETWEEN));
    driver.update(&[says(0, 0.0, 20.0)]);
    assert_eq!(driver.selections(0), [spans(&[(5.0, 15.0)]), spans(&[(0.0, 5.0), (15.0, 20.0)])]);
}

// B2.38
#[test]
fn older_speech_is_taken_whole_and_the_newer_gives_the_middle_of_what_remains() {
    let mut driver = Driver::new();
    driver.offer(&[says(0, 0.0, 4.0)]);
    driver.update(&[says(0, 10.0, 30.0)]);
    assert_eq!(driver.selections(0), [spans(&[(0.0, 4.0), (17.0, 23.0)])]);
}

// B2.39
#[test]
fn of_two_hundred_tiny_ranges_the_newest_stay() {
    const TINY: f64 = 0.015_625; // A sixty-fourth is exact in binary, and so is its position.
    let mut driver = Driver::new();
    let tiny: Vec<Segment> = (0..200).map(|n| says(0, f64::from(n) * 0.25, f64::from(n) * 0.25 + TINY)).collect();
    driver.offer(&tiny);
    let kept = fresh(&driver);
    assert_eq!(kept.len(), 128);
    assert_eq!(kept.iter().next(), Some(span(18.0, 18.0 + TINY)));
    assert_eq!(kept.iter().next_back(), Some(span(49.75, 49.75 + TINY)));
    assert_eq!(driver.scheduler().queue(LANE).unwrap().evicted(), 72 * 250);
}

// B2.40
#[test]
fn a_window_longer_than_its_speech_counts_only_the_speech() {
    let mut driver = Driver::new();
    driver.offer(&[says(0, 0.0, 20.0).lasting(5.0)]);
    assert_eq!(fresh(&driver), spans(&[(0.0, 5.0)]));
}

#[test]
fn a_failed_query_keeps_its_speech_for_the_next_update() {
    let mut driver = Driver::new();
    driver.script(0, [Fails(Outcome::ExtractionFailed)]);
    driver.update(&[says(0, 0.0, 3.0)]);
    assert_eq!((fresh(&driver), covered(&driver)), (spans(&[(0.0, 3.0)]), Spans::new()));
    driver.update(&[says(0, 3.0, 5.0)]);
    assert_eq!((driver.status(0), driver.evidence(0)), (Status::User, 5.0));
}

#[test]
fn an_empty_gallery_spends_nothing_and_the_speech_waits_for_people() {
    let nobody = matcher_core::Gallery::default();
    let mut driver = Driver::with(Limits::default(), nobody, ring_of(60));
    driver.update(&[says(0, 0.0, 6.0)]);
    assert_eq!(driver.queries.len(), 0);
    driver.enrol(gallery());
    driver.update(&[says(0, 6.0, 6.5)]);
    assert_eq!((driver.status(0), driver.evidence(0)), (Status::User, 6.5));
}

#[test]
fn slots_of_a_gallery_that_became_empty_spend_nothing() {
    let mut driver = Driver::new();
    driver.offer(&[says(0, 0.0, 6.0)]);
    driver.enrol(matcher_core::Gallery::default());
    driver.drain();
    assert_eq!((driver.queries.len(), driver.tokens()), (0, 16.0));
    driver.enrol(gallery());
    driver.drain();
    assert_eq!(driver.status(0), Status::User, "the slot waited for people");
}

#[test]
fn a_person_who_is_deleted_loses_the_name_at_once() {
    let mut driver = Driver::new();
    driver.by_default(Vector(SARAH));
    driver.update(&[says(0, 0.0, 6.0).named("s")]);
    driver.enrol(owner_only());
    assert_eq!((driver.person(0), driver.status(0)), (None, Status::NoMatch));
    assert_eq!(driver.retracted(), [(0, "s".into())]);
}

#[test]
fn a_ninth_scope_of_one_number_keeps_its_ranges_without_a_slot() {
    const SCOPES: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let limits = Limits { slots_of_number_max: NonZeroUsize::new(8).unwrap(), ..Limits::default() };
    let mut driver = Driver::with(limits, gallery(), ring_of(60));
    driver.offer(&SCOPES.map(|scope| says(0, 0.0, 3.0).in_scope(scope)));
    let queue = driver.scheduler().queue(LANE).unwrap();
    assert_eq!(queue.len(), 8);
    let ninth = Voice { speaker: Speaker(0), scope: 8 };
    assert_eq!((queue.slot(ninth), queue.fresh(ninth)), (None, Some(&spans(&[(0.0, 3.0)]))));
}
