//! Goal: nothing that a scheduler, a worker, a client or the moment does loses a place, a number, a turn or a lease, and
//! nobody else notices.
//! Method: real actors on virtual time. A scheduler panics because its engine does, inside the submission; everything
//! else is said by clients. Afterwards [`check_nothing_leaked`] looks at every book there is.

use std::time::Duration;

use gateway::live::{Capacity, Drain, Frame};
use gpu_worker::Failure;
use rollcall_tests::actors::{Answer, World, at_distance, count, limit, of_type, pass, run, start};
use serde_json::{Value, json};

const OWNER: i16 = 200;
const NOISE: i16 = 300;
const BOMB: i16 = 400;

/// A world in which the owner is near and the bomb makes its scheduler panic once.
fn world(turns: usize) -> World {
    let world = World::new(turns);
    world.script(OWNER, &[Answer::Vector(at_distance(0.2))]);
    world.script(BOMB, &[Answer::Panics, Answer::Vector(at_distance(0.9))]);
    world
}

/// Every reservation was settled, every turn came back, nothing waits, and no conversation is left.
fn check_nothing_leaked(world: &World) {
    let books = world.service.telemetry.accounts().books();
    assert_eq!(books.open, 0, "a lease is open: {books:?}");
    assert_eq!(books.reserved, books.succeeded + books.failed);
    assert_eq!(books.reserved as usize, world.log().len() + bombs(world), "each reservation became one query");
    let turnstile = &world.service.turnstile;
    assert_eq!((turnstile.out(), turnstile.waiting()), (0, 0), "a turn is out or wanted");
    assert_eq!(world.service.registry.conversations_of("local"), [""; 0]);
}

/// Submissions that panicked, which the engine does not count.
fn bombs(world: &World) -> usize {
    world.metric("rollcall_invariant_violations_total{kind=\"scheduler_lost\"}") as usize
}

fn named<'a>(events: &'a [Value], person: &str) -> Vec<&'a Value> {
    of_type(events, "speaker").into_iter().filter(|event| event["person_id"] == person).collect()
}

#[test]
fn a_scheduler_that_panics_is_replaced_and_what_the_rings_hold_is_offered_again() {
    run(async {
        let world = world(8);
        world.script(NOISE, &[Answer::Hangs, Answer::Vector(at_distance(0.9))]);
        let mut owner = world.client("one", "talk").await;
        let mut other = world.client("two", "talk").await;
        owner.say(1, OWNER, 5.0).await;
        let before = named(&owner.events().await, "user")[0]["generation"].as_u64().unwrap();
        other.say(2, NOISE, 5.0).await;
        other.events().await;

        owner.say(3, BOMB, 2.0).await;
        let events = owner.events().await;
        let ready = of_type(&events, "ready");
        let generation = ready[0]["generation"].as_u64().unwrap();
        assert!(ready.len() == 1 && generation > before, "{events:?}");
        let again = named(&events, "user");
        assert_eq!((&again[0]["speaker"], &again[0]["generation"]), (&json!(1), &json!(generation)), "{events:?}");
        assert_eq!(of_type(&other.events().await, "ready").len(), 1, "the other socket joined the new one, too");
        assert_eq!(world.snapshot("talk").await.unwrap().lanes.len(), 2);

        let books = world.service.telemetry.accounts().books();
        assert_eq!((books.open, books.failed), (0, 2), "the hanging query and the one that panicked failed: {books:?}");
        owner.leave().await;
        other.leave().await;
        check_nothing_leaked(&world);
    });
}

#[test]
fn the_fourth_loss_in_a_minute_closes_its_sockets_and_no_others() {
    run(async {
        let world = world(8);
        world.script(BOMB, &[Answer::Panics]);
        let mut first = world.client("one", "talk").await;
        let mut second = world.client("two", "talk").await;
        let mut neighbour = world.client("three", "elsewhere").await;
        first.say(1, BOMB, 2.0).await;
        for client in [&mut first, &mut second] {
            let events = client.events().await;
            assert_eq!(of_type(&events, "ready").len(), 3, "it was replaced three times: {events:?}");
            assert_eq!(of_type(&events, "close")[0]["code"], 1011);
        }
        assert_eq!(bombs(&world), 4);
        neighbour.say(1, OWNER, 5.0).await;
        assert_eq!(named(&neighbour.events().await, "user").len(), 1);
        assert_eq!(world.service.registry.conversations_of("local"), ["elsewhere"], "the lost one takes no place");

        pass(61.0).await;
        let mut later = world.client("four", "talk").await;
        later.say(1, OWNER, 5.0).await;
        assert_eq!(named(&later.events().await, "user").len(), 1, "the conversation may be held again");
        neighbour.leave().await;
        later.leave().await;
        check_nothing_leaked(&world);
    });
}

