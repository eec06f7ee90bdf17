//! Goal: the owner of moments ago is named on two seconds of speech when everything speaks for it, and on five otherwise.
//! Method: two sockets of one device through the driver; what the first one kept is the second one's hint.

#![cfg(test)]

mod driver;

use std::time::Duration;

use driver::people::{is, not_me, segment, voice_in};
use driver::*;
use matcher_core::budget;
use matcher_core::receipt::{Correction, Reach, Receipt, Ruling, Subject};
use matcher_core::{Device, Donor, Event, Gallery, Hint, Limits, Monotonic, Reconnect, Role, Scope, Status};

use Answer::{Fails, Vector};

const HOME: &str = "home";

/// The owner as the first socket heard them, for five seconds.
fn hint(vector: [f32; 2]) -> Hint {
    let mut driver = Driver::owner_only();
    driver.start_anew(Device::Fresh);
    driver.script(3, [Vector(vector)]);
    driver.update(&[says(3, 0.0, 5.0)]);
    driver.hint(HOME, 120.0).expect("the first socket named the owner")
}

/// The second socket, for whom the first conversation answers.
fn reconnecting(gallery: Gallery, hint: Hint) -> Driver {
    let mut driver = Driver::with(Limits::default(), gallery, ring_of(60));
    driver.start_anew(Device::Reconnecting(Box::new(hint)));
    driver.hear_donor(HOME, nobody_decided());
    driver
}

fn nobody_decided() -> Donor {
    Donor::Read(Receipt::default().into())
}

/// A receipt of the first conversation, after one edit.
fn somebody_decided(speaker: u32, subject: Subject, ruling: Ruling) -> Donor {
    let mut receipt = Receipt::default();
    receipt.correct(&Correction { voice: voice_in("", speaker), subject, ruling }).unwrap();
    Donor::Read(receipt.into())
}

fn tries(driver: &Driver) -> Vec<(u32, Reconnect)> {
    let tries = driver.events.iter().filter_map(|event| {
        let Event::Reconnected { speaker, ending, .. } = event else { return None };
        Some((speaker.0, *ending))
    });
    tries.collect()
}

fn is_owner(driver: &Driver, speaker: u32) -> bool {
    driver.person(speaker).as_deref() == Some("user")
}

// B9.115
#[test]
fn the_owner_of_moments_ago_is_named_on_two_seconds() {
    let mut driver = reconnecting(owner_only(), hint(OWNER));
    driver.update(&[says(0, 0.0, 1.9)]);
    assert_eq!((driver.queries.len(), driver.person(0)), (0, None));
    driver.update(&[says(0, 1.9, 2.0).named("two seconds")]);
    assert_eq!(driver.named(), [name(0, "user", "two seconds")]);
    assert_eq!((tries(&driver), driver.attempts(0)), (vec![(0, Reconnect::Accepted)], 1));
}

// B9.116
#[test]
fn what_was_kept_counts_for_its_time_and_no_longer() {
    for (gap, counts) in [(0.0, true), (120.0, true), (121.0, false)] {
        let mut driver = reconnecting(owner_only(), hint(OWNER));
        driver.pass(gap);
        driver.update(&[says(0, 0.0, 2.0)]);
        assert_eq!(is_owner(&driver, 0), counts, "after {gap} s");
        assert_eq!(tries(&driver).len(), usize::from(counts), "what is over is not even tried");
    }
}

// B9.116, when the time passes while the query runs.
#[test]
fn a_hint_that_ends_while_a_query_runs_carries_nothing() {
    let mut driver = reconnecting(owner_only(), hint(OWNER));
    driver.script(0, [Answer::Held]);
    driver.update(&[says(0, 0.0, 2.0)]);
    driver.now = Monotonic::ZERO.after(Duration::from_secs(120)).after(Duration::from_nanos(1));
    driver.extract(0, OWNER);
    assert_eq!((driver.person(0), tries(&driver)), (None, vec![]));
}

// B9.116
#[test]
fn another_print_than_the_one_that_was_kept_needs_all_the_evidence() {
    let again = Gallery::new(vec![print("user", "User", Role::Owner, [0.99, 0.1])]);
    let mut driver = reconnecting(again, hint(OWNER));
    driver.update(&[says(0, 0.0, 2.0)]);
    assert_eq!((driver.person(0), tries(&driver)), (None, vec![]));
}

