//! What the service itself costs: many real-time sockets into a server process of its own, `rollcall bench sockets`.
//!
//! ```text
//!   this process: the load ══ loopback ══▶ the server: a child, the same binary, `serve`
//!     start · enrol ─▶ ramp ─▶ rings fill ─▶ steady: CPU, memory, latencies ─▶ stop: goodbyes ─▶ report
//! ```
//! Owns the order of the measurement and the report. The child is [`server`]'s, what the sockets send and hear is
//! [`load`]'s, and reading the server's own histogram is [`scrape`]'s. It prints nothing; the command line does.

mod load;
mod pages;
mod scrape;
mod server;
mod sink;
mod sound;
pub mod traces;

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep, sleep_until};

use crate::client::ClientError;
use crate::config::Config;
use load::{Load, Totals};
pub use pages::Pages;
use scrape::Scrape;
use server::{Child, Usage};

/// What is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Sockets at once.
    pub sockets: u32,
    /// Open pages of the console whose cost is measured as well.
    pub pages: u32,
    /// How long the steady state is measured.
    pub steady: Duration,
    /// The server's configuration. Its model, ring and budget are the load's as well.
    pub config: Config,
    /// The `rollcall` binary that serves.
    pub binary: PathBuf,
    /// Environment variables of the server, beside those of this process.
    pub environment: Vec<(&'static str, String)>,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum SocketsError {
    /// Too few files may be open.
    #[error("--sockets {sockets} needs {needed} open files and {limit} are allowed; run: ulimit -n {needed}")]
    OpenFiles {
        /// Sockets asked for.
        sockets: u32,
        /// Files that the server needs: two a socket, and its own.
        needed: u64,
        /// The limit of this process.
        limit: u64,
    },
    /// The server did not come up.
    #[error("the server did not start: {0}")]
    Server(String),
    /// The server answers something else than expected.
    #[error("the server cannot be measured: {0}")]
    Unreadable(String),
    /// The load could not be put on.
    #[error("{open} of {sockets} sockets were opened: {source}")]
    Load {
        /// Sockets that were open.
        open: usize,
        /// Sockets asked for.
        sockets: u32,
        /// What happened to the next.
        source: ClientError,
    },
}

/// Milliseconds; nothing when there was no verdict in the time measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// Half are below.
    pub p50: Option<f64>,
    /// All but one in a hundred are below.
    pub p99: Option<f64>,
}

/// The measurement, as the command prints it with `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Sockets at once.
    pub sockets: u32,
    /// The server's CPU seconds a second, user and system together.
    pub cpu_cores: f64,
    /// Growth of the server's resident memory from no socket to all of them with full rings, a socket.
    pub bytes_per_socket: u64,
    /// From sending a segment to hearing the verdict that it led to, at the client.
    pub verdict_ms: Quantiles,
    /// Sockets that were closed or ended without a goodbye, and messages that the server refused.
    pub dropped: u64,
    /// Bytes that the ring alone takes.
    pub ring_bytes: u64,
    /// [`Report::bytes_per_socket`] to [`Report::ring_bytes`].
    pub ratio_to_ring: f64,
    /// Seconds of audio in a ring.
    pub ring_seconds: f64,
    /// The server's own histogram from the receipt of a segment to its verdict, interpolated.
    pub server_verdict_ms: Quantiles,
    /// Verdicts that the clients heard in the time measured.
    pub verdicts: usize,
    /// Queries of the model a second.
    pub queries_per_s: f64,
    /// Queries that failed.
    pub queries_failed: u64,
    /// Audio frames a second.
    pub frames_per_s: f64,
    /// Frames that left the client more than one frame's time late: the load was not in real time then.
    pub frames_late: u64,
    /// How long the steady state was measured.
    pub seconds: f64,
    /// What open pages of the console cost, when some were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// The server's model.
    pub model: String,
    /// The machine's load over the last minute, when that is known: how much else was going on.
    pub load_average: Option<f64>,
}

