//! Faults of extraction servers, in both protocols: two servers, of which both misbehave now and then, or one or both for
//! good.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use crate::pool::{Pool, Settings};
use crate::remote::circuit::Stand;
use crate::remote::hostile::{Hostile, Manner};
use crate::remote::{Config, Protocol, RemoteFactory};
use crate::scripted;

use super::drive::{self, Tally};
use super::report::Row;
use super::{DIMENSION, FaultRunError, PATIENCE, RECOVERY_MAX};

/// What the servers do.
const FAULTS: [(&str, Fault); 18] = [
    ("servers close the connection", Fault::NowAndThen(Manner::Dies)),
    ("servers break off mid-body", Fault::NowAndThen(Manner::BreaksOff)),
    ("servers answer 500", Fault::NowAndThen(Manner::Status(500))),
    ("servers answer 503", Fault::NowAndThen(Manner::Status(503))),
    ("servers send one elsewhere", Fault::NowAndThen(Manner::Redirects)),
    ("servers talk gibberish", Fault::NowAndThen(Manner::Babbles)),
    ("servers send without an end", Fault::NowAndThen(Manner::Floods)),
    ("servers give three values", Fault::NowAndThen(Manner::WrongSize)),
    ("servers answer with a wrong shape", Fault::NowAndThen(Manner::WrongShape)),
    ("servers give no numbers", Fault::NowAndThen(Manner::NotANumber)),
    ("servers stall before they answer", Fault::NowAndThen(Manner::Stalls)),
    ("servers stall mid-body", Fault::NowAndThen(Manner::StallsMidBody)),
    ("servers send a byte at a time", Fault::NowAndThen(Manner::Trickles)),
    ("one of two servers answers 500 for good", Fault::OneForGood(Manner::Status(500))),
    ("one of two servers stalls for good", Fault::OneForGood(Manner::StallsMidBody)),
    ("servers die in turn and come back", Fault::TurnsToDie),
    ("callers leave servers that stall", Fault::CallersLeave(Manner::Stalls)),
    ("callers leave servers that stall mid-body", Fault::CallersLeave(Manner::StallsMidBody)),
];

/// Queries that meet a server which takes its time, at most: each such answer costs a worker [`TIMEOUT`].
const SLOW_MAX: usize = 150;
/// What an answer may take. Far above what a server on this machine takes.
const TIMEOUT: Duration = Duration::from_millis(150);

/// How long a caller who leaves has stayed: longer than a good answer takes also where nothing is optimised, and shorter than
/// [`TIMEOUT`], so that the exchange is broken off from this side.
const STAY: Duration = Duration::from_millis(60);

/// How long a server that comes and goes stays. Longer than a pause of a circuit, so that it is missed and found.
const MOMENT: Duration = Duration::from_millis(80);

enum Fault {
    /// Both do this with every third clip.
    NowAndThen(Manner),
    /// One does this with every clip, the other answers well.
    OneForGood(Manner),
    /// Each in turn is gone for a while, and for a moment both are.
    TurnsToDie,
    /// Both do this with every third clip, and callers do not wait for them.
    CallersLeave(Manner),
}

impl Fault {
    /// Its part of a share, in one protocol.
    fn queries(&self, share: usize) -> usize {
        let half = share.div_ceil(2);
        if self.is_slow() { half.min(SLOW_MAX) } else { half }
    }

    fn is_slow(&self) -> bool {
        match self {
            Self::NowAndThen(manner) | Self::OneForGood(manner) => {
                [Manner::Stalls, Manner::StallsMidBody, Manner::Trickles].contains(manner)
            }
            Self::TurnsToDie | Self::CallersLeave(_) => false,
        }
    }
}

/// Queries over all faults and both protocols, when each has this share.
pub(super) fn queries(share: usize) -> usize {
    FAULTS.iter().map(|(_, fault)| fault.queries(share)).sum::<usize>() * 2
}

pub(super) fn run(share: usize, done: &mut dyn FnMut(Row)) -> Result<(), FaultRunError> {
    for protocol in [Protocol::OpenInference, Protocol::Embedding] {
        let mut stage = Stage::set(protocol)?;
        for (name, fault) in &FAULTS {
            let row = stage.play(name, fault, fault.queries(share))?;
            done(row);
        }
        stage.pool.shutdown();
    }
    Ok(())
}

struct Stage {
    protocol: Protocol,
    servers: [Hostile; 2],
    factory: RemoteFactory,
    pool: Pool,
}

