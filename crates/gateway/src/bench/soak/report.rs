//! What a long run held, whether that is flat, and how it looks as a table. A judgement without a clock.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::held::Held;

/// How much the fitted line may rise from the end of the warm-up to the end of the run. 8 MiB: an allocator's arenas move
/// by a few MiB, and at ten queries a second, what a core does with the shipped model, an hour's rise of 8 MiB is 240 bytes
/// a query. A clip of ten seconds or its features are 320 kB.
const RISE_BYTES_MAX: f64 = 8.0 * 1024.0 * 1024.0;

/// The warm-up: a fifth of the run and no more than two minutes, in which sessions and buffers reach their sizes.
const WARM_UP_SHARE: u32 = 5;
const WARM_UP_MAX: Duration = Duration::from_secs(120);

/// What happened in the run.
pub(super) struct Run {
    pub(super) model: String,
    pub(super) provider: &'static str,
    pub(super) workers: usize,
    pub(super) time: Duration,
    pub(super) answered: u64,
    pub(super) cancelled: u64,
    pub(super) failed: u64,
    pub(super) audio_seconds: u64,
    pub(super) samples: Vec<(Duration, Held)>,
}

/// One quantity over the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Levels {
    /// In the first sample.
    pub start: u64,
    /// The highest of all samples.
    pub max: u64,
    /// In the last sample.
    pub end: u64,
}

/// The whole run. It displays as a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The model that ran.
    pub model: String,
    /// What computed.
    pub provider: &'static str,
    /// Workers that ran it.
    pub workers: usize,
    /// Length of the run.
    pub seconds: f64,
    /// Queries that brought a voiceprint.
    pub answered: u64,
    /// Queries that their caller gave up.
    pub cancelled: u64,
    /// Queries that failed.
    pub failed: u64,
    /// Audio of the queries that were answered.
    pub audio_seconds: u64,
    /// Samples that were taken.
    pub samples: usize,
    /// Resident memory.
    pub resident_bytes: Levels,
    /// Threads.
    pub threads: Levels,
    /// Open descriptors.
    pub descriptors: Levels,
    /// Slope of the line through the memory after the warm-up.
    pub slope_bytes_per_hour: f64,
    /// How much that line rises from the end of the warm-up to the end of the run.
    pub rise_bytes: f64,
    /// How much it may.
    pub rise_bytes_max: f64,
    /// Whether nothing grew.
    pub flat: bool,
    /// What did, or what else is not as it must be.
    pub troubles: Vec<String>,
}

impl Report {
    pub(super) fn new(run: Run) -> Self {
        let warm = warm(&run.samples, run.time);
        let memory: Vec<(f64, f64)> =
            warm.iter().map(|(at, held)| (at.as_secs_f64(), held.resident_bytes as f64)).collect();
        let slope = slope(&memory);
        let lasted = memory.first().zip(memory.last()).map_or(0.0, |(first, last)| last.0 - first.0);
        let troubles = troubles(&run, warm, slope * lasted);
        let levels = |of: fn(&Held) -> u64| levels(&run.samples, of);
        Self {
            provider: run.provider,
            workers: run.workers,
            seconds: run.time.as_secs_f64(),
            answered: run.answered,
            cancelled: run.cancelled,
            failed: run.failed,
            audio_seconds: run.audio_seconds,
            samples: run.samples.len(),
            resident_bytes: levels(|held| held.resident_bytes),
            threads: levels(|held| held.threads),
            descriptors: levels(|held| held.descriptors),
            slope_bytes_per_hour: slope * 3600.0,
            rise_bytes: slope * lasted,
            rise_bytes_max: RISE_BYTES_MAX,
            flat: troubles.is_empty(),
            troubles,
            model: run.model,
        }
    }
}

/// The samples after the warm-up.
fn warm(samples: &[(Duration, Held)], time: Duration) -> &[(Duration, Held)] {
    let from = (time / WARM_UP_SHARE).min(WARM_UP_MAX);
    let first = samples.partition_point(|(at, _)| *at < from);
    samples.get(first..).unwrap_or_default()
}

fn levels(samples: &[(Duration, Held)], of: fn(&Held) -> u64) -> Levels {
    let mut each = samples.iter().map(|(_, held)| of(held));
    let start = each.next().unwrap_or(0);
    let (max, end) = each.fold((start, start), |(max, _), level| (level.max(max), level));
    Levels { start, max, end }
}

/// The slope of the line with the least squares through `points`; a single point has none.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len().max(1) as f64;
    let sums = points.iter().fold((0.0, 0.0), |sums, point| (sums.0 + point.0, sums.1 + point.1));
    let mean = (sums.0 / count, sums.1 / count);
    let across: f64 = points.iter().map(|point| (point.0 - mean.0) * (point.1 - mean.1)).sum();
    let along: f64 = points.iter().map(|point| (point.0 - mean.0).powi(2)).sum();
    if along > 0.0 { across / along } else { 0.0 }
}

