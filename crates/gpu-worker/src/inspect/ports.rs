//! From a graph's inputs, outputs and metadata to the front end that fits them. It runs nothing.

use std::fmt;
use std::num::NonZeroU32;

use ort::value::{Outlet, TensorElementType, ValueType};
use serde::Serialize;

use crate::fbank::{BINS, RATE};
use crate::front_end::{FrontEnd, KaldiFbank, LibrosaMel, Scale, Waveform, Window};
use crate::mel::BANDS;

/// An input or an output of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its element type, as the runtime calls it.
    pub kind: String,
    /// Its sides; -1 where the size is open.
    pub shape: Vec<i64>,
}

impl Port {
    pub(super) fn of(outlet: &Outlet) -> Self {
        let (kind, shape) = match outlet.dtype() {
            ValueType::Tensor { ty, shape, .. } => (kind_of(*ty), shape.to_vec()),
            other @ (ValueType::Sequence(_) | ValueType::Map { .. } | ValueType::Optional(_)) => {
                (other.to_string(), Vec::new())
            }
        };
        Self { name: outlet.name().to_owned(), kind, shape }
    }
}

const FLOATS: &str = "float32";

fn kind_of(kind: TensorElementType) -> String {
    if kind == TensorElementType::Float32 { FLOATS.to_owned() } else { kind.to_string() }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: &i64| if *side < 0 { "?".to_owned() } else { side.to_string() };
        let shape: Vec<String> = self.shape.iter().map(side).collect();
        write!(f, "`{}` {} [{}]", self.name, self.kind, shape.join(", "))
    }
}

fn list(ports: &[Port]) -> String {
    ports.iter().map(Port::to_string).collect::<Vec<_>>().join(", ")
}

/// The front end that the only input and the metadata call for; what it was concluded from goes into `reasons`.
pub(super) fn front_end(
    inputs: &[Port],
    metadata: &[(&'static str, String)],
    reasons: &mut Vec<String>,
) -> Result<FrontEnd, String> {
    let input = only(inputs)?;
    let says = |key: &str| metadata.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str());
    let rate: Option<u32> = says("sample_rate").and_then(|rate| rate.parse().ok());
    let needs_16k = || match rate {
        Some(rate) if rate != RATE => {
            Err(format!("its metadata says {rate} Hz, and features are computed at {RATE} Hz"))
        }
        Some(_) | None => Ok(()),
    };
    match input.shape.as_slice() {
        [_, _, columns] if *columns == width(BINS) => {
            needs_16k()?;
            reasons.push(format!("{input} has rows of 80: Kaldi filterbank, minus its mean"));
            kaldi(input, &says, reasons).map(FrontEnd::KaldiFbank80Cmn)
        }
        [_, _, columns] if *columns == width(BANDS) => {
            needs_16k()?;
            reasons
                .push(format!("{input} has rows of 40: librosa mel bands in parts of 160 rows, as GE2E models take"));
            Ok(FrontEnd::LibrosaMel40(LibrosaMel::default()))
        }
        [_, columns, _] if *columns == width(BINS) || *columns == width(BANDS) => Err(format!(
            "{input} wants its features column by column, as NeMo's models do; front ends here give rows, so export it \
             with rows of {columns} last"
        )),
        [_, -1] => {
            let sample_rate = rate.and_then(NonZeroU32::new).unwrap_or(Waveform::default().sample_rate);
            let whence = if rate.is_some() { "as its metadata says" } else { "as nothing says otherwise" };
            reasons.push(format!(
                "{input} is open in its only side: the samples themselves, at {sample_rate} Hz {whence}"
            ));
            Ok(FrontEnd::Waveform(Waveform { sample_rate }))
        }
        [_, samples] => Err(format!("{input} takes exactly {samples} samples, and clips have any length")),
        [_, _, -1] => Err(format!("{input} does not say how many columns its rows have; name the front end yourself")),
        _ => Err(format!(
            "{input} is neither [clips, rows, 80], nor [clips, rows, 40], nor [clips, samples], which is what front ends \
             here give"
        )),
    }
}

/// Range and window of the filterbank. 3D-Speaker's and WeSpeaker's differ, and their shapes do not.
fn kaldi<'a>(
    input: &Port,
    says: &impl Fn(&str) -> Option<&'a str>,
    reasons: &mut Vec<String>,
) -> Result<KaldiFbank, String> {
    if let Some(other) = says("feature_normalize_type").filter(|kind| !kind.is_empty() && *kind != "global-mean") {
        return Err(format!(
            "its metadata says `feature_normalize_type` {other}; only a clip's mean is subtracted here"
        ));
    }
    // WeSpeaker's own exporter writes no metadata and always these names.
    let is_wespeaker = says("framework").is_some_and(|framework| framework.eq_ignore_ascii_case("wespeaker"))
        || (says("framework").is_none() && input.name == "feats");
    let (scale, why) = match says("normalize_samples") {
        Some("0") => (Scale::Int16, "its metadata says `normalize_samples` 0"),
        Some(_) => (Scale::Unit, "its metadata says `normalize_samples` 1"),
        None if is_wespeaker => (Scale::Int16, "it is WeSpeaker's"),
        None => (Scale::Unit, "nothing says otherwise, and most models are trained so"),
    };
    let range = if scale == Scale::Unit { "-1 to 1" } else { "-32768 to 32767" };
    reasons.push(format!("samples from {range}: {why}"));
    let window = if is_wespeaker { Window::Hamming } else { Window::Povey };
    reasons.push(match window {
        Window::Hamming => "Hamming window: WeSpeaker's models are trained with it".to_owned(),
        Window::Povey => "Povey window: Kaldi's own, as nothing says otherwise".to_owned(),
    });
    Ok(KaldiFbank { scale, window })
}

