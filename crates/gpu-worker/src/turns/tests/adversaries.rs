//! Goal: every wait has its bound, in every window and whatever the others do.
//! Method: random adversaries who want, charge, leave and come, against the stated bounds at every grant; first come, first
//! served as a control that must break them.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;
use std::time::Duration;

use proptest::prelude::*;

use super::COST_MAX;
use crate::turns::{COST_MIN, LOAN, Turns, Wish};

const KEYS: u32 = 6;
#[derive(Debug, Clone, Copy)]
enum Op {
    Want(u32, usize, usize),
    /// The key leaves, and another comes in its stead.
    Leave(u32),
    Grant,
    /// The oldest turn that is out is charged so many milliseconds in all; with nothing, it goes back unused.
    Charge(u64),
    Return,
}

fn ops(calm: u32) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        calm => (0..KEYS, 0_usize..3, 0_usize..3).prop_map(|(key, firsts, repeats)| Op::Want(key, firsts, repeats)),
        1 => (0..KEYS).prop_map(|key| Op::Want(key, 100, 0)),
        1 => (0..KEYS).prop_map(|key| Op::Want(key, 0, 100)),
        1 => (0..KEYS).prop_map(Op::Leave),
        12 => Just(Op::Grant),
        6 => (500_u64..10_000).prop_map(Op::Charge),
        6 => Just(Op::Charge(500)),
        12 => Just(Op::Return),
    ];
    prop::collection::vec(op, 0..400)
}

/// What is asked of whoever gives turns.
trait Gives {
    fn want(&mut self, key: u32, wish: Wish);
    fn leave(&mut self, key: u32);
    fn charge(&mut self, key: u32, more: Duration);
    fn give_back(&mut self);
    fn grant(&mut self) -> Option<u32>;
    /// How far a key's account is ahead of the least that waits; nothing for whoever is not wise enough to keep accounts.
    fn owed(&self, key: u32) -> Duration;
    /// The account itself.
    fn share(&self, key: u32) -> Duration;
}

impl Gives for Turns<u32> {
    fn want(&mut self, key: u32, wish: Wish) {
        self.handle_wanted(key, wish);
    }
    fn leave(&mut self, key: u32) {
        self.handle_left(key);
    }
    fn charge(&mut self, key: u32, more: Duration) {
        self.handle_charged(key, more);
    }
    fn give_back(&mut self) {
        self.handle_returned();
    }
    fn grant(&mut self) -> Option<u32> {
        self.poll_grant()
    }
    fn owed(&self, key: u32) -> Duration {
        super::owed(self, key)
    }
    fn share(&self, key: u32) -> Duration {
        self.accounts[&key].share
    }
}

/// First come, first served, each wish in its turn: the control.
struct Fifo {
    capacity: usize,
    out: usize,
    line: VecDeque<u32>,
}

impl Gives for Fifo {
    fn want(&mut self, key: u32, wish: Wish) {
        let waiting = self.line.iter().filter(|other| **other == key).count();
        for _ in waiting..wish.firsts + wish.repeats {
            self.line.push_back(key);
        }
    }
    fn leave(&mut self, key: u32) {
        self.line.retain(|other| *other != key);
    }
    fn charge(&mut self, _: u32, _: Duration) {}
    fn give_back(&mut self) {
        self.out -= 1;
    }
    fn grant(&mut self) -> Option<u32> {
        if self.out >= self.capacity {
            return None;
        }
        let key = self.line.pop_front()?;
        self.out += 1;
        Some(key)
    }
    fn owed(&self, _: u32) -> Duration {
        Duration::ZERO
    }
    fn share(&self, _: u32) -> Duration {
        Duration::ZERO
    }
}

/// A wait that goes on: what was given to others since it began.
#[derive(Debug)]
struct Wait {
    given: BTreeMap<u32, u128>,
    /// Where the least of those who waited was when it began.
    least: Duration,
    is_fresh: bool,
    had_repeat: bool,
}

