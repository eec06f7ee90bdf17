//! Goal: a rollover that is heard of late, twice, or in the middle of work tells each name once and loses no rule.
//! Method: what lies between fence and word is played out; conversations follow one another before anybody speaks.

#![cfg(test)]

mod driver;

use std::collections::BTreeMap;

use driver::people::{is, not_me, segment, voice_in};
use driver::*;
use matcher_core::budget::Outcome;
use matcher_core::receipt::{Entry, Reach, Receipt, Ruling, Source, Subject};
use matcher_core::{Carried, CarryReason, Device, Donor, ExitReason, Gallery, Role, Speaker, Status};

use Answer::{Fails, Held, Vector};

const STREAM: &str = "stream:0";

fn on_stream(gallery: Gallery) -> Driver {
    let mut driver = Driver::with(matcher_core::Limits::default(), gallery, ring_of(60));
    driver.provider_restarts(STREAM);
    driver
}

/// Voice 0 is the owner at this distance; nobody else was heard.
fn owner(distance: f32) -> Driver {
    let mut driver = on_stream(owner_only());
    driver.script(0, [Vector(at(distance))]);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM)]);
    assert_eq!(driver.status(0), Status::User);
    driver
}

/// The rollover happens, this meanwhile, and then the conversation before answers.
fn carry(driver: &mut Driver, meanwhile: impl FnOnce(&mut Driver)) {
    let moving = driver.begin_rollover();
    meanwhile(driver);
    let word = driver.word_of(moving.from);
    driver.finish_rollover(moving, word);
}

#[test]
fn a_voice_that_was_heard_before_the_word_is_named_once() {
    let mut driver = owner(0.1);
    carry(&mut driver, |driver| driver.update(&[says(0, 50.0, 50.5).in_scope(STREAM).named("early")]));
    assert_eq!(driver.named()[1..], [name(0, "user", "early")], "with the word, for the segment that was heard");
    driver.update(&[says(0, 50.5, 51.0).in_scope(STREAM).named("late")]);
    assert_eq!(driver.named().len(), 2);
}

#[test]
fn a_voice_that_waits_when_the_word_names_it_is_not_examined() {
    let mut driver = owner(0.1);
    carry(&mut driver, |driver| driver.offer(&[says(0, 10.0, 15.0).in_scope(STREAM).named("waits")]));
    driver.drain();
    assert_eq!(driver.exited_segments(ExitReason::AlreadyMapped), ["waits"]);
    assert_eq!((driver.status(0), driver.queries.len()), (Status::User, 1));
}

#[test]
fn a_query_under_way_when_the_word_names_its_voice_adds_nothing() {
    let mut driver = owner(0.1);
    carry(&mut driver, |driver| {
        driver.script(0, [Held]);
        driver.update(&[says(0, 10.0, 15.0).in_scope(STREAM)]);
    });
    assert_eq!((driver.status(0), driver.evidence(0)), (Status::User, 5.0));
    driver.extract(0, SARAH);
    assert_eq!((driver.status(0), driver.evidence(0)), (Status::User, 5.0));
    assert_eq!(driver.exited(ExitReason::AlreadyMapped), 1);
    assert_eq!(driver.attempts(0), 1, "and it was spent here");
}

#[test]
fn a_query_of_the_conversation_before_holds_the_number_and_changes_nothing_here() {
    let mut driver = owner(0.1);
    driver.script(1, [Held]);
    driver.update(&[says(1, 10.0, 15.0).in_scope(STREAM)]);
    carry(&mut driver, |_| ());
    assert_eq!(driver.scheduler().in_work(LANE), [Speaker(1)]);
    driver.extract(0, OWNER);
    assert_eq!((driver.scheduler().in_work(LANE), driver.status(0)), (vec![], Status::User));
    assert_eq!(driver.exited(ExitReason::StaleGeneration), 1);
}

#[test]
fn an_owner_who_says_nothing_is_carried_through_every_rollover_with_what_was_spent() {
    let mut driver = on_stream(owner_only());
    driver.script(0, [Fails(Outcome::ExtractionFailed), Fails(Outcome::ExtractionFailed), Vector(OWNER)]);
    for _ in 0..3 {
        driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM)]);
    }
    for rollovers in 1..=3 {
        carry(&mut driver, |_| ());
        assert_eq!(driver.carried(), vec![(0, Carried::Automatic, CarryReason::Automatic); rollovers]);
        assert_eq!((driver.attempts(0), driver.named().len()), (3, 1));
    }
    driver.update(&[says(0, 50.0, 50.5).in_scope(STREAM).named("at last")]);
    assert_eq!(driver.named()[1..], [name(0, "user", "at last")]);
}

