//! Goal: a name survives what really happens, and nothing else survives: corrections, rollovers, reconnects and changing
//! people lead to the same names in the core as in a second, naive implementation that a reader can check against the rules.
//! Method: random sequences over one or two lanes and four conversations, each a single `u64`, played to both; after every
//! event all that was told and every voice's public state are compared. Planted mistakes show that a difference is found.
//!
//! `ROLLCALL_SEQUENCES` sets how many sequences are played. `ROLLCALL_SEED` replays one and prints its moves.

#![cfg(test)]

#[path = "reference/mod.rs"]
mod reference;

use reference::{Mistake, Rule, Tally};

/// Sequences when nothing else is asked for.
const SEQUENCES: u64 = 200_000;

/// How many sequences a planted mistake may survive.
const SEQUENCES_OF_A_MISTAKE: u64 = 20_000;

/// How often each rule is applied in every thousand sequences, at the least.
const APPLIED_IN_A_THOUSAND: u64 = 2;

fn asked_for(variable: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "the core reads no environment; its tests are told how long to run")]
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} must be a whole number, not {value:?}")))
}

#[test]
fn the_core_and_the_naive_model_tell_the_same_of_every_sequence() {
    if let Some(seed) = asked_for("ROLLCALL_SEED") {
        return reference::replay(seed);
    }
    let sequences = asked_for("ROLLCALL_SEQUENCES").unwrap_or(SEQUENCES);
    let tally = reference::play(0..sequences).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{sequences} sequences\n{tally}");
    every_rule_was_applied(&tally, sequences);
}

fn every_rule_was_applied(tally: &Tally, sequences: u64) {
    let least = sequences * APPLIED_IN_A_THOUSAND / 1000;
    let rare: Vec<_> = Rule::ALL.iter().filter(|rule| tally.of(**rule) < least).collect();
    assert!(rare.is_empty(), "the sequences hardly touch these rules: {rare:?}\n{tally}");
}

#[test]
fn every_planted_mistake_is_found() {
    let survivors: Vec<Mistake> = Mistake::ALL.into_iter().filter(|mistake| !is_found(*mistake)).collect();
    assert!(survivors.is_empty(), "{SEQUENCES_OF_A_MISTAKE} sequences do not find {survivors:?}");
}

fn is_found(mistake: Mistake) -> bool {
    let found = reference::find(mistake, 0..SEQUENCES_OF_A_MISTAKE);
    match &found {
        Some(found) => println!("{mistake:?}: found after {} sequences, {}", found.sequences, found.what),
        None => println!("{mistake:?}: not found"),
    }
    found.is_some()
}

#[test]
fn a_seed_gives_the_same_moves_every_time() {
    for seed in 0..100 {
        assert_eq!(format!("{:?}", reference::moves(seed)), format!("{:?}", reference::moves(seed)));
    }
    assert_ne!(format!("{:?}", reference::moves(1)), format!("{:?}", reference::moves(2)));
}
