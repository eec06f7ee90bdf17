//! Who says what, and when the matcher hears of it: the scenarios, each drawn from its seed.

use std::time::Duration;

use clap::ValueEnum;

use super::random::Random;
use super::script::{Machine, Message, Plenty, Script, Update};
use super::voices::{FRIEND, IMPOSTOR, OWNER, REJECTOR, STRANGER};

/// Two extraction threads of an ordinary machine that has other work, too.
const ORDINARY: Machine = Machine { workers: 2, slowest: Duration::from_millis(500) };
/// One thread of a small board.
const SMALL: Machine = Machine { workers: 1, slowest: Duration::from_millis(1500) };

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scenario {
    /// 80 updates of a rejector with 8 attempts, then an owner never examined, with one token left
    Seed,
    /// A television that never stops, a family, visitors, and an owner who comes home; five minutes
    Household,
    /// Twelve voices for ten minutes, eight of them strangers, told every twenty seconds; the owner comes late
    Meeting,
    /// 10,000 speaker numbers in 1,000 seconds, and an owner who spoke among the first of them
    Flood,
    /// A provider that sends each segment as it grows, and everything of the last while again and again
    Resends,
    /// A provider that stalls for most of a minute and then tells everything at once, to a slow machine
    Bursts,
    /// Strangers who talk at once and never stop, some of them nearly the owner's voice, and a machine that is too slow; no budget
    Overload,
    /// An owner in so much noise that they sound like nobody, until they come home after their attempts are spent
    Noise,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Seed,
        Self::Household,
        Self::Meeting,
        Self::Flood,
        Self::Resends,
        Self::Bursts,
        Self::Overload,
        Self::Noise,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Seed => "seed",
            Self::Household => "household",
            Self::Meeting => "meeting",
            Self::Flood => "flood",
            Self::Resends => "resends",
            Self::Bursts => "bursts",
            Self::Overload => "overload",
            Self::Noise => "noise",
        }
    }

    /// One line on what happens, as the command's help has it.
    #[must_use]
    pub fn about(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }

    /// How many seeds are played where `count` are asked for: a flood has as many updates as a hundred of the others, and gets
    /// a fiftieth of them.
    #[must_use]
    pub const fn runs(self, count: u64) -> u64 {
        match self {
            Self::Flood => count.div_ceil(50),
            Self::Seed
            | Self::Household
            | Self::Meeting
            | Self::Resends
            | Self::Bursts
            | Self::Overload
            | Self::Noise => count,
        }
    }

    pub(super) fn script(self, seed: u64) -> Script {
        let mut random = Random::new(seed);
        // Another sequence than the script's, which is drawn from the seed itself.
        self.drawn(&mut random).running(Random::new(!seed))
    }

    fn drawn(self, random: &mut Random) -> Script {
        match self {
            Self::Seed => rejector_before_owner(),
            Self::Household => household(random),
            Self::Meeting => meeting(random),
            Self::Flood => flood(random, 10_000),
            Self::Resends => resends(random),
            Self::Bursts => bursts(random),
            Self::Overload => overload(random),
            Self::Noise => noise(random),
        }
    }
}

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Eight attempts of the rejector and one each of ten guests leave one token and a part after 52 s. Then one message: 32 s of
/// the rejector in updates of 0.4 s, and the owner's first words. The seed only decides how long the runs take.
fn rejector_before_owner() -> Script {
    let turn = |speaker, start: Duration, length| Update { speaker, start, end: start + length };
    let tried = (0..8).map(|n| turn(REJECTOR, Duration::from_millis(2500) * n, Duration::from_millis(2500)));
    let guests = (0..10).map(|n| turn(STRANGER + n, seconds(20) + seconds(2) * n, seconds(2)));
    let mut messages: Vec<Message> =
        tried.chain(guests).map(|update| Message { at: update.end, updates: vec![update] }).collect();
    let short = Duration::from_millis(400);
    let insisting = (0..80).map(|n| turn(REJECTOR, seconds(20) + short * n, short));
    let updates = insisting.chain([turn(OWNER, seconds(46), seconds(6))]).collect();
    messages.push(Message { at: seconds(52), updates });
    Script::scripted(ORDINARY, messages)
}

fn household(random: &mut Random) -> Script {
    let until = seconds(300);
    let television = talk(random, &[REJECTOR], (Duration::ZERO, until), (3000, 6000));
    let family = [FRIEND, FRIEND + 1, STRANGER, STRANGER + 1];
    let home = random.millis((60_000, 120_000));
    let alone = talk(random, &family, (Duration::ZERO, home), (1000, 6000));
    let together = talk(random, &[&family[..], &[OWNER]].concat(), (home, until), (1000, 6000));
    Script::scripted(ORDINARY, in_chunks([television, alone, together].concat(), seconds(6)))
}

fn meeting(random: &mut Random) -> Script {
    let others: Vec<u32> = (FRIEND..STRANGER + 7).collect();
    let late = random.millis((240_000, 360_000));
    let before = talk(random, &others, (Duration::ZERO, late), (1000, 8000));
    let after = talk(random, &[&others[..], &[OWNER]].concat(), (late, seconds(600)), (1000, 8000));
    Script::scripted(ORDINARY, in_chunks([before, after].concat(), seconds(20)))
}

