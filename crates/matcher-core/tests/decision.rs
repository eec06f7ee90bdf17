//! Goal: one voice's evidence becomes the right verdict at, below and above every bound.
//! Method: distances as literals into the policy; vectors only where the mean itself is under test.

#![cfg(test)]

mod driver;

use driver::{Driver, at, owner_only, policy, print, says};
use matcher_core::policy::{Candidate, Decision, Verdict};
use matcher_core::{BadVector, Centroid, Embedding, Gallery, Policy, Role, Status};

const USER: (Role, f64) = (Role::Owner, 0.0);

fn user(distance: f64) -> (Role, f64) {
    (Role::Owner, distance)
}

fn peer(distance: f64) -> (Role, f64) {
    (Role::Person, distance)
}

fn decide_by(policy: &Policy, distances: &[(Role, f64)]) -> Decision {
    let candidate =
        |(index, (role, distance)): (usize, &(Role, f64))| Candidate { index, role: *role, distance: *distance };
    policy.decide(&distances.iter().enumerate().map(candidate).collect::<Vec<_>>())
}

fn decide(distances: &[(Role, f64)]) -> Decision {
    decide_by(&policy(), distances)
}

/// The position that is accepted, the best position, and the runner-up.
fn outcome(decision: &Decision) -> (Option<usize>, Option<usize>, f64) {
    let best = decision.best.map(|best| best.index);
    (best.filter(|_| decision.verdict == Verdict::Accepted), best, decision.runner_up)
}

fn is_near_miss(distances: &[(Role, f64)]) -> bool {
    policy().is_near_miss(&decide(distances))
}

fn embedding(values: &[f32]) -> Embedding {
    Embedding::new(values).unwrap()
}

fn mean(vectors: &[&[f32]]) -> Vec<f64> {
    let embeddings: Vec<Embedding> = vectors.iter().map(|values| embedding(values)).collect();
    Centroid::of(&embeddings).unwrap().values().to_vec()
}

fn is_close(found: &[f64], expected: &[f64]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-7)
}

// B1.1
#[test]
fn a_lone_owner_below_the_threshold_is_accepted_with_an_infinite_runner_up() {
    assert_eq!(outcome(&decide(&[user(0.53)])), (Some(0), Some(0), f64::INFINITY));
}

// B1.2
#[test]
fn a_far_owner_is_the_best_and_still_nobody() {
    let decision = decide(&[user(0.93)]);
    assert_eq!(outcome(&decision), (None, Some(0), f64::INFINITY));
    assert_eq!(decision.best.map(|best| best.distance), Some(0.93));
}

// B1.3
#[test]
fn the_threshold_itself_is_not_accepted() {
    assert_eq!(decide(&[user(0.65)]).verdict, Verdict::Nobody);
}

// B1.4
#[test]
fn the_nearest_of_three_is_accepted_against_the_second() {
    assert_eq!(outcome(&decide(&[user(0.60), peer(0.40), peer(0.90)])), (Some(1), Some(1), 0.60));
}

// B1.5
#[test]
fn a_nearest_owner_without_the_margin_is_nobody() {
    assert_eq!(outcome(&decide(&[user(0.43), peer(0.48)])), (None, Some(0), 0.48));
}

// B1.6
#[test]
fn the_margin_separates_nobody_from_the_owner() {
    assert_eq!(decide(&[user(0.60), peer(0.69)]).verdict, Verdict::Nobody);
    assert_eq!(outcome(&decide(&[user(0.60), peer(0.71)])).0, Some(0));
    assert_eq!(decide(&[user(0.65 - 0.10), peer(0.65 - 0.001)]).verdict, Verdict::Nobody);
}

// B1.7
#[test]
fn a_distance_that_is_not_a_number_is_skipped() {
    assert_eq!(outcome(&decide(&[user(f64::NAN)])), (None, None, f64::INFINITY));
    assert_eq!(outcome(&decide(&[user(f64::NAN), peer(0.3)])), (Some(1), Some(1), f64::INFINITY));
}

// B1.8
#[test]
fn an_empty_gallery_has_no_best_and_names_nobody() {
    assert_eq!(outcome(&decide(&[])), (None, None, f64::INFINITY));
}

// B1.9
#[test]
fn a_tie_without_a_margin_goes_to_the_first_enrolled() {
    let loose = Policy { margin: 0.0, ..policy() };
    assert_eq!(outcome(&decide_by(&loose, &[peer(0.2), peer(0.2)])), (Some(0), Some(0), 0.2));
}

// B1.10
#[test]
fn threshold_and_margin_are_the_models_own() {
    let strict = Policy { threshold: 0.45, ..policy() };
    assert_eq!(decide_by(&strict, &[user(0.5)]).verdict, Verdict::Nobody);
    let loose = Policy { margin: 0.0, ..policy() };
    assert_eq!(outcome(&decide_by(&loose, &[peer(0.35), peer(0.3)])).0, Some(1));
}

