//! Many sequences, over all cores; and of one that shows a difference, the shortest that still does.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::generator;
use super::mistake::Mistake;
use super::model::Rules;
use super::moves::Move;
use super::tally::Tally;
use super::world::{Difference, World};

/// A difference that was found.
pub(crate) struct Found {
    /// How many sequences were played.
    pub(crate) sequences: u64,
    /// The seed, the difference and the moves that lead to it.
    pub(crate) what: String,
}

/// Plays these moves. A panic is a difference, too: the core asserts what it believes.
fn run(moves: &[Move], mistake: Option<Mistake>) -> Result<Tally, Difference> {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let rules = Rules::new(mistake);
        World::new(&rules).play(moves).map(|()| rules.tally())
    }));
    played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", text.unwrap_or("without words")))
    })
}

/// Whether these moves show a difference, and with a planted mistake one that is not there without it.
fn shows(moves: &[Move], mistake: Option<Mistake>) -> bool {
    run(moves, mistake).is_err() && (mistake.is_none() || run(moves, None).is_ok())
}

/// Plays one sequence for each seed, a part of them on each core.
pub(crate) fn play(seeds: Range<u64>) -> Result<Tally, String> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let is_over = AtomicBool::new(false);
    let part = |core: usize| {
        let mut sum = Tally::new();
        for seed in seeds.clone().skip(core).step_by(cores) {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let moves = generator::moves(seed);
            match run(&moves, None) {
                Ok(tally) => sum.add(&tally),
                Err(_) => {
                    is_over.store(true, Ordering::Relaxed);
                    return Err(failure(seed, moves, None));
                }
            }
        }
        Ok(sum)
    };
    let parts: Vec<Result<Tally, String>> = thread::scope(|scope| {
        let started: Vec<_> = (0..cores).map(|core| scope.spawn(move || part(core))).collect();
        started.into_iter().map(|part| part.join().expect("differences are values")).collect()
    });
    let mut sum = Tally::new();
    for part in parts {
        sum.add(&part?);
    }
    Ok(sum)
}

/// The first sequence that finds a planted mistake.
pub(crate) fn find(mistake: Mistake, seeds: Range<u64>) -> Option<Found> {
    for (played, seed) in (1..).zip(seeds) {
        let moves = generator::moves(seed);
        if shows(&moves, Some(mistake)) {
            let shortest = shrink(moves, Some(mistake));
            return Some(Found { sequences: played, what: format!("seed {seed}, {} moves", shortest.len()) });
        }
    }
    None
}

/// Prints the moves of a seed, and what comes of them.
pub(crate) fn replay(seed: u64) {
    let moves = generator::moves(seed);
    for (at, next) in moves.iter().enumerate() {
        println!("{:>3}. {next:?}", at + 1);
    }
    if run(&moves, None).is_err() {
        panic!("{}", failure(seed, moves, None));
    }
}

fn failure(seed: u64, moves: Vec<Move>, mistake: Option<Mistake>) -> String {
    let count = moves.len();
    let shortest = shrink(moves, mistake);
    let what = run(&shortest, mistake).err().unwrap_or_default();
    let mut text = format!("ROLLCALL_SEED={seed}: {} of {count} moves suffice\n", shortest.len());
    for (at, next) in shortest.iter().enumerate() {
        text += &format!("{:>3}. {next:?}\n", at + 1);
    }
    text + &what
}

/// Leaves moves out, many at a time and then one by one, while a difference remains.
fn shrink(mut moves: Vec<Move>, mistake: Option<Mistake>) -> Vec<Move> {
    let mut many = moves.len();
    while many > 0 {
        let mut at = 0;
        let before = moves.len();
        while at < moves.len() {
            let mut fewer = moves.clone();
            fewer.drain(at..(at + many).min(moves.len()));
            if shows(&fewer, mistake) { moves = fewer } else { at += many }
        }
        if many > 1 || moves.len() == before {
            many /= 2;
        }
    }
    moves
}
