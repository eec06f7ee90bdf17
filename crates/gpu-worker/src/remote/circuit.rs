//! Whether one endpoint is asked, and when it is tried again after it failed. A decision without a clock or a socket.
//!
//! ```text
//!            the n-th failure in a row
//!   Closed ───────────────────────────────▶ Open ◀──────────┐
//!     ▲                                      │ pause over    │ the probe failed: the pause doubles
//!     └────── the probe extracted ────── Probing ────────────┘
//! ```
//! An endpoint starts open and due: it is asked for nothing before a probe has extracted there. One that came back is on
//! trial: a single failure opens it again with a longer pause, the first success clears it. So a server whose probes
//! work and whose queries fail costs few queries, and its pauses grow. Failures are also forgiven one at a time, when a
//! look at the endpoint finds it well; otherwise one that failed would never be asked again beside others that did not.
//! Times are durations since any fixed moment.

use std::time::Duration;

/// When an endpoint is given a rest, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Failures in a row that open the circuit. 3: one is bad luck, and each further one costs a query.
    pub failures_max: u32,
    /// The first pause. 250 ms: a restarting server is back in seconds, and a probe costs nobody a query.
    pub pause_first: Duration,
    /// No pause is longer. 10 s: how long an endpoint that came back may go unused.
    pub pause_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { failures_max: 3, pause_first: Duration::from_millis(250), pause_max: Duration::from_secs(10) }
    }
}

/// Where the circuit of an endpoint stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// It is asked. So many failures in a row it has had.
    Closed {
        /// Failures since the last success.
        failures: u32,
    },
    /// It is given a rest.
    Open,
    /// A probe is under way.
    Probing,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed { failures: u32 },
    Open { probe_at: Duration },
    Probing,
}

/// The circuit of one endpoint.
#[derive(Debug, Clone)]
pub(super) struct Circuit {
    limits: Limits,
    state: State,
    /// How long the next rest takes.
    pause: Duration,
}

