//! Goal: of several voices that sound like the owner, the clearly nearest keeps the name, or none does.
//! Method: distances as literals into the arbitration where ranks are under test; whole voices where events are.

#![cfg(test)]

mod driver;

use driver::*;
use matcher_core::arbitration::{Contender, OwnerClaim, Standing, arbitrate};
use matcher_core::policy::{Candidate, Decision};
use matcher_core::{Centroid, Embedding, Ending, Scope, Status, Target};

use Answer::Vector;

fn candidate(index: usize, role: matcher_core::Role, distance: f64) -> Candidate {
    Candidate { index, role, distance }
}

fn decisions(owner: &[f64]) -> Vec<Decision> {
    owner.iter().map(|distance| policy().decide(&[candidate(0, matcher_core::Role::Owner, *distance)])).collect()
}

/// Whether each voice keeps the owner, when nothing but these owner distances is known.
fn keeps(distances: &[f64], claim: OwnerClaim) -> Vec<bool> {
    let (scope, centroid) = (Scope::new(""), Centroid::of(&[Embedding::new(&OWNER).unwrap()]).unwrap());
    let decisions = decisions(distances);
    let contender = |(decision, distance)| Contender {
        scope: &scope,
        centroid: &centroid,
        owner_distance: Some(distance),
        decision,
    };
    let contenders: Vec<Contender<'_>> = decisions.iter().zip(distances.iter().copied()).map(contender).collect();
    let standings = arbitrate(&contenders, &policy(), claim);
    let is_owner = |(standing, decision): (Standing, &Decision)| {
        standing == Standing::Own && decision.is_accepted_as(matcher_core::Role::Owner)
    };
    standings.into_iter().zip(&decisions).map(is_owner).collect()
}

fn open(distances: &[f64]) -> Vec<bool> {
    keeps(distances, OwnerClaim::Open)
}

// B3.41
#[test]
fn two_claims_without_a_margin_are_both_contended() {
    assert_eq!(open(&[0.631, 0.645]), [false, false]);
}

// B3.42
#[test]
fn a_failed_voice_within_the_margin_blocks_a_claim() {
    assert_eq!(open(&[0.64, 0.70]), [false, false]);
}

// B3.43
#[test]
fn the_clearly_nearer_of_two_claims_keeps_the_owner() {
    assert_eq!(open(&[0.40, 0.63]), [true, false]);
    assert_eq!(open(&[0.63, 0.40]), [false, true]);
}

// B3.44
#[test]
fn a_failed_voice_beyond_the_margin_does_not_block() {
    assert_eq!(open(&[0.53, 0.73]), [true, false]);
}

// B3.45
#[test]
fn a_lone_claim_keeps_the_owner() {
    assert_eq!(open(&[0.53]), [true]);
}

// B3.46
#[test]
fn voices_that_failed_are_never_promoted() {
    assert_eq!(open(&[0.73, 0.87, 1.05]), [false, false, false]);
}

#[test]
fn a_tie_names_nobody_and_a_reserved_owner_names_nobody() {
    assert_eq!(open(&[0.3, 0.3]), [false, false]);
    assert_eq!(keeps(&[0.1], OwnerClaim::Reserved), [false]);
}

// B3.47
#[test]
fn a_voice_that_is_confidently_somebody_else_does_not_contend() {
    let gallery = matcher_core::Gallery::new(vec![
        print("user", "User", matcher_core::Role::Owner, OWNER),
        print("p1", "Sarah", matcher_core::Role::Person, at(0.79)),
    ]);
    let mut driver = Driver::with(matcher_core::Limits::default(), gallery, ring_of(60));
    // Voice 1 is nearer to the owner than voice 0, and nearer still to Sarah.
    driver.script(0, [Vector(mirrored(0.53))]);
    driver.script(1, [Vector(at(0.43))]);
    driver.update(&[says(0, 0.0, 6.0), says(1, 10.0, 16.0)]);
    assert_eq!((driver.person(0), driver.person(1)), (Some("user".into()), Some("p1".into())));
}

/// Two owner-like voices, six seconds each, decided in this order.
fn two_voices(first: (u32, [f32; 2]), second: (u32, [f32; 2])) -> Driver {
    let mut driver = Driver::owner_only();
    for (n, (speaker, vector)) in [first, second].into_iter().enumerate() {
        let start = f64::from(u32::try_from(n).unwrap()) * 20.0;
        driver.script(speaker, [Vector(vector)]);
        driver.update(&[says(speaker, start, start + 6.0), says(speaker, start + 6.0, start + 6.5)]);
    }
    driver
}

// B3.48
#[test]
fn a_second_claim_takes_the_name_back_from_the_first_in_either_order() {
    let (near, far) = ((0, at(0.631)), (1, mirrored(0.645)));
    for (first, second) in [(near, far), (far, near)] {
        let driver = two_voices(first, second);
        assert_eq!((driver.person(0), driver.person(1)), (None, None));
        assert_eq!((driver.status(0), driver.status(1)), (Status::Ambiguous, Status::Ambiguous));
        assert_eq!(driver.named().len(), 1, "the first was shown");
        assert_eq!(driver.retracted().len(), 1, "and taken back");
        assert_eq!(driver.decided(Target::Owner, Ending::Ambiguous), 1);
    }
}

// B3.49
#[test]
fn the_nearer_by_a_margin_wins_in_either_order() {
    let (near, far) = ((0, at(0.53)), (1, mirrored(0.645)));
    for (first, second) in [(near, far), (far, near)] {
        let driver = two_voices(first, second);
        assert_eq!((driver.person(0), driver.person(1)), (Some("user".into()), None));
        assert_eq!(driver.status(1), Status::Ambiguous);
    }
}

fn alike(scopes: [&'static str; 2]) -> Driver {
    let mut driver = Driver::owner_only();
    driver.script(0, [Vector([0.47, 0.883])]);
    driver.script(1, [Vector([0.46, 0.888])]);
    driver.update(&[says(0, 0.0, 6.0).in_scope(scopes[0]), says(1, 10.0, 16.0).in_scope(scopes[1])]);
    driver
}

// B3.50
#[test]
fn one_voice_in_two_provider_streams_is_the_owner_in_both() {
    let driver = alike(["connection:0", "connection:1"]);
    assert_eq!((driver.person(0), driver.person(1)), (Some("user".into()), Some("user".into())));
}

// B3.51
#[test]
fn the_same_two_voices_in_one_stream_contend() {
    let driver = alike(["connection:0", "connection:0"]);
    assert_eq!((driver.status(0), driver.status(1)), (Status::Ambiguous, Status::Ambiguous));
}

#[test]
fn unscoped_voices_never_group() {
    let driver = alike(["", "connection:0"]);
    assert_eq!((driver.status(0), driver.status(1)), (Status::Ambiguous, Status::Ambiguous));
}
