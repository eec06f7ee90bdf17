//! Tiny ONNX graphs, written byte by byte: what a converter would write, without one.

#![allow(dead_code, reason = "each test file uses its own part of this module")]

/// A protobuf message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, field: u64, value: u64) -> Self {
        self.raw(field << 3);
        self.raw(value);
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.raw(field << 3 | 2);
        self.raw(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(self, field: u64, message: Message) -> Self {
        self.bytes(field, &message.0)
    }

    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(u8::try_from(value & 0x7f | 0x80).expect("seven bits and a flag fit"));
            value >>= 7;
        }
        self.0.push(u8::try_from(value).expect("seven bits fit"));
    }
}

/// Element types, as ONNX numbers them.
pub(crate) const FLOAT: u64 = 1;
pub(crate) const INT64: u64 = 7;

/// A graph with one input and one output, whose nodes run from the tensor `x` to the tensor `embedding`.
pub(crate) struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
    metadata: Vec<Message>,
}

impl Graph {
    /// An empty graph; a side of -1 is open.
    pub(crate) fn new(input: (&str, u64, &[i64]), output: &[i64]) -> Self {
        let (name, kind, sides) = input;
        Self {
            nodes: Vec::new(),
            constants: Vec::new(),
            inputs: vec![port(name, kind, sides)],
            outputs: vec![port("embedding", FLOAT, output)],
            metadata: Vec::new(),
        }
    }

    /// The loudest row of rows of `columns` values: a voiceprint that depends on the whole clip.
    pub(crate) fn loudest_row(input: &str, columns: i64) -> Self {
        Self::new((input, FLOAT, &[-1, -1, columns]), &[-1, columns]).node(
            "ReduceMax",
            &[input],
            "embedding",
            &[("axes", &[1]), ("keepdims", &[0])],
        )
    }

    /// The loudest of every sixteenth sample.
    pub(crate) fn loudest_samples(sides: &[i64]) -> Self {
        Self::new(("wav", FLOAT, sides), &[-1, 16])
            .constant("shape", &[0, -1, 16])
            .node("Reshape", &["wav", "shape"], "blocks", &[])
            .node("ReduceMax", &["blocks"], "embedding", &[("axes", &[1]), ("keepdims", &[0])])
    }

    /// A node; an attribute with one value is a number, one named `axes` a list.
    pub(crate) fn node(mut self, kind: &str, inputs: &[&str], output: &str, attributes: &[(&str, &[i64])]) -> Self {
        let mut node = Message::default();
        for input in inputs {
            node = node.bytes(1, input.as_bytes());
        }
        node = node.bytes(2, output.as_bytes()).bytes(4, kind.as_bytes());
        for (name, values) in attributes {
            let mut attribute = Message::default().bytes(1, name.as_bytes());
            let is_list = *name == "axes";
            for value in *values {
                attribute = attribute.varint(if is_list { 8 } else { 3 }, value.cast_unsigned());
            }
            node = node.message(5, attribute.varint(20, if is_list { 7 } else { 2 }));
        }
        self.nodes.push(node);
        self
    }

    /// A list of integers.
    pub(crate) fn constant(mut self, name: &str, values: &[i64]) -> Self {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let tensor = Message::default().varint(1, values.len() as u64).varint(2, INT64);
        self.constants.push(tensor.bytes(8, name.as_bytes()).bytes(9, &raw));
        self
    }

    /// One more input that nothing reads.
    pub(crate) fn input(mut self, name: &str, kind: u64, sides: &[i64]) -> Self {
        self.inputs.push(port(name, kind, sides));
        self
    }

    /// One entry of metadata.
    pub(crate) fn says(mut self, key: &str, value: &str) -> Self {
        self.metadata.push(Message::default().bytes(1, key.as_bytes()).bytes(2, value.as_bytes()));
        self
    }

    /// The file's bytes.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let mut graph = Message::default();
        for node in self.nodes {
            graph = graph.message(1, node);
        }
        graph = graph.bytes(2, b"tiny");
        for (field, messages) in [(5, self.constants), (11, self.inputs), (12, self.outputs)] {
            for message in messages {
                graph = graph.message(field, message);
            }
        }
        let mut model = Message::default().varint(1, 8).message(7, graph);
        model = model.message(8, Message::default().bytes(1, b"").varint(2, 17));
        for entry in self.metadata {
            model = model.message(14, entry);
        }
        model.0
    }
}

fn port(name: &str, kind: u64, sides: &[i64]) -> Message {
    let mut shape = Message::default();
    for (index, side) in sides.iter().enumerate() {
        let dimension = match u64::try_from(*side) {
            Ok(side) => Message::default().varint(1, side),
            Err(_) => Message::default().bytes(2, format!("side{index}").as_bytes()),
        };
        shape = shape.message(1, dimension);
    }
    let tensor = Message::default().varint(1, kind).message(2, shape);
    Message::default().bytes(1, name.as_bytes()).message(2, Message::default().message(1, tensor))
}
