//! Goal: a name that evidence gave outlives a rollover exactly when it is the owner's, on the stream that goes on, and
//! nobody and nothing speaks against it; what constrained it goes along and is never published.
//! Method: whole rollovers through the driver, with people, prints and providers that change between fence and word.

#![cfg(test)]

mod driver;

use driver::moves::Moving;
use driver::people::{is, not_me, voice_in};
use driver::*;
use matcher_core::budget::{Outcome, Refused};
use matcher_core::queue::Voice;
use matcher_core::receipt::Subject;
use matcher_core::{
    Cap, Carried, CarryReason, Event, ExitReason, Gallery, Limits, Origin, Role, Speaker, Status, Target,
};

use Answer::{Fails, Vector};

const STREAM: &str = "stream:0";

fn on_stream(gallery: Gallery) -> Driver {
    let mut driver = Driver::with(Limits::default(), gallery, ring_of(60));
    driver.provider_restarts(STREAM);
    driver
}

/// Voice 0 is the owner after twelve attempts, and no token is left.
fn exhausted_owner() -> Driver {
    let mut driver = on_stream(owner_only());
    for speaker in [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4] {
        driver.script(speaker, [Fails(Outcome::ExtractionFailed)]);
        driver.update(&[says(speaker, 0.0, 5.0).in_scope(STREAM)]);
    }
    driver.script(0, [Vector(at(0.1))]);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM)]);
    assert_eq!((driver.attempts(0), driver.tokens(), driver.status(0)), (12, 0.0, Status::User));
    driver
}

/// What was told of each named voice, with whom its name meant.
fn rolled_over(driver: &Driver) -> Vec<(u32, Carried, Target)> {
    let told = driver.events.iter().filter_map(|event| {
        let Event::RolledOver { speaker, carried, target, .. } = event else { return None };
        Some((speaker.0, *carried, *target))
    });
    told.collect()
}

/// How often anything was published of a voice.
fn told_of(driver: &Driver, speaker: u32) -> usize {
    let of = |event: &&Event| matches!(event, Event::Published { state, .. } if state.speaker == Speaker(speaker));
    driver.events.iter().filter(of).count()
}

// B8.108
#[test]
fn an_owner_who_goes_on_is_named_at_the_first_half_second_without_a_query() {
    let mut driver = exhausted_owner();
    let (asked, told) = (driver.queries.len(), told_of(&driver, 0));
    driver.roll_over_carrying();
    assert_eq!(rolled_over(&driver), [(0, Carried::Automatic, Target::Owner)]);
    assert_eq!(told_of(&driver, 0), told, "nothing is told of a voice that has not been heard here");
    driver.update(&[says(0, 50.0, 50.5).in_scope(STREAM).named("next")]);
    driver.update(&[says(0, 50.5, 51.0).in_scope(STREAM).named("one more")]);
    assert_eq!(driver.named()[1..], [name(0, "user", "next")]);
    assert_eq!((driver.attempts(0), driver.queries.len()), (12, asked));
    let covered = driver.scheduler().queue(LANE).unwrap().covered(Voice { speaker: Speaker(0), scope: 0 });
    assert_eq!(covered, Some(&spans(&[(0.0, 5.0)])), "what was examined is not examined again");
}

/// Something happens between the fence and the word of the conversation before.
type Meanwhile = fn(&mut Driver, &Moving);

fn restart(driver: &mut Driver, _: &Moving) {
    driver.provider_restarts("stream:1");
    driver.offer(&[says(7, 50.0, 50.5).in_scope("stream:1")]);
}

fn reject_before(driver: &mut Driver, moving: &Moving) {
    driver.correct_in(moving.from, voice_in(STREAM, 0), Subject::Voice, not_me());
}

fn reject_here(driver: &mut Driver, _: &Moving) {
    driver.correct(voice_in(STREAM, 0), Subject::Voice, not_me());
}

fn teach_again(driver: &mut Driver, _: &Moving) {
    driver.enrol(Gallery::new(vec![print("user", "User", Role::Owner, [0.99, 0.1])]));
}

