//! Goal: a rollover says of every named voice once what became of its name, and why.
//! Method: one short story for each reason; each ends with exactly one word about voice 0.

#![cfg(test)]

mod driver;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use driver::people::{is, not_me, segment, voice_in};
use driver::*;
use matcher_core::receipt::{Reach, Receipt, Ruling, Subject};
use matcher_core::{Carried, CarryReason, Device, Donor, Gallery, Generation, Limits, Role, Status};

use Answer::Vector;
use CarryReason as Why;

const STREAM: &str = "stream:0";

/// Voice 0 on the stream that goes on, named by five seconds of evidence.
fn named(vector: [f32; 2]) -> Driver {
    named_within(Limits::default(), vector)
}

fn named_within(limits: Limits, vector: [f32; 2]) -> Driver {
    let mut driver = Driver::with(limits, gallery(), ring_of(60));
    driver.provider_restarts(STREAM);
    driver.script(0, [Vector(vector)]);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM)]);
    assert!(driver.person(0).is_some());
    driver
}

/// Voice `speaker` on the stream that goes on, named by a person at its first word.
fn labelled(speaker: u32) -> Driver {
    let mut driver = Driver::new();
    driver.provider_restarts(STREAM);
    driver.update(&[says(speaker, 0.0, 0.5).in_scope(STREAM)]);
    driver.correct(voice_in(STREAM, speaker), Subject::Voice, is("p1", Role::Person));
    driver
}

/// Something happens between the fence and the word of the conversation before, which then comes.
fn carry(mut driver: Driver, meanwhile: impl FnOnce(&mut Driver, usize)) -> Driver {
    let moving = driver.begin_rollover();
    let from = moving.from;
    meanwhile(&mut driver, from);
    let word = driver.word_of(from);
    driver.finish_rollover(moving, word);
    driver
}

/// The conversation before answers this, or nothing.
fn answer(mut driver: Driver, word: Donor) -> Driver {
    let moving = driver.begin_rollover();
    driver.finish_rollover(moving, word);
    driver
}

fn expect(driver: &Driver, reason: Why) {
    let carried = if reason == Why::Manual {
        Carried::Manual
    } else if reason == Why::Automatic {
        Carried::Automatic
    } else {
        Carried::Nothing
    };
    assert_eq!(driver.carried(), [(0, carried, reason)]);
    let is_named = driver.voice(0).is_some_and(|voice| voice.identity.is_some());
    assert_eq!(is_named, reason == Why::Automatic, "{reason:?}: before it is heard, only evidence gives a name");
}

// B8.110, and every other test of this file.
#[test]
fn the_owner_is_carried_and_nobody_else_is_by_evidence() {
    expect(&carry(named(OWNER), |_, _| ()), Why::Automatic);
    expect(&carry(named(SARAH), |_, _| ()), Why::NonOwner);
}

#[test]
fn a_name_that_people_gave_is_carried_with_its_stream_alone() {
    expect(&carry(labelled(0), |_, _| ()), Why::Manual);
    expect(&answer(labelled(0), Donor::Unavailable), Why::ManualNotCopied);
    let mut restarted = labelled(0);
    restarted.provider_restarts("stream:1");
    expect(&carry(restarted, |_, _| ()), Why::ManualNotCopied);
}

#[test]
fn the_number_of_the_assistants_own_questions_is_never_carried() {
    let driver = carry(labelled(99), |_, _| ());
    assert_eq!(driver.carried(), [(99, Carried::Nothing, Why::ManualNotCopied)]);
}

#[test]
fn a_name_that_people_gave_anew_in_the_next_conversation_is_not_a_carried_one() {
    let driver = carry(labelled(0), |driver, _| {
        driver.correct(voice_in(STREAM, 0), Subject::Voice, is("p2", Role::Person));
    });
    expect(&driver, Why::ManualNotCopied);
}

