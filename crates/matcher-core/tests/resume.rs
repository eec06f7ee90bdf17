//! Goal: a recording that goes on in another socket is the same recording: what was known, decided and spent holds, what
//! was audio is gone, and nothing is told of a voice before it is heard again.
//! Method: whole voices through the driver, before and after the socket changes.

#![cfg(test)]

mod driver;

use driver::people::{is, not_me, segment, voice_in};
use driver::*;
use matcher_core::budget::Outcome;
use matcher_core::queue::Voice;
use matcher_core::receipt::{Reach, Receipt, Subject};
use matcher_core::{Device, Donor, ExitReason, Gallery, Origin, Role, Spans, Speaker, Status};

use Answer::{Fails, Held, Vector};

fn resume(driver: &mut Driver) {
    driver.resume(ring_of(60), Device::Unknown);
}

// Settled 4.
#[test]
fn evidence_goes_on_and_ranges_do_not() {
    let mut driver = Driver::new();
    driver.update(&[says(0, 0.0, 3.0)]);
    driver.update(&[says(0, 10.0, 10.5)]);
    resume(&mut driver);
    let queue = driver.scheduler().queue(LANE).unwrap();
    let voice = Voice { speaker: Speaker(0), scope: 0 };
    assert_eq!((queue.fresh(voice), queue.covered(voice)), (Some(&Spans::new()), Some(&Spans::new())));
    assert_eq!((driver.evidence(0), driver.person(0)), (3.0, None));
    driver.update(&[says(0, 0.0, 2.0).named("same place, other audio")]);
    assert_eq!(driver.named(), [name(0, "user", "same place, other audio")]);
}

#[test]
fn a_name_goes_on_and_is_told_again_when_its_voice_is_heard() {
    let mut driver = Driver::new();
    driver.script(1, [Vector(SARAH)]);
    driver.update(&[says(0, 0.0, 5.0), says(1, 10.0, 15.0)]);
    let before = driver.events.len();
    resume(&mut driver);
    assert_eq!((driver.person(0).as_deref(), driver.person(1).as_deref()), (Some("user"), Some("p1")));
    assert_eq!(driver.events.len(), before, "nobody was heard");
    driver.update(&[says(0, 30.0, 30.5).named("again")]);
    driver.update(&[says(0, 31.0, 31.5).named("and again")]);
    assert_eq!(driver.named()[2..], [name(0, "user", "again")]);
    assert_eq!(driver.queries.len(), 2);
}

#[test]
fn what_people_decided_goes_on() {
    let mut driver = Driver::new();
    driver.update(&[says(0, 0.0, 0.5), says(1, 0.0, 0.5)]);
    driver.correct(voice_in("", 0), Subject::Voice, is("p1", Role::Person));
    driver.correct(voice_in("", 1), Subject::Voice, not_me());
    resume(&mut driver);
    driver.update(&[says(0, 30.0, 36.0), says(1, 40.0, 46.0)]);
    let identity = driver.voice(0).unwrap().identity.unwrap();
    assert_eq!((identity.person.as_str(), identity.origin), ("p1", Origin::Manual));
    assert_eq!((driver.status(1), driver.queries.len()), (Status::NoMatch, 0));
}

#[test]
fn a_name_whose_voice_was_silenced_goes_on() {
    let mut driver = Driver::new();
    driver.update(&[says(0, 0.0, 5.0)]);
    driver.correct(voice_in("", 0), segment("s", Reach::Voice), is("p1", Role::Person));
    assert_eq!(driver.person(0).as_deref(), Some("user"), "a segment's name is not its voice's");
    resume(&mut driver);
    assert_eq!((driver.person(0).as_deref(), driver.status(0)), (Some("user"), Status::User));
}

#[test]
fn what_changed_before_a_voice_is_heard_again_is_told_as_it_is_then() {
    let mut driver = Driver::owner_only();
    driver.update(&[says(0, 0.0, 5.0)]);
    resume(&mut driver);
    driver.correct(voice_in("", 0), Subject::Voice, not_me());
    assert_eq!((driver.status(0), driver.retracted().len()), (Status::NoMatch, 0));
    driver.update(&[says(0, 30.0, 30.5)]);
    assert_eq!((driver.named().len(), driver.exited(ExitReason::Rejected)), (1, 1));

    let mut driver = Driver::owner_only();
    driver.update(&[says(0, 0.0, 5.0)]);
    resume(&mut driver);
    let peer = print("p1", "Sarah", Role::Person, at(0.05));
    driver.enrol(Gallery::new(vec![print("user", "User", Role::Owner, OWNER), peer]));
    driver.update(&[says(0, 30.0, 30.5)]);
    assert_eq!((driver.person(0), driver.status(0), driver.named().len()), (None, Status::NoMatch, 1));
}

#[test]
fn attempts_and_tokens_go_on() {
    let mut driver = Driver::new();
    driver.by_default(Fails(Outcome::ExtractionFailed));
    for _ in 0..12 {
        driver.update(&[says(0, 0.0, 5.0)]);
    }
    for _ in 0..5 {
        resume(&mut driver);
        driver.update(&[says(0, 0.0, 5.0)]);
    }
    assert_eq!((driver.attempts(0), driver.tokens()), (12, 4.0));
    assert_eq!((driver.explain(0).attempts, driver.counters.first_blocks), (12, 1));
    driver.offer(&[says(0, 10.0, 20.0), says(1, 10.0, 12.0)]);
    let Some(Turn::Reserved(dispatch)) = driver.turn() else { panic!("a token is left") };
    assert_eq!(dispatch.speaker, Speaker(1), "the untried voice goes first, as before");
}

