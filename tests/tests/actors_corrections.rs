//! Goal: corrections hold in the live service: at once, in writing, and whatever else is under way.
//! Method: real actors and the real store on virtual time, a scripted engine.

use std::time::Duration;

use gateway::store::Store as _;
use matcher_core::receipt::{Correction, Rejection, Ruling, Subject, VoiceName};
use matcher_core::{Scope, Speaker};
use rollcall_tests::actors::{Answer, Client, World, at_distance, gallery, of_type, pass, run, settle};
use serde_json::{Value, json};

const OWNER: i16 = 200;
const STRANGER: i16 = 100;

fn world() -> World {
    let world = World::new(8);
    world.enrol(gallery(true));
    world.script(OWNER, &[Answer::Vector(at_distance(0.2))]);
    world.script(STRANGER, &[Answer::Vector(vec![-1.0, 0.1])]);
    world
}

fn label(speaker: u32, person: Value) -> Value {
    json!({"type": "label", "speaker": speaker, "person_id": person})
}

fn reject(speaker: u32, kind: &str) -> Value {
    json!({"type": "reject", "speaker": speaker, "kind": kind})
}

async fn person(world: &World, speaker: u32) -> Option<String> {
    let lane = world.lane("talk").await;
    lane.voices.into_iter().find(|voice| voice.voice.speaker == speaker).and_then(|voice| voice.voice.person_id)
}

async fn corrected(client: &mut Client, message: Value) -> u64 {
    client.send(message).await;
    client.event("corrected").await["receipt_generation"].as_u64().unwrap()
}

#[test]
fn a_label_is_answered_when_it_is_written_and_names_the_voice_at_once() {
    run(async {
        let world = world();
        let mut client = world.client("recording", "talk").await;
        client.say(1, STRANGER, 5.0).await;
        client.events().await;
        assert_eq!(corrected(&mut client, label(1, json!("p1"))).await, 1);
        assert_eq!(world.store.receipt("talk").unwrap().unwrap().generation(), 1, "on disk before the answer");
        let events = client.events().await;
        let speaker = of_type(&events, "speaker");
        assert_eq!((&speaker[0]["person_id"], &speaker[0]["origin"]), (&json!("p1"), &json!("manual")));
        client.say(1, STRANGER, 5.0).await;
        assert_eq!(world.queries().len(), 1, "a decided voice asks nothing of the model");
    });
}

#[test]
fn a_rejection_takes_the_name_back_at_once_and_a_newer_label_gives_another() {
    run(async {
        let world = world();
        let mut client = world.client("recording", "talk").await;
        client.say(1, OWNER, 5.0).await;
        assert_eq!(person(&world, 1).await.as_deref(), Some("user"));
        client.events().await;
        corrected(&mut client, reject(1, "not_me")).await;
        assert_eq!(of_type(&client.events().await, "retract").len(), 1);
        assert_eq!(person(&world, 1).await, None);
        assert_eq!(corrected(&mut client, label(1, json!("p1"))).await, 2);
        assert_eq!(person(&world, 1).await.as_deref(), Some("p1"));
        corrected(&mut client, label(1, Value::Null)).await;
        assert_eq!(person(&world, 1).await, None);
    });
}

#[test]
fn a_correction_outlives_its_conversation_and_reserves_the_owner() {
    run(async {
        let world = world();
        let mut start = rollcall_tests::actors::start("recording", "talk");
        start["provider"] = json!({"name": "any", "scope": "stream:0"});
        let mut client = world.connect();
        client.send(start.clone()).await;
        client.event("ready").await;
        client.say(1, STRANGER, 5.0).await;
        corrected(&mut client, label(1, json!("user"))).await;
        client.leave().await;
        settle().await;
        assert!(world.snapshot("talk").await.is_none(), "the conversation ended");

        let mut again = world.connect();
        again.send(start).await;
        again.event("ready").await;
        again.say(1, STRANGER, 1.0).await;
        assert_eq!(person(&world, 1).await.as_deref(), Some("user"), "from the first word");
        again.say(2, OWNER, 5.0).await;
        let lane = world.lane("talk").await;
        assert_eq!(lane.voices[1].voice.status, "ambiguous", "a person said who the owner is");
    });
}

