//! Goal: a pinned person whom the evidence nearly names is suggested once, is never a name, and is taken back when it does
//! not hold any more.
//! Method: vectors by their distance from Sarah, who is pinned, in a policy that suggests; the owner is out of reach.

#![cfg(test)]

mod driver;

use driver::people::{is, not_me, voice_in};
use driver::*;
use matcher_core::receipt::{Rejection, Ruling, Subject};
use matcher_core::{
    Device, Event, ExitReason, Gallery, Generation, Join, Limits, PersonId, Policy, Role, Scheduler, Status,
    Suggestions,
};

use Answer::Vector;

const ON: Suggestions = Suggestions::On { bound: 0.70, margin: 0.06 };

/// A unit vector at this cosine distance from Sarah, turned away from the owner.
fn off_sarah(distance: f32) -> [f32; 2] {
    let [cosine, sine] = at(distance);
    [-sine, cosine]
}

fn people(is_pinned: bool) -> Gallery {
    let mut sarah = print("p1", "Sarah", Role::Person, SARAH);
    sarah.is_pinned = is_pinned;
    Gallery::new(vec![print("user", "User", Role::Owner, OWNER), sarah])
}

fn suggesting(suggestions: Suggestions, gallery: &Gallery) -> Driver {
    let mut driver = Driver::with(Limits::default(), gallery.clone(), ring_of(60));
    driver.conversations[0] = Scheduler::new(Limits::default(), Policy { suggestions, ..policy() });
    let join = Join::new(Generation(1), rate(), gallery.clone());
    driver.conversations[0].handle_joined(LANE, join).unwrap();
    driver
}

/// What voice 0 says in six seconds, and then in another six each.
fn hears(driver: &mut Driver, distances: &[f32]) {
    driver.script(0, distances.iter().map(|distance| Vector(off_sarah(*distance))));
    for start in [0.0, 10.0, 20.0, 30.0].into_iter().take(distances.len()) {
        driver.update(&[says(0, start, start + 6.0)]);
    }
}

/// Every suggestion: whom, how near, and whether it was taken back.
fn suggested(driver: &Driver) -> Vec<(String, u8, bool)> {
    let suggested = driver.events.iter().filter_map(|event| {
        let Event::Suggested { person, level, is_retracted, .. } = event else { return None };
        Some((person.to_string(), *level, *is_retracted))
    });
    suggested.collect()
}

fn sarah(level: u8, is_retracted: bool) -> (String, u8, bool) {
    ("p1".to_owned(), level, is_retracted)
}

// B11.136
#[test]
fn a_pinned_person_who_is_nearly_named_is_suggested_once_and_is_no_name() {
    let mut driver = suggesting(ON, &people(true));
    hears(&mut driver, &[0.67]);
    assert_eq!(suggested(&driver), [sarah(2, false)]);
    assert_eq!((driver.person(0), driver.status(0), driver.named().len()), (None, Status::NoMatch, 0));
    driver.script(0, [Vector(off_sarah(0.67))]);
    driver.update(&[says(0, 30.0, 36.0)]);
    assert_eq!(
        (suggested(&driver).len(), driver.queries.len()),
        (1, 2),
        "the next clip says it again, and it is known"
    );
}

// B11.136
#[test]
fn a_suggestion_is_taken_back_when_later_speech_is_far() {
    let mut driver = suggesting(ON, &people(true));
    hears(&mut driver, &[0.67, 1.5]);
    assert_eq!(suggested(&driver), [sarah(2, false), sarah(2, true)]);
    assert_eq!(driver.retracted(), [], "there was no name to take back");
}

// B11.136
#[test]
fn nobody_is_suggested_who_is_not_pinned_and_nobody_where_suggestions_are_off() {
    for (suggestions, is_pinned) in [(ON, false), (Suggestions::Off, true)] {
        let mut driver = suggesting(suggestions, &people(is_pinned));
        hears(&mut driver, &[0.67]);
        assert_eq!((suggested(&driver), driver.status(0)), (vec![], Status::NoMatch));
    }
}

// B11.136
#[test]
fn a_person_who_is_another_voice_is_not_suggested() {
    let mut driver = suggesting(ON, &people(true));
    driver.script(1, [Vector(SARAH)]);
    driver.update(&[says(1, 50.0, 56.0)]);
    hears(&mut driver, &[0.67]);
    assert_eq!((driver.person(1).as_deref(), suggested(&driver)), (Some("p1"), vec![]));

    // The other way about: the name comes later, from evidence or from a person.
    for is_labelled in [false, true] {
        let mut driver = suggesting(ON, &people(true));
        hears(&mut driver, &[0.67]);
        if is_labelled {
            driver.update(&[says(1, 50.0, 50.5)]);
            driver.correct(voice_in("", 1), Subject::Voice, is("p1", Role::Person));
        } else {
            driver.script(1, [Vector(SARAH)]);
            driver.update(&[says(1, 50.0, 56.0)]);
        }
        assert_eq!(suggested(&driver), [sarah(2, false), sarah(2, true)]);
        driver.correct(voice_in("", 1), Subject::Voice, not_me());
        assert_eq!(suggested(&driver).last(), Some(&sarah(2, false)), "and she is free again");
    }
}