/// The owner at 0.40, and a voice at 0.55 that is nobody's: it stands a margin behind.
fn with_competitor() -> Driver {
    let person = print("p1", "Sarah", Role::Person, mirrored(0.60));
    let mut driver = on_stream(Gallery::new(vec![print("user", "User", Role::Owner, OWNER), person]));
    driver.script(0, [Vector(at(0.40))]);
    driver.script(1, [Vector(mirrored(0.55))]);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM), says(1, 10.0, 15.0).in_scope(STREAM)]);
    assert_eq!((driver.status(0), driver.status(1)), (Status::User, Status::NotUser));
    driver
}

#[test]
fn a_competitor_rejoins_a_second_time_and_still_counts() {
    let mut driver = with_competitor();
    carry(&mut driver, |driver| driver.enrol(owner_only()));
    carry(&mut driver, |_| ());
    assert_eq!(driver.carried().last(), Some(&(0, Carried::Automatic, CarryReason::Automatic)));
    driver.script(2, [Vector(at(0.48))]);
    driver.update(&[says(2, 20.0, 25.0).in_scope(STREAM)]);
    assert_eq!((driver.status(0), driver.status(2)), (Status::Ambiguous, Status::Ambiguous));
    driver.correct(voice_in(STREAM, 0), Subject::Voice, not_me());
    assert_eq!(driver.status(2), Status::Ambiguous, "0.55 is within a margin of 0.48");
    driver.correct(voice_in(STREAM, 1), Subject::Voice, not_me());
    assert_eq!(driver.status(2), Status::User, "until a person takes it out");
}

#[test]
fn a_competitor_whom_people_reject_before_the_word_is_not_brought() {
    for (conversation, expected) in [(None, Status::Ambiguous), (Some(0), Status::User), (Some(1), Status::User)] {
        let mut driver = with_competitor();
        carry(&mut driver, |driver| {
            driver.enrol(owner_only());
            if let Some(at) = conversation {
                driver.correct_in(at, voice_in(STREAM, 1), Subject::Voice, not_me());
            }
        });
        driver.correct(voice_in(STREAM, 0), Subject::Voice, not_me());
        driver.script(2, [Vector(at(0.46))]);
        driver.update(&[says(2, 20.0, 25.0).in_scope(STREAM)]);
        assert_eq!(driver.status(2), expected, "rejected in {conversation:?}");
    }
}

#[test]
fn a_competitors_fresh_speech_is_judged_without_its_old_clips() {
    let mut driver = with_competitor();
    carry(&mut driver, |driver| driver.enrol(owner_only()));
    driver.script(1, [Vector(OWNER)]);
    driver.update(&[says(1, 20.0, 25.0).in_scope(STREAM)]);
    assert_eq!((driver.status(0), driver.status(1)), (Status::Ambiguous, Status::User));
    assert!(driver.voice(1).unwrap().distance.unwrap().abs() < 1e-6);
}

#[test]
fn a_short_owner_who_lost_the_name_goes_on_as_a_silent_competitor() {
    let mut driver = on_stream(owner_only());
    driver.start_anew(Device::Fresh);
    driver.script(0, [Vector(at(0.3)), Vector(at(0.3))]);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM)]);
    let hint = driver.hint("home", 120.0).unwrap();
    driver.start_anew(Device::Reconnecting(Box::new(hint)));
    driver.hear_donor("home", Donor::Read(Receipt::default().into()));
    driver.update(&[says(0, 0.0, 2.0).in_scope(STREAM)]);
    driver.update(&[says(1, 10.0, 15.0).in_scope(STREAM)]);
    assert_eq!((driver.retracted().len(), driver.status(0), driver.status(1)), (1, Status::Ambiguous, Status::User));
    let moving = driver.begin_rollover();
    driver.hear_donor("home", Donor::Read(Receipt::default().into()));
    let word = driver.word_of(moving.from);
    driver.finish_rollover(moving, word);
    assert_eq!((driver.status(0), driver.status(1)), (Status::Pending, Status::User));
    driver.correct(voice_in(STREAM, 1), Subject::Voice, not_me());
    assert_eq!(driver.status(0), Status::Pending, "and has no name to come back to");
}