/// One history, and what it must keep to. `Err` says what was broken.
struct Arena<G> {
    turns: G,
    capacity: usize,
    /// The name by which a key is known now, and the next free one.
    names: Vec<u32>,
    next: u32,
    wishes: BTreeMap<u32, Wish>,
    waits: BTreeMap<u32, Wait>,
    /// Turns that are out, with what each was charged.
    out: VecDeque<(u32, Duration)>,
}

/// Keys weigh 1, 2 and 4.
fn weight_of(name: u32) -> NonZeroU16 {
    NonZeroU16::new(1 << (name % 3)).unwrap()
}

impl<G: Gives> Arena<G> {
    fn new(turns: G, capacity: usize) -> Self {
        let names = (0..KEYS).collect();
        Self {
            turns,
            capacity,
            names,
            next: KEYS,
            wishes: BTreeMap::new(),
            waits: BTreeMap::new(),
            out: VecDeque::new(),
        }
    }

    fn play(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Want(key, firsts, repeats) => self.want(key, Wish::new(firsts, repeats)),
            Op::Leave(key) => {
                let name = std::mem::replace(&mut self.names[key as usize], self.next);
                self.next += 1;
                self.turns.leave(name);
                self.wishes.remove(&name);
                self.waits.remove(&name);
            }
            Op::Grant => return self.grant(),
            Op::Charge(millis) => self.charge(Duration::from_millis(millis)),
            Op::Return => {
                if self.out.pop_front().is_some() {
                    self.turns.give_back();
                }
            }
        }
        Ok(())
    }

    fn charge(&mut self, audio: Duration) {
        let Some((name, charged)) = self.out.iter_mut().find(|(_, charged)| *charged < audio) else { return };
        let (name, more) = (*name, audio - *charged);
        *charged = audio;
        self.turns.charge(name, more);
        // A key that waits afresh owes something now.
        if let Some(wait) = self.waits.get_mut(&name) {
            wait.is_fresh &= self.turns.share(name) <= wait.least;
        }
    }

    fn want(&mut self, key: u32, wish: Wish) {
        let name = self.names[key as usize];
        let wish = wish.weighing(weight_of(name));
        self.turns.want(name, wish);
        self.wishes.insert(name, wish);
        if wish.is_nothing() {
            self.waits.remove(&name);
        } else if let Some(wait) = self.waits.get_mut(&name) {
            wait.had_repeat |= wish.firsts == 0;
        } else {
            self.begin(name);
        }
    }

    fn begin(&mut self, name: u32) {
        let owed = self.turns.owed(name);
        let wait = Wait {
            given: BTreeMap::new(),
            least: self.turns.share(name).saturating_sub(owed),
            is_fresh: owed.is_zero(),
            had_repeat: self.wishes[&name].firsts == 0,
        };
        self.waits.insert(name, wait);
    }

    fn grant(&mut self) -> Result<(), String> {
        let Some(name) = self.turns.grant() else {
            let is_idle = self.out.len() < self.capacity && !self.waits.is_empty();
            return if is_idle { Err("a place is idle while somebody waits".to_owned()) } else { Ok(()) };
        };
        self.out.push_back((name, COST_MIN));
        if self.out.len() > self.capacity {
            return Err("more places than there are".to_owned());
        }
        let wish = self.wishes.get_mut(&name).filter(|wish| !wish.is_nothing()).ok_or("given to who wants nothing")?;
        *if wish.firsts > 0 { &mut wish.firsts } else { &mut wish.repeats } -= 1;
        let goes_on = !wish.is_nothing();
        self.waits.remove(&name);
        if goes_on {
            self.begin(name);
            // It was given a place: it is fresh no more, whatever it owes.
            self.waits.get_mut(&name).expect("it has begun").is_fresh = false;
        }
        self.check_waits(name)
    }

    /// Every window counts: the bound holds for each pair at each grant.
    fn check_waits(&mut self, given: u32) -> Result<(), String> {
        let weight = u32::from(weight_of(given).get());
        for (name, wait) in self.waits.iter_mut().filter(|(name, _)| **name != given) {
            let owed = self.turns.share(*name).saturating_sub(wait.least);
            let loan = if wait.had_repeat { LOAN } else { Duration::ZERO };
            let shortest = ((owed + loan) * weight).as_nanos() / COST_MIN.as_nanos();
            let bound = if wait.is_fresh { 1 } else { shortest + 1 };
            let count = *wait.given.entry(given).and_modify(|count| *count += 1).or_insert(1);
            if count > bound {
                return Err(format!(
                    "{given} was given {count} places, more than {bound}, while {name} waits: {wait:?}"
                ));
            }
        }
        Ok(())
    }
}

