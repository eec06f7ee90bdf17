//! Goal: whatever a worker does, its caller hears, the next query works, and the pool's health tells the truth.
//! Method: real pools and threads whose extractors do as a script says: err, panic, hang, return what is no vector.
//! Deadlines are shortened; waiting is `eventually` with a generous limit, and no assertion depends on speed.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::{Duration, Instant};

use gpu_worker::extractor::{BuildError, Extractor};
use gpu_worker::scripted::{self, Script, Step};
use gpu_worker::{Clip, Engine as _, Failure, Pool, Settings, Ticket, intensity};
use matcher_core::{BadVector, Embedding};

const DIMENSION: usize = 192;
/// Patience of queries that are to be answered by something else.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_query_is_answered_with_a_normalised_voiceprint() {
    let (pool, _script) = pool(quick(2));
    let answer = pool.extract_blocking(clip()).expect("nothing is wrong");
    assert_eq!(answer, expected());
    assert_eq!((pool.health().workers, pool.health().restarts), (2, 0));
}

#[test]
fn a_panic_is_heard_and_the_next_query_works() {
    check_recovers(Step::Panic, Failure::WorkerPanicked);
}

#[test]
fn an_error_is_heard_and_the_next_query_works() {
    check_recovers(Step::Fail, Failure::Extraction("the script lets this run fail".to_owned()));
}

#[test]
fn a_vector_that_is_not_a_number_is_heard_and_the_next_query_works() {
    check_recovers(Step::NotANumber, Failure::BadVector(BadVector::NotFinite));
}

#[test]
fn a_vector_of_zeros_or_of_another_size_is_heard_and_the_next_query_works() {
    check_recovers(Step::Answer(vec![0.0; DIMENSION]), Failure::BadVector(BadVector::ZeroNorm));
    let wrong = BadVector::WrongSize { expected: DIMENSION, found: 3 };
    check_recovers(Step::Answer(vec![1.0; 3]), Failure::BadVector(wrong));
}

#[test]
fn a_panic_outside_the_run_is_survived() {
    check_recovers(Step::PanicTwice, Failure::WorkerPanicked);
}

#[test]
fn a_hang_is_answered_at_the_deadline_and_the_next_query_works() {
    let script = check_recovers(Step::Hang, Failure::DeadlinePassed);
    assert_eq!(script.hanging(), 1, "the old thread still hangs");
    script.release();
    eventually("the released thread ends", || script.hanging() == 0);
}

#[test]
fn a_thread_that_comes_back_from_the_dead_answers_nobody_and_takes_no_query() {
    let (pool, script) = pool(quick(1));
    script.then(Step::Hang);
    assert_eq!(pool.extract_blocking(clip()), Err(Failure::DeadlinePassed));
    // The new worker hangs too, and the old one wakes up while a query waits: it must leave that alone.
    eventually("a new worker is up", || pool.health().is_ready());
    script.then(Step::Hang);
    let second = pool.submit(clip(), LONG);
    eventually("two hang", || script.hanging() == 2);
    let waiting = pool.submit(clip(), LONG);
    let runs = script.runs();
    script.release();
    eventually("both are awake", || script.hanging() == 0);
    assert!(matches!(wait(second), Ok(_) | Err(Failure::DeadlinePassed)));
    assert_eq!(wait(waiting), Ok(expected()));
    assert_eq!(script.runs(), runs + 1);
}

#[test]
fn a_clip_that_cannot_be_encoded_costs_no_worker() {
    let (pool, script) = pool(quick(1));
    for _ in 0..20 {
        script.then(Step::RefuseClip);
        assert!(matches!(pool.extract_blocking(clip()), Err(Failure::Encoding(_))));
    }
    assert_eq!(pool.extract_blocking(clip()), Ok(expected()));
    assert_eq!((pool.health().restarts, script.builds()), (0, 1));
}