// B9.116, B9.117, B9.122
#[test]
fn a_socket_that_found_nothing_names_the_owner_on_five_seconds() {
    for device in [Device::Unknown, Device::Fresh] {
        let mut driver = Driver::owner_only();
        driver.start_anew(device);
        driver.update(&[says(0, 0.0, 2.0)]);
        assert_eq!((driver.person(0), driver.evidence(0)), (None, 2.0));
        driver.update(&[says(0, 2.0, 5.0)]);
        assert!(is_owner(&driver, 0));
        assert_eq!(tries(&driver), []);
    }
}

// B9.118
#[test]
fn a_voice_near_the_owner_and_far_from_what_was_kept_is_not_them() {
    let mut driver = reconnecting(owner_only(), hint([0.8, 0.6]));
    driver.script(0, [Vector([0.8, -0.6]), Vector([0.8, -0.6])]);
    driver.update(&[says(0, 0.0, 2.0)]);
    assert_eq!((driver.person(0), tries(&driver)), (None, vec![(0, Reconnect::Acoustic)]));
    driver.update(&[says(0, 2.0, 5.0)]);
    assert!(is_owner(&driver, 0), "its own evidence names it in time");
    assert_eq!(tries(&driver).len(), 1);
}

// B9.119
#[test]
fn a_peer_with_the_owners_print_leaves_nobody() {
    let owner = print("user", "User", Role::Owner, OWNER);
    let twins = Gallery::new(vec![owner, print("p1", "Sarah", Role::Person, OWNER)]);
    let mut driver = reconnecting(twins, hint(OWNER));
    driver.update(&[says(0, 0.0, 2.0)]);
    assert_eq!((driver.person(0), tries(&driver)), (None, vec![(0, Reconnect::Acoustic)]));
}

// B9.120
#[test]
fn two_voices_on_two_seconds_are_both_nobody() {
    let mut driver = reconnecting(owner_only(), hint(OWNER));
    driver.update(&[says(0, 0.0, 2.0).named("shown")]);
    driver.update(&[says(1, 10.0, 12.0)]);
    assert_eq!(tries(&driver), [(0, Reconnect::Accepted), (1, Reconnect::Arbitration)]);
    assert_eq!((driver.status(0), driver.person(1)), (Status::Ambiguous, None));
    assert_eq!(driver.retracted(), [(0, "shown".to_owned())]);
    driver.correct(voice_in("", 0), Subject::Voice, not_me());
    driver.enrol(owner_only());
    assert_eq!(driver.person(1), None, "the one try of a number is over, also when all is weighed again");
    driver.update(&[says(1, 12.0, 15.0)]);
    assert!(is_owner(&driver, 1));
}

// B9.124
#[test]
fn a_short_try_that_fails_leaves_the_name_to_five_seconds() {
    for parts in [vec![(0.0, 1.0), (1.0, 2.0)], vec![(0.0, 2.0)]] {
        let limits = Limits { clip_minimum: Duration::from_secs(1), ..Limits::default() };
        let mut driver = Driver::with(limits, owner_only(), ring_of(60));
        driver.start_anew(Device::Reconnecting(Box::new(hint(OWNER))));
        driver.hear_donor(HOME, nobody_decided());
        driver.script(0, [Vector([0.2, 0.98]), Vector(OWNER)]);
        for (start, end) in parts {
            driver.update(&[says(0, start, end)]);
        }
        assert_eq!((driver.person(0), tries(&driver)), (None, vec![(0, Reconnect::Acoustic)]));
        driver.update(&[says(0, 2.0, 5.0)]);
        assert!(is_owner(&driver, 0));
        assert_eq!((driver.evidence(0), tries(&driver).len()), (5.0, 1), "one try for each number");
    }
}

#[test]
fn a_number_is_tried_once_whatever_its_stream() {
    let mut driver = reconnecting(owner_only(), hint(OWNER));
    driver.script(0, [Vector(SARAH)]);
    driver.update(&[says(0, 0.0, 2.0).in_scope("a")]);
    driver.update(&[says(0, 10.0, 12.0).in_scope("b")]);
    assert_eq!((driver.person(0), tries(&driver)), (None, vec![(0, Reconnect::Acoustic)]));
    driver.update(&[says(1, 20.0, 22.0).in_scope("b")]);
    assert_eq!(tries(&driver), [(0, Reconnect::Acoustic), (1, Reconnect::Accepted)], "and another number once more");
}

