//! An ONNX graph, taken apart just far enough to exchange nodes and weights, and put together again.
//!
//! Whatever is not understood is kept byte for byte. It knows the format and no model: what is exchanged, and why, is
//! [`rules`]' affair. Whether the result is as good as the original is not judged here.

mod rules;
mod wide;
mod wire;

use std::borrow::Cow;
use std::collections::BTreeMap;

use wire::{Field, Value};

pub(crate) use rules::faster;

/// Numbers of the fields that are understood, by message.
mod number {
    pub(super) const MODEL_GRAPH: u64 = 7;
    pub(super) const GRAPH_NODE: u64 = 1;
    pub(super) const GRAPH_WEIGHT: u64 = 5;
    pub(super) const GRAPH_OUTPUT: u64 = 12;
    pub(super) const VALUE_NAME: u64 = 1;
    pub(super) const NODE_INPUT: u64 = 1;
    pub(super) const NODE_OUTPUT: u64 = 2;
    pub(super) const NODE_KIND: u64 = 4;
    pub(super) const NODE_ATTRIBUTE: u64 = 5;
    pub(super) const ATTRIBUTE_NAME: u64 = 1;
    pub(super) const ATTRIBUTE_INT: u64 = 3;
    pub(super) const ATTRIBUTE_INTS: u64 = 8;
    pub(super) const ATTRIBUTE_TYPE: u64 = 20;
    pub(super) const TENSOR_DIM: u64 = 1;
    pub(super) const TENSOR_TYPE: u64 = 2;
    pub(super) const TENSOR_NAME: u64 = 8;
    pub(super) const TENSOR_RAW: u64 = 9;
}

/// Types of an attribute: one integer, and several.
const INT: u64 = 2;
const INTS: u64 = 7;
/// Types of a tensor's values.
const FLOAT32: u64 = 1;
const INT64: u64 = 7;

/// A graph in its parts.
struct Graph<'a> {
    model: Vec<Field<'a>>,
    rest: Vec<Field<'a>>,
    nodes: Vec<Node<'a>>,
    weights: BTreeMap<String, Vec<Field<'a>>>,
}

/// One operation.
#[derive(Clone)]
struct Node<'a> {
    kind: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    rest: Vec<Field<'a>>,
}

impl<'a> Graph<'a> {
    /// Nothing when these bytes are no model, or one that is too odd to be touched.
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (graphs, model): (Vec<_>, Vec<_>) =
            wire::parse(bytes)?.into_iter().partition(|field| field.number == number::MODEL_GRAPH);
        let [Field { value: Value::Bytes(Cow::Borrowed(graph)), .. }] = &graphs[..] else { return None };
        let mut parsed = Self { model, rest: Vec::new(), nodes: Vec::new(), weights: BTreeMap::new() };
        for field in wire::parse(graph)? {
            match (field.number, &field.value) {
                (number::GRAPH_NODE, Value::Bytes(Cow::Borrowed(node))) => parsed.nodes.push(Node::parse(node)?),
                (number::GRAPH_WEIGHT, Value::Bytes(Cow::Borrowed(weight))) => {
                    let fields = wire::parse(weight)?;
                    let name = wire::texts(&fields, number::TENSOR_NAME).next()?;
                    parsed.weights.insert(name, fields);
                }
                _ => parsed.rest.push(field),
            }
        }
        Some(parsed)
    }

    fn bytes(&self) -> Vec<u8> {
        let used = |name: &str| self.nodes.iter().any(|node| node.inputs.iter().any(|input| input == name));
        let nodes = self.nodes.iter().map(|node| Field::bytes(number::GRAPH_NODE, node.bytes()));
        let weights = self.weights.iter().filter(|(name, _)| used(name));
        let weights = weights.map(|(_, fields)| Field::bytes(number::GRAPH_WEIGHT, wire::write(fields)));
        let graph: Vec<Field<'_>> = nodes.chain(weights).chain(self.rest.iter().cloned()).collect();
        let graph = Field::bytes(number::MODEL_GRAPH, wire::write(&graph));
        wire::write(&self.model.iter().cloned().chain([graph]).collect::<Vec<_>>())
    }

    /// The names of what the whole graph gives.
    fn outputs(&self) -> Vec<String> {
        let outputs = self.rest.iter().filter(|field| field.number == number::GRAPH_OUTPUT);
        let values = outputs.filter_map(|field| match &field.value {
            Value::Bytes(bytes) => wire::parse(bytes),
            Value::Varint(_) | Value::Fixed32(_) | Value::Fixed64(_) => None,
        });
        values.filter_map(|value| wire::texts(&value, number::VALUE_NAME).next()).collect()
    }

    /// The node that gives `output`.
    fn giver(&self, output: &str) -> Option<&Node<'a>> {
        self.nodes.iter().find(|node| node.outputs.iter().any(|given| given == output))
    }

    /// A constant that is one integer.
    fn int(&self, name: &str) -> Option<i64> {
        let [int] = self.ints(name)?[..] else { return None };
        Some(int)
    }

    /// A constant of integers.
    fn ints(&self, name: &str) -> Option<Vec<i64>> {
        let (_, raw) = self.raw(name, INT64)?;
        Some(raw.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect())
    }

    /// The shape of a constant.
    fn dims(&self, name: &str) -> Option<Vec<u64>> {
        wire::varints(self.weights.get(name)?, number::TENSOR_DIM)
    }

    /// Gives a constant another shape of the same size.
    fn set_dims(&mut self, name: &str, dims: &[u64]) {
        if let Some(fields) = self.weights.get_mut(name) {
            fields.retain(|field| field.number != number::TENSOR_DIM);
            fields.splice(0..0, dims.iter().map(|dim| Field::varint(number::TENSOR_DIM, *dim)));
        }
    }

    fn raw(&self, name: &str, kind: u64) -> Option<(Vec<u64>, &[u8])> {
        let fields = self.weights.get(name)?;
        let raw = fields.iter().find(|field| field.number == number::TENSOR_RAW)?;
        let Value::Bytes(raw) = &raw.value else { return None };
        (wire::varints(fields, number::TENSOR_TYPE)? == [kind]).then_some(())?;
        Some((wire::varints(fields, number::TENSOR_DIM)?, raw))
    }

    /// A constant of integers: one alone without `dims`, or a row of them.
    fn set_ints(&mut self, name: &str, dims: &[u64], values: &[i64]) {
        self.set(name, dims, INT64, values.iter().flat_map(|value| value.to_le_bytes()).collect());
    }

    fn set(&mut self, name: &str, dims: &[u64], kind: u64, raw: Vec<u8>) {
        let dims = dims.iter().map(|dim| Field::varint(number::TENSOR_DIM, *dim));
        let kind = Field::varint(number::TENSOR_TYPE, kind);
        let (named, raw) = (Field::text(number::TENSOR_NAME, name), Field::bytes(number::TENSOR_RAW, raw));
        self.weights.insert(name.to_owned(), dims.chain([kind, named, raw]).collect());
    }
}

