//! The Open Inference Protocol (KServe v2) on the wire, with the binary tensor extension: requests into bytes, answers
//! and model descriptions out of them. Nothing is sent here.
//!
//! A request is a JSON head and then the tensor, little-endian floats; `Inference-Header-Content-Length` says where one
//! ends. An answer comes the same way, or as JSON alone from a server without the extension.

use serde::{Deserialize, Serialize};

use crate::front_end::Shape;

use super::fault::Fault;
use super::http::Answer;

/// What the server's model takes and gives, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ports {
    input: String,
    /// Dimensions of the input, a batch of one included.
    rank: usize,
    output: String,
}

/// What the model's input must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Rows of so many features.
    Rows(usize),
    /// Several inputs of rows of so many features, which are sent as one batch.
    Parts(usize),
    /// Samples.
    Wave,
}

/// A clip as the front end gives it.
#[derive(Clone, Copy)]
pub(super) struct Encoded<'a> {
    pub(super) input: Input,
    pub(super) shape: Shape,
    pub(super) values: &'a [f32],
}

/// Which ports to use, where a model has several.
pub(super) struct Wanted<'a> {
    pub(super) input: Option<&'a str>,
    pub(super) output: Option<&'a str>,
}

#[derive(Deserialize)]
struct Metadata {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

#[derive(Deserialize)]
struct Port {
    name: String,
    datatype: String,
    shape: Vec<i64>,
}

impl Ports {
    /// Reads a model's description, `GET /v2/models/{model}`, and checks that a clip can be sent to it.
    pub(super) fn of(metadata: &[u8], wanted: &Wanted<'_>, input: Input, dimension: usize) -> Result<Self, Fault> {
        let Ok(Metadata { inputs, outputs }) = serde_json::from_slice(metadata) else {
            return Err(Fault::NotAnAnswer("it does not describe a model"));
        };
        let given = choose(inputs, wanted.input)
            .ok_or(Fault::NotAnAnswer("the model has several inputs; name one as `input`"))?;
        let taken = choose(outputs, wanted.output)
            .ok_or(Fault::NotAnAnswer("the model has several outputs; name one as `output`"))?;
        let fits = match input {
            Input::Rows(width) => (2..=3).contains(&given.shape.len()) && is(given.shape.last(), width),
            Input::Parts(width) => given.shape.len() == 3 && is(given.shape.last(), width),
            Input::Wave => (1..=2).contains(&given.shape.len()),
        };
        if given.datatype != "FP32" || !fits {
            return Err(Fault::NotAnAnswer("the model takes another input than its manifest's front end gives"));
        }
        if taken.datatype != "FP32" || !is(taken.shape.last(), dimension) {
            return Err(Fault::NotAnAnswer("the model gives vectors of another size than its manifest says"));
        }
        Ok(Self { input: given.name, rank: given.shape.len(), output: taken.name })
    }

    /// Writes a request for one clip into `body`, and returns the length of its head.
    pub(super) fn write(&self, input: Encoded<'_>, left_us: u64, body: &mut Vec<u8>) -> usize {
        let Encoded { input, shape, values } = input;
        let width = match input {
            Input::Rows(width) | Input::Parts(width) => Some(width),
            Input::Wave => None,
        };
        let inner = width.map_or(1, |_| 2);
        let batch = (inner < self.rank).then_some(shape.parts);
        let head = Head {
            parameters: Patience { timeout: left_us },
            inputs: [Given {
                name: &self.input,
                shape: batch.into_iter().chain([shape.length]).chain(width).collect(),
                datatype: "FP32",
                parameters: Size { binary_data_size: std::mem::size_of_val(values) },
            }],
            outputs: [Asked { name: &self.output, parameters: Binary { binary_data: true } }],
        };
        body.clear();
        serde_json::to_writer(&mut *body, &head).expect("names and numbers can be written into memory");
        let head_bytes = body.len();
        body.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        head_bytes
    }

