//! What telemetry to a collector costs the service: the same load on a server that exports and on one that does not, in
//! turns, `rollcall bench traces`.
//!
//! ```text
//!   round: start both ─▶ warm up ─▶ load: a query here, a query there, … ─▶ let it export ─▶ CPU of each ÷ its queries
//! ```
//! Both run at the same time and get their queries alternately, fractions of a second apart: whatever else the machine
//! does meets both alike, and only what is left of it is noise. The model is the scripted one, which costs nearly nothing,
//! and each query comes with as much audio as a socket hears while its token comes back, so that the share is that of a
//! service whose sockets ask all that their budget lets them. The exporting server sends metrics, traces of every query
//! and logs, to a sink in this process; the sink's own CPU is not the server's. It prints nothing.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep, sleep_until};

use super::scrape::Scrape;
use super::server::{self, Child};
use super::sink::Sink;
use super::sound::{self, FRAMES_PER_SECOND, RATE, Sounds};
use super::{Plan, SocketsError};
use crate::client::{Address, ClientError, Heard, Segment, Start};

/// A voice's speech for one query, the least that one takes: the end of the audio that comes with it.
pub const SPEECH_SECONDS: u32 = 2;

/// How often a socket brings a query about. The sound of it goes out in one piece.
const QUERY_EVERY: Duration = Duration::from_millis(200);

/// Numbers that a socket's voices go through: each has some hundred attempts, and all are strangers.
const VOICES: u32 = 16;

/// Load before the measurement, until memory and caches are as they stay.
const WARM_UP: Duration = Duration::from_secs(1);

/// What waits for the collector is sent within this, by default; it belongs to the queries before it.
const EXPORTED_WITHIN: Duration = Duration::from_millis(5_500);

/// How it is measured.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// Pairs of measurements.
    pub rounds: u32,
    /// Audio that comes with each query. At least [`SPEECH_SECONDS`].
    pub audio_seconds: u32,
}

/// How one measurement went.
#[derive(Debug, Clone, Copy)]
struct Measured {
    cpu: Duration,
    queries: f64,
}

/// The measurement, as the command prints it with `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Pairs of measurements.
    pub rounds: u32,
    /// How long each was.
    pub seconds: f64,
    /// Queries a second, on each server.
    pub queries_per_s: f64,
    /// Seconds of audio that came with each query.
    pub audio_seconds: u32,
    /// Microseconds of the server's CPU a query, audio and all, when nothing is exported. The median.
    pub cpu_us_without: f64,
    /// ... when everything is.
    pub cpu_us_with: f64,
    /// The mean of the rounds' ratios, with to without.
    pub ratio: f64,
    /// The standard error of that mean.
    pub ratio_error: f64,
    /// Requests that the sink took.
    pub requests: u64,
    /// Bytes of them a query.
    pub bytes_per_query: f64,
    /// The machine's load over the last minute, when that is known: how much else was going on.
    pub load_average: Option<f64>,
}

/// Runs the measurement, each round for the plan's steady time. Tells `progress` each round.
///
/// # Errors
/// When a server cannot be started or measured, or the load cannot be put on.
pub fn traces(plan: &Plan, turns: Turns, progress: &dyn Fn(&str)) -> Result<Report, SocketsError> {
    let sink = Sink::start().map_err(|error| SocketsError::Server(format!("no collector: {error}")))?;
    let (plain, exporting) = (with(plan, vec![("OTEL_SDK_DISABLED", "true".to_owned())]), with(plan, exports(&sink)));
    let mut pairs = Vec::new();
    for round in 0..turns.rounds {
        progress(&format!("round {} of {}", round + 1, turns.rounds));
        // Whoever goes first changes: the second of two processes may find the caches as the first left them.
        pairs.push(if round % 2 == 0 {
            measure([&plain, &exporting], turns.audio_seconds)?.into()
        } else {
            let [with, without] = measure([&exporting, &plain], turns.audio_seconds)?;
            (without, with)
        });
    }
    Ok(report((plan, turns), &pairs, &sink))
}

fn with(plan: &Plan, environment: Vec<(&'static str, String)>) -> Plan {
    Plan { environment, ..plan.clone() }
}

fn exports(sink: &Sink) -> Vec<(&'static str, String)> {
    vec![
        ("OTEL_SDK_DISABLED", "false".to_owned()),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", sink.endpoint()),
        ("OTEL_TRACES_SAMPLER", "always_on".to_owned()),
    ]
}

/// Two servers at the same time.
fn measure(plans: [&Plan; 2], audio_seconds: u32) -> Result<[Measured; 2], SocketsError> {
    let [first, second] = plans;
    let children = [started(first)?, started(second)?];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| SocketsError::Unreadable(format!("no runtime: {error}")))?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        in_turns(plans, &children, &Spoken { name: "warm-up", time: WARM_UP, audio_seconds }).await?;
        let before = standing(&children)?;
        in_turns(plans, &children, &Spoken { name: "load", time: first.steady, audio_seconds }).await?;
        let after = standing(&children)?;
        Ok([measured(&before[0], &after[0]), measured(&before[1], &after[1])])
    })
}

fn started(plan: &Plan) -> Result<Child, SocketsError> {
    let child = Child::start(plan)?;
    sound::people().try_for_each(|(id, clip)| child.enrol(&id, &clip))?;
    Ok(child)
}

type Standing = (Duration, Scrape);

fn standing([first, second]: &[Child; 2]) -> Result<[Standing; 2], SocketsError> {
    Ok([(first.running()?, first.scrape()?), (second.running()?, second.scrape()?)])
}

fn measured(before: &Standing, after: &Standing) -> Measured {
    Measured { cpu: after.0.saturating_sub(before.0), queries: after.1.since(&before.1).queries() }
}

