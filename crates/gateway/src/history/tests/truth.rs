//! Goal: a segment's truth is the newest that people decided about it, and only then what the evidence said.
//! Method: a table: a short history of corrections by hand, and what then holds for a segment and its voice.

use matcher_core::receipt::{Correction, Named, Reach, Receipt, Rejection, Ruling, Subject, VoiceName};
use matcher_core::{PersonId, Role, SegmentId};

use super::{SCOPE, voice};
use crate::history::truth::{Manual, Names, Rulings, Source, Truth, voice_name};
use crate::store::VoiceRecord;

fn is(person: &str) -> Ruling {
    let role = if person == "anna" { Role::Owner } else { Role::Person };
    Ruling::Is(Named { person: PersonId::new(person), name: format!("{person} then").into(), role })
}

fn not_me() -> Ruling {
    Ruling::Not(Rejection::NotMe)
}

fn of(segment: &str, reach: Reach) -> Subject {
    Subject::Segments(vec![SegmentId::new(segment)], reach)
}

fn receipt(history: &[(u32, Subject, Ruling)]) -> Receipt {
    let mut receipt = Receipt::default();
    for (speaker, subject, ruling) in history {
        let (subject, ruling) = (subject.clone(), ruling.clone());
        receipt.correct(&Correction { voice: name_of(*speaker), subject, ruling }).unwrap();
    }
    receipt
}

fn name_of(speaker: u32) -> VoiceName {
    voice_name("phone", speaker, SCOPE)
}

fn names() -> Names {
    [("anna", "Anna"), ("ben", "Ben")].map(|(id, name)| (id.to_owned(), name.to_owned())).into()
}

/// Status, person and decision.
type Told<'a> = (&'a str, Option<&'a str>, Source, Option<(u64, bool)>);

fn told(truth: &Truth) -> Told<'_> {
    let manual = truth.manual.map(|Manual { generation, segment_only }| (generation, segment_only));
    (&truth.status, truth.person_id.as_deref(), truth.source, manual)
}

/// What holds for the segments "s1" and "s2" of voice 1, and for the voice, which the evidence takes for Ben.
fn check(history: &[(u32, Subject, Ruling)], s1: Told<'_>, s2: Told<'_>, whole: Told<'_>) {
    let (receipt, names, record) = (receipt(history), names(), voice(1, "not_user", Some("ben")));
    let rulings = Rulings::of(&name_of(1), &receipt, &names);
    assert_eq!(told(&rulings.of_segment("s1", Some(&record))), s1, "the first segment: {history:?}");
    assert_eq!(told(&rulings.of_segment("s2", Some(&record))), s2, "the second segment: {history:?}");
    assert_eq!(told(&rulings.of_voice(Some(&record))), whole, "the voice: {history:?}");
}

#[test]
fn the_newest_decision_that_speaks_for_a_segment_is_its_truth() {
    let ben = ("not_user", Some("ben"), Source::Automatic, None);
    let anna = |generation, only| ("user", Some("anna"), Source::Manual, Some((generation, only)));
    let nobody = |generation, only| ("no_match", None, Source::Manual, Some((generation, only)));
    let (s1_alone, s1) = (|| of("s1", Reach::SegmentOnly), || of("s1", Reach::Voice));
    let wide = || Subject::Voice;

    check(&[], ben, ben, ben);
    check(&[(1, wide(), is("anna"))], anna(1, false), anna(1, false), anna(1, false));
    check(&[(1, wide(), Ruling::IsNobody)], nobody(1, false), nobody(1, false), nobody(1, false));
    check(&[(1, wide(), not_me())], nobody(1, false), nobody(1, false), nobody(1, false));
    // A segment's entry is for itself, and what the voice said stays with the others.
    check(&[(1, s1_alone(), is("anna"))], anna(1, true), ben, ben);
    check(&[(1, s1(), is("anna"))], anna(1, false), ben, ben);
    check(&[(1, s1_alone(), not_me())], nobody(1, true), ben, ben);
    // A rejection that speaks for the voice clears every segment.
    check(&[(1, s1(), not_me())], nobody(1, false), nobody(1, false), nobody(1, false));
    check(
        &[(1, of("s2", Reach::SegmentOnly), is("anna")), (1, s1(), not_me())],
        nobody(2, false),
        nobody(2, false),
        nobody(2, false),
    );
    // The newest wins, whichever way round.
    check(&[(1, wide(), is("anna")), (1, s1_alone(), not_me())], nobody(2, true), anna(1, false), anna(1, false));
    check(&[(1, s1_alone(), not_me()), (1, wide(), is("anna"))], anna(2, false), anna(2, false), anna(2, false));
    check(&[(1, wide(), not_me()), (1, s1(), is("anna"))], anna(2, false), nobody(1, false), nobody(1, false));
    check(&[(1, wide(), is("anna")), (1, s1(), not_me())], nobody(2, false), nobody(2, false), nobody(2, false));
    let rejected = |subject: Subject| [(1, wide(), not_me()), (1, subject, not_me())];
    check(&rejected(s1_alone()), nobody(2, true), nobody(1, false), nobody(1, false));
    check(&rejected(s1()), nobody(2, false), nobody(2, false), nobody(2, false));
    // Another voice's decision is another voice's.
    check(&[(2, wide(), not_me())], ben, ben, ben);
}