// B1.11
#[test]
fn a_near_miss_lies_from_the_threshold_up_to_its_bound() {
    let cases = [
        (0.65_f64.next_down(), false),
        (0.65, true),
        (0.70_f64.next_down(), true),
        (0.70, false),
        (0.737, false),
        (f64::INFINITY, false),
        (f64::NAN, false),
    ];
    for (distance, expected) in cases {
        assert_eq!(is_near_miss(&[user(distance)]), expected, "{distance}");
    }
}

// B1.12
#[test]
fn a_near_miss_needs_the_margin_by_plain_subtraction() {
    assert!(!is_near_miss(&[user(0.65), peer(0.75)]), "0.75 - 0.65 lies below 0.10");
    assert!(is_near_miss(&[user(0.65), peer(0.75_f64.next_up())]));
}

// B1.13
#[test]
fn an_accept_a_peer_nobody_and_a_crowd_are_no_near_misses() {
    for distances in [&[user(0.5)][..], &[peer(0.66)], &[peer(0.66), user(0.9)], &[], &[user(0.67), peer(0.70)]] {
        assert!(!is_near_miss(distances), "{distances:?}");
    }
}

// B1.13
#[test]
fn a_contended_voice_is_ambiguous_and_no_near_miss() {
    let mut driver = Driver::owner_only();
    driver.script(0, [driver::Answer::Vector(at(0.631))]);
    driver.script(1, [driver::Answer::Vector(driver::mirrored(0.645))]);
    driver.update(&[says(0, 0.0, 6.0), says(1, 10.0, 16.0)]);
    assert_eq!((driver.status(0), driver.status(1)), (Status::Ambiguous, Status::Ambiguous));
}

// B1.14
#[test]
fn the_mean_of_two_right_angles_is_a_unit_vector_of_equal_parts() {
    let half = 0.5_f64.sqrt();
    assert!(is_close(&mean(&[&[1.0, 0.0], &[0.0, 1.0]]), &[half, half]));
}

// B1.15
#[test]
fn a_mean_of_one_is_that_one_with_length_one() {
    assert!(is_close(&mean(&[&[3.0, 4.0]]), &[0.6, 0.8]));
}

// B1.16
#[test]
fn a_flat_vector_of_four_is_one_voiceprint_of_four_values() {
    let flat = embedding(&[0.5, 0.5, 0.5, 0.5]);
    assert_eq!(flat.size(), 4);
    assert!(is_close(&mean(&[flat.values()]), &[0.5; 4]));
}

// B1.17
#[test]
fn opposite_vectors_have_a_zero_mean_and_its_distance_names_nobody() {
    let a = embedding(&[0.6, 0.8]);
    let centroid = Centroid::of(&[a.clone(), embedding(&[-0.6, -0.8])]).unwrap();
    assert_eq!(centroid.values(), [0.0, 0.0], "zero, and not NaN");
    assert_eq!(centroid.to_embedding(), None);
    let decision = policy().decide(&owner_only().distances(&centroid));
    assert_eq!((decision.best, decision.verdict), (None, Verdict::Nobody));
}

#[test]
fn a_print_of_another_size_is_ignored_and_the_others_still_match() {
    let old = print("p1", "Sarah", Role::Person, [1.0, 0.0]);
    let flat = matcher_core::Print { embedding: embedding(&[1.0, 0.0, 0.0]), ..old };
    let gallery = Gallery::new(vec![flat, print("user", "User", USER.0, [1.0, 0.0])]);
    let centroid = Centroid::of(&[embedding(&[1.0, 0.0])]).unwrap();
    let distances = gallery.distances(&centroid);
    assert_eq!(distances.iter().map(|candidate| candidate.index).collect::<Vec<_>>(), [1]);
    assert_eq!(policy().decide(&distances).verdict, Verdict::Accepted);
}

#[test]
fn what_is_not_a_voiceprint_is_refused_with_its_reason() {
    let cases: [(&[f32], BadVector); 5] = [
        (&[], BadVector::Empty),
        (&[f32::NAN, 1.0], BadVector::NotFinite),
        (&[f32::INFINITY, 1.0], BadVector::NotFinite),
        (&[0.0, 0.0], BadVector::ZeroNorm),
        (&[-0.0, 0.0], BadVector::ZeroNorm),
    ];
    for (values, reason) in cases {
        assert_eq!(Embedding::new(values), Err(reason), "{values:?}");
    }
    assert_eq!(Embedding::of_size(&[1.0], 2), Err(BadVector::WrongSize { expected: 2, found: 1 }));
}
