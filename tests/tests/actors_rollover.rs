//! Goal: a rollover takes along exactly what may be carried, and nothing that somebody decided against.
//! Method: real actors and the real store on virtual time, a scripted engine; corrections that arrive during a reading.

use gateway::store::Store as _;
use matcher_core::receipt::{Correction, Named, Rejection, Ruling, Subject, VoiceName};
use matcher_core::{PersonId, Role, Scope, Speaker};
use rollcall_tests::actors::{Answer, Client, World, at_distance, gallery, of_type, pass, run, settle};
use serde_json::{Value, json};

const OWNER: i16 = 200;
const STRANGER: i16 = 100;
const STREAM: &str = "stream:0";

fn world() -> World {
    let world = World::new(8);
    world.script(OWNER, &[Answer::Vector(at_distance(0.1))]);
    world.script(STRANGER, &[Answer::Vector(vec![-1.0, 0.1])]);
    world
}

/// A socket on a stream that it names, as a client does whose provider outlives a conversation.
async fn client(world: &World) -> Client {
    world.client_of(STREAM, "recording", "talk").await
}

async fn roll_over(client: &mut Client, to: &str, carry: bool) {
    client.events().await;
    client.send(json!({"type": "rollover", "conversation_id": to, "carry": carry})).await;
    assert_eq!(client.event("ready").await["conversation_id"], to);
}

fn rolled_over(world: &World, carried: &str, target: &str) -> f64 {
    world.metric(&format!("omi_live_speaker_rollover_total{{carried=\"{carried}\",target=\"{target}\"}}"))
}

fn speakers(events: &[Value]) -> Vec<(&str, &str)> {
    of_type(events, "speaker")
        .into_iter()
        .map(|event| (event["status"].as_str().unwrap_or(""), event["origin"].as_str().unwrap_or("")))
        .collect()
}

fn of_owner(ruling: Ruling) -> Correction {
    let voice = VoiceName { speaker: Speaker(1), scope: Scope::of("recording", STREAM) };
    Correction { voice, subject: Subject::Voice, ruling }
}

// B8.108
#[test]
fn the_owner_is_known_at_the_first_word_of_the_next_conversation_and_asks_nothing_of_the_model() {
    run(async {
        let world = world();
        let mut client = client(&world).await;
        client.say(1, OWNER, 5.0).await;
        client.spend(2, STRANGER, 12).await;
        let asked = world.queries().len();
        roll_over(&mut client, "next", true).await;
        assert_eq!(speakers(&client.events().await), [], "nothing is told before the voice is heard");
        client.say(1, OWNER, 0.5).await;
        let events = client.events().await;
        assert_eq!(speakers(&events), [("user", "carried")]);
        assert_eq!(of_type(&events, "speaker")[0]["budget"]["voice_attempts_left"], 11, "its attempts go on");
        assert_eq!(world.queries().len(), asked);
        assert_eq!((rolled_over(&world, "automatic", "owner"), rolled_over(&world, "none", "owner")), (1.0, 0.0));
        client.say(2, STRANGER, 2.0).await;
        assert_eq!(world.queries().len(), asked + 1, "the stranger's attempts start anew");
    });
}

// B8.109
#[test]
fn a_provider_that_restarted_is_another_stream_and_its_owner_is_not_carried() {
    run(async {
        let world = world();
        let mut client = client(&world).await;
        client.say(1, OWNER, 5.0).await;
        client.send(json!({"type": "provider", "name": "any", "audio_offset": 5.0})).await;
        roll_over(&mut client, "next", true).await;
        client.say(1, OWNER, 0.5).await;
        assert_eq!(speakers(&client.events().await), []);
        assert_eq!((rolled_over(&world, "automatic", "owner"), rolled_over(&world, "none", "owner")), (0.0, 1.0));
    });
}

// B8.114
#[test]
fn a_rollover_that_carries_nothing_counts_nothing() {
    run(async {
        let world = world();
        let mut client = client(&world).await;
        client.say(1, OWNER, 5.0).await;
        roll_over(&mut client, "next", false).await;
        client.say(1, OWNER, 0.5).await;
        assert_eq!(speakers(&client.events().await), []);
        let counted = ["manual", "automatic", "none"].map(|carried| rolled_over(&world, carried, "owner"));
        assert_eq!(counted, [0.0; 3]);
    });
}

