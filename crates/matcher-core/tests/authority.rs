//! Goal: a result is worth what people are known to have decided when it comes: what cannot be read publishes nothing, and
//! what was decided while a query ran holds.
//! Method: queries held open while a store answers, does not answer, or has been corrected; then all cases of a table.

#![cfg(test)]

mod driver;

use driver::people::{is, not_me, segment, voice_in};
use driver::*;
use matcher_core::receipt::{Correction, Named, Reach, Receipt, Ruling, Subject};
use matcher_core::{
    Batch, Change, Device, Donor, Ending, Event, ExitReason, Generation, Hint, Join, Limits, PersonId, Reconnect, Role,
    Scheduler, Scope, Speaker, Status, Target,
};

use Answer::{Held, Vector};

const STREAM: &str = "stream:0";

fn hint() -> Hint {
    let mut driver = Driver::owner_only();
    driver.start_anew(Device::Fresh);
    driver.update(&[says(3, 0.0, 5.0)]);
    driver.hint("home", 120.0).unwrap()
}

/// A socket on which two seconds can name the owner.
fn reconnecting() -> Driver {
    let mut driver = Driver::owner_only();
    driver.start_anew(Device::Reconnecting(Box::new(hint())));
    driver.hear_donor("home", Donor::Read(Receipt::default().into()));
    driver.provider_restarts(STREAM);
    driver
}

fn decided(driver: &Driver, of: u32) -> usize {
    let is_one = |event: &&Event| matches!(event, Event::Decided { speaker, .. } if *speaker == Speaker(of));
    driver.events.iter().filter(is_one).count()
}

fn tries(driver: &Driver) -> Vec<Reconnect> {
    let tries = driver.events.iter().filter_map(|event| {
        let Event::Reconnected { ending, .. } = event else { return None };
        Some(*ending)
    });
    tries.collect()
}

// B7.105
#[test]
fn a_result_without_authority_spends_its_attempt_and_decides_nothing() {
    for (seconds, expected) in [(2.0, vec![Reconnect::Arbitration]), (5.0, vec![])] {
        let mut driver = reconnecting();
        driver.script(1, [Vector(SARAH)]);
        driver.update(&[says(1, 20.0, 22.0).in_scope(STREAM)]);
        assert_eq!((driver.evidence(1), tries(&driver)), (2.0, vec![Reconnect::Acoustic]));
        driver.events.clear();
        driver.script(0, [Held]);
        driver.update(&[says(0, 0.0, seconds).in_scope(STREAM)]);
        driver.extract_unauthorised(0, OWNER);
        assert_eq!((driver.attempts(0), driver.exited(ExitReason::AuthorityUnavailable)), (1, 1));
        assert_eq!((driver.person(0), decided(&driver, 0), tries(&driver)), (None, 0, expected));
    }
}

#[test]
fn a_short_try_without_authority_is_not_made_again() {
    let mut driver = reconnecting();
    driver.script(0, [Held]);
    driver.update(&[says(0, 0.0, 2.0).in_scope(STREAM)]);
    driver.extract_unauthorised(0, OWNER);
    driver.update(&[says(0, 2.0, 4.0).in_scope(STREAM)]);
    assert_eq!((driver.person(0), tries(&driver)), (None, vec![Reconnect::Arbitration]));
    driver.update(&[says(0, 4.0, 5.0).in_scope(STREAM)]);
    assert_eq!(driver.person(0).as_deref(), Some("user"), "five seconds with authority name it");
}

/// Every voice that has a distance has a decision over exactly these candidates.
fn rows_are_whole(driver: &Driver) {
    for explained in driver.scheduler().explain_all(LANE) {
        assert_eq!(explained.state.distance, explained.candidates.first().map(|(_, distance)| *distance));
    }
}

