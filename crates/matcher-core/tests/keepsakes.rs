//! Goal: what a device keeps of its owner is always the owner of now, by their own five seconds, and nothing else is kept.
//! Method: one socket of a named device through the driver, which takes every keepsake that the core gives.

#![cfg(test)]

mod driver;

use driver::people::{is, not_me, segment, voice_in};
use driver::*;
use matcher_core::receipt::{Reach, Subject};
use matcher_core::{Device, Gallery, Keepsake, Kept, Limits, Role, Scope, Speaker, Status};

use Answer::Vector;

const STREAM: &str = "stream:0";

fn on_device(device: Device) -> Driver {
    let mut driver = Driver::owner_only();
    driver.provider_restarts(STREAM);
    driver.start_anew(device);
    driver
}

/// The owner, named on five seconds and heard now.
fn owner() -> Driver {
    let mut driver = on_device(Device::Fresh);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM)]);
    assert_eq!(driver.status(0), Status::User);
    driver
}

/// The keepsakes so far; `None` is a withdrawal.
fn keepsakes(driver: &Driver) -> Vec<Option<Kept>> {
    let kept = driver.kept.iter().map(|(_, keepsake)| match keepsake {
        Keepsake::Keep(kept) => Some((**kept).clone()),
        Keepsake::Withdraw => None,
    });
    kept.collect()
}

/// How many times something was kept, and whether anything is kept now.
fn stands(driver: &Driver) -> (usize, bool) {
    let kept = keepsakes(driver);
    (kept.iter().flatten().count(), kept.last().is_some_and(Option::is_some))
}

#[test]
fn the_owner_is_kept_when_five_seconds_name_them() {
    let mut driver = on_device(Device::Fresh);
    driver.pass(7.0);
    driver.update(&[says(0, 0.0, 2.0).in_scope(STREAM)]);
    assert_eq!(stands(&driver), (0, false));
    driver.update(&[says(0, 2.0, 5.0).in_scope(STREAM)]);
    let kept = keepsakes(&driver).remove(0).unwrap();
    assert_eq!((kept.voice.speaker, kept.voice.scope), (Speaker(0), Scope::new(STREAM)));
    assert_eq!((kept.seconds, kept.observed, kept.receipt_generation), (5.0, driver.now, 0));
    assert_eq!((kept.print.values(), kept.centroid.values()), (&OWNER[..], &OWNER[..]));
}

#[test]
fn a_device_without_a_name_keeps_nothing() {
    let mut driver = on_device(Device::Unknown);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM)]);
    assert_eq!((driver.status(0), stands(&driver)), (Status::User, (0, false)));
}

#[test]
fn speech_renews_what_is_kept_every_thirty_seconds() {
    let mut driver = owner();
    let mut times = Vec::new();
    for second in 1..=90_u32 {
        driver.pass(1.0);
        driver.update(&[says(0, 50.0, 50.5).in_scope(STREAM).named(&second.to_string())]);
        if stands(&driver).0 > times.len() + 1 {
            times.push(second);
        }
    }
    assert_eq!(times, [30, 60, 90]);
}

#[test]
fn silence_renews_nothing_and_late_speech_is_kept_when_its_time_comes() {
    let mut driver = owner();
    assert_eq!(driver.scheduler().poll_timeout(), None, "nothing is due without speech");
    driver.pass(40.0);
    driver.update(&[says(1, 50.0, 50.5).in_scope(STREAM)]);
    assert_eq!(stands(&driver), (1, true));

    driver.update(&[says(0, 50.0, 50.5).in_scope(STREAM)]);
    driver.pass(10.0);
    driver.update(&[says(0, 51.0, 51.5).in_scope(STREAM)]);
    assert_eq!(stands(&driver), (2, true), "the first speech after a pause at once, the next in thirty seconds");
    let (spoke, due) = (driver.now, driver.scheduler().poll_timeout().unwrap());
    driver.now = due;
    driver.keepsakes_now();
    assert_eq!(keepsakes(&driver)[2].as_ref().unwrap().observed, spoke);
    assert_eq!(driver.scheduler().poll_timeout(), None);
}

#[test]
fn a_window_that_the_ring_does_not_hold_is_no_sign_of_life() {
    let mut driver = owner();
    driver.pass(40.0);
    driver.update(&[says(0, 100.0, 101.0).in_scope(STREAM)]);
    assert_eq!(stands(&driver), (1, true));
}

#[test]
fn a_rejection_a_reservation_and_a_silencing_withdraw_it() {
    let rulings = [
        (0, Subject::Voice, not_me()),
        (0, segment("s", Reach::Voice), is("p1", Role::Person)),
        (0, Subject::Voice, is("user", Role::Owner)),
        (5, segment("s", Reach::SegmentOnly), is("user", Role::Owner)),
    ];
    for (speaker, subject, ruling) in rulings {
        let mut driver = owner();
        driver.correct(voice_in(STREAM, speaker), subject.clone(), ruling);
        assert_eq!(stands(&driver), (1, false), "{subject:?} of {speaker}");
        assert_eq!(keepsakes(&driver).len(), 2, "once");
    }
}