// B7.102, B8.109
#[test]
fn a_rejection_that_arrives_while_the_conversation_before_is_read_holds() {
    run(async {
        let world = world();
        let mut client = client(&world).await;
        client.say(1, OWNER, 5.0).await;
        client.events().await;
        world.correct_during_next_reading("talk", of_owner(Ruling::Not(Rejection::NotMe)));
        roll_over(&mut client, "next", true).await;
        assert!(world.store.has_happened());
        client.say(1, OWNER, 0.5).await;
        assert_eq!(speakers(&client.events().await), [], "the owner is never told");
        assert_eq!(rolled_over(&world, "none", "owner"), 1.0);
    });
}

// B7.102
#[test]
fn a_rejection_that_arrives_while_a_verdict_is_on_its_way_holds() {
    run(async {
        let world = world();
        let mut client = client(&world).await;
        world.correct_during_next_reading("talk", of_owner(Ruling::Not(Rejection::NotMe)));
        client.say(1, OWNER, 5.0).await;
        assert!(world.store.has_happened());
        let events = client.events().await;
        assert!(speakers(&events).iter().all(|(status, _)| *status == "no_match"), "{events:?}");
        assert_eq!(of_type(&events, "retract").len(), 0, "there was nothing to take back");
    });
}

// B8.110
#[test]
fn nothing_is_carried_by_evidence_while_the_conversation_before_cannot_be_read() {
    run(async {
        let world = world();
        let mut client = client(&world).await;
        client.say(1, OWNER, 5.0).await;
        world.store.set_failing(true);
        roll_over(&mut client, "next", true).await;
        world.store.set_failing(false);
        client.say(1, OWNER, 0.5).await;
        assert_eq!(speakers(&client.events().await), []);
        assert_eq!(rolled_over(&world, "none", "owner"), 1.0);
        client.say(1, OWNER, 5.0).await;
        assert_eq!(speakers(&client.events().await), [("user", "automatic")], "the next evidence names them");
    });
}

// B4.57, B7.96, B7.100
#[test]
fn a_name_that_somebody_gave_goes_along_on_its_stream_with_the_attempts_of_its_voice() {
    run(async {
        let world = world();
        world.enrol(gallery(true));
        let mut client = client(&world).await;
        client.spend(1, STRANGER, 12).await;
        client.spend(2, STRANGER, 3).await;
        client.send(json!({"type": "label", "speaker": 1, "person_id": "p1"})).await;
        roll_over(&mut client, "next", true).await;
        assert_eq!(rolled_over(&world, "manual", "person"), 1.0);
        client.say(1, STRANGER, 0.5).await;
        let events = client.events().await;
        assert_eq!(speakers(&events), [("not_user", "carried")]);
        let speaker = of_type(&events, "speaker")[0];
        assert_eq!((&speaker["person_id"], &speaker["budget"]["voice_attempts_left"]), (&json!("p1"), &json!(0)));
        let receipt = world.service.corrections.read("next").await.unwrap();
        assert_eq!((receipt.generation(), receipt.voices().count()), (1, 1));
        client.send(json!({"type": "label", "speaker": 1, "person_id": null})).await;
        roll_over(&mut client, "third", true).await;
        client.say(1, STRANGER, 0.5).await;
        assert_eq!(speakers(&client.events().await), [], "a newer decision for nobody is not carried");
    });
}

// B7.96
#[test]
fn a_carried_name_of_somebody_who_is_not_enrolled_keeps_its_name() {
    run(async {
        let world = world();
        let mut client = client(&world).await;
        client.say(1, STRANGER, 0.5).await;
        let named = Named { person: PersonId::new("gone"), name: "Gone".into(), role: Role::Person };
        let wish = gateway::live::corrections::Wish::Ruling(Ruling::Is(named.clone()));
        world.service.corrections.correct("talk", of_owner(Ruling::Is(named)), wish).await.unwrap();
        roll_over(&mut client, "next", true).await;
        client.say(1, OWNER, 5.0).await;
        let events = client.events().await;
        let speaker = of_type(&events, "speaker")[0];
        assert_eq!((&speaker["person_id"], &speaker["person_name"]), (&json!("gone"), &json!("Gone")));
        assert_eq!(world.queries().len(), 0, "a decided voice asks nothing of the model");
    });
}