    /// Reads the vectors out of an answer, one for each part. Their size is the caller's to check.
    pub(super) fn read(&self, answer: &Answer) -> Result<Vec<f32>, Fault> {
        let cut = answer.head_bytes.unwrap_or(answer.body.len());
        let (head, mut tensors) =
            answer.body.split_at_checked(cut).ok_or(Fault::NotAnAnswer("it is shorter than its head says"))?;
        let Ok(Reply { outputs }) = serde_json::from_slice(head) else {
            return Err(Fault::NotAnAnswer("it is not JSON with outputs"));
        };
        for output in outputs {
            let binary = output.parameters.and_then(|parameters| parameters.binary_data_size);
            let (bytes, rest) = tensors
                .split_at_checked(binary.unwrap_or(0))
                .ok_or(Fault::NotAnAnswer("its tensor is shorter than its head says"))?;
            tensors = rest;
            if output.name == self.output {
                let bytes = binary.map(|_| bytes);
                return vector(&output.datatype, &output.shape, bytes, output.data);
            }
        }
        Err(Fault::NotAnAnswer("it lacks the output that was asked for"))
    }
}

fn vector(kind: &str, shape: &[usize], bytes: Option<&[u8]>, data: Option<Vec<f32>>) -> Result<Vec<f32>, Fault> {
    if kind != "FP32" {
        return Err(Fault::NotAnAnswer("its output is not FP32"));
    }
    let values = match (bytes, data) {
        (Some(bytes), None) => {
            let (values, odd) = bytes.as_chunks::<4>();
            if !odd.is_empty() {
                return Err(Fault::NotAnAnswer("its tensor does not hold whole values"));
            }
            values.iter().map(|value| f32::from_le_bytes(*value)).collect()
        }
        (None, Some(data)) => data,
        (Some(_), Some(_)) | (None, None) => {
            return Err(Fault::NotAnAnswer("its output has no values, or has them twice"));
        }
    };
    let count = shape.iter().try_fold(1_usize, |product, side| product.checked_mul(*side));
    if count != Some(values.len()) {
        return Err(Fault::NotAnAnswer("its tensor is not of the shape that its head says"));
    }
    Ok(values)
}

/// The port of that name; without a name the only one.
fn choose(ports: Vec<Port>, name: Option<&str>) -> Option<Port> {
    let is_only = ports.len() == 1;
    ports.into_iter().find(|port| name.map_or(is_only, |name| port.name == name))
}

/// Whether a side is `size`, or left open.
fn is(side: Option<&i64>, size: usize) -> bool {
    side.is_some_and(|side| *side == -1 || usize::try_from(*side) == Ok(size))
}

#[derive(Serialize)]
struct Head<'a> {
    parameters: Patience,
    inputs: [Given<'a>; 1],
    outputs: [Asked<'a>; 1],
}

/// Microseconds after which the server's own queue drops the request, where it has a queue that minds.
#[derive(Serialize)]
struct Patience {
    timeout: u64,
}

#[derive(Serialize)]
struct Given<'a> {
    name: &'a str,
    shape: Vec<usize>,
    datatype: &'static str,
    parameters: Size,
}

#[derive(Serialize)]
struct Size {
    binary_data_size: usize,
}

#[derive(Serialize)]
struct Asked<'a> {
    name: &'a str,
    parameters: Binary,
}

#[derive(Serialize)]
struct Binary {
    binary_data: bool,
}

#[derive(Deserialize)]
struct Reply {
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Output {
    name: String,
    datatype: String,
    shape: Vec<usize>,
    parameters: Option<OutputParameters>,
    data: Option<Vec<f32>>,
}

#[derive(Deserialize)]
struct OutputParameters {
    binary_data_size: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Wanted<'_> = Wanted { input: None, output: None };
    const TRITON: &str = r#"{"name":"speaker","versions":["1"],"platform":"python",
        "inputs":[{"name":"feats","datatype":"FP32","shape":[-1,-1,80]}],
        "outputs":[{"name":"embs","datatype":"FP32","shape":[-1,192]}]}"#;

    fn ports(metadata: &str, input: Input) -> Result<Ports, Fault> {
        Ports::of(metadata.as_bytes(), &ANY, input, 192)
    }

    /// The head and the tensor of a request whose values are all the same.
    fn write(metadata: &str, input: Input, shape: Shape) -> (serde_json::Value, Vec<u8>) {
        let width = if let Input::Rows(width) | Input::Parts(width) = input { width } else { 1 };
        let values = vec![1.5; shape.parts * shape.length * width];
        let mut body = vec![9; 3];
        let cut = ports(metadata, input).unwrap().write(Encoded { input, shape, values: &values }, 2_000, &mut body);
        (serde_json::from_slice(&body[..cut]).unwrap(), body.split_off(cut))
    }

    fn read(head: &str, tensors: &[u8]) -> Result<Vec<f32>, Fault> {
        let body = [head.as_bytes(), tensors].concat();
        ports(TRITON, Input::Rows(80)).unwrap().read(&Answer { head_bytes: Some(head.len()), body })
    }

    #[test]
    fn a_request_is_a_head_and_little_endian_floats() {
        let (head, tensor) = write(TRITON, Input::Rows(80), Shape { parts: 1, length: 2 });
        assert_eq!(head["inputs"][0]["shape"], serde_json::json!([1, 2, 80]));
        assert_eq!(head["inputs"][0]["parameters"]["binary_data_size"], 640);
        assert_eq!(head["parameters"]["timeout"], 2_000);
        assert_eq!(tensor[..4], 1.5_f32.to_le_bytes());
        assert_eq!(tensor.len(), 640);
    }