#[test]
fn losses_that_lie_apart_are_survived_for_ever() {
    run(async {
        let world = World::with(8, |settings| settings.budget.burst = limit(100));
        let mut client = world.client("one", "talk").await;
        for voice in 1..=8 {
            let tone = BOMB + 1 + voice as i16;
            world.script(tone, &[Answer::Panics, Answer::Vector(at_distance(0.9))]);
            client.say(voice, tone, 2.0).await;
            assert_eq!(of_type(&client.events().await, "ready").len(), 1);
            client.speak(0, 25.0).await;
            pass(25.0).await;
        }
        assert_eq!(bombs(&world), 8);
        client.leave().await;
        check_nothing_leaked(&world);
    });
}

#[test]
fn a_number_in_work_in_a_former_conversation_is_free_when_that_ones_scheduler_is_lost() {
    run(async {
        let world = world(8);
        world.script(NOISE, &[Answer::Hangs]);
        let mut moving = world.client("one", "first").await;
        let mut staying = world.client("two", "first").await;
        moving.say(3, NOISE, 2.0).await;
        moving.send(json!({"type": "rollover", "conversation_id": "second"})).await;
        moving.event("ready").await;
        moving.say(3, OWNER, 5.0).await;
        assert_eq!(world.queries().len(), 1, "its number is in work");
        staying.say(1, BOMB, 2.0).await;
        assert_eq!(named(&moving.events().await, "user").len(), 1, "free at once, for the query settled");
        moving.leave().await;
        staying.leave().await;
        check_nothing_leaked(&world);
    });
}

#[test]
fn a_query_past_its_deadline_frees_its_place_and_its_number_while_its_worker_hangs() {
    run(async {
        let world = World::with_workers(2, |settings| settings.limits.queries_max = count(1));
        world.script(NOISE, &[Answer::Hangs]);
        world.script(OWNER, &[Answer::Vector(at_distance(0.2))]);
        let mut client = world.client("recording", "talk").await;
        client.say(1, NOISE, 5.0).await;
        pass(0.5).await;
        let late = client.speak(OWNER, 5.0).await;
        let both = vec![client.segment(1, late), client.segment(2, late)];
        client.offer(both).await;
        pass(4.4).await;
        assert_eq!(world.queries().len(), 1, "the only place is taken");
        pass(0.2).await;
        let events = client.events().await;
        let error = of_type(&events, "error")[0];
        assert_eq!((&error["code"], &error["speaker"]), (&json!("extraction_failed"), &json!(1)));
        assert_eq!(world.idle_workers(), 1, "the other worker still hangs");
        // The first needs the audio of both its stretches, of which the hanging one was not used up.
        assert_eq!(
            world.queries()[1..],
            [(OWNER, 5.0), (OWNER, 10.0)],
            "the place went to the untried, then the number"
        );
        client.leave().await;
        check_nothing_leaked(&world);
    });
}

#[test]
fn two_hundred_rollovers_with_queries_in_flight_leak_nothing() {
    run(async {
        let world = World::with(8, |settings| settings.budget.burst = limit(10_000));
        let failure = Failure::Extraction("broken".to_owned());
        world.script(OWNER, &[Answer::Vector(at_distance(0.2))]);
        world.script(NOISE, &[Answer::Failure(failure), Answer::Hangs, Answer::Vector(at_distance(0.9))]);
        world.queries_take(Duration::from_millis(700));
        let mut client = world.client("recording", "talk-0").await;
        for round in 1..=200_u32 {
            let part = client.speak(if round % 4 == 0 { NOISE } else { OWNER }, 2.0).await;
            let segments = (0..5).map(|voice| client.segment((round + voice) % 7, part)).collect();
            client.offer(segments).await;
            if round % 3 == 0 {
                pass(f64::from(round % 5) * 0.4).await;
            }
            if round % 10 == 0 {
                let again = [Answer::Hangs, Answer::Vector(at_distance(0.9))];
                world.script(NOISE, &again);
            }
            // Back to a conversation that may still hold queries of its own, too.
            client.send(json!({"type": "rollover", "conversation_id": format!("talk-{}", round % 3)})).await;
            assert!(world.service.turnstile.out() <= 8);
        }
        client.events().await;
        pass(10.0).await;
        assert!(world.queries().len() > 100, "there was something to leak: {}", world.queries().len());
        let lane = world.lane("talk-2").await;
        assert!(lane.in_work.is_empty(), "{lane:?}");
        assert_eq!(world.service.registry.conversations_of("local"), ["talk-2"]);
        let before = world.queries().len();
        for voice in 0..7 {
            client.say(voice, OWNER, 5.0).await;
        }
        pass(2.0).await;
        assert_eq!(world.queries().len() - before, 7, "every number can be examined");
        client.leave().await;
        check_nothing_leaked(&world);
    });
}

