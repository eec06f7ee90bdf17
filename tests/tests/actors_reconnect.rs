//! Goal: an owner who comes back on the same device within two minutes is known after two seconds, on every one of the
//! conditions, and nobody else ever is.
//! Method: real actors and the real store on virtual time, a scripted engine; two-dimensional voices by hand.

use gateway::capsule::device_key;
use gateway::store::{CapsuleWrite, Store as _};
use matcher_core::receipt::{Correction, Rejection, Ruling, Subject, VoiceName};
use matcher_core::{Embedding, Gallery, PersonId, Print, Role, Scope, Speaker};
use rollcall_tests::actors::{Answer, Client, World, at_distance, gallery, of_type, pass, run, settle, start};
use serde_json::{Value, json};

const OWNER: i16 = 200;
const OTHER: i16 = 100;
const DEVICE: &str = "phone";

/// The owner sounds as their print, another voice as `other`.
fn world(other: &[f32]) -> World {
    let world = World::new(8);
    world.script(OWNER, &[Answer::Vector(vec![1.0, 0.0])]);
    world.script(OTHER, &[Answer::Vector(other.to_vec())]);
    world
}

/// The owner talks on the device, and the socket goes.
async fn leave_owner(world: &World, tone: i16) {
    let mut client = world.client_on(DEVICE, "first", "first").await;
    client.say(1, tone, 5.0).await;
    client.leave().await;
}

/// A socket of the device on a stream that has a name; its recording and its conversation are called alike.
async fn on_stream(world: &World, recording: &str) -> Client {
    let more = |start: &mut Value| {
        start["device_id"] = json!(DEVICE);
        start["provider"] = json!({"name": "any", "scope": "stream:0"});
    };
    world.client_with(start(recording, recording), more).await
}

fn statuses(events: &[Value]) -> Vec<&str> {
    of_type(events, "speaker").into_iter().filter_map(|event| event["status"].as_str()).collect()
}

/// What the next socket makes of two seconds.
async fn after_two_seconds(client: &mut Client, tone: i16) -> Vec<String> {
    client.say(1, tone, 2.0).await;
    statuses(&client.events().await).into_iter().map(str::to_owned).collect()
}

fn reconnects(world: &World, outcome: &str, reason: &str) -> f64 {
    world.metric(&format!("omi_owner_reconnect_total{{outcome=\"{outcome}\",reason=\"{reason}\"}}"))
}

fn print(id: &str, role: Role, vector: [f32; 2]) -> Print {
    let embedding = Embedding::new(&vector).expect("a unit vector");
    Print { person: PersonId::new(id), name: id.into(), role, embedding, is_pinned: false }
}

fn rejection(conversation_speaker: u32, scope: &str) -> Correction {
    let voice = VoiceName { speaker: Speaker(conversation_speaker), scope: Scope::of("first", scope) };
    Correction { voice, subject: Subject::Voice, ruling: Ruling::Not(Rejection::NotMe) }
}

// B9.115
#[test]
fn the_owner_is_known_after_two_seconds_on_the_same_device_and_their_capsule_is_used_up() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        let mut older = world.client_on(DEVICE, "first", "first").await;
        older.say(1, OWNER, 5.0).await;
        settle().await;
        let mut newer = world.client_on(DEVICE, "second", "second").await;
        assert_eq!(after_two_seconds(&mut newer, OWNER).await, ["user"]);
        assert_eq!((reconnects(&world, "attempted", "lookup"), reconnects(&world, "accepted", "accepted")), (2.0, 1.0));
        pass(40.0).await;
        older.say(1, OWNER, 1.0).await;
        settle().await;
        let mut third = world.client_on(DEVICE, "third", "third").await;
        assert_eq!(after_two_seconds(&mut third, OWNER).await, Vec::<String>::new(), "the older socket writes no more");
        assert_eq!(reconnects(&world, "rejected", "absent"), 2.0, "of the first socket and the third");
    });
}

