//! Goal: the order of examination, the attribution of denials and the books hold in the live actors, not only in the
//! core.
//! Method: real socket and conversation actors on virtual time, a scripted engine, events and metrics as a client and an
//! operator see them. Updates that belong together come in one message.

use std::time::Duration;

use gpu_worker::Failure;
use rollcall_tests::actors::{Answer, Client, World, at_distance, of_type, pass, run, settle};
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

fn attempts(voices: &[gateway::live::LaneSnapshot], speaker: u32) -> u32 {
    let lane = serde_json::to_value(voices).unwrap();
    let voice = lane[0]["voices"].as_array().unwrap().iter().find(|voice| voice["speaker"] == speaker).cloned();
    voice.map_or(0, |voice| voice["attempts"].as_u64().unwrap() as u32)
}

// B5.63
#[test]
fn an_untried_owner_is_examined_before_eighty_updates_of_a_rejector() {
    run(async {
        let world = world(4);
        let mut client = world.client("recording", "talk").await;
        client.spend(1, REJECTOR, 8).await;
        for other in 10..17 {
            client.spend(other, NOISE, 1).await;
        }
        let lane = world.lane("talk").await;
        assert_eq!(lane.budget.reserved, 15, "one token is left: {lane:?}");
        assert!((1.0..1.1).contains(&lane.socket_tokens));
        client.events().await;

        let mut updates = Vec::new();
        for _ in 0..80 {
            let part = client.speak(REJECTOR, 0.3).await;
            updates.push(client.segment(1, part));
        }
        let part = client.speak(OWNER, 5.0).await;
        updates.push(client.segment(2, part));
        client.offer(updates).await;
        let events = client.events().await;

        assert_eq!(world.queries()[15..], [(OWNER, 5.0)], "the owner alone was examined");
        let lane = world.lane("talk").await;
        assert_eq!((lane.budget.reserved, lane.budget.denied.socket), (16, 1));
        assert_eq!(attempts(&[lane], 1), 8, "the rejector stays at eight");
        let speaker = of_type(&events, "speaker");
        assert_eq!((&speaker[0]["person_id"], &speaker[0]["status"]), (&json!("user"), &json!("user")));
        let denied: Vec<_> =
            of_type(&events, "exit").into_iter().filter(|exit| exit["reason"] == "embedding_budget").collect();
        assert_eq!(denied.len(), 1);
        assert_eq!((&denied[0]["speaker"], &denied[0]["cap"]), (&json!(1), &json!("socket")));
    });
}

/// A world whose only turn is held by a query that never answers, of another conversation.
async fn blocked() -> (World, Client, Client) {
    let world = world(1);
    world.script(NOISE, &[Answer::Hangs]);
    let mut blocker = world.client("other", "elsewhere").await;
    blocker.say(1, NOISE, 2.0).await;
    let client = world.client("recording", "talk").await;
    (world, blocker, client)
}

// B5.64
#[test]
fn eighty_updates_of_one_voice_are_one_slot_with_the_age_of_the_first() {
    run(async {
        let (world, _blocker, mut client) = blocked().await;
        client.say(1, REJECTOR, 2.0).await;
        pass(1.0).await;
        let mut updates = Vec::new();
        for _ in 0..79 {
            let part = client.speak(REJECTOR, 0.5).await;
            updates.push(client.segment(1, part));
        }
        client.offer(updates).await;
        settle().await;
        let lane = world.lane("talk").await;
        assert_eq!(lane.queue.len(), 1);
        assert_eq!(lane.queue[0].segment_id, "s80");
        assert!((lane.queue[0].pending_seconds - 41.5).abs() < 1e-9, "merged: {:?}", lane.queue);
        assert!(lane.queue[0].age_seconds > 1.0, "the age of the first: {:?}", lane.queue);
    });
}

// B5.65
#[test]
fn updates_do_not_renew_the_age_and_at_five_seconds_the_slot_goes_before_an_untried_one() {
    run(async {
        let world = world(1);
        let mut client = world.client("recording", "talk").await;
        client.spend(1, REJECTOR, 1).await;
        world.script(NOISE, &[Answer::Hangs]);
        let mut blocker = world.client("other", "elsewhere").await;
        blocker.say(1, NOISE, 2.0).await;
        // The turn comes back when the blocker's deadline passes, five seconds from here.
        client.say(1, REJECTOR, 2.0).await;
        for _ in 0..4 {
            pass(1.0).await;
            client.say(1, REJECTOR, 1.0).await;
        }
        pass(0.9).await;
        client.say(2, OWNER, 2.0).await;
        assert_eq!(world.queries().len(), 2, "nothing could start yet");
        pass(0.2).await;
        assert_eq!(world.queries()[2].0, REJECTOR, "the aged slot went first: {:?}", world.queries());
        assert_eq!(world.queries()[3].0, OWNER);
    });
}