#[test]
fn a_ledger_that_filled_up_before_the_word_takes_no_more_voices() {
    let mut driver = on_stream(gallery());
    driver.by_default(Fails(Outcome::ExtractionFailed));
    driver.update(&[says(500, 0.0, 5.0).in_scope(STREAM)]);
    driver.correct(voice_in(STREAM, 500), Subject::Voice, is("p1", Role::Person));
    carry(&mut driver, |driver| {
        for numbers in [0..100, 100..128] {
            driver.update(&numbers.map(|speaker| says(speaker, 0.0, 5.0).in_scope(STREAM)).collect::<Vec<_>>());
        }
    });
    assert_eq!(driver.carried(), [(500, Carried::Manual, CarryReason::Manual)]);
    assert_eq!(driver.attempts(500), 0, "a voice that finds no room asks nothing anyway");
}

fn portable(receipt: &Receipt) -> Vec<(u32, String)> {
    let names = receipt.portable(&matcher_core::Scope::new(STREAM));
    names.into_iter().map(|(voice, named)| (voice.speaker.0, named.person.to_string())).collect()
}

// B7.99
#[test]
fn two_names_of_one_moment_carry_neither_and_a_newer_name_beats_a_rejection() {
    let entry = |generation, ruling| Entry { generation, ruling, source: Source::Here };
    let of_segment = |speaker, entry| matcher_core::receipt::SegmentEntry {
        voice: voice_in(STREAM, speaker),
        reach: Reach::Voice,
        entry,
    };
    for (second, expected) in [("p2", vec![]), ("p1", vec![(0, "p1".to_owned())])] {
        let voices = BTreeMap::from([(voice_in(STREAM, 0), entry(3, is("p1", Role::Person)))]);
        let conflict = of_segment(0, entry(3, is(second, Role::Person)));
        let segments = BTreeMap::from([(matcher_core::SegmentId::new("s"), conflict)]);
        let receipt = Receipt::restore(3, voices, segments).unwrap();
        assert_eq!(portable(&receipt), expected);
    }
    let mut driver = on_stream(gallery());
    driver.correct(voice_in(STREAM, 0), segment("s", Reach::Voice), not_me());
    driver.correct(voice_in(STREAM, 0), Subject::Voice, is("p1", Role::Person));
    driver.correct(voice_in(STREAM, 1), Subject::Voice, is("p1", Role::Person));
    driver.correct(voice_in(STREAM, 1), segment("t", Reach::Voice), not_me());
    assert_eq!(portable(driver.scheduler().receipt()), [(0, "p1".to_owned())]);
}

// B7.98
#[test]
fn a_name_for_one_segment_alone_is_never_carried() {
    let mut driver = owner(0.1);
    driver.correct(voice_in(STREAM, 3), segment("s", Reach::SegmentOnly), is("p1", Role::Person));
    carry(&mut driver, |_| ());
    assert_eq!(driver.scheduler().receipt().generation(), 0);
    assert_eq!(driver.carried(), [(0, Carried::Automatic, CarryReason::Automatic)]);
}

// B7.100, B7.101 as far as numbers go: which number a label gets is its allocator's business.
#[test]
fn a_carried_name_speaks_for_its_stream_alone_and_a_newer_one_beats_it() {
    let mut driver = on_stream(gallery());
    driver.update(&[says(0, 0.0, 0.5).in_scope(STREAM)]);
    driver.correct(voice_in(STREAM, 0), Subject::Voice, is("p1", Role::Person));
    carry(&mut driver, |_| ());
    driver.update(&[says(0, 10.0, 10.5).in_scope(STREAM), says(0, 20.0, 20.5).in_scope("stream:1")]);
    let people = |driver: &Driver| -> Vec<_> {
        let voices = driver.scheduler().voices(LANE).into_iter();
        voices.map(|voice| voice.identity.map(|identity| identity.person.to_string())).collect()
    };
    assert_eq!(people(&driver), [Some("p1".to_owned()), None]);
    driver.correct(voice_in(STREAM, 0), Subject::Voice, is("p2", Role::Person));
    assert_eq!(people(&driver), [Some("p2".to_owned()), None]);
    driver.correct(voice_in(STREAM, 0), Subject::Voice, Ruling::IsNobody);
    assert_eq!(people(&driver), [None, None]);
}

#[test]
fn a_carried_owner_reserves_the_owner_in_the_next_conversation() {
    let mut driver = on_stream(owner_only());
    driver.update(&[says(0, 0.0, 0.5).in_scope(STREAM)]);
    driver.correct(voice_in(STREAM, 0), Subject::Voice, is("user", Role::Owner));
    carry(&mut driver, |_| ());
    driver.update(&[says(1, 10.0, 15.0).in_scope(STREAM)]);
    assert_eq!((driver.person(1), driver.status(1)), (None, Status::Ambiguous));
    driver.update(&[says(0, 20.0, 20.5).in_scope(STREAM)]);
    assert_eq!(driver.person(0).as_deref(), Some("user"));
}
