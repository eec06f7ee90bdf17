//! A recorded lane in the simulated world: its segments at their moments, runs as long as they were, verdicts as they were, and
//! any policy in between.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use matcher_core::queue::Voice;
use matcher_core::{Rate, Sample, Span, Speaker};
use serde::Serialize;

use super::follow::{Followed, follow};
use super::line::{Event, Heard, span};
use super::{RecordedLane, Trace};
use crate::simulate::policy::Policy;
use crate::simulate::report::{Figures, beside_bound, seconds_or_never};
use crate::simulate::script::{Arrival, Brings, Machine, Ring, Run, Runs, Said, Script};
use crate::simulate::voices::{Cast, Class};
use crate::simulate::{demand, figures};

/// What a recording came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceReport {
    /// Entries that the recorder could not keep: what is missing may be behind any difference.
    pub lost: u64,
    /// Whether the recording ends early: at its full size, or in the middle of a line, because its server died.
    pub is_cut: bool,
    /// Each lane, in order of joining.
    pub lanes: Vec<LaneReport>,
}

/// What a lane came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneReport {
    /// The lane's number in the recording.
    pub lane: u32,
    /// Whether the core's queue selects in the recorded order.
    pub recorded_order: Followed,
    /// What was measured, with the pool to itself, under each policy.
    pub policies: Vec<Played>,
}

/// One replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Played {
    /// Who was examined next.
    pub policy: Policy,
    /// What was measured.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Trace {
    /// Plays every lane under one policy, or under the service's and in order of arrival.
    #[must_use]
    pub fn replay(&self, policy: Option<Policy>) -> TraceReport {
        let policies = policy.map_or(vec![Policy::Fair, Policy::Fifo], |policy| vec![policy]);
        let lanes = self.lanes.iter().map(|lane| self.play(lane, &policies)).collect();
        TraceReport { lost: self.lost, is_cut: self.is_cut, lanes }
    }

    fn play(&self, lane: &RecordedLane, policies: &[Policy]) -> LaneReport {
        let setup = self.header.settings.setup();
        let script = self.script(lane);
        let demand = demand(&script, &setup);
        let played = policies
            .iter()
            .map(|policy| Played { policy: *policy, figures: figures(script.clone(), *policy, &setup, &demand) });
        let policies = played.collect();
        LaneReport { lane: lane.number, recorded_order: follow(lane, &setup), policies }
    }

    pub(in crate::simulate) fn script(&self, lane: &RecordedLane) -> Script {
        let settings = &self.header.settings;
        let (of, slowest) = runs(lane);
        let typical = typical(&of);
        let machine = Machine { workers: self.header.workers.min(settings.queries_per_lane).get(), slowest };
        let runs = Runs::Recorded { of, typical };
        let spent = settings.socket_burst.get().saturating_sub(lane.joined.tokens);
        Script::of(machine, arrivals(lane), Rate::new(lane.joined.rate), (runs, cast(lane))).after(spent)
    }
}

/// A recorded lane's segments.
pub(super) fn said(heard: &Heard) -> Vec<Said> {
    let one = |[voice, stream, start, end, speech]: &[u64; 5]| {
        Some(Said {
            speaker: Speaker(u32::try_from(*voice).ok()?),
            stream: u16::try_from(*stream).ok()?,
            window: Span::new(Sample(*start), Sample(*end)).ok()?,
            speech: *speech,
        })
    };
    heard.segments.iter().filter_map(one).collect()
}

fn arrivals(lane: &RecordedLane) -> Vec<Arrival> {
    let arrival = |(at, event): &(u64, Event)| {
        let Event::Heard(heard) = event else { return None };
        let ring = Ring::Held(heard.ring.and_then(span));
        Some(Arrival { at: Duration::from_nanos(*at), ring, said: said(heard) })
    };
    lane.events.iter().filter_map(arrival).collect()
}

/// Each number's runs in order, and the longest of all.
fn runs(lane: &RecordedLane) -> (BTreeMap<Speaker, VecDeque<Run>>, Duration) {
    let mut of: BTreeMap<Speaker, VecDeque<Run>> = BTreeMap::new();
    let mut slowest = Duration::ZERO;
    for (_, event) in &lane.events {
        if let Event::Ran { voice, took, brought, .. } = event {
            let takes = Duration::from_nanos(*took);
            slowest = slowest.max(takes);
            let brings = if *brought { Brings::Voiceprint } else { Brings::Nothing };
            of.entry(Speaker(*voice)).or_default().push_back(Run { takes, brings });
        }
    }
    (of, slowest)
}

/// The median run, for queries that the server did not make.
fn typical(of: &BTreeMap<Speaker, VecDeque<Run>>) -> Duration {
    let mut all: Vec<Duration> = of.values().flatten().map(|run| run.takes).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

/// What was said of each voice.
pub(super) fn cast(lane: &RecordedLane) -> Cast {
    let mut told: BTreeMap<Voice, Vec<Class>> = BTreeMap::new();
    for (_, event) in &lane.events {
        if let Event::Judged { voice, stream, class } = event {
            told.entry(Voice { speaker: Speaker(*voice), scope: *stream }).or_default().push(*class);
        }
    }
    Cast::Recorded(told)
}

impl fmt::Display for TraceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lost > 0 {
            writeln!(f, "{} entries came faster than the disk took them, and are missing", self.lost)?;
        }
        if self.is_cut {
            writeln!(f, "the recording ends early: it reached its full size, or its server died while it wrote")?;
        }
        for lane in &self.lanes {
            writeln!(f, "lane {}: {}", lane.lane, lane.recorded_order)?;
        }
        writeln!(
            f,
            "\n{:>4} {:<14} {:>8} {:>8}  {:>17}  {:>17}  {:>9}  {:>6}  {:>6}  {:>8}  {:>5}  {:>8}",
            "lane",
            "policy",
            "owner",
            "named",
            "wait / bound",
            "first / bound",
            "first p99",
            "passed",
            "by age",
            "rejected",
            "Jain",
            "queries"
        )?;
        for lane in &self.lanes {
            for Played { policy, figures } in &lane.policies {
                let wait = beside_bound(figures.worst_wait_s, figures.bound_s);
                let first_wait = beside_bound(figures.worst_first_wait_s, figures.first_bound_s);
                writeln!(
                    f,
                    "{:>4} {:<14} {:>8} {:>8}  {wait:>17}  {first_wait:>17}  {:>7.2} s  {:>6}  {:>4.0} %  {:>6.0} %  {:>5.2}  {:>8}",
                    lane.lane,
                    policy.as_str(),
                    seconds_or_never(figures.owner_examined_after_s, 1),
                    seconds_or_never(figures.owner_named_after_s, 1),
                    figures.first_wait_p99_s,
                    figures.untried_passed_over,
                    figures.override_share * 100.0,
                    figures.rejected_share * 100.0,
                    figures.jain,
                    figures.reserved,
                )?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { selections, same, not_compared, .. } = self;
        write!(f, "{same} of {selections} selections compared, and in the recorded order")?;
        if let Some(difference) = &self.difference {
            let selected = difference.selected.map_or(String::from("nobody"), |voice| format!("voice {voice}"));
            let (selection, recorded) = (difference.selection, difference.recorded);
            write!(f, "; selection {selection} was of voice {recorded}, and is of {selected} here")?;
        }
        if *not_compared > 0 {
            write!(f, "; {not_compared} not compared, for people had decided or voices came along")?;
        }
        Ok(())
    }
}