// B9.116
#[test]
fn after_two_minutes_the_owner_needs_the_usual_evidence() {
    run(async {
        for (gap, expected) in [(118.0, vec!["user"]), (121.0, Vec::new())] {
            let world = world(&[-1.0, 0.1]);
            leave_owner(&world, OWNER).await;
            pass(gap).await;
            let mut client = world.client_on(DEVICE, "second", "second").await;
            assert_eq!(after_two_seconds(&mut client, OWNER).await, expected, "after {gap} s");
        }
    });
}

// B9.116
#[test]
fn another_device_another_account_and_no_device_know_nothing_of_the_owner() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        leave_owner(&world, OWNER).await;
        let mut tablet = world.client_on("tablet", "second", "second").await;
        assert_eq!(after_two_seconds(&mut tablet, OWNER).await, Vec::<String>::new());
        let mut nameless = world.client("third", "third").await;
        assert_eq!(after_two_seconds(&mut nameless, OWNER).await, Vec::<String>::new());
        assert_eq!(reconnects(&world, "rejected", "no_device"), 1.0);
        let mut stranger = world.connect_as("another account");
        let mut start = start("fourth", "fourth");
        start["device_id"] = json!(DEVICE);
        stranger.send(start).await;
        stranger.event("ready").await;
        assert_eq!(after_two_seconds(&mut stranger, OWNER).await, Vec::<String>::new());
    });
}

// B9.116
#[test]
fn an_owner_who_was_enrolled_anew_meanwhile_is_not_taken_for_the_old_one() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        leave_owner(&world, OWNER).await;
        world.enrol(Gallery::new(vec![print("user", Role::Owner, [0.99, 0.1])]));
        let mut client = world.client_on(DEVICE, "second", "second").await;
        assert_eq!(after_two_seconds(&mut client, OWNER).await, Vec::<String>::new());
        assert_eq!(reconnects(&world, "rejected", "expired_or_profile"), 1.0);
    });
}

// B9.117
#[test]
fn nothing_and_garbage_on_a_device_mean_the_usual_evidence() {
    run(async {
        for (garbage, reason) in
            [(None, "absent"), (Some(vec![1_u8; 300]), "corrupt"), (Some(vec![9_u8; 300]), "corrupt")]
        {
            let world = world(&[-1.0, 0.1]);
            let device = device_key("local", DEVICE);
            world.store.take_capsule(device, "a token", 0).unwrap();
            if let Some(garbage) = &garbage {
                let now_ms = world.service.clock.wall_ms(world.service.clock.now());
                let written = world.store.keep_capsule(device, ("a token", 1), Some(garbage), now_ms).unwrap();
                assert_eq!(written, CapsuleWrite::Written);
            }
            let mut client = world.client_on(DEVICE, "second", "second").await;
            assert_eq!(after_two_seconds(&mut client, OWNER).await, Vec::<String>::new());
            assert_eq!(reconnects(&world, "rejected", reason), 1.0);
            client.say(1, OWNER, 3.0).await;
            assert_eq!(statuses(&client.events().await), ["user"], "three more seconds are five");
        }
    });
}

// B9.118
#[test]
fn a_voice_that_is_near_the_print_and_far_from_the_owner_of_moments_ago_waits_for_the_usual_evidence() {
    run(async {
        let world = world(&[0.8, -0.6]);
        world.script(OWNER, &[Answer::Vector(vec![0.8, 0.6])]);
        leave_owner(&world, OWNER).await;
        let mut client = world.client_on(DEVICE, "second", "second").await;
        assert_eq!(after_two_seconds(&mut client, OTHER).await, Vec::<String>::new());
        assert_eq!(reconnects(&world, "rejected", "acoustic"), 1.0);
    });
}

// B9.119
#[test]
fn a_person_who_sounds_like_the_owner_keeps_both_from_being_named() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        leave_owner(&world, OWNER).await;
        world.enrol(Gallery::new(vec![print("user", Role::Owner, [1.0, 0.0]), print("p1", Role::Person, [1.0, 0.0])]));
        let mut client = world.client_on(DEVICE, "second", "second").await;
        assert_eq!(after_two_seconds(&mut client, OWNER).await, Vec::<String>::new());
    });
}