#[test]
fn a_segments_name_speaks_for_a_voice_that_evidence_named_before() {
    let mut driver = named(OWNER);
    driver.correct(voice_in(STREAM, 0), segment("0@0", Reach::Voice), is("p1", Role::Person));
    let driver = carry(driver, |_, _| ());
    assert_eq!(driver.carried(), [(0, Carried::Manual, Why::Manual)]);
}

#[test]
fn an_owner_of_no_stream_is_not_carried() {
    let mut driver = Driver::new();
    driver.update(&[says(0, 0.0, 5.0)]);
    expect(&carry(driver, |_, _| ()), Why::NoScope);
}

#[test]
fn without_the_word_of_the_conversation_before_no_owner_is_carried() {
    expect(&answer(named(OWNER), Donor::Unavailable), Why::DonorUnavailable);
    expect(&answer(named(OWNER), Donor::Deleted), Why::DonorIneligible);
}

#[test]
fn an_owner_of_another_stream_than_the_one_that_goes_on_is_not_carried() {
    let mut restarted = named(OWNER);
    restarted.provider_restarts("stream:1");
    expect(&carry(restarted, |_, _| ()), Why::ScopeChanged);
    let restarts_late = |driver: &mut Driver, _| {
        driver.provider_restarts("stream:1");
        driver.offer(&[says(7, 50.0, 50.5).in_scope("stream:1")]);
    };
    expect(&carry(named(OWNER), restarts_late), Why::ScopeChanged);
}

#[test]
fn a_late_word_of_the_old_stream_does_not_stop_the_new_one() {
    let late = |driver: &mut Driver, _| driver.offer(&[says(7, 50.0, 50.5).in_scope("stream:of old")]);
    expect(&carry(named(OWNER), late), Why::Automatic);
    let stale = |driver: &mut Driver, _| {
        driver.provider_restarts("stream:of old");
        driver.offer_to(LANE, Generation(1), &[says(7, 50.0, 50.5).in_scope("stream:of old")]);
        driver.provider_restarts(STREAM);
    };
    expect(&carry(named(OWNER), stale), Why::Automatic);
}

#[test]
fn what_people_decide_before_the_word_comes_overrides_the_evidence() {
    let me = || is("user", Role::Owner);
    expect(
        &carry(named(OWNER), |driver, from| {
            driver.correct_in(from, voice_in(STREAM, 0), Subject::Voice, not_me());
        }),
        Why::ManualOverride,
    );
    expect(
        &carry(named(OWNER), |driver, from| {
            driver.correct_in(from, voice_in(STREAM, 5), segment("elsewhere", Reach::SegmentOnly), me());
        }),
        Why::ManualOverride,
    );
    expect(
        &carry(named(OWNER), |driver, _| driver.correct(voice_in(STREAM, 0), Subject::Voice, not_me())),
        Why::ManualOverride,
    );
    expect(
        &carry(named(OWNER), |driver, _| {
            driver.correct(voice_in(STREAM, 5), segment("elsewhere", Reach::SegmentOnly), me());
        }),
        Why::ManualOverride,
    );
    expect(
        &carry(named(OWNER), |driver, _| driver.correct(voice_in(STREAM, 0), Subject::Voice, Ruling::IsNobody)),
        Why::ManualOverride,
    );
}

#[test]
fn an_owner_without_evidence_is_not_carried() {
    let mut driver = Driver::new();
    driver.provider_restarts(STREAM);
    driver.update(&[says(0, 0.0, 0.5).in_scope(STREAM)]);
    driver.correct(voice_in(STREAM, 0), Subject::Voice, is("user", Role::Owner));
    // A store that lost the decision, and not the name.
    driver.hear_receipt(0, Receipt::restore(2, BTreeMap::new(), BTreeMap::new()).unwrap());
    expect(&carry(driver, |_, _| ()), Why::NoEvidence);
}