impl Circuit {
    /// Open, and due at once.
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, state: State::Open { probe_at: Duration::ZERO }, pause: limits.pause_first }
    }

    pub(super) fn stand(&self) -> Stand {
        match self.state {
            State::Closed { failures } => Stand::Closed { failures },
            State::Open { .. } => Stand::Open,
            State::Probing => Stand::Probing,
        }
    }

    /// When a probe is due; none when none is wanted.
    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        match self.state {
            State::Open { probe_at } => Some(probe_at),
            State::Closed { .. } | State::Probing => None,
        }
    }

    /// A probe begins. False when none is due.
    pub(super) fn handle_probe(&mut self, now: Duration) -> bool {
        let due = self.poll_timeout().is_some_and(|at| at <= now);
        if due {
            self.state = State::Probing;
        }
        due
    }

    /// The probe extracted. An endpoint that had failed is on trial.
    pub(super) fn handle_probed(&mut self) {
        let has_failed = self.pause > self.limits.pause_first;
        let failures = if has_failed { self.limits.failures_max.saturating_sub(1) } else { 0 };
        self.state = State::Closed { failures };
    }

    /// A look at the endpoint found that it extracts. How long its next rest takes is not forgotten by that.
    pub(super) fn handle_forgiven(&mut self) {
        if let State::Closed { failures } = &mut self.state {
            *failures = failures.saturating_sub(1);
        }
    }

    /// A query was answered with a voiceprint. Old news when the circuit has opened meanwhile.
    pub(super) fn handle_success(&mut self) {
        if let State::Closed { failures } = &mut self.state {
            *failures = 0;
            self.pause = self.limits.pause_first;
        }
    }

    /// A query, a check or the probe failed. True when that opened the circuit.
    pub(super) fn handle_failure(&mut self, now: Duration) -> bool {
        match &mut self.state {
            State::Closed { failures } if failures.saturating_add(1) < self.limits.failures_max => {
                *failures += 1;
                false
            }
            State::Closed { .. } | State::Probing => {
                self.state = State::Open { probe_at: now.saturating_add(self.pause) };
                self.pause = self.pause.saturating_mul(2).min(self.limits.pause_max);
                true
            }
            // A query that was under way when the circuit opened tells nothing new.
            State::Open { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    /// A circuit that was probed and has answered a query at time zero.
    fn closed() -> Circuit {
        let mut circuit = Circuit::new(Limits::default());
        assert!(circuit.handle_probe(ms(0)));
        circuit.handle_probed();
        circuit.handle_success();
        circuit
    }

    #[test]
    fn nothing_is_asked_of_an_endpoint_before_its_probe_extracted() {
        let mut circuit = Circuit::new(Limits::default());
        assert_eq!((circuit.stand(), circuit.poll_timeout()), (Stand::Open, Some(ms(0))));
        assert!(circuit.handle_probe(ms(0)));
        assert!(!circuit.handle_probe(ms(0)), "one probe at a time");
        circuit.handle_probed();
        assert_eq!(circuit.stand(), Stand::Closed { failures: 0 });
    }

    #[test]
    fn the_third_failure_in_a_row_opens_and_a_success_in_between_forgives() {
        let mut circuit = closed();
        for _ in 0..10 {
            assert!(!circuit.handle_failure(ms(1)) && !circuit.handle_failure(ms(1)));
            circuit.handle_success();
        }
        assert!(!circuit.handle_failure(ms(2)) && !circuit.handle_failure(ms(2)));
        assert!(circuit.handle_failure(ms(2)));
        assert_eq!((circuit.stand(), circuit.poll_timeout()), (Stand::Open, Some(ms(252))));
        assert!(!circuit.handle_probe(ms(251)));
    }

    #[test]
    fn pauses_double_up_to_the_longest_while_probes_fail() {
        let mut circuit = Circuit::new(Limits::default());
        let mut now = ms(0);
        for pause in [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
            assert!(circuit.handle_probe(now));
            assert!(circuit.handle_failure(now));
            assert_eq!(circuit.poll_timeout(), Some(now + ms(pause)));
            now += ms(pause);
        }
    }

    #[test]
    fn failures_are_forgiven_one_at_a_time_and_the_next_rest_is_not_shorter_for_it() {
        let mut circuit = Circuit::new(Limits::default());
        assert!(circuit.handle_probe(ms(0)) && circuit.handle_failure(ms(0)) && circuit.handle_probe(ms(250)));
        circuit.handle_probed();
        for failures in [2, 1, 0, 0] {
            assert_eq!(circuit.stand(), Stand::Closed { failures });
            circuit.handle_forgiven();
        }
        assert!(
            !circuit.handle_failure(ms(300)) && !circuit.handle_failure(ms(300)) && circuit.handle_failure(ms(300))
        );
        assert_eq!(circuit.poll_timeout(), Some(ms(800)));
        circuit.handle_forgiven();
        assert_eq!(circuit.stand(), Stand::Open);
    }

    #[test]
    fn one_failure_on_trial_opens_again_for_longer_and_a_success_ends_the_trial() {
        let mut circuit = Circuit::new(Limits::default());
        assert!(circuit.handle_probe(ms(0)) && circuit.handle_failure(ms(0)));
        let mut now = ms(250);
        for pause in [500, 1_000, 2_000] {
            assert!(circuit.handle_probe(now));
            circuit.handle_probed();
            assert!(circuit.handle_failure(now), "on trial one failure is enough");
            assert_eq!(circuit.poll_timeout(), Some(now + ms(pause)));
            now += ms(pause);
        }
        assert!(circuit.handle_probe(now));
        circuit.handle_probed();
        circuit.handle_success();
        assert!(!circuit.handle_failure(now) && !circuit.handle_failure(now) && circuit.handle_failure(now));
        assert_eq!(circuit.poll_timeout(), Some(now + ms(250)));
    }

    #[test]
    fn late_news_of_queries_under_way_changes_nothing_in_an_open_circuit() {
        let mut circuit = Circuit::new(Limits::default());
        assert!(!circuit.handle_failure(ms(5)));
        circuit.handle_success();
        assert_eq!((circuit.stand(), circuit.poll_timeout()), (Stand::Open, Some(ms(0))));
    }

    proptest! {
        /// Whatever happens, an endpoint that is not asked is either being probed or has a moment for it.
        #[test]
        fn no_endpoint_is_forgotten(events in proptest::collection::vec((0..5_u8, 0..500_u64), 1..200)) {
            let mut circuit = Circuit::new(Limits::default());
            let mut now = ms(0);
            for (event, passed) in events {
                now += ms(passed);
                match event {
                    0 => circuit.handle_success(),
                    1 => { circuit.handle_failure(now); }
                    2 => { circuit.handle_probe(now); }
                    3 => circuit.handle_forgiven(),
                    _ if circuit.stand() == Stand::Probing => circuit.handle_probed(),
                    _ => {}
                }
                let open = circuit.stand() == Stand::Open;
                prop_assert_eq!(open, circuit.poll_timeout().is_some());
                prop_assert!(circuit.poll_timeout().is_none_or(|at| at <= now + Limits::default().pause_max));
            }
        }
    }
}