/// Lets every key that still waits be served.
fn drain<G: Gives>(arena: &mut Arena<G>) -> Result<(), String> {
    for _ in 0..100_000 {
        if arena.waits.is_empty() {
            return Ok(());
        }
        arena.play(Op::Return)?;
        arena.play(Op::Grant)?;
    }
    Err("somebody waits for ever".to_owned())
}

fn history<G: Gives>(turns: G, capacity: usize, ops: &[Op]) -> Result<(), String> {
    let mut arena = Arena::new(turns, capacity);
    ops.iter().try_for_each(|op| arena.play(*op))?;
    if capacity == 0 { Ok(()) } else { drain(&mut arena) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_wait_passes_its_bound_and_no_place_is_idle_while_wanted(capacity in 0_usize..5, ops in ops(6)) {
        prop_assert_eq!(history(Turns::new(capacity), capacity, &ops), Ok(()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Over every window in which two keys want more all the time, at any two charges the shares lie together.
    #[test]
    fn two_keys_that_always_want_more_get_audio_by_their_weights_in_every_window(
        clips in prop::collection::vec(500_u64..10_000, 50..300),
        weights in prop::collection::vec(1_u16..5, 2..6),
    ) {
        let mut turns = Turns::new(1);
        let mut had = vec![vec![0.0_f64; weights.len()]];
        for (key, weight) in weights.iter().enumerate() {
            turns.handle_wanted(key, Wish::new(0, 1_000).weighing(NonZeroU16::new(*weight).unwrap()));
        }
        for millis in clips {
            let key = turns.poll_grant().expect("everybody wants more");
            turns.handle_charged(key, Duration::from_millis(millis) - COST_MIN);
            turns.handle_returned();
            let mut now = had.last().unwrap().clone();
            now[key] += millis as f64 / 1_000.0 / f64::from(weights[key]);
            had.push(now);
        }
        for from in &had {
            for to in &had {
                for (one, two) in [(0, 1), (1, weights.len() - 1)] {
                    let apart = ((to[one] - from[one]) - (to[two] - from[two])).abs();
                    let bound = COST_MAX.as_secs_f64() * (1.0 / f64::from(weights[one]) + 1.0 / f64::from(weights[two]));
                    prop_assert!(apart <= bound, "{apart} s apart");
                }
            }
        }
    }
}

#[test]
fn first_come_first_served_breaks_the_bound_so_the_check_can_fail() {
    let burst = [Op::Want(0, 100, 0), Op::Want(1, 1, 0)];
    let grants = std::iter::repeat_n([Op::Grant, Op::Return], 100).flatten();
    let ops: Vec<Op> = burst.into_iter().chain(grants).collect();
    let fifo = Fifo { capacity: 1, out: 0, line: VecDeque::new() };
    let broken = history(fifo, 1, &ops).expect_err("the one waits for the hundred");
    assert!(broken.contains("while 1 waits"), "{broken}");
    assert_eq!(history(Turns::new(1), 1, &ops), Ok(()));
}
