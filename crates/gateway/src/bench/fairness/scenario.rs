//! Who asks for what, and when: the loads that the disciplines are put under. Seeded, so that a run can be repeated.

use std::num::NonZeroU16;
use std::time::Duration;

/// The clip of a first try.
pub(super) const SHORT: Duration = Duration::from_secs(2);
/// The longest clip.
pub(super) const LONG: Duration = Duration::from_secs(10);
/// Conversations that always want more, in the loads that have only such.
pub(super) const CONVERSATIONS: usize = 10;
/// Conversations that ask once a second, in the loads that have such; their numbers come first.
pub(super) const CALM: usize = 9;
/// Queries of one burst.
const BURST: usize = 100;
/// From one burst to the next.
const BURST_EVERY: Duration = Duration::from_secs(5);

/// What a query is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A voice that was never examined.
    First,
    /// Any other.
    Repeat,
}

/// One query that a conversation could start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub(super) at: Duration,
    pub(super) key: usize,
    pub(super) kind: Kind,
    pub(super) clip: Duration,
}

/// A load.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// In order of time.
    pub(super) asks: Vec<Ask>,
    /// Weights of the conversations; one for those that are not named.
    pub(super) weights: Vec<NonZeroU16>,
    /// When a conversation leaves, with all that it still wants.
    pub(super) leaves: Vec<(Duration, usize)>,
    /// When it is over, whatever is left; nothing, when all is answered.
    pub(super) until: Option<Duration>,
}

/// How the calm ones ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// One after the other, at equal distances.
    Even,
    /// Each at any moment of its second.
    Random,
    /// All at once, at the start of the second.
    Together,
}

impl Pace {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Even => "evenly",
            Self::Random => "at random",
            Self::Together => "together",
        }
    }
}

/// What the calm have beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bursts {
    /// Conversations that burst, all at the same moments.
    pub(super) count: usize,
    pub(super) clip: Duration,
}

/// The calm for `time`, and beside them those that burst. The calm ones' queries are repeats and the others' first tries,
/// which is the harder way round.
pub(super) fn burst(pace: Pace, bursts: Bursts, time: Duration, seed: u64) -> Load {
    let mut random = Random(seed);
    let mut asks = Vec::new();
    for second in 0..time.as_secs() {
        for key in 0..CALM {
            let within = match pace {
                Pace::Even => Duration::from_secs(1) * number(key) / number(CALM),
                Pace::Random => Duration::from_micros(random.below(1_000_000)),
                Pace::Together => Duration::ZERO,
            };
            asks.push(Ask { at: Duration::from_secs(second) + within, key, kind: Kind::Repeat, clip: SHORT });
        }
    }
    // Not at a full second, where some of the calm begin.
    let mut at = Duration::from_micros(random.below(1_000_000));
    while at < time {
        for key in CALM..CALM + bursts.count {
            asks.extend(std::iter::repeat_n(Ask { at, key, kind: Kind::First, clip: bursts.clip }, BURST));
        }
        at += BURST_EVERY;
    }
    asks.sort_by_key(|ask| ask.at);
    Load { asks, until: Some(time), ..Load::default() }
}

/// Conversations that always want more, for `time`: each with its clip, weight one.
pub(super) fn busy(clips: &[Duration], time: Duration) -> Load {
    let mut asks = Vec::new();
    for (key, clip) in clips.iter().enumerate() {
        // More than anybody could be given.
        asks.extend(std::iter::repeat_n(
            Ask { at: Duration::ZERO, key, kind: Kind::Repeat, clip: *clip },
            usize::try_from(time.as_secs()).unwrap_or(0) * 100,
        ));
    }
    Load { asks, until: Some(time), ..Load::default() }
}

/// The same with three weights, 1, 2 and 4.
pub(super) fn weighted(time: Duration) -> Load {
    let weights = [1, 2, 4].into_iter().filter_map(NonZeroU16::new).collect();
    Load { weights, ..busy(&[SHORT; 3], time) }
}

/// Ten that stay and always want more, and every half second another that comes with twenty first tries and leaves after
/// three seconds.
pub(super) fn comings_and_goings(time: Duration) -> Load {
    let mut load = busy(&[SHORT; CONVERSATIONS], time);
    let mut at = Duration::from_millis(500);
    for key in CONVERSATIONS.. {
        if at >= time {
            break;
        }
        load.asks.extend(std::iter::repeat_n(Ask { at, key, kind: Kind::First, clip: SHORT }, 20));
        load.leaves.push((at + Duration::from_secs(3), key));
        at += Duration::from_millis(500);
    }
    load.asks.sort_by_key(|ask| ask.at);
    load
}

fn number(key: usize) -> u32 {
    u32::try_from(key).expect("a conversation of a load has a small number")
}

/// Xorshift: enough to scatter moments, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        // Zero is the one state it cannot leave.
        self.0 = self.0.max(1);
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
