//! Goal: no sequence of updates, failures, rollovers or clocks buys one query more than the limits.
//! Method: the ledger alone where the clock is under test, the driver where voices and conversations are.

#![cfg(test)]

mod driver;

use driver::*;
use matcher_core::budget::{Books, Denied, Limits, Outcome, Refused, Reservation, Seen, Settled};
use matcher_core::{Budget, Cap, ExitReason, Generation, Monotonic, Speaker, Status};
use std::num::NonZeroU32;
use std::time::Duration;

use Answer::{Fails, Vector};

const FIRST: Generation = Generation(1);

fn at_second(seconds: u64) -> Monotonic {
    Monotonic::from_origin(Duration::from_secs(seconds))
}

fn ledger() -> Budget {
    Budget::new(Limits::default(), FIRST, Monotonic::ZERO)
}

fn reserve(budget: &mut Budget, speaker: u32, now: Monotonic) -> Result<Reservation, Refused> {
    budget.reserve(budget.generation(), Speaker(speaker), now)
}

/// Reserves and settles at once; whether it was granted.
fn spend(budget: &mut Budget, speaker: u32, now: Monotonic) -> bool {
    let reserved = reserve(budget, speaker, now);
    let granted = reserved.map(|reservation| budget.settle(reservation, Outcome::Extracted));
    granted.is_ok()
}

fn denied(refused: Result<Reservation, Refused>) -> Denied {
    match refused {
        Err(Refused::Denied(denied)) => denied,
        other => panic!("not a denial: {other:?}"),
    }
}

// B4.54
#[test]
fn a_voice_that_is_nobody_costs_exactly_twelve_queries() {
    let mut driver = Driver::new();
    driver.by_default(Vector(BETWEEN));
    for segment in fragments(0, 120) {
        driver.pass(0.5);
        driver.update(&[segment]);
    }
    assert_eq!((driver.queries.len(), driver.attempts(0)), (12, 12));
    assert_eq!((driver.person(0), driver.status(0)), (None, Status::NoMatch));
    assert_eq!(driver.counters.budget_exits.keys().copied().collect::<Vec<_>>(), [Cap::Voice]);
}

#[test]
fn a_rejected_voice_in_fragments_is_examined_on_the_steady_schedule() {
    let mut driver = Driver::new();
    driver.by_default(Vector(BETWEEN));
    let mut halves = Vec::new();
    for (n, segment) in fragments(0, 60).enumerate() {
        driver.update(&[segment]);
        if driver.queries.len() > halves.len() {
            halves.push(n + 1);
        }
    }
    assert_eq!(halves, [2, 4, 5, 7, 9, 10, 12, 14, 15, 17, 19, 20].map(|second| second * 2));
}

// B4.55
#[test]
fn a_token_returns_every_fifteen_seconds_and_a_clock_that_runs_backwards_brings_none() {
    let mut budget = ledger();
    for speaker in 0..16 {
        assert!(spend(&mut budget, speaker, Monotonic::ZERO));
    }
    assert!(!spend(&mut budget, 16, at_second(14)));
    assert!(spend(&mut budget, 16, at_second(15)));
    assert_eq!(budget.tokens(at_second(15)), 0.0);
    for (second, left) in [(3600, 15.0), (3500, 14.0), (3600, 13.0)] {
        assert!(spend(&mut budget, 17, at_second(second)));
        assert_eq!(budget.tokens(at_second(second)), left, "at {second} s");
    }
}

#[test]
fn polling_never_delays_a_token() {
    for milliseconds in [100, 500, 1000, 3000, 7500] {
        let mut budget = ledger();
        for speaker in 0..16 {
            assert!(spend(&mut budget, speaker, Monotonic::ZERO));
        }
        let mut now = Monotonic::ZERO;
        while now < Monotonic::from_origin(Duration::from_millis(15_000 - milliseconds)) {
            now = now.after(Duration::from_millis(milliseconds));
            assert!(!spend(&mut budget, 99, now), "every {milliseconds} ms");
        }
        assert!(spend(&mut budget, 99, at_second(15)), "every {milliseconds} ms");
    }
}