// B9.120
#[test]
fn two_voices_that_both_sound_like_the_owner_are_both_withdrawn() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        leave_owner(&world, OWNER).await;
        let mut client = world.client_on(DEVICE, "second", "second").await;
        assert_eq!(after_two_seconds(&mut client, OWNER).await, ["user"]);
        client.say(2, OWNER, 2.0).await;
        let events = client.events().await;
        assert_eq!(of_type(&events, "retract").len(), 1);
        let named = of_type(&events, "speaker").into_iter().filter(|event| event["person_id"].is_string());
        assert_eq!(named.count(), 0);
        assert_eq!(reconnects(&world, "rejected", "arbitration"), 1.0);
    });
}

// B9.121
#[test]
fn of_two_sockets_that_open_at_once_exactly_one_knows_the_owner() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        leave_owner(&world, OWNER).await;
        let (mut one, mut other) =
            futures_util::join!(world.client_on(DEVICE, "one", "one"), world.client_on(DEVICE, "other", "other"));
        let known = [after_two_seconds(&mut one, OWNER).await, after_two_seconds(&mut other, OWNER).await];
        assert_eq!(known.iter().filter(|statuses| **statuses == ["user"]).count(), 1, "{known:?}");
    });
}

// B9.122
#[test]
fn a_store_that_is_down_means_the_usual_evidence() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        leave_owner(&world, OWNER).await;
        world.store.set_failing(true);
        let mut client = world.client_on(DEVICE, "second", "second").await;
        world.store.set_failing(false);
        assert_eq!(after_two_seconds(&mut client, OWNER).await, Vec::<String>::new());
        assert_eq!(reconnects(&world, "rejected", "unavailable"), 1.0);
    });
}

// B9.123
#[test]
fn a_rejection_of_the_owner_withdraws_the_capsule_for_good() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        let mut client = world.client_on(DEVICE, "first", "first").await;
        client.say(1, OWNER, 5.0).await;
        client.send(json!({"type": "reject", "speaker": 1, "kind": "not_me"})).await;
        client.event("corrected").await;
        settle().await;
        let mut next = world.client_on(DEVICE, "second", "second").await;
        assert_eq!(after_two_seconds(&mut next, OWNER).await, Vec::<String>::new());
        assert_eq!(reconnects(&world, "rejected", "absent"), 2.0, "of the first socket and the second");
    });
}

// B9.123, A20
#[test]
fn a_rejection_after_the_conversation_ended_is_heard_before_the_owner_is_believed() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        let mut client = on_stream(&world, "first").await;
        client.say(1, OWNER, 5.0).await;
        client.leave().await;
        let correction = rejection(1, "stream:0");
        let wish = gateway::live::corrections::Wish::Ruling(correction.ruling.clone());
        let mut next = world.client_on(DEVICE, "second", "second").await;
        world.service.corrections.correct("first", correction, wish).await.unwrap();
        assert_eq!(after_two_seconds(&mut next, OWNER).await, Vec::<String>::new());
        assert_eq!(reconnects(&world, "rejected", "donor_authority"), 1.0);
    });
}

// B7.102
#[test]
fn a_rejection_that_arrives_while_a_short_verdict_is_on_its_way_holds() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        let mut client = on_stream(&world, "first").await;
        client.say(1, OWNER, 5.0).await;
        client.leave().await;
        let mut next = world.client_on(DEVICE, "second", "second").await;
        world.correct_during_next_reading("first", rejection(1, "stream:0"));
        assert_eq!(after_two_seconds(&mut next, OWNER).await, Vec::<String>::new());
        assert!(world.store.has_happened());
    });
}

// B7.105
#[test]
fn a_verdict_whose_authority_cannot_be_read_spends_its_attempt_and_decides_nothing() {
    run(async {
        for (seconds, tries) in [(2.0, 1.0), (5.0, 0.0)] {
            let world = world(&[-1.0, 0.1]);
            leave_owner(&world, OWNER).await;
            let mut client = world.client_on(DEVICE, "second", "second").await;
            let decided = |world: &World| {
                world.metric("omi_speaker_id_live_decisions_total{decision=\"accepted\",target=\"owner\"}")
            };
            let before = decided(&world);
            world.store.set_failing(true);
            client.say(1, OWNER, seconds).await;
            let events = client.events().await;
            assert_eq!(statuses(&events), Vec::<&str>::new());
            assert_eq!(world.metric("omi_speaker_id_match_exits_total{reason=\"authority_unavailable\"}"), 1.0);
            assert_eq!((decided(&world) - before, reconnects(&world, "rejected", "arbitration")), (0.0, tries));
            assert_eq!(world.lane("second").await.voices[0].voice.attempts, 1);
        }
    });
}

