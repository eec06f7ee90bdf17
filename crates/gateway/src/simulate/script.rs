//! What is played: messages in order of time, the pool, how long runs take, and what the model makes of whom.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use matcher_core::{Rate, Sample, Span, Speaker};

use super::random::Random;
use super::setup::Setup;
use super::voices::{Cast, Hearing, OWNER};

/// The pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    pub(super) workers: usize,
    /// No run takes longer; the shortest takes three fifths of it, when it is drawn.
    pub(super) slowest: Duration,
}

/// One segment of speech, as a scenario tells it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Update {
    pub(super) speaker: u32,
    pub(super) start: Duration,
    pub(super) end: Duration,
}

/// Updates that arrive together.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) at: Duration,
    pub(super) updates: Vec<Update>,
}

/// One segment of speech as the world plays it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) speaker: Speaker,
    /// Which provider stream.
    pub(super) stream: u16,
    pub(super) window: Span,
    pub(super) speech: u64,
}

/// What a message knows of the audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ring {
    /// Audio goes on with the clock.
    Live,
    /// The ring held this much.
    Held(Option<Span>),
}

/// Segments that arrive together.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) at: Duration,
    pub(super) ring: Ring,
    pub(super) said: Vec<Said>,
}

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) takes: Duration,
    pub(super) brings: Brings,
}

/// What a run brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brings {
    Voiceprint,
    Nothing,
}

/// How long runs take.
#[derive(Debug, Clone)]
pub(super) enum Runs {
    /// Pseudo-random times.
    Drawn(Random),
    /// Each number's in turn, and then as long as the typical one.
    Recorded { of: BTreeMap<Speaker, VecDeque<Run>>, typical: Duration },
}

/// A budget that never runs out, as for whoever pays for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plenty;

/// See the module's text.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) machine: Machine,
    /// In order of time.
    pub(super) arrivals: Vec<Arrival>,
    pub(super) rate: Rate,
    pub(super) runs: Runs,
    pub(super) cast: Cast,
    /// Tokens at the beginning that were spent before.
    pub(super) spent: u32,
    pub(super) plenty: Option<Plenty>,
    /// The owner is heard through noise until then.
    pub(super) clear_from: Duration,
}

impl Script {
    /// A scenario's, whose runs are drawn later.
    pub(super) fn scripted(machine: Machine, mut messages: Vec<Message>) -> Self {
        messages.sort_by_key(|message| message.at);
        let rate = Rate::new(NonZeroU32::new(16_000).expect("the rate is not zero"));
        let arrival = |message: Message| {
            let said = message.updates.iter().map(|update| said(update, rate)).collect();
            Arrival { at: message.at, ring: Ring::Live, said }
        };
        let arrivals = messages.into_iter().map(arrival).collect();
        Self::of(machine, arrivals, rate, (Runs::Drawn(Random::new(0)), Cast::Scripted))
    }

    pub(super) fn of(machine: Machine, arrivals: Vec<Arrival>, rate: Rate, (runs, cast): (Runs, Cast)) -> Self {
        Self { machine, arrivals, rate, runs, cast, spent: 0, plenty: None, clear_from: Duration::ZERO }
    }

    pub(super) fn running(self, random: Random) -> Self {
        Self { runs: Runs::Drawn(random), ..self }
    }

    pub(super) fn with(self, plenty: Plenty) -> Self {
        Self { plenty: Some(plenty), ..self }
    }

    pub(super) fn clear_from(self, clear_from: Duration) -> Self {
        Self { clear_from, ..self }
    }

    /// With so many tokens spent before it begins.
    pub(super) fn after(self, spent: u32) -> Self {
        Self { spent, ..self }
    }

    /// The limits under which it is played.
    pub(super) fn within(&self, setup: &Setup) -> Setup {
        let mut setup = setup.clone();
        if self.plenty.is_some() {
            let plenty = |value| NonZeroU32::new(value).expect("plenty is not zero");
            setup.budget.burst = plenty(100_000);
            setup.budget.attempts_max = plenty(100_000);
        }
        setup
    }

    /// How many different numbers speak.
    pub(super) fn numbers(&self) -> usize {
        let said = self.arrivals.iter().flat_map(|arrival| &arrival.said);
        said.map(|said| said.speaker).collect::<BTreeSet<Speaker>>().len()
    }

    /// Whether everybody speaks in one provider stream.
    pub(super) fn is_one_stream(&self) -> bool {
        let mut streams = self.arrivals.iter().flat_map(|arrival| &arrival.said).map(|said| said.stream);
        streams.next().is_none_or(|first| streams.all(|stream| stream == first))
    }

    /// How somebody sounds whose query begins at a moment.
    pub(super) fn hearing(&self, speaker: Speaker, at: Duration) -> Hearing {
        if speaker.0 == OWNER && at < self.clear_from { Hearing::Noisy } else { Hearing::Clear }
    }

    /// The same, with a worker for everybody and runs that take no time to speak of.
    pub(super) fn unhindered(&self) -> Self {
        let machine = Machine { workers: self.numbers().max(1), slowest: Duration::from_millis(1) };
        let runs = match &self.runs {
            Runs::Drawn(random) => Runs::Drawn(random.clone()),
            Runs::Recorded { of, .. } => {
                let at_once = |run: &Run| Run { takes: machine.slowest, ..*run };
                let of = of.iter().map(|(speaker, runs)| (*speaker, runs.iter().map(at_once).collect()));
                Runs::Recorded { of: of.collect(), typical: machine.slowest }
            }
        };
        Self { machine, runs, spent: 0, ..self.clone() }
    }
}

impl Runs {
    pub(super) fn next(&mut self, speaker: Speaker, slowest: Duration) -> Run {
        match self {
            Self::Drawn(random) => {
                let slowest = u64::try_from(slowest.as_millis()).unwrap_or(u64::MAX);
                Run { takes: random.millis((slowest * 3 / 5, slowest)), brings: Brings::Voiceprint }
            }
            Self::Recorded { of, typical } => {
                let next = of.get_mut(&speaker).and_then(VecDeque::pop_front);
                next.unwrap_or(Run { takes: *typical, brings: Brings::Voiceprint })
            }
        }
    }
}

fn said(update: &Update, rate: Rate) -> Said {
    let [start, end] = [update.start, update.end].map(|at| Sample(rate.samples_in(at)));
    let window = Span::new(start, end).expect("an update of a script is not empty");
    Said { speaker: Speaker(update.speaker), stream: 0, window, speech: window.samples() }
}
