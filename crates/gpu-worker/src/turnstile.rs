//! Fair turns at the pool, handed to whoever wants one: the shell around [`Turns`].
//!
//! A conversation subscribes with a callback, says how many further turns it wants, and is called with a [`Turn`] when
//! its turn comes. The turn is a guard: dropping it, wherever and for whatever reason, gives the place to the next.
//! Callbacks run on the thread that freed the place or asked for one, never under the lock, and never inside one
//! another: while one thread hands out turns, others only leave a note that there is more to do.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::turns::{COST_MIN, Turns, Wish};

/// One subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

/// What is called with a turn. It should hand the turn on and return; what it does holds up the next one's turn.
pub type Callback = Arc<dyn Fn(Turn) + Send + Sync>;

/// Hands out turns. Clones are the same turnstile.
#[derive(Clone)]
pub struct Turnstile {
    shared: Arc<Mutex<State>>,
}

struct State {
    turns: Turns<Key>,
    callbacks: BTreeMap<Key, Callback>,
    next: u64,
    /// A thread is handing out turns. It looks again before it stops.
    draining: bool,
}

impl Turnstile {
    /// A turnstile with `capacity` turns; a pool's is [`crate::Engine::turns_max`].
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let state = State { turns: Turns::new(capacity), callbacks: BTreeMap::new(), next: 0, draining: false };
        Self { shared: Arc::new(Mutex::new(state)) }
    }

    /// A new subscriber, who wants nothing yet.
    #[must_use = "without its key a subscriber can neither want nor leave"]
    pub fn subscribe(&self, callback: Callback) -> Key {
        let mut state = self.state();
        let key = Key(state.next);
        state.next += 1;
        state.callbacks.insert(key, callback);
        key
    }

    /// What `key` wants besides the turns it holds; [`Wish::NOTHING`] takes a wish back. The callback may run before this
    /// returns.
    pub fn want(&self, key: Key, wish: Wish) {
        {
            let mut state = self.state();
            if !state.callbacks.contains_key(&key) {
                return;
            }
            state.turns.handle_wanted(key, wish);
        }
        self.drain();
    }

    /// `key` is called no more, save for a turn that is being handed out at this moment. Turns it holds stay good.
    pub fn unsubscribe(&self, key: Key) {
        let callback = {
            let mut state = self.state();
            state.turns.handle_left(key);
            state.callbacks.remove(&key)
        };
        // What the callback holds may unsubscribe something else when it is dropped.
        drop(callback);
    }

    /// Turns that are out.
    #[must_use]
    pub fn out(&self) -> usize {
        self.state().turns.out()
    }

    /// Subscribers that want a turn.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state().turns.waiting()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out turns until none is free or none is wanted. Only one thread does so at a time; a callback that drops
    /// its turn at once comes back here, finds the flag set, and leaves, so the stack does not grow. Each grant uses up
    /// one wish, so a callback that wants nothing new cannot keep this going.
    fn drain(&self) {
        let mut handing_out = false;
        loop {
            let granted = {
                let mut state = self.state();
                if state.draining && !handing_out {
                    return;
                }
                let granted = state.poll();
                state.draining = granted.is_some();
                granted
            };
            let Some((key, callback)) = granted else { return };
            handing_out = true;
            let turn = Turn { turnstile: self.clone(), key, charged: COST_MIN };
            // One subscriber's defect must not stop the others' turns.
            if catch_unwind(AssertUnwindSafe(|| callback(turn))).is_err() {
                tracing::error!("a subscriber panicked when its turn came; the turn goes to the next");
            }
        }
    }
}

impl State {
    fn poll(&mut self) -> Option<(Key, Callback)> {
        let key = self.turns.poll_grant()?;
        Some((key, Arc::clone(self.callbacks.get(&key).expect("a key leaves the turns when its callback goes"))))
    }
}

/// A place at the pool. Dropping it gives the place to the next.
#[must_use = "a turn that is dropped goes to the next"]
pub struct Turn {
    turnstile: Turnstile,
    key: Key,
    charged: Duration,
}

