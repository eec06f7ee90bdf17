//! The simulation's figures as SVG: how long first examinations wait, how long the owner waits, how near every wait comes to
//! its bound, and what an age that decides every so many selections does under load.

use std::num::NonZeroU32;
use std::time::Duration;

use super::policy::Policy;
use super::report::{Figures, percentile};
use super::scenario::Scenario;
use super::setup::Setup;
use super::summary::{Many, play};
use super::world;
use crate::svg::Canvas;

/// The policies that are drawn, each with its class in the style.
const DRAWN: [(Policy, &str); 6] = [
    (Policy::Fair, "fair"),
    (Policy::Fifo, "fifo"),
    (Policy::Oracle, "oracle"),
    (Policy::NoAge, "no-age"),
    (Policy::NoUntried, "no-untried"),
    (Policy::NoCoalescing, "no-coalescing"),
];

const STYLE: &str = "text{font:12px sans-serif;fill:#333}.head{font-weight:bold}.grid{stroke:#ddd}.mark{stroke:#888;\
                     stroke-dasharray:4 3}polyline{fill:none;stroke-width:2}line.range{stroke-width:3}\
                     .fair{stroke:#1a7f37;fill:#1a7f37}.fifo{stroke:#c0392b;fill:#c0392b}.oracle{stroke:#888;fill:#888}\
                     .no-age{stroke:#8e44ad;fill:#8e44ad}.no-untried{stroke:#d68910;fill:#d68910}\
                     .no-coalescing{stroke:#2471a3;fill:#2471a3}polyline{fill:none!important}text{stroke:none}\
                     .middle{text-anchor:middle}.end{text-anchor:end}";

/// One drawing and the name of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawing {
    /// The file's name.
    pub name: &'static str,
    /// The file's text.
    pub svg: String,
}

/// All drawings, over so many seeds of each scenario.
#[must_use]
pub fn drawings(scenarios: &[Scenario], (seed, count): (u64, u64), setup: &Setup) -> Vec<Drawing> {
    let cases = DRAWN.map(|(policy, _)| (policy, setup.clone()));
    let played: Vec<(Scenario, Vec<Many>)> = scenarios
        .iter()
        .map(|scenario| (*scenario, play(*scenario, seed..seed + scenario.runs(count), &cases)))
        .collect();
    vec![
        Drawing { name: "simulate-first-examinations.svg", svg: first_examinations(&played) },
        Drawing { name: "simulate-owner.svg", svg: owner(&played) },
        Drawing { name: "simulate-bounds.svg", svg: to_bounds(&played) },
        Drawing { name: "simulate-load.svg", svg: load(seed..seed + count, setup) },
    ]
}

/// A scale from the least to the most of an axis, by its logarithm from one tenth on: many waits are none at all.
#[derive(Debug, Clone, Copy)]
struct Scale {
    left: f64,
    width: f64,
    most: f64,
}

impl Scale {
    fn at(self, value: f64) -> f64 {
        let place = |value: f64| (1.0 + value * 10.0).ln();
        self.left + place(value.min(self.most)) / place(self.most) * self.width
    }

    /// Grid lines across a height, with their labels below.
    fn draw(self, canvas: &mut Canvas, (top, bottom): (f64, f64), ticks: &[f64]) {
        for tick in ticks.iter().filter(|tick| **tick <= self.most) {
            let x = self.at(*tick);
            canvas.line("grid", (x, top), (x, bottom));
            canvas.text((x, bottom + 16.0), "middle", &tick.to_string());
        }
    }
}

fn legend(canvas: &mut Canvas, (left, y): (f64, f64), drawn: &[(&str, &str)]) {
    let mut x = left;
    for (name, class) in drawn {
        canvas.line(&format!("range {class}"), (x, y - 4.0), (x + 20.0, y - 4.0));
        canvas.text((x + 26.0, y), "start", name);
        // Seven pixels a letter, about, and some air.
        x += 50.0 + 7.0 * name.len() as f64;
    }
}

fn names() -> Vec<(&'static str, &'static str)> {
    DRAWN.iter().map(|(policy, class)| (policy.as_str(), *class)).collect()
}