#[test]
fn a_word_for_a_generation_that_is_over_restores_nothing() {
    let mut driver = named(OWNER);
    let first = driver.begin_rollover();
    let second = driver.begin_rollover();
    let word = driver.word_of(first.from);
    driver.finish_rollover(first, word);
    expect(&driver, Why::StaleGeneration);
    assert_eq!((driver.scheduler().voices(LANE), driver.attempts(0)), (vec![], 0));
    let word = driver.word_of(second.from);
    driver.finish_rollover(second, word);
    assert_eq!(driver.carried().len(), 1, "the conversation between had not heard it");
}

#[test]
fn an_owner_whose_print_is_gone_or_another_is_not_carried() {
    expect(&carry(named(OWNER), |driver, _| driver.enrol(sarah_only())), Why::ProfileUnavailable);
    let nearly = Gallery::new(vec![print("user", "User", Role::Owner, [1.0, 1e-6])]);
    expect(&carry(named(OWNER), |driver, _| driver.enrol(nearly)), Why::ProfileChanged);
}

#[test]
fn a_voice_that_was_examined_here_already_keeps_what_it_has_here() {
    let driver = carry(named(OWNER), |driver, _| driver.update(&[says(0, 10.0, 12.0).in_scope(STREAM)]));
    expect(&driver, Why::CurrentEvidence);
    assert_eq!((driver.evidence(0), driver.attempts(0)), (2.0, 1));
}

#[test]
fn a_full_lane_has_no_room_for_the_owner() {
    let limits = Limits { voices_max: NonZeroUsize::MIN, ..Limits::default() };
    let fills = |driver: &mut Driver, _| driver.offer(&[says(1, 50.0, 50.5).in_scope(STREAM)]);
    expect(&carry(named_within(limits, OWNER), fills), Why::VoiceCapacity);
}

#[test]
fn an_owner_whom_another_voice_contends_is_not_carried() {
    let claims = |driver: &mut Driver, _| driver.update(&[says(1, 10.0, 15.0).in_scope(STREAM)]);
    let driver = carry(named(OWNER), claims);
    expect(&driver, Why::OwnerContended);
    assert_eq!((driver.status(0), driver.status(1)), (Status::Ambiguous, Status::Ambiguous));
}

#[test]
fn an_owner_who_is_somebody_else_among_todays_people_is_not_carried() {
    let owner = || print("user", "User", Role::Owner, OWNER);
    for twin in [OWNER, at(0.05)] {
        let people = Gallery::new(vec![owner(), print("p1", "Sarah", Role::Person, twin)]);
        expect(&carry(named(at(0.05)), |driver, _| driver.enrol(people)), Why::VoiceprintRejected);
    }
}

/// Voice 0 is the owner on two seconds, by the word of the conversation "home".
fn reconnected() -> Driver {
    let mut driver = Driver::owner_only();
    driver.provider_restarts(STREAM);
    driver.start_anew(Device::Fresh);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM)]);
    let hint = driver.hint("home", 120.0).unwrap();
    driver.start_anew(Device::Reconnecting(Box::new(hint)));
    driver.hear_donor("home", Donor::Read(Receipt::default().into()));
    driver.update(&[says(0, 10.0, 12.0).in_scope(STREAM)]);
    assert_eq!((driver.status(0), driver.evidence(0)), (Status::User, 2.0));
    driver
}

#[test]
fn a_short_owner_is_carried_as_long_as_the_word_holds_on_which_the_name_rests() {
    for (word, reason) in [
        (Donor::Read(Receipt::default().into()), Why::Automatic),
        (Donor::Deleted, Why::DonorAuthority),
        (Donor::Unavailable, Why::DonorAuthority),
    ] {
        let mut driver = reconnected();
        let moving = driver.begin_rollover();
        assert_eq!(moving.carry.memory.grounds(), ["home".into()]);
        driver.hear_donor("home", word);
        let before = driver.word_of(moving.from);
        driver.finish_rollover(moving, before);
        expect(&driver, reason);
        let rests_on = driver.scheduler().donors(LANE);
        assert_eq!(rests_on.len(), usize::from(reason == Why::Automatic), "what is not carried rests on nothing");
    }
}
