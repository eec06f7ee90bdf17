//! Goal: corrections are law: they hold at once, outlive the evidence, and are taken back only by newer ones.
//! Method: whole voices through the driver; receipts as a store would give them.

#![cfg(test)]

mod driver;

use driver::people::{is, not_me, segment, voice_in};
use driver::*;
use matcher_core::receipt::{Entry, Reach, Receipt, Ruling, SegmentEntry, Source, Standing, Subject};
use matcher_core::{Ending, Event, ExitReason, Origin, Role, SegmentId, Status, Target};

use Answer::{Held, Vector};

fn correct(driver: &mut Driver, speaker: u32, subject: Subject, ruling: Ruling) {
    driver.correct(voice_in("", speaker), subject, ruling);
}

// B3.52
#[test]
fn one_segment_that_a_person_calls_the_owner_reserves_the_owner() {
    let mut driver = Driver::owner_only();
    driver.by_default(Vector(OWNER));
    correct(&mut driver, 1, segment("s", Reach::SegmentOnly), is("user", Role::Owner));
    driver.update(&[says(2, 0.0, 6.0)]);
    assert_eq!((driver.person(2), driver.status(2)), (None, Status::Ambiguous));
    assert_eq!(driver.decided(Target::Owner, Ending::Ambiguous), 1);
}

// B3.53
#[test]
fn a_rejected_voice_with_a_perfect_row_does_not_contend() {
    let mut driver = Driver::owner_only();
    driver.by_default(Vector(OWNER));
    driver.update(&[says(4, 0.0, 6.0)]);
    correct(&mut driver, 4, Subject::Voice, not_me());
    driver.update(&[says(5, 10.0, 16.0)]);
    assert_eq!((driver.person(5), driver.status(4)), (Some("user".into()), Status::NoMatch));
}

// B6.83
#[test]
fn a_decided_voice_exits_once_and_asks_nothing_of_the_model() {
    for (ruling, reason, person) in [
        (not_me(), ExitReason::Rejected, None),
        (is("p1", Role::Person), ExitReason::ManualDecision, Some("p1".to_owned())),
    ] {
        let mut driver = Driver::new();
        driver.by_default(Vector(OWNER));
        correct(&mut driver, 0, Subject::Voice, ruling);
        driver.update(&[says(0, 0.0, 10.0)]);
        assert_eq!(driver.exited(reason), 1);
        assert_eq!((driver.person(0), driver.attempts(0)), (person, 0));
    }
}

// B6.83, when the decision comes while the query runs.
#[test]
fn a_decision_that_comes_while_a_query_runs_holds_and_its_attempt_stays_spent() {
    for (ruling, reason, person, evidence) in [
        (not_me(), ExitReason::Rejected, None, 0.0),
        (is("p1", Role::Person), ExitReason::ManualDecision, Some("p1".to_owned()), 10.0),
    ] {
        let mut driver = Driver::new();
        driver.script(0, [Held]);
        driver.update(&[says(0, 0.0, 10.0)]);
        correct(&mut driver, 0, Subject::Voice, ruling);
        driver.extract(0, OWNER);
        assert_eq!((driver.exited(reason), driver.attempts(0)), (1, 1));
        assert_eq!((driver.person(0), driver.evidence(0)), (person, evidence));
        assert_eq!(driver.decided(Target::Owner, Ending::Accepted), 0);
    }
}

// B7.89
#[test]
fn a_rejected_voice_has_no_candidates() {
    let mut driver = Driver::owner_only();
    driver.by_default(Vector(OWNER));
    driver.update(&[says(4, 0.0, 6.0)]);
    assert_eq!(driver.explain(4).candidates.len(), 1);
    correct(&mut driver, 4, Subject::Voice, not_me());
    assert_eq!(driver.explain(4).candidates, []);
}

// B7.90
#[test]
fn a_name_that_is_rejected_is_taken_back_at_once() {
    let mut driver = Driver::owner_only();
    driver.by_default(Vector(OWNER));
    driver.update(&[says(4, 0.0, 6.0), says(7, 0.0, 0.5)]);
    assert_eq!(driver.person(4), Some("user".into()));
    correct(&mut driver, 4, Subject::Voice, not_me());
    assert_eq!((driver.person(4), driver.status(4)), (None, Status::NoMatch));
    assert_eq!(driver.retracted().len(), 1);
    driver.update(&[says(4, 10.0, 16.0)]);
    assert_eq!((driver.person(4), driver.attempts(4)), (None, 1), "and what it says later asks nothing of the model");
}

// B7.91
#[test]
fn the_rejection_of_one_voice_leaves_the_others_alone() {
    let mut driver = Driver::new();
    driver.script(4, [Vector(OWNER)]);
    driver.script(7, [Vector(SARAH)]);
    driver.update(&[says(4, 0.0, 6.0), says(7, 10.0, 16.0)]);
    correct(&mut driver, 4, Subject::Voice, not_me());
    assert_eq!((driver.person(4), driver.person(7)), (None, Some("p1".into())));
}

// B7.92
#[test]
fn a_voice_that_is_named_after_its_rejection_has_the_name() {
    let mut driver = Driver::new();
    driver.update(&[says(4, 0.0, 0.5)]);
    correct(&mut driver, 4, Subject::Voice, not_me());
    correct(&mut driver, 4, Subject::Voice, is("p1", Role::Person));
    let voice = driver.voice(4).unwrap();
    assert_eq!((voice.status, voice.identity.map(|identity| identity.origin)), (Status::NotUser, Some(Origin::Manual)));
    correct(&mut driver, 4, Subject::Voice, Ruling::IsNobody);
    assert_eq!((driver.person(4), driver.status(4)), (None, Status::NoMatch));
}

