//! Goal: turns are fair in audio, never idle while wanted, never more than there are places.
//! Method: directed cases of each rule, and long runs that are counted; the bounds stand with their adversaries.

mod adversaries;

use std::collections::VecDeque;
use std::time::Duration;

use super::{COST_MIN, LOAN, Turns, Wish};

/// The longest clip.
const COST_MAX: Duration = Duration::from_secs(10);

/// How far a key's account is ahead of the least that waits.
fn owed(turns: &Turns<u32>, key: u32) -> Duration {
    turns.accounts[&key].share.saturating_sub(turns.least)
}

/// Places given to others before `key`'s next.
fn wait_of(turns: &mut Turns<u32>, key: u32) -> usize {
    for waited in 0..10_000 {
        turns.handle_returned();
        if turns.poll_grant() == Some(key) {
            return waited;
        }
    }
    panic!("{key} waits for ever");
}

#[test]
fn the_bound_is_reached_so_no_smaller_one_holds() {
    let mut turns = Turns::new(1);
    turns.handle_wanted(1, Wish::new(0, 1_000));
    turns.handle_wanted(0, Wish::new(1, 1));
    assert_eq!((turns.poll_grant(), owed(&turns, 0)), (Some(0), COST_MIN));
    turns.handle_charged(0, COST_MAX - COST_MIN);
    // It owes ten seconds, and the other has nothing but first tries, each as short as can be.
    turns.handle_wanted(1, Wish::new(1_000, 0));
    let bound = (COST_MAX + LOAN).as_millis() / COST_MIN.as_millis() + 1;
    assert_eq!(wait_of(&mut turns, 0) as u128, bound);
}

#[test]
fn who_comes_new_waits_for_the_turns_that_are_out_and_for_no_one_elses_backlog() {
    let mut turns = Turns::new(1);
    for key in 0..10 {
        turns.handle_wanted(key, Wish::new(1_000, 1_000));
    }
    turns.poll_grant();
    for _ in 0..35 {
        turns.handle_returned();
        turns.poll_grant();
    }
    turns.handle_wanted(99, Wish::new(0, 1));
    assert_eq!(wait_of(&mut turns, 99), 0);
}

#[test]
fn a_first_try_goes_before_repeats_of_those_who_have_had_as_much() {
    let mut turns = Turns::new(1);
    turns.handle_wanted(0, Wish::new(0, 9));
    turns.handle_wanted(1, Wish::new(0, 9));
    turns.handle_wanted(2, Wish::new(1, 9));
    assert_eq!(turns.poll_grant(), Some(2), "among those who come new");
    assert_eq!([wait_of(&mut turns, 0), wait_of(&mut turns, 1)], [0, 0]);
    turns.handle_wanted(1, Wish::new(1, 8));
    assert_eq!(wait_of(&mut turns, 1), 0, "and among those who are served in turn");
}

#[test]
fn first_tries_bring_their_key_one_loan_ahead_and_then_it_waits_until_the_others_have_as_much() {
    let mut turns = Turns::new(1);
    turns.handle_wanted(1, Wish::new(0, 1_000));
    turns.handle_wanted(0, Wish::new(1_000, 0));
    turns.poll_grant();
    wait_of(&mut turns, 1);
    let ahead = wait_of(&mut turns, 1);
    assert_eq!(ahead as u128, LOAN.as_millis() / COST_MIN.as_millis(), "the loan");
    assert_eq!((0..20).map(|_| wait_of(&mut turns, 1)).collect::<Vec<_>>(), [1; 20], "and from then on in turn");
    turns.handle_wanted(0, Wish::new(0, 1_000));
    assert!(wait_of(&mut turns, 0) as u128 >= LOAN.as_millis() / COST_MIN.as_millis(), "it is paid back");
}

#[test]
fn a_debt_outlives_the_wish_and_idleness_earns_nothing() {
    let mut turns = Turns::new(1);
    turns.handle_wanted(0, Wish::new(0, 1));
    turns.handle_wanted(1, Wish::new(0, 100_000));
    turns.handle_wanted(2, Wish::new(0, 100_000));
    assert_eq!(turns.poll_grant(), Some(0));
    turns.handle_charged(0, COST_MAX - COST_MIN);
    turns.handle_wanted(0, Wish::NOTHING);
    turns.handle_wanted(0, Wish::new(0, 1));
    let clips = COST_MAX.as_millis() / COST_MIN.as_millis() + 1;
    assert_eq!(wait_of(&mut turns, 0) as u128, 2 * clips, "it had ten seconds; the two others are given more first");
    // It stays away for long, goes first when it comes, and then has a third like the others.
    (0..1_000).for_each(|_| {
        wait_of(&mut turns, 1);
    });
    turns.handle_wanted(0, Wish::new(0, 1_000));
    assert_eq!(wait_of(&mut turns, 0), 0);
    let waited: usize = (0..100).map(|_| wait_of(&mut turns, 0)).sum();
    assert!((198..=202).contains(&waited), "{waited} turns of the two others beside its hundred");
}

#[test]
fn places_that_nobody_else_wanted_cost_nothing_later() {
    let mut turns = Turns::new(1);
    turns.handle_wanted(1, Wish::new(0, 1));
    turns.poll_grant();
    turns.handle_returned();
    for _ in 0..100 {
        turns.handle_wanted(0, Wish::new(0, 1));
        assert_eq!(turns.poll_grant(), Some(0));
        turns.handle_charged(0, COST_MAX);
        turns.handle_returned();
        assert_eq!(turns.poll_grant(), None);
    }
    turns.handle_wanted(0, Wish::new(0, 1));
    turns.handle_wanted(1, Wish::new(0, 1));
    assert_eq!(turns.poll_grant(), Some(0), "it came first, and owes nothing");
}

/// (Σx)² ÷ (n Σx²): 1 when all have the same, 1/n when one has it all.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

#[test]
fn a_hundred_busy_keys_of_unequal_greed_and_clips_get_equal_audio() {
    let mut turns = Turns::new(4);
    let mut shares = vec![0.0; 100];
    let mut out = VecDeque::new();
    for _ in 0..20_000 {
        // Every key wants more all the time: some one place, some a thousand; and some have clips five times as long.
        for key in 0..100_usize {
            turns.handle_wanted(key, Wish::new(0, if key % 3 == 0 { 1_000 } else { 1 }));
        }
        let key = turns.poll_grant().expect("a place is free and everybody wants it");
        out.push_back(key);
        if out.len() == 4 {
            // What a turn uses is known only after others were given.
            let key = out.pop_front().expect("four are out");
            let seconds = if key % 2 == 0 { 10 } else { 2 };
            turns.handle_charged(key, Duration::from_secs(seconds) - COST_MIN);
            turns.handle_returned();
            shares[key] += seconds as f64;
        }
    }
    assert!(jain(&shares) > 0.999, "Jain's index is {}", jain(&shares));
}

#[test]
fn a_place_of_a_key_that_left_stays_out_until_it_returns() {
    let mut turns = Turns::new(1);
    turns.handle_wanted('a', Wish::new(0, 2));
    assert_eq!(turns.poll_grant(), Some('a'));
    turns.handle_left('a');
    turns.handle_charged('a', COST_MAX);
    turns.handle_wanted('b', Wish::new(0, 1));
    assert_eq!(turns.poll_grant(), None);
    turns.handle_returned();
    assert_eq!(turns.poll_grant(), Some('b'));
}

#[test]
#[should_panic(expected = "never given")]
fn returning_what_was_never_given_is_a_defect_and_stops() {
    Turns::<u8>::new(1).handle_returned();
}
