//! Goal: whatever an extraction server does, every query is answered within its deadline, no query is asked twice, and the
//! service goes on when a server does.
//! Method: real pools, clients and sockets against servers of this process that misbehave as they are told. Times are
//! shortened; waiting is `eventually` with a generous limit, and no assertion depends on speed.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::{Duration, Instant};

use gpu_worker::remote::circuit::Stand;
use gpu_worker::remote::hostile::{Hostile, Manner};
use gpu_worker::remote::{Config, Fault, Protocol, RemoteFactory};
use gpu_worker::{Clip, Engine as _, Failure, Manifest, Pool, Settings, Ticket, scripted};
use matcher_core::{BadVector, Embedding};

const DIMENSION: usize = 192;
/// Patience of queries that are to be answered by something else.
const LONG: Duration = Duration::from_secs(60);
const BOTH: [Protocol; 2] = [Protocol::OpenInference, Protocol::Embedding];

#[test]
fn a_query_is_answered_with_the_servers_voiceprint_in_either_protocol() {
    for protocol in BOTH {
        let server = server();
        let (pool, _) = ready(&config(protocol, &[&server]));
        assert_eq!(pool.extract_blocking(clip(16_000)), Ok(expected()));
        assert_eq!((pool.health().workers_up, pool.health().restarts), (2, 0));
    }
}

#[test]
fn a_request_names_its_server_its_model_and_what_is_left_of_its_deadline() {
    let server = server();
    let (pool, _) = ready(&config(Protocol::OpenInference, &[&server]));
    let second = clip(16_000);
    assert_eq!(wait(pool.submit(second.clone(), Duration::from_millis(900))), Ok(expected()));
    let seen = server.last().expect("a clip arrived");
    assert_eq!(seen.path, "/base/v2/models/speaker/infer");
    assert_eq!(server.url(""), format!("http://{}", seen.host));
    let left = seen.deadline_ms.expect("the deadline travels along");
    assert!((1..=900).contains(&left), "{left} ms of 900");
    assert!(seen.body_bytes > 98 * 80 * 4, "98 frames of features and a head");

    // Without a caller's deadline the server's own time counts.
    assert_eq!(wait(pool.submit(second, LONG)), Ok(expected()));
    let left = server.last().and_then(|seen| seen.deadline_ms).expect("the deadline travels along");
    assert!((1..=1_000).contains(&left), "{left} ms of 1000");
}

#[test]
fn the_embedding_service_gets_the_clip_as_it_is() {
    let server = server();
    let (pool, _) = ready(&config(Protocol::Embedding, &[&server]));
    assert_eq!(pool.extract_blocking(clip(8_000)), Ok(expected()));
    let seen = server.last().expect("a clip arrived");
    assert_eq!(seen.path, "/base");
    assert!((16_044..16_500).contains(&seen.body_bytes), "a second at 8 kHz and a form: {}", seen.body_bytes);
}

#[test]
fn a_manifest_may_ask_for_samples_instead_of_features() {
    let manifest = manifest("waveform");
    let server = server();
    server.take("-1,-1");
    let factory = RemoteFactory::start(&config(Protocol::OpenInference, &[&server]), &manifest).expect("it starts");
    let pool = Pool::start(settings(), manifest, factory).expect("a thread can be started");
    pool.wait_ready(LONG).expect("the server is well");
    assert_eq!(pool.extract_blocking(clip(8_000)), Ok(expected()));
    let seen = server.last().expect("a clip arrived");
    assert!((64_000..64_500).contains(&seen.body_bytes), "16000 floats and a head: {}", seen.body_bytes);
}

#[test]
fn a_front_end_that_cuts_a_clip_into_parts_gets_the_mean_of_their_vectors() {
    let server = server();
    server.take("-1,160,40");
    let manifest = manifest("librosa_mel40");
    let factory = RemoteFactory::start(&config(Protocol::OpenInference, &[&server]), &manifest).expect("it starts");
    let pool = Pool::start(settings(), manifest, factory).expect("a thread can be started");
    pool.wait_ready(LONG).expect("the server is well");
    let long = Clip { pcm: clip(16_000).pcm.repeat(5).into(), ..clip(16_000) };
    let found = pool.extract_blocking(long).expect("the server is well");
    assert!(found.distance(&expected()).expect("both have one size") < 1e-6);
    let seen = server.last().expect("a clip arrived");
    assert!(seen.parts >= 5, "five seconds are at least five parts, and {} came", seen.parts);
}