#[test]
fn queries_queued_behind_a_panic_are_kept() {
    let (pool, script) = pool(quick(1));
    script.then(Step::Hang).then(Step::Panic);
    let first = pool.submit(clip(), LONG);
    eventually("the worker runs", || script.hanging() == 1);
    let tickets = [first, pool.submit(clip(), LONG), pool.submit(clip(), LONG)];
    script.release();
    assert_eq!(tickets.map(wait), [Ok(expected()), Err(Failure::WorkerPanicked), Ok(expected())]);
}

#[test]
fn five_failures_in_a_minute_make_the_pool_not_ready_and_a_probe_brings_it_back() {
    let (pool, script) = pool(Settings { probe_every: Duration::from_secs(2), ..quick(1) });
    for _ in 0..5 {
        script.then(Step::Panic);
        assert_eq!(pool.extract_blocking(clip()), Err(Failure::WorkerPanicked));
    }
    // The health was told before the caller was.
    let health = pool.health();
    assert!(!health.is_ready());
    assert!(health.trouble.expect("it is not ready").contains("5 times within 60 s"));
    let runs = script.runs();
    assert_eq!(pool.extract_blocking(clip()), Err(Failure::Unavailable));
    assert_eq!(script.runs(), runs, "no worker saw it");

    eventually("a probe brings it back", || pool.health().is_ready());
    assert_eq!(script.runs(), runs + 1, "the probe has extracted");
    assert_eq!(pool.extract_blocking(clip()), Ok(expected()));
}

#[test]
fn a_probe_that_fails_leaves_the_pool_not_ready_until_one_succeeds() {
    let (pool, script) = pool(Settings { probe_every: Duration::from_millis(200), ..quick(1) });
    // Five failures, then a probe that errs, one that gives no number, one that hangs, and one that works.
    for step in [Step::Fail, Step::Fail, Step::Fail, Step::Fail, Step::Fail, Step::Fail, Step::NotANumber, Step::Hang] {
        script.then(step);
    }
    for _ in 0..5 {
        assert!(pool.extract_blocking(clip()).is_err());
    }
    eventually("the third probe hangs", || script.hanging() == 1);
    assert!(!pool.health().is_ready());
    eventually("the fourth brings it back", || pool.health().is_ready());
    assert_eq!(pool.extract_blocking(clip()), Ok(expected()));
    script.release();
}

#[test]
fn queued_queries_are_told_at_once_when_the_pool_gives_up() {
    let one_strike = intensity::Limits { failures_max: 1, ..intensity::Limits::default() };
    let (pool, script) = pool(Settings { intensity: one_strike, probe_every: LONG, ..quick(1) });
    script.then(Step::Hang);
    let hung = pool.submit(clip(), LONG);
    eventually("the worker hangs", || script.hanging() == 1);
    let queued = [pool.submit(clip(), LONG), pool.submit(clip(), LONG)];
    assert_eq!(wait(hung), Err(Failure::DeadlinePassed));
    assert_eq!(queued.map(wait), [Err(Failure::Unavailable), Err(Failure::Unavailable)]);
    script.release();
}

#[test]
fn a_model_that_cannot_be_loaded_is_named_and_a_later_one_is_used() {
    let script = Script::new(DIMENSION);
    script.fail_builds(5);
    let settings = Settings { probe_every: Duration::from_millis(300), ..quick(1) };
    let pool = Pool::start(settings, scripted::manifest(), script.factory()).expect("a thread can be started");
    let trouble = pool.wait_ready(LONG).expect_err("five builds fail");
    assert!(trouble.contains("the script lets this build fail"), "{trouble}");
    eventually("a probe brings it back", || pool.health().is_ready());
    assert_eq!(pool.extract_blocking(clip()), Ok(expected()));
}

#[test]
fn a_factory_that_panics_is_an_ordinary_failure() {
    let factory = || -> Result<Box<dyn Extractor>, BuildError> { panic!("no such thing") };
    let pool = Pool::start(quick(1), scripted::manifest(), factory).expect("a thread can be started");
    let trouble = pool.wait_ready(LONG).expect_err("every build panics");
    assert!(trouble.contains("no such thing"), "{trouble}");
}