fn one(level: Option<u8>) -> Vec<(String, u8, bool)> {
    level.map(|level| sarah(level, false)).into_iter().collect()
}

// B11.136
#[test]
fn the_two_bands_of_a_suggestion_end_where_they_say() {
    // Alone in the gallery: from the threshold up to the bound.
    let sarah_alone = || Gallery::new(people(true).iter().filter(|print| print.is_pinned).cloned().collect());
    for (distance, level) in [(0.64, None), (0.6501, Some(2)), (0.6999, Some(2)), (0.7001, None)] {
        let mut driver = suggesting(ON, &sarah_alone());
        hears(&mut driver, &[distance]);
        assert_eq!(suggested(&driver), one(level), "{distance}");
    }
    // Below the threshold, with a runner-up almost as near.
    for (gap, level) in [(0.05, None), (0.07, Some(3)), (0.09, Some(3)), (0.11, None)] {
        let mut near = print("p1", "Sarah", Role::Person, at(0.40));
        near.is_pinned = true;
        let prints = vec![near, print("p2", "Tom", Role::Person, mirrored(0.40 + gap))];
        let mut driver = suggesting(ON, &Gallery::new(prints));
        driver.script(0, [Vector(OWNER)]);
        driver.update(&[says(0, 0.0, 6.0)]);
        assert_eq!(suggested(&driver), one(level), "gap {gap}");
    }
}

#[test]
fn the_owner_is_never_suggested() {
    let mut owner = print("user", "User", Role::Owner, SARAH);
    owner.is_pinned = true;
    let mut driver = suggesting(ON, &Gallery::new(vec![owner]));
    hears(&mut driver, &[0.72, 0.67]);
    assert_eq!((suggested(&driver), driver.person(0)), (vec![], None));

    let mut owner = print("user", "User", Role::Owner, at(0.40));
    owner.is_pinned = true;
    let mut driver = suggesting(ON, &Gallery::new(vec![owner, print("p2", "Tom", Role::Person, mirrored(0.48))]));
    driver.script(0, [Vector(OWNER)]);
    driver.update(&[says(0, 0.0, 6.0)]);
    assert_eq!((suggested(&driver), driver.status(0)), (vec![], Status::NoMatch), "nor at a close call");
}

// B7.89
#[test]
fn a_rejected_voice_loses_its_suggestion_and_says_nothing_more() {
    for ruling in [not_me(), Ruling::Not(Rejection::NotPerson(PersonId::new("p1"))), Ruling::IsNobody] {
        let mut driver = suggesting(ON, &people(true));
        hears(&mut driver, &[0.67]);
        driver.correct(voice_in("", 0), Subject::Voice, ruling);
        let before = driver.events.len();
        assert_eq!(suggested(&driver), [sarah(2, false), sarah(2, true)]);
        driver.script(0, [Vector(SARAH)]);
        driver.update(&[says(0, 30.0, 40.0)]);
        assert_eq!((driver.person(0), driver.queries.len()), (None, 1));
        let told = &driver.events[before..];
        assert!(
            matches!(told, [Event::Exited { reason: ExitReason::Rejected | ExitReason::ManualDecision, .. }]),
            "{told:?}"
        );
    }
}

#[test]
fn a_name_takes_the_suggestions_place() {
    let mut driver = suggesting(ON, &people(true));
    hears(&mut driver, &[0.67, 0.2]);
    assert_eq!(driver.person(0).as_deref(), Some("p1"));
    assert_eq!(suggested(&driver), [sarah(2, false), sarah(2, true)]);
}

#[test]
fn a_suggestion_changes_with_the_people() {
    let mut driver = suggesting(ON, &people(true));
    hears(&mut driver, &[0.67]);
    driver.enrol(people(false));
    assert_eq!(suggested(&driver), [sarah(2, false), sarah(2, true)]);
    driver.enrol(people(true));
    assert_eq!(suggested(&driver).last(), Some(&sarah(2, false)), "retained evidence needs no query");

    let mut tom = print("p2", "Tom", Role::Person, SARAH);
    tom.is_pinned = true;
    driver.enrol(Gallery::new(vec![tom]));
    let last = &suggested(&driver)[3..];
    assert_eq!(last, [sarah(2, true), ("p2".to_owned(), 2, false)], "the old one goes before the new one comes");
    assert_eq!(driver.queries.len(), 1);
}

#[test]
fn an_unheard_voice_is_suggested_nobody() {
    let mut driver = suggesting(ON, &people(true));
    hears(&mut driver, &[0.67]);
    driver.resume(ring_of(60), Device::Unknown);
    driver.enrol(people(true));
    assert_eq!(suggested(&driver).len(), 1);
}

// B11.137, as far as it is the core's: how the switch is written is its configuration's business.
#[test]
fn levels_are_three_steps_and_none() {
    for (distance, level) in
        [(0.64, 3), (0.65, 2), (0.70, 2), (0.75, 1), (0.80, 1), (0.85, 0), (0.90, 0), (f64::NAN, 0)]
    {
        assert_eq!(policy().level(distance), level, "{distance}");
    }
}
