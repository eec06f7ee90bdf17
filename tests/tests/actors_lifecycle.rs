//! Goal: a recording's life holds its promises from the first message to the goodbye: reconnects, rollovers, people who
//! come and go, an engine that is down, silence.
//! Method: real socket and conversation actors on virtual time, a scripted engine, events and metrics as a client and an
//! operator see them.

use std::time::Duration;

use rollcall_tests::actors::{Answer, Client, World, at_distance, gallery, of_type, pass, run, settle};
use serde_json::json;

const REJECTOR: i16 = 100;
const OWNER: i16 = 200;
const NOISE: i16 = 300;

/// A world in which the rejector is nobody and the owner is near.
fn world(turns: usize) -> World {
    let world = World::new(turns);
    world.script(REJECTOR, &[Answer::Vector(at_distance(0.9))]);
    world.script(OWNER, &[Answer::Vector(at_distance(0.2))]);
    world
}

#[test]
fn people_who_are_enrolled_while_others_talk_are_recognised_without_a_new_query() {
    run(async {
        let world = world(4);
        let mut client = world.client("recording", "talk").await;
        world.script(REJECTOR, &[Answer::Vector(vec![0.0, 1.0])]);
        client.say(1, REJECTOR, 5.0).await;
        assert_eq!(of_type(&client.events().await, "speaker")[0]["status"], "no_match");
        world.enrol(gallery(true));
        let events = client.events().await;
        let speaker = of_type(&events, "speaker");
        assert_eq!((&speaker[0]["person_id"], &speaker[0]["status"]), (&json!("p1"), &json!("not_user")));
        assert_eq!(world.queries().len(), 1);
        world.enrol(gallery(false));
        let events = client.events().await;
        assert_eq!(of_type(&events, "retract").len(), 1, "who is deleted disappears");
    });
}

#[test]
fn a_socket_that_starts_its_recording_again_finds_the_budget_as_it_left_it() {
    run(async {
        let world = world(4);
        let mut client = world.client("recording", "talk").await;
        client.spend(1, REJECTOR, 12).await;
        for _ in 0..20 {
            let again = world.client("recording", "talk").await;
            assert_eq!(client.event("goodbye").await["reason"], "taken_over");
            client = again;
        }
        client.spend(1, REJECTOR, 1).await;
        let lane = world.lane("talk").await;
        assert_eq!((lane.budget.reserved, lane.budget.denied.voice), (12, 1), "attempts are not refilled");
        assert!(lane.socket_tokens < 4.1, "nor are tokens: {}", lane.socket_tokens);
    });
}

#[test]
fn a_client_that_leaves_settles_its_query_and_its_conversation_ends() {
    run(async {
        let world = world(4);
        world.script(OWNER, &[Answer::Hangs]);
        let mut client = world.client("recording", "talk").await;
        client.say(1, OWNER, 5.0).await;
        assert_eq!(world.service.telemetry.accounts().books().open, 1);
        // The actor stops before it could answer.
        client.socket.send(gateway::live::Frame::Closed).await.ok();
        settle().await;
        let books = world.service.telemetry.accounts().books();
        assert_eq!((books.open, books.failed), (0, 1));
        assert!(world.snapshot("talk").await.is_none());
    });
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let trace = || {
        run(async {
            let world = world(2);
            world.queries_take(Duration::from_millis(700));
            let mut client = world.client("recording", "talk").await;
            for step in 0..200_u32 {
                client.say(step * 7 % 5, if step % 3 == 0 { OWNER } else { REJECTOR }, 1.0).await;
                pass(f64::from(step * 13 % 4)).await;
            }
            client.send(json!({"type": "stop"})).await;
            pass(20.0).await;
            (client.events().await, world.queries())
        })
    };
    let first = trace();
    assert!(first.0.len() > 20, "the trace says something");
    assert_eq!(first, trace());
}

#[test]
fn a_label_keeps_its_number_and_its_attempts_across_a_reconnect_and_a_new_one_gets_the_next() {
    run(async {
        let world = world(4);
        let mut client = world.client("recording", "talk").await;
        let say = async |client: &mut Client, label: &str, scope: &str, tone| {
            let part = client.speak(tone, 2.0).await;
            let mut segment = client.segment(0, part);
            segment["speaker"] = json!(label);
            segment["scope"] = json!(scope);
            client.offer(vec![segment]).await;
            settle().await;
        };
        for _ in 0..12 {
            say(&mut client, "stranger", "first:0", REJECTOR).await;
        }
        let mut again = world.client("recording", "talk").await;
        for _ in 0..3 {
            say(&mut again, "owner", "second:0", OWNER).await;
        }
        let lane = world.lane("talk").await;
        assert_eq!(
            lane.voices.iter().map(|voice| voice.voice.speaker).collect::<Vec<_>>(),
            [0, 1],
            "not the stranger's number, whose voice is remembered"
        );
        assert_eq!(lane.voices[1].voice.person_id.as_deref(), Some("user"));
    });
}