/// One panel a scenario: which share of the first examinations had been selected after how long.
fn first_examinations(played: &[(Scenario, Vec<Many>)]) -> String {
    const COLUMNS: usize = 2;
    const PANEL: (f64, f64) = (450.0, 210.0);
    const SIZE: (f64, f64) = (380.0, 130.0);
    let rows = u32::try_from(played.len().div_ceil(COLUMNS)).unwrap_or(u32::MAX);
    let mut canvas = Canvas::new((930, 70 + 210 * rows), STYLE);
    canvas.text(
        (20.0, 24.0),
        "head",
        "Voices that were selected for their first examination (%), by seconds since they began to wait",
    );
    legend(&mut canvas, (20.0, 46.0), &names());
    for (index, (scenario, many)) in played.iter().enumerate() {
        let left = 50.0 + PANEL.0 * (index % COLUMNS) as f64;
        let top = 90.0 + PANEL.1 * (index / COLUMNS) as f64;
        let (bottom, scale) = (top + SIZE.1, Scale { left, width: SIZE.0, most: 100.0 });
        canvas.text((left, top - 10.0), "head", scenario.as_str());
        scale.draw(&mut canvas, (top, bottom), &[0.0, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0]);
        for share in [0.0, 0.5, 1.0] {
            let y = bottom - share * SIZE.1;
            canvas.line("grid", (left, y), (left + SIZE.0, y));
            canvas.text((left - 6.0, y + 4.0), "end", &format!("{:.0}", share * 100.0));
        }
        for ((_, class), many) in DRAWN.iter().zip(many) {
            let examined = many.first_waits.len() as f64 / many.heard.max(1) as f64;
            // Every second of a hundred: the eye sees no more, and the file does not grow with the seeds.
            let points = (1..=50).map(|half: u32| {
                let percent = usize::try_from(half * 2).unwrap_or(100);
                let share = examined * f64::from(half) / 50.0;
                (scale.at(percentile(&many.first_waits, percent)), bottom - share * SIZE.1)
            });
            canvas.stairs(class, points, (left, bottom));
        }
    }
    canvas.finish()
}

/// One row a scenario and policy: from the least to the most of all seeds, and a dot at the median.
fn ranges(
    played: &[(Scenario, Vec<Many>)],
    title: &str,
    (scale, ticks): (Scale, &[f64]),
    of: impl Fn(&Figures) -> f64,
) -> Canvas {
    const ROW: f64 = 12.0;
    let height = ROW * (DRAWN.len() as f64 + 1.0);
    let most = u32::try_from(played.len() * 84).unwrap_or(u32::MAX);
    let mut canvas = Canvas::new((930, 110 + most), STYLE);
    canvas.text((20.0, 24.0), "head", title);
    legend(&mut canvas, (20.0, 46.0), &names());
    let bottom = 66.0 + height * played.len() as f64;
    scale.draw(&mut canvas, (66.0, bottom), ticks);
    for (index, (scenario, many)) in played.iter().enumerate() {
        let top = 66.0 + height * index as f64;
        canvas.text((scale.left - 14.0, top + height / 2.0), "end", scenario.as_str());
        for (row, ((policy, class), many)) in DRAWN.iter().zip(many).enumerate() {
            let y = top + ROW * (row as f64 + 1.0);
            let mut values: Vec<f64> = many.figures.iter().map(&of).collect();
            values.sort_by(f64::total_cmp);
            let [least, median, most] = [0, values.len() / 2, values.len() - 1].map(|at| values.get(at).copied());
            let (Some(least), Some(median), Some(most)) = (least, median, most) else { continue };
            canvas.line(&format!("range {class}"), (scale.at(least), y), (scale.at(most), y));
            canvas.dot(class, (scale.at(median), y), &format!("{}: {median:.2}", policy.as_str()));
        }
    }
    canvas
}

const NEVER: f64 = 400.0;

fn owner(played: &[(Scenario, Vec<Many>)]) -> String {
    let scale = Scale { left: 110.0, width: 780.0, most: NEVER };
    let title = "Seconds until the owner was examined, of all seeds (the dot: the median; at the right edge: never)";
    let ticks = [0.0, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 200.0];
    ranges(played, title, (scale, &ticks), |figures| figures.owner_examined_after_s.unwrap_or(NEVER)).finish()
}