#[test]
fn a_segment_entry_that_names_another_voice_says_nothing_about_this_one() {
    let (receipt, names) = (receipt(&[(2, of("s1", Reach::SegmentOnly), is("anna"))]), names());
    let rulings = Rulings::of(&name_of(1), &receipt, &names);
    assert_eq!(rulings.of_segment("s1", Some(&voice(1, "no_match", None))).status, "no_match");
}

#[test]
fn a_decision_about_another_recordings_stream_of_the_same_name_says_nothing_about_this_one() {
    let (receipt, names) = (receipt(&[(1, Subject::Voice, is("anna"))]), names());
    let elsewhere = Rulings::of(&voice_name("tablet", 1, SCOPE), &receipt, &names);
    assert_eq!(told(&elsewhere.of_voice(None)), ("pending", None, Source::None, None));
}

// B11.140
#[test]
fn a_verdict_of_nobody_clears_an_automatic_name_and_no_name_that_people_gave_or_that_was_carried() {
    let (names, nobody) = (names(), voice(1, "no_match", None));
    let ben = Named { person: PersonId::new("ben"), name: "Ben".into(), role: Role::Person };
    let (mut carried, manual) = (receipt(&[]), receipt(&[(1, Subject::Voice, is("anna"))]));
    carried.carry(&[(name_of(1), ben)].into()).unwrap();
    let then = |receipt: &Receipt, record: &VoiceRecord| {
        let truth = Rulings::of(&name_of(1), receipt, &names).of_segment("s1", Some(record));
        (truth.person_id, truth.source)
    };
    let named = |person: &str| Some(person.to_owned());
    let automatic = voice(1, "not_user", Some("ben"));
    assert_eq!(then(&receipt(&[]), &automatic), (named("ben"), Source::Automatic));
    assert_eq!(then(&receipt(&[]), &nobody), (None, Source::Automatic));
    assert_eq!(then(&manual, &nobody), (named("anna"), Source::Manual));
    assert_eq!(then(&carried, &nobody), (named("ben"), Source::Carried));
}

#[test]
fn a_name_that_a_rollover_brought_along_is_told_as_carried() {
    let mut receipt = receipt(&[]);
    let ben = Named { person: PersonId::new("ben"), name: "Ben".into(), role: Role::Person };
    receipt.carry(&[(name_of(1), ben)].into()).unwrap();
    let names = names();
    let truth = Rulings::of(&name_of(1), &receipt, &names).of_segment("s1", None);
    assert_eq!(told(&truth), ("not_user", Some("ben"), Source::Carried, Some((1, false))));
    let elsewhere = Rulings::of(&voice_name("phone", 1, "stream:1"), &receipt, &names).of_segment("s1", None);
    assert_eq!(told(&elsewhere), ("pending", None, Source::None, None), "it holds on its provider stream alone");
}

#[test]
fn once_a_person_says_who_the_owner_is_no_evidence_says_it() {
    let owner = voice(1, "user", Some("anna"));
    let (names, reserved) = (names(), receipt(&[(2, of("s9", Reach::SegmentOnly), is("anna"))]));
    let truth = Rulings::of(&name_of(1), &reserved, &names).of_segment("s1", Some(&owner));
    assert_eq!(told(&truth), ("ambiguous", None, Source::Automatic, None));
    // What a voice was called before a part of it was decided stays, as in a live conversation.
    let silenced = receipt(&[(1, of("s9", Reach::Voice), is("anna"))]);
    let truth = Rulings::of(&name_of(1), &silenced, &names).of_segment("s1", Some(&owner));
    assert_eq!(told(&truth), ("user", Some("anna"), Source::Automatic, None));
    let free = receipt(&[]);
    let truth = Rulings::of(&name_of(1), &free, &names).of_segment("s1", Some(&owner));
    assert_eq!(told(&truth), ("user", Some("anna"), Source::Automatic, None));
}

#[test]
fn names_are_todays_and_evidence_names_nobody_who_was_deleted() {
    let names = names();
    let receipt = receipt(&[(1, Subject::Voice, is("ben")), (2, Subject::Voice, is("gone"))]);
    let name = |speaker| Rulings::of(&name_of(speaker), &receipt, &names).of_voice(None).person_name;
    assert_eq!((name(1).as_deref(), name(2).as_deref()), (Some("Ben"), Some("gone then")));
    let heard = Rulings::of(&name_of(3), &receipt, &names).of_voice(Some(&voice(3, "not_user", Some("gone"))));
    assert_eq!(told(&heard), ("no_match", None, Source::Automatic, None));
}

#[test]
fn a_voice_that_was_not_examined_comes_from_nowhere() {
    let (receipt, names) = (receipt(&[]), names());
    let rulings = Rulings::of(&name_of(1), &receipt, &names);
    assert_eq!(told(&rulings.of_voice(Some(&voice(1, "pending", None)))), ("pending", None, Source::None, None));
}
