//! Goal: who is examined next is fair and bounded, and every denial has one cause, booked once where it is due.
//! Method: the driver with a frozen or hand-moved clock; turns one by one where their order is under test.

#![cfg(test)]

mod driver;

use driver::*;
use matcher_core::budget::Outcome;
use matcher_core::queue::{Precedence, Voice};
use matcher_core::{Cap, ExitReason, Generation, Monotonic, Refusal, Speaker, Status};
use std::time::Duration;

use Answer::{Fails, Held, Vector};

const fn voice(speaker: u32) -> Voice {
    Voice { speaker: Speaker(speaker), scope: 0 }
}

/// Spends tokens on failing queries of other voices until `left` remain.
fn drain_tokens_to(driver: &mut Driver, left: f64) {
    let mut speaker = 900;
    while driver.tokens() > left {
        driver.script(speaker, [Fails(Outcome::ExtractionFailed)]);
        driver.update(&[says(speaker, 0.0, 2.0)]);
        speaker += 1;
    }
}

/// A voice that is nobody, with so many attempts spent on `[0, attempts × 2.5 s]`.
fn rejector(driver: &mut Driver, speaker: u32, attempts: u32) {
    driver.script(speaker, vec![Vector(BETWEEN); 12]);
    for n in 0..attempts {
        driver.update(&[says(speaker, f64::from(n) * 2.5, f64::from(n + 1) * 2.5)]);
    }
    assert_eq!(driver.attempts(speaker), attempts);
}

fn examined(turn: Option<Turn>) -> Option<u32> {
    match turn {
        Some(Turn::Reserved(dispatch)) => Some(dispatch.speaker.0),
        Some(Turn::Refused(..)) | None => None,
    }
}

// B5.63
#[test]
fn an_untried_owner_is_examined_before_eighty_updates_of_a_rejector() {
    let mut driver = Driver::new();
    rejector(&mut driver, 1, 8);
    drain_tokens_to(&mut driver, 1.0);
    let rejected = (0..80).map(|n| says(1, 20.0 + f64::from(n) * 0.4, 20.4 + f64::from(n) * 0.4));
    let batch: Vec<Segment> = rejected.chain([says(0, 53.0, 59.0).named("owner")]).collect();
    let before = driver.queries.len();
    driver.update(&batch);
    assert_eq!(driver.queries[before..].iter().map(|(speaker, _)| speaker.0).collect::<Vec<_>>(), [0]);
    assert_eq!((driver.person(0), driver.tokens()), (Some("user".into()), 0.0));
    assert_eq!(driver.attempts(1), 8);
    assert_eq!(driver.counters.budget_exits, [(Cap::Socket, 1)].into(), "the rejector's one slot was denied");
}

// B5.64
#[test]
fn eighty_updates_of_one_voice_are_one_slot_with_the_first_age_and_the_latest_segment() {
    let mut driver = Driver::new();
    driver.pass(10.0);
    driver.offer(&[says(0, 0.0, 2.0)]);
    let since = driver.now;
    for n in 0..79 {
        driver.pass(0.01);
        driver.offer(&[says(0, 2.0 + f64::from(n) * 0.5, 2.5 + f64::from(n) * 0.5).named(&format!("s{n}"))]);
    }
    let queue = driver.scheduler().queue(LANE).unwrap();
    assert_eq!(queue.len(), 1);
    let slot = queue.slot(voice(0)).unwrap();
    assert_eq!((slot.since, slot.segment.as_str()), (since, "s78"));
    assert_eq!(queue.fresh(voice(0)), Some(&spans(&[(0.0, 41.5)])), "the ranges are merged");
}

// B5.65
#[test]
fn updates_do_not_renew_an_age_and_at_five_seconds_the_slot_goes_first() {
    for (waited, first) in [(4.9, 7), (5.0, 1)] {
        let mut driver = Driver::new();
        rejector(&mut driver, 1, 2);
        driver.offer(&[says(1, 10.0, 12.0)]);
        let mut now = 0.0;
        while now < waited {
            let step = f64::min(1.0, waited - now);
            driver.pass(step);
            now += step;
            driver.offer(&[says(1, 10.0, 12.0 + now)]);
        }
        driver.offer(&[says(7, 0.0, 10.0)]);
        assert_eq!(examined(driver.turn()), Some(first), "after {waited} s");
    }
}