#[test]
fn an_owner_who_is_contended_or_not_enrolled_any_more_is_withdrawn() {
    let mut driver = owner();
    driver.update(&[says(1, 10.0, 15.0).in_scope(STREAM)]);
    assert_eq!((driver.status(0), stands(&driver)), (Status::Ambiguous, (1, false)));
    driver.correct(voice_in(STREAM, 1), Subject::Voice, not_me());
    assert_eq!((driver.status(0), stands(&driver)), (Status::User, (2, true)), "and kept again when the name is back");

    let mut driver = owner();
    driver.enrol(sarah_only());
    assert_eq!(stands(&driver), (1, false));
}

#[test]
fn an_edit_elsewhere_renews_it_with_the_generation_that_the_next_socket_will_find() {
    let mut driver = owner();
    driver.correct(voice_in(STREAM, 4), Subject::Voice, is("p1", Role::Person));
    let generations: Vec<u64> = keepsakes(&driver).into_iter().flatten().map(|kept| kept.receipt_generation).collect();
    assert_eq!(generations, [0, 1]);
}

#[test]
fn only_the_voice_of_the_current_stream_is_kept() {
    let mut driver = owner();
    driver.provider_restarts("stream:1");
    driver.update(&[says(1, 10.0, 10.5).in_scope("stream:1")]);
    driver.pass(40.0);
    driver.update(&[says(0, 50.0, 50.5).in_scope(STREAM)]);
    assert_eq!(stands(&driver), (1, true), "what was kept stands, and a late word of the old stream renews nothing");
    // The same voice in the new stream: both are the owner, and one is on the stream that is current.
    driver.update(&[says(1, 20.0, 25.0).in_scope("stream:1")]);
    assert_eq!((driver.status(0), driver.status(1)), (Status::User, Status::User));
    assert_eq!(keepsakes(&driver).last().unwrap().as_ref().unwrap().voice, voice_in("stream:1", 1));
}

#[test]
fn other_people_are_never_kept() {
    let mut driver = Driver::with(Limits::default(), gallery(), ring_of(60));
    driver.start_anew(Device::Fresh);
    driver.by_default(Vector(SARAH));
    driver.update(&[says(0, 0.0, 5.0)]);
    assert_eq!((driver.status(0), stands(&driver)), (Status::NotUser, (0, false)));
}

#[test]
fn a_carried_owner_is_kept_when_they_are_heard_in_the_next_conversation() {
    let mut driver = owner();
    driver.pass(5.0);
    driver.roll_over_carrying();
    assert_eq!((driver.carried().len(), stands(&driver)), (1, (1, true)), "nobody spoke, nothing is written");
    driver.pass(5.0);
    driver.update(&[says(0, 50.0, 50.5).in_scope(STREAM)]);
    assert_eq!(keepsakes(&driver)[1].as_ref().unwrap().observed, driver.now);
}

#[test]
fn a_competitor_is_never_kept() {
    let twin = Gallery::new(vec![
        print("user", "User", Role::Owner, OWNER),
        print("p1", "Sarah", Role::Person, mirrored(0.4)),
    ]);
    let mut driver = Driver::with(Limits::default(), twin, ring_of(60));
    driver.provider_restarts(STREAM);
    driver.start_anew(Device::Fresh);
    driver.script(0, [Vector(at(0.53)), Vector(at(0.53))]);
    driver.script(1, [Vector(mirrored(0.4))]);
    driver.update(&[says(0, 0.0, 5.0).in_scope(STREAM), says(1, 10.0, 15.0).in_scope(STREAM)]);
    let moving = driver.begin_rollover();
    driver.enrol(owner_only());
    let word = driver.word_of(moving.from);
    driver.finish_rollover(moving, word);
    driver.update(&[says(0, 50.0, 50.5).in_scope(STREAM), says(1, 51.0, 51.5).in_scope(STREAM)]);
    assert_eq!((driver.status(0), driver.status(1)), (Status::Ambiguous, Status::Pending));
    assert_eq!(stands(&driver), (1, false), "what was kept in the conversation before is withdrawn with the owner");
}

// B9.123
#[test]
fn what_was_kept_goes_with_the_owner_who_is_rejected_before_they_are_heard_again_or_not_carried() {
    let mut driver = owner();
    driver.roll_over_carrying();
    driver.correct(voice_in(STREAM, 0), Subject::Voice, not_me());
    assert_eq!(stands(&driver), (1, false), "rejected in the next conversation");

    let mut driver = owner();
    driver.provider_restarts("stream:1");
    driver.roll_over_carrying();
    assert_eq!(stands(&driver), (1, false), "left behind on another stream");

    let mut driver = owner();
    driver.roll_over();
    assert_eq!(stands(&driver), (1, true), "a rollover that carries nothing says nothing about the owner");
}