fn to_bounds(played: &[(Scenario, Vec<Many>)]) -> String {
    let scale = Scale { left: 110.0, width: 780.0, most: 5.0 };
    let title = "The longest wait as a part of its bound, of all seeds (the dot: the median); the bound is 1";
    let of = |figures: &Figures| {
        (figures.worst_wait_s / figures.bound_s).max(figures.worst_first_wait_s / figures.first_bound_s)
    };
    let mut canvas = ranges(played, title, (scale, &[0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0]), of);
    let bottom = 66.0 + 84.0 * played.len() as f64;
    canvas.line("mark", (scale.at(1.0), 66.0), (scale.at(1.0), bottom));
    canvas.finish()
}

/// How often age may decide, each with a class of the style.
const EVERY: [(u32, &str, &str); 3] =
    [(1, "each selection may go by age", "fair"), (2, "every second", "no-coalescing"), (4, "every fourth", "no-age")];
/// The longest run, in milliseconds: from a machine that keeps up to one that is far too slow.
const RUNS_MS: [u32; 9] = [100, 150, 200, 300, 450, 600, 800, 1100, 1500];

/// The overload on machines of several speeds: first examinations on the left, the longest wait of any slot on the right.
fn load(seeds: std::ops::Range<u64>, setup: &Setup) -> String {
    const SIZE: (f64, f64) = (380.0, 240.0);
    let mut canvas = Canvas::new((930, 400), STYLE);
    canvas.text((20.0, 24.0), "head", "The overload on slower and slower machines, by the longest run in seconds");
    legend(&mut canvas, (20.0, 46.0), &EVERY.map(|(_, name, class)| (name, class)));
    let panels = [(50.0, "p99 wait of first examinations, s"), (520.0, "longest wait of any slot, s")];
    let most = 30.0;
    for (left, title) in panels {
        canvas.text((left, 76.0), "start", title);
        for tick in 0..=6_u32 {
            let y = 90.0 + SIZE.1 * (1.0 - f64::from(tick) / 6.0);
            canvas.line("grid", (left, y), (left + SIZE.0, y));
            canvas.text((left - 6.0, y + 4.0), "end", &format!("{:.0}", most * f64::from(tick) / 6.0));
        }
        for run in [0, 300, 600, 900, 1200, 1500] {
            let x = left + f64::from(run) / 1500.0 * SIZE.0;
            canvas.line("grid", (x, 90.0), (x, 90.0 + SIZE.1));
            canvas.text((x, 90.0 + SIZE.1 + 16.0), "middle", &format!("{:.1}", f64::from(run) / 1000.0));
        }
    }
    for (every, _, class) in EVERY {
        let mut setup = setup.clone();
        setup.limits.override_every = NonZeroU32::new(every).unwrap_or(NonZeroU32::MIN);
        let points = RUNS_MS.map(|run| (run, at_speed(Duration::from_millis(run.into()), seeds.clone(), &setup)));
        for ((left, _), of) in
            panels.into_iter().zip([|(first, _)| first, |(_, any)| any] as [fn((f64, f64)) -> f64; 2])
        {
            let at = |(run, waits): &(u32, (f64, f64))| {
                let x = left + f64::from(*run) / 1500.0 * SIZE.0;
                (x, 90.0 + SIZE.1 * (1.0 - of(*waits).min(most) / most))
            };
            canvas.through(class, &points.iter().map(at).collect::<Vec<_>>());
        }
    }
    canvas.finish()
}

/// The p99 wait of first examinations, and the longest wait of any slot.
fn at_speed(slowest: Duration, seeds: std::ops::Range<u64>, setup: &Setup) -> (f64, f64) {
    let (mut first, mut worst) = (Vec::new(), Duration::ZERO);
    for seed in seeds {
        let mut script = Scenario::Overload.script(seed);
        script.machine.slowest = slowest;
        let outcome = world::run(script, Policy::Fair, setup);
        worst = worst.max(outcome.worst_wait);
        first.extend(outcome.first_waits);
    }
    first.sort_unstable();
    (percentile(&first, 99), worst.as_secs_f64())
}