#[test]
fn every_misbehaviour_is_heard_as_a_failure_and_costs_no_worker() {
    let extraction = |fault: Fault| Failure::Extraction(fault.to_string());
    let wrong_size = BadVector::WrongSize { expected: DIMENSION, found: 3 };
    for (manner, failure) in [
        (Manner::Dies, extraction(Fault::Broken)),
        (Manner::Stalls, Failure::DeadlinePassed),
        (Manner::StallsMidBody, Failure::DeadlinePassed),
        (Manner::Trickles, Failure::DeadlinePassed),
        (Manner::BreaksOff, extraction(Fault::Broken)),
        (Manner::Status(500), extraction(Fault::Status(500))),
        (Manner::Status(503), extraction(Fault::Status(503))),
        (Manner::Status(404), extraction(Fault::Status(404))),
        (Manner::Status(422), Failure::Encoding(Fault::Refused(422).to_string())),
        (Manner::Redirects, extraction(Fault::Status(307))),
        (Manner::Floods, extraction(Fault::TooLarge)),
        (Manner::Babbles, extraction(Fault::NotAnAnswer("it is not HTTP"))),
        (Manner::NotANumber, Failure::BadVector(BadVector::NotFinite)),
        (Manner::Zeros, Failure::BadVector(BadVector::ZeroNorm)),
    ] {
        check(Protocol::OpenInference, manner, &failure);
        if manner != Manner::NotANumber {
            check(Protocol::Embedding, manner, &failure);
        }
    }
    check(Protocol::OpenInference, Manner::WrongSize, &Failure::BadVector(wrong_size));
    check(Protocol::Embedding, Manner::WrongSize, &Failure::BadVector(wrong_size));
    let shape = Fault::NotAnAnswer("its tensor is not of the shape that its head says");
    check(Protocol::OpenInference, Manner::WrongShape, &extraction(shape));
    let several = Fault::NotAnAnswer("it holds several vectors for one clip");
    check(Protocol::Embedding, Manner::WrongShape, &extraction(several));
}

/// One bad answer: its caller hears `failure`, it was asked once, and the next query works.
fn check(protocol: Protocol, manner: Manner, failure: &Failure) {
    let server = server();
    let (pool, _) = ready(&config(protocol, &[&server]));
    let before = server.clips();
    server.behave(manner, 1);
    assert_eq!(pool.extract_blocking(clip(16_000)), Err(failure.clone()), "{protocol:?} {manner:?}");
    server.behave(Manner::Well, 1);
    assert_eq!(server.clips(), before + 1, "{protocol:?} {manner:?}: it was asked again");
    eventually("the next query works", || pool.extract_blocking(clip(16_000)) == Ok(expected()));
    assert_eq!((pool.health().restarts, pool.health().workers_up), (0, 2), "{protocol:?} {manner:?}");
    assert_eq!(pool.shutdown().threads_left, 0);
}

#[test]
fn a_failure_tells_neither_vector_nor_body() {
    let server = server();
    let (pool, factory) = ready(&config(Protocol::Embedding, &[&server]));
    for manner in [Manner::WrongSize, Manner::WrongShape, Manner::NotANumber, Manner::Babbles] {
        server.behave(manner, 1);
        let failure = pool.extract_blocking(clip(16_000)).expect_err("it misbehaves");
        let told = format!("{failure} {failure:?} {:?} {:?}", factory.endpoints(), pool.health().trouble);
        assert!(!told.contains("NaN") && !told.contains("what is this") && !told.contains("[1"), "{told}");
    }
}

#[test]
fn a_clip_that_cannot_be_used_is_not_sent() {
    for protocol in BOTH {
        let server = server();
        let (pool, _) = ready(&config(protocol, &[&server]));
        let before = server.clips();
        let short = Clip { pcm: vec![1; 7_000].into(), ..clip(16_000) };
        assert!(matches!(pool.extract_blocking(short), Err(Failure::Encoding(_))));
        assert_eq!(server.clips(), before);
    }
}

