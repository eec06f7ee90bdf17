//! The endpoints of one service and how each of them stands: which one a query goes to, and what its end says about it.
//! Workers and keepers meet here, under one lock that is held for moments; nobody is asked anything under it.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use matcher_core::Embedding;

use super::address::Address;
use super::asker::Reach;
use super::circuit::{Circuit, Limits, Stand};
use super::fault::Fault;

/// Two endpoints whose voiceprints of the probe's clip are farther apart run different models. The shipped model and its
/// int8 variants lie 0.08 to 0.13 apart there; the vectors of unrelated models have nothing in common, which is about 1.
const SAME_MODEL_MAX: f64 = 0.2;

/// How an endpoint stands, for health reports and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointHealth {
    /// Its address, as configured.
    pub endpoint: String,
    /// Whether it is asked.
    pub stand: Stand,
    /// Queries that it is working on.
    pub under_way: usize,
    /// Queries that it answered with a voiceprint.
    pub answered: u64,
    /// Queries that were sent to it in vain.
    pub failed: u64,
    /// The same by [`Fault::kind`].
    pub failed_by_kind: BTreeMap<&'static str, u64>,
    /// What went wrong there last, until it answers again.
    pub last_fault: Option<Fault>,
}

/// What an endpoint's keeper has to do.
pub(super) enum Duty {
    /// Try it from scratch, with a clip that nobody waits for.
    Probe,
    /// Look whether it is still there, and says so.
    Check(Arc<Reach>),
    /// It has failed lately: see with a clip that nobody waits for whether it works.
    Doubt(Arc<Reach>),
}

pub(super) struct Fleet {
    addresses: Vec<Address>,
    check_every: Duration,
    started: Instant,
    state: Mutex<State>,
    /// Keepers wait here.
    changed: Condvar,
}

struct State {
    standings: Vec<Standing>,
    /// What the first endpoint that was ever in service made of the probe's clip.
    reference: Option<Embedding>,
    /// Counts queries, so that equals take turns.
    turns: u64,
    closed: bool,
}

struct Standing {
    circuit: Circuit,
    reach: Option<Arc<Reach>>,
    check_at: Duration,
    under_way: usize,
    last_turn: u64,
    answered: u64,
    failed: u64,
    failed_by_kind: BTreeMap<&'static str, u64>,
    last_fault: Option<Fault>,
}

impl Fleet {
    pub(super) fn new(addresses: Vec<Address>, limits: Limits, check_every: Duration) -> Self {
        let standings = addresses.iter().map(|_| Standing::new(limits)).collect();
        let state = Mutex::new(State { standings, reference: None, turns: 0, closed: false });
        Self { addresses, check_every, started: Instant::now(), state, changed: Condvar::new() }
    }

    pub(super) fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// No invariant spans two statements, so a panic under the lock spoils nothing.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // For workers.

    /// The endpoint for the next query; none when all are out of service.
    pub(super) fn go(self: &Arc<Self>) -> Option<Going> {
        let mut state = self.state();
        let index = choose(&state.standings)?;
        state.turns += 1;
        let turn = state.turns;
        let standing = state.standings.get_mut(index)?;
        let reach = Arc::clone(standing.reach.as_ref()?);
        standing.under_way += 1;
        standing.last_turn = turn;
        drop(state);
        Some(Going { fleet: Arc::clone(self), index, reach })
    }

    fn ended(&self, index: usize, outcome: Result<(), Fault>) {
        let now = self.now();
        self.update(index, |standing| match outcome {
            Ok(()) => {
                standing.answered += 1;
                standing.last_fault = None;
                standing.circuit.handle_success();
            }
            Err(fault) => {
                standing.failed += 1;
                *standing.failed_by_kind.entry(fault.kind()).or_default() += 1;
                standing.fail(fault, now);
            }
        });
    }

    // For keepers.

