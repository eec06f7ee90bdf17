//! Whether turns at the pool are fair: `rollcall bench fairness`.
//!
//! Puts the very [`gpu_worker::turns::Turns`] that the service runs under loads in virtual time, beside the textbook's deficit
//! round robin and first come, first served, which show what the numbers would be without it. One run takes a second or
//! two and gives the same numbers on every machine. It prints nothing, and measures neither actors nor the model.

mod discipline;
mod pool;
mod scenario;

use std::fmt;
use std::time::Duration;

use serde::Serialize;

pub use discipline::Name;
use pool::{Machine, Outcome, run};
use scenario::{Bursts, CALM, CONVERSATIONS, LONG, Load, Pace, SHORT};

/// Enough that a hundredth of the calm ones' waits is ten of them.
const WAITS: Duration = Duration::from_secs(120);
/// Conversations that always want more settle soon.
const SHARES: Duration = Duration::from_secs(30);

/// What nine conversations that ask once a second wait, alone and beside others that burst out with a hundred queries each
/// every five seconds. Milliseconds from the moment when a query could start to its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waits {
    /// How the nine ask.
    pub load: &'static str,
    /// How many burst.
    pub bursting: usize,
    /// Seconds of audio in each of their queries; the nine's have two.
    pub burst_clip_s: u64,
    /// Who gives the turns.
    pub discipline: Name,
    /// Extraction threads.
    pub workers: usize,
    /// Queries for each that may be started while it runs another.
    pub prefetch: usize,
    /// Alone.
    pub alone_ms: Percentiles,
    /// Beside those that burst.
    pub beside_ms: Percentiles,
    /// p99 beside to p99 alone.
    pub p99_ratio: f64,
    /// Time of workers that stood idle while somebody waited.
    pub idle_ms: f64,
}

/// Of one distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// One in a hundred waits longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// How conversations that always want more share one worker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shares {
    /// Who wants what.
    pub load: &'static str,
    /// Who gives the turns.
    pub discipline: Name,
    /// Jain's index of audio by weight: 1 when all have the same, 1/n when one has everything.
    pub jain: f64,
    /// Seconds of audio of the one that had least by its weight, and of the one that had most.
    pub least_s: f64,
    /// As above.
    pub most_s: f64,
    /// Time of workers that stood idle while somebody waited.
    pub idle_ms: f64,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FairnessReport {
    /// Where the pseudo-random moments began.
    pub seed: u64,
    /// Bursts beside calm conversations.
    pub waits: Vec<Waits>,
    /// Equal demand, weights, lengths, comings and goings.
    pub shares: Vec<Shares>,
}

/// Measures.
#[must_use]
pub fn measure(seed: u64) -> FairnessReport {
    FairnessReport { seed, waits: all_waits(seed), shares: all_shares() }
}

fn all_waits(seed: u64) -> Vec<Waits> {
    const ONE: Bursts = Bursts { count: 1, clip: SHORT };
    const FIVE: Bursts = Bursts { count: 5, clip: SHORT };
    const LONGER: Bursts = Bursts { count: 1, clip: LONG };
    let machine = |workers, prefetch| Machine { workers, prefetch };
    let mut rows = Vec::new();
    for pace in [Pace::Even, Pace::Random, Pace::Together] {
        for (bursts, workers) in [(ONE, 1), (ONE, 2), (FIVE, 1)] {
            rows.extend(Name::ALL.map(|by| waits(by, machine(workers, 0), (pace, bursts), seed)));
        }
        rows.push(waits(Name::Accounts, machine(1, 1), (pace, ONE), seed));
        rows.push(waits(Name::Accounts, machine(1, 0), (pace, LONGER), seed));
    }
    rows
}

fn waits(discipline: Name, machine: Machine, (pace, bursts): (Pace, Bursts), seed: u64) -> Waits {
    let run = |bursts| run(discipline, machine, scenario::burst(pace, bursts, WAITS, seed));
    let (alone, beside) = (run(Bursts { count: 0, ..bursts }), run(bursts));
    let (alone_ms, beside_ms) = (of_the_calm(&alone), of_the_calm(&beside));
    Waits {
        load: pace.as_str(),
        bursting: bursts.count,
        burst_clip_s: bursts.clip.as_secs(),
        discipline,
        workers: machine.workers,
        prefetch: machine.prefetch,
        alone_ms,
        beside_ms,
        p99_ratio: beside_ms.p99 / alone_ms.p99,
        idle_ms: millis(alone.idle + beside.idle),
    }
}

