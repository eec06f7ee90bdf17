//! Goal: queries that share a run are settled each on its own: whatever one of them does or meets, the others' answers,
//! deadlines and callers are what they would have been alone; and a run that nobody waits for is ended.
//! Method: real pools and threads. The first sample of a clip says what it does to its run, the second who it is. The only
//! worker is held by a first clip until everything is queued, so what shares a run is certain; waiting is `eventually`.

mod support;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gpu_worker::extractor::{Answers, BuildError, ExtractError, Extractor, Factory, Stopper};
use gpu_worker::onnx::OnnxFactory;
use gpu_worker::provider::{Choice, Options, Provider, ProviderError};
use gpu_worker::{Clip, Engine as _, Failure, Pool, Settings, Ticket, Tuning, scripted};
use matcher_core::{BadVector, Embedding};

const DIMENSION: usize = 192;
const LONG: Duration = Duration::from_secs(60);

const FINE: i16 = 0;
const REFUSED: i16 = 1;
const NOT_A_NUMBER: i16 = 2;
const FAILS: i16 = 3;
const PANICS: i16 = 4;
const HANGS: i16 = 5;

#[test]
fn clips_of_one_shape_share_a_run_and_nobody_is_padded() {
    let (pool, bus) = pool(8);
    let tickets =
        together(&pool, &bus, &[clip(FINE, 1, 100), clip(FINE, 2, 100), clip(FINE, 3, 200), clip(FINE, 4, 100)]);
    assert_eq!(answers(tickets), [Ok(1), Ok(2), Ok(3), Ok(4)]);
    assert_eq!(bus.runs(), [3, 1]);
}

#[test]
fn a_run_takes_no_more_than_its_limit_and_the_oldest_first() {
    let (pool, bus) = pool(2);
    let tickets = together(&pool, &bus, &[1, 2, 3].map(|who| clip(FINE, who, 100)));
    assert_eq!(answers(tickets), [Ok(1), Ok(2), Ok(3)]);
    assert_eq!(bus.runs(), [2, 1]);
}

#[test]
fn a_clip_that_cannot_be_encoded_spoils_no_other_and_costs_no_worker() {
    let (pool, bus) = pool(8);
    let tickets = together(&pool, &bus, &[clip(FINE, 1, 100), clip(REFUSED, 2, 100), clip(FINE, 3, 100)]);
    assert_eq!(answers(tickets), [Ok(1), Err(Failure::Encoding("refused".to_owned())), Ok(3)]);
    assert_eq!((bus.runs(), pool.health().restarts), (vec![3], 0));
}

#[test]
fn a_vector_that_is_not_a_number_is_its_own_query_s_misfortune() {
    let (pool, bus) = pool(8);
    let tickets = together(&pool, &bus, &[clip(FINE, 1, 100), clip(NOT_A_NUMBER, 2, 100), clip(FINE, 3, 100)]);
    assert_eq!(answers(tickets), [Ok(1), Err(Failure::BadVector(BadVector::NotFinite)), Ok(3)]);
    eventually("whoever gave it was replaced", || pool.health().restarts == 1);
}

#[test]
fn a_run_that_fails_as_a_whole_is_taken_apart_and_only_the_clip_at_fault_fails() {
    for (kind, failure) in [(FAILS, Failure::Extraction("broken".to_owned())), (PANICS, Failure::WorkerPanicked)] {
        let (pool, bus) = pool(8);
        let queue = [clip(FINE, 1, 100), clip(kind, 2, 100), clip(FINE, 3, 100), clip(FINE, 4, 200)];
        let tickets = together(&pool, &bus, &queue);
        assert_eq!(answers(tickets), [Ok(1), Err(failure), Ok(3), Ok(4)]);
        // Those of the spoilt run go before who came after them, each alone and once.
        assert_eq!(bus.runs(), [3, 1, 1, 1, 1]);
        eventually("once for the run and once for the clip", || pool.health().restarts == 2);
    }
}

#[test]
fn queries_of_a_spoilt_run_hear_of_it_when_nobody_is_left_to_run_them() {
    let one_strike = gpu_worker::intensity::Limits { failures_max: 1, ..Default::default() };
    let (pool, bus) = pool_with(Settings { intensity: one_strike, probe_every: LONG, ..settings(8) });
    let tickets = together(&pool, &bus, &[clip(FINE, 1, 100), clip(PANICS, 2, 100)]);
    assert_eq!(answers(tickets), [Err(Failure::WorkerPanicked), Err(Failure::WorkerPanicked)]);
    assert_eq!(bus.runs(), [2]);
}