#[test]
fn no_token_is_spent_while_no_worker_can_extract() {
    run(async {
        let world = world(4);
        world.engine_is_down(true);
        let mut client = world.client("recording", "talk").await;
        for _ in 0..20 {
            client.say(1, OWNER, 1.0).await;
            pass(1.0).await;
        }
        assert_eq!(world.lane("talk").await.budget.reserved, 0);
        world.engine_is_down(false);
        pass(1.1).await;
        let lane = world.lane("talk").await;
        assert_eq!((lane.budget.reserved, lane.voices[0].voice.status), (1, "user"), "the slot waited: {lane:?}");
    });
}

#[test]
fn nothing_of_the_former_conversation_is_published_after_the_next_is_ready() {
    run(async {
        let world = world(4);
        world.queries_take(Duration::from_millis(5));
        let mut client = world.client("recording", "talk0").await;
        for round in 1..60 {
            client.say(1, OWNER, 5.0).await;
            tokio::time::sleep(Duration::from_micros(round * 97 % 6_000)).await;
            client.send(json!({"type": "rollover", "conversation_id": format!("talk{round}")})).await;
        }
        let mut generation = 0;
        for event in client.events().await {
            if event["type"] == "ready" {
                generation = event["generation"].as_u64().unwrap();
            }
            if event["type"] == "speaker" && generation > 0 {
                assert_eq!(event["generation"], generation, "{event}");
            }
        }
        assert_eq!(generation, 60);
    });
}

#[test]
fn a_recording_that_never_asked_for_anything_gives_way_when_the_memory_is_full() {
    run(async {
        let world = World::with(4, |settings| settings.sockets_max = 2);
        for index in 0..40 {
            let client = world.client(&format!("recording {index}"), "talk").await;
            client.socket.send(gateway::live::Frame::Closed).await.ok();
            settle().await;
        }
    });
}

#[test]
fn a_connection_that_never_starts_is_closed() {
    run(async {
        let world = world(4);
        let mut client = world.connect();
        pass(31.0).await;
        assert_eq!(client.events().await, [json!({"type": "close", "code": 1008, "reason": "no start came in time"})]);
    });
}

#[test]
fn digital_silence_asks_nothing_of_the_model() {
    run(async {
        let world = world(4);
        let mut client = world.client("recording", "talk").await;
        client.say(1, 0, 6.0).await;
        let lane = world.lane("talk").await;
        assert_eq!((lane.budget.reserved, lane.voices[0].last_exit), (0, Some("no_pcm")));
        client.speak(NOISE, 1.0).await;
        client.say(1, OWNER, 5.0).await;
        assert_eq!(world.queries(), [(OWNER, 5.0)], "what is said afterwards does, and the silence is no part of it");
    });
}

#[test]
fn the_books_of_a_goodbye_are_the_last_word() {
    run(async {
        let world = world(4);
        world.script(OWNER, &[Answer::Hangs]);
        let mut client = world.client("recording", "talk").await;
        client.say(1, OWNER, 5.0).await;
        client.socket.send(gateway::live::Drain).await.unwrap();
        let budget = client.event("goodbye").await["budget"].clone();
        assert_eq!((&budget["reserved"], &budget["succeeded"], &budget["failed"]), (&json!(1), &json!(0), &json!(1)));
        assert_eq!(world.metric("rollcall_extraction_failures_total{kind=\"cancelled\"}"), 1.0);
    });
}

#[test]
fn a_rollover_to_the_same_conversation_changes_nothing_and_is_answered() {
    run(async {
        let world = world(4);
        let mut client = world.client("recording", "talk").await;
        client.say(1, OWNER, 5.0).await;
        client.send(json!({"type": "rollover", "conversation_id": "talk"})).await;
        let ready = client.event("ready").await;
        assert_eq!((&ready["generation"], &ready["people"]), (&json!(1), &json!(1)));
        assert_eq!(world.lane("talk").await.voices[0].voice.person_id.as_deref(), Some("user"));
    });
}