#[test]
fn a_query_that_is_too_late_is_not_sent() {
    let server = server();
    let (pool, _) = ready(&Config { timeout_seconds: 60.0, ..config(Protocol::OpenInference, &[&server]) });
    server.behave(Manner::Stalls, 1);
    let before = server.clips();
    // Both workers are kept busy for a second, and the others wait for longer than they have.
    let first: Vec<Ticket> = (0..2).map(|_| pool.submit(clip(16_000), LONG)).collect();
    eventually("both are at the server", || server.clips() == before + 2);
    let late: Vec<Ticket> = (0..2).map(|_| pool.submit(clip(16_000), Duration::from_millis(50))).collect();
    assert!(late.into_iter().map(wait).all(|answer| answer == Err(Failure::DeadlinePassed)));
    assert!(first.into_iter().map(wait).all(|answer| answer == Err(Failure::DeadlinePassed)));
    assert_eq!(server.clips(), before + 2);
    assert_eq!(pool.health().restarts, 0, "a stalled exchange ends before the run's deadline");
}

#[test]
fn a_server_that_had_little_time_is_not_judged_by_it() {
    let server = server();
    let (pool, factory) = ready(&Config { timeout_seconds: 60.0, ..config(Protocol::OpenInference, &[&server]) });
    assert_eq!(pool.extract_blocking(clip(16_000)), Ok(expected()));
    server.behave(Manner::Stalls, 1);
    for _ in 0..5 {
        let impatient = pool.submit(clip(16_000), Duration::from_millis(40));
        assert_eq!(wait(impatient), Err(Failure::DeadlinePassed));
    }
    assert_eq!(factory.endpoints()[0].stand, Stand::Closed { failures: 0 });
}

#[test]
fn a_caller_who_leaves_ends_its_exchange_at_once_and_neither_server_nor_worker_is_blamed() {
    for protocol in BOTH {
        for manner in [Manner::Stalls, Manner::StallsMidBody, Manner::Trickles] {
            let server = server();
            let (pool, factory) = ready_with(&patient(protocol, &server), one_worker());
            let before = server.clips();
            for turn in 1..=4 {
                server.behave(manner, 1);
                let ticket = pool.submit(clip(16_000), LONG * 2);
                eventually("it is at the server", || server.clips() == before + turn * 2 - 1);
                assert_eq!(factory.endpoints()[0].under_way, 1);
                drop(ticket);
                eventually("the exchange is over", || factory.endpoints()[0].under_way == 0);
                // The one worker is free: by itself the exchange would go on for longer than this test waits.
                server.behave(Manner::Well, 1);
                assert_eq!(pool.extract_blocking(clip(16_000)), Ok(expected()), "{protocol:?} {manner:?}");
            }
            let told = factory.endpoints().remove(0);
            assert_eq!(told.failed_by_kind, [("given_up", 4)].into(), "{protocol:?} {manner:?}");
            assert_eq!((told.answered, told.stand, told.last_fault), (4, Stand::Closed { failures: 0 }, None));
            assert_eq!((pool.health().restarts, pool.health().workers_up), (0, 1));
            // Of the worker's connections the last is kept; so is one of the keeper's.
            eventually("the connections are closed", || server.connections() <= 2);
        }
    }
}

#[test]
fn of_two_that_wait_only_the_one_who_leaves_is_given_up() {
    let server = server();
    let (pool, factory) = ready_with(&patient(Protocol::OpenInference, &server), settings());
    server.behave(Manner::StallsMidBody, 1);
    let before = server.clips();
    let stays = pool.submit(clip(16_000), Duration::from_secs(1));
    eventually("the first is at the server", || server.clips() == before + 1);
    let leaves = pool.submit(clip(16_000), LONG * 2);
    eventually("both are at the server", || server.clips() == before + 2);
    drop(leaves);
    eventually("the second is given up", || factory.endpoints()[0].failed_by_kind.get("given_up") == Some(&1));
    assert_eq!(factory.endpoints()[0].under_way, 1, "the first is still there");
    assert_eq!(wait(stays), Err(Failure::DeadlinePassed));
}

#[test]
fn callers_who_come_and_go_leave_good_queries_alone() {
    for protocol in BOTH {
        let server = server();
        let (pool, factory) = ready_with(&patient(protocol, &server), one_worker());
        // Left at every moment of an exchange: before it, within and after; the next one must not be touched by it.
        for wait_us in (0..3_000_u64).step_by(25) {
            let ticket = pool.submit(clip(16_000), LONG);
            std::thread::sleep(Duration::from_micros(wait_us));
            drop(ticket);
            assert_eq!(pool.extract_blocking(clip(16_000)), Ok(expected()), "{protocol:?} after {wait_us} us");
        }
        let told = factory.endpoints().remove(0);
        assert_eq!((told.stand, pool.health().restarts), (Stand::Closed { failures: 0 }, 0));
        assert!(told.failed_by_kind.keys().all(|kind| *kind == "given_up"), "{told:?}");
    }
}

