//! Faults of workers in this process.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::engine::Engine as _;
use crate::intensity;
use crate::pool::{Pool, Settings};
use crate::scripted::{self, Script, Step};

use super::drive::{self, Tally};
use super::report::Row;
use super::{DIMENSION, FaultRunError, HERTZ, PATIENCE, RECOVERY_MAX};

/// What a worker does with every third clip.
const FAULTS: [(&str, Fault); 7] = [
    ("worker panics", Fault::Step(Step::Panic)),
    ("worker panics twice", Fault::Step(Step::PanicTwice)),
    ("worker fails", Fault::Step(Step::Fail)),
    ("worker gives no numbers", Fault::Step(Step::NotANumber)),
    ("worker gives three values", Fault::Size(3)),
    ("worker refuses the clip", Fault::Step(Step::RefuseClip)),
    ("worker hangs", Fault::Step(Step::Hang)),
];

enum Fault {
    Step(Step),
    /// A vector of so many values.
    Size(usize),
}

impl Fault {
    /// Its part of a share.
    fn queries(&self, share: usize) -> usize {
        if matches!(self, Self::Step(Step::Hang)) { share.min(HANGS_MAX) } else { share }
    }
}

/// Queries over all faults, when each has this share.
pub(super) fn queries(share: usize) -> usize {
    FAULTS.iter().map(|(_, fault)| fault.queries(share)).sum()
}

/// Runs that hang are given up after this long. It is far above what a scripted run takes on a busy machine.
const RUN_MAX: Duration = Duration::from_millis(100);
/// Queries that meet a hang, at most: each costs a worker its deadline.
const HANGS_MAX: usize = 90;

pub(super) fn run(share: usize, done: &mut dyn FnMut(Row)) -> Result<(), FaultRunError> {
    let script = Script::new(DIMENSION);
    let pool = Pool::start(settings(), scripted::manifest(), script.factory())?;
    pool.wait_ready(PATIENCE).map_err(FaultRunError::NotReady)?;
    for (name, fault) in &FAULTS {
        let step = match fault {
            Fault::Step(step) => step.clone(),
            Fault::Size(size) => Step::Answer(vec![1.0; *size]),
        };
        let hangs = matches!(step, Step::Hang);
        let queries = fault.queries(share);
        for _ in 0..queries / 3 {
            let well = || Step::Answer(scripted::voice_vector(HERTZ, DIMENSION));
            script.then(step.clone()).then(well()).then(well());
        }
        let tally = if hangs { ask_while_releasing(&pool, &script, queries) } else { drive::ask(&pool, queries) };
        let all_up = || pool.health().is_ready() && pool.health().workers_up == pool.health().workers;
        let recovery = drive::recovery(&pool, RECOVERY_MAX, all_up);
        done(Row::new((*name).to_owned(), queries, tally, recovery));
    }
    pool.shutdown();
    Ok(())
}

/// Threads that hang are let go some time after they were given up, since no thread can be ended from outside.
fn ask_while_releasing(pool: &Pool, script: &Script, queries: usize) -> Tally {
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| drive::ask(pool, queries));
        while !asking.is_finished() {
            std::thread::sleep(RUN_MAX * 3);
            script.release();
        }
        asking.join().expect("a caller only waits and counts")
    })
}

/// Workers are replaced however often they fail, so that every query meets a worker.
fn settings() -> Settings {
    let often = intensity::Limits {
        failures_max: usize::MAX,
        window: Duration::from_millis(100),
        backoff_first: Duration::from_millis(1),
        backoff_max: Duration::from_millis(2),
    };
    Settings {
        workers: NonZeroUsize::MIN.saturating_add(1),
        run_max: RUN_MAX,
        patience: PATIENCE,
        intensity: often,
        abandoned_max: 64,
        ..Settings::default()
    }
}
