//! Goal: a provider that fails over begins at time 0 with new numbers, and nothing of the dead stream is mixed with it; the
//! audio that a provider's times mean is the audio that a query gets.
//! Method: live actors on virtual time; the recording's audio goes on while the provider's clock starts anew. The ring that
//! they read from is asked by itself for the exact samples.

use std::num::NonZeroU32;
use std::time::Duration;

use gateway::live::{LaneSnapshot, Ring};
use matcher_core::Rate;
use rollcall_tests::actors::{Answer, Client, World, at_distance, of_type, pass, run, settle, start};
use serde_json::{Value, json};

const OWNER: i16 = 200;
const STRANGER: i16 = 100;

fn world() -> World {
    let world = World::new(4);
    world.script(OWNER, &[Answer::Vector(at_distance(0.2))]);
    world.script(STRANGER, &[Answer::Vector(at_distance(0.95))]);
    world
}

/// A socket whose first provider stream has this scope.
async fn client_of(world: &World, scope: &str) -> Client {
    let mut start = start("recording", "talk");
    start["provider"] = json!({"name": "first", "scope": scope});
    let mut client = world.connect();
    client.send(start).await;
    client.event("ready").await;
    client
}

fn provider(scope: &str, audio_offset: f64) -> Value {
    json!({"type": "provider", "name": "any", "scope": scope, "audio_offset": audio_offset})
}