fn of_the_calm(outcome: &Outcome) -> Percentiles {
    let mut waits: Vec<Duration> = outcome.waits.range(..CALM).flat_map(|(_, waits)| waits).copied().collect();
    waits.sort_unstable();
    let at = |percent: usize| waits.get(waits.len() * percent / 100).or(waits.last()).copied().map_or(0.0, millis);
    Percentiles { p50: at(50), p99: at(99), max: at(100) }
}

fn all_shares() -> Vec<Shares> {
    let mixed: Vec<Duration> = (0..CONVERSATIONS).map(|key| if key % 2 == 0 { SHORT } else { LONG }).collect();
    let loads: [(&str, &dyn Fn() -> Load); 4] = [
        ("ten alike", &|| scenario::busy(&[SHORT; CONVERSATIONS], SHARES)),
        ("weights 1, 2 and 4", &|| scenario::weighted(SHARES)),
        ("clips of 2 s beside clips of 10 s", &|| scenario::busy(&mixed, SHARES)),
        ("ten alike, others come and go", &|| scenario::comings_and_goings(SHARES)),
    ];
    let rows = |(name, load): (&'static str, &dyn Fn() -> Load)| Name::ALL.map(|to| shares(name, to, load()));
    loads.into_iter().flat_map(rows).collect()
}

fn shares(name: &'static str, discipline: Name, load: Load) -> Shares {
    let weights = load.weights.clone();
    let outcome = run(discipline, Machine { workers: 1, prefetch: 0 }, load);
    // Only those that are there all the time are to have the same.
    let audio: Vec<f64> = (0..CONVERSATIONS)
        .filter(|key| weights.is_empty() || *key < weights.len())
        .map(|key| {
            let audio = outcome.audio.get(&key).map_or(0.0, Duration::as_secs_f64);
            audio / weights.get(key).map_or(1.0, |weight| f64::from(weight.get()))
        })
        .collect();
    Shares {
        load: name,
        discipline,
        jain: jain(&audio),
        least_s: audio.iter().copied().fold(f64::INFINITY, f64::min),
        most_s: audio.iter().copied().fold(0.0, f64::max),
        idle_ms: millis(outcome.idle),
    }
}

fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    // A handful of shares: their number is exact in an f64.
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

impl fmt::Display for FairnessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "nine that ask once a second, beside one that bursts out with 100 queries every 5 s (seed {})",
            self.seed
        )?;
        writeln!(
            f,
            "{:<10} {:>5} {:<10} {:>7} {:>8}  {:>15}  {:>23}  {:>5}  {:>7}",
            "the nine",
            "burst",
            "turns by",
            "workers",
            "prefetch",
            "alone p50 / p99",
            "beside p50 / p99 / max",
            "ratio",
            "idle"
        )?;
        for row in &self.waits {
            let alone = format!("{:.1} / {:.1}", row.alone_ms.p50, row.alone_ms.p99);
            let beside = format!("{:.1} / {:.1} / {:.1}", row.beside_ms.p50, row.beside_ms.p99, row.beside_ms.max);
            let (bursts, idle) =
                (format!("{} x {} s", row.bursting, row.burst_clip_s), format!("{:.1} ms", row.idle_ms));
            writeln!(
                f,
                "{:<10} {bursts:>8} {:<10} {:>7} {:>8}  {alone:>15}  {beside:>23}  {:>5.2}  {idle:>7}",
                row.load,
                row.discipline.as_str(),
                row.workers,
                row.prefetch,
                row.p99_ratio
            )?;
        }
        writeln!(f, "\nconversations that always want more, on one worker")?;
        writeln!(f, "{:<34} {:<10} {:>6}  {:>17}  {:>7}", "load", "turns by", "Jain", "least to most", "idle")?;
        for row in &self.shares {
            let range = format!("{:.0} to {:.0} s", row.least_s, row.most_s);
            let idle = format!("{:.1} ms", row.idle_ms);
            writeln!(f, "{:<34} {:<10} {:>6.4}  {range:>17}  {idle:>7}", row.load, row.discipline.as_str(), row.jain)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the service's discipline keeps what is promised under every load, and the loads can tell it from others.
    //! Method: the report itself, whose times are virtual, so that the numbers are held against limits.

    use super::*;

    fn rows(report: &FairnessReport, discipline: Name) -> impl Iterator<Item = &Waits> {
        let is_plain = move |row: &&Waits| row.discipline == discipline && row.prefetch == 0 && row.burst_clip_s == 2;
        report.waits.iter().filter(is_plain)
    }

    fn row(by: Name, (pace, count): (Pace, usize), workers: usize, seed: u64) -> Waits {
        waits(by, Machine { workers, prefetch: 0 }, (pace, Bursts { count, clip: SHORT }), seed)
    }

    #[test]
    fn a_burst_of_a_hundred_at_most_doubles_what_nine_calm_conversations_wait() {
        for seed in 1..6 {
            for pace in [Pace::Even, Pace::Random, Pace::Together] {
                for workers in [1, 2] {
                    let row = row(Name::Accounts, (pace, 1), workers, seed);
                    assert!(row.p99_ratio <= 2.0, "seed {seed}: {row:?}");
                }
            }
        }
    }

    #[test]
    fn the_calm_wait_for_no_more_of_five_that_burst_than_for_one_unless_they_ask_twice_in_a_moment() {
        for seed in 1..6 {
            for (pace, most) in [(Pace::Even, 2.0), (Pace::Random, 3.0), (Pace::Together, 2.0)] {
                let [accounts, rounds] = [Name::Accounts, Name::Rounds].map(|by| row(by, (pace, 5), 1, seed));
                assert!(accounts.p99_ratio <= most, "seed {seed}: {accounts:?}");
                assert!(accounts.p99_ratio < rounds.p99_ratio, "seed {seed}: {accounts:?}, {rounds:?}");
            }
        }
    }

    #[test]
    fn the_loads_can_tell_for_the_other_disciplines_make_the_calm_wait_for_each_that_bursts() {
        let report = measure(1);
        for row in rows(&report, Name::Arrival).filter(|row| row.load != "together") {
            assert!(row.p99_ratio > 20.0, "{row:?}");
        }
        for row in rows(&report, Name::Rounds).filter(|row| row.load != "together" && row.bursting == 5) {
            assert!(row.p99_ratio > 2.0, "{row:?}");
        }
        let ahead = report.waits.iter().find(|row| row.prefetch == 1);
        assert!(
            ahead.is_some_and(|row| row.p99_ratio > 2.0),
            "a query started ahead is one more to wait for: {ahead:?}"
        );
    }

    #[test]
    fn a_burst_of_longer_clips_costs_the_calm_one_run_of_it_and_no_more() {
        let report = measure(1);
        let longer = report.waits.iter().filter(|row| row.burst_clip_s == 10);
        for row in longer {
            assert!(row.beside_ms.p99 <= row.alone_ms.p99 + 125.0 + 25.0, "{row:?}");
        }
    }

    #[test]
    fn whoever_always_wants_more_has_audio_by_their_weight_and_lengths_of_clips_buy_nothing() {
        let report = measure(1);
        for row in report.shares.iter().filter(|row| row.discipline == Name::Accounts) {
            assert!(row.jain > 0.99, "{row:?}");
        }
        let lengths = |discipline| {
            let of = |row: &&Shares| row.discipline == discipline && row.load.contains("10 s");
            report.shares.iter().find(of).map(|row| row.jain)
        };
        assert!(lengths(Name::Arrival).is_some_and(|jain| jain < 0.95), "the load can tell");
    }

    #[test]
    fn no_worker_is_idle_while_somebody_waits() {
        let report = measure(1);
        let idle = report.waits.iter().map(|row| row.idle_ms).chain(report.shares.iter().map(|row| row.idle_ms));
        assert!(idle.sum::<f64>() < f64::EPSILON, "{report}");
    }

    #[test]
    fn one_seed_gives_one_report_in_words_and_in_json() {
        assert_eq!(measure(7), measure(7));
        let json = serde_json::to_value(measure(7)).unwrap();
        assert_eq!(json["waits"].as_array().map(Vec::len), Some(33));
        assert_eq!(json["shares"][0]["discipline"], "accounts");
        assert!(measure(7).to_string().contains("seed 7"));
    }
}