// B7.95
#[test]
fn segments_of_another_voice_or_of_nobody_refuse_the_whole_edit() {
    run(async {
        let world = world();
        let mut client = world.client("recording", "talk").await;
        client.say(1, STRANGER, 5.0).await; // s1
        client.say(2, OWNER, 5.0).await; // s2
        client.events().await;
        for ids in [json!(["s1", "s2"]), json!(["s1", "unknown"])] {
            client.send(json!({"type": "label", "speaker": 1, "person_id": "p1", "segment_ids": ids})).await;
            assert_eq!(client.event("error").await["field"], "segment_ids");
        }
        assert_eq!(world.store.receipt("talk").unwrap(), None, "nothing was written");
        let only =
            json!({"type": "label", "speaker": 1, "person_id": "p1", "segment_ids": ["s1"], "segment_only": true});
        assert_eq!(corrected(&mut client, only).await, 1);
        assert_eq!(person(&world, 1).await, None, "and it speaks for that segment alone");
    });
}

// B7.93
#[test]
fn corrections_that_make_no_sense_are_refused_with_their_field() {
    run(async {
        let world = world();
        let mut client = world.client("recording", "talk").await;
        client.say(1, STRANGER, 5.0).await;
        client.events().await;
        for (message, field) in [
            (json!({"type": "reject", "speaker": 1, "kind": "not_person"}), "person_id"),
            (json!({"type": "reject", "speaker": 1, "kind": "never"}), "kind"),
            (json!({"type": "label", "speaker": 1}), "person_id"),
            (label(1, json!("nobody-here")), "person_id"),
            (json!({"type": "label", "speaker": 1, "person_id": null, "segment_only": true}), "segment_ids"),
            (json!({"type": "label", "speaker": 1, "person_id": null, "segment_ids": []}), "segment_ids"),
        ] {
            client.send(message.clone()).await;
            assert_eq!(client.event("error").await["field"], field, "{message}");
        }
        assert_eq!(world.store.receipt("talk").unwrap(), None);
        let not_me_with_a_person = json!({"type": "reject", "speaker": 1, "kind": "not_me", "person_id": "p1"});
        assert_eq!(corrected(&mut client, not_me_with_a_person).await, 1, "a person is dropped");
    });
}

// B7.102
#[test]
fn a_correction_that_comes_while_a_query_runs_is_never_contradicted() {
    run(async {
        let world = world();
        world.queries_take(Duration::from_secs(1));
        let mut client = world.client("recording", "talk").await;
        client.say(1, OWNER, 5.0).await;
        corrected(&mut client, reject(1, "not_me")).await;
        pass(2.0).await;
        let events = client.events().await;
        assert!(of_type(&events, "speaker").iter().all(|speaker| speaker["person_id"] != "user"), "{events:?}");
        assert_eq!(world.metric("omi_speaker_id_match_exits_total{reason=\"rejected\"}"), 1.0);
    });
}

// B7.103, B7.104
#[test]
fn what_cannot_be_read_publishes_nothing_and_forgets_no_rejection() {
    run(async {
        let world = world();
        let mut client = world.client("recording", "talk").await;
        client.say(1, OWNER, 5.0).await;
        corrected(&mut client, reject(1, "not_me")).await;
        client.events().await;
        world.store.set_failing(true);
        client.say(2, OWNER, 5.0).await;
        assert_eq!(world.metric("omi_speaker_id_match_exits_total{reason=\"authority_unavailable\"}"), 1.0);
        assert!(of_type(&client.events().await, "speaker").is_empty(), "nothing new is published");
        client.send(label(2, json!("p1"))).await;
        assert_eq!(client.event("error").await["code"], "not_written");
        assert_eq!((person(&world, 1).await, person(&world, 2).await), (None, None));

        world.store.set_failing(false);
        client.say(2, OWNER, 2.0).await;
        assert_eq!(person(&world, 2).await.as_deref(), Some("user"), "the evidence was kept");
    });
}

/// Lets what is due happen while a reading hangs, and virtual time stands still.
async fn turn_over() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
        std::thread::sleep(Duration::from_millis(1));
    }
}

// B7.106
#[test]
fn a_voice_whose_authority_is_still_being_read_holds_up_nobody_else() {
    run(async {
        for leaves in [false, true] {
            let world = world();
            let mut client = world.client("recording", "talk").await;
            let mut other = world.client("another recording", "talk").await;
            let (release, held) = std::sync::mpsc::sync_channel::<()>(1);
            world.store.during_next_reading(move || held.recv().unwrap_or(()));
            let part = client.speak(OWNER, 5.0).await;
            let segment = client.segment(0, part);
            client.offer(vec![segment]).await;
            turn_over().await;
            assert!(world.store.has_happened(), "the first verdict waits for its authority");

            let part = other.speak(OWNER, 5.0).await;
            let segment = other.segment(1, part);
            other.offer(vec![segment]).await;
            turn_over().await;
            let spoken = world.snapshot("talk").await.expect("the conversation runs");
            let named =
                spoken.lanes.iter().flat_map(|lane| &lane.voices).filter(|voice| voice.voice.person_id.is_some());
            assert_eq!(named.map(|voice| voice.voice.speaker).collect::<Vec<_>>(), [1]);
            if leaves {
                client.socket.send(gateway::live::Frame::Closed).await.ok();
            }
            release.send(()).expect("the reading still hangs");
            settle().await;
            let spoken = world.snapshot("talk").await.expect("the conversation runs");
            for voice in spoken.lanes.iter().flat_map(|lane| &lane.voices) {
                assert_eq!(
                    voice.voice.distance.is_some(),
                    voice.voice.status != "pending",
                    "a distance has its decision"
                );
            }
            assert_eq!(spoken.lanes.len(), if leaves { 1 } else { 2 });
        }
    });
}

