//! Goal: an update that leads to no verdict says why, once, and work of one generation never touches another.
//! Method: small rings for the exits; queries held open across clears and rollovers for the fences.

#![cfg(test)]

mod driver;

use driver::*;
use matcher_core::budget::Outcome;
use matcher_core::{ExitReason, Generation, Limits, Speaker, Status};

use Answer::{Held, Vector};

/// The exits of one update of this lane.
fn exits(timeline: matcher_core::Timeline, segments: &[Segment]) -> Vec<(ExitReason, u64)> {
    let mut driver = Driver::with(Limits::default(), gallery(), timeline);
    driver.update(segments);
    assert_eq!((driver.tokens(), driver.named()), (16.0, vec![]));
    driver.counters.exits.into_iter().collect()
}

// B6.76
#[test]
fn a_lane_without_a_ring_has_no_pcm() {
    assert_eq!(exits(ring_with(0.0, &[(0.0, 5.0)]), &[says(0, 0.0, 3.0)]), [(ExitReason::NoPcm, 1)]);
}

// B6.77
#[test]
fn an_empty_ring_has_no_pcm() {
    assert_eq!(exits(ring_with(60.0, &[]), &[says(0, 0.0, 3.0)]), [(ExitReason::NoPcm, 1)]);
}

// B6.78
#[test]
fn a_short_segment_outside_the_ring_is_shorter_than_the_minimum() {
    let segment = says(0, 100.0, 103.0).lasting(1.0);
    let expected = [(ExitReason::SegmentShorterThanMinimum, 1)];
    assert_eq!(exits(ring_with(60.0, &[(99.0, 1.0)]), &[segment]), expected);
}

// B6.79
#[test]
fn windows_before_and_after_the_ring_lie_outside_the_buffer() {
    let segments = [says(0, 10.0, 13.0), says(0, 200.0, 203.0)];
    assert_eq!(exits(ring_with(60.0, &[(99.0, 1.0)]), &segments), [(ExitReason::WindowOutsideBuffer, 2)]);
}

// B6.80
#[test]
fn an_update_of_another_generation_is_stale_and_leaves_no_trace() {
    let mut driver = Driver::new();
    driver.roll_over();
    driver.offer_to(LANE, Generation(1), &[says(0, 0.0, 6.0)]);
    driver.drain();
    assert_eq!(driver.counters.exits, [(ExitReason::StaleGeneration, 1)].into());
    assert_eq!((driver.voice(0), driver.queries.len()), (None, 0));
}

// B6.81
#[test]
fn an_update_of_a_named_voice_counts_nothing_and_a_slot_of_one_exits_once() {
    let mut driver = Driver::new();
    driver.script(0, [Held]);
    driver.update(&[says(0, 0.0, 6.0)]);
    driver.update(&[says(0, 10.0, 16.0).named("waiting")]);
    driver.extract(0, OWNER);
    assert_eq!(driver.exited_segments(ExitReason::AlreadyMapped), ["waiting"]);

    driver.update(&[says(0, 20.0, 26.0)]);
    assert_eq!((driver.counters.exits.clone(), driver.queries.len()), ([(ExitReason::AlreadyMapped, 1)].into(), 1));
}

// B6.82
#[test]
fn an_answer_after_the_generation_moved_is_stale_and_stores_nothing() {
    let mut driver = Driver::with(Limits::default(), gallery(), ring_with(4.0, &[(97.0, 4.0)]));
    driver.by_default(Held);
    driver.update(&[says(0, 97.5, 103.0)]);
    driver.roll_over();
    driver.extract(0, OWNER);
    assert_eq!(driver.counters.exits, [(ExitReason::StaleGeneration, 1)].into());
    assert_eq!((driver.counters.succeeded, driver.voice(0), driver.named()), (1, None, vec![]));
    assert!(driver.conversations[0].is_idle());
}

// B6.84
#[test]
fn the_second_update_of_a_voice_that_gets_its_name_is_never_examined() {
    let mut driver = Driver::new();
    driver.script(0, [Held, Vector(SARAH)]);
    driver.update(&[says(0, 0.0, 6.0).named("first")]);
    driver.update(&[says(0, 10.0, 16.0).named("second")]);
    driver.extract(0, OWNER);
    driver.drain();
    assert_eq!((driver.queries.len(), driver.person(0)), (1, Some("user".into())));
    assert_eq!(driver.named(), [name(0, "user", "second")], "one event, for the latest segment");
}

// B6.85
#[test]
fn a_clear_while_a_query_runs_leaves_no_evidence_and_no_event() {
    let mut driver = Driver::new();
    driver.script(0, [Held]);
    driver.update(&[says(0, 0.0, 6.0)]);
    driver.clear();
    driver.extract(0, OWNER);
    assert_eq!((driver.voice(0), driver.named()), (None, vec![]));
    assert_eq!(driver.counters.exits, [(ExitReason::StaleGeneration, 1)].into());
    assert_eq!(driver.attempts(0), 1, "what was spent stays spent");
}

