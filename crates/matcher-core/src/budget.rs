//! The hard limit on model queries of one lane: attempts by voice, tokens by lane, and the books over both.
//!
//! ```text
//!               reserve                      settle
//!  (nothing) ───────────▶ open reservation ──────────▶ succeeded | failed
//!      │                    one attempt and             nothing comes back
//!      └── Denied{cap}      one token spent
//! ```
//! Two options give a voice with new speech more than that, off by default: [`Relaxation`] and [`Renewal`]. Both stay within
//! bounds that no refill and no refund moves.
//!
//! Every call leaves `reserved = succeeded + failed + open`, or stops with an assertion. Owns no clock and performs
//! nothing; the caller holds it where it outlives its socket, and settles what a vanished caller left open.
//!
//! Getters: [`Budget::attempts`], [`Budget::tokens`], [`Budget::books`]. Events in: [`Budget::reserve`],
//! [`Budget::reserve_for`], [`Budget::settle`], [`Budget::handle_rollover`], [`Budget::handle_carried`], [`Budget::handle_resumption`].

mod bucket;
mod limits;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::exit::Cap;
use crate::ids::{Generation, Speaker};
use crate::time::Monotonic;

use bucket::Bucket;
pub use limits::{Limits, Relaxation, Renewal};

/// An open reservation: one attempt and one token are spent. Not `Clone`: it is settled once, by moving it in.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an open reservation must be settled"]
pub struct Reservation {
    number: u64,
    speaker: Speaker,
    generation: Generation,
}

impl Reservation {
    /// The voice that it was made for.
    #[must_use]
    pub const fn speaker(&self) -> Speaker {
        self.speaker
    }

    /// The generation that it was made in.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }
}

/// How a query ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A valid vector came back in time, also when it is stale or later rejected.
    Extracted,
    /// The audio could not be turned into the model's input.
    EncodingFailed,
    /// The model failed, or returned something that is not a voiceprint.
    ExtractionFailed,
    /// The caller left.
    Cancelled,
    /// The answer took too long.
    DeadlinePassed,
    /// The worker died.
    WorkerLost,
}

/// What the books say of a settled attempt. There is no refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// A vector was returned.
    Succeeded,
    /// Everything else.
    Failed,
}

impl Outcome {
    /// How this ending is booked.
    #[must_use]
    pub const fn settled(self) -> Settled {
        match self {
            Self::Extracted => Settled::Succeeded,
            Self::EncodingFailed
            | Self::ExtractionFailed
            | Self::Cancelled
            | Self::DeadlinePassed
            | Self::WorkerLost => Settled::Failed,
        }
    }
}

/// What a lane had at one moment, after the refill.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snapshot {
    /// Attempts that the voice has spent in this generation.
    pub attempts: u32,
    /// Tokens in the bucket, with the part of the next one.
    pub tokens: f64,
}

/// Whether something happened for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// This is the first time.
    First,
    /// It happened before.
    Again,
}

/// A denied reservation. Attempts and tokens are untouched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Denied {
    /// The one limit that this denial is booked to.
    pub cap: Cap,
    /// What was left.
    pub snapshot: Snapshot,
    /// The first denial of this voice in this generation?
    pub voice: Seen,
    /// The first denial of this lane in its life?
    pub lane: Seen,
}

/// Why nothing was reserved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Refused {
    /// A limit is reached; this is booked.
    Denied(Denied),
    /// The request belongs to another generation; nothing is booked.
    StaleGeneration,
    /// The number has an open reservation; nothing is booked.
    NumberInWork,
    /// The attempts table is full; nothing is booked.
    VoiceCapacity,
}

/// The books, all counted since the lane began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Books {
    /// Reservations made.
    pub reserved: u64,
    /// ... of them settled with a vector.
    pub succeeded: u64,
    /// ... of them settled without.
    pub failed: u64,
    /// Denials by the voice's limit.
    pub denied_voice: u64,
    /// Denials by the lane's limit.
    pub denied_socket: u64,
    /// Denials by both.
    pub denied_both: u64,
}

