//! Goal: the options that give a voice with new speech more than the defaults stay within their own hard bounds, whatever
//! fails and however often it is asked; and with an age that decides every so many selections, first examinations stay quick.
//! Method: the ledger and the queue alone, sentences for what each option is for, and random sequences held against a naive
//! count over every window.

#![cfg(test)]

mod driver;

use driver::*;
use matcher_core::budget::{Denied, Limits, Outcome, Refused, Relaxation, Renewal, Seen};
use matcher_core::queue::{NearOwner, Standing, Tried, Voice};
use matcher_core::{Budget, Cap, Generation, Monotonic, SegmentId, Speaker, SpeakerMatchQueue};
use proptest::prelude::*;
use std::num::NonZeroU32;
use std::time::Duration;

const FIRST: Generation = Generation(1);
const NONE: Duration = Duration::ZERO;

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn at_second(count: u64) -> Monotonic {
    Monotonic::from_origin(seconds(count))
}

fn count(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).unwrap()
}

fn relaxed() -> Limits {
    Limits { relaxation: Some(Relaxation { tokens: count(4), speech: seconds(10) }), ..Limits::default() }
}

fn renewed() -> Limits {
    Limits { renewal: Some(Renewal { speech: seconds(30) }), ..Limits::default() }
}

fn ledger(limits: Limits) -> Budget {
    Budget::new(limits, FIRST, Monotonic::ZERO)
}

/// Reserves and settles at once; the cap when it is denied.
fn spend(budget: &mut Budget, speaker: u32, fresh: Duration, now: Monotonic) -> Result<(), Cap> {
    match budget.reserve_for(budget.generation(), Speaker(speaker), fresh, now) {
        Ok(reservation) => {
            budget.settle(reservation, Outcome::Extracted);
            Ok(())
        }
        Err(Refused::Denied(Denied { cap, .. })) => Err(cap),
        Err(other) => panic!("not a denial: {other:?}"),
    }
}

fn spend_all(budget: &mut Budget, speaker: u32) {
    while spend(budget, speaker, NONE, Monotonic::ZERO).is_ok() {}
}

#[test]
fn without_the_options_new_speech_buys_nothing() {
    let mut budget = ledger(Limits::default());
    for _ in 0..12 {
        assert_eq!(spend(&mut budget, 1, seconds(60), Monotonic::ZERO), Ok(()));
    }
    assert_eq!(spend(&mut budget, 1, seconds(60), at_second(600)), Err(Cap::Voice));
    let mut budget = ledger(Limits::default());
    for speaker in 0..16 {
        assert_eq!(spend(&mut budget, speaker, seconds(60), Monotonic::ZERO), Ok(()));
    }
    assert_eq!(spend(&mut budget, 16, seconds(60), Monotonic::ZERO), Err(Cap::Socket));
}

#[test]
fn a_voice_with_new_speech_takes_tokens_below_nothing_and_the_refill_pays_them_back_first() {
    let mut budget = ledger(relaxed());
    for speaker in 0..16 {
        assert_eq!(spend(&mut budget, speaker, NONE, Monotonic::ZERO), Ok(()));
    }
    assert_eq!(spend(&mut budget, 20, Duration::from_millis(9_999), Monotonic::ZERO), Err(Cap::Socket));
    for speaker in 20..24 {
        assert_eq!(spend(&mut budget, speaker, seconds(10), Monotonic::ZERO), Ok(()), "speaker {speaker}");
        assert_eq!(budget.tokens(Monotonic::ZERO), 0.0, "what is below nothing is not told as tokens");
    }
    assert_eq!(spend(&mut budget, 24, seconds(60), Monotonic::ZERO), Err(Cap::Socket));
    assert_eq!(spend(&mut budget, 0, NONE, at_second(74)), Err(Cap::Socket), "four are paid back first");
    assert_eq!(spend(&mut budget, 0, NONE, at_second(75)), Ok(()));
}

#[test]
fn a_full_bucket_is_no_fuller_for_the_relaxation() {
    let budget = ledger(relaxed());
    assert_eq!((budget.tokens(Monotonic::ZERO), budget.tokens(at_second(3600))), (16.0, 16.0));
}