#[test]
fn a_server_that_is_down_is_named_and_queries_are_refused_at_once_until_it_is_back() {
    let mut server = server();
    let (pool, factory) = ready(&config(Protocol::OpenInference, &[&server]));
    assert_eq!(pool.extract_blocking(clip(16_000)), Ok(expected()));
    server.die();
    for _ in 0..3 {
        assert!(pool.extract_blocking(clip(16_000)).is_err());
    }
    eventually("the circuit is open", || !pool.health().is_ready());
    let trouble = pool.health().trouble.expect("it is not ready");
    assert!(trouble.contains(&server.url("/base")) && trouble.contains("cannot be reached"), "{trouble}");
    assert_eq!(pool.extract_blocking(clip(16_000)), Err(Failure::Unavailable));

    server.revive().expect("the port is still free");
    eventually("it is in service again", || pool.health().is_ready());
    assert_eq!(pool.extract_blocking(clip(16_000)), Ok(expected()));
    assert_eq!(factory.endpoints()[0].stand, Stand::Closed { failures: 0 });
    assert_eq!((pool.health().restarts, factory.endpoints()[0].last_fault), (0, None));
}

#[test]
fn a_server_that_answers_badly_comes_back_by_probes_that_no_caller_pays_for() {
    for manner in [Manner::Status(500), Manner::Stalls, Manner::NotANumber, Manner::Floods] {
        let server = server();
        let settings = Config { timeout_seconds: 0.1, ..config(Protocol::OpenInference, &[&server]) };
        let (pool, _) = ready(&settings);
        server.behave(manner, 1);
        let heard = (0..50).filter(|_| pool.extract_blocking(clip(16_000)) != Err(Failure::Unavailable)).count();
        assert!(heard <= 3, "{manner:?}: {heard} queries were spent on a server that fails");
        let clips = server.clips();
        eventually("probes go on", || server.clips() > clips);
        server.behave(Manner::Well, 1);
        eventually("a probe brings it back", || pool.health().is_ready());
        assert_eq!(pool.extract_blocking(clip(16_000)), Ok(expected()));
    }
}

#[test]
fn queries_go_to_the_servers_that_work() {
    for protocol in BOTH {
        let (good, bad) = (server(), server());
        let (pool, factory) = ready(&config(protocol, &[&bad, &good]));
        eventually("both are in service", || factory.endpoints().iter().all(|endpoint| is_closed(endpoint.stand)));
        bad.behave(Manner::Status(500), 1);
        let failed = (0..60).filter(|_| pool.extract_blocking(clip(16_000)).is_err()).count();
        assert!((1..=3).contains(&failed), "{failed} of 60 failed");
        assert!(pool.health().is_ready());
        let told = factory.endpoints();
        assert_eq!((told[0].failed + told[1].answered, told[1].failed), (60, 0), "{told:?}");
    }
}

#[test]
fn equal_servers_share_the_work() {
    let servers = [server(), server(), server()];
    let (pool, factory) = ready(&config(Protocol::OpenInference, &[&servers[0], &servers[1], &servers[2]]));
    eventually("all are in service", || factory.endpoints().iter().all(|endpoint| is_closed(endpoint.stand)));
    for _ in 0..33 {
        assert_eq!(pool.extract_blocking(clip(16_000)), Ok(expected()));
    }
    let answered: Vec<u64> = factory.endpoints().iter().map(|endpoint| endpoint.answered).collect();
    assert!(answered.iter().all(|count| (9..=13).contains(count)), "{answered:?}");
}

#[test]
fn a_server_that_says_that_it_is_not_ready_is_asked_no_more() {
    let server = server();
    let settings = Config { check_seconds: 0.02, ..config(Protocol::OpenInference, &[&server]) };
    let (pool, _) = ready(&settings);
    server.say_ready(false);
    eventually("it is out of service without a query lost", || !pool.health().is_ready());
    assert!(pool.health().trouble.expect("it is not ready").contains("503"));
    server.say_ready(true);
    eventually("it is back", || pool.health().is_ready());
}