    /// Waits until there is something to do for an endpoint. None when the service ends.
    pub(super) fn wait_for_duty(&self, index: usize) -> Option<Duty> {
        let mut state = self.state();
        loop {
            let now = self.now();
            if state.closed {
                return None;
            }
            let standing = state.standings.get_mut(index)?;
            if standing.circuit.handle_probe(now) {
                return Some(Duty::Probe);
            }
            if let (Stand::Closed { failures }, Some(reach)) = (standing.circuit.stand(), &standing.reach)
                && standing.check_at <= now
            {
                standing.check_at = now.saturating_add(self.check_every);
                let reach = Arc::clone(reach);
                return Some(if failures > 0 { Duty::Doubt(reach) } else { Duty::Check(reach) });
            }
            // It is woken when the circuit opens before that.
            let wait = standing.circuit.poll_timeout().unwrap_or(standing.check_at).saturating_sub(now);
            state = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What the probe found: a way to reach the endpoint, and its voiceprint of the probe's clip.
    pub(super) fn probed(&self, index: usize, found: Result<(Reach, Embedding), Fault>) {
        let found = found.and_then(|(reach, print)| self.compare(print).map(|()| reach));
        let now = self.now();
        let check_at = now.saturating_add(self.check_every);
        self.update(index, |standing| match found {
            Ok(reach) => {
                standing.reach = Some(Arc::new(reach));
                standing.check_at = check_at;
                standing.last_fault = None;
                standing.circuit.handle_probed();
            }
            Err(fault) => standing.fail(fault, now),
        });
    }

    /// What a look at an endpoint in service found. That it is ready says nothing about its answers.
    pub(super) fn checked(&self, index: usize, found: Result<(), Fault>) {
        let now = self.now();
        if let Err(fault) = found {
            self.update(index, |standing| standing.fail(fault, now));
        }
    }

    /// What a doubtful endpoint made of the probe's clip.
    pub(super) fn doubted(&self, index: usize, found: Result<Embedding, Fault>) {
        let found = found.and_then(|print| self.compare(print));
        let now = self.now();
        self.update(index, |standing| match found {
            Ok(()) => standing.circuit.handle_forgiven(),
            Err(fault) => standing.fail(fault, now),
        });
    }

    fn compare(&self, print: Embedding) -> Result<(), Fault> {
        let mut state = self.state();
        let reference = state.reference.get_or_insert_with(|| print.clone());
        match reference.distance(&print) {
            Some(distance) if distance <= SAME_MODEL_MAX => Ok(()),
            Some(_) | None => Err(Fault::AnotherModel),
        }
    }

    // For everybody.

    /// What is wrong, when no endpoint is in service.
    pub(super) fn trouble(&self) -> Option<String> {
        let state = self.state();
        if state.closed {
            return Some("the extraction servers are no longer looked after".to_owned());
        }
        if choose(&state.standings).is_some() {
            return None;
        }
        let told = |(address, standing): (&Address, &Standing)| match standing.last_fault {
            Some(fault) => format!("{address}: {fault}"),
            None => format!("{address}: not asked yet"),
        };
        let each: Vec<String> = self.addresses.iter().zip(&state.standings).map(told).collect();
        Some(format!("no extraction server is in service ({})", each.join("; ")))
    }

    pub(super) fn health(&self) -> Vec<EndpointHealth> {
        let state = self.state();
        let told = |(address, standing): (&Address, &Standing)| EndpointHealth {
            endpoint: address.to_string(),
            stand: standing.circuit.stand(),
            under_way: standing.under_way,
            answered: standing.answered,
            failed: standing.failed,
            failed_by_kind: standing.failed_by_kind.clone(),
            last_fault: standing.last_fault,
        };
        self.addresses.iter().zip(&state.standings).map(told).collect()
    }

    /// No endpoint is looked after any more.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// Changes how an endpoint stands, and tells keepers and the log when that puts it in or out of service.
    fn update(&self, index: usize, change: impl FnOnce(&mut Standing)) {
        let mut state = self.state();
        let Some(standing) = state.standings.get_mut(index) else { return };
        let before = (standing.is_in_service(), standing.last_fault);
        change(standing);
        let after = (standing.is_in_service(), standing.last_fault);
        drop(state);
        self.changed.notify_all();
        let endpoint = self.addresses.get(index).map(Address::to_string).unwrap_or_default();
        match after {
            (true, _) if !before.0 => tracing::info!(endpoint, "an extraction server is in service"),
            (false, Some(fault)) if before != after => {
                tracing::warn!(endpoint, %fault, "an extraction server is out of service");
            }
            (true | false, _) => {}
        }
    }
}

impl Standing {
    fn new(limits: Limits) -> Self {
        Self {
            circuit: Circuit::new(limits),
            reach: None,
            check_at: Duration::ZERO,
            under_way: 0,
            last_turn: 0,
            answered: 0,
            failed: 0,
            failed_by_kind: BTreeMap::new(),
            last_fault: None,
        }
    }

    fn is_in_service(&self) -> bool {
        matches!(self.circuit.stand(), Stand::Closed { .. })
    }

    fn fail(&mut self, fault: Fault, now: Duration) {
        if fault.is_the_endpoints() {
            self.last_fault = Some(fault);
            self.circuit.handle_failure(now);
        }
    }
}

/// The one in service with the fewest failures in a row; of these the least busy; of these the one whose last query is
/// longest ago.
fn choose(standings: &[Standing]) -> Option<usize> {
    let rank = |(index, standing): (usize, &Standing)| match standing.circuit.stand() {
        Stand::Closed { failures } => Some(((failures, standing.under_way, standing.last_turn), index)),
        Stand::Open | Stand::Probing => None,
    };
    (0..).zip(standings).filter_map(rank).min().map(|(_, index)| index)
}

/// A query on its way to an endpoint. Dropped without a word it counts as broken off.
pub(super) struct Going {
    fleet: Arc<Fleet>,
    index: usize,
    pub(super) reach: Arc<Reach>,
}

impl Going {
    /// The query is over.
    pub(super) fn ended(self, outcome: Result<(), Fault>) {
        self.fleet.ended(self.index, outcome);
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        self.fleet.update(self.index, |standing| standing.under_way = standing.under_way.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In service, with so many failures in a row.
    fn standing(failures: u32, under_way: usize, last_turn: u64) -> Standing {
        let mut standing = Standing { under_way, last_turn, ..Standing::new(Limits::default()) };
        assert!(standing.circuit.handle_probe(Duration::ZERO));
        standing.circuit.handle_probed();
        (0..failures).for_each(|_| standing.fail(Fault::Broken, Duration::ZERO));
        standing
    }

    #[test]
    fn the_healthiest_goes_first_then_the_least_busy_then_the_longest_unused() {
        for (standings, chosen) in [
            (vec![standing(1, 0, 1), standing(0, 9, 9)], Some(1)),
            (vec![standing(2, 0, 1), standing(1, 3, 3)], Some(1)),
            (vec![standing(0, 3, 1), standing(0, 2, 2)], Some(1)),
            (vec![standing(0, 1, 2), standing(0, 1, 1)], Some(1)),
            (vec![standing(0, 1, 1), standing(0, 1, 1)], Some(0)),
        ] {
            assert_eq!(choose(&standings), chosen);
        }
    }

    #[test]
    fn one_that_is_out_of_service_is_never_chosen() {
        assert_eq!(choose(&[standing(3, 0, 0), standing(2, 9, 9)]), Some(1));
        assert_eq!(choose(&[standing(3, 0, 0), Standing::new(Limits::default())]), None);
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn a_refused_clip_or_a_caller_without_time_or_who_left_speaks_against_nobody() {
        let mut standing = standing(2, 0, 0);
        for fault in [Fault::Refused(422), Fault::OutOfTime, Fault::GivenUp, Fault::Late, Fault::NoEndpoint] {
            standing.fail(fault, Duration::ZERO);
        }
        assert_eq!(standing.circuit.stand(), Stand::Closed { failures: 2 });
    }
}