// B5.66
#[test]
fn a_number_in_work_is_not_dispatched_in_another_scope_or_generation_until_it_ends() {
    run(async {
        let world = world(16);
        world.queries_take(Duration::from_secs(2));
        let mut client = world.client("recording", "talk").await;
        client.say(3, REJECTOR, 2.0).await;
        let part = client.speak(REJECTOR, 2.0).await;
        let mut elsewhere = client.segment(3, part);
        elsewhere["scope"] = json!("another:0");
        client.offer(vec![elsewhere]).await;
        settle().await;
        assert_eq!(world.queries().len(), 1, "the other scope waits");
        client.send(json!({"type": "rollover", "conversation_id": "next"})).await;
        client.event("ready").await;
        client.say(3, REJECTOR, 2.0).await;
        client.say(4, OWNER, 2.0).await;
        assert_eq!(
            world.queries()[1..],
            [(OWNER, 2.0)],
            "the next generation waits, and takes no place from the others"
        );
        pass(2.0).await;
        assert_eq!(world.queries()[2..], [(REJECTOR, 2.0)], "released, it runs");
    });
}

// B5.67
#[test]
fn a_full_queue_loses_no_range_and_takes_the_voice_at_its_next_update() {
    run(async {
        let (world, _blocker, mut client) = blocked().await;
        let part = client.speak(REJECTOR, 2.0).await;
        let hundred = (1..=100).map(|speaker| client.segment(speaker, part)).collect();
        client.offer(hundred).await;
        let late = client.speak(OWNER, 3.0).await;
        let segment = client.segment(200, late);
        client.offer(vec![segment]).await;
        settle().await;
        let lane = world.lane("talk").await;
        assert_eq!(lane.queue.len(), 100);
        assert!(lane.queue.iter().all(|slot| slot.speaker != 200));

        world.script(NOISE, &[Answer::Vector(at_distance(0.9))]);
        pass(5.1).await; // The blocker's deadline passes; the hundred run until the bucket is empty.
        let more = client.speak(OWNER, 1.0).await;
        let segment = client.segment(200, more);
        client.offer(vec![segment]).await;
        pass(16.0).await;
        client.say(200, OWNER, 0.5).await;
        let owner: Vec<_> = world.queries().into_iter().filter(|(tone, _)| *tone == OWNER).collect();
        assert_eq!(owner, [(OWNER, 4.5)], "with the range that the full queue refused");
    });
}

// B5.68
#[test]
fn a_slot_keeps_the_newest_128_ranges() {
    run(async {
        let (world, _blocker, mut client) = blocked().await;
        let mut updates = Vec::new();
        for _ in 0..129 {
            let part = client.speak(REJECTOR, 0.1).await;
            client.speak(0, 0.1).await;
            updates.push(client.segment(1, part));
        }
        client.offer(updates).await;
        settle().await;
        let pending = world.lane("talk").await.queue[0].pending_seconds;
        assert!((pending - 12.8).abs() < 1e-9, "{pending} s pending");
        assert!((world.metric("rollcall_evicted_range_seconds_total") - 0.1).abs() < 1e-9);
    });
}

// B5.69
#[test]
fn speech_that_a_query_left_runs_later_without_an_update_and_twelve_is_the_ceiling() {
    run(async {
        let world = world(4);
        world.script(OWNER, &[Answer::Vector(at_distance(0.95)), Answer::Vector(at_distance(0.1))]);
        let mut client = world.client("recording", "talk").await;
        // Twelve seconds at once: one query of ten, and the rest by itself.
        client.say(1, OWNER, 12.0).await;
        assert_eq!(world.queries(), [(OWNER, 10.0), (OWNER, 2.0)]);
        let lane = world.lane("talk").await;
        assert_eq!((lane.budget.reserved, lane.budget.succeeded), (2, 2), "every run reserved");

        client.spend(2, REJECTOR, 14).await;
        let lane = world.lane("talk").await;
        assert_eq!(attempts(std::slice::from_ref(&lane), 2), 12);
        assert!(lane.budget.denied.voice > 0);
    });
}