#[test]
fn a_voice_at_its_limit_has_its_attempts_again_after_new_speech_and_as_much_time() {
    let mut budget = ledger(renewed());
    spend_all(&mut budget, 1);
    assert_eq!(budget.attempts(Speaker(1)), 12);
    assert_eq!(spend(&mut budget, 1, seconds(30), at_second(29)), Err(Cap::Voice), "too soon");
    assert_eq!(spend(&mut budget, 1, Duration::from_millis(29_999), at_second(60)), Err(Cap::Voice), "too little");
    assert_eq!(spend(&mut budget, 1, seconds(30), at_second(60)), Ok(()));
    assert_eq!((budget.attempts(Speaker(1)), budget.attempts_left(Speaker(1))), (1, 11));
}

#[test]
fn a_voice_that_gets_no_token_keeps_its_right_to_new_attempts() {
    let mut budget = ledger(renewed());
    spend_all(&mut budget, 1);
    for speaker in 2..14 {
        spend(&mut budget, speaker, NONE, at_second(30)).ok();
    }
    assert_eq!(spend(&mut budget, 1, seconds(30), at_second(30)), Err(Cap::Socket), "the voice's limit is none");
    assert_eq!((budget.attempts(Speaker(1)), budget.books().denied_socket > 0), (12, true));
    assert_eq!(spend(&mut budget, 1, seconds(30), at_second(45)), Ok(()));
}

#[test]
fn new_attempts_are_no_new_first_block() {
    let mut budget = ledger(renewed());
    spend_all(&mut budget, 1);
    for _ in 0..12 {
        spend(&mut budget, 1, seconds(30), at_second(3600)).unwrap();
    }
    match budget.reserve_for(FIRST, Speaker(1), seconds(30), at_second(3600)) {
        Err(Refused::Denied(denied)) => assert_eq!((denied.cap, denied.voice), (Cap::Voice, Seen::Again)),
        other => panic!("not a denial: {other:?}"),
    }
}

#[test]
fn a_late_stranger_is_examined_in_the_next_turn_when_age_decides_every_second_and_last_when_it_decides_all() {
    for (every, selected_before) in [(1, 20), (2, 1)] {
        let limits = matcher_core::Limits { override_every: count(every), ..matcher_core::Limits::default() };
        let mut driver = Driver::with(limits, gallery(), ring_of(60));
        driver.by_default(Answer::Vector(BETWEEN));
        for speaker in 1..=20 {
            driver.lanes.get_mut(&LANE).unwrap().budget = ledger(Limits { burst: count(100), ..Limits::default() });
            driver.update(&[says(speaker, 0.0, 2.0)]);
        }
        driver.offer(&(1..=20).map(|speaker| says(speaker, 2.0, 5.0)).collect::<Vec<_>>());
        driver.pass(6.0);
        driver.offer(&[says(0, 50.0, 56.0)]);
        let mut before = 0;
        while let Some(Turn::Reserved(dispatch)) = driver.turn() {
            let at = driver.open.len() - 1;
            driver.extract(at, BETWEEN);
            if dispatch.speaker == Speaker(0) {
                break;
            }
            before += 1;
        }
        assert_eq!(before, selected_before, "age decides one of {every} selections");
    }
}

/// What is asked of a ledger in one step.
#[derive(Debug, Clone)]
enum Step {
    Spend { speaker: u32, fresh: u64 },
    Pass { seconds: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u32..4, 0_u64..60).prop_map(|(speaker, fresh)| Step::Spend { speaker, fresh }),
        1 => (0_u64..60).prop_map(|seconds| Step::Pass { seconds }),
    ];
    prop::collection::vec(step, 1..400)
}

/// One or two voices that nearly always have speech enough for new attempts, and hardly ever wait.
fn insisting() -> impl Strategy<Value = Vec<Step>> {
    let fresh = prop_oneof![8 => 30_u64..60, 1 => 0_u64..30];
    let step = prop_oneof![
        6 => (0_u32..2, fresh).prop_map(|(speaker, fresh)| Step::Spend { speaker, fresh }),
        1 => (0_u64..=5).prop_map(|seconds| Step::Pass { seconds }),
    ];
    prop::collection::vec(step, 1..600)
}

/// When tokens were granted, and to whom.
fn grants(limits: Limits, steps: &[Step]) -> Vec<(u64, u32)> {
    let (mut budget, mut now, mut grants) = (ledger(limits), 0, Vec::new());
    for step in steps {
        match step {
            Step::Pass { seconds } => now += seconds,
            Step::Spend { speaker, fresh } => {
                let before = budget.books();
                // A query that fails leaves its speech unused: it may be brought forward again and again.
                if spend(&mut budget, *speaker, seconds(*fresh), at_second(now)).is_ok() {
                    grants.push((now, *speaker));
                }
                let books = budget.books();
                assert!(books.reserved >= before.reserved, "nothing is refunded");
                assert_eq!(books.reserved, grants.len() as u64);
                assert_eq!(books.reserved, books.succeeded + books.failed);
            }
        }
    }
    grants
}