#[test]
fn more_queries_than_wait_are_refused_and_a_caller_who_leaves_makes_room() {
    let (pool, script) = pool(patient(1));
    script.then(Step::Hang);
    let running = pool.submit(clip(), LONG);
    eventually("the worker hangs", || script.hanging() == 1);
    let first = pool.submit(clip(), LONG);
    let second = pool.submit(clip(), LONG);
    assert_eq!(pool.extract_blocking(clip()), Err(Failure::QueueFull));
    drop(first);
    let third = pool.submit(clip(), LONG);
    script.release();
    assert_eq!([running, second, third].map(wait), [Ok(expected()), Ok(expected()), Ok(expected())]);
    assert_eq!(script.runs(), 3, "the caller who left cost no run");
}

#[test]
fn a_query_whose_patience_passed_while_it_waited_is_answered_then_and_never_runs() {
    let (pool, script) = pool(patient(1));
    script.then(Step::Hang);
    let running = pool.submit(clip(), LONG);
    eventually("the worker hangs", || script.hanging() == 1);
    let impatient = pool.submit(clip(), Duration::from_millis(30));
    assert_eq!(wait(impatient), Err(Failure::DeadlinePassed), "although the worker still hangs");
    assert_eq!(script.hanging(), 1);
    script.release();
    assert_eq!(wait(running), Ok(expected()));
    assert_eq!(pool.extract_blocking(clip()), Ok(expected()));
    assert_eq!(script.runs(), 2);
}

#[test]
fn patience_that_ends_during_a_run_answers_the_caller_and_keeps_the_worker() {
    let (pool, script) = pool(patient(1));
    script.then(Step::Hang);
    let impatient = pool.submit(clip(), Duration::from_secs(2));
    eventually("the worker runs", || script.hanging() == 1);
    assert_eq!(wait(impatient), Err(Failure::DeadlinePassed));
    script.release();
    assert_eq!(pool.extract_blocking(clip()), Ok(expected()));
    assert_eq!((pool.health().restarts, script.builds()), (0, 1));
}

#[test]
fn threads_that_hang_for_ever_are_bounded() {
    let many = intensity::Limits { failures_max: 1_000, ..intensity::Limits::default() };
    let settings = Settings { intensity: many, abandoned_max: 3, run_max: Duration::from_millis(500), ..quick(1) };
    let (pool, script) = pool(settings);
    for _ in 0..3 {
        script.then(Step::Hang);
        assert_eq!(wait(pool.submit(clip(), LONG)), Err(Failure::DeadlinePassed));
    }
    let trouble = pool.health().trouble.expect("no worker is left");
    assert!(trouble.contains("3 worker threads hang"), "{trouble}");
    assert_eq!(pool.extract_blocking(clip()), Err(Failure::Unavailable));
    assert_eq!((script.hanging(), script.builds()), (3, 3));
    script.release();
    eventually("room was made", || pool.health().is_ready());
    assert_eq!(pool.extract_blocking(clip()), Ok(expected()));
}

#[test]
fn shutting_down_answers_everybody_and_joins_the_threads() {
    let (pool, script) = pool(patient(2));
    script.then(Step::Hang).then(Step::Hang);
    let running: Vec<Ticket> = (0..2).map(|_| pool.submit(clip(), LONG)).collect();
    eventually("both workers run", || script.hanging() == 2);
    let queued = pool.submit(clip(), LONG);
    let closing = pool.clone();
    let shutdown = std::thread::spawn(move || closing.shutdown());
    assert_eq!(wait(queued), Err(Failure::Unavailable));
    script.release();
    assert!(running.into_iter().map(wait).all(|answer| answer == Ok(expected())), "running queries finish");
    assert_eq!(shutdown.join().expect("shutting down does not panic").threads_left, 0);
    assert_eq!(pool.extract_blocking(clip()), Err(Failure::Unavailable));
    assert_eq!(pool.health().trouble.as_deref(), Some("the pool is shut down"));
    assert_eq!(pool.shutdown().threads_left, 0, "a second time is harmless");
}

