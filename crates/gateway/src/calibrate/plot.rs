//! The curves as one SVG file: FAR and FRR by threshold, and FRR against FAR (DET).
//!
//! The file stands alone: no script, no font, no link. The DET axes are in normal deviates, as usual, so that two normal
//! distributions give a straight line; both end at 0.1 % and 99 %, and what lies beyond is drawn on the edge.

use super::rates::{DISTANCE_MAX, Point};
use super::report::{self, Report};
use super::{RatesError, Trial};
use crate::svg::Canvas;

/// A panel's plotting area, in SVG units, and where the two begin.
const SIZE: f64 = 360.0;
const TOP: f64 = 60.0;
const LEFT: [f64; 2] = [60.0, 520.0];

/// Where the DET axes end.
const DET_MIN: f64 = 0.001;
const DET_MAX: f64 = 0.99;

/// Grid lines of the DET panel.
const DET_TICKS: [(f64, &str); 9] = [
    (0.001, "0.1"),
    (0.01, "1"),
    (0.02, "2"),
    (0.05, "5"),
    (0.1, "10"),
    (0.2, "20"),
    (0.4, "40"),
    (0.8, "80"),
    (0.99, "99"),
];

const STYLE: &str = "text{font:12px sans-serif;fill:#333}.grid{stroke:#ddd}.far{stroke:#c0392b}.frr{stroke:#2471a3}\
                     .det{stroke:#333}polyline{fill:none;stroke-width:2}.mark{stroke:#888;stroke-dasharray:4 3}\
                     .middle{text-anchor:middle}.end{text-anchor:end}";

/// Draws a report's curves.
///
/// # Errors
/// When the trials have no rates.
pub fn svg(report: &Report, trials: &[Trial]) -> Result<String, RatesError> {
    let rates = report::rates(trials)?;
    let steps: Vec<Point> = rates.steps().into_iter().chain([DISTANCE_MAX]).map(|step| rates.at(step)).collect();
    let mut canvas = Canvas::new((920, 480), STYLE);
    let title = format!("{}: {} target and {} nontarget trials", report.model(), rates.targets(), rates.nontargets());
    canvas.text((460.0, 24.0), "middle", &title);
    canvas.by_threshold(report, &steps);
    canvas.det(report, &steps);
    Ok(canvas.finish())
}

impl Canvas {
    fn by_threshold(&mut self, report: &Report, steps: &[Point]) {
        let [left, _] = LEFT;
        for tick in 0..=10_u32 {
            let share = f64::from(tick) / 10.0;
            self.grid(left, share, &format!("{:.1}", share * DISTANCE_MAX), &format!("{:.0}", share * 100.0));
        }
        self.text((left + SIZE / 2.0, TOP + SIZE + 40.0), "middle", "threshold (cosine distance)");
        self.text((left, TOP - 12.0), "start", "FAR (red) and FRR (blue), %");
        let at = |point: &Point, rate: f64| (left + point.threshold / DISTANCE_MAX * SIZE, TOP + (1.0 - rate) * SIZE);
        self.stairs("far", steps.iter().map(|point| at(point, point.far)), (left, TOP + SIZE));
        self.stairs("frr", steps.iter().map(|point| at(point, point.frr)), (left, TOP));
        let (present, suggested, eer) = report.marks();
        for (row, name, threshold) in
            [(0.0, "in use", present.threshold), (1.0, "suggested", suggested.threshold), (2.0, "EER", eer.threshold)]
        {
            let x = left + threshold / DISTANCE_MAX * SIZE;
            self.line("mark", (x, TOP), (x, TOP + SIZE));
            // Below one another, because the three may coincide.
            self.text((left + SIZE - 6.0, TOP + SIZE / 2.0 + 16.0 * row), "end", &format!("{name} {threshold:.3}"));
        }
    }

    fn det(&mut self, report: &Report, steps: &[Point]) {
        let [_, left] = LEFT;
        for (rate, label) in DET_TICKS {
            self.grid(left, deviate_share(rate), label, label);
        }
        self.text((left + SIZE / 2.0, TOP + SIZE + 40.0), "middle", "FAR, %");
        self.text((left, TOP - 12.0), "start", "FRR, % (DET)");
        let at = |far: f64, frr: f64| (left + deviate_share(far) * SIZE, TOP + (1.0 - deviate_share(frr)) * SIZE);
        self.stairs("det", steps.iter().map(|point| at(point.far, point.frr)), at(0.0, 1.0));
        let (present, suggested, eer) = report.marks();
        for (name, at) in [
            ("in use", at(present.far, present.frr)),
            ("suggested", at(suggested.far, suggested.frr)),
            ("EER", at(eer.rate, eer.rate)),
        ] {
            self.dot("point", at, name);
        }
    }

    /// One vertical and one horizontal grid line at a share of the panel, with their labels.
    fn grid(&mut self, left: f64, share: f64, across: &str, up: &str) {
        let (x, y) = (left + share * SIZE, TOP + (1.0 - share) * SIZE);
        let (right, bottom) = (left + SIZE, TOP + SIZE);
        self.line("grid", (x, TOP), (x, bottom));
        self.line("grid", (left, y), (right, y));
        self.text((x, bottom + 18.0), "middle", across);
        self.text((left - 8.0, y + 4.0), "end", up);
    }
}

/// Where a rate lies on a DET axis, 0 to 1.
fn deviate_share(rate: f64) -> f64 {
    let deviate = |rate: f64| normal_deviate(rate.clamp(DET_MIN, DET_MAX));
    (deviate(rate) - deviate(DET_MIN)) / (deviate(DET_MAX) - deviate(DET_MIN))
}

/// The normal distribution's quantile, to 4.5e-4: Abramowitz and Stegun 26.2.23. A tenth of a pixel is 1.5e-3.
pub(super) fn normal_deviate(rate: f64) -> f64 {
    if rate > 0.5 {
        return -normal_deviate(1.0 - rate);
    }
    let t = (-2.0 * rate.ln()).sqrt();
    let over = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let under = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    over / under - t
}
