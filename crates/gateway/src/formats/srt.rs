//! SubRip: captions for players that know nothing else. It has no speakers, so the name stands before the text.

use std::fmt::Write as _;

use super::Segment;
use super::time::clock;

/// Writes one numbered cue a segment. A segment without text shows the speaker's name alone.
#[must_use]
pub fn write(segments: &[Segment]) -> String {
    let mut text = String::new();
    for (number, segment) in (1_usize..).zip(segments) {
        writeln!(
            text,
            "{number}\n{} --> {}\n{}\n",
            clock(segment.start, ','),
            clock(segment.end, ','),
            spoken(segment)
        )
        .expect("writing into a String cannot fail");
    }
    text
}

/// One line: an empty one would end the cue. There is no escape for `-->`, so it is written with an arrow that is none.
fn spoken(segment: &Segment) -> String {
    let said = segment.text.as_deref().unwrap_or_default();
    let line = if said.trim().is_empty() { segment.label.clone() } else { format!("{}: {said}", segment.label) };
    line.split_whitespace().collect::<Vec<_>>().join(" ").replace("-->", "→")
}