/// The rate of all sockets.
const SAMPLE_RATE: u32 = sound::RATE;

/// The ramp takes the time in which a token comes back, so that the sockets' tokens do not all come back at once, which
/// no crowd of people would bring about. Beyond a minute patience is measured.
const RAMP_MAX: Duration = Duration::from_secs(60);

/// What a ring may lack at the start of the measurement: the last socket's first frames.
const FILL_MARGIN: Duration = Duration::from_secs(2);

/// Files that the server has open beside its sockets, generously.
const FILES_BESIDE: u64 = 200;

/// Runs the measurement, which takes the ramp, one ring and the steady time. Tells `progress` each step.
///
/// # Errors
/// When the server cannot be started or measured, or the load cannot be put on.
pub fn sockets(plan: &Plan, progress: &dyn Fn(&str)) -> Result<Report, SocketsError> {
    let needed = 2 * u64::from(plan.sockets) + FILES_BESIDE;
    if let Some(limit) = server::open_files_max().filter(|limit| *limit < needed) {
        return Err(SocketsError::OpenFiles { sockets: plan.sockets, needed, limit });
    }
    progress("starting the server");
    let child = Child::start(plan)?;
    sound::people().try_for_each(|(id, clip)| child.enrol(&id, &clip))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| SocketsError::Unreadable(format!("no runtime: {error}")))?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, measure(plan, &child, progress))
}

async fn measure(plan: &Plan, child: &Child, progress: &dyn Fn(&str)) -> Result<Report, SocketsError> {
    let ring = Duration::from_secs_f64(plan.config.sockets.ring_seconds);
    let empty = child.usage()?;
    let load = Rc::new(Load::new(child.address()?));
    progress(&format!("opening {} sockets", plan.sockets));
    let sockets = ramp(plan, &load).await?;
    progress(&format!("filling rings of {} s", ring.as_secs()));
    sleep(ring + FILL_MARGIN).await;

    progress(&format!("measuring for {} s", plan.steady.as_secs()));
    let before = (child.usage()?, child.scrape()?, Instant::now(), load.totals());
    load.measure(true);
    sleep(plan.steady).await;
    load.measure(false);
    let after = (child.usage()?, child.scrape()?, before.2.elapsed(), load.totals());

    let pages = match plan.pages {
        0 => None,
        pages => {
            progress(&format!("measuring {pages} open pages for {} s", 3 * plan.steady.as_secs()));
            Some(pages::measure(plan, child).await?)
        }
    };

    progress("saying goodbye");
    load.stop();
    for socket in sockets {
        // A socket's task has no way to fail that its totals do not tell.
        socket.await.ok();
    }
    let window = Window { empty, full: after.0, before, after };
    Ok(Report { pages, ..window.report(plan, &load) })
}

async fn ramp(plan: &Plan, load: &Rc<Load>) -> Result<Vec<tokio::task::JoinHandle<()>>, SocketsError> {
    let started = Instant::now();
    let takes = (Duration::from_secs(3_600) / plan.config.budget.refill_per_hour.max(1)).min(RAMP_MAX);
    let mut sockets = Vec::new();
    for index in 0..plan.sockets {
        sleep_until(started + takes * index / plan.sockets).await;
        let opened = load.open(index).await;
        let socket =
            opened.map_err(|source| SocketsError::Load { open: sockets.len(), sockets: plan.sockets, source })?;
        sockets.push(socket);
    }
    Ok(sockets)
}

/// What was read around the steady state.
struct Window {
    empty: Usage,
    full: Usage,
    before: (Usage, Scrape, Instant, Totals),
    after: (Usage, Scrape, Duration, Totals),
}