// B5.66
#[test]
fn a_number_in_work_is_not_dispatched_in_any_scope_or_generation_and_holds_no_place() {
    let mut driver = Driver::new();
    driver.by_default(Held);
    driver.update(&[says(3, 0.0, 3.0).in_scope("a")]);
    driver.offer(&[says(3, 0.0, 3.0).in_scope("b"), says(3, 5.0, 9.0).in_scope("a")]);
    assert_eq!((driver.scheduler().dispatchable(), driver.turn()), (0, None));

    // The fifteen other places are free for fifteen other numbers, and for no more.
    let others: Vec<Segment> = (10..30).map(|speaker| says(speaker, 0.0, 3.0)).collect();
    driver.offer(&others);
    assert_eq!(driver.scheduler().dispatchable(), 15);
    driver.drain();
    assert_eq!(driver.open.len(), 16);

    // In the next conversation the number is still in work, and the places are free.
    driver.roll_over();
    driver.pass(60.0);
    driver.offer(&[says(3, 0.0, 3.0).in_scope("c"), says(50, 0.0, 3.0)]);
    assert_eq!(examined(driver.turn()), Some(50));
    assert_eq!(driver.turn(), None);
    let at = driver.open.iter().position(|open| open.speaker == Speaker(3)).unwrap();
    driver.extract(at, OWNER);
    assert_eq!(examined(driver.turn()), Some(3));
}

// B5.67
#[test]
fn a_full_queue_loses_no_range_and_the_next_update_queues_them() {
    let mut driver = Driver::new();
    let full: Vec<Segment> = (0..100).map(|speaker| says(speaker, 0.0, 3.0)).collect();
    driver.offer(&full);
    driver.offer(&[says(100, 10.0, 13.0)]);
    let queue = driver.scheduler().queue(LANE).unwrap();
    assert_eq!((queue.len(), queue.slot(voice(100))), (100, None));
    assert_eq!(queue.fresh(voice(100)), Some(&spans(&[(10.0, 13.0)])));
    assert!(driver.counters.exits.is_empty());

    assert!(driver.turn().is_some());
    driver.offer(&[says(100, 20.0, 20.5)]);
    let queue = driver.scheduler().queue(LANE).unwrap();
    assert!(queue.slot(voice(100)).is_some());
    assert_eq!(queue.fresh(voice(100)), Some(&spans(&[(10.0, 13.0), (20.0, 20.5)])));
}

// B5.68
#[test]
fn the_hundred_and_twenty_ninth_range_evicts_the_oldest() {
    let mut driver = Driver::new();
    let disjoint: Vec<Segment> = (0..129).map(|n| says(0, f64::from(n) * 0.375, f64::from(n) * 0.375 + 0.25)).collect();
    driver.offer(&disjoint);
    let queue = driver.scheduler().queue(LANE).unwrap();
    assert_eq!((queue.len(), queue.fresh(voice(0)).unwrap().len()), (1, 128));
    assert_eq!(queue.evicted(), samples(0.25));
}

// B5.69
#[test]
fn clean_speech_after_a_noisy_query_runs_without_another_update() {
    let mut driver = Driver::owner_only();
    driver.script(0, [Vector(at(1.9))]);
    driver.update(&[says(0, 0.0, 10.0), says(0, 12.0, 22.0), says(0, 24.0, 34.0)]);
    assert_eq!((driver.person(0), driver.queries.len()), (Some("user".into()), 3));
    assert_eq!((driver.counters.reserved, driver.tokens()), (3, 13.0), "every run reserves");
}

// B5.69
#[test]
fn continuations_never_exceed_twelve_attempts() {
    let mut driver = Driver::new();
    driver.by_default(Vector(BETWEEN));
    let mut timeline = ring_of(200);
    std::mem::swap(&mut driver.lanes.get_mut(&LANE).unwrap().timeline, &mut timeline);
    driver.update(&[says(0, 0.0, 200.0)]);
    assert_eq!((driver.attempts(0), driver.tokens()), (12, 4.0));
    assert_eq!(driver.counters.budget_exits, [(Cap::Voice, 1)].into(), "one denial, and the continuation stops");
}