/// The same load on both, half a period apart, and the exports that follow from it.
async fn in_turns(plans: [&Plan; 2], children: &[Child; 2], what: &Spoken) -> Result<(), SocketsError> {
    let ([first, second], [one, other], begin) = (plans, children, Instant::now());
    let half = QUERY_EVERY / first.sockets / 2;
    let (done, also) = tokio::join!(load(first, one, what, begin), load(second, other, what, begin + half));
    done.and(also)?;
    sleep(EXPORTED_WITHIN).await;
    Ok(())
}

/// One stretch of load.
struct Spoken {
    /// In the names of its recordings.
    name: &'static str,
    time: Duration,
    audio_seconds: u32,
}

/// Some sockets for some time.
async fn load(plan: &Plan, child: &Child, what: &Spoken, begin: Instant) -> Result<(), SocketsError> {
    let (address, sounds) = (child.address()?, Sounds::new());
    let speaking = (0..plan.sockets).map(|index| {
        // Spread over one period, so that their queries do not come in bursts.
        let begin = begin + QUERY_EVERY * index / plan.sockets;
        let id = format!("{}-{index}", what.name);
        let during = (begin, begin + what.time);
        tokio::task::spawn_local(speak(address.clone(), sounds.clone(), (id, what.audio_seconds), during))
    });
    for (open, socket) in (0_usize..).zip(speaking.collect::<Vec<_>>()) {
        let spoken = socket.await.map_err(|error| SocketsError::Unreadable(error.to_string()))?;
        spoken.map_err(|source| SocketsError::Load { open, sockets: plan.sockets, source })?;
    }
    Ok(())
}

async fn speak(
    address: Address,
    sounds: Sounds,
    (id, audio_seconds): (String, u32),
    (begin, end): (Instant, Instant),
) -> Result<(), ClientError> {
    let (mut sender, mut events) = address.connect().await?;
    let start = Start { recording: id.clone(), conversation: id, sample_rate: RATE, verbose: false };
    sender.start(&start).await?;
    // Whoever does not read is closed.
    let hearing = tokio::task::spawn_local(async move { while let Ok(Heard::Event(_)) = events.next().await {} });
    for turn in 0_u32.. {
        let due = begin + QUERY_EVERY * turn;
        if due >= end {
            break;
        }
        sleep_until(due).await;
        for frame in 0..audio_seconds * FRAMES_PER_SECOND {
            sender.audio(sounds.stranger(turn % VOICES, frame)).await?;
        }
        let to = (turn + 1) * audio_seconds;
        let (from, to) = (f64::from(to.saturating_sub(SPEECH_SECONDS)), f64::from(to));
        let speaker = (turn % VOICES).into();
        sender.segments(&[Segment { id: turn.to_string(), speaker, start: from, end: to }]).await?;
    }
    sender.stop().await?;
    // The goodbye ends it.
    hearing.await.ok();
    Ok(())
}

fn report((plan, turns): (&Plan, Turns), pairs: &[(Measured, Measured)], sink: &Sink) -> Report {
    let per_query = |measured: &Measured| measured.cpu.as_secs_f64() * 1e6 / measured.queries.max(1.0);
    let ratios: Vec<f64> = pairs.iter().map(|(without, with)| per_query(with) / per_query(without)).collect();
    let (ratio, ratio_error) = mean(&ratios);
    let queries: f64 = pairs.iter().map(|(without, with)| without.queries + with.queries).sum();
    let exported: f64 = pairs.iter().map(|(_, with)| with.queries).sum();
    let seconds = plan.steady.as_secs_f64();
    let (requests, bytes) = sink.taken();
    Report {
        rounds: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
        seconds,
        queries_per_s: queries / (2.0 * pairs.len() as f64 * seconds),
        audio_seconds: turns.audio_seconds,
        cpu_us_without: median(pairs.iter().map(|(without, _)| per_query(without)).collect()),
        cpu_us_with: median(pairs.iter().map(|(_, with)| per_query(with)).collect()),
        ratio,
        ratio_error,
        requests,
        bytes_per_query: bytes as f64 / exported.max(1.0),
        load_average: server::load_average(),
    }
}

/// The mean, and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = if values.len() > 1 { (squares / (count - 1.0) / count).sqrt() } else { f64::NAN };
    (mean, error)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2).copied().unwrap_or(f64::NAN);
    let lower = values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN);
    f64::midpoint(lower, upper)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        let cost = percent(self.ratio - 1.0);
        let rows = [
            (
                "load",
                format!(
                    "{:.0} queries a second with {} s of audio each, {} pairs of {:.0} s",
                    self.queries_per_s, self.audio_seconds, self.rounds, self.seconds
                ),
            ),
            (
                "CPU a query",
                format!("{:.0} us without export, {:.0} us with it", self.cpu_us_without, self.cpu_us_with),
            ),
            ("export costs", format!("{cost:+.2} % of it, standard error {:.2} %", percent(self.ratio_error))),
            ("sent", format!("{} requests, {:.0} bytes a query", self.requests, self.bytes_per_query)),
            ("load average", self.load_average.map_or_else(|| "-".to_owned(), |load| format!("{load:.2}"))),
        ];
        rows.iter().try_for_each(|(name, value)| writeln!(f, "{name:<20} {value}"))
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the ratio and its noise are what they claim.
    //! Method: known values.

    use super::*;

    #[test]
    fn a_mean_has_its_standard_error_and_a_median_its_middle() {
        let (mean, error) = mean(&[1.0, 2.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-12 && (error - (1.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(vec![4.0, 1.0, 2.0, 9.0]) - 3.0).abs() < 1e-12);
    }
}
