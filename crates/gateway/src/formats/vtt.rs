//! WebVTT: captions for players, the speaker as a voice span.

use std::fmt::Write as _;

use super::Segment;
use super::time::clock;

/// Writes one cue a segment. A segment without text shows the speaker's name.
#[must_use]
pub fn write(segments: &[Segment]) -> String {
    let mut text = String::from("WEBVTT\n");
    for segment in segments {
        writeln!(
            text,
            "\n{} --> {}\n<v {}>{}",
            clock(segment.start, '.'),
            clock(segment.end, '.'),
            escaped(&segment.label),
            escaped(segment.text.as_deref().unwrap_or(&segment.label))
        )
        .expect("writing into a String cannot fail");
    }
    text
}

/// A cue ends at an empty line, so text is one line; an arrow in it would read as a cue's time, hence the `>`.
fn escaped(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    one_line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