impl<'a> Node<'a> {
    fn new(kind: &str, inputs: &[&str], output: &str) -> Self {
        let inputs = inputs.iter().map(|input| (*input).to_owned()).collect();
        Self { kind: kind.to_owned(), inputs, outputs: vec![output.to_owned()], rest: Vec::new() }
    }

    fn with_int(mut self, name: &str, value: u64) -> Self {
        let (name, value) = (Field::text(number::ATTRIBUTE_NAME, name), Field::varint(number::ATTRIBUTE_INT, value));
        let attribute = [name, value, Field::varint(number::ATTRIBUTE_TYPE, INT)];
        self.rest.push(Field::bytes(number::NODE_ATTRIBUTE, wire::write(&attribute)));
        self
    }

    /// Sets an attribute of several integers, whatever it was.
    fn set_ints(&mut self, name: &str, values: &[u64]) {
        self.drop_attribute(name);
        let values = values.iter().map(|value| Field::varint(number::ATTRIBUTE_INTS, *value));
        let ends = [Field::text(number::ATTRIBUTE_NAME, name), Field::varint(number::ATTRIBUTE_TYPE, INTS)];
        let attribute: Vec<Field<'_>> = ends.into_iter().chain(values).collect();
        self.rest.push(Field::bytes(number::NODE_ATTRIBUTE, wire::write(&attribute)));
    }

    fn drop_attribute(&mut self, name: &str) {
        let is_it = |bytes: &[u8]| {
            let fields = wire::parse(bytes).unwrap_or_default();
            wire::texts(&fields, number::ATTRIBUTE_NAME).any(|found| found == name)
        };
        self.rest.retain(|field| match &field.value {
            Value::Bytes(bytes) => field.number != number::NODE_ATTRIBUTE || !is_it(bytes),
            Value::Varint(_) | Value::Fixed32(_) | Value::Fixed64(_) => true,
        });
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let fields = wire::parse(bytes)?;
        let [kind] = &wire::texts(&fields, number::NODE_KIND).collect::<Vec<_>>()[..] else { return None };
        let inputs = wire::texts(&fields, number::NODE_INPUT).collect();
        let outputs = wire::texts(&fields, number::NODE_OUTPUT).collect();
        let known = [number::NODE_KIND, number::NODE_INPUT, number::NODE_OUTPUT];
        let kind = kind.clone();
        let rest = fields.into_iter().filter(|field| !known.contains(&field.number)).collect();
        Some(Self { kind, inputs, outputs, rest })
    }

    fn bytes(&self) -> Vec<u8> {
        let of = |number, texts: &[String]| texts.iter().map(|text| Field::text(number, text)).collect::<Vec<_>>();
        let kind = Field::text(number::NODE_KIND, &self.kind);
        let named = [of(number::NODE_INPUT, &self.inputs), of(number::NODE_OUTPUT, &self.outputs), vec![kind]].concat();
        wire::write(&named.into_iter().chain(self.rest.iter().cloned()).collect::<Vec<_>>())
    }

    fn output(&self) -> Option<&str> {
        self.outputs.first().map(String::as_str)
    }

    fn attribute(&self, name: &str) -> Option<Vec<Field<'_>>> {
        let attributes = self.rest.iter().filter(|field| field.number == number::NODE_ATTRIBUTE);
        let mut attributes = attributes.filter_map(|field| match &field.value {
            Value::Bytes(bytes) => wire::parse(bytes),
            Value::Varint(_) | Value::Fixed32(_) | Value::Fixed64(_) => None,
        });
        attributes.find(|fields| wire::texts(fields, number::ATTRIBUTE_NAME).any(|found| found == name))
    }

    fn attribute_int(&self, name: &str) -> Option<u64> {
        wire::varints(&self.attribute(name)?, number::ATTRIBUTE_INT)?.first().copied()
    }

    fn attribute_ints(&self, name: &str) -> Option<Vec<u64>> {
        wire::varints(&self.attribute(name)?, number::ATTRIBUTE_INTS)
    }
}