#[test]
fn a_query_that_fails_spends_no_try() {
    let mut driver = reconnecting(owner_only(), hint(OWNER));
    driver.script(0, [Fails(budget::Outcome::WorkerLost)]);
    driver.update(&[says(0, 0.0, 2.0)]);
    assert_eq!(tries(&driver), []);
    driver.update(&[says(0, 2.0, 2.5)]);
    assert_eq!((is_owner(&driver, 0), driver.attempts(0)), (true, 2));
}

#[test]
fn without_the_word_of_the_first_conversation_two_seconds_name_nobody() {
    let rejected = || somebody_decided(3, Subject::Voice, not_me());
    let elsewhere = || somebody_decided(5, Subject::Voice, is("p1", Role::Person));
    for word in [None, Some(Donor::Unavailable), Some(Donor::Deleted), Some(rejected()), Some(elsewhere())] {
        let mut driver = Driver::owner_only();
        driver.start_anew(Device::Reconnecting(Box::new(hint(OWNER))));
        if let Some(word) = word {
            driver.hear_donor(HOME, word);
        }
        driver.update(&[says(0, 0.0, 2.0)]);
        assert_eq!((driver.person(0), tries(&driver)), (None, vec![(0, Reconnect::DonorAuthority)]));
        driver.hear_donor(HOME, nobody_decided());
        assert_eq!(driver.person(0), None, "a try that failed is not made again when the word comes late");
        driver.update(&[says(0, 2.0, 5.0)]);
        assert!(is_owner(&driver, 0));
    }
}

#[test]
fn a_voice_that_was_decided_about_when_it_was_kept_carries_nothing() {
    let mut hint = hint(OWNER);
    hint.ground.receipt_generation = 1;
    let mut driver = reconnecting(owner_only(), hint);
    driver.hear_donor(HOME, somebody_decided(3, Subject::Voice, not_me()));
    driver.update(&[says(0, 0.0, 2.0)]);
    assert_eq!((driver.person(0), tries(&driver)), (None, vec![(0, Reconnect::DonorAuthority)]));
}

#[test]
fn a_person_who_is_enrolled_later_takes_a_short_name_back() {
    let mut driver = short_owner();
    let owner = print("user", "User", Role::Owner, OWNER);
    driver.enrol(Gallery::new(vec![owner, print("p1", "Sarah", Role::Person, OWNER)]));
    assert_eq!((driver.person(0), driver.retracted().len()), (None, 1));
}

#[test]
fn a_reserved_owner_and_a_rejected_voice_are_not_tried() {
    let decisions =
        [(5, segment("elsewhere", Reach::SegmentOnly), is("user", Role::Owner)), (0, Subject::Voice, not_me())];
    for (speaker, subject, ruling) in decisions {
        let mut driver = reconnecting(owner_only(), hint(OWNER));
        driver.correct(voice_in("", speaker), subject, ruling);
        driver.update(&[says(0, 0.0, 2.0)]);
        assert_eq!((driver.person(0), tries(&driver)), (None, vec![]));
    }
}

#[test]
fn a_voice_that_is_somebody_else_blocks_no_short_try_and_gets_none() {
    let mut driver = reconnecting(gallery(), hint(OWNER));
    driver.script(1, [Vector(SARAH)]);
    driver.update(&[says(1, 0.0, 6.0)]);
    driver.update(&[says(0, 10.0, 12.0)]);
    assert_eq!((driver.person(0).as_deref(), driver.person(1).as_deref()), (Some("user"), Some("p1")));
    assert_eq!(tries(&driver), [(0, Reconnect::Accepted)]);
}

/// A short owner, on the stream that is current.
fn short_owner() -> Driver {
    let mut driver = reconnecting(owner_only(), hint(OWNER));
    driver.provider_restarts("stream:0");
    driver.update(&[says(0, 0.0, 2.0).in_scope("stream:0").named("shown")]);
    assert!(is_owner(&driver, 0));
    driver
}