impl Stage {
    fn set(protocol: Protocol) -> Result<Self, FaultRunError> {
        let servers = [Hostile::start(DIMENSION)?, Hostile::start(DIMENSION)?];
        let endpoints = servers.iter().map(|server| server.url("/v2/embedding")).collect();
        let model = (protocol == Protocol::OpenInference).then(|| "speaker".to_owned());
        let config = Config {
            model,
            timeout_seconds: TIMEOUT.as_secs_f64(),
            check_seconds: 0.05,
            pause_max_seconds: 0.05,
            ..Config::new(protocol, endpoints)
        };
        let manifest = scripted::manifest();
        let factory = RemoteFactory::start(&config, &manifest)?;
        let workers = NonZeroUsize::MIN.saturating_add(3);
        let settings = Settings { workers, patience: PATIENCE, ..Settings::default() };
        let pool = Pool::start(settings, manifest, factory.clone())?;
        pool.wait_ready(PATIENCE).map_err(FaultRunError::NotReady)?;
        Ok(Self { protocol, servers, factory, pool })
    }

    fn play(&mut self, name: &str, fault: &Fault, queries: usize) -> Result<Row, FaultRunError> {
        let before = self.books();
        let tally = match fault {
            Fault::NowAndThen(manner) => {
                self.servers.iter().for_each(|server| server.behave(*manner, 3));
                drive::ask(&self.pool, queries)
            }
            Fault::OneForGood(manner) => {
                let [first, _] = &self.servers;
                first.behave(*manner, 1);
                drive::ask(&self.pool, queries)
            }
            Fault::TurnsToDie => self.ask_while_dying(queries)?,
            Fault::CallersLeave(manner) => {
                self.servers.iter().for_each(|server| server.behave(*manner, 3));
                drive::ask_and_leave(&self.pool, queries, STAY)
            }
        };
        // Exchanges that were broken off are booked a moment later.
        self.wait_until_idle();
        let after = self.books();
        for server in &mut self.servers {
            server.behave(Manner::Well, 1);
            server.revive()?;
        }
        let all = |serves: fn(Stand) -> bool| self.factory.endpoints().iter().all(|endpoint| serves(endpoint.stand));
        let recovery = drive::recovery(&self.pool, RECOVERY_MAX, || all(|stand| matches!(stand, Stand::Closed { .. })));
        // The next fault is to find both servers equally trusted.
        let forgiven = || all(|stand| stand == Stand::Closed { failures: 0 });
        drive::recovery(&self.pool, RECOVERY_MAX, forgiven);
        let protocol = match self.protocol {
            Protocol::OpenInference => "open inference",
            Protocol::Embedding => "embedding",
        };
        let mut row = Row::new(format!("{name}, {protocol}"), queries, tally, recovery);
        row.books = Some((after.0 - before.0, after.1 - before.1));
        Ok(row)
    }

    fn ask_while_dying(&mut self, queries: usize) -> Result<Tally, FaultRunError> {
        let (pool, servers) = (&self.pool, &mut self.servers);
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                // In pieces, so that the queries outlast a few deaths.
                let mut tally = Tally::default();
                for piece in pieces(queries) {
                    tally.add(drive::ask(pool, piece));
                    std::thread::sleep(MOMENT / 3);
                }
                tally
            });
            let mut turn = 0_usize;
            while !asking.is_finished() {
                for (index, server) in servers.iter_mut().enumerate() {
                    // Of five moments each is gone for three, so that for one both are.
                    if (turn + index * 3) % 5 < 3 { server.die() } else { server.revive()? }
                }
                turn += 1;
                std::thread::sleep(MOMENT);
            }
            Ok(asking.join().expect("a caller only waits and counts"))
        })
    }

    /// Waits until no exchange is under way; none lasts longer than [`TIMEOUT`] and a busy machine's hesitation.
    fn wait_until_idle(&self) {
        let started = Instant::now();
        while self.factory.endpoints().iter().any(|endpoint| endpoint.under_way > 0) && started.elapsed() < RECOVERY_MAX
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Queries that were answered well and in vain, as the fleet counts them.
    fn books(&self) -> (u64, u64) {
        let sum = |(well, vain), (answered, failed)| (well + answered, vain + failed);
        self.factory.endpoints().iter().map(|endpoint| (endpoint.answered, endpoint.failed)).fold((0, 0), sum)
    }
}

/// `count` in pieces of eight and what is left.
fn pieces(count: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(8).map(move |start| (count - start).min(8))
}