// B7.94, as a rejection for one segment alone touches that segment alone.
#[test]
fn a_rejection_of_one_segment_alone_clears_that_segment_and_one_of_the_voice_clears_all() {
    let mut driver = Driver::owner_only();
    driver.update(&[says(4, 0.0, 5.0).named("s0")]);
    driver.update(&[says(4, 5.0, 6.0).named("s1")]);
    correct(&mut driver, 4, segment("s0", Reach::SegmentOnly), not_me());
    assert_eq!((driver.person(4), driver.retracted().len()), (Some("user".into()), 0));
    let rejected = |driver: &Driver, id: &str| {
        let receipt = driver.scheduler().receipt();
        let mut own = receipt.segments().filter(|(segment, _)| segment.as_str() == id);
        let is_own = own.any(|(_, held)| matches!(held.entry.ruling, Ruling::Not(_)));
        is_own || receipt.standing(&voice_in("", 4)) == Standing::Rejected
    };
    assert_eq!(["s0", "s1", "later"].map(|id| rejected(&driver, id)), [true, false, false]);

    correct(&mut driver, 4, Subject::Voice, not_me());
    assert_eq!((driver.person(4), driver.retracted()), (None, vec![(4, "s1".to_owned())]));
    assert_eq!(["s0", "s1", "later"].map(|id| rejected(&driver, id)), [true, true, true]);
}

#[test]
fn a_rejection_wins_over_a_name_of_the_same_moment() {
    let entry = |ruling| Entry { generation: 1, ruling, source: Source::Here };
    let voices = [(voice_in("", 4), entry(is("user", Role::Owner)))].into();
    let rejected = SegmentEntry { voice: voice_in("", 4), reach: Reach::Voice, entry: entry(not_me()) };
    let receipt = Receipt::restore(1, voices, [(SegmentId::new("s"), rejected)]).unwrap();
    let mut driver = Driver::owner_only();
    driver.update(&[says(4, 0.0, 6.0)]);
    driver.hear_receipt(0, receipt);
    assert_eq!((driver.person(4), driver.status(4)), (None, Status::NoMatch));
}

// B7.97
#[test]
fn a_segments_name_silences_its_voice_and_names_nobody() {
    let mut driver = Driver::new();
    driver.by_default(Vector(OWNER));
    correct(&mut driver, 1, segment("s1", Reach::Voice), is("p1", Role::Person));
    driver.update(&[says(1, 0.0, 6.0)]);
    assert_eq!((driver.person(1), driver.named().len()), (None, 0));
    assert_eq!(driver.exited(ExitReason::ManualDecision), 1);
}

// A14, A15
#[test]
fn a_silenced_voice_keeps_the_name_that_its_evidence_gave_it_only_as_long_as_that_holds() {
    for change in ["another voice claims the owner", "the owner is deleted"] {
        let mut driver = Driver::owner_only();
        driver.by_default(Vector(OWNER));
        driver.update(&[says(1, 0.0, 6.0)]);
        correct(&mut driver, 1, segment("s1", Reach::Voice), is("p1", Role::Person));
        assert_eq!(driver.person(1), Some("user".into()));
        match change {
            "the owner is deleted" => driver.enrol(sarah_only()),
            _ => driver.update(&[says(2, 10.0, 16.0)]),
        }
        assert_eq!((driver.person(1), driver.retracted().len()), (None, 1), "{change}");
        driver.enrol(owner_only());
        correct(&mut driver, 2, Subject::Voice, not_me());
        assert_eq!(driver.person(1), None, "and it does not get it back");
    }
}

// B7.98
#[test]
fn a_name_for_one_segment_alone_leaves_its_voice_to_its_evidence() {
    let mut driver = Driver::new();
    driver.by_default(Vector(SARAH));
    correct(&mut driver, 1, segment("s1", Reach::SegmentOnly), is("p2", Role::Person));
    driver.update(&[says(1, 0.0, 6.0)]);
    assert_eq!(driver.person(1), Some("p1".into()));
}

fn published(driver: &Driver) -> usize {
    driver.events.iter().filter(|event| matches!(event, Event::Published { .. })).count()
}

// B7.104
#[test]
fn nothing_new_is_published_when_what_people_decided_cannot_be_read() {
    let mut driver = Driver::owner_only();
    driver.script(0, [Held]);
    driver.update(&[says(0, 0.0, 6.0)]);
    driver.extract_unauthorised(0, OWNER);
    assert_eq!((driver.person(0), published(&driver)), (None, 0));
    assert_eq!((driver.exited(ExitReason::AuthorityUnavailable), driver.attempts(0)), (1, 1));
    assert!((driver.evidence(0) - 6.0).abs() < 1e-9, "the evidence is kept for the next verdict");
}

// B7.103
#[test]
fn a_known_rejection_holds_also_when_nothing_more_can_be_read() {
    let mut driver = Driver::owner_only();
    driver.script(0, [Held]);
    driver.update(&[says(0, 0.0, 6.0)]);
    correct(&mut driver, 0, Subject::Voice, not_me());
    driver.extract_unauthorised(0, OWNER);
    assert_eq!((driver.person(0), driver.status(0)), (None, Status::NoMatch));
}

#[test]
fn an_older_receipt_than_the_known_one_changes_nothing() {
    let mut driver = Driver::new();
    driver.update(&[says(4, 0.0, 0.5)]);
    let old = driver.scheduler().receipt().clone();
    correct(&mut driver, 4, Subject::Voice, is("p1", Role::Person));
    driver.conversations[0].handle_receipt(old, &mut Vec::new());
    assert_eq!(driver.person(4), Some("p1".into()));
}