// B9.126
#[test]
fn a_short_owner_outlives_the_hint_and_a_rollover_and_is_never_kept() {
    let mut driver = short_owner();
    driver.pass(121.0);
    driver.update(&[says(0, 30.0, 30.5).in_scope("stream:0")]);
    assert!(is_owner(&driver, 0), "the name rests on the word, not on the hint");
    let moving = driver.begin_rollover();
    driver.hear_donor(HOME, nobody_decided());
    let word = driver.word_of(moving.from);
    driver.finish_rollover(moving, word);
    driver.update(&[says(0, 40.0, 40.5).in_scope("stream:0").named("next")]);
    assert_eq!(driver.named().last(), Some(&name(0, "user", "next")));
    driver.pass(31.0);
    driver.update(&[says(0, 50.0, 50.5).in_scope("stream:0")]);
    assert_eq!((driver.kept.len(), driver.queries.len()), (0, 1));
    // Another voice contends, and the two speak on: five seconds of its own make it an owner like any other.
    driver.update(&[says(1, 0.0, 5.0).in_scope("stream:0")]);
    driver.correct(voice_in("stream:0", 1), Subject::Voice, not_me());
    assert_eq!((driver.status(0), driver.kept.len()), (Status::User, 0));
}

#[test]
fn a_short_name_is_taken_back_when_its_word_is() {
    let rejected = somebody_decided(3, Subject::Voice, not_me());
    for word in [rejected, Donor::Deleted] {
        let mut driver = short_owner();
        driver.hear_donor(HOME, Donor::Unavailable);
        assert!(is_owner(&driver, 0), "no answer changes nothing");
        driver.hear_donor(HOME, word);
        assert_eq!((driver.person(0), driver.retracted()), (None, vec![(0, "shown".to_owned())]));
    }
}

#[test]
fn a_short_name_is_taken_back_when_the_owner_is_taught_anew() {
    let mut driver = short_owner();
    driver.enrol(Gallery::new(vec![print("user", "User", Role::Owner, [0.99, 0.1])]));
    assert_eq!((driver.person(0), driver.retracted().len()), (None, 1));
}

#[test]
fn five_seconds_of_its_own_need_no_word_any_more() {
    let mut driver = reconnecting(owner_only(), hint(OWNER));
    driver.update(&[says(0, 0.0, 2.0)]);
    driver.hear_donor(HOME, Donor::Deleted);
    assert_eq!(driver.person(0), None);
    driver.update(&[says(0, 2.0, 5.0)]);
    assert!(is_owner(&driver, 0));
    driver.hear_donor(HOME, somebody_decided(3, Subject::Voice, not_me()));
    assert!(is_owner(&driver, 0));
}

/// What the conversation's actor is asked to read again now.
fn grounds(driver: &mut Driver) -> Vec<String> {
    let (at, now) = (driver.lane().conversation, driver.now);
    let due = driver.conversations[at].poll_grounds(now);
    due.map(|(_, grounds)| grounds.iter().map(ToString::to_string).collect()).unwrap_or_default()
}

#[test]
fn the_word_of_a_short_name_is_heard_again_every_thirty_seconds() {
    let mut driver = short_owner();
    for _ in 0..3 {
        assert_eq!(grounds(&mut driver), [""; 0]);
        let due = driver.scheduler().poll_timeout();
        assert_eq!(due, Some(driver.now.after(Duration::from_secs(30))), "and the core says when");
        driver.pass(30.0);
        assert_eq!(grounds(&mut driver), [HOME]);
    }
    driver.correct(voice_in("stream:0", 0), Subject::Voice, not_me());
    assert_eq!(driver.person(0), None);
}

// B9.125
#[test]
fn a_keepsake_says_when_the_owner_was_heard_last() {
    let mut driver = Driver::owner_only();
    driver.start_anew(Device::Fresh);
    driver.update(&[says(0, 0.0, 5.0)]);
    driver.pass(180.0);
    driver.update(&[says(0, 10.0, 11.0)]);
    let kept = driver.hint(HOME, 0.0).unwrap();
    assert_eq!((driver.kept.len(), kept.usable_until), (2, driver.now));
    assert_eq!((kept.ground.voice.scope, kept.ground.receipt_generation), (Scope::new(""), 0));
}