impl Window {
    fn report(&self, plan: &Plan, load: &Load) -> Report {
        let seconds = self.after.2.as_secs_f64();
        let growth = self.full.resident_bytes.saturating_sub(self.empty.resident_bytes);
        let ring_bytes = ring_bytes(plan.config.sockets.ring_seconds);
        let bytes_per_socket = growth / u64::from(plan.sockets.max(1));
        let during = self.after.1.since(&self.before.1);
        let latencies = load.latencies();
        let frames = self.after.3.frames - self.before.3.frames;
        let ended = load.totals();
        Report {
            sockets: plan.sockets,
            cpu_cores: (self.after.0.cpu - self.before.0.cpu).as_secs_f64() / seconds,
            bytes_per_socket,
            verdict_ms: Quantiles { p50: quantile(&latencies, 0.5), p99: quantile(&latencies, 0.99) },
            dropped: ended.closed + ended.refused,
            ring_bytes,
            ratio_to_ring: bytes_per_socket as f64 / ring_bytes as f64,
            ring_seconds: plan.config.sockets.ring_seconds,
            server_verdict_ms: Quantiles { p50: during.verdict_ms(0.5), p99: during.verdict_ms(0.99) },
            verdicts: latencies.len(),
            queries_per_s: during.queries() / seconds,
            queries_failed: ended.failed,
            frames_per_s: frames as f64 / seconds,
            frames_late: self.after.3.late - self.before.3.late,
            seconds,
            pages: None,
            model: plan.config.extraction.model.clone(),
            load_average: server::load_average(),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a ring is at most ten minutes")]
fn ring_bytes(seconds: f64) -> u64 {
    (seconds * f64::from(SAMPLE_RATE)) as u64 * size_of::<i16>() as u64
}

/// The nearest rank in sorted milliseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank is at most the number of values")]
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2} ms"));
        let mib = |bytes: u64| format!("{:.2} MiB", bytes as f64 / 1_048_576.0);
        let rows = [
            ("sockets", format!("{} in real time, model {}", self.sockets, self.model)),
            ("server CPU", format!("{:.2} cores over {:.0} s", self.cpu_cores, self.seconds)),
            (
                "memory a socket",
                format!(
                    "{}, {:.3} times its ring of {:.0} s ({})",
                    mib(self.bytes_per_socket),
                    self.ratio_to_ring,
                    self.ring_seconds,
                    mib(self.ring_bytes)
                ),
            ),
            ("segment to verdict", format!("p50 {}, p99 {}", ms(self.verdict_ms.p50), ms(self.verdict_ms.p99))),
            (
                "... in the server",
                format!("p50 {}, p99 {}", ms(self.server_verdict_ms.p50), ms(self.server_verdict_ms.p99)),
            ),
            ("verdicts", format!("{} heard", self.verdicts)),
            ("queries", format!("{:.1} a second, {} failed", self.queries_per_s, self.queries_failed)),
            ("frames", format!("{:.0} a second, {} late", self.frames_per_s, self.frames_late)),
            ("dropped", self.dropped.to_string()),
            ("load average", self.load_average.map_or_else(|| "-".to_owned(), |load| format!("{load:.2}"))),
        ];
        rows.iter().try_for_each(|(name, value)| writeln!(f, "{name:<20} {value}"))?;
        self.pages.iter().try_for_each(|pages| writeln!(f, "{:<20} {pages}", "open pages"))
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the numbers that the report is made of are what they claim.
    //! Method: known values.

    use super::*;

    #[test]
    fn a_quantile_is_the_nearest_rank() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!((quantile(&values, 0.5), quantile(&values, 0.99)), (Some(100.0), Some(198.0)));
        assert_eq!((quantile(&[7.0], 0.5), quantile(&[7.0], 0.99), quantile(&[], 0.5)), (Some(7.0), Some(7.0), None));
    }

    #[test]
    fn a_ring_of_a_minute_takes_its_samples_twice_in_bytes() {
        assert_eq!(ring_bytes(60.0), 1_920_000);
    }
}
