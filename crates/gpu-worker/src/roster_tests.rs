//! Goal: workers are replaced, given up, refused and probed as the limits say, whatever order things happen in.
//! Method: the roster alone, its time in the test's hand; then random histories whose invariants hold after each step.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::{Action, Limits, Roster, WorkerId};
use crate::intensity;

const SECOND: Duration = Duration::from_secs(1);

fn limits(workers: usize) -> Limits {
    Limits {
        workers,
        build_max: 30 * SECOND,
        run_max: 3 * SECOND,
        abandoned_max: 2,
        probe_every: 60 * SECOND,
        intensity: intensity::Limits::default(),
    }
}

fn actions(roster: &mut Roster) -> Vec<Action> {
    std::iter::from_fn(|| roster.poll_action()).collect()
}

/// The worker that the roster wants started at `now`, built.
fn started(roster: &mut Roster, now: Duration) -> WorkerId {
    roster.handle_time(now);
    let Some(Action::Start { worker, .. }) = actions(roster).into_iter().next_back() else { panic!("nothing starts") };
    assert!(roster.handle_built(worker, now));
    worker
}

/// Four quick failures, and the fifth that is one too many. Returns the time.
fn trip(roster: &mut Roster) -> Duration {
    let mut now = Duration::ZERO;
    for _ in 0..5 {
        let worker = started(roster, now);
        roster.handle_failed(worker, "on purpose", now);
        roster.handle_ended(worker);
        now = roster.poll_timeout().expect("a restart or a probe is due").min(now + SECOND);
    }
    now
}

#[test]
fn a_failed_worker_is_replaced_after_a_wait_that_doubles() {
    let mut roster = Roster::new(limits(1));
    let mut now = Duration::ZERO;
    for wait in [50, 100, 200, 400] {
        let worker = started(&mut roster, now);
        assert_eq!((roster.up(), roster.trouble()), (1, None));
        roster.handle_failed(worker, "on purpose", now);
        assert_eq!(roster.up(), 0);
        assert!(roster.trouble().unwrap().contains("on purpose"));
        assert_eq!(roster.poll_timeout(), Some(now + Duration::from_millis(wait)));
        now += Duration::from_millis(wait);
    }
    assert_eq!(roster.restarts(), 3, "the fourth replacement is due and not started yet");
}

#[test]
fn the_fifth_failure_in_a_minute_refuses_everything_until_a_probe_has_extracted() {
    let mut roster = Roster::new(limits(1));
    let now = trip(&mut roster);
    assert!(!roster.accepts() && roster.is_tripped());
    assert_eq!(actions(&mut roster), [Action::RefuseQueued]);
    assert!(roster.trouble().unwrap().contains("5 times within 60 s"));

    let probe_at = roster.poll_timeout().unwrap();
    assert!(probe_at > now + 58 * SECOND);
    roster.handle_time(probe_at);
    let [Action::Start { worker, probe: true }] = actions(&mut roster)[..] else { panic!("no probe") };
    roster.handle_built(worker, probe_at);
    assert!(!roster.accepts(), "building proves nothing");
    assert!(roster.handle_probed(worker, probe_at));
    assert!(roster.accepts());
    assert_eq!(roster.trouble(), None);
}

#[test]
fn a_probe_that_fails_is_followed_by_another_a_minute_later() {
    let mut roster = Roster::new(limits(1));
    trip(&mut roster);
    for _ in 0..20 {
        actions(&mut roster);
        let probe_at = roster.poll_timeout().unwrap();
        roster.handle_time(probe_at);
        let [Action::Start { worker, probe: true }] = actions(&mut roster)[..] else { panic!("no probe") };
        roster.handle_failed(worker, "still broken", probe_at);
        roster.handle_ended(worker);
        assert_eq!(roster.poll_timeout(), Some(probe_at + 60 * SECOND), "one probe a minute, and nothing else");
        assert!(roster.trouble().unwrap().contains("still broken"));
    }
}

#[test]
fn the_other_workers_come_back_with_the_probe() {
    let mut roster = Roster::new(limits(3));
    roster.handle_time(Duration::ZERO);
    for action in actions(&mut roster) {
        let Action::Start { worker, .. } = action else { panic!("nothing but starts is due") };
        roster.handle_failed(worker, "no model", Duration::ZERO);
        roster.handle_ended(worker);
    }
    while !roster.is_tripped() {
        let now = roster.poll_timeout().unwrap();
        let worker = started(&mut roster, now);
        roster.handle_failed(worker, "no model", now);
        roster.handle_ended(worker);
    }
    actions(&mut roster);
    let now = roster.poll_timeout().unwrap();
    let probe = started(&mut roster, now);
    roster.handle_probed(probe, now);
    roster.handle_time(now);
    assert_eq!(actions(&mut roster).len(), 2, "the two other slots start at once");
}