#[test]
fn the_lanes_of_a_conversation_alternate() {
    run(async {
        let world = World::new(1);
        world.queries_take(Duration::from_secs(1));
        let mut clients = [world.client("one", "talk").await, world.client("two", "talk").await];
        for (client, tone) in clients.iter_mut().zip([OWNER, NOISE]) {
            let part = client.speak(tone, 2.0).await;
            let segments = (0..4).map(|voice| client.segment(voice, part)).collect();
            client.offer(segments).await;
        }
        pass(9.0).await;
        let tones: Vec<i16> = world.queries().into_iter().map(|(tone, _)| tone).collect();
        assert_eq!(tones, [OWNER, NOISE].repeat(4));
    });
}

#[test]
fn the_ninth_socket_of_a_conversation_is_refused_and_may_start_elsewhere() {
    run(async {
        let world = world(4);
        let mut clients = Vec::new();
        for index in 0..8 {
            clients.push(world.client(&format!("recording-{index}"), "talk").await);
        }
        let mut ninth = world.connect();
        ninth.send(start("recording-9", "talk")).await;
        let error = ninth.event("error").await;
        assert_eq!((&error["code"], &error["field"]), (&json!("conversation_full"), &json!("conversation_id")));
        assert_eq!(world.snapshot("talk").await.unwrap().lanes.len(), 8);
        ninth.send(start("recording-9", "elsewhere")).await;
        ninth.event("ready").await;
        ninth.say(1, OWNER, 5.0).await;
        assert_eq!(named(&ninth.events().await, "user").len(), 1);

        clients.remove(3).leave().await;
        clients.push(world.client("recording-10", "talk").await);
        clients.push(ninth);
        for client in clients {
            client.leave().await;
        }
        check_nothing_leaked(&world);
    });
}

#[test]
fn a_socket_that_joins_while_the_last_one_leaves_gets_in() {
    for steps in 0..12 {
        run(async {
            let world = world(4);
            let mut former = world.client("former", "talk").await;
            former.say(1, OWNER, 2.0).await;
            let mut next = world.connect();
            let closing = former.socket.send(Frame::Closed);
            let starting = async {
                // Each step is one round of everything that is ready.
                for _ in 0..steps {
                    tokio::task::yield_now().await;
                }
                next.send(start("next", "talk")).await;
            };
            // The actor may end before it answers.
            tokio::join!(async { closing.await.ok() }, starting);
            next.event("ready").await;
            assert_eq!(world.snapshot("talk").await.unwrap().lanes.len(), 1, "after {steps} steps");
            next.say(1, OWNER, 5.0).await;
            assert_eq!(named(&next.events().await, "user").len(), 1, "after {steps} steps");
            next.leave().await;
            check_nothing_leaked(&world);
        });
    }
}

#[test]
fn a_client_that_never_reads_is_closed_and_its_neighbour_goes_on() {
    run(async {
        let world = World::with(4, |settings| settings.sockets.outbound_events = 16);
        world.script(OWNER, &[Answer::Vector(at_distance(0.2))]);
        let mut deaf = world.client("deaf", "talk").await;
        let mut neighbour = world.client("neighbour", "talk").await;
        for _ in 0..100 {
            deaf.text("no JSON").await;
        }
        neighbour.say(1, OWNER, 5.0).await;
        assert_eq!(named(&neighbour.events().await, "user").len(), 1);
        assert_eq!(deaf.event("close").await["code"], 1008, "before everything that it did not read");
        deaf.leave().await;
        neighbour.say(2, OWNER, 5.0).await;
        assert!(!neighbour.events().await.is_empty());
        neighbour.leave().await;
        check_nothing_leaked(&world);
    });
}

#[test]
fn a_drain_says_goodbye_to_every_socket_whatever_it_is_doing() {
    run(async {
        let world = world(8);
        world.script(NOISE, &[Answer::Hangs]);
        let waiting = world.connect();
        let late = waiting.socket.clone();
        let mut idle = world.client("idle", "talk").await;
        idle.say(1, OWNER, 5.0).await;
        let mut busy = world.client("busy", "talk").await;
        busy.say(1, NOISE, 5.0).await;
        let mut stopping = world.client("stopping", "elsewhere").await;
        stopping.say(1, NOISE, 5.0).await;
        stopping.send(json!({"type": "stop"})).await;
        let rolling = world.client("rolling", "elsewhere").await;
        rolling.send(json!({"type": "rollover", "conversation_id": "next"})).await;

        let registry = &world.service.registry;
        registry.begin_draining();
        for socket in registry.sockets() {
            socket.try_send(Drain).unwrap();
        }
        for mut client in [waiting, idle, busy, stopping, rolling] {
            let events = client.events().await;
            assert_eq!(of_type(&events, "goodbye")[0]["reason"], "draining", "{events:?}");
            assert_eq!(events.last().unwrap()["code"], 1001);
        }
        assert_eq!(registry.socket_count(), 0);
        assert_eq!(registry.admit("late", late, 1000), Err(Capacity::Draining));
        check_nothing_leaked(&world);
    });
}
