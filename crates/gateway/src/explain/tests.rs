//! Goal: each reason for having no name is told, with its numbers and what would change it.
//! Method: states of a voice as the core gives them; the sentences are compared as they stand.

use matcher_core::policy::{Print, Role};
use matcher_core::queue::NearOwner;
use matcher_core::receipt::{Named, Source};
use matcher_core::{Embedding, ExitReason, Identity, Origin, Scope, SegmentId, Speaker, VoiceState};

use super::*;

fn gallery() -> Gallery {
    let print = |id: &str, name: &str, role| Print {
        person: PersonId::new(id),
        name: name.into(),
        role,
        embedding: Embedding::new(&[1.0, 0.0]).unwrap(),
        is_pinned: false,
    };
    Gallery::new(vec![print("anna", "Anna", Role::Owner), print("ben", "Ben", Role::Person)])
}

const RULES: Rules = Rules {
    policy: Policy { threshold: 0.55, ..crate::simulate::POLICY },
    evidence_seconds: 5.0,
    attempts: 12,
    renewal_seconds: None,
};

fn around(gallery: &Gallery) -> Around<'_> {
    Around { rules: RULES, gallery, attempts_left: 10, tokens: 14.0, next_token: Duration::ZERO, is_engine_ready: true }
}

/// Heard for six seconds in two clips.
fn heard(status: Status, distances: &[(&str, f64)]) -> Explanation {
    let state = VoiceState {
        speaker: Speaker(3),
        scope: Scope::new(""),
        status,
        identity: None,
        distance: distances.first().map(|(_, distance)| *distance),
        runner_up: distances.get(1).map(|(_, distance)| *distance),
        evidence_seconds: 6.0,
        segment: Some(SegmentId::new("s1")),
    };
    Explanation {
        state,
        candidates: distances.iter().map(|(id, distance)| (PersonId::new(id), *distance)).collect(),
        clips: vec![4.0, 2.0],
        pending_seconds: 0.5,
        needed_seconds: 2.0,
        last_exit: None,
        attempts: 2,
        in_work: false,
        queued_since: None,
        failed: 0,
        near_owner: NearOwner::Far,
        ruled: Standing::Free,
        is_authority_read: true,
    }
}

fn named(person: &str, name: &str, origin: Origin) -> Option<Identity> {
    Some(Identity { person: PersonId::new(person), name: name.into(), origin })
}

#[test]
fn a_stranger_hears_who_is_nearest_and_how_near_a_name_is() {
    let gallery = gallery();
    let told = live(&heard(Status::NoMatch, &[("ben", 0.713), ("anna", 0.9)]), &around(&gallery));
    assert_eq!(
        told.summary,
        "Nobody who is enrolled is near enough: Ben is nearest at 0.71, and a name needs less than 0.55."
    );
    assert_eq!(
        told.heard,
        [
            "6.0 s of its speech are kept as evidence, in 2 clips: 4.0 s, 2.0 s.",
            "0.5 s of fresh speech wait to be examined."
        ]
    );
    assert_eq!(told.asked, ["2 of 12 questions to the model are spent on this number."]);
    assert_eq!(
        told.came_out,
        [
            "Distances to the nearest of 2 people: Ben 0.71, Anna 0.90.",
            "A name needs less than 0.55, and the next person at least 0.10 farther."
        ]
    );
    assert_eq!(told.missing, ["A distance below 0.55.", "1.5 s of fresh speech for the next question."]);
    assert_eq!(told.would_change.len(), 3, "{told:?}");
    assert!(told.would_change[1].starts_with("Enrolling who this is"), "{told:?}");
}

#[test]
fn two_people_who_are_too_close_are_both_named() {
    let gallery = gallery();
    let told = live(&heard(Status::NoMatch, &[("anna", 0.50), ("ben", 0.56)]), &around(&gallery));
    assert_eq!(told.summary, "It could be Anna (0.50) or Ben (0.56): a name needs 0.10 between them.");
    assert!(told.missing.contains(&"0.10 between the nearest two.".to_owned()), "{told:?}");
}

#[test]
fn too_little_speech_says_how_much_is_missing() {
    let gallery = gallery();
    let mut voice = heard(Status::Pending, &[]);
    voice.state.evidence_seconds = 2.1;
    voice.clips = vec![2.1];
    voice.last_exit = Some(ExitReason::WindowShorterThanMinimum);
    let told = live(&voice, &around(&gallery));
    assert_eq!(told.summary, "Too little was heard for a verdict: 2.1 s of 5.0 s.");
    assert_eq!(told.missing[0], "2.9 s of examined speech.");
    assert_eq!(
        told.heard.last().unwrap(),
        "Its latest update that was not examined: too little fresh speech for a question yet."
    );
}