// B7.106
#[test]
fn a_voice_whose_authority_is_still_read_does_not_hold_up_the_others() {
    for is_cancelled in [false, true] {
        let mut driver = Driver::owner_only();
        driver.script(0, [Held]);
        driver.update(&[says(0, 0.0, 5.0)]);
        if is_cancelled {
            driver.extract_unauthorised(0, at(0.05));
        }
        driver.update(&[says(1, 10.0, 15.0).named("shown")]);
        assert_eq!((driver.named(), driver.person(0)), (vec![name(1, "user", "shown")], None));
        assert_eq!(driver.voice(0).unwrap().distance, None, "what is not published does not compete");
        rows_are_whole(&driver);
        if !is_cancelled {
            driver.extract(0, at(0.05));
            assert_eq!((driver.status(0), driver.status(1)), (Status::Ambiguous, Status::Ambiguous));
            rows_are_whole(&driver);
        }
    }
}

#[test]
fn evidence_of_a_result_without_authority_counts_in_the_next_one() {
    let mut driver = Driver::owner_only();
    driver.script(0, [Held, Vector(OWNER)]);
    driver.update(&[says(0, 0.0, 3.0)]);
    driver.extract_unauthorised(0, at(0.2));
    driver.update(&[says(0, 3.0, 5.0)]);
    assert_eq!((driver.person(0).as_deref(), driver.evidence(0)), (Some("user"), 5.0));
    assert_eq!(driver.decided(Target::Owner, Ending::Accepted), 1);
}

// B7.102
#[test]
fn a_correction_during_the_reading_keeps_the_owner_from_being_shown() {
    for (subject, ruling) in
        [(Subject::Voice, not_me()), (Subject::Voice, Ruling::IsNobody), (segment("s", Reach::Voice), not_me())]
    {
        let mut driver = Driver::owner_only();
        driver.script(0, [Held]);
        driver.update(&[says(0, 0.0, 6.0)]);
        driver.correct(voice_in("", 0), subject, ruling);
        driver.extract(0, OWNER);
        assert_eq!((driver.person(0), driver.named()), (None, vec![]));
    }
}

/// What a person decided before, as the store knows it and the conversation does not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Earlier {
    Nothing,
    VoiceIsOwner,
    SegmentIsOwner,
    CarriedHere,
    CarriedOnAnotherStream,
    VoiceIsNot,
    SegmentsVoiceIsNot,
}

impl Earlier {
    const ALL: [Self; 7] = [
        Self::Nothing,
        Self::VoiceIsOwner,
        Self::SegmentIsOwner,
        Self::CarriedHere,
        Self::CarriedOnAnotherStream,
        Self::VoiceIsNot,
        Self::SegmentsVoiceIsNot,
    ];

    /// Whether the owner may be shown by it, when nothing else speaks against it.
    fn shows_the_owner(self) -> bool {
        match self {
            Self::Nothing | Self::VoiceIsOwner | Self::CarriedHere => true,
            // The owner is reserved, and nobody said that it is this voice.
            Self::SegmentIsOwner | Self::CarriedOnAnotherStream => false,
            Self::VoiceIsNot | Self::SegmentsVoiceIsNot => false,
        }
    }

    fn stored(self) -> Receipt {
        let mut receipt = Receipt::default();
        let owner = Named { person: PersonId::new("user"), name: "User".into(), role: Role::Owner };
        let carried = |scope| [(voice_in(scope, 0), owner.clone())].into();
        let edit = |subject, ruling| Correction { voice: voice_in(STREAM, 0), subject, ruling };
        match self {
            Self::Nothing => Ok(()),
            Self::VoiceIsOwner => receipt.correct(&edit(Subject::Voice, is("user", Role::Owner))),
            Self::SegmentIsOwner => receipt.correct(&edit(segment("s", Reach::SegmentOnly), is("user", Role::Owner))),
            Self::CarriedHere => receipt.carry(&carried(STREAM)),
            Self::CarriedOnAnotherStream => receipt.carry(&carried("stream:of old")),
            Self::VoiceIsNot => receipt.correct(&edit(Subject::Voice, not_me())),
            Self::SegmentsVoiceIsNot => receipt.correct(&edit(segment("s", Reach::Voice), not_me())),
        }
        .unwrap();
        receipt
    }
}