#[test]
fn a_server_that_is_gone_is_missed_without_a_query_in_either_protocol() {
    for protocol in BOTH {
        let mut server = server();
        let (pool, factory) = ready(&Config { check_seconds: 0.02, ..config(protocol, &[&server]) });
        server.die();
        eventually("it is missed", || !pool.health().is_ready());
        let endpoint = factory.endpoints().remove(0);
        assert_eq!((endpoint.failed, endpoint.last_fault), (0, Some(Fault::Unreachable)), "{protocol:?}");
    }
}

#[test]
fn a_server_that_came_back_gets_its_share_again() {
    let (mut first, second) = (server(), server());
    let settings = Config { check_seconds: 0.02, ..config(Protocol::Embedding, &[&first, &second]) };
    let (pool, factory) = ready(&settings);
    first.die();
    eventually("it is missed", || {
        pool.extract_blocking(clip(16_000)).is_err() || !is_closed(factory.endpoints()[0].stand)
    });
    first.revive().expect("the port is still free");
    let before = factory.endpoints()[0].answered;
    eventually("it works again", || {
        pool.extract_blocking(clip(16_000)).is_ok() && factory.endpoints()[0].answered > before + 3
    });
}

#[test]
fn queries_are_refused_at_once_while_workers_still_wait_for_a_server_that_is_out_of_service() {
    let server = server();
    let slow = Config { timeout_seconds: 60.0, check_seconds: 0.02, ..config(Protocol::OpenInference, &[&server]) };
    let settings = Settings { run_max: LONG, shutdown_max: Duration::from_millis(100), ..settings() };
    let (pool, _) = ready_with(&slow, settings);
    server.behave(Manner::Stalls, 1);
    let before = server.clips();
    let stalled: Vec<Ticket> = (0..2).map(|_| pool.submit(clip(16_000), LONG)).collect();
    eventually("both are at the server", || server.clips() == before + 2);
    server.say_ready(false);
    eventually("it is out of service", || !pool.health().is_ready());
    assert_eq!(wait(pool.submit(clip(16_000), LONG / 4)), Err(Failure::Unavailable));
    pool.shutdown();
    assert!(stalled.into_iter().map(wait).all(|answer| answer.is_err()));
}

#[test]
fn a_server_with_another_model_is_never_asked() {
    let (good, other) = (server(), server());
    other.behave(Manner::AnotherModel, 1);
    let factory = RemoteFactory::start(&config(Protocol::OpenInference, &[&good, &other]), &scripted::manifest())
        .expect("starts");
    let told = || factory.endpoints();
    eventually("one of them is refused", || told().iter().any(|told| told.last_fault == Some(Fault::AnotherModel)));
    assert_eq!(told().iter().filter(|told| is_closed(told.stand)).count(), 1);
}

#[test]
fn a_model_of_another_size_is_refused_before_any_clip_is_sent() {
    let server = Hostile::start(DIMENSION / 2).expect("a port is free");
    let config = config(Protocol::OpenInference, &[&server]);
    let factory = RemoteFactory::start(&config, &scripted::manifest()).expect("it starts");
    let pool = Pool::start(settings(), scripted::manifest(), factory).expect("a thread can be started");
    eventually("it is told", || pool.health().trouble.is_some_and(|trouble| trouble.contains("another size")));
    assert_eq!(server.clips(), 0);
}

#[test]
fn shutting_down_ends_exchanges_keepers_and_connections() {
    let server = server();
    let slow = Config { timeout_seconds: 60.0, ..config(Protocol::OpenInference, &[&server]) };
    let settings = Settings { run_max: LONG, shutdown_max: Duration::from_millis(100), ..settings() };
    let (pool, factory) = ready_with(&slow, settings);
    server.behave(Manner::StallsMidBody, 1);
    let before = server.clips();
    let stalled: Vec<Ticket> = (0..2).map(|_| pool.submit(clip(16_000), LONG)).collect();
    eventually("both are at the server", || server.clips() == before + 2);
    assert_eq!(pool.shutdown().threads_left, 0, "a stalled exchange can be ended");
    assert!(stalled.into_iter().map(wait).all(|answer| answer.is_err()));
    eventually("no connection is left", || server.connections() == 0);
    let second = Pool::start(settings, scripted::manifest(), factory).expect("a thread can be started");
    let trouble = second.wait_ready(Duration::from_millis(50)).expect_err("the service ended with its pool");
    assert!(trouble.contains("no longer looked after"), "{trouble}");
}