#[test]
fn shutting_down_leaves_a_hanging_thread_behind_and_still_answers_its_caller() {
    let settings = Settings { shutdown_max: Duration::from_millis(100), ..patient(1) };
    let (pool, script) = pool(settings);
    script.then(Step::Hang);
    let hung = pool.submit(clip(), LONG);
    eventually("the worker hangs", || script.hanging() == 1);
    assert_eq!(pool.shutdown().threads_left, 1);
    assert_eq!(wait(hung), Err(Failure::WorkerLost));
    script.release();
}

#[test]
fn the_threads_end_when_the_last_handle_goes() {
    let (pool, script) = pool(patient(2));
    script.then(Step::Hang);
    let running = pool.submit(clip(), LONG);
    eventually("the worker hangs", || script.hanging() == 1);
    drop(pool);
    script.release();
    assert_eq!(wait(running), Ok(expected()), "its ticket is still good");
}

#[test]
fn every_ticket_is_answered_once_whatever_the_workers_do() {
    let many = intensity::Limits { failures_max: 10_000, ..intensity::Limits::default() };
    let many = intensity::Limits { backoff_max: Duration::from_millis(1), ..many };
    let settings = Settings { intensity: many, run_max: Duration::from_millis(20), abandoned_max: 100, ..quick(3) };
    let (pool, script) = pool(settings);
    let kinds = [Step::Panic, Step::Fail, Step::NotANumber, Step::RefuseClip, Step::PanicTwice, Step::Hang];
    let mut answered = 0;
    for round in 0..20 {
        for step in kinds.iter().cycle().skip(round).take(4) {
            script.then(step.clone());
        }
        let tickets: Vec<Ticket> = (0..9).map(|_| pool.submit(clip(), LONG)).collect();
        answered += tickets.into_iter().map(wait).filter(|answer| *answer != Err(Failure::WorkerLost)).count();
    }
    assert_eq!(answered, 180);
    script.release();
    eventually("a worker is up in the end", || pool.extract_blocking(clip()).is_ok());
}

#[tokio::test]
async fn tickets_work_in_an_async_runtime_too() {
    let (pool, script) = pool(quick(2));
    script.then(Step::Panic);
    let answers = [pool.submit(clip(), LONG).await, pool.submit(clip(), LONG).await];
    assert_eq!(answers.iter().filter(|answer| **answer == Err(Failure::WorkerPanicked)).count(), 1);
    assert!(answers.contains(&Ok(expected())));
}

/// One bad step: its caller hears `failure`, the next query works, and health counts one restart.
fn check_recovers(step: Step, failure: Failure) -> Script {
    let (pool, script) = pool(quick(1));
    script.then(step);
    assert_eq!(pool.extract_blocking(clip()), Err(failure));
    let health = pool.health();
    assert!(!health.is_ready() || health.restarts == 1, "the only worker is gone: {health:?}");
    assert_eq!(wait(pool.submit(clip(), LONG)), Ok(expected()));
    eventually("health tells of one restart", || pool.health().restarts == 1 && pool.health().is_ready());
    script
}

fn pool(settings: Settings) -> (Pool, Script) {
    let script = Script::new(DIMENSION);
    let pool = Pool::start(settings, scripted::manifest(), script.factory()).expect("a thread can be started");
    pool.wait_ready(LONG).expect("a scripted worker comes up");
    (pool, script)
}

/// Hangs are found soon.
fn quick(workers: usize) -> Settings {
    let workers = NonZeroUsize::new(workers).expect("a test names at least one worker");
    Settings { workers, run_max: Duration::from_secs(1), patience: LONG, ..Settings::default() }
}

/// Nothing that hangs is given up while the test looks on.
fn patient(workers: usize) -> Settings {
    Settings { run_max: LONG, shutdown_max: LONG, ..quick(workers) }
}

fn clip() -> Clip {
    let square = (0..16_000).map(|n: u32| if (n / 20).is_multiple_of(2) { 5_000 } else { -5_000 }).collect();
    Clip { pcm: square, sample_rate: NonZeroU32::new(16_000).expect("it is not zero") }
}

fn expected() -> Embedding {
    Embedding::new(&scripted::voice_vector(400.0, DIMENSION)).expect("a scripted voice is a good vector")
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