// B5.70
#[test]
fn a_denied_continuation_stops_and_an_untried_owner_uses_the_next_token() {
    let mut driver = Driver::new();
    driver.script(1, vec![Vector(BETWEEN); 12]);
    drain_tokens_to(&mut driver, 2.0);
    driver.update(&[says(1, 0.0, 60.0)]);
    assert_eq!((driver.attempts(1), driver.exited(ExitReason::EmbeddingBudget)), (2, 1));

    driver.pass(15.0);
    driver.drain();
    assert_eq!((driver.attempts(1), driver.tokens()), (2, 1.0), "nothing is retried by itself");
    driver.update(&[says(1, 0.0, 60.0), says(0, 50.0, 56.0)]);
    assert_eq!((driver.person(0), driver.attempts(1)), (Some("user".into()), 2));
}

// B5.71
#[test]
fn a_failed_query_is_not_queued_again_by_itself() {
    let mut driver = Driver::new();
    driver.script(0, [Fails(Outcome::ExtractionFailed)]);
    driver.update(&[says(0, 0.0, 30.0)]);
    assert_eq!((driver.queries.len(), driver.scheduler().dispatchable()), (1, 0));
    driver.pass(3600.0);
    driver.drain();
    assert_eq!(driver.queries.len(), 1);
}

/// The cap of the next denial of voice 1, which has spent so many attempts while so many tokens are left.
fn cap_of(attempts: u32, tokens: f64, waited: f64) -> Cap {
    let mut driver = Driver::new();
    rejector(&mut driver, 1, attempts);
    drain_tokens_to(&mut driver, tokens);
    assert_eq!(driver.tokens(), tokens);
    driver.pass(waited);
    driver.offer(&[says(1, 50.0, 53.0)]);
    match driver.turn() {
        Some(Turn::Refused(_, Refusal::Denied(cap))) => cap,
        other => panic!("not denied: {other:?}"),
    }
}

// B5.72
#[test]
fn every_denial_has_the_one_cap_of_the_moment_after_the_refill() {
    assert_eq!(cap_of(12, 4.0, 0.0), Cap::Voice);
    assert_eq!(cap_of(3, 0.0, 0.0), Cap::Socket);
    assert_eq!(cap_of(12, 0.0, 0.0), Cap::Both);
    assert_eq!(cap_of(12, 0.0, 15.0), Cap::Voice, "fifteen seconds just brought a token");
    assert_eq!(cap_of(12, 0.0, 14.999), Cap::Both);
}

fn deny_times(driver: &mut Driver, scope: &'static str, times: u32) {
    for n in 0..times {
        let start = 45.0 + f64::from(n) * 0.1;
        driver.update(&[says(1, start, start + 3.0).in_scope(scope)]);
    }
}

fn total(counts: &std::collections::BTreeMap<Cap, u64>) -> u64 {
    counts.values().sum()
}

// B5.73
#[test]
fn fifty_denials_are_fifty_exits_and_one_blocked_voice() {
    let mut driver = Driver::new();
    rejector(&mut driver, 1, 12);
    deny_times(&mut driver, "", 50);
    assert_eq!((total(&driver.counters.budget_exits), driver.exited(ExitReason::EmbeddingBudget)), (50, 50));
    assert_eq!((&driver.counters.budget_voices, driver.counters.first_blocks), (&[(Cap::Voice, 1)].into(), 1));

    // Under another cap and in another scope it is the same voice.
    drain_tokens_to(&mut driver, 0.0);
    deny_times(&mut driver, "b", 1);
    assert_eq!(driver.counters.budget_exits, [(Cap::Voice, 50), (Cap::Both, 1)].into());
    assert_eq!((&driver.counters.budget_voices, driver.counters.first_blocks), (&[(Cap::Voice, 1)].into(), 1));

    // A rollover resets the voice's incidence, and not the socket's.
    driver.roll_over();
    deny_times(&mut driver, "", 2);
    assert_eq!(driver.counters.budget_voices, [(Cap::Voice, 1), (Cap::Socket, 1)].into());
    assert_eq!((driver.counters.first_blocks, &driver.counters.budget_sockets), (2, &[(Cap::Voice, 1)].into()));
    assert_eq!(total(&driver.counters.budget_exits), driver.exited(ExitReason::EmbeddingBudget));
}