// B5.70
#[test]
fn a_denied_continuation_stops_and_an_untried_owner_may_use_the_next_token() {
    run(async {
        let world = World::with(4, |settings| settings.budget.burst = rollcall_tests::actors::limit(1));
        world.script(REJECTOR, &[Answer::Vector(at_distance(0.9))]);
        world.script(OWNER, &[Answer::Vector(at_distance(0.2))]);
        let mut client = world.client("recording", "talk").await;
        client.say(1, REJECTOR, 25.0).await;
        assert_eq!(world.queries(), [(REJECTOR, 10.0)]);
        let denied = world.lane("talk").await.budget.denied;
        assert_eq!((denied.voice, denied.socket, denied.both), (0, 1, 0), "one continuation was denied");
        pass(15.0).await;
        assert_eq!(world.queries().len(), 1, "nothing is retried by itself");
        client.say(2, OWNER, 5.0).await;
        assert_eq!(world.queries()[1..], [(OWNER, 5.0)]);
    });
}

// B5.71
#[test]
fn a_failed_extraction_is_spent_and_not_queued_again() {
    run(async {
        let world = world(4);
        let failure = Failure::Extraction("broken".to_owned());
        world.script(OWNER, &[Answer::Failure(failure), Answer::Vector(at_distance(0.2))]);
        let mut client = world.client("recording", "talk").await;
        client.say(1, OWNER, 5.0).await;
        pass(60.0).await;
        assert_eq!(world.queries().len(), 1);
        let lane = world.lane("talk").await;
        assert_eq!((lane.budget.reserved, lane.budget.failed), (1, 1));
        assert!(lane.queue.is_empty());
        let events = client.events().await;
        assert_eq!(of_type(&events, "error")[0]["code"], "extraction_failed");
        assert!(of_type(&events, "exit").is_empty(), "a failure has no exit reason");

        client.say(1, OWNER, 0.5).await;
        assert_eq!(world.queries()[1..], [(OWNER, 5.5)], "the next update brings the kept speech");
    });
}

// B5.72
#[test]
fn every_denial_has_exactly_one_cap() {
    run(async {
        // Twelve attempts spent and tokens left: the voice.
        let world = world(4);
        let mut client = world.client("recording", "talk").await;
        client.spend(1, REJECTOR, 13).await;
        let exits = client.events().await;
        assert_eq!(of_type(&exits, "exit").last().unwrap()["cap"], "voice");
        // Attempts left and no token: the socket.
        for other in 10..15 {
            client.spend(other, NOISE, 1).await;
        }
        let exits = client.events().await;
        let exits = of_type(&exits, "exit");
        assert_eq!((&exits.last().unwrap()["cap"], &exits.last().unwrap()["speaker"]), (&json!("socket"), &json!(14)));
        // Both.
        client.say(1, REJECTOR, 2.0).await;
        let exits = client.events().await;
        assert_eq!(of_type(&exits, "exit").last().unwrap()["cap"], "both");
        // Fifteen seconds later a token is back: the voice again.
        pass(15.0).await;
        client.say(1, REJECTOR, 0.5).await;
        let exits = client.events().await;
        assert_eq!(of_type(&exits, "exit").last().unwrap()["cap"], "voice");

        let by_cap: Vec<f64> = ["voice", "socket", "both"]
            .iter()
            .map(|cap| world.metric(&format!("omi_speaker_id_budget_exits_total{{cap=\"{cap}\"}}")))
            .collect();
        assert_eq!(by_cap, [2.0, 1.0, 1.0]);
        assert_eq!(world.metric("omi_speaker_id_match_exits_total{reason=\"embedding_budget\"}"), 4.0);
    });
}

fn incidence(world: &World, what: &str) -> f64 {
    ["voice", "socket", "both"]
        .iter()
        .map(|cap| world.metric(&format!("omi_speaker_id_budget_{what}_total{{cap=\"{cap}\"}}")))
        .sum()
}