impl Turn {
    /// The query that this turn is for holds so much audio: its subscriber has had its share of it. A turn that says
    /// nothing costs [`COST_MIN`], which is no budget's affair.
    pub fn charge(&mut self, audio: Duration) {
        if let Some(more) = audio.checked_sub(self.charged) {
            self.charged = audio;
            self.turnstile.state().turns.handle_charged(self.key, more);
        }
    }
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Turn")
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turnstile.state().turns.handle_returned();
        self.turnstile.drain();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn counting(turnstile: &Turnstile) -> (Key, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&calls);
        let drop_at_once = move |turn| {
            seen.fetch_add(1, Ordering::SeqCst);
            drop(turn);
        };
        (turnstile.subscribe(Arc::new(drop_at_once)), calls)
    }

    fn holding(turnstile: &Turnstile) -> (Key, Arc<Mutex<Vec<Turn>>>) {
        let held = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&held);
        (turnstile.subscribe(Arc::new(move |turn| keep.lock().unwrap().push(turn))), held)
    }

    #[test]
    fn a_turn_that_is_dropped_at_once_neither_spins_nor_grows_the_stack() {
        let turnstile = Turnstile::new(2);
        let (key, calls) = counting(&turnstile);
        turnstile.want(key, Wish::new(0, 200_000));
        assert_eq!(calls.load(Ordering::SeqCst), 200_000, "one call for each wish, and no more");
        assert_eq!((turnstile.out(), turnstile.waiting()), (0, 0));
    }

    #[test]
    fn a_freed_place_goes_to_whoever_came_new_and_then_to_the_others() {
        let turnstile = Turnstile::new(1);
        let (first, held_first) = holding(&turnstile);
        let (second, held_second) = holding(&turnstile);
        let held = || (held_first.lock().unwrap().len(), held_second.lock().unwrap().len());
        turnstile.want(first, Wish::new(0, 5));
        turnstile.want(second, Wish::new(0, 1));
        assert_eq!(held(), (1, 0));
        for expected in [(0, 1), (1, 0), (1, 0)] {
            let turn = held_first.lock().unwrap().pop().or_else(|| held_second.lock().unwrap().pop());
            drop(turn);
            assert_eq!(held(), expected);
        }
    }

    #[test]
    fn a_turn_costs_the_audio_of_its_query_once_and_whoever_had_less_goes_first() {
        let turnstile = Turnstile::new(1);
        let (long, held_long) = holding(&turnstile);
        let (short, held_short) = holding(&turnstile);
        turnstile.want(long, Wish::new(0, 20));
        turnstile.want(short, Wish::new(0, 20));
        let mut served = Vec::new();
        for _ in 0..12 {
            let turn = held_long.lock().unwrap().pop().map(|turn| (turn, 10));
            let (mut turn, seconds) = turn.unwrap_or_else(|| (held_short.lock().unwrap().pop().unwrap(), 2));
            turn.charge(Duration::from_secs(1));
            turn.charge(Duration::from_secs(seconds));
            turn.charge(Duration::from_secs(1));
            served.push(seconds);
            drop(turn);
        }
        assert_eq!(served, [10, 2, 2, 2, 2, 2, 10, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn whoever_left_is_not_called_and_its_turn_outlives_it() {
        let turnstile = Turnstile::new(1);
        let (gone, held) = holding(&turnstile);
        let (other, calls) = counting(&turnstile);
        turnstile.want(gone, Wish::new(0, 3));
        turnstile.unsubscribe(gone);
        turnstile.want(gone, Wish::new(0, 3));
        turnstile.want(other, Wish::new(0, 1));
        assert_eq!(calls.load(Ordering::SeqCst), 0, "the place is still out");
        held.lock().unwrap().clear();
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        assert_eq!(turnstile.out(), 0);
    }

    #[test]
    fn a_wish_can_be_taken_back() {
        let turnstile = Turnstile::new(1);
        let (holder, held) = holding(&turnstile);
        let (other, calls) = counting(&turnstile);
        turnstile.want(holder, Wish::new(0, 1));
        turnstile.want(other, Wish::new(0, 4));
        turnstile.want(other, Wish::NOTHING);
        held.lock().unwrap().clear();
        assert_eq!(calls.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_callback_may_want_again_and_subscribe_and_leave() {
        let turnstile = Turnstile::new(1);
        let calls = Arc::new(AtomicUsize::new(0));
        let (seen, inside) = (Arc::clone(&calls), turnstile.clone());
        let own = Arc::new(Mutex::new(None::<Key>));
        let mine = Arc::clone(&own);
        let key = turnstile.subscribe(Arc::new(move |turn| {
            let round = seen.fetch_add(1, Ordering::SeqCst);
            let key = mine.lock().unwrap().unwrap();
            if round < 999 {
                inside.want(key, Wish::new(0, 1))
            } else {
                inside.unsubscribe(key)
            }
            drop(turn);
        }));
        *own.lock().unwrap() = Some(key);
        turnstile.want(key, Wish::new(0, 1));
        assert_eq!(calls.load(Ordering::SeqCst), 1_000);
    }

    #[test]
    fn a_callback_that_panics_loses_its_turn_and_nobody_elses() {
        let turnstile = Turnstile::new(1);
        let (holder, held) = holding(&turnstile);
        let bad = turnstile.subscribe(Arc::new(|_turn| panic!("a subscriber's defect")));
        let (good, calls) = counting(&turnstile);
        turnstile.want(holder, Wish::new(0, 1));
        turnstile.want(bad, Wish::new(0, 2));
        turnstile.want(good, Wish::new(0, 2));
        let turn = held.lock().unwrap().pop();
        drop(turn);
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        assert_eq!((turnstile.out(), turnstile.waiting()), (0, 0));
    }

    #[test]
    fn many_threads_together_never_hold_more_than_there_are() {
        let turnstile = Turnstile::new(3);
        let (holding_now, most, done) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let work = || {
            let (now, most, done) = (Arc::clone(&holding_now), Arc::clone(&most), Arc::clone(&done));
            let key = turnstile.subscribe(Arc::new(move |turn: Turn| {
                let (now, most, done) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&done));
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    std::thread::yield_now();
                    now.fetch_sub(1, Ordering::SeqCst);
                    drop(turn);
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }));
            turnstile.want(key, Wish::new(0, 50));
        };
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(work))));
        let started = std::time::Instant::now();
        while done.load(Ordering::SeqCst) < 400 && started.elapsed().as_secs() < 30 {
            std::thread::yield_now();
        }
        assert_eq!(done.load(Ordering::SeqCst), 400, "every wish is served");
        assert!(most.load(Ordering::SeqCst) <= 3);
        assert_eq!((turnstile.out(), turnstile.waiting()), (0, 0));
    }
}