#[test]
fn a_spent_budget_says_which_cap_and_when_a_token_is_back() {
    let gallery = gallery();
    let spent = Around { attempts_left: 0, tokens: 0.4, next_token: Duration::from_secs(9), ..around(&gallery) };
    let told = live(&heard(Status::NoMatch, &[("ben", 0.8)]), &spent);
    assert_eq!(told.asked[0], "12 of 12 questions to the model are spent on this number.");
    assert!(told.missing.contains(&"A question: all 12 of this number are spent.".to_owned()), "{told:?}");
    assert!(told.missing.contains(&"A token of the recording: the next one is there in 9.0 s.".to_owned()), "{told:?}");
    assert_eq!(told.would_change[0], "The next conversation: after a rollover the number has all its questions again.");
    let renewing = Around { rules: Rules { renewal_seconds: Some(30.0), ..RULES }, ..spent };
    let told = live(&heard(Status::NoMatch, &[("ben", 0.8)]), &renewing);
    assert_eq!(told.would_change[0], "30.0 s of fresh speech: the number then has all its questions again.");
}

#[test]
fn what_people_said_comes_before_what_was_measured() {
    let gallery = gallery();
    let mut voice = heard(Status::NotUser, &[("anna", 0.2), ("ben", 0.9)]);
    voice.state.identity = named("ben", "Ben", Origin::Manual);
    let ben = Named { person: PersonId::new("ben"), name: "Ben".into(), role: Role::Person };
    voice.ruled = Standing::Named(ben, Source::Here);
    let told = live(&voice, &around(&gallery));
    assert_eq!(told.summary, "Somebody said that this is Ben.");
    assert!(told.missing.is_empty(), "{told:?}");
    for (ruled, begins) in [
        (Standing::Rejected, "Somebody said that this is not"),
        (Standing::Nobody, "Somebody said that this is nobody"),
        (Standing::Silenced, "Somebody decided about a part"),
    ] {
        let voice = Explanation { ruled, ..heard(Status::NoMatch, &[("anna", 0.2)]) };
        let told = live(&voice, &around(&gallery));
        assert!(told.summary.starts_with(begins) && told.missing.is_empty(), "{told:?}");
    }
}

#[test]
fn a_name_by_evidence_says_its_distances() {
    let gallery = gallery();
    let mut voice = heard(Status::User, &[("anna", 0.31), ("ben", 0.82)]);
    voice.state.identity = named("anna", "Anna", Origin::Automatic);
    let told = live(&voice, &around(&gallery));
    assert_eq!(told.summary, "This is Anna: distance 0.31, and the next person is at 0.82.");
    voice.state.distance = Some(-6e-8);
    assert!(summary(&voice, &around(&gallery)).starts_with("This is Anna: distance 0.00,"), "rounding below nothing");
    assert!(told.missing.is_empty());
}

#[test]
fn what_stands_in_the_way_of_everybody_is_told_to_each() {
    let nobody = Gallery::default();
    let told = live(&heard(Status::Pending, &[]), &around(&nobody));
    assert_eq!(told.summary, "Nobody is enrolled, so there is nobody whom it could be.");
    assert_eq!(told.missing[0], "An enrolled person.");

    let gallery = gallery();
    let unread = Explanation { is_authority_read: false, ..heard(Status::Pending, &[]) };
    assert!(summary(&unread, &around(&gallery)).starts_with("What people decided cannot be read"));
    let down = Around { is_engine_ready: false, ..around(&gallery) };
    let told = live(&heard(Status::NoMatch, &[("ben", 0.8)]), &down);
    assert!(told.missing.contains(&"A worker that can run the model: none is up.".to_owned()), "{told:?}");
    let failed = Explanation { failed: 2, in_work: true, ..heard(Status::NoMatch, &[("ben", 0.8)]) };
    let told = live(&failed, &around(&gallery));
    assert_eq!(
        told.asked[1..],
        ["Of those asked about this voice, 2 brought no voiceprint; they stay spent.", "One is under way."]
    );
}

#[test]
fn an_ended_voice_says_what_it_came_to() {
    let past =
        Past { name: None, is_decided: false, distances: (Some(0.7), Some(0.8)), evidence_seconds: 3.0, attempts: 2 };
    let told = ended(&past, &RULES);
    assert_eq!(told.summary, "It got no name.");
    assert_eq!(told.missing, ["2.0 s of examined speech.", "A distance below 0.55."]);
    let close = Past { distances: (Some(0.5), Some(0.55)), evidence_seconds: 6.0, ..past.clone() };
    assert_eq!(ended(&close, &RULES).missing, ["0.10 between the nearest two."]);
    let told = ended(&Past { name: Some("Anna".into()), is_decided: true, ..past.clone() }, &RULES);
    assert_eq!((told.summary.as_str(), told.missing.len()), ("Somebody said that this is Anna.", 0));
    let told = ended(&Past { is_decided: true, ..past }, &RULES);
    assert!(told.summary.starts_with("Somebody said that this is nobody") && told.missing.is_empty(), "{told:?}");
}