#[test]
fn a_hung_run_is_given_up_at_its_deadline_and_its_thread_is_not_heard_again() {
    let mut roster = Roster::new(limits(1));
    let hung = started(&mut roster, Duration::ZERO);
    assert!(roster.handle_run_started(hung, SECOND));
    assert_eq!(roster.poll_timeout(), Some(4 * SECOND));
    roster.handle_time(4 * SECOND);
    assert_eq!(actions(&mut roster), [Action::Abandon { worker: hung }]);
    assert!(roster.is_abandoned(hung) && !roster.is_current(hung));

    let fresh = started(&mut roster, 5 * SECOND);
    assert!(!roster.handle_run_ended(hung), "it must end");
    roster.handle_failed(hung, "an old story", 5 * SECOND);
    roster.handle_ended(hung);
    assert_eq!((roster.up(), roster.trouble()), (1, None), "the fresh worker {fresh:?} is not touched by it");
}

#[test]
fn a_hung_build_is_given_up_too() {
    let mut roster = Roster::new(limits(1));
    roster.handle_time(Duration::ZERO);
    let [Action::Start { worker, .. }] = actions(&mut roster)[..] else { panic!("nothing starts") };
    roster.handle_time(30 * SECOND);
    assert_eq!(actions(&mut roster), [Action::Abandon { worker }]);
    assert!(!roster.handle_built(worker, 31 * SECOND), "it came too late");
}

#[test]
fn no_thread_is_started_while_too_many_hang_and_one_that_ends_makes_room() {
    let mut roster = Roster::new(limits(1));
    let mut now = Duration::ZERO;
    let mut hung = Vec::new();
    for _ in 0..2 {
        let worker = started(&mut roster, now);
        roster.handle_run_started(worker, now);
        now += 3 * SECOND;
        roster.handle_time(now);
        hung.push(worker);
        now += SECOND;
    }
    actions(&mut roster);
    roster.handle_time(now);
    assert_eq!(actions(&mut roster), [], "two hang, and two is the bound");
    assert!(!roster.accepts());
    assert!(roster.trouble().unwrap().contains("2 worker threads hang"));
    assert_eq!(roster.poll_timeout(), None, "nothing is waited for in vain");

    roster.handle_ended(hung[0]);
    started(&mut roster, now);
    assert!(roster.accepts());
}

#[test]
fn a_closed_roster_starts_nothing() {
    let mut roster = Roster::new(limits(2));
    let worker = started(&mut roster, Duration::ZERO);
    roster.handle_close();
    roster.handle_failed(worker, "at the end", SECOND);
    roster.handle_time(1_000 * SECOND);
    assert!(actions(&mut roster).iter().all(|action| !matches!(action, Action::Start { .. })));
    assert_eq!(roster.trouble().as_deref(), Some("the pool is shut down"));
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Wait(u64),
    Built(usize),
    Probed(usize),
    Run(usize),
    RunEnded(usize),
    Failed(usize),
    Ended(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let which = 0_usize..8;
    let op = prop_oneof![
        4 => (0_u64..20_000).prop_map(Op::Wait),
        3 => which.clone().prop_map(Op::Built),
        1 => which.clone().prop_map(Op::Probed),
        2 => which.clone().prop_map(Op::Run),
        2 => which.clone().prop_map(Op::RunEnded),
        1 => which.clone().prop_map(Op::Failed),
        1 => which.prop_map(Op::Ended),
    ];
    prop::collection::vec(op, 0..200)
}

proptest! {
    #[test]
    fn whatever_happens_slots_hold_one_thread_each_and_threads_stay_bounded(ops in ops()) {
        let limits = limits(3);
        let mut roster = Roster::new(limits);
        let mut now = Duration::ZERO;
        let mut alive: Vec<WorkerId> = Vec::new();
        let mut seen = BTreeSet::new();
        for op in ops {
            let pick = |index: usize| alive.get(index % alive.len().max(1)).copied();
            match op {
                Op::Wait(ms) => now += Duration::from_millis(ms),
                Op::Built(index) => drop(pick(index).map(|worker| roster.handle_built(worker, now))),
                Op::Probed(index) => drop(pick(index).map(|worker| roster.handle_probed(worker, now))),
                Op::Run(index) => drop(pick(index).map(|worker| roster.handle_run_started(worker, now))),
                Op::RunEnded(index) => drop(pick(index).map(|worker| roster.handle_run_ended(worker))),
                Op::Failed(index) => drop(pick(index).map(|worker| roster.handle_failed(worker, "random", now))),
                Op::Ended(index) => if let Some(worker) = pick(index) {
                    roster.handle_failed(worker, "random", now);
                    roster.handle_ended(worker);
                    alive.retain(|other| *other != worker);
                },
            }
            roster.handle_time(now);
            for action in actions(&mut roster) {
                if let Action::Start { worker, .. } = action {
                    prop_assert!(seen.insert(worker), "no identity is given twice");
                    alive.push(worker);
                }
            }
            let current = alive.iter().filter(|worker| roster.is_current(**worker)).count();
            let abandoned = alive.iter().filter(|worker| roster.is_abandoned(**worker)).count();
            prop_assert!(current <= limits.workers);
            prop_assert!(abandoned < limits.abandoned_max + limits.workers, "{} hang", abandoned);
            prop_assert!(roster.up() <= current);
            prop_assert!(roster.poll_timeout().is_none_or(|at| at > now), "what is due was done");
            prop_assert_eq!(roster.trouble().is_none(), roster.up() > 0 && roster.accepts());
        }
    }
}