/// Every window that begins with a grant and ends with one holds no more than `most` of its length.
fn check_windows(grants: &[u64], most: impl Fn(u64) -> u64) {
    for (index, from) in grants.iter().enumerate() {
        for (to, spent) in grants[index..].iter().zip(1..) {
            assert!(spent <= most(to - from), "{spent} grants within {} s", to - from);
        }
    }
}

fn of_voice(grants: &[(u64, u32)], speaker: u32) -> Vec<u64> {
    grants.iter().filter(|(_, of)| *of == speaker).map(|(at, _)| *at).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_relaxed_lane_gets_its_tokens_below_nothing_once_and_no_faster_refill(steps in steps()) {
        let grants = grants(relaxed(), &steps);
        check_windows(&grants.iter().map(|(at, _)| *at).collect::<Vec<_>>(), |length| 16 + 4 + length / 15);
        for speaker in 0..4 {
            prop_assert!(of_voice(&grants, speaker).len() <= 12, "the voice's limit is what it was");
        }
    }

    #[test]
    fn a_voice_whose_attempts_are_renewed_has_at_most_two_dozen_and_one_more_dozen_for_each_thirty_seconds(
        steps in insisting(),
    ) {
        // So many tokens that only the attempts deny anything.
        let limits = Limits { burst: count(1_000), ..renewed() };
        let grants = grants(limits, &steps);
        for speaker in 0..2 {
            check_windows(&of_voice(&grants, speaker), |length| 12 * (2 + length / 30));
        }
    }

    #[test]
    fn both_options_together_keep_both_bounds(steps in steps()) {
        let limits = Limits { renewal: renewed().renewal, burst: count(60), ..relaxed() };
        let grants = grants(limits, &steps);
        check_windows(&grants.iter().map(|(at, _)| *at).collect::<Vec<_>>(), |length| 60 + 4 + length / 15);
        for speaker in 0..4 {
            check_windows(&of_voice(&grants, speaker), |length| 12 * (2 + length / 30));
        }
    }

    #[test]
    fn age_decides_at_most_one_of_every_so_many_selections_in_a_row_and_that_one_as_soon_as_it_may(
        (every, waits) in (1_u32..5, prop::collection::vec(0_u64..20, 1..60)),
    ) {
        let limits = matcher_core::Limits { override_every: count(every), ..matcher_core::Limits::default() };
        let mut queue = SpeakerMatchQueue::new(limits);
        let mut decided = Vec::new();
        for wait in waits {
            let selected = old_or_untried(&mut queue, at_second(wait));
            // Nobody prefers the old one: it goes first for its age, or not at all.
            let before = decided.iter().rev().take(every as usize - 1);
            let may = wait >= 5 && !before.clone().any(|by_age| *by_age);
            prop_assert_eq!(selected == OLD, may, "after {:?}", &decided);
            decided.push(selected == OLD);
        }
        for row in decided.windows(every as usize) {
            prop_assert!(row.iter().filter(|by_age| **by_age).count() <= 1, "{decided:?}");
        }
    }
}

const OLD: Voice = Voice { speaker: Speaker(1), scope: 0 };
const UNTRIED: Voice = Voice { speaker: Speaker(2), scope: 0 };

/// Who goes first at a moment: a tried voice that waits since the beginning, or one never tried that waits since now.
fn old_or_untried(queue: &mut SpeakerMatchQueue, now: Monotonic) -> Voice {
    for (voice, since) in [(OLD, Monotonic::ZERO), (UNTRIED, now)] {
        queue.admit(voice).unwrap();
        queue.stamp(voice, SegmentId::new("s"), since).unwrap();
    }
    let standing = |voice| {
        let tried = if voice == OLD { Tried::Before } else { Tried::Never };
        Some(Standing { tried, near_owner: NearOwner::Far })
    };
    let selected = queue.next(now, 160_000, standing).unwrap();
    queue.take(selected, now);
    queue.restore(selected);
    for voice in [OLD, UNTRIED] {
        queue.unslot(voice);
    }
    selected
}