#[test]
fn a_run_that_hangs_is_answered_for_all_at_its_deadline_and_none_is_run_again() {
    let (pool, bus) = pool_with(Settings { run_max: Duration::from_secs(1), ..settings(8) });
    let tickets = together(&pool, &bus, &[clip(FINE, 1, 100), clip(HANGS, 2, 100)]);
    assert_eq!(answers(tickets), [Err(Failure::DeadlinePassed), Err(Failure::DeadlinePassed)]);
    bus.release();
    assert_eq!(answers(vec![pool.submit(clip(FINE, 7, 100), LONG)]), [Ok(7)]);
    assert_eq!(bus.runs(), [2, 1]);
}

#[test]
fn patience_that_ends_during_a_shared_run_ends_for_one_alone() {
    let (pool, bus) = pool(8);
    bus.hold(&pool);
    let impatient = pool.submit(clip(FINE, 1, 100), Duration::from_secs(2));
    let patient = pool.submit(clip(HANGS, 2, 100), LONG);
    bus.release();
    eventually("both run", || bus.hanging() == 1);
    assert_eq!(wait(impatient), Err(Failure::DeadlinePassed));
    bus.release();
    assert_eq!(answers(vec![patient]), [Ok(2)]);
    assert_eq!((bus.runs(), pool.health().restarts), (vec![2], 0));
}

#[test]
fn a_caller_who_left_before_the_run_is_not_in_it() {
    let (pool, bus) = pool(8);
    let tickets = together_but(&pool, &bus, &[1, 2, 3].map(|who| clip(FINE, who, 100)), |tickets| {
        drop(tickets.remove(1));
    });
    assert_eq!(answers(tickets), [Ok(1), Ok(3)]);
    assert_eq!(bus.runs(), [2]);
}

#[test]
fn a_run_that_nobody_waits_for_is_ended_and_its_worker_goes_on() {
    let (pool, bus) = pool(8);
    let ticket = pool.submit(clip(HANGS, 1, 100), LONG);
    eventually("it runs", || bus.hanging() == 1);
    drop(ticket);
    eventually("it was ended", || bus.hanging() == 0);
    assert_eq!(answers(vec![pool.submit(clip(FINE, 2, 100), LONG)]), [Ok(2)]);
    assert_eq!((bus.builds.load(Ordering::SeqCst), pool.health().restarts), (1, 0));
    // And when the patience of the last who waited is over.
    assert_eq!(wait(pool.submit(clip(HANGS, 3, 100), Duration::from_millis(50))), Err(Failure::DeadlinePassed));
    eventually("it was ended", || bus.hanging() == 0);
    assert_eq!(answers(vec![pool.submit(clip(FINE, 4, 100), LONG)]), [Ok(4)]);
    assert_eq!((bus.builds.load(Ordering::SeqCst), pool.health().restarts), (1, 0));
}

#[test]
fn a_shared_run_goes_on_while_one_caller_waits_for_it() {
    let (pool, bus) = pool(8);
    let mut tickets = together(&pool, &bus, &[clip(HANGS, 1, 100), clip(FINE, 2, 100)]);
    eventually("both run", || bus.hanging() == 1);
    drop(tickets.remove(0));
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(bus.hanging(), 1, "somebody waits");
    bus.release();
    assert_eq!(answers(tickets), [Ok(2)]);
}

#[test]
fn the_real_model_gives_in_a_shared_run_what_it_gives_alone() {
    let (runtime, model) = support::runtime_and_model();
    let manifest = model.manifest().clone();
    let four = NonZeroUsize::new(4).expect("four is not zero");
    let settings = Settings { batch_max: four, batch_wait: Duration::from_millis(200), ..settings(4) };
    let pool = Pool::start(settings, manifest, OnnxFactory::new(runtime, model)).expect("threads can be started");
    pool.wait_ready(LONG).expect("the model loads");
    let clips = [1, 2, 3, 4].map(|seed| support::clip(support::signal(seed, 48_000), 16_000));
    let mut alone = support::extractor();
    let alone = clips.each_ref().map(|clip| alone.extract(clip).expect("the model runs"));
    // The first holds the worker; the others meet in the queue.
    let tickets: Vec<Ticket> = clips.iter().cycle().take(8).map(|clip| pool.submit(clip.clone(), LONG)).collect();
    for (ticket, alone) in tickets.into_iter().zip(alone.iter().cycle()) {
        let together = wait(ticket).expect("nothing is wrong");
        let alone = Embedding::new(alone).expect("the model gives a voiceprint");
        assert!(together.distance(&alone).expect("both have 192 values") < 1e-5);
    }
    // And value by value, in one run for certain.
    let mut extractor = support::extractor();
    let vectors = extractor.extract_batch(&clips).expect("the clips are of one length");
    for (together, alone) in vectors.iter().zip(&alone) {
        let farthest = together.iter().zip(alone).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(farthest < 1e-5, "{farthest}: the values go up to 2");
    }
}

