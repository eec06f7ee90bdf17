//! Files that say who spoke when: read from any diarizer, written for people and for players.
//!
//! Each format lives in its own file and knows the others not at all; what they share is [`Segment`]. Numbers are
//! checked where they enter: every segment that comes out of a reader is finite, ordered and within a day.

pub mod pyannote;
pub mod rttm;
pub mod srt;
mod time;
pub mod vtt;

/// Segments in one file. A day of short turns stays below; beyond it the file is refused.
pub const SEGMENTS_MAX: usize = 100_000;

/// Bytes of a label, as for every id.
pub const LABEL_BYTES_MAX: usize = 256;

/// The latest second that a segment may end at. Above it the unit is wrong: milliseconds, or a wall clock.
pub const SECONDS_MAX: f64 = 86_400.0;

/// One stretch of one speaker.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// Seconds from the start of the recording.
    pub start: f64,
    /// Seconds from the start of the recording, after `start`.
    pub end: f64,
    /// The speaker: an anonymous label when read from a diarizer, a person's id or name when written.
    pub label: String,
    /// What was said, where it is known.
    pub text: Option<String>,
}

/// What is wrong with a file of segments, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {trouble}")]
pub struct FormatError {
    /// The line or the item.
    place: String,
    /// What is wrong there, and what would be right.
    trouble: String,
}

impl FormatError {
    fn new(place: impl Into<String>, trouble: impl Into<String>) -> Self {
        Self { place: place.into(), trouble: trouble.into() }
    }
}

/// Reads RTTM or pyannote's JSON, whichever it is. Segments come out in the order of their ends, as a live transcriber
/// would give them.
///
/// # Errors
/// When the text is neither, or an item of it is wrong.
pub fn read(text: &str) -> Result<Vec<Segment>, FormatError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut segments = match text.trim_start().chars().next() {
        None => return Err(FormatError::new("line 1", "the file is empty")),
        Some('{' | '[') => pyannote::read(text)?,
        Some(_) => rttm::read(text)?,
    };
    segments.sort_by(|a, b| a.end.total_cmp(&b.end).then(a.start.total_cmp(&b.start)));
    Ok(segments)
}

/// Checks what a reader found, so that no later code meets a number it cannot work with.
fn checked(place: &str, start: f64, end: f64, label: &str) -> Result<Segment, FormatError> {
    let wrong = |trouble: String| Err(FormatError::new(place, trouble));
    if !start.is_finite() || !end.is_finite() {
        return wrong(format!("start {start} and end {end} must be finite numbers of seconds"));
    }
    if start < 0.0 {
        return wrong(format!("start {start} lies before the recording"));
    }
    if end <= start {
        return wrong(format!("end {end} does not come after start {start}"));
    }
    if end > SECONDS_MAX {
        return wrong(format!("end {end} lies more than a day into the recording; times are seconds from its start"));
    }
    if label.trim().is_empty() || label.len() > LABEL_BYTES_MAX || label.chars().any(char::is_control) {
        return wrong(format!("a speaker is named by 1 to {LABEL_BYTES_MAX} bytes of visible text"));
    }
    Ok(Segment { start, end, label: label.to_owned(), text: None })
}

/// Refuses one segment too many.
fn room_for_one_more(place: &str, segments: &[Segment]) -> Result<(), FormatError> {
    if segments.len() < SEGMENTS_MAX {
        return Ok(());
    }
    Err(FormatError::new(place, format!("there are more than {SEGMENTS_MAX} segments, the most in one file; split it")))
}

#[cfg(test)]
mod tests;