/// Every number speaks once, long enough to be examined, over whoever else speaks. The owner is among the first, because a
/// lane admits 128 numbers and no more.
fn flood(random: &mut Random, numbers: u32) -> Script {
    let until = Duration::from_millis(100) * numbers;
    let numbers = (0..numbers).map(|n| {
        let start = Duration::from_millis(100) * n + random.millis((0, 99));
        Update { speaker: STRANGER + n, start, end: start + random.millis((2000, 4000)) }
    });
    let mut updates: Vec<Update> = numbers.collect();
    updates.push(Update { speaker: OWNER, start: Duration::ZERO, end: seconds(5) });
    updates.extend(talk(random, &[OWNER], (seconds(6), until), (2000, 6000)));
    Script::scripted(ORDINARY, in_chunks(updates, seconds(5)))
}

/// Each segment comes every 0.7 s while it grows, and when it is over; and every twenty seconds the provider connects again
/// and tells the last forty once more, in one message.
fn resends(random: &mut Random) -> Script {
    let (late, until) = (random.millis((40_000, 80_000)), seconds(240));
    let others: Vec<u32> = (FRIEND..STRANGER + 4).collect();
    let before = talk(random, &others, (Duration::ZERO, late), (2000, 8000));
    let after = talk(random, &[&others[..], &[OWNER]].concat(), (late, until), (2000, 8000));
    let updates = [before, after].concat();
    let mut messages: Vec<Message> = updates.iter().flat_map(grown).collect();
    let mut at = Duration::ZERO;
    while at < until {
        at += seconds(20);
        let recent = |update: &&Update| update.end <= at && update.end + seconds(40) > at;
        messages.push(Message { at, updates: updates.iter().filter(recent).copied().collect() });
    }
    Script::scripted(ORDINARY, messages)
}

fn grown(update: &Update) -> Vec<Message> {
    let step = Duration::from_millis(700);
    let steps = (1..).map(|n| update.start + step * n).take_while(|end| *end < update.end);
    steps.chain([update.end]).map(|end| Message { at: end, updates: vec![Update { end, ..*update }] }).collect()
}

/// The owner is heard last in the burst in which they are first heard.
fn bursts(random: &mut Random) -> Script {
    let others: Vec<u32> = (FRIEND..STRANGER + 4).collect();
    let stalled = random.millis((36_000, 48_000));
    let owner = Update { speaker: OWNER, start: stalled - seconds(6), end: stalled };
    let before = talk(random, &others, (Duration::ZERO, owner.start), (2000, 2500));
    let after = talk(random, &[&others[..], &[OWNER]].concat(), (stalled, seconds(240)), (2000, 2500));
    Script::scripted(SMALL, in_chunks([before, vec![owner], after].concat(), stalled))
}

/// Strangers over one another, so that somebody always waits; every ten seconds a visitor with one turn; and the owner.
fn overload(random: &mut Random) -> Script {
    const REGULARS: std::ops::Range<u32> = STRANGER..STRANGER + 5;
    let until = seconds(90);
    let mut updates = Vec::new();
    for regular in REGULARS.chain(IMPOSTOR..IMPOSTOR + 4) {
        updates.extend(talk(random, &[regular], (Duration::ZERO, until), (2000, 4000)));
    }
    let late = random.millis((30_000, 50_000));
    updates.extend(talk(random, &[OWNER], (late, until), (3000, 6000)));
    for visitor in 0..8_u32 {
        let start = seconds(10) * visitor + random.millis((0, 5000));
        updates.push(Update { speaker: REGULARS.end + visitor, start, end: start + random.millis((2000, 4000)) });
    }
    Script::scripted(SMALL, in_chunks(updates, seconds(2))).with(Plenty)
}

fn noise(random: &mut Random) -> Script {
    let home = random.millis((120_000, 180_000));
    let alone = talk(random, &[OWNER], (Duration::ZERO, home), (2000, 5000));
    let together = talk(random, &[OWNER, FRIEND, FRIEND + 1, STRANGER], (home, seconds(420)), (2000, 5000));
    Script::scripted(ORDINARY, in_chunks([alone, together].concat(), seconds(6))).clear_from(home)
}

/// Turns of these talkers, in any order, with short pauses.
fn talk(random: &mut Random, talkers: &[u32], (from, until): (Duration, Duration), turn: (u64, u64)) -> Vec<Update> {
    let mut turns = Vec::new();
    let mut start = from;
    loop {
        let end = start + random.millis(turn);
        if end > until {
            return turns;
        }
        turns.push(Update { speaker: random.one_of(talkers), start, end });
        start = end + random.millis((100, 600));
    }
}

/// All that ended in one stretch of time are told at its end, in order of their ends.
fn in_chunks(mut updates: Vec<Update>, length: Duration) -> Vec<Message> {
    updates.sort_by_key(|update| update.end);
    let mut messages: Vec<Message> = Vec::new();
    let mut until = Duration::ZERO;
    for update in updates {
        while update.end > until {
            until += length;
            messages.push(Message { at: until, updates: Vec::new() });
        }
        if let Some(chunk) = messages.last_mut() {
            chunk.updates.push(update);
        }
    }
    messages
}

/// The first half minute of a flood, in which everything happens that is not a refusal.
#[cfg(test)]
pub(super) fn beginning_of_flood(seed: u64) -> Script {
    flood(&mut Random::new(seed), 300).running(Random::new(!seed))
}