/// What a voice has spent in this generation, and what its next denial will be.
#[derive(Debug, Clone, Copy)]
struct Account {
    attempts: u32,
    denial: Seen,
    /// Since when it spends these attempts.
    since: Monotonic,
}

/// One lane's ledger: see the module's text.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    bucket: Bucket,
    generation: Generation,
    /// One table for both, so that one limit bounds both.
    voices: BTreeMap<Speaker, Account>,
    lane_denial: Seen,
    open: BTreeMap<u64, Speaker>,
    books: Books,
}

impl Budget {
    /// A full bucket, at `now`.
    #[must_use]
    pub fn new(limits: Limits, generation: Generation, now: Monotonic) -> Self {
        Self {
            limits,
            bucket: Bucket::full(limits, now),
            generation,
            voices: BTreeMap::new(),
            lane_denial: Seen::First,
            open: BTreeMap::new(),
            books: Books::default(),
        }
    }

    /// The generation that may reserve.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// Attempts that `speaker` has spent in this generation.
    #[must_use]
    pub fn attempts(&self, speaker: Speaker) -> u32 {
        self.voices.get(&speaker).map_or(0, |account| account.attempts)
    }

    /// Every voice with at least one attempt, in order of its number.
    pub fn attempted(&self) -> impl Iterator<Item = (Speaker, u32)> + '_ {
        let attempts = self.voices.iter().map(|(speaker, account)| (*speaker, account.attempts));
        attempts.filter(|(_, spent)| *spent > 0)
    }

    /// Attempts that `speaker` has left.
    #[must_use]
    pub fn attempts_left(&self, speaker: Speaker) -> u32 {
        self.limits.attempts_max.get() - self.attempts(speaker)
    }

    /// Tokens at `now`, with the part of the next one.
    #[must_use]
    pub fn tokens(&self, now: Monotonic) -> f64 {
        self.bucket.at(now).tokens()
    }

    /// How long after `now` there is a whole token again; nothing when there is one.
    #[must_use]
    pub fn next_token(&self, now: Monotonic) -> Duration {
        self.bucket.at(now).next_token()
    }

    /// The limits.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// The books.
    #[must_use]
    pub const fn books(&self) -> Books {
        self.books
    }

    /// Reservations that are not settled yet.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Whether `speaker` has an open reservation, of any generation.
    #[must_use]
    pub fn is_in_work(&self, speaker: Speaker) -> bool {
        self.open.values().any(|held| *held == speaker)
    }

    /// As [`Budget::reserve_for`], for a voice of whose new speech nothing is known.
    ///
    /// # Errors
    /// As [`Budget::reserve_for`].
    pub fn reserve(
        &mut self,
        generation: Generation,
        speaker: Speaker,
        now: Monotonic,
    ) -> Result<Reservation, Refused> {
        self.reserve_for(generation, speaker, Duration::ZERO, now)
    }

    /// Spends one attempt and one token, or says which limit denies it. Call this before anything is awaited. `fresh` is the
    /// voice's speech that no query has used: it counts where [`Limits::relaxation`] or [`Limits::renewal`] is set.
    ///
    /// # Errors
    /// [`Refused::Denied`] with exactly one cap, or a refusal that is not booked.
    pub fn reserve_for(
        &mut self,
        generation: Generation,
        speaker: Speaker,
        fresh: Duration,
        now: Monotonic,
    ) -> Result<Reservation, Refused> {
        if generation != self.generation {
            return Err(Refused::StaleGeneration);
        }
        if self.is_in_work(speaker) {
            return Err(Refused::NumberInWork);
        }
        let voices_max = usize::try_from(self.limits.voices_max.get()).unwrap_or(usize::MAX);
        if !self.voices.contains_key(&speaker) && self.voices.len() >= voices_max {
            return Err(Refused::VoiceCapacity);
        }
        self.bucket = self.bucket.at(now);
        let is_renewed = self.is_renewed(speaker, fresh);
        let is_spent = self.attempts_left(speaker) == 0 && !is_renewed;
        if let Some(cap) = Cap::of(is_spent, self.bucket.is_empty(self.overdraft(fresh))) {
            return Err(Refused::Denied(self.deny(cap, speaker)));
        }

        self.bucket.take_one();
        let now = self.bucket.last();
        let account = self.account(speaker);
        if is_renewed {
            (account.attempts, account.since) = (0, now);
        }
        account.attempts += 1;
        self.books.reserved += 1;
        let number = self.books.reserved;
        self.open.insert(number, speaker);
        self.check();
        Ok(Reservation { number, speaker, generation })
    }

    /// Closes a reservation. Nothing is refunded.
    pub fn settle(&mut self, reservation: Reservation, outcome: Outcome) -> Settled {
        let held = self.open.remove(&reservation.number);
        assert_eq!(held, Some(reservation.speaker), "a reservation was settled that this lane did not make");
        let settled = outcome.settled();
        match settled {
            Settled::Succeeded => self.books.succeeded += 1,
            Settled::Failed => self.books.failed += 1,
        }
        self.check();
        settled
    }

    /// The lane goes on in a new conversation: attempts and first blocks start anew, tokens and open reservations stay.
    pub fn handle_rollover(&mut self, generation: Generation) {
        self.handle_resumption(generation);
        self.voices.clear();
    }

    /// The lane goes on in the same conversation after its matcher was cleared: only the generation moves.
    pub fn handle_resumption(&mut self, generation: Generation) {
        assert!(generation > self.generation, "a generation never repeats");
        self.generation = generation;
    }

    /// After a rollover, voices that were carried keep what they had spent. Their first denial counts anew.
    pub fn handle_carried(&mut self, attempts: impl IntoIterator<Item = (Speaker, u32)>) {
        for (speaker, spent) in attempts {
            let account = self.account(speaker);
            account.attempts = account.attempts.max(spent);
        }
        let voices_max = usize::try_from(self.limits.voices_max.get()).unwrap_or(usize::MAX);
        assert!(self.voices.len() <= voices_max, "more voices were carried than there can be");
    }

    /// Whether a voice at its limit has its attempts again.
    fn is_renewed(&self, speaker: Speaker, fresh: Duration) -> bool {
        let Some((renewal, account)) = self.limits.renewal.zip(self.voices.get(&speaker)) else { return false };
        let is_due = self.bucket.last().since(account.since) >= renewal.speech;
        account.attempts >= self.limits.attempts_max.get() && fresh >= renewal.speech && is_due
    }

    /// How many tokens below nothing a voice with so much new speech may take.
    fn overdraft(&self, fresh: Duration) -> u32 {
        let relaxation = self.limits.relaxation.filter(|relaxation| fresh >= relaxation.speech);
        relaxation.map_or(0, |relaxation| relaxation.tokens.get())
    }

    fn deny(&mut self, cap: Cap, speaker: Speaker) -> Denied {
        let counter = match cap {
            Cap::Voice => &mut self.books.denied_voice,
            Cap::Socket => &mut self.books.denied_socket,
            Cap::Both => &mut self.books.denied_both,
        };
        *counter += 1;
        let snapshot = Snapshot { attempts: self.attempts(speaker), tokens: self.bucket.tokens() };
        let voice = std::mem::replace(&mut self.account(speaker).denial, Seen::Again);
        let lane = std::mem::replace(&mut self.lane_denial, Seen::Again);
        Denied { cap, snapshot, voice, lane }
    }

    fn account(&mut self, speaker: Speaker) -> &mut Account {
        let since = self.bucket.last();
        self.voices.entry(speaker).or_insert(Account { attempts: 0, denial: Seen::First, since })
    }

    fn check(&self) {
        let open = self.open.len() as u64;
        let Books { reserved, succeeded, failed, .. } = self.books;
        assert_eq!(reserved, succeeded + failed + open, "an attempt was lost or invented");
    }
}
