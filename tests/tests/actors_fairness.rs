//! Goal: no token is spent on waiting, turns are shared fairly by seconds of audio, and no worker idles while somebody
//! waits.
//! Method: the live actors on virtual time with two workers that are first come, first served, as the pool's are; a
//! hundred conversations that always have more to examine than there is time for. Each conversation has a tone of its
//! own, so that the engine's log tells whose query was when. The budgets are raised: here the workers are the limit.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway::live::SharePer;
use rollcall_tests::actors::{Client, Query, World, limit, pass, run};
use serde_json::Value;

const WORKERS: usize = 2;
const RUN: Duration = Duration::from_millis(200);
/// Short enough that nine who speak every second leave the workers time.
const CALM_RUN: Duration = Duration::from_millis(50);

/// Two workers, and budgets that nobody reaches.
fn world() -> World {
    let world = World::with_workers(WORKERS, |settings| {
        settings.budget.burst = limit(1_000_000);
        settings.budget.attempts_max = limit(1_000_000);
        settings.sockets.ring = Duration::from_secs(20);
    });
    world.queries_take(RUN);
    world
}

/// Clients of `count` conversations, each with its own tone: the first has tone 1.
async fn conversations(world: &World, count: i16) -> Vec<(i16, Client)> {
    let mut clients = Vec::new();
    for tone in 1..=count {
        let name = format!("conversation-{tone}");
        clients.push((tone, world.client(&name, &name).await));
    }
    clients
}

/// Two seconds of speech that `voices` voices of a conversation have at once.
async fn speak(client: &mut Client, tone: i16, voices: std::ops::Range<u32>) {
    let part = client.speak(tone, 2.0).await;
    let segments: Vec<Value> = voices.map(|voice| client.segment(voice, part)).collect();
    client.offer(segments).await;
}

/// Every query that was reserved ran at once, and none was lost.
fn check_nothing_was_spent_on_waiting(world: &World, log: &[Query]) {
    let now = world.now();
    for query in log {
        assert_eq!(query.waited(now), Duration::ZERO, "reserved, and no worker was free: {query:?}");
    }
    let books = world.service.telemetry.accounts().books();
    let under_way = log.iter().filter(|query| query.ended.is_none()).count();
    assert_eq!((books.reserved as usize, books.failed), (log.len(), 0), "each reservation became one run: {books:?}");
    assert_eq!(books.open as usize, under_way);
    assert!(under_way <= WORKERS);
}

/// Jain's index: 1 when all have the same, 1/n when one has everything.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// Seconds of audio that were examined, by conversation.
fn served(log: &[Query], tones: i16) -> Vec<f64> {
    let mut seconds: BTreeMap<i16, f64> = (1..=tones).map(|tone| (tone, 0.0)).collect();
    for query in log.iter().filter(|query| query.started.is_some()) {
        *seconds.entry(query.tone).or_default() += query.seconds;
    }
    seconds.into_values().collect()
}

#[test]
fn a_hundred_busy_conversations_share_two_workers_evenly_and_spend_nothing_on_waiting() {
    run(async {
        const ROUNDS: u32 = 24;
        let world = world();
        let mut clients = conversations(&world, 100).await;
        for _ in 0..ROUNDS {
            for (tone, client) in &mut clients {
                // Some have one voice that talks, some have eight, and the fewer they are the longer their clips grow: a
                // conversation has one share of the audio, whatever it has.
                speak(client, *tone, 0..voices_of(*tone)).await;
            }
            for _ in 0..100 {
                pass(0.1 - 1e-5).await;
                let idle = world.idle_workers();
                assert!(idle == 0 || world.service.turnstile.waiting() == 0, "{idle} idle while somebody waits");
            }
        }
        let log = world.log();
        check_nothing_was_spent_on_waiting(&world, &log);
        // One or two voices say less than a share: they have all of it. The others have the same.
        let said = |tone| f64::from(2 * ROUNDS * voices_of(tone));
        let served = served(&log, 100);
        let (modest, greedy): (Vec<_>, Vec<_>) = (1..=100).zip(served).partition(|(tone, _)| voices_of(*tone) <= 2);
        for (tone, seconds) in modest {
            assert!((seconds - said(tone)).abs() < 0.1, "{tone} said {} s, of which {seconds} were heard", said(tone));
        }
        let greedy: Vec<f64> = greedy.into_iter().map(|(_, seconds)| seconds).collect();
        let index = jain(&greedy);
        assert!(index > 0.99, "Jain's index {index:.4}: {greedy:?}");

        let capacity = world.now().as_secs_f64() / RUN.as_secs_f64() * WORKERS as f64;
        let done = log.iter().filter(|query| query.ended.is_some()).count() as f64;
        assert!(done > 0.99 * capacity, "{done} of {capacity} runs: a worker stood still");
        println!("{done} runs, Jain's index {index:.4}");
    });
}

/// Voices of a conversation that talk: one to eight.
fn voices_of(tone: i16) -> u32 {
    1 + tone as u32 % 8
}

