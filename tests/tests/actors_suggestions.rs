//! Goal: who comes close is suggested and never named, and a provider that gives everybody one number is noticed.
//! Method: real actors on virtual time, a scripted engine; a pinned person at a right angle to the owner.

use matcher_core::{Embedding, Gallery, PersonId, Print, Role, Suggestions};
use rollcall_tests::actors::{Answer, Client, World, of_type, run};
use serde_json::{Value, json};

const CLOSE: i16 = 100;
const FAR: i16 = 50;

fn print(id: &str, role: Role, vector: [f32; 2], is_pinned: bool) -> Print {
    let embedding = Embedding::new(&vector).expect("a unit vector");
    Print { person: PersonId::new(id), name: id.into(), role, embedding, is_pinned }
}

fn world(suggestions: Suggestions, is_pinned: bool) -> World {
    let world = World::with(8, |settings| settings.policy.suggestions = suggestions);
    let owner = print("user", Role::Owner, [1.0, 0.0], false);
    world.enrol(Gallery::new(vec![owner, print("p1", Role::Person, [0.0, 1.0], is_pinned)]));
    // 0.67 from Sarah on the side away from the owner, and far from both.
    world.script(CLOSE, &[Answer::Vector(vec![-(1.0_f32 - 0.33 * 0.33).sqrt(), 0.33])]);
    world.script(FAR, &[Answer::Vector(vec![-1.0, 0.0])]);
    world
}

async fn told(client: &mut Client) -> (Vec<Value>, Vec<Value>) {
    let events = client.events().await;
    let of = |kind| of_type(&events, kind).into_iter().cloned().collect();
    (of("suggestion"), of("speaker"))
}

const ON: Suggestions = Suggestions::On { bound: 0.70, margin: 0.06 };

// B11.136
#[test]
fn a_pinned_person_who_comes_close_is_suggested_once_and_taken_back_when_they_do_not_any_more() {
    run(async {
        let world = world(ON, true);
        let mut client = world.client("recording", "talk").await;
        client.say(1, CLOSE, 6.0).await;
        let (suggested, speakers) = told(&mut client).await;
        assert_eq!(suggested, [json!({"type": "suggestion", "speaker": 1, "person_id": "p1", "level": 2})]);
        assert_eq!((&speakers[0]["status"], &speakers[0]["person_id"]), (&json!("no_match"), &Value::Null));
        client.say(1, CLOSE, 2.0).await;
        assert_eq!(told(&mut client).await.0, Vec::<Value>::new(), "once a change");
        client.say(1, FAR, 6.0).await;
        let retracted = json!({"type": "suggestion", "speaker": 1, "person_id": "p1", "level": 2, "retracted": true});
        assert_eq!(told(&mut client).await.0, [retracted]);
    });
}

// B11.136
#[test]
fn nobody_is_suggested_unpinned_or_unasked() {
    run(async {
        for (suggestions, is_pinned) in [(ON, false), (Suggestions::Off, true)] {
            let world = world(suggestions, is_pinned);
            let mut client = world.client("recording", "talk").await;
            client.say(1, CLOSE, 6.0).await;
            assert_eq!(told(&mut client).await.0, Vec::<Value>::new());
        }
    });
}

// B11.139
#[test]
fn one_number_for_everybody_is_counted_once() {
    run(async {
        let world = world(Suggestions::Off, false);
        let mut client = world.client("recording", "talk").await;
        for _ in 0..14 {
            client.say(0, FAR, 2.0).await;
        }
        assert_eq!(world.metric("omi_live_speaker_collapse_total"), 1.0);
    });
}