/// What the store does when the result comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Succeeds,
    Fails,
}

/// What people do while the query runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    Correct,
}

/// Whether voice 0 is shown as the owner after a query of so many seconds.
fn is_shown(earlier: Earlier, seconds: f64, reading: Reading, meanwhile: Meanwhile) -> bool {
    let mut driver = reconnecting();
    driver.script(0, [Held]);
    driver.update(&[says(0, 0.0, seconds).in_scope(STREAM)]);
    let mut stored = earlier.stored();
    if meanwhile == Meanwhile::Correct {
        let (voice, subject, ruling) = (voice_in(STREAM, 0), Subject::Voice, not_me());
        stored.correct(&Correction { voice, subject, ruling }).unwrap();
    }
    match reading {
        Reading::Succeeds => {
            driver.hear_receipt(driver.lane().conversation, stored);
            driver.extract(0, OWNER);
        }
        Reading::Fails => driver.extract_unauthorised(0, OWNER),
    }
    rows_are_whole(&driver);
    assert_eq!(driver.attempts(0), 1);
    let shown = driver.person(0).as_deref() == Some("user");
    assert_eq!(shown, driver.named().iter().any(|(speaker, ..)| *speaker == 0), "what is shown was told, and no more");
    shown
}

// B7.107
#[test]
fn the_owner_is_shown_only_when_all_that_was_decided_is_known_and_allows_it() {
    for earlier in Earlier::ALL {
        for seconds in [2.0, 5.0] {
            for reading in [Reading::Succeeds, Reading::Fails] {
                for meanwhile in [Meanwhile::Nothing, Meanwhile::Correct] {
                    let allows = reading == Reading::Succeeds && meanwhile == Meanwhile::Nothing;
                    let shown = is_shown(earlier, seconds, reading, meanwhile);
                    let case = format!("{earlier:?}, {seconds} s, {reading:?}, {meanwhile:?}");
                    assert_eq!(shown, allows && earlier.shows_the_owner(), "{case}");
                }
            }
        }
    }
}

#[test]
fn nobody_gets_a_name_by_evidence_before_what_people_decided_was_read() {
    let mut driver = Driver::owner_only();
    driver.update(&[says(0, 0.0, 6.0)]);
    let left = driver.conversations[0].handle_left(LANE, &mut Vec::new());
    let join = || Join { memory: left.memory.clone(), ..Join::new(Generation(2), rate(), owner_only()) };
    let heard = |scheduler: &mut Scheduler, out: &mut Vec<Event>| {
        let ring = driver.lane().timeline.range();
        let offers = vec![says(0, 6.0, 6.5).offer(&driver.lane().timeline)];
        let batch = Batch { generation: Generation(2), scope: Scope::new(""), ring, offers };
        scheduler.handle_batch(LANE, batch, driver.now, out);
    };
    let names = |out: &[Event]| {
        let named = |event: &&Event| matches!(event, Event::Published { change: Change::Identity, .. });
        out.iter().filter(named).count()
    };

    let mut scheduler = Scheduler::new(Limits::default(), policy());
    scheduler.handle_unread();
    scheduler.handle_joined(LANE, join()).unwrap();
    let mut out = Vec::new();
    heard(&mut scheduler, &mut out);
    scheduler.handle_gallery(LANE, gallery(), &mut out);
    assert_eq!(names(&out), 0);
    scheduler.handle_confirmed(&mut out);
    assert_eq!(names(&out), 1, "nobody had decided anything");

    let mut scheduler = Scheduler::new(Limits::default(), policy());
    scheduler.handle_unread();
    scheduler.handle_joined(LANE, join()).unwrap();
    let mut receipt = Receipt::default();
    let correction = Correction { voice: voice_in("", 0), subject: Subject::Voice, ruling: not_me() };
    receipt.correct(&correction).unwrap();
    let mut out = Vec::new();
    heard(&mut scheduler, &mut out);
    scheduler.handle_receipt(receipt, &mut out);
    assert_eq!(names(&out), 0, "and here they had");
}
