//! Goal: a provider that fails over begins at time 0 with new numbers, and nothing of the dead stream is mixed with it.
//! Method: live actors on virtual time; the recording's audio goes on while the provider's clock starts anew.

use rollcall_tests::actors::{Answer, World, at_distance, of_type, run, settle};
use serde_json::json;

const OWNER: i16 = 200;
const STRANGER: i16 = 100;

fn world() -> World {
    let world = World::new(4);
    world.script(OWNER, &[Answer::Vector(at_distance(0.2))]);
    world.script(STRANGER, &[Answer::Vector(at_distance(0.95))]);
    world
}

#[test]
fn a_restarted_provider_is_heard_on_its_own_clock_and_its_numbers_are_other_voices() {
    run(async {
        let world = world();
        let mut client = world.client("recording", "talk").await;
        client.speak(0, 20.0).await;
        client.say(0, STRANGER, 5.0).await; // 20 to 25 s, on the first stream's clock
        client.events().await;
        let restart = json!({"type": "provider", "name": "other", "audio_offset": 25.0});
        client.send(restart).await;
        client.speak(OWNER, 5.0).await; // 25 to 30 s
        client.offer(vec![json!({"id": "new", "speaker": 0, "start": 0.0, "end": 5.0})]).await;
        settle().await;
        assert_eq!(world.queries()[1..], [(OWNER, 5.0)], "0 to 5 s of the new clock is what was said after 25 s");
        let lane = world.lane("talk").await;
        let voices: Vec<_> = lane.voices.iter().map(|voice| (voice.voice.speaker, voice.voice.status)).collect();
        assert_eq!(voices, [(0, "no_match"), (0, "user")], "one number, two streams, two voices");
    });
}

#[test]
fn a_late_message_of_the_dead_stream_keeps_its_scope_and_clock() {
    run(async {
        let world = world();
        let mut start = rollcall_tests::actors::start("recording", "talk");
        start["provider"] = json!({"name": "first", "scope": "first:0"});
        let mut client = world.connect();
        client.send(start).await;
        client.event("ready").await;
        client.speak(OWNER, 5.0).await;
        client.send(json!({"type": "provider", "name": "second", "scope": "second:0", "audio_offset": 5.0})).await;
        client.speak(STRANGER, 5.0).await;
        client.offer(vec![json!({"id": "late", "speaker": 0, "start": 0.0, "end": 5.0, "scope": "first:0"})]).await;
        let events = client.events().await;
        let speaker = of_type(&events, "speaker");
        assert_eq!((&speaker[0]["scope"], &speaker[0]["person_id"]), (&json!("first:0"), &json!("user")));
        assert_eq!(world.queries(), [(OWNER, 5.0)]);
    });
}

#[test]
fn audio_that_was_lost_moves_the_clock_and_is_never_filled() {
    run(async {
        let world = world();
        let mut client = world.client("recording", "talk").await;
        client.speak(STRANGER, 5.0).await;
        client.send(json!({"type": "audio_gap", "seconds": 10})).await;
        client.speak(OWNER, 5.0).await; // 15 to 20 s
        client.offer(vec![json!({"id": "after", "speaker": 1, "start": 15.0, "end": 20.0})]).await;
        client.offer(vec![json!({"id": "across", "speaker": 2, "start": 2.0, "end": 18.0})]).await;
        settle().await;
        assert_eq!(world.queries()[0], (OWNER, 5.0));
        assert_eq!(world.queries()[1].1, 6.0, "what there is on both sides of the gap");
    });
}