/// What was decided about the voice before it is examined.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Earlier {
    Named,
    Rejected,
    Nothing,
}

// B7.107
#[test]
fn an_owner_is_seen_only_where_everything_that_was_decided_allows_it() {
    for earlier in [Earlier::Named, Earlier::Rejected, Earlier::Nothing] {
        for carried in [false, true] {
            for seconds in [2.0, 5.0] {
                for (is_readable, is_corrected) in [(true, false), (true, true), (false, false)] {
                    run(check(earlier, carried, seconds, (is_readable, is_corrected)));
                }
            }
        }
    }
}

async fn check(earlier: Earlier, carried: bool, seconds: f64, (is_readable, is_corrected): (bool, bool)) {
    let world = world();
    let mut before = world.client_on("phone", "before", "before").await;
    before.say(1, OWNER, 5.0).await;
    before.leave().await;

    let mut client = world.connect();
    let mut start = rollcall_tests::actors::start("recording", "talk");
    (start["device_id"], start["provider"]) = (json!("phone"), json!({"name": "any", "scope": "stream:0"}));
    client.send(start).await;
    client.event("ready").await;
    client.say(1, STRANGER, 0.5).await;
    match earlier {
        Earlier::Named => drop(corrected(&mut client, label(1, json!("user"))).await),
        Earlier::Rejected => drop(corrected(&mut client, reject(1, "not_me")).await),
        Earlier::Nothing => {}
    }
    if carried {
        client.send(json!({"type": "rollover", "conversation_id": "next", "carry": true})).await;
        client.event("ready").await;
    }
    let conversation = if carried { "next" } else { "talk" };
    client.events().await;
    if is_corrected {
        let voice = VoiceName { speaker: Speaker(1), scope: Scope::of("recording", "stream:0") };
        let ruling = Ruling::Not(Rejection::NotMe);
        let subject = Subject::Voice;
        world.correct_during_next_reading(conversation, Correction { voice, subject, ruling });
    }
    world.store.set_failing(!is_readable);
    client.say(1, OWNER, seconds).await;
    let seen = client.events().await;
    let is_owner = of_type(&seen, "speaker").iter().any(|event| event["person_id"] == "user");

    let is_automatic = match earlier {
        // Rejections stay in their conversation.
        Earlier::Rejected => carried,
        Earlier::Nothing => true,
        Earlier::Named => false,
    };
    // A rollover uses the device's hint up, so two seconds are too few behind it.
    let suffices = seconds >= 5.0 || !carried;
    // What is named by hand is told when it is first heard in its conversation, whatever can be read.
    let expected = match earlier {
        Earlier::Named => carried,
        Earlier::Rejected | Earlier::Nothing => is_automatic && suffices && is_readable && !is_corrected,
    };
    assert_eq!(is_owner, expected, "{earlier:?} {carried} {seconds} {is_readable} {is_corrected}: {seen:?}");
}

// B7.101
#[test]
fn a_number_that_was_decided_about_is_given_to_no_new_label() {
    run(async {
        let world = world();
        let mut first = world.client_of("first:0", "one", "talk").await;
        let part = first.speak(STRANGER, 1.0).await;
        let mut segment = first.segment(0, part);
        segment["speaker"] = json!("SPEAKER_00");
        first.offer(vec![segment.clone()]).await;
        first.send(json!({"type": "label", "speaker": "SPEAKER_00", "person_id": "p1"})).await;
        assert_eq!(first.event("corrected").await["speaker"], 0);
        first.leave().await;

        for (recording, scope, expected) in [("two", "second:0", 1), ("one", "first:0", 0)] {
            let mut client = world.client_of(scope, recording, "talk").await;
            client.speak(STRANGER, 1.0).await;
            client.offer(vec![segment.clone()]).await;
            client.send(json!({"type": "explain", "speaker": "SPEAKER_00"})).await;
            assert_eq!(client.event("explained").await["speaker"], expected, "in the stream {scope}");
        }
    });
}