// B6.86
#[test]
fn a_lock_that_is_held_goes_over_into_the_next_conversation() {
    let mut driver = Driver::new();
    driver.script(0, [Held]);
    driver.update(&[says(0, 0.0, 6.0)]);
    driver.roll_over();
    assert_eq!(driver.scheduler().in_work(LANE), [Speaker(0)]);
    assert_eq!(driver.scheduler().voices(LANE), []);
    driver.roll_over();
    assert_eq!(driver.scheduler().in_work(LANE), [Speaker(0)], "also through a second one");
    driver.fail(0, Outcome::Cancelled);
    assert_eq!(driver.scheduler().in_work(LANE), []);
}

// B6.87
#[test]
fn a_thousand_voices_in_three_generations_outgrow_no_table() {
    let mut driver = Driver::new();
    driver.by_default(Vector(BETWEEN));
    for _ in 0..3 {
        for speaker in 0..1000 {
            driver.update(&[says(speaker, 0.0, 0.5)]);
        }
        driver.update(&(0..1000).map(|speaker| says(speaker, 0.0, 5.0)).collect::<Vec<_>>());
        assert_eq!(driver.scheduler().voices(LANE).len(), 128);
        assert_eq!(driver.scheduler().queue(LANE).unwrap().voices(), 128);
        assert!(driver.lane().budget.attempted().count() <= 128);
        driver.clear();
        assert_eq!((driver.scheduler().voices(LANE), driver.scheduler().in_work(LANE)), (vec![], vec![]));
    }
    assert_eq!(driver.exited(ExitReason::VoiceCapacity), 3 * 2 * 872);
}

// B6.88
#[test]
fn a_new_voice_waits_for_the_old_one_of_its_number_and_then_decides_by_its_own_speech() {
    let mut driver = Driver::new();
    driver.script(0, [Held]);
    driver.update(&[says(0, 0.0, 6.0).named("old")]);
    driver.clear();
    driver.update(&[says(0, 10.0, 15.0).named("new")]);
    assert_eq!((driver.queries.len(), driver.scheduler().in_work(LANE)), (1, vec![Speaker(0)]));

    driver.extract(0, SARAH);
    assert_eq!(driver.exited(ExitReason::StaleGeneration), 1);
    assert_eq!((driver.status(0), driver.scheduler().in_work(LANE)), (Status::Pending, vec![]));
    driver.drain();
    assert_eq!(driver.named(), [name(0, "user", "new")]);
    assert_eq!(driver.selections(0).last(), Some(&spans(&[(10.0, 15.0)])));
}

#[test]
fn slots_of_a_lane_that_leaves_exit_as_stale() {
    let mut driver = Driver::new();
    driver.offer(&[says(0, 0.0, 6.0), says(1, 0.0, 6.0)]);
    driver.roll_over();
    assert_eq!(driver.counters.exits, [(ExitReason::StaleGeneration, 2)].into());
}

#[test]
fn a_ninth_lane_and_a_lane_that_is_here_are_refused() {
    let mut scheduler = matcher_core::Scheduler::new(Limits::default(), policy());
    let join = || matcher_core::Join::new(Generation(1), rate(), gallery());
    for id in 1..=8 {
        assert_eq!(scheduler.handle_joined(matcher_core::LaneId(id), join()), Ok(()));
    }
    let again = scheduler.handle_joined(matcher_core::LaneId(1), join());
    assert_eq!(again, Err(matcher_core::JoinRefused::AlreadyJoined));
    assert_eq!(scheduler.handle_joined(matcher_core::LaneId(9), join()), Err(matcher_core::JoinRefused::LanesMax));
}

#[test]
fn a_provider_that_restarts_often_makes_room_among_its_own_dead_scopes() {
    use matcher_core::queue::Voice;
    use matcher_core::{ExitReason, Limits, Speaker, SpeakerMatchQueue};

    let mut queue = SpeakerMatchQueue::new(Limits::default());
    let voice = |speaker, scope| Voice { speaker: Speaker(speaker), scope };
    for scope in 0..32 {
        for speaker in 0..4 {
            assert_eq!(queue.admit(voice(speaker, scope)), Ok(None));
        }
    }
    assert_eq!(queue.admit(voice(0, 32)), Ok(Some(voice(0, 0))), "its oldest scope gives way");
    assert_eq!(queue.admit(voice(9, 32)), Ok(Some(voice(1, 0))), "a new number finds room too");
    assert_eq!(queue.voices(), 128);

    let mut crowd = SpeakerMatchQueue::new(Limits::default());
    for speaker in 0..128 {
        assert_eq!(crowd.admit(voice(speaker, 0)), Ok(None));
    }
    assert_eq!(crowd.admit(voice(128, 0)), Err(ExitReason::VoiceCapacity), "128 numbers of one scope are the most");
    assert_eq!(crowd.admit(voice(5, 1)), Ok(Some(voice(5, 0))), "a known number is not refused in its next scope");
}