fn troubles(run: &Run, warm: &[(Duration, Held)], rise: f64) -> Vec<String> {
    let (before, after) = warm.split_at(warm.len() / 2);
    // Nothing fails in this run, so no thread is replaced and nothing may come to what is there.
    let grew = |of: fn(&Held) -> u64| levels(after, of).max.saturating_sub(levels(before, of).max);
    let (threads, descriptors) = (grew(|held| held.threads), grew(|held| held.descriptors));
    [
        (run.answered == 0, "no query was answered".to_owned()),
        (run.failed > 0, format!("{} queries failed", run.failed)),
        (before.is_empty(), "the run was too short for a line through its samples".to_owned()),
        (rise > RISE_BYTES_MAX, format!("the memory rose by {:.1} MiB", rise / 1024.0 / 1024.0)),
        (threads > 0, format!("{threads} threads more in the second half")),
        (descriptors > 0, format!("{descriptors} descriptors more in the second half")),
    ]
    .into_iter()
    .filter_map(|(wrong, trouble)| wrong.then_some(trouble))
    .collect()
}

/// In MiB, to be read.
pub(super) fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, provider, workers, seconds, answered, cancelled, failed, audio_seconds, .. } = self;
        writeln!(f, "{model} on {provider}, {workers} workers, {seconds:.0} s, {} samples", self.samples)?;
        writeln!(f, "{answered} answered ({audio_seconds} s of audio), {cancelled} given up, {failed} failed")?;
        writeln!(f, "{:<16} {:>9} {:>9} {:>9}", "", "start", "max", "end")?;
        let Levels { start, max, end } = self.resident_bytes;
        writeln!(f, "{:<16} {:>9.1} {:>9.1} {:>9.1}", "memory, MiB", mib(start), mib(max), mib(end))?;
        for (name, Levels { start, max, end }) in [("threads", self.threads), ("descriptors", self.descriptors)] {
            writeln!(f, "{name:<16} {start:>9} {max:>9} {end:>9}")?;
        }
        let in_mib = |bytes: f64| bytes / 1024.0 / 1024.0;
        let (rise, most) = (in_mib(self.rise_bytes), in_mib(self.rise_bytes_max));
        let slope = in_mib(self.slope_bytes_per_hour);
        writeln!(f, "after the warm-up: {slope:+.2} MiB an hour, {rise:+.2} MiB in this run, {most:.0} MiB allowed")?;
        if self.flat { writeln!(f, "flat") } else { writeln!(f, "NOT flat: {}", self.troubles.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: what grows is found, and what only moves is not taken for it.
    //! Method: made-up runs of an hour.

    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// An hour in samples of five seconds.
    fn run(held: impl Fn(u64) -> Held) -> Run {
        let samples = (0..=720).map(|n| (Duration::from_secs(n * 5), held(n))).collect();
        Run {
            model: "made up".to_owned(),
            provider: "cpu",
            workers: 1,
            time: Duration::from_secs(3600),
            answered: 30_000,
            cancelled: 0,
            failed: 0,
            audio_seconds: 150_000,
            samples,
        }
    }

    fn steady() -> Held {
        Held { resident_bytes: 100 * MIB, threads: 9, descriptors: 12 }
    }

    #[test]
    fn memory_that_fills_in_the_warm_up_and_then_moves_up_and_down_is_flat() {
        let moving = |n: u64| Held { resident_bytes: (n.min(20) * 5 + n % 7) * MIB, ..steady() };
        let report = Report::new(run(moving));
        assert!(report.flat, "{:?}", report.troubles);
        assert_eq!(report.resident_bytes, Levels { start: 0, max: 106 * MIB, end: 106 * MIB });
    }

    #[test]
    fn a_leak_of_a_few_hundred_bytes_a_query_is_found() {
        let leaking = |n: u64| Held { resident_bytes: 100 * MIB + n * 30_000 / 720 * 300, ..steady() };
        let report = Report::new(run(leaking));
        assert!(!report.flat && report.troubles.iter().any(|trouble| trouble.contains("MiB")), "{report}");
        assert!((report.slope_bytes_per_hour - 30_000.0 * 300.0).abs() < 200_000.0, "{report}");
    }

    #[test]
    fn a_thread_or_a_descriptor_more_and_a_query_that_fails_are_trouble() {
        let more = |n: u64| Held { threads: 9 + n / 600, descriptors: 12 + n / 700, ..steady() };
        assert_eq!(Report::new(run(more)).troubles.len(), 2);
        let failing = Run { failed: 1, ..run(|_| steady()) };
        assert_eq!(Report::new(failing).troubles, ["1 queries failed"]);
    }

    #[test]
    fn a_run_without_samples_is_not_called_flat() {
        let nothing = Run { samples: Vec::new(), ..run(|_| steady()) };
        assert!(!Report::new(nothing).flat);
    }
}
