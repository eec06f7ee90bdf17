//! The JSON of pyannote, from the library and from its service: `diarization`, a list of `{start, end, speaker}`.
//!
//! `exclusive_diarization` (in the service `exclusiveDiarization`), where no two speak at once, is preferred when it is
//! there: overlapped speech teaches a voice nothing but another's. A bare list is read as well. Fields that we do not
//! use are passed over.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{FormatError, SEGMENTS_MAX, Segment, checked};

#[derive(Deserialize)]
struct Document {
    diarization: Option<Vec<Value>>,
    #[serde(alias = "exclusiveDiarization")]
    exclusive_diarization: Option<Vec<Value>>,
    /// The service wraps a finished job so.
    output: Option<Box<Document>>,
}

#[derive(Deserialize)]
struct Item {
    start: f64,
    end: f64,
    speaker: String,
    text: Option<String>,
}

/// Reads a document or a bare list.
///
/// # Errors
/// Names the place in the text, or the item, that is wrong.
pub fn read(text: &str) -> Result<Vec<Segment>, FormatError> {
    let (list, items) = list_of(text)?;
    if items.len() > SEGMENTS_MAX {
        return Err(FormatError::new(
            list,
            format!("there are {} segments; at most {SEGMENTS_MAX} are read", items.len()),
        ));
    }
    if items.is_empty() {
        return Err(FormatError::new(list, "the list is empty"));
    }
    items.into_iter().enumerate().map(|(index, item)| segment_of(&format!("{list}[{index}]"), item)).collect()
}

fn list_of(text: &str) -> Result<(&'static str, Vec<Value>), FormatError> {
    let malformed = |error: serde_json::Error| {
        FormatError::new(
            format!("line {} column {}", error.line(), error.column()),
            format!("is not as expected: {error}"),
        )
    };
    if text.trim_start().starts_with('[') {
        return Ok(("item", serde_json::from_str(text).map_err(malformed)?));
    }
    let outer: Document = serde_json::from_str(text).map_err(malformed)?;
    let document = outer.output.map_or_else(
        || Document {
            output: None,
            diarization: outer.diarization,
            exclusive_diarization: outer.exclusive_diarization,
        },
        |inner| *inner,
    );
    match (document.exclusive_diarization, document.diarization) {
        (Some(items), _) if !items.is_empty() => Ok(("exclusive_diarization", items)),
        (_, Some(items)) => Ok(("diarization", items)),
        (_, None) => Err(FormatError::new("the document", "has no list `diarization`")),
    }
}

fn segment_of(place: &str, item: Value) -> Result<Segment, FormatError> {
    let item: Item = serde_json::from_value(item).map_err(|error| FormatError::new(place, error.to_string()))?;
    let segment = checked(place, item.start, item.end, &item.speaker)?;
    Ok(Segment { text: item.text, ..segment })
}

/// Writes a document with one list, times with milliseconds.
#[must_use]
pub fn write(segments: &[Segment]) -> String {
    let items: Vec<Value> = segments
        .iter()
        .map(|segment| json!({"start": rounded(segment.start), "end": rounded(segment.end), "speaker": segment.label}))
        .collect();
    json!({ "diarization": items }).to_string()
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}