    #[test]
    fn a_model_without_a_batch_gets_none() {
        let shape = |sides: &str, input, length| {
            let metadata = TRITON.replace("-1,-1,80", sides);
            write(&metadata, input, Shape { parts: 1, length }).0["inputs"][0]["shape"].clone()
        };
        assert_eq!(shape("-1,80", Input::Rows(80), 2), serde_json::json!([2, 80]));
        assert_eq!(shape("-1", Input::Wave, 160), serde_json::json!([160]));
        assert_eq!(shape("-1,-1", Input::Wave, 160), serde_json::json!([1, 160]));
    }

    #[test]
    fn parts_are_a_batch_and_need_a_model_that_takes_one() {
        let metadata = TRITON.replace("-1,-1,80", "-1,160,40");
        let (head, _) = write(&metadata, Input::Parts(40), Shape { parts: 3, length: 160 });
        assert_eq!(head["inputs"][0]["shape"], serde_json::json!([3, 160, 40]));
        assert!(ports(&TRITON.replace("-1,-1,80", "160,40"), Input::Parts(40)).is_err());
    }

    #[test]
    fn a_model_that_does_not_fit_is_refused_before_any_clip_is_sent() {
        for (from, to) in [
            ("-1,-1,80", "-1,-1,40"),
            ("-1,-1,80", "80"),
            ("-1,192", "-1,256"),
            ("FP32", "FP16"),
            ("\"inputs\"", "\"in\""),
        ] {
            let found = ports(&TRITON.replace(from, to), Input::Rows(80));
            assert!(matches!(found, Err(Fault::NotAnAnswer(_))), "{to}: {found:?}");
        }
    }

    #[test]
    fn one_of_several_ports_is_chosen_by_its_name_only() {
        let two = TRITON.replace("\"inputs\":[", r#""inputs":[{"name":"len","datatype":"INT32","shape":[1]},"#);
        assert!(ports(&two, Input::Rows(80)).is_err());
        let wanted = Wanted { input: Some("feats"), output: Some("embs") };
        assert_eq!(Ports::of(two.as_bytes(), &wanted, Input::Rows(80), 192), ports(TRITON, Input::Rows(80)));
        let nobody = Wanted { input: Some("other"), output: None };
        assert!(Ports::of(TRITON.as_bytes(), &nobody, Input::Rows(80), 192).is_err());
    }

    #[test]
    fn an_answer_is_read_from_bytes_behind_another_output_and_from_json() {
        let outputs = r#"{"outputs":[{"name":"x","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}},
            {"name":"embs","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}]}"#;
        let tensors: Vec<u8> = [9.0_f32, 1.0, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(read(outputs, &tensors), Ok(vec![1.0, -2.0]));
        let json = r#"{"outputs":[{"name":"embs","datatype":"FP32","shape":[1,2],"data":[1.0,-2]}]}"#;
        assert_eq!(read(json, &[]), Ok(vec![1.0, -2.0]));
    }

    #[test]
    fn answers_that_contradict_themselves_are_refused() {
        let output = |inner: &str| format!(r#"{{"outputs":[{{"name":"embs","datatype":"FP32",{inner}}}]}}"#);
        for (head, tensors) in [
            ("{}".to_owned(), 0),
            (r#"{"outputs":[]}"#.to_owned(), 0),
            (output(r#""shape":[1,2],"parameters":{"binary_data_size":8}"#), 4),
            (output(r#""shape":[1,3],"parameters":{"binary_data_size":8}"#), 8),
            (output(r#""shape":[1,1],"parameters":{"binary_data_size":5}"#), 8),
            (output(r#""shape":[18446744073709551615,2],"data":[1]"#), 0),
            (output(r#""shape":[1]"#), 0),
            (output(r#""shape":[1],"data":[1],"parameters":{"binary_data_size":4}"#), 4),
            (output(r#""shape":[1],"data":["a"]"#), 0),
            (output(r#""shape":[1],"data":[1]"#).replace("FP32", "FP16"), 0),
        ] {
            assert!(matches!(read(&head, &vec![0; tensors]), Err(Fault::NotAnAnswer(_))), "{head}");
        }
        let ports = ports(TRITON, Input::Rows(80)).unwrap();
        let short = Answer { head_bytes: Some(100), body: b"{}".to_vec() };
        assert!(matches!(ports.read(&short), Err(Fault::NotAnAnswer(_))));
    }
}
