//! RTTM: one segment a line, ten fields parted by spaces, as every scoring tool reads it.
//!
//! `SPEAKER <file> <channel> <start> <duration> <NA> <NA> <speaker> <NA> <NA>`, in seconds. Lines of other types and
//! comments (`;;`) are passed over.

use std::fmt::Write as _;

use super::{FormatError, Segment, checked, room_for_one_more};

/// Reads the `SPEAKER` lines, which must all be of one recording.
///
/// # Errors
/// Names the line that is wrong.
pub fn read(text: &str) -> Result<Vec<Segment>, FormatError> {
    let mut segments = Vec::new();
    let mut recording = None;
    for (number, line) in (1_usize..).zip(text.lines()) {
        let place = format!("line {number}");
        if let Some((name, segment)) = segment_of(&place, line)? {
            room_for_one_more(&place, &segments)?;
            same_recording(&place, recording.get_or_insert(name), name)?;
            segments.push(segment);
        }
    }
    if segments.is_empty() {
        return Err(FormatError::new(
            "line 1",
            "there is no SPEAKER line; the file is neither RTTM nor pyannote's JSON",
        ));
    }
    Ok(segments)
}

/// Two recordings in one file have two clocks, and merged they would be nonsense.
fn same_recording(place: &str, first: &str, name: &str) -> Result<(), FormatError> {
    if first == name {
        return Ok(());
    }
    let (first, name) = (shortened(first), shortened(name));
    let trouble = format!(
        "it is of the recording {name:?}, and the lines before are of {first:?}; give one file for each recording"
    );
    Err(FormatError::new(place, trouble))
}

/// One `SPEAKER` line's recording and segment.
fn segment_of<'a>(place: &str, line: &'a str) -> Result<Option<(&'a str, Segment)>, FormatError> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (Some(&kind), comment) = (fields.first(), line.trim_start().starts_with(";;")) else { return Ok(None) };
    if comment || OTHER_KINDS.contains(&kind) {
        return Ok(None);
    }
    if kind != "SPEAKER" {
        return Err(FormatError::new(place, format!("{:?} is no RTTM line; it starts with SPEAKER", shortened(kind))));
    }
    // Some tools leave out the last field.
    let &[_, recording, _, start, duration, _, _, label, _, ..] = fields.as_slice() else {
        return Err(FormatError::new(place, format!("there are {} fields where RTTM has ten", fields.len())));
    };
    let start = number(place, "the start", start)?;
    let duration = number(place, "the duration", duration)?;
    let segment = checked(place, start, microseconds(start + duration), label)?;
    Ok(Some((recording, segment)))
}

/// The other line types of the format.
const OTHER_KINDS: [&str; 8] =
    ["SPKR-INFO", "LEXEME", "NON-LEX", "NON-SPEECH", "SEGMENT", "NOSCORE", "NO_RT_METADATA", "EDIT"];

fn number(place: &str, what: &str, text: &str) -> Result<f64, FormatError> {
    text.parse().map_err(|_| FormatError::new(place, format!("{what} {:?} is not a number", shortened(text))))
}

/// A sum of two decimal numbers ends in rounding noise, and no diarizer means anything below a microsecond.
fn microseconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Writes `SPEAKER` lines of `file`, with milliseconds. The format parts fields by spaces and has no quoting, so a space
/// in a name becomes an underscore.
#[must_use]
pub fn write(file: &str, segments: &[Segment]) -> String {
    let mut text = String::new();
    for segment in segments {
        writeln!(
            text,
            "SPEAKER {} 1 {:.3} {:.3} <NA> <NA> {} <NA> <NA>",
            word(file),
            segment.start,
            segment.end - segment.start,
            word(&segment.label)
        )
        .expect("writing into a String cannot fail");
    }
    text
}

fn word(text: &str) -> String {
    if text.is_empty() {
        return "<NA>".to_owned();
    }
    text.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}
