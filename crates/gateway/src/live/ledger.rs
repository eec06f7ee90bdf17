//! The ledger of one lane: its budget behind a lock, and the leases on it.
//!
//! This is the one shared, locked object of the live path. It outlives its socket actor, because reconnecting must never
//! refill anything: only the lane's current socket reserves in it, leases settle into it from wherever they end, and
//! readers look at it. No lock is held over a wait. Budget and metrics move in the same locked step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use matcher_core::budget::{Books, Denied, Limits, Outcome, Refused, Reservation, Seen, Settled};
use matcher_core::{Budget, Generation, Speaker};
use telemetry::{Accounts, Denial, Incidence, Metrics, Violation};

use super::clock::Clock;
use super::labels;

/// See the module's text.
#[derive(Debug)]
pub struct Ledger {
    budget: Mutex<Budget>,
    books: Instruments,
    clock: Clock,
}

struct Instruments {
    accounts: Accounts,
    metrics: Metrics,
}

impl std::fmt::Debug for Instruments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Instruments")
    }
}

/// Why nothing was reserved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoLease {
    /// The budget refused.
    Refused(Refused),
    /// The books of this lane did not balance: it reserves nothing any more.
    Broken,
}

/// What a client is told of its budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Left {
    /// Attempts that the voice has left in this generation.
    pub voice_attempts: u32,
    /// Tokens that the lane has, with the part of the next one.
    pub tokens: f64,
    /// How long until there is a whole one; nothing when there is.
    pub next_token: Duration,
}

impl Ledger {
    /// A full budget.
    #[must_use]
    pub fn new(limits: Limits, generation: Generation, clock: Clock, instruments: (Accounts, Metrics)) -> Self {
        let (accounts, metrics) = instruments;
        Self {
            budget: Mutex::new(Budget::new(limits, generation, clock.now())),
            books: Instruments { accounts, metrics },
            clock,
        }
    }

    /// Spends one attempt and one token, and books that; or books the denial. Nothing is awaited. `fresh` is the voice's
    /// speech that no query has used.
    ///
    /// # Errors
    /// When the budget refuses, or the lane's books are broken.
    pub fn reserve(
        self: &Arc<Self>,
        generation: Generation,
        speaker: Speaker,
        fresh: Duration,
    ) -> Result<Lease, NoLease> {
        let mut budget = self.budget.lock().map_err(|_| NoLease::Broken)?;
        match budget.reserve_for(generation, speaker, fresh, self.clock.now()) {
            Ok(reservation) => {
                self.books.accounts.reserved();
                self.books.metrics.attempted(budget.attempts(speaker));
                Ok(Lease { ledger: Arc::clone(self), reservation: Some(reservation) })
            }
            Err(refused) => {
                if let Refused::Denied(denied) = refused {
                    self.books.accounts.denied(booked(&denied));
                }
                Err(NoLease::Refused(refused))
            }
        }
    }

    /// The lane goes on in a new conversation.
    pub fn roll_over(&self) -> Generation {
        self.advance(Budget::handle_rollover)
    }

    /// Voices that a rollover carried keep what they had spent.
    pub fn carry(&self, attempts: Vec<(Speaker, u32)>) {
        self.read().handle_carried(attempts);
    }

    /// The lane goes on in the same conversation after its matcher lost what it knew.
    pub fn resume(&self) -> Generation {
        self.advance(Budget::handle_resumption)
    }

    /// The current generation.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.read().generation()
    }

    /// Attempts spent in this generation, by number.
    #[must_use]
    pub fn attempts(&self) -> std::collections::BTreeMap<Speaker, u32> {
        self.read().attempted().collect()
    }

    /// What is left for one voice.
    #[must_use]
    pub fn left(&self, speaker: Speaker) -> Left {
        let (budget, now) = (self.read(), self.clock.now());
        Left {
            voice_attempts: budget.attempts_left(speaker),
            tokens: budget.tokens(now),
            next_token: budget.next_token(now),
        }
    }

    /// Tokens now, with the part of the next one.
    #[must_use]
    pub fn tokens(&self) -> f64 {
        self.read().tokens(self.clock.now())
    }

    /// The books, and how many reservations are open.
    #[must_use]
    pub fn books(&self) -> (Books, usize) {
        let budget = self.read();
        (budget.books(), budget.open())
    }

    /// Whether nothing was ever reserved or denied.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        let books = self.read().books();
        books == Books::default()
    }

    /// Whether every token is back and no reservation is open.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let budget = self.read();
        budget.open() == 0 && budget.tokens(self.clock.now()) >= f64::from(budget.limits().burst.get())
    }

    /// Whether the books of this lane once failed to balance.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.budget.is_poisoned()
    }

    fn advance(&self, step: fn(&mut Budget, Generation)) -> Generation {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Generation(budget.generation().0 + 1);
        step(&mut budget, next);
        next
    }

    /// Reading stays possible when the books are broken: an operator wants to see them.
    fn read(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, reservation: Reservation, outcome: Outcome) -> Settled {
        let settled = match self.budget.lock() {
            Ok(mut budget) => budget.settle(reservation, outcome),
            Err(_) => {
                self.books.metrics.violated(Violation::LaneBooks);
                drop(reservation);
                outcome.settled()
            }
        };
        self.books.accounts.settled(labels::settled(settled));
        settled
    }
}

fn booked(denied: &Denied) -> Denial {
    let incidence = |seen| match seen {
        Seen::First => Incidence::First,
        Seen::Again => Incidence::Repeat,
    };
    Denial { cap: labels::cap(denied.cap), voice: incidence(denied.voice), socket: incidence(denied.lane) }
}

/// An open reservation that travels with its query. Settled by moving it in; dropped, it settles itself as cancelled.
#[derive(Debug)]
#[must_use = "dropping a lease settles it as cancelled"]
pub struct Lease {
    ledger: Arc<Ledger>,
    reservation: Option<Reservation>,
}

impl Lease {
    /// Closes the reservation. Nothing is refunded.
    pub fn settle(mut self, outcome: Outcome) -> Settled {
        let reservation = self.reservation.take().expect("a lease is settled once, for settling consumes it");
        self.ledger.settle(reservation, outcome)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.ledger.settle(reservation, Outcome::Cancelled);
        }
    }
}