/// Scope, number, status and seconds of evidence of every voice.
fn voices(lane: &LaneSnapshot) -> Vec<(&str, u32, &str, f64)> {
    let all = lane.voices.iter().map(|it| &it.voice);
    all.map(|it| (it.scope.as_deref().unwrap_or_default(), it.speaker, it.status, it.evidence_seconds)).collect()
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
        let mut client = client_of(&world, "first:0").await;
        client.speak(OWNER, 5.0).await;
        client.send(provider("second:0", 5.0)).await;
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

#[test]
fn audio_that_was_lost_only_before_us_is_the_dead_streams_own() {
    run(async {
        let world = world();
        let mut client = client_of(&world, "first:0").await;
        client.speak(OWNER, 5.0).await;
        client.send(json!({"type": "audio_gap", "seconds": 10})).await;
        client.send(provider("second:0", 15.0)).await;
        client.speak(STRANGER, 5.0).await; // 15 to 20 s
        let late = json!({"id": "late", "speaker": 0, "start": 0.0, "end": 15.0, "scope": "first:0"});
        client.offer(vec![late, json!({"id": "new", "speaker": 0, "start": 0.0, "end": 5.0})]).await;
        let events = client.events().await;
        assert!(of_type(&events, "error").is_empty(), "the provider heard what we did not");
        assert_eq!(world.queries(), [(OWNER, 5.0), (STRANGER, 5.0)]);
    });
}

// B10.133
#[test]
fn the_owner_is_recognised_across_a_failover_and_a_stall() {
    run(async {
        let world = world();
        let mut client = client_of(&world, "first:0").await;
        client.speak(0, 60.0).await;
        client.speak(OWNER, 3.0).await;
        // The provider dies with these three seconds; the next one is sent them first.
        client.send(provider("second:0", 60.0)).await;
        client.offer(vec![json!({"id": "a", "speaker": 0, "start": 0.0, "end": 3.0})]).await;
        pass(5.0).await; // The client stalls: neither we nor the provider hear anything.
        client.speak(OWNER, 2.5).await;
        client.offer(vec![json!({"id": "b", "speaker": 0, "start": 3.0, "end": 5.5})]).await;
        settle().await;
        assert_eq!(world.queries(), [(OWNER, 3.0), (OWNER, 2.5)]);
        assert_eq!(voices(&world.lane("talk").await), [("second:0", 0, "user", 5.5)]);
        let events = client.events().await;
        let named: Vec<_> =
            of_type(&events, "speaker").iter().map(|it| (&it["person_id"], &it["segment_id"])).collect();
        assert_eq!(named, [(&json!("user"), &json!("b"))]);
    });
}

#[test]
fn what_a_dead_stream_was_never_sent_is_refused_with_the_field_and_the_reason() {
    run(async {
        let world = world();
        let mut client = client_of(&world, "first:0").await;
        client.speak(STRANGER, 5.0).await;
        client.send(provider("second:0", 5.0)).await;
        client.speak(OWNER, 5.0).await;
        let late = |id: &str, start: f64, end: f64| json!({"id": id, "speaker": 0, "start": start, "end": end, "scope": "first:0"});
        client.offer(vec![late("past", 6.0, 9.0), late("across", 1.0, 9.0), late("its own", 0.0, 5.2)]).await;
        let events = client.events().await;
        let errors: Vec<_> = of_type(&events, "error").iter().map(|it| it["field"].as_str().unwrap()).collect();
        assert_eq!(errors, ["segments[0].start", "segments[1].end"]);
        let message = of_type(&events, "error")[0]["message"].as_str().unwrap();
        assert!(message.ends_with("(outside_accepted_sends)"), "{message}");
        assert_eq!(world.queries(), [(STRANGER, 5.0)], "nothing that was said after its death");
    });
}

// B10.132
#[test]
fn a_segment_without_length_is_refused_by_its_end_and_the_others_are_taken() {
    run(async {
        let world = world();
        let mut client = world.client("recording", "talk").await;
        client.speak(OWNER, 5.0).await;
        let segment = |start: f64, end: f64| json!({"id": "s", "speaker": 0, "start": start, "end": end});
        client.offer(vec![segment(5.0, 5.0), segment(2.0, 2.0), segment(126.66, 102.96), segment(0.0, 5.0)]).await;
        let events = client.events().await;
        let errors: Vec<_> = of_type(&events, "error").iter().map(|it| it["field"].as_str().unwrap()).collect();
        assert_eq!(errors, ["segments[0].end", "segments[1].end", "segments[2].end"]);
        assert_eq!(world.queries(), [(OWNER, 5.0)]);
    });
}

// Case 7
#[test]
fn speech_after_gated_silence_is_found_where_it_was_sent_and_not_where_the_provider_counts() {
    run(async {
        let world = world();
        let mut client = client_of(&world, "gated").await;
        client.speak(STRANGER, 1.0).await;
        client.speak(0, 29.0).await; // The gate keeps this from the provider.
        client.send(provider("gated", 29.0)).await;
        client.offer(vec![json!({"id": "early", "speaker": 0, "start": 1.0, "end": 6.0})]).await;
        client.speak(OWNER, 5.0).await;
        client.offer(vec![json!({"id": "after", "speaker": 0, "start": 1.0, "end": 6.0})]).await;
        client.offer(vec![json!({"id": "across", "speaker": 1, "start": 0.5, "end": 3.0})]).await;
        let events = client.events().await;
        assert_eq!(world.queries(), [(OWNER, 5.0)]);
        assert_eq!(voices(&world.lane("talk").await), [("gated", 0, "user", 5.0)]);
        let errors: Vec<_> = of_type(&events, "error").iter().map(|it| it["message"].as_str().unwrap()).collect();
        assert!(errors.len() == 1 && errors[0].ends_with("(discontinuous_interval)"), "{errors:?}");
    });
}

// B10.138
#[test]
fn one_label_of_two_providers_is_two_numbers_and_after_a_reconnect_a_third() {
    run(async {
        let world = world();
        let mut client = world.client("recording", "talk").await;
        client.speak(OWNER, 5.0).await;
        client.speak(STRANGER, 5.0).await;
        let says = |scope: &str, start: f64| json!({"id": scope, "speaker": "SPEAKER_00", "start": start, "end": start + 5.0, "scope": scope});
        client.offer(vec![says("deepgram:0", 0.0), says("modulate:0", 5.0)]).await;
        settle().await;
        let expected = [("deepgram:0", 0, "user", 5.0), ("modulate:0", 1, "no_match", 5.0)];
        assert_eq!(voices(&world.lane("talk").await), expected, "two providers in one batch are two scopes");

        client.leave().await;
        let mut again = world.client("recording", "talk").await;
        again.speak(STRANGER, 5.0).await;
        again.offer(vec![json!({"id": "new", "speaker": "SPEAKER_00", "start": 0.0, "end": 5.0})]).await;
        let events = again.events().await;
        let speaker = of_type(&events, "speaker");
        assert_eq!((&speaker[0]["speaker"], &speaker[0]["label"]), (&json!(2), &json!("SPEAKER_00")));
    });
}

// Case 5
#[test]
fn a_label_that_restarts_in_the_next_scope_shares_no_evidence_with_the_first() {
    run(async {
        let world = world();
        let mut client = client_of(&world, "a:0").await;
        client.speak(OWNER, 3.0).await;
        client.offer(vec![json!({"id": "a", "speaker": "SPEAKER_00", "start": 0.0, "end": 3.0})]).await;
        client.send(provider("b:0", 3.0)).await;
        client.speak(OWNER, 3.0).await;
        client.offer(vec![json!({"id": "b", "speaker": "SPEAKER_00", "start": 0.0, "end": 3.0})]).await;
        settle().await;
        assert_eq!(world.queries(), [(OWNER, 3.0), (OWNER, 3.0)]);
        let expected = [("a:0", 0, "pending", 3.0), ("b:0", 1, "pending", 3.0)];
        assert_eq!(voices(&world.lane("talk").await), expected, "six seconds of two voices name neither");
    });
}

// Case 6
#[test]
fn a_provider_that_dies_soon_after_it_opened_ends_nothing_and_loses_no_queued_voice() {
    run(async {
        let world = World::new(1);
        world.script(OWNER, &[Answer::Vector(at_distance(0.2))]);
        world.script(STRANGER, &[Answer::Vector(at_distance(0.95))]);
        world.queries_take(Duration::from_secs(1));
        let mut client = client_of(&world, "first:0").await;
        client.say(1, STRANGER, 5.0).await;
        client.say(0, OWNER, 5.0).await;
        client.send(provider("second:0", 10.0)).await;
        for _ in 0..3 {
            client.speak(STRANGER, 0.1).await;
            pass(0.1).await;
        }
        client.send(provider("third:0", 10.3)).await;
        client.speak(OWNER, 5.0).await;
        client.offer(vec![json!({"id": "third", "speaker": 0, "start": 0.0, "end": 5.0})]).await;
        assert_eq!(world.queries().len(), 1, "the owner of the first stream still waits");
        pass(10.0).await;
        let events = client.events().await;
        let (ready, closed) = (of_type(&events, "ready"), of_type(&events, "close"));
        assert!(ready.is_empty() && closed.is_empty(), "the same session");
        let mut voices: Vec<_> =
            events.iter().filter(|it| it["type"] == "speaker").map(|it| (&it["scope"], &it["status"])).collect();
        voices.sort_by_key(|(scope, _)| scope.to_string());
        let expected = [("first:0", "no_match"), ("first:0", "user"), ("third:0", "user")];
        assert_eq!(
            voices,
            expected.map(|(scope, status)| (json!(scope), json!(status))).each_ref().map(|(a, b)| (a, b))
        );
    });
}

// Case 17
#[test]
fn finals_of_two_streams_with_one_id_and_one_time_are_both_kept() {
    run(async {
        let world = world();
        let mut client = client_of(&world, "first:0").await;
        client.speak(0, 1.2).await;
        client.speak(OWNER, 5.0).await;
        let item = json!({"id": "0:1.20", "speaker": 0, "channel": 0, "start": 1.2, "end": 6.2});
        client.offer(vec![item.clone()]).await;
        client.send(provider("second:0", 6.2)).await;
        client.speak(0, 1.2).await;
        client.speak(STRANGER, 5.0).await;
        client.offer(vec![item]).await;
        settle().await;
        assert_eq!(world.queries(), [(OWNER, 5.0), (STRANGER, 5.0)]);
        let expected = [("first:0", 0, "user", 5.0), ("second:0", 0, "no_match", 5.0)];
        assert_eq!(voices(&world.lane("talk").await), expected);
    });
}

// B10.127 to B10.130, case 1
#[test]
fn the_ring_gives_the_very_samples_of_a_window_across_lost_audio_and_its_own_end() {
    let rate = Rate::new(NonZeroU32::new(100).unwrap());
    let seconds = |first: i16| (first..first + 100).collect::<Vec<i16>>();
    for (capacity, earlier) in [(60, 0), (2, 0), (2, 3)] {
        let mut ring = Ring::new(rate, capacity * 100);
        (0..earlier).for_each(|_| ring.write(&seconds(-500)));
        ring.skip((100 - earlier) * 100);
        ring.write(&seconds(1000));
        ring.skip(500);
        ring.write(&seconds(2000));
        let extract = |start: f64, end: f64| {
            ring.copy(&ring.timeline().locate(ring.timeline().span(start, end).unwrap())).to_vec()
        };
        let halves = [&seconds(1000)[50..], &seconds(2000)[..50]].concat();
        assert_eq!(extract(100.5, 106.5), halves, "{capacity} s, {earlier} s before");
        assert_eq!(extract(100.25, 100.75), seconds(1000)[25..75]);
        let byte = |bytes: f64| extract(100.0 + bytes / 200.0, 101.0)[0];
        assert_eq!([byte(3.5), byte(4.5)], [1001, 1002], "never half a sample");
        assert_eq!((extract(98.0, 99.0), extract(107.0, 109.0)), (vec![], vec![]));
    }
}

// B11.134, as far as it can be ours: no transcript is read here, so an introduction names nobody and changes nothing.
#[test]
fn what_was_said_is_neither_read_nor_kept_nor_told() {
    let heard = |text: Option<&'static str>| {
        run(async move {
            let world = world();
            let mut client = client_of(&world, "first:0").await;
            let part = client.speak(STRANGER, 5.0).await;
            let mut segment = client.segment(0, part);
            if let Some(text) = text {
                segment["text"] = json!(text);
            }
            client.offer(vec![segment]).await;
            let events = client.events().await;
            world.service.history.wait_for_disk().await;
            let history = gateway::store::Store::history(&*world.store, "talk").unwrap();
            (events, format!("{:?}", history.map(|history| history.pages)), world.queries())
        })
    };
    let introduction = heard(Some("My name is Alice."));
    assert_eq!(introduction, heard(None));
    assert!(!introduction.0.is_empty() && !format!("{introduction:?}").contains("Alice"));
}