/// The name of the input, when it takes what `front_end` gives.
pub(super) fn input(inputs: &[Port], front_end: &FrontEnd) -> Result<String, String> {
    let input = only(inputs)?;
    let fits = match (front_end.columns(), input.shape.as_slice()) {
        (Some(columns), [_, _, side]) => *side == -1 || *side == width(columns),
        (None, [_, _]) => true,
        (Some(_) | None, _) => false,
    };
    let gives =
        front_end.columns().map_or("[clips, samples]".to_owned(), |columns| format!("[clips, rows, {columns}]"));
    fits.then(|| input.name.clone()).ok_or_else(|| format!("it takes {input}, and the front end gives {gives}"))
}

/// The name of the only output that can be one vector a clip.
pub(super) fn output(outputs: &[Port]) -> Result<String, String> {
    let is_vector = |port: &&Port| port.kind == FLOATS && port.shape.len() == 2;
    let vectors: Vec<&Port> = outputs.iter().filter(is_vector).collect();
    match (vectors.as_slice(), outputs.len()) {
        ([vector], 1) => Ok(vector.name.clone()),
        ([_, ..], _) => Err(format!("it gives {}; export it with its vector as the only output", list(outputs))),
        ([], _) => Err(format!("it gives {}, and none of them is one float32 vector a clip", list(outputs))),
    }
}

fn only(inputs: &[Port]) -> Result<&Port, String> {
    match inputs {
        [input] if input.kind == FLOATS => Ok(input),
        [input] => Err(format!("it takes {input}, and front ends here give float32")),
        _ => Err(format!("it takes {} inputs ({}), and a front end gives one", inputs.len(), list(inputs))),
    }
}

fn width(columns: usize) -> i64 {
    i64::try_from(columns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metadata of a test.
    type Said<'a> = &'a [(&'static str, &'a str)];

    fn port(name: &str, kind: &str, shape: &[i64]) -> Port {
        Port { name: name.to_owned(), kind: kind.to_owned(), shape: shape.to_vec() }
    }

    fn concluded(input: Port, metadata: Said<'_>) -> Result<FrontEnd, String> {
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        front_end(&[input], &metadata, &mut Vec::new())
    }

    #[test]
    fn the_range_and_the_window_follow_the_metadata_and_else_the_exporter() {
        let kaldi = |scale, window| Ok(FrontEnd::KaldiFbank80Cmn(KaldiFbank { scale, window }));
        let rows = |name| port(name, FLOATS, &[-1, -1, 80]);
        let cases: [(Port, Said<'_>, _); 5] = [
            (rows("x"), &[], kaldi(Scale::Unit, Window::Povey)),
            (rows("x"), &[("framework", "3d-speaker"), ("normalize_samples", "1")], kaldi(Scale::Unit, Window::Povey)),
            (
                rows("x"),
                &[("framework", "wespeaker"), ("normalize_samples", "0")],
                kaldi(Scale::Int16, Window::Hamming),
            ),
            (rows("feats"), &[], kaldi(Scale::Int16, Window::Hamming)),
            (rows("feats"), &[("framework", "3d-speaker")], kaldi(Scale::Unit, Window::Povey)),
        ];
        for (input, metadata, expected) in cases {
            assert_eq!(concluded(input, metadata), expected, "{metadata:?}");
        }
    }

    #[test]
    fn the_other_kinds_follow_the_shape() {
        let waveform = |hertz| Ok(FrontEnd::Waveform(Waveform { sample_rate: NonZeroU32::new(hertz).unwrap() }));
        let samples = || port("wav", FLOATS, &[-1, -1]);
        assert_eq!(concluded(samples(), &[]), waveform(16_000));
        assert_eq!(concluded(samples(), &[("sample_rate", "8000")]), waveform(8_000));
        let mel = concluded(port("mels", FLOATS, &[-1, -1, 40]), &[]);
        assert_eq!(mel, Ok(FrontEnd::LibrosaMel40(LibrosaMel::default())));
    }

    #[test]
    fn what_cannot_be_fed_is_told_why() {
        let rows = || port("x", FLOATS, &[-1, -1, 80]);
        let cases: [(Port, Said<'_>, &str); 8] = [
            (port("x", FLOATS, &[-1, 80, -1]), &[], "column by column"),
            (port("x", FLOATS, &[-1, -1, -1]), &[], "how many columns"),
            (port("x", FLOATS, &[-1, -1, 64]), &[], "neither"),
            (port("x", FLOATS, &[-1]), &[], "neither"),
            (port("x", FLOATS, &[1, 16_000]), &[], "exactly 16000 samples"),
            (port("x", "int64", &[-1, -1, 80]), &[], "int64"),
            (rows(), &[("sample_rate", "8000")], "8000 Hz"),
            (rows(), &[("feature_normalize_type", "per_feature")], "per_feature"),
        ];
        for (input, metadata, says) in cases {
            let error = concluded(input, metadata).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let two = [rows(), port("length", "int64", &[-1])];
        assert!(front_end(&two, &[], &mut Vec::new()).unwrap_err().contains("2 inputs"));
    }

    #[test]
    fn an_output_must_be_one_vector_a_clip_and_the_only_one() {
        let vector = || port("embedding", FLOATS, &[-1, 192]);
        assert_eq!(output(&[vector()]), Ok("embedding".to_owned()));
        assert!(output(&[vector(), port("logits", FLOATS, &[-1, 10])]).unwrap_err().contains("only output"));
        assert!(output(&[port("frames", FLOATS, &[-1, -1, 192])]).unwrap_err().contains("none of them"));
    }
}