fn enrol_a_twin(driver: &mut Driver, _: &Moving) {
    let owner = print("user", "User", Role::Owner, OWNER);
    driver.enrol(Gallery::new(vec![owner, print("p1", "Sarah", Role::Person, OWNER)]));
}

// B8.109
#[test]
fn an_owner_against_whom_something_speaks_is_not_carried_and_begins_anew() {
    let cases: [(Meanwhile, CarryReason); 5] = [
        (restart, CarryReason::ScopeChanged),
        (reject_before, CarryReason::ManualOverride),
        (reject_here, CarryReason::ManualOverride),
        (teach_again, CarryReason::ProfileChanged),
        (enrol_a_twin, CarryReason::VoiceprintRejected),
    ];
    for (meanwhile, reason) in cases {
        let mut driver = exhausted_owner();
        let moving = driver.begin_rollover();
        meanwhile(&mut driver, &moving);
        let word = driver.word_of(moving.from);
        driver.finish_rollover(moving, word);
        driver.update(&[says(0, 50.0, 50.5).in_scope(STREAM)]);
        assert_eq!(driver.carried(), [(0, Carried::Nothing, reason)]);
        assert_eq!(rolled_over(&driver), [(0, Carried::Nothing, Target::Owner)]);
        assert_eq!((driver.person(0), driver.named().len(), driver.attempts(0)), (None, 1, 0), "{reason:?}");
    }
}

// B8.111
#[test]
fn a_second_claim_during_the_reading_takes_the_name_from_both() {
    let mut driver = on_stream(owner_only());
    driver.script(0, [Vector(at(0.53))]);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM)]);
    let moving = driver.begin_rollover();
    driver.script(1, [Vector(mirrored(0.54))]);
    driver.update(&[says(1, 10.0, 15.0).in_scope(STREAM).named("shown")]);
    assert_eq!(driver.person(1).as_deref(), Some("user"), "alone, it is the owner");
    let word = driver.word_of(moving.from);
    driver.finish_rollover(moving, word);
    assert_eq!((driver.status(0), driver.status(1)), (Status::Ambiguous, Status::Ambiguous));
    assert_eq!(driver.retracted(), [(1, "shown".to_owned())]);
    assert_eq!(driver.carried(), [(0, Carried::Nothing, CarryReason::OwnerContended)]);
}

/// The owner at a distance of 0.2, carried and shown, before anybody else is enrolled.
fn early_owner() -> Driver {
    let mut driver = on_stream(owner_only());
    driver.script(0, [Vector(at(0.2))]);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM)]);
    driver.roll_over_carrying();
    driver.update(&[says(0, 50.0, 50.5).in_scope(STREAM).named("shown")]);
    assert_eq!(driver.person(0).as_deref(), Some("user"));
    driver
}

/// A person at this distance from what [`early_owner`] says, on the side of the owner's mirror.
fn with_peer(distance: f32) -> Gallery {
    let ([x, y], [cosine, sine]) = (at(0.2), at(distance));
    let peer = [x * cosine - y * sine, y * cosine + x * sine];
    let owner = print("user", "User", Role::Owner, OWNER);
    Gallery::new(vec![owner, print("p1", "Sarah", Role::Person, peer)])
}

// B8.112
#[test]
fn a_person_who_is_enrolled_later_corrects_a_carried_owner() {
    let mut driver = early_owner();
    driver.enrol(with_peer(0.05));
    assert_eq!((driver.person(0).as_deref(), driver.status(0)), (Some("p1"), Status::NotUser));
    assert_eq!(driver.retracted(), [(0, "shown".to_owned())]);

    let mut driver = early_owner();
    driver.enrol(with_peer(0.1626));
    assert_eq!((driver.person(0), driver.status(0)), (None, Status::NoMatch), "and a close one leaves nobody");
    assert_eq!(driver.retracted(), [(0, "shown".to_owned())]);
}