// B9.124
#[test]
fn a_short_try_that_fails_is_the_only_one_and_five_seconds_name_the_owner() {
    run(async {
        let world = world(&[0.2, 0.98]);
        leave_owner(&world, OWNER).await;
        let mut client = world.client_on(DEVICE, "second", "second").await;
        assert_eq!(after_two_seconds(&mut client, OTHER).await, Vec::<String>::new());
        client.say(1, OWNER, 3.0).await;
        assert_eq!(statuses(&client.events().await), ["user"]);
        assert_eq!(
            (reconnects(&world, "rejected", "acoustic"), reconnects(&world, "accepted", "accepted")),
            (1.0, 0.0)
        );
    });
}

// B9.125
#[test]
fn an_owner_who_goes_on_talking_is_kept_as_of_their_last_word() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        let mut client = world.client_on(DEVICE, "first", "first").await;
        client.say(1, OWNER, 5.0).await;
        pass(180.0).await;
        client.say(1, OWNER, 1.0).await;
        client.leave().await;
        pass(110.0).await;
        let mut next = world.client_on(DEVICE, "second", "second").await;
        assert_eq!(after_two_seconds(&mut next, OWNER).await, ["user"]);
    });
}

// B9.126
#[test]
fn a_short_accept_outlives_the_hint_and_seeds_no_capsule() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        leave_owner(&world, OWNER).await;
        let mut client = on_stream(&world, "second").await;
        assert_eq!(after_two_seconds(&mut client, OWNER).await, ["user"]);
        pass(130.0).await;
        client.say(1, OWNER, 0.5).await;
        assert_eq!(of_type(&client.events().await, "retract").len(), 0);
        client.send(json!({"type": "rollover", "conversation_id": "third", "carry": true})).await;
        client.event("ready").await;
        client.say(1, OWNER, 0.5).await;
        assert_eq!(statuses(&client.events().await), ["user"], "and a rollover on the same stream");
        settle().await;
        let mut next = world.client_on(DEVICE, "fourth", "fourth").await;
        assert_eq!(after_two_seconds(&mut next, OWNER).await, Vec::<String>::new(), "but nothing was kept of it");
    });
}

#[test]
fn a_short_accept_is_taken_back_when_the_conversation_that_it_rests_on_says_otherwise() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        let mut client = on_stream(&world, "first").await;
        client.say(1, OWNER, 5.0).await;
        client.leave().await;
        let mut next = world.client_on(DEVICE, "second", "second").await;
        assert_eq!(after_two_seconds(&mut next, OWNER).await, ["user"]);
        let correction = rejection(1, "stream:0");
        let wish = gateway::live::corrections::Wish::Ruling(correction.ruling.clone());
        world.service.corrections.correct("first", correction, wish).await.unwrap();
        pass(31.0).await;
        assert_eq!(of_type(&next.events().await, "retract").len(), 1, "within thirty seconds");
    });
}

#[test]
fn a_resume_token_counts_on_its_own_device_alone() {
    run(async {
        let world = world(&[-1.0, 0.1]);
        world.enrol(gallery(true));
        world.script(OTHER, &[Answer::Vector(at_distance(0.9))]);
        let mut client = world.connect();
        let mut first = start("recording", "talk");
        first["device_id"] = json!(DEVICE);
        client.send(first.clone()).await;
        let token = client.event("ready").await["resume"].clone();
        first["resume"] = token;
        let mut thief = world.connect();
        let mut stolen = first.clone();
        stolen["device_id"] = json!("another device");
        thief.send(stolen).await;
        assert_eq!(thief.event("error").await["field"], "resume");
        let mut again = world.connect();
        again.send(first).await;
        again.event("ready").await;
    });
}
