//! What every actor of the service shares: the clock, the engine, the registry, the people, the settings. All of it is
//! cheap to clone or behind an `Arc`; the one locked, mutable object among it is each lane's ledger.

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{Actor, Addr, Arbiter, ArbiterHandle};
use gpu_worker::Engine;
use gpu_worker::turnstile::Turnstile;
use matcher_core::policy::Policy;
use matcher_core::{Gallery, Limits, budget};
use telemetry::Telemetry;
use tokio::sync::watch;

use super::clock::Clock;
use super::continuity::Capsules;
use super::conversation::Conversation;
use super::corrections::Corrections;
use super::journal::Journal;
use super::protocol::Bounds;
use super::registry::Registry;
use crate::config::Switch;
use crate::history::History;
use crate::store::Store;

/// What one socket may hold or send.
#[derive(Debug, Clone, Copy)]
pub struct SocketLimits {
    /// Bytes of a binary frame.
    pub frame_bytes: usize,
    /// Bytes of a text frame.
    pub text_bytes: usize,
    /// Events that wait for a slow client.
    pub outbound_events: usize,
    /// Audio that is kept to examine.
    pub ring: Duration,
    /// Silence of the client after which its socket is closed.
    pub idle: Duration,
    /// How long `stop` waits for the last verdicts, and a stop of the service for its goodbyes.
    pub drain: Duration,
    /// Limits of a message.
    pub bounds: Bounds,
}

/// The configuration as the live path uses it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The scheduler's limits.
    pub limits: Limits,
    /// The model's distances.
    pub policy: Policy,
    /// The budget's limits.
    pub budget: budget::Limits,
    /// The sockets' limits.
    pub sockets: SocketLimits,
    /// Sockets in this process.
    pub sockets_max: usize,
    /// Conversations in this process.
    pub conversations_max: usize,
    /// What has one share of the workers' turns.
    pub shares: SharePer,
    /// Whether clips that are not worth a query are told before a token is spent, see [`crate::audio::gate`].
    pub clip_gate: Switch,
}

/// What has one share of the workers' turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharePer {
    /// Each conversation, whatever it holds.
    Conversation,
    /// Each recording: a conversation has as many shares as lanes.
    Recording,
}

impl SharePer {
    /// The weight of a conversation that holds `lanes`.
    pub(super) fn weight(self, lanes: usize) -> NonZeroU16 {
        match self {
            Self::Conversation => NonZeroU16::MIN,
            Self::Recording => u16::try_from(lanes).ok().and_then(NonZeroU16::new).unwrap_or(NonZeroU16::MIN),
        }
    }
}

/// Where new ids and tokens come from.
#[derive(Debug)]
pub enum Ids {
    /// 128 random bits: nobody can guess one.
    Random,
    /// Counted, for tests that compare traces.
    Counted(AtomicU64),
}

impl Ids {
    /// A new id, `prefix` in front.
    #[must_use]
    pub fn next(&self, prefix: &str) -> String {
        match self {
            Self::Random => {
                let mut bytes = [0_u8; 16];
                getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
                bytes.iter().fold(prefix.to_owned(), |id, byte| format!("{id}{byte:02x}"))
            }
            Self::Counted(count) => format!("{prefix}{}", count.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

/// Where conversations run.
#[derive(Debug)]
pub enum Arbiters {
    /// On the arbiter of whoever opens them: tests on one thread.
    Current,
    /// On a small pool, chosen by the hash of the conversation.
    Pool(Vec<ArbiterHandle>),
}

impl Arbiters {
    /// A pool of `threads` arbiters.
    #[must_use]
    pub fn pool(threads: usize) -> Self {
        Self::Pool((0..threads.max(1)).map(|_| Arbiter::new().handle()).collect())
    }

    pub(super) fn start(&self, hash: u64, conversation: Conversation) -> Addr<Conversation> {
        match self {
            Self::Current => conversation.start(),
            Self::Pool(arbiters) => {
                let place = usize::try_from(hash % arbiters.len() as u64).unwrap_or(0);
                match arbiters.get(place) {
                    Some(arbiter) => Conversation::start_in_arbiter(arbiter, |_| conversation),
                    None => conversation.start(),
                }
            }
        }
    }
}

/// See the module's text.
pub struct Service {
    /// The monotonic clock.
    pub clock: Clock,
    /// Who computes voiceprints.
    pub engine: Arc<dyn Engine>,
    /// Who may query next.
    pub turnstile: Turnstile,
    /// Metrics and accounts.
    pub telemetry: Telemetry,
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// What people decided.
    pub corrections: Corrections,
    /// The owners of devices that may come back.
    pub capsules: Capsules,
    /// What was said when, and by whom.
    pub history: History,
    /// What the schedulers do, when it is recorded.
    pub journal: Journal,
    /// Everyone who is enrolled; changes reach running conversations at once.
    pub people: watch::Receiver<Gallery>,
    /// Conversations, sockets and lineages.
    pub registry: Registry,
    /// The configuration.
    pub settings: Settings,
    /// Ids and tokens.
    pub ids: Ids,
    /// Where conversations run.
    pub arbiters: Arbiters,
}

impl Service {
    /// Everyone who is enrolled, or those of `people` when a list is given.
    #[must_use]
    pub fn gallery(&self, people: Option<&BTreeSet<String>>) -> Gallery {
        let all = self.people.borrow().clone();
        match people {
            None => all,
            Some(ids) => {
                let chosen = all.iter().filter(|print| ids.contains(print.person.as_str()));
                Gallery::new(chosen.cloned().collect())
            }
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}