// B4.56
#[test]
fn attempts_last_through_a_refresh_and_start_anew_in_the_next_conversation() {
    let mut budget = ledger();
    for _ in 0..12 {
        assert!(spend(&mut budget, 1, Monotonic::ZERO));
    }
    budget.handle_resumption(Generation(2));
    assert_eq!(denied(reserve(&mut budget, 1, Monotonic::ZERO)).cap, Cap::Voice);
    budget.handle_rollover(Generation(3));
    assert!(spend(&mut budget, 1, Monotonic::ZERO));
    assert_eq!((budget.attempts(Speaker(1)), budget.tokens(Monotonic::ZERO)), (1, 3.0));
}

// B4.58
#[test]
fn new_conversations_new_numbers_and_forged_times_buy_nothing() {
    let mut driver = Driver::new();
    driver.by_default(Vector(BETWEEN));
    let mut speaker = 0;
    let mut hammer = |driver: &mut Driver| {
        for _ in 0..20 {
            speaker += 1;
            driver.roll_over();
            driver.update(&[says(speaker, 0.0, 1e9)]);
        }
    };
    hammer(&mut driver);
    assert_eq!(driver.queries.len(), 16);
    for hours in [1, 2] {
        for _ in 0..240 {
            driver.pass(15.0);
            hammer(&mut driver);
        }
        assert_eq!(driver.queries.len(), 16 + hours * 240);
    }
}

// B4.59
#[test]
fn an_owner_without_a_token_is_named_when_one_returns() {
    let mut driver = Driver::owner_only();
    driver.script(1, vec![Vector(SARAH); 12]);
    driver.script(2, vec![Vector(SARAH); 4]);
    for segment in fragments(1, 40).chain(fragments(2, 14)) {
        driver.update(&[segment]);
    }
    assert_eq!(driver.tokens(), 0.0);
    driver.roll_over();
    driver.update(&[says(0, 30.0, 35.0)]);
    assert_eq!((driver.person(0), driver.exited(ExitReason::EmbeddingBudget)), (None, 1));

    driver.pass(15.0);
    driver.update(&[says(0, 30.0, 35.0)]);
    assert_eq!(driver.person(0), Some("user".into()));
}

// B4.60
#[test]
fn failures_spend_like_everything_else() {
    let mut driver = Driver::new();
    driver.by_default(Fails(Outcome::ExtractionFailed));
    driver.update(&(0..32).map(|speaker| says(speaker, 0.0, 5.0)).collect::<Vec<_>>());
    assert_eq!(driver.queries.len(), 16);
    assert_eq!(driver.lane().budget.attempted().map(|(_, spent)| spent).sum::<u32>(), 16);
    assert_eq!((driver.tokens(), driver.counters.failed), (0.0, 16));
    assert_eq!(driver.counters.budget_exits, [(Cap::Socket, 16)].into());
}

// B4.61
#[test]
fn clearing_the_matcher_buys_nothing() {
    let mut driver = Driver::new();
    driver.by_default(Vector(BETWEEN));
    for n in 0..20 {
        driver.clear();
        driver.update(&[says(n % 8, 0.0, 5.0)]);
    }
    assert_eq!(driver.queries.len(), 16);
}

// B4.62
#[test]
fn an_owner_who_is_enrolled_later_is_found_in_the_evidence_without_a_query() {
    let mut driver = Driver::with(matcher_core::Limits::default(), sarah_only(), ring_of(60));
    for segment in fragments(0, 60) {
        driver.update(&[segment]);
    }
    assert_eq!((driver.queries.len(), driver.status(0)), (12, Status::NoMatch));
    driver.enrol(owner_only());
    assert_eq!((driver.person(0), driver.queries.len()), (Some("user".into()), 12));
}