#[test]
fn a_real_run_that_nobody_waits_for_is_ended_and_its_session_is_as_good_as_before() {
    let (runtime, model) = support::runtime_and_model();
    let manifest = model.manifest().clone();
    let pool = Pool::start(settings(1), manifest, OnnxFactory::new(runtime, model)).expect("threads can be started");
    pool.wait_ready(LONG).expect("the model loads");
    let short = support::clip(support::signal(3, 48_000), 16_000);
    let before = pool.extract_blocking(short.clone()).expect("the model runs");
    for _ in 0..3 {
        // A minute of audio takes the model most of a second.
        let ticket = pool.submit(support::clip(vec![1_000; 960_000], 16_000), LONG);
        eventually("it runs", || pool.queued() == 0);
        std::thread::sleep(Duration::from_millis(60));
        drop(ticket);
        assert_eq!(pool.extract_blocking(short.clone()).expect("the model runs"), before);
    }
    assert_eq!(pool.health().restarts, 0);
}

#[test]
fn a_provider_that_is_asked_for_and_not_there_is_named_and_one_that_is_there_agrees_with_the_processors() {
    let (runtime, model) = support::runtime_and_model();
    let clip = support::clip(support::signal(5, 48_000), 16_000);
    let expected = support::extractor().extract(&clip).expect("the model runs");
    let expected = Embedding::new(&expected).expect("the model gives a voiceprint");
    for (choice, provider) in [(Choice::Cuda, Provider::Cuda), (Choice::TensorRt, Provider::TensorRt)] {
        let options = Options { choice, ..Options::default() };
        let factory = match OnnxFactory::on(runtime, model.clone(), &options) {
            Ok(factory) => factory,
            Err(error @ ProviderError::NotOffered { .. }) => {
                assert!(!provider.is_offered(runtime) && error.to_string().contains("onnxruntime-gpu"), "{error}");
                println!("left out: {error}");
                continue;
            }
            Err(error) => {
                println!("left out: {error}");
                continue;
            }
        };
        let mut extractor = factory.build_for(0).expect("it was tried");
        let vector = Embedding::new(&extractor.extract(&clip).expect("it runs")).expect("it is a voiceprint");
        assert!(vector.distance(&expected).expect("both have 192 values") < 1e-4, "{provider}");
    }
    let auto = Options { choice: Choice::Auto, ..Options::default() };
    let factory = OnnxFactory::on(runtime, model, &auto).expect("the processors are always there");
    assert!(factory.taken() == Provider::Cuda || factory.instead().is_some() || !Provider::Cuda.is_offered(runtime));
}

#[test]
fn what_the_manifest_says_about_a_provider_is_what_the_pool_does() {
    let (runtime, model) = support::runtime_and_model();
    let settings = OnnxFactory::new(runtime, model.clone()).tuned(Settings::default());
    let tuning = model.manifest().tuning.get(&Provider::Cpu).copied().unwrap_or_else(Tuning::default);
    assert_eq!((settings.batch_max, settings.batch_wait), (tuning.batch_max, tuning.batch_wait()));
    assert_eq!(settings.turns_max(), settings.workers.get() * tuning.batch_max.get());
}

/// What the extractors of a pool did.
#[derive(Default)]
struct Bus {
    runs: Mutex<Vec<usize>>,
    builds: AtomicUsize,
    hanging: AtomicUsize,
    releases: AtomicUsize,
}

impl Bus {
    /// Sizes of the runs, without those of [`Bus::hold`].
    fn runs(&self) -> Vec<usize> {
        self.runs.lock().expect("no test panics under it").clone()
    }

    fn hanging(&self) -> usize {
        self.hanging.load(Ordering::SeqCst)
    }

    fn release(&self) {
        self.releases.fetch_add(1, Ordering::SeqCst);
    }

    /// Keeps the only worker busy until [`Bus::release`].
    fn hold(&self, pool: &Pool) {
        let ticket = pool.submit(clip(HANGS, 0, 7), LONG);
        eventually("the worker is held", || self.hanging() == 1);
        self.runs.lock().expect("no test panics under it").clear();
        std::thread::spawn(move || wait(ticket));
    }
}

struct Depot(Arc<Bus>);

impl Factory for Depot {
    fn build(&self) -> Result<Box<dyn Extractor>, BuildError> {
        self.0.builds.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Seat { bus: Arc::clone(&self.0), interrupted: Arc::default() }))
    }

    fn shape_of(&self, clip: &Clip) -> Option<usize> {
        Some(clip.pcm.len())
    }
}

