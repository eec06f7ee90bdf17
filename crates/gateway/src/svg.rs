//! Plain SVG, written without a library: lines, stairs, words, and nothing that a reader must load.
//!
//! Owns how a file is put together; what is drawn, and to which scale, is the drawer's. Numbers have one decimal, so the same
//! figures give the same bytes.

use std::fmt::Write as _;

/// A point, from the upper left corner.
pub(crate) type Point = (f64, f64);

/// Two neighbouring points of a line are at least this far apart: no screen shows more, and no file grows with its data.
const STEP_MIN: f64 = 0.5;

const INFALLIBLE: &str = "writing into a String cannot fail";

/// One drawing. It stands alone: no script, no font, no link.
pub(crate) struct Canvas(String);

impl Canvas {
    /// A white sheet. `style` is CSS for the classes of what is drawn.
    pub(crate) fn new((width, height): (u32, u32), style: &str) -> Self {
        let mut canvas = Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n",
        ));
        canvas.push(&format!("<style>{style}</style>"));
        canvas.push(&format!("<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>"));
        canvas
    }

    /// The file's text.
    pub(crate) fn finish(mut self) -> String {
        self.push("</svg>");
        self.0
    }

    /// A straight line.
    pub(crate) fn line(&mut self, class: &str, (x1, y1): Point, (x2, y2): Point) {
        self.push(&format!("<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"));
    }

    /// A dot, with a word for whoever points at it.
    pub(crate) fn dot(&mut self, class: &str, (x, y): Point, title: &str) {
        let title = escaped(title);
        self.push(&format!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{title}</title></circle>"
        ));
    }

    /// A line through points.
    pub(crate) fn through(&mut self, class: &str, points: &[Point]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.push(&format!("<polyline class=\"{class}\" points=\"{}\"/>", points.join(" ")));
    }

    /// A step's height holds from the step before it, so the line goes up or down there and then across.
    pub(crate) fn stairs(&mut self, class: &str, points: impl Iterator<Item = Point>, start: Point) {
        let (mut x, mut y) = start;
        let mut line = format!("<polyline class=\"{class}\" points=\"{x:.1},{y:.1}");
        let mut last = start;
        for point in points {
            last = point;
            if (point.0 - x).abs() < STEP_MIN && (point.1 - y).abs() < STEP_MIN {
                continue;
            }
            write!(line, " {x:.1},{:.1} {:.1},{:.1}", point.1, point.0, point.1).expect(INFALLIBLE);
            (x, y) = point;
        }
        self.push(&format!("{line} {:.1},{:.1}\"/>", last.0, last.1));
    }

    /// Words.
    pub(crate) fn text(&mut self, (x, y): Point, class: &str, text: &str) {
        self.push(&format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(text)));
    }

    fn push(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }
}

/// Names come from files, and are text here. Characters that XML cannot hold at all are left out.
fn escaped(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