// B5.74
#[test]
fn five_endings_are_two_successes_and_three_failures_and_no_token_returns() {
    let mut driver = Driver::new();
    driver.by_default(Held);
    driver.update(&(0..5).map(|speaker| says(speaker, 0.0, 3.0)).collect::<Vec<_>>());
    driver.extract(0, OWNER);
    driver.fail(0, Outcome::ExtractionFailed);
    driver.fail(0, Outcome::EncodingFailed);
    driver.fail(0, Outcome::Cancelled);
    driver.roll_over();
    driver.extract(0, OWNER);
    let counters = &driver.counters;
    assert_eq!((counters.reserved, counters.succeeded, counters.failed), (5, 2, 3));
    assert_eq!((driver.tokens(), driver.lane().budget.open()), (11.0, 0));
}

#[test]
fn untried_then_near_owner_then_longer_then_older_then_smaller_number() {
    let mut driver = Driver::owner_only();
    driver.script(1, [Vector(at(0.72))]);
    driver.script(2, [Vector(at(0.95))]);
    driver.script(3, [Vector(at(0.95))]);
    driver.update(&[says(1, 0.0, 5.0), says(2, 0.0, 5.0), says(3, 0.0, 5.0)]);
    assert_eq!(driver.status(1), Status::NoMatch, "beyond the near miss and within the near-owner band");

    driver.offer(&[says(2, 10.0, 13.0), says(1, 10.0, 12.0), says(3, 10.0, 14.0)]);
    driver.pass(1.0);
    driver.offer(&[says(6, 0.0, 20.0), says(5, 0.0, 10.0), says(4, 0.0, 2.0)]);
    let order: Vec<u32> = std::iter::from_fn(|| examined(driver.turn())).collect();
    // Ten seconds and twenty are equally long for one query, so the smaller number of the two goes first.
    assert_eq!(order, [5, 6, 4, 1, 3, 2]);
}

#[test]
fn a_voice_that_claims_the_owner_in_vain_is_near_the_owner() {
    let mut driver = Driver::owner_only();
    driver.script(1, [Vector(at(0.95))]);
    driver.script(2, [Vector(at(0.631))]);
    driver.script(3, [Vector(mirrored(0.645))]);
    driver.update(&[says(1, 0.0, 5.0), says(2, 0.0, 5.0), says(3, 0.0, 5.0)]);
    assert_eq!(driver.status(2), Status::Ambiguous);
    driver.offer(&[says(1, 10.0, 20.0), says(2, 10.0, 12.0)]);
    assert_eq!(examined(driver.turn()), Some(2));
}

#[test]
fn at_most_ninety_nine_slots_go_before_an_aged_one() {
    let mut driver = Driver::new();
    driver.offer(&(0..100).map(|speaker| says(speaker, 0.0, 3.0)).collect::<Vec<_>>());
    driver.pass(5.0);
    let mut before = 0;
    while let Some(turn) = driver.turn() {
        let (Turn::Reserved(dispatch) | Turn::Refused(dispatch, _)) = turn;
        if dispatch.speaker == Speaker(99) {
            break;
        }
        before += 1;
        // Untried voices arrive all the time; they are younger.
        driver.offer(&[says(1000 + before, 0.0, 10.0)]);
        if let Some(last) = driver.open.len().checked_sub(1) {
            driver.extract(last, BETWEEN);
        }
    }
    assert_eq!(before, 99);
}

#[test]
fn lanes_take_turns() {
    const OTHER: matcher_core::LaneId = matcher_core::LaneId(2);
    let mut driver = Driver::new();
    driver.join(OTHER, gallery(), ring_of(60), matcher_core::budget::Limits::default());
    driver.offer(&(0..4).map(|speaker| says(speaker, 0.0, 3.0)).collect::<Vec<_>>());
    let others: Vec<Segment> = (0..4).map(|speaker| says(speaker, 0.0, 3.0)).collect();
    driver.offer_to(OTHER, Generation(1), &others);
    let mut order = Vec::new();
    while let Some(Turn::Reserved(dispatch)) = driver.turn() {
        order.push((dispatch.lane.0, dispatch.speaker.0));
    }
    assert_eq!(order, [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)]);
}

