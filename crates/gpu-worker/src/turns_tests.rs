//! Goal: turns are fair, never idle while wanted, and never more than there are places.
//! Method: random histories of wanting, returning and leaving against a plain model, and long runs that are counted.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Turns;

#[derive(Debug, Clone, Copy)]
enum Op {
    Want(u8, usize),
    Leave(u8),
    Return,
    Grant,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (0_u8..6, 0_usize..5).prop_map(|(key, count)| Op::Want(key, count)),
        1 => (0_u8..6).prop_map(Op::Leave),
        3 => Just(Op::Return),
        4 => Just(Op::Grant),
    ];
    prop::collection::vec(op, 0..300)
}

proptest! {
    #[test]
    fn capacity_is_never_exceeded_and_no_place_is_idle_while_wanted(capacity in 0_usize..5, ops in ops()) {
        let mut turns = Turns::new(capacity);
        let mut wanted: BTreeMap<u8, usize> = BTreeMap::new();
        let mut out = 0;
        for op in ops {
            match op {
                Op::Want(key, count) => {
                    turns.handle_wanted(key, count);
                    wanted.insert(key, count);
                }
                Op::Leave(key) => {
                    turns.handle_left(key);
                    wanted.remove(&key);
                }
                Op::Return if out > 0 => {
                    turns.handle_returned();
                    out -= 1;
                }
                Op::Return => {}
                Op::Grant => match turns.poll_grant() {
                    Some(key) => {
                        let left = wanted.get_mut(&key).filter(|left| **left > 0);
                        *left.expect("only a key that wants something is given a place") -= 1;
                        out += 1;
                        prop_assert!(out <= capacity);
                    }
                    None => prop_assert!(out == capacity || wanted.values().all(|count| *count == 0)),
                },
            }
            prop_assert_eq!(turns.out(), out);
            prop_assert_eq!(turns.waiting(), wanted.values().filter(|count| **count > 0).count());
        }
    }

    /// Every window counts: between two grants of one key that wants more, no other key is given two.
    #[test]
    fn nobody_is_served_twice_while_another_waits(capacity in 1_usize..4, counts in prop::collection::vec(1_usize..30, 2..8)) {
        let mut turns = Turns::new(capacity);
        let mut left = counts.clone();
        for (key, count) in counts.iter().enumerate() {
            turns.handle_wanted(key, *count);
        }
        let mut since: Vec<Vec<usize>> = vec![vec![0; counts.len()]; counts.len()];
        while let Some(key) = turns.poll_grant() {
            left[key] -= 1;
            for other in 0..counts.len() {
                since[other][key] += 1;
                prop_assert!(left[other] == 0 || other == key || since[other][key] <= 1, "{} waits for {}", other, key);
            }
            since[key].fill(0);
            turns.handle_returned();
        }
        prop_assert!(left.iter().all(|count| *count == 0), "everything wanted is given in the end");
    }
}

/// (Σx)² ÷ (n Σx²): 1 when all have the same, 1/n when one has it all.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

#[test]
fn a_hundred_busy_keys_of_unequal_greed_get_equal_shares() {
    let mut turns = Turns::new(4);
    let mut shares = vec![0.0; 100];
    for round in 0..10_000 {
        // Every key wants more all the time: some one place, some a thousand.
        for key in 0..100_usize {
            turns.handle_wanted(key, if key % 3 == 0 { 1_000 } else { 1 });
        }
        let key = turns.poll_grant().expect("a place is free and everybody wants it");
        shares[key] += 1.0;
        if round >= 3 {
            turns.handle_returned();
        }
        if turns.out() == 4 {
            turns.handle_returned();
        }
    }
    assert!(jain(&shares) > 0.999, "Jain's index is {}", jain(&shares));
}

#[test]
fn a_late_key_waits_at_most_one_round() {
    let mut turns = Turns::new(1);
    for key in 0..10 {
        turns.handle_wanted(key, 1_000);
    }
    for _ in 0..35 {
        turns.poll_grant();
        turns.handle_returned();
    }
    turns.handle_wanted(99, 1);
    let mut waited = 0;
    while turns.poll_grant() != Some(99) {
        turns.handle_returned();
        waited += 1;
    }
    assert!(waited <= 10, "{waited} grants went before it");
}

#[test]
fn a_place_of_a_key_that_left_stays_out_until_it_returns() {
    let mut turns = Turns::new(1);
    turns.handle_wanted('a', 2);
    assert_eq!(turns.poll_grant(), Some('a'));
    turns.handle_left('a');
    turns.handle_wanted('b', 1);
    assert_eq!(turns.poll_grant(), None);
    turns.handle_returned();
    assert_eq!(turns.poll_grant(), Some('b'));
}

#[test]
#[should_panic(expected = "never given")]
fn returning_what_was_never_given_is_a_defect_and_stops() {
    Turns::<u8>::new(1).handle_returned();
}