/// Voice 0 is the owner at 0.53 and voice 1, nearer to the owner, is Sarah; then only the owner is enrolled.
fn without_sarah() -> Driver {
    let owner = print("user", "User", Role::Owner, OWNER);
    let mut driver = on_stream(Gallery::new(vec![owner, print("p1", "Sarah", Role::Person, mirrored(0.4))]));
    driver.script(0, [Vector(at(0.53))]);
    driver.script(1, [Vector(mirrored(0.4))]);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM), says(1, 10.0, 15.0).in_scope(STREAM)]);
    assert_eq!((driver.person(0).as_deref(), driver.person(1).as_deref()), (Some("user"), Some("p1")));
    let moving = driver.begin_rollover();
    driver.enrol(owner_only());
    let word = driver.word_of(moving.from);
    driver.finish_rollover(moving, word);
    driver
}

// B8.113
#[test]
fn a_peer_without_a_name_competes_in_silence_until_five_fresh_seconds() {
    let mut driver = without_sarah();
    let carried = [(1, CarryReason::NonOwner), (0, CarryReason::OwnerContended)];
    assert_eq!(driver.carried(), carried.map(|(speaker, reason)| (speaker, Carried::Nothing, reason)));
    assert_eq!((driver.person(0), driver.status(0)), (None, Status::Ambiguous));
    let before = told_of(&driver, 1);
    driver.script(1, [Vector(mirrored(1.2)), Vector(mirrored(1.2))]);
    driver.update(&[says(1, 20.0, 23.0).in_scope(STREAM)]);
    assert_eq!((told_of(&driver, 1), driver.status(1)), (before, Status::Pending));
    assert!((driver.evidence(1) - 3.0).abs() < 1e-9, "its old clips are gone");
    assert_eq!(driver.status(0), Status::Ambiguous, "and it still stands against the owner");
    driver.update(&[says(1, 30.0, 32.0).in_scope(STREAM)]);
    assert_eq!((told_of(&driver, 1), driver.status(1)), (before + 1, Status::NoMatch));
    assert_eq!((driver.status(0), driver.person(0).as_deref()), (Status::User, Some("user")), "which frees the owner");
}

// B8.114
#[test]
fn a_clear_and_a_rollover_that_carries_nothing_count_nothing() {
    let mut driver = exhausted_owner();
    driver.clear();
    driver.roll_over();
    assert_eq!(driver.carried(), []);
}

// B4.57
#[test]
fn only_a_carried_voice_keeps_what_it_has_spent() {
    let mut driver = on_stream(gallery());
    driver.by_default(Fails(Outcome::ExtractionFailed));
    for speaker in [0, 1] {
        for _ in 0..12 {
            driver.pass(15.0);
            driver.update(&[says(speaker, 0.0, 5.0).in_scope(STREAM)]);
        }
    }
    assert_eq!((driver.attempts(0), driver.attempts(1)), (12, 12));
    driver.correct(voice_in(STREAM, 0), Subject::Voice, is("p1", Role::Person));
    driver.roll_over_carrying();
    assert_eq!((driver.attempts(0), driver.attempts(1)), (12, 0));
    assert_eq!(driver.carried(), [(0, Carried::Manual, CarryReason::Manual)]);
    let (generation, now) = (driver.lane().generation, driver.now);
    let refused = driver.lanes.get_mut(&LANE).unwrap().budget.reserve(generation, Speaker(0), now);
    assert!(matches!(refused, Err(Refused::Denied(denied)) if denied.cap == Cap::Voice), "{refused:?}");
}

// B7.96
#[test]
fn a_carried_name_without_a_print_stands_against_a_perfect_match_of_somebody_else() {
    let mut driver = on_stream(gallery());
    driver.update(&[says(0, 0.0, 0.5).in_scope(STREAM)]);
    driver.correct(voice_in(STREAM, 0), Subject::Voice, is("gone", Role::Person));
    driver.roll_over_carrying();
    driver.by_default(Vector(SARAH));
    driver.update(&[says(0, 10.0, 20.0).in_scope(STREAM)]);
    let identity = driver.voice(0).unwrap().identity.unwrap();
    assert_eq!((identity.person.as_str(), &*identity.name, identity.origin), ("gone", "gone", Origin::Carried));
    assert_eq!((driver.queries.len(), driver.exited(ExitReason::ManualDecision)), (0, 1));
}