#[test]
fn every_query_is_answered_while_servers_come_and_go() {
    let manners = [Manner::Dies, Manner::Status(500), Manner::StallsMidBody, Manner::WrongSize, Manner::BreaksOff];
    let mut servers = [server(), server()];
    let settings = Config { timeout_seconds: 0.1, ..config(Protocol::OpenInference, &[&servers[0], &servers[1]]) };
    let (pool, factory) = ready(&settings);
    for (round, manner) in manners.iter().cycle().take(20).enumerate() {
        let index = round % 2;
        servers[index].behave(*manner, 2);
        let tickets: Vec<Ticket> = (0..4).map(|_| pool.submit(clip(16_000), LONG)).collect();
        if round % 4 == 0 {
            servers[index].die();
        }
        let answers = tickets.into_iter().map(wait);
        assert!(answers.into_iter().all(|answer| answer != Err(Failure::WorkerLost)), "round {round}");
        servers[index].revive().expect("the port is still free");
    }
    servers.iter().for_each(|server| server.behave(Manner::Well, 1));
    eventually("both serve again", || factory.endpoints().iter().all(|endpoint| is_closed(endpoint.stand)));
    assert_eq!(pool.extract_blocking(clip(16_000)), Ok(expected()));
    assert!(factory.endpoints().iter().all(|endpoint| endpoint.under_way == 0));
    assert_eq!(pool.health().restarts, 0, "no worker was to blame");
}

/// A manifest with this front end.
fn manifest(front_end: &str) -> Manifest {
    let mut value = serde_json::to_value(scripted::manifest()).expect("a manifest is JSON");
    let fields = value.as_object_mut().expect("a manifest is a JSON object");
    fields.insert("front_end".to_owned(), front_end.into());
    serde_json::from_value(value).expect("the front end is known")
}

fn server() -> Hostile {
    Hostile::start(DIMENSION).expect("a port is free")
}

/// A server that may take as long as a test waits, and longer than it.
fn patient(protocol: Protocol, server: &Hostile) -> Config {
    Config { timeout_seconds: 60.0, check_seconds: 3_600.0, ..config(protocol, &[server]) }
}

/// Nothing is given up while the test looks on.
fn one_worker() -> Settings {
    Settings { workers: NonZeroUsize::MIN, run_max: LONG * 3, patience: LONG * 2, ..Settings::default() }
}

/// Quick to give up and quick to try again.
fn config(protocol: Protocol, servers: &[&Hostile]) -> Config {
    let endpoints = servers.iter().map(|server| server.url("/base")).collect();
    let model = (protocol == Protocol::OpenInference).then(|| "speaker".to_owned());
    Config { model, timeout_seconds: 1.0, pause_max_seconds: 0.05, ..Config::new(protocol, endpoints) }
}

fn settings() -> Settings {
    let workers = NonZeroUsize::new(2).expect("two is not zero");
    Settings { workers, run_max: Duration::from_secs(3), patience: LONG, ..Settings::default() }
}

fn ready(config: &Config) -> (Pool, RemoteFactory) {
    ready_with(config, settings())
}

fn ready_with(config: &Config, settings: Settings) -> (Pool, RemoteFactory) {
    let factory = RemoteFactory::start(config, &scripted::manifest()).expect("the configuration is good");
    let pool = Pool::start(settings, scripted::manifest(), factory.clone()).expect("a thread can be started");
    pool.wait_ready(LONG).expect("the servers are well");
    eventually("every worker is up", || pool.health().workers_up == settings.workers.get());
    (pool, factory)
}

fn is_closed(stand: Stand) -> bool {
    matches!(stand, Stand::Closed { .. })
}

fn clip(rate: u32) -> Clip {
    let square = (0..rate).map(|n| if (n / 20).is_multiple_of(2) { 5_000 } else { -5_000 }).collect();
    Clip { pcm: square, sample_rate: NonZeroU32::new(rate).expect("it is not zero") }
}

fn expected() -> Embedding {
    Embedding::new(&scripted::voice_vector(400.0, DIMENSION)).expect("it is a good vector")
}

/// Drives a ticket on this thread.
fn wait(ticket: Ticket) -> Result<Embedding, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime can be built");
    let limited = runtime.block_on(async { tokio::time::timeout(LONG, ticket).await });
    limited.expect("every ticket is answered")
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LONG, "never so: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
