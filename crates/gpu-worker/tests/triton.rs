//! Goal: a real Triton server gives the voiceprints that the model gives here.
//! Method: `ROLLCALL_TRITON` names a server (`http://HOST:PORT`) that runs the shipped model as `speaker`; `tests/triton` is
//! a model repository for it. The same clips go to the server and to a session of this process. Without a server there is
//! nothing to compare, and the test says so; `remote.rs` tests the protocol against a server of its own.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use gpu_worker::extractor::Extractor as _;
use gpu_worker::remote::{Config, Protocol, RemoteFactory};
use gpu_worker::{Clip, Pool, Settings};
use matcher_core::Embedding;

mod support;

const CLIPS: u32 = 20;

#[test]
fn triton_gives_the_voiceprints_that_the_model_gives_here() {
    let Some(pool) = triton() else {
        println!("left out: ROLLCALL_TRITON names no server");
        return;
    };
    let mut local = support::extractor();
    for seconds in [1, 3, 10] {
        let mut farthest = 0.0_f64;
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for seed in 1..=CLIPS {
            let clip = support::clip(support::signal(seed, seconds * 16_000), 16_000);
            let started = Instant::now();
            let expected = local.extract(&clip).expect("the model runs");
            here.push(started.elapsed());
            let started = Instant::now();
            let found = pool.extract_blocking(clip).expect("the server is well");
            there.push(started.elapsed());
            let expected = Embedding::new(&expected).expect("the model gives voiceprints");
            farthest = farthest.max(found.distance(&expected).expect("both have one size"));
        }
        println!("{seconds} s: farthest {farthest:.1e}; here {}; there {}", Spread::of(here), Spread::of(there));
        assert!(farthest < 1e-4, "{farthest} apart at {seconds} s");
    }
}

#[test]
fn triton_answers_many_at_once_and_every_query_is_answered() {
    let Some(pool) = triton() else {
        println!("left out: ROLLCALL_TRITON names no server");
        return;
    };
    let clip = support::clip(support::signal(3, 48_000), 16_000);
    let started = Instant::now();
    let threads: Vec<_> = (0..8).map(|_| caller(pool.clone(), clip.clone())).collect();
    let answered: usize = threads.into_iter().map(|thread| thread.join().expect("a caller does not panic")).sum();
    println!("{answered} clips of 3 s in {:.2} s, eight callers, four workers", started.elapsed().as_secs_f64());
    assert_eq!(answered, 80);
}

fn caller(pool: Pool, clip: Clip) -> std::thread::JoinHandle<usize> {
    std::thread::spawn(move || (0..10).filter(|_| pool.extract_blocking(clip.clone()).is_ok()).count())
}

fn triton() -> Option<Pool> {
    let endpoint = std::env::var("ROLLCALL_TRITON").ok()?;
    let (_, model) = support::runtime_and_model();
    let config = Config { model: Some("speaker".to_owned()), ..Config::new(Protocol::OpenInference, vec![endpoint]) };
    let factory = RemoteFactory::start(&config, model.manifest()).unwrap_or_else(|error| panic!("{error}"));
    let settings = Settings { workers: NonZeroUsize::new(4).expect("four is not zero"), ..Settings::default() };
    let pool = Pool::start(settings, model.manifest().clone(), factory).expect("threads can be started");
    pool.wait_ready(Duration::from_secs(30)).unwrap_or_else(|trouble| panic!("{trouble}"));
    Some(pool)
}

/// Times in rising order.
struct Spread(Vec<Duration>);

impl Spread {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |index: usize| self.0.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        write!(f, "{:.1} ms (median), {:.1} ms (longest)", ms(self.0.len() / 2), ms(self.0.len().saturating_sub(1)))
    }
}