#[test]
fn a_query_of_the_former_socket_holds_its_number_and_is_stale() {
    let mut driver = Driver::new();
    driver.script(0, [Held]);
    driver.update(&[says(0, 0.0, 5.0)]);
    resume(&mut driver);
    driver.update(&[says(0, 0.0, 5.0)]);
    assert_eq!((driver.queries.len(), driver.scheduler().in_work(LANE)), (1, vec![Speaker(0)]));
    driver.extract(0, SARAH);
    assert_eq!((driver.evidence(0), driver.exited(ExitReason::StaleGeneration)), (0.0, 1));
    driver.drain();
    assert_eq!((driver.person(0).as_deref(), driver.attempts(0)), (Some("user"), 2));
}

#[test]
fn contention_goes_on_in_silence() {
    let mut driver = Driver::owner_only();
    driver.script(0, [Vector(at(0.53))]);
    driver.script(1, [Vector(mirrored(0.54))]);
    driver.update(&[says(0, 0.0, 5.0), says(1, 10.0, 15.0)]);
    let before = driver.events.len();
    resume(&mut driver);
    assert_eq!((driver.status(0), driver.status(1)), (Status::Ambiguous, Status::Ambiguous));
    assert_eq!(driver.events.len(), before);
    driver.correct(voice_in("", 1), Subject::Voice, not_me());
    assert_eq!((driver.status(0), driver.events.len()), (Status::User, before), "also when it ends");
    driver.update(&[says(0, 30.0, 30.5).named("heard")]);
    assert_eq!(driver.named().last(), Some(&name(0, "user", "heard")));
}

const STREAM: &str = "stream:0";

fn nobody_decided() -> Donor {
    Donor::Read(Receipt::default().into())
}

/// Voice 0 is the owner on two seconds, by the word of the conversation "home".
fn short_owner() -> Driver {
    let mut driver = Driver::owner_only();
    driver.provider_restarts(STREAM);
    driver.start_anew(Device::Fresh);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM)]);
    let hint = driver.hint("home", 120.0).unwrap();
    driver.start_anew(Device::Reconnecting(Box::new(hint)));
    driver.hear_donor("home", nobody_decided());
    driver.update(&[says(0, 10.0, 12.0).in_scope(STREAM)]);
    assert_eq!(driver.status(0), Status::User);
    driver
}

#[test]
fn a_short_name_goes_on_with_the_word_that_it_rests_on() {
    let mut driver = short_owner();
    driver.resume(ring_of(60), Device::Fresh);
    assert_eq!(driver.scheduler().donors(LANE), ["home".into()]);
    driver.update(&[says(0, 30.0, 30.5).in_scope(STREAM).named("again")]);
    assert_eq!(driver.named().last(), Some(&name(0, "user", "again")));
    driver.hear_donor("home", Donor::Unavailable);
    assert_eq!(driver.status(0), Status::User);
    driver.hear_donor("home", Donor::Deleted);
    assert_eq!((driver.person(0), driver.retracted().len()), (None, 1));
}

#[test]
fn the_word_of_a_short_name_is_heard_again_after_a_change_of_socket_and_after_a_rollover() {
    let moves: [fn(&mut Driver); 2] = [
        |driver| driver.resume(ring_of(60), Device::Fresh),
        |driver| {
            let moving = driver.begin_rollover();
            driver.hear_donor("home", nobody_decided());
            let word = driver.word_of(moving.from);
            driver.finish_rollover(moving, word);
        },
    ];
    for go_on in moves {
        let mut driver = short_owner();
        go_on(&mut driver);
        let at = driver.lane().conversation;
        assert_eq!(driver.conversations[at].poll_grounds(driver.now), None);
        assert!(driver.scheduler().poll_timeout().is_some(), "the core says when");
        driver.pass(30.0);
        let due = driver.conversations[at].poll_grounds(driver.now);
        assert_eq!(due, Some((LANE, vec!["home".into()])));
    }
}

#[test]
fn a_competitors_fresh_speech_goes_on() {
    let sarah = print("p1", "Sarah", Role::Person, mirrored(0.4));
    let people = Gallery::new(vec![print("user", "User", Role::Owner, OWNER), sarah]);
    let mut driver = Driver::with(matcher_core::Limits::default(), people, ring_of(60));
    driver.provider_restarts(STREAM);
    driver.script(0, [Vector(at(0.53))]);
    driver.script(1, [Vector(mirrored(0.4)), Vector(mirrored(1.2)), Vector(mirrored(1.2))]);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM), says(1, 10.0, 15.0).in_scope(STREAM)]);
    let moving = driver.begin_rollover();
    driver.enrol(owner_only());
    let word = driver.word_of(moving.from);
    driver.finish_rollover(moving, word);
    driver.update(&[says(1, 20.0, 23.0).in_scope(STREAM)]);
    resume(&mut driver);
    assert_eq!((driver.evidence(1), driver.status(0)), (3.0, Status::Ambiguous), "and it competes as before");
    driver.update(&[says(1, 30.0, 32.0).in_scope(STREAM)]);
    assert_eq!((driver.status(1), driver.status(0)), (Status::NoMatch, Status::User));
}

#[test]
fn streams_keep_their_order_whatever_numbers_speak_in_them() {
    let mut driver = Driver::owner_only();
    driver.by_default(Vector(BETWEEN));
    driver.update(&[
        says(5, 0.0, 5.0).in_scope("old"),
        says(1, 5.0, 10.0).in_scope("new"),
        says(5, 10.0, 15.0).in_scope("new"),
    ]);
    driver.resume(ring_of(60), Device::Unknown);
    let explained = driver.scheduler().explain(LANE, Speaker(5));
    let streams: Vec<&str> = explained.iter().map(|voice| voice.state.scope.as_str()).collect();
    assert_eq!(streams, ["old", "new"], "the newest is told last");
}