// B5.73
#[test]
fn fifty_denials_are_fifty_exits_and_one_incidence_until_the_next_generation() {
    run(async {
        let logs = telemetry::capture::Capture::on_this_thread();
        let world = world(4);
        let mut client = world.client("recording", "talk").await;
        client.spend(1, REJECTOR, 12).await;
        for _ in 0..50 {
            client.say(1, REJECTOR, 1.0).await;
        }
        let denied = world.lane("talk").await.budget.denied;
        assert_eq!((denied.voice, denied.both, denied.socket), (50, 0, 0));
        assert_eq!(incidence(&world, "exits"), 50.0);
        assert_eq!(world.metric("omi_speaker_id_match_exits_total{reason=\"embedding_budget\"}"), 50.0);
        assert_eq!((incidence(&world, "voices"), incidence(&world, "sockets")), (1.0, 1.0));
        assert_eq!(logs.named("speaker_id_budget_first_block").len(), 1);

        let part = client.speak(REJECTOR, 2.0).await;
        let mut elsewhere = client.segment(1, part);
        elsewhere["scope"] = json!("another:0");
        client.offer(vec![elsewhere]).await;
        settle().await;
        assert_eq!(incidence(&world, "voices"), 1.0, "another scope is no new voice");

        client.send(json!({"type": "rollover", "conversation_id": "next"})).await;
        client.event("ready").await;
        for other in 20..30 {
            client.spend(other, NOISE, 1).await;
        }
        client.spend(1, REJECTOR, 1).await;
        assert_eq!(incidence(&world, "sockets"), 1.0, "once for the life of the lane");
        let voices = incidence(&world, "voices");
        assert!(voices > 1.0, "a new generation counts anew");
        let records = logs.named("speaker_id_budget_first_block");
        assert_eq!(records.len() as f64, voices, "one record for each");
        assert_eq!(records[0].field("recording"), Some("recording"));
    });
}

// B5.74
#[test]
fn five_endings_are_two_successes_and_three_failures_and_no_token_returns() {
    run(async {
        let world = world(16);
        world.queries_take(Duration::from_millis(100));
        let extraction = Failure::Extraction("broken".to_owned());
        let encoding = Failure::Encoding("too odd".to_owned());
        world.script(10, &[Answer::Vector(at_distance(0.2))]);
        world.script(20, &[Answer::Failure(extraction)]);
        world.script(30, &[Answer::Failure(encoding)]);
        world.script(40, &[Answer::Hangs]);
        world.script(50, &[Answer::Vector(at_distance(0.2))]);
        let mut client = world.client("recording", "talk").await;
        for (speaker, tone) in [(1, 10), (2, 20), (3, 30), (4, 40)] {
            client.say(speaker, tone, 5.0).await;
        }
        pass(6.0).await;
        // Stale after success: the conversation rolls over while the query runs.
        client.say(5, 50, 5.0).await;
        client.send(json!({"type": "rollover", "conversation_id": "next"})).await;
        client.event("ready").await;
        pass(1.0).await;

        let attempts =
            |outcome: &str| world.metric(&format!("omi_speaker_id_embedding_attempts_total{{outcome=\"{outcome}\"}}"));
        assert_eq!((attempts("reserved"), attempts("succeeded"), attempts("failed")), (5.0, 2.0, 3.0));
        assert_eq!(world.metric("omi_speaker_id_match_exits_total{reason=\"stale_generation\"}"), 1.0);
        let lane = world.lane("next").await;
        assert!(lane.voices.is_empty(), "nothing of the former conversation came along");
        assert!((11.4..11.6).contains(&lane.socket_tokens), "only time brings tokens: {}", lane.socket_tokens);
    });
}

// B5.75
#[test]
fn a_fresh_service_shows_every_accounting_series_at_zero_and_no_id_ever() {
    run(async {
        let world = world(4);
        for cap in ["voice", "socket", "both"] {
            for what in ["exits", "voices", "sockets"] {
                assert_eq!(world.metric(&format!("omi_speaker_id_budget_{what}_total{{cap=\"{cap}\"}}")), 0.0);
            }
        }
        for outcome in ["reserved", "succeeded", "failed"] {
            assert_eq!(world.metric(&format!("omi_speaker_id_embedding_attempts_total{{outcome=\"{outcome}\"}}")), 0.0);
        }
        let mut client = world.client("recording-77", "conversation-77").await;
        client.say(77, OWNER, 5.0).await;
        let (_, text) = world.service.telemetry.encode(None);
        assert!(!text.contains("77\""), "an id became a label");
    });
}