#[test]
fn a_resumed_recording_knows_its_voices_on_their_stream_and_tells_them_when_they_are_heard() {
    run(async {
        let world = world();
        let mut first = client(&world).await;
        first.say(1, OWNER, 5.0).await;
        first.say(2, STRANGER, 3.0).await;
        first.leave().await;
        let mut again = client(&world).await;
        assert_eq!(speakers(&again.events().await), []);
        again.say(1, OWNER, 0.5).await;
        assert_eq!(speakers(&again.events().await), [("user", "automatic")]);
        again.say(2, STRANGER, 2.0).await;
        assert_eq!(speakers(&again.events().await), [("no_match", "automatic")], "three seconds and two are five");
        assert_eq!(world.queries().len(), 3);
        settle().await;
    });
}

#[test]
fn what_a_recording_knew_stays_in_its_conversation() {
    run(async {
        let world = world();
        let mut first = client(&world).await;
        first.say(1, OWNER, 5.0).await;
        first.leave().await;
        let mut elsewhere = world.client_of(STREAM, "recording", "elsewhere").await;
        elsewhere.say(1, OWNER, 0.5).await;
        assert_eq!(speakers(&elsewhere.events().await), []);
    });
}

// A13
#[test]
fn nobody_is_named_from_memory_while_what_people_decided_cannot_be_read() {
    run(async {
        for is_rejected in [false, true] {
            let world = world();
            let mut first = client(&world).await;
            first.say(1, OWNER, 5.0).await;
            if is_rejected {
                first.send(json!({"type": "reject", "speaker": 1, "kind": "not_me"})).await;
                first.event("corrected").await;
            }
            first.leave().await;
            world.store.set_failing(true);
            let mut again = client(&world).await;
            again.say(1, OWNER, 0.5).await;
            assert_eq!(speakers(&again.events().await), []);
            world.store.set_failing(false);
            pass(2.0).await;
            let told = again.events().await;
            let names = of_type(&told, "speaker").into_iter().filter(|event| event["person_id"].is_string());
            assert_eq!(names.count(), usize::from(!is_rejected), "{told:?}");
        }
    });
}

#[test]
fn a_segment_of_the_former_socket_can_still_be_corrected_and_lies_before_the_next_ones() {
    run(async {
        let world = world();
        world.enrol(gallery(true));
        let _somebody_else = world.client("another recording", "talk").await;
        let mut first = client(&world).await;
        first.say(1, STRANGER, 5.0).await;
        first.leave().await;
        pass(60.0).await;
        let mut again = client(&world).await;
        let label =
            json!({"type": "label", "speaker": 1, "person_id": "p1", "segment_ids": ["s1"], "segment_only": true});
        again.send(label).await;
        assert_eq!(again.event("corrected").await["receipt_generation"], 1);
        let part = again.speak(STRANGER, 2.0).await;
        again.offer(vec![json!({"id": "later", "speaker": 1, "start": part.start, "end": part.end})]).await;
        again.leave().await;
        world.service.history.wait_for_disk().await;
        let history = world.store.history("talk").unwrap().expect("the conversation is kept");
        let page = history.pages.iter().find(|page| page.recording == "recording").expect("it spoke");
        let segments = &page.segments;
        assert_eq!(segments.iter().map(|segment| segment.id.as_str()).collect::<Vec<_>>(), ["s1", "later"]);
        assert!(segments[1].start >= 60.0, "{segments:?}");
    });
}

// Settled 2
#[test]
fn two_devices_that_call_their_streams_alike_are_corrected_apart() {
    run(async {
        let world = world();
        world.enrol(gallery(true));
        let (mut phone, mut tablet) =
            (world.client_of(STREAM, "phone", "talk").await, world.client_of(STREAM, "tablet", "talk").await);
        for device in [&mut phone, &mut tablet] {
            device.say(0, STRANGER, 5.0).await; // Each counts its segments from s1.
            device.events().await;
        }
        phone.send(json!({"type": "label", "speaker": 0, "person_id": "p1"})).await;
        phone.event("corrected").await;
        assert_eq!(speakers(&tablet.events().await), [], "the tablet's speaker 0 is another voice");
        for (device, person) in [(&mut tablet, "user"), (&mut phone, "p1")] {
            let segment = json!({"type": "label", "speaker": 0, "person_id": person, "segment_ids": ["s1"]});
            device.send(segment).await;
            device.event("corrected").await;
        }
        let receipt = world.service.corrections.read("talk").await.unwrap();
        assert_eq!(receipt.segments().count(), 2, "both answers hold");
    });
}