struct Seat {
    bus: Arc<Bus>,
    interrupted: Arc<AtomicBool>,
}

impl Seat {
    fn hang(&self) -> Result<(), ExtractError> {
        let before = self.bus.releases.load(Ordering::SeqCst);
        self.bus.hanging.fetch_add(1, Ordering::SeqCst);
        let started = Instant::now();
        while self.bus.releases.load(Ordering::SeqCst) == before
            && !self.interrupted.load(Ordering::SeqCst)
            && started.elapsed() < LONG
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.bus.hanging.fetch_sub(1, Ordering::SeqCst);
        if self.interrupted.load(Ordering::SeqCst) {
            return Err(ExtractError::Session("interrupted".to_owned()));
        }
        Ok(())
    }
}

impl Extractor for Seat {
    fn extract(&mut self, clip: &Clip) -> Result<Vec<f32>, ExtractError> {
        self.extract_many(&[clip], Instant::now())?.pop().expect("one answer for one clip")
    }

    fn extract_many(&mut self, clips: &[&Clip], _by: Instant) -> Result<Answers, ExtractError> {
        self.bus.runs.lock().expect("no test panics under it").push(clips.len());
        for clip in clips {
            match told(clip).0 {
                FAILS => return Err(ExtractError::Session("broken".to_owned())),
                PANICS => panic!("a clip of this test panics"),
                HANGS => self.hang()?,
                _ => {}
            }
        }
        let answer = |clip: &&Clip| match told(clip).0 {
            REFUSED => Err(ExtractError::Encoding("refused".to_owned())),
            NOT_A_NUMBER => Ok(vec![f32::NAN; DIMENSION]),
            _ => Ok(scripted::voice_vector(f64::from(told(clip).1) * 40.0, DIMENSION)),
        };
        Ok(clips.iter().map(answer).collect())
    }

    fn interrupter(&self) -> Option<Stopper> {
        let interrupted = Arc::clone(&self.interrupted);
        Some(Arc::new(move || interrupted.store(true, Ordering::SeqCst)))
    }

    fn resume(&mut self) {
        self.interrupted.store(false, Ordering::SeqCst);
    }
}

fn pool(batch_max: usize) -> (Pool, Arc<Bus>) {
    pool_with(settings(batch_max))
}

fn pool_with(settings: Settings) -> (Pool, Arc<Bus>) {
    let bus = Arc::new(Bus::default());
    let pool = Pool::start(settings, scripted::manifest(), Depot(Arc::clone(&bus))).expect("a thread can be started");
    pool.wait_ready(LONG).expect("the worker comes up");
    (pool, bus)
}

/// One worker; nothing that hangs is given up while the test looks on.
fn settings(batch_max: usize) -> Settings {
    let batch_max = NonZeroUsize::new(batch_max).expect("a test names at least one clip");
    Settings { workers: NonZeroUsize::MIN, batch_max, run_max: LONG, patience: LONG, ..Settings::default() }
}

fn clip(kind: i16, who: i16, length: usize) -> Clip {
    support::clip([kind, who].into_iter().chain(std::iter::repeat(0)).take(length).collect(), 16_000)
}

/// What a clip does to its run, and who it is.
fn told(clip: &Clip) -> (i16, i16) {
    let [kind, who, ..] = clip.pcm[..] else { panic!("the clips of this test have two samples or more") };
    (kind, who)
}

/// Queues clips while the worker is held, and lets it go.
fn together(pool: &Pool, bus: &Bus, clips: &[Clip]) -> Vec<Ticket> {
    together_but(pool, bus, clips, |_| {})
}

fn together_but(pool: &Pool, bus: &Bus, clips: &[Clip], before: impl FnOnce(&mut Vec<Ticket>)) -> Vec<Ticket> {
    bus.hold(pool);
    let mut tickets = clips.iter().map(|clip| pool.submit(clip.clone(), LONG)).collect();
    before(&mut tickets);
    bus.release();
    eventually("the worker is let go", || bus.hanging() == 0 || !bus.runs().is_empty());
    tickets
}

/// Who each answer says it is.
fn answers(tickets: Vec<Ticket>) -> Vec<Result<usize, Failure>> {
    let voice = |who: usize| {
        let hertz = 40.0 * f64::from(u32::try_from(who).expect("a test has few clips"));
        Embedding::new(&scripted::voice_vector(hertz, DIMENSION)).expect("a scripted voice is a good vector")
    };
    let who = |answer: Embedding| (0..20).find(|who| voice(*who) == answer).expect("it is one of the voices");
    tickets.into_iter().map(|ticket| wait(ticket).map(who)).collect()
}

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