#[test]
fn a_conversation_of_three_recordings_has_three_shares_where_shares_go_by_recordings() {
    for (shares, due) in [(SharePer::Conversation, 1.0), (SharePer::Recording, 3.0)] {
        run(async move {
            let world = World::with_workers(WORKERS, |settings| {
                settings.budget.burst = limit(1_000_000);
                settings.shares = shares;
            });
            world.queries_take(RUN);
            let mut clients = conversations(&world, 5).await;
            for device in ["second", "third"] {
                clients.push((1, world.client(device, "conversation-1").await));
            }
            for (tone, client) in &mut clients {
                speak(client, *tone, 0..60).await;
            }
            // 150 runs, of 420 that could be.
            pass(15.0).await;
            let served = served(&world.log(), 5);
            let (own, others) = served.split_first().unwrap();
            let ratio = own / (others.iter().sum::<f64>() / 4.0);
            assert!((ratio / due - 1.0).abs() < 0.15, "{ratio:.2} times the others' share: {served:?}");
        });
    }
}

#[test]
fn in_every_window_two_conversations_that_wait_lie_within_a_clip_of_each() {
    run(async {
        const CLIP: f64 = 2.0;
        let world = world();
        let mut clients = conversations(&world, 20).await;
        for (tone, client) in &mut clients {
            speak(client, *tone, 0..60).await;
        }
        pass(60.0).await;
        let log = world.log();
        assert!(log.len() > 400);
        // While they come in, the turns go to whoever is there; soon everybody waits.
        let log = &log[2 * WORKERS + 20..];
        for from in 0..log.len() {
            let mut had = BTreeMap::from_iter((1..=20).map(|tone| (tone, 0.0)));
            for query in &log[from..] {
                *had.entry(query.tone).or_default() += query.seconds;
                let (least, most) =
                    had.values().fold((f64::MAX, 0.0_f64), |(least, most), s| (least.min(*s), most.max(*s)));
                assert!(most - least <= 2.0 * CLIP + 0.01, "{least} to {most} s from {from} on");
            }
        }
    });
}

/// How the nine calm conversations speak within each second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Together,
    InTurn,
    Scattered,
}

impl Order {
    /// Who speaks when, in seconds from the second's beginning.
    fn moments(self, second: u64) -> Vec<(f64, usize)> {
        let scattered = |index: u64| ((second * 9 + index) * 7_919 % 1_009) as f64 / 1_009.0 * 0.7;
        let mut moments: Vec<(f64, usize)> = (0..9)
            .map(|index| match self {
                Self::Together => (0.0, index),
                Self::InTurn => (index as f64 / 9.0, index),
                // Nobody twice within 0.3 s, so that each time they speak is examined by itself.
                Self::Scattered => (scattered(index as u64), index),
            })
            .collect();
        moments.sort_by(|one, other| one.0.total_cmp(&other.0));
        moments
    }
}

/// How long nine calm conversations wait from their segment to its verdict, when each speaks once a second; the tenth
/// bursts out with a hundred voices every five seconds, or not at all.
fn waits_of_the_calm(order: Order, burst: bool) -> Vec<Duration> {
    run(async move {
        let world = world();
        world.queries_take(CALM_RUN);
        let mut clients = conversations(&world, 10).await;
        let mut offered: Vec<(i16, Duration)> = Vec::new();
        for second in 0..40 {
            let (loud, calm) = clients.split_last_mut().unwrap();
            if burst && second % 5 == 0 {
                speak(&mut loud.1, loud.0, 0..100).await;
            }
            let mut at = 0.0;
            for (moment, index) in order.moments(second) {
                pass(moment - at).await;
                at = moment;
                let (tone, client) = &mut calm[index];
                offered.push((*tone, world.now()));
                speak(client, *tone, 0..1).await;
            }
            pass(1.0 - at).await;
            assert!(world.idle_workers() == 0 || world.service.turnstile.waiting() == 0, "idle while somebody waits");
        }
        pass(30.0).await;
        let log = world.log();
        check_nothing_was_spent_on_waiting(&world, &log);
        if burst {
            assert!(log.iter().filter(|query| query.tone == 10).count() > 700, "the burst was examined as well");
        }
        (1..10).flat_map(|tone| waits(&offered, &log, tone)).collect()
    })
}

/// The calm speak two seconds at a time and are examined each time, so offers and queries of one tone are pairs.
fn waits(offered: &[(i16, Duration)], log: &[Query], tone: i16) -> Vec<Duration> {
    let offers: Vec<Duration> = offered.iter().filter(|(of, _)| *of == tone).map(|(_, at)| *at).collect();
    let ends: Vec<Duration> = log.iter().filter(|query| query.tone == tone).filter_map(|query| query.ended).collect();
    assert_eq!(offers.len(), ends.len(), "everything was served");
    offers.iter().zip(ends).map(|(offered, ended)| ended - *offered).collect()
}

fn p99(mut waits: Vec<Duration>) -> Duration {
    waits.sort_unstable();
    waits[waits.len() * 99 / 100]
}

#[test]
fn a_burst_of_a_hundred_voices_at_most_doubles_what_nine_calm_conversations_wait() {
    for order in [Order::InTurn, Order::Scattered, Order::Together] {
        let (alone, beside) = (p99(waits_of_the_calm(order, false)), p99(waits_of_the_calm(order, true)));
        println!("{order:?}: p99 from segment to verdict {alone:?} alone, {beside:?} beside the burst");
        assert!(beside <= alone * 2, "{order:?}: {beside:?} beside the burst, {alone:?} alone");
        if order == Order::InTurn {
            assert_eq!(alone, CALM_RUN, "each is alone");
        }
    }
}