#[test]
fn a_denied_reservation_leaves_the_budget_untouched() {
    let mut budget = ledger();
    for _ in 0..12 {
        assert!(spend(&mut budget, 1, Monotonic::ZERO));
    }
    let denial = denied(reserve(&mut budget, 1, Monotonic::ZERO));
    assert_eq!((denial.cap, denial.snapshot.attempts, denial.snapshot.tokens), (Cap::Voice, 12, 4.0));
    assert_eq!((budget.attempts(Speaker(1)), budget.tokens(Monotonic::ZERO), budget.open()), (12, 4.0, 0));
    let expected = Books { reserved: 12, succeeded: 12, failed: 0, denied_voice: 1, denied_socket: 0, denied_both: 0 };
    assert_eq!(budget.books(), expected);
}

#[test]
fn a_refusal_that_is_not_a_denial_is_not_booked() {
    let mut budget = ledger();
    let open = reserve(&mut budget, 1, Monotonic::ZERO).unwrap();
    let before = (budget.books(), budget.tokens(Monotonic::ZERO));
    let stale = budget.reserve(Generation(0), Speaker(2), Monotonic::ZERO);
    assert_eq!(stale, Err(Refused::StaleGeneration));
    assert_eq!(reserve(&mut budget, 1, Monotonic::ZERO), Err(Refused::NumberInWork));
    assert_eq!((budget.books(), budget.tokens(Monotonic::ZERO)), before);
    assert_eq!(budget.settle(open, Outcome::Cancelled), Settled::Failed);
}

#[test]
fn a_number_with_an_open_reservation_is_refused_across_a_rollover() {
    let mut budget = ledger();
    let open = reserve(&mut budget, 1, Monotonic::ZERO).unwrap();
    budget.handle_rollover(Generation(2));
    assert_eq!(reserve(&mut budget, 1, Monotonic::ZERO), Err(Refused::NumberInWork));
    assert_eq!(budget.settle(open, Outcome::Extracted), Settled::Succeeded);
    assert!(spend(&mut budget, 1, Monotonic::ZERO));
}

#[test]
fn every_ending_but_a_vector_is_booked_as_failed() {
    let endings = [
        (Outcome::Extracted, Settled::Succeeded),
        (Outcome::EncodingFailed, Settled::Failed),
        (Outcome::ExtractionFailed, Settled::Failed),
        (Outcome::Cancelled, Settled::Failed),
        (Outcome::DeadlinePassed, Settled::Failed),
        (Outcome::WorkerLost, Settled::Failed),
    ];
    for (outcome, settled) in endings {
        let mut budget = ledger();
        let open = reserve(&mut budget, 1, Monotonic::ZERO).unwrap();
        assert_eq!(budget.settle(open, outcome), settled, "{outcome:?}");
        assert_eq!(budget.tokens(Monotonic::ZERO), 15.0, "{outcome:?} refunds nothing");
    }
}

#[test]
fn the_ledger_remembers_no_more_voices_than_its_limit() {
    let limit = |value| NonZeroU32::new(value).unwrap();
    let limits = Limits { voices_max: limit(4), burst: limit(2), ..Limits::default() };
    let mut budget = Budget::new(limits, FIRST, Monotonic::ZERO);
    assert!(spend(&mut budget, 0, Monotonic::ZERO) && spend(&mut budget, 1, Monotonic::ZERO));
    for speaker in 2..4 {
        assert_eq!(denied(reserve(&mut budget, speaker, Monotonic::ZERO)).voice, Seen::First);
    }
    assert_eq!(reserve(&mut budget, 4, Monotonic::ZERO), Err(Refused::VoiceCapacity));
    assert!(spend(&mut budget, 2, at_second(15)), "a known voice goes on");
    assert_eq!(reserve(&mut budget, 4, at_second(3600)), Err(Refused::VoiceCapacity));
}