#[test]
fn a_query_past_its_deadline_frees_its_number_and_a_late_answer_changes_nothing() {
    let mut driver = Driver::new();
    driver.by_default(Held);
    driver.update(&[says(0, 0.0, 6.0)]);
    assert_eq!(driver.scheduler().poll_timeout(), Some(Monotonic::from_origin(Duration::from_secs(5))));
    driver.pass(5.0);
    driver.expire();
    assert_eq!((driver.counters.failed, driver.open.len()), (1, 0));
    assert_eq!(driver.scheduler().poll_timeout(), None);

    let late = matcher_core::RequestId(1);
    let (now, mut out) = (driver.now, Vec::new());
    let owner = matcher_core::Embedding::new(&OWNER).unwrap();
    driver.conversations[0].handle_extracted(late, owner, now, &mut out);
    assert_eq!((out, driver.status(0)), (vec![], Status::Pending));
    driver.by_default(Vector(OWNER));
    driver.update(&[says(0, 6.0, 6.5)]);
    assert_eq!((driver.person(0), driver.evidence(0)), (Some("user".into()), 6.5));
}

#[test]
fn a_dispatch_that_never_arrived_keeps_its_age_and_its_ranges() {
    let mut driver = Driver::new();
    driver.offer(&[says(0, 0.0, 3.0)]);
    driver.pass(2.0);
    let (now, mut out) = (driver.now, Vec::new());
    let dispatch = driver.conversations[0].poll_dispatch(now).unwrap();
    driver.offer(&[says(0, 3.0, 8.0).named("meanwhile")]);
    driver.conversations[0].handle_undelivered(dispatch.request, &mut out);
    let queue = driver.scheduler().queue(LANE).unwrap();
    let slot = queue.slot(voice(0)).unwrap();
    assert_eq!((slot.since, slot.segment.as_str()), (Monotonic::ZERO, "meanwhile"));
    assert_eq!(queue.fresh(voice(0)), Some(&spans(&[(0.0, 8.0)])));
    assert_eq!((out, driver.scheduler().in_work(LANE)), (vec![], vec![]));
}

#[test]
fn a_dispatch_that_never_arrived_does_not_queue_a_voice_that_got_its_name() {
    let mut driver = Driver::with(matcher_core::Limits::default(), sarah_only(), ring_of(60));
    driver.update(&[says(0, 0.0, 6.0)]);
    driver.offer(&[says(0, 10.0, 16.0)]);
    let now = driver.now;
    let dispatch = driver.conversations[0].poll_dispatch(now).unwrap();
    driver.enrol(gallery());
    assert_eq!(driver.person(0), Some("user".into()));
    let mut out = Vec::new();
    driver.conversations[0].handle_undelivered(dispatch.request, &mut out);
    assert_eq!((driver.scheduler().dispatchable(), out.len()), (0, 1), "the slot exits as already mapped");
}

#[test]
fn the_queue_is_shown_in_the_order_of_service_and_each_slot_says_why_it_goes_first() {
    let mut driver = Driver::new();
    rejector(&mut driver, 1, 1);
    driver.script(2, [Held]);
    driver.update(&[says(2, 0.0, 5.0)]);
    driver.offer(&[says(1, 20.0, 26.0), says(2, 20.0, 26.0)]);
    driver.pass(1.0);
    driver.offer(&[says(3, 26.0, 29.0), says(4, 26.0, 32.0), says(5, 32.0, 38.0), says(6, 32.0, 38.0)]);
    driver.pass(1.0);
    driver.offer(&[says(7, 32.0, 38.0)]);
    let shown = || {
        let waiting = driver.scheduler().waiting(LANE, driver.now);
        waiting.iter().map(|slot| (slot.speaker.0, slot.precedence)).collect::<Vec<_>>()
    };
    assert_eq!(
        shown(),
        [
            (4, Precedence::SmallerNumber),
            (5, Precedence::SmallerNumber),
            (6, Precedence::Older),
            (7, Precedence::MoreSpeech),
            (3, Precedence::FirstTry),
            (1, Precedence::Alone),
            (2, Precedence::Held),
        ]
    );
    driver.pass(3.0);
    let waiting = driver.scheduler().waiting(LANE, driver.now);
    assert_eq!((waiting[0].speaker, waiting[0].precedence), (Speaker(1), Precedence::Age), "five seconds old");
}
