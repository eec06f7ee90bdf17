//! Convolutions over one axis, written as convolutions over two of which the first has length one.
//!
//! The mathematics is the same. The runtime has kernels that keep channels in blocks and need no packing, and uses them
//! for two axes only: on x86-64 they do a convolution of width one in nine tenths of the time.
//!
//! A row of such kernels ends where something else stands between two of them, and everything is put into blocks again
//! behind it. That would be each time the mask of a layer is multiplied in: the product is small, but it joins all that
//! the layers before it gave. So the product passes through a convolution that changes nothing, and only it is put into
//! blocks.

use std::collections::BTreeSet;

use super::{FLOAT32, Graph, Node};

/// The axes attribute that means the last one, as it is written: minus one.
const LAST: u64 = u64::MAX;
/// Before each name that is added; no converter writes it.
const OURS: &str = "rollcall.wide.";

/// Widens everything behind a reshape to [N, C, T]. False, and nothing done, when something there is not understood.
pub(super) fn widen(graph: &mut Graph<'_>) -> bool {
    if !cfg!(target_arch = "x86_64") {
        return false;
    }
    let mut widening = Widening::default();
    for node in &graph.nodes {
        let mut node = node.clone();
        if widening.node(graph, &mut node).is_none() {
            return false;
        }
        let same = widening.same(graph, &mut node);
        widening.nodes.push(node);
        widening.nodes.extend(same);
    }
    let Widening { nodes, dims, constants, narrow, ones } = widening;
    if narrow.is_empty() {
        return false;
    }
    graph.nodes = nodes;
    for channels in ones {
        let count = usize::try_from(channels).unwrap_or(0);
        graph.set(&ones_of(channels), &[channels, 1, 1, 1], FLOAT32, 1.0_f32.to_le_bytes().repeat(count));
    }
    dims.iter().for_each(|(name, dims)| graph.set_dims(name, dims));
    constants.iter().for_each(|(name, values)| graph.set_ints(name, &[values.len() as u64], values));
    true
}

#[derive(Default)]
struct Widening<'a> {
    nodes: Vec<Node<'a>>,
    dims: Vec<(String, Vec<u64>)>,
    constants: Vec<(String, Vec<i64>)>,
    /// Tensors that were [N, C, T] and will be [N, C, 1, T].
    narrow: BTreeSet<String>,
    /// Numbers of channels for which a convolution that changes nothing is needed.
    ones: BTreeSet<u64>,
}

impl Widening<'_> {
    fn node(&mut self, graph: &Graph<'_>, node: &mut Node<'_>) -> Option<()> {
        if node.kind == "Reshape" && !self.takes_narrow(node) {
            return self.entry(graph, node);
        }
        if !self.takes_narrow(node) {
            return Some(());
        }
        match &*node.kind {
            "Conv" => self.conv(graph, node)?,
            "Add" | "Mul" | "Sub" | "Div" | "MatMul" => self.has_small_constants(graph, node).then_some(())?,
            "BatchNormalization" | "Relu" | "Sigmoid" | "Sqrt" => {}
            "Concat" => (node.attribute_int("axis") == Some(1)).then_some(())?,
            "ReduceMean" => (node.attribute_ints("axes") == Some(vec![LAST]) && keeps(node)).then_some(())?,
            "ReduceSum" => (graph.ints(node.inputs.get(1)?)? == [-1] && keeps(node)).then_some(())?,
            "Shape" => return length(node),
            "Squeeze" => return self.exit(graph, node),
            _ => return None,
        }
        self.narrow.extend(node.outputs.iter().cloned());
        Some(())
    }

    /// A convolution that changes nothing, behind the product of a mask and what a convolution gave.
    fn same(&mut self, graph: &Graph<'_>, node: &mut Node<'_>) -> Option<Node<'static>> {
        let [local, mask] = &node.inputs[..] else { return None };
        let mask = graph.giver(mask).filter(|giver| node.kind == "Mul" && giver.kind == "MatMul")?;
        let local = graph.giver(local).filter(|giver| giver.kind == "Conv")?;
        mask.output().filter(|mask| self.narrow.contains(*mask))?;
        let channels = *graph.dims(local.inputs.get(1)?)?.first()?;
        let output = node.outputs.first_mut()?;
        let inner = format!("{OURS}{output}");
        let given = std::mem::replace(output, inner);
        self.ones.insert(channels);
        let mut same = Node::new("Conv", &[output, &ones_of(channels)], &given).with_int("group", channels);
        same.set_ints("kernel_shape", &[1, 1]);
        Some(same)
    }

    fn takes_narrow(&self, node: &Node<'_>) -> bool {
        node.inputs.iter().any(|input| self.narrow.contains(input))
    }

    fn constant(&mut self, name: &str, values: &[i64]) -> String {
        let name = format!("{OURS}{name}");
        self.constants.push((name.clone(), values.to_vec()));
        name
    }

    /// Any other reshape is none of ours.
    fn entry(&mut self, graph: &Graph<'_>, node: &mut Node<'_>) -> Option<()> {
        let shape = node.inputs.get(1).and_then(|shape| graph.ints(shape));
        if let Some([0, channels, -1]) = shape.as_deref() {
            let shape = self.constant("shape", &[0, *channels, 1, -1]);
            *node.inputs.get_mut(1)? = shape;
            self.narrow.extend(node.outputs.iter().cloned());
        }
        Some(())
    }

    fn conv(&mut self, graph: &Graph<'_>, node: &mut Node<'_>) -> Option<()> {
        let weight = node.inputs.get(1)?;
        let [out, into, width] = graph.dims(weight)?[..] else { return None };
        self.dims.push((weight.clone(), vec![out, into, 1, width]));
        node.set_ints("kernel_shape", &[1, width]);
        for name in ["strides", "dilations"] {
            if let Some(along) = node.attribute_ints(name) {
                node.set_ints(name, &[1, *along.first()?]);
            }
        }
        if let Some(pads) = node.attribute_ints("pads") {
            let [before, after] = pads[..] else { return None };
            node.set_ints("pads", &[0, before, 0, after]);
        }
        node.attribute("auto_pad").is_none().then_some(())
    }

    /// A constant beside a tensor of three axes may have three itself; one value alone fits any.
    fn has_small_constants(&self, graph: &Graph<'_>, node: &Node<'_>) -> bool {
        let mut constants = node.inputs.iter().filter_map(|input| graph.dims(input));
        constants.all(|dims| dims.iter().product::<u64>() == 1)
    }

    /// The axis of length one goes together with the new one.
    fn exit(&mut self, graph: &Graph<'_>, node: &mut Node<'_>) -> Option<()> {
        (graph.ints(node.inputs.get(1)?)? == [2]).then_some(())?;
        let axes = self.constant("axes", &[2, 3]);
        *node.inputs.get_mut(1)? = axes;
        Some(())
    }
}

fn ones_of(channels: u64) -> String {
    format!("{OURS}ones.{channels}")
}

/// How many frames there are: the third of three is the fourth of four.
fn length(node: &mut Node<'_>) -> Option<()> {
    (node.attribute_int("start") == Some(2) && node.attribute_int("end") == Some(3)).then_some(())?;
    node.drop_attribute("start");
    node.drop_attribute("end");
    let widened = node.clone().with_int("start", 3).with_int("end", 4);
    *node = widened;
    Some(())
}

fn keeps(node: &Node<'_>) -> bool {
    node.attribute_int("keepdims").unwrap_or(1) == 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::graph::{Field, INT64, number, wire};

    /// Reshape, a convolution of width three, `kind`, and the squeeze.
    fn graph(kind: &str) -> Graph<'static> {
        let mut conv = Node::new("Conv", &["a", "weight"], "b");
        conv.set_ints("kernel_shape", &[3]);
        conv.set_ints("pads", &[1, 1]);
        let middle = Node::new(kind, &["b"], "c");
        let nodes =
            vec![Node::new("Reshape", &["x", "shape"], "a"), conv, middle, Node::new("Squeeze", &["c", "axes"], "y")];
        let mut graph = Graph { model: Vec::new(), rest: Vec::new(), nodes, weights: BTreeMap::new() };
        graph.set_ints("shape", &[3], &[0, 320, -1]);
        graph.set_ints("axes", &[1], &[2]);
        graph.set_ints("weight", &[4, 2, 3], &[0; 24]);
        let output = wire::write(&[Field::text(number::VALUE_NAME, "y")]);
        graph.rest.push(Field::bytes(number::GRAPH_OUTPUT, output));
        graph
    }

    #[test]
    fn every_axis_of_a_convolution_behind_the_reshape_gets_a_neighbour_of_length_one() {
        let mut graph = graph("Relu");
        assert_eq!(widen(&mut graph), cfg!(target_arch = "x86_64"));
        if !cfg!(target_arch = "x86_64") {
            return;
        }
        // Through the wire, as the runtime gets it.
        let bytes = graph.bytes();
        let graph = Graph::parse(&bytes).unwrap();
        let [reshape, conv, _, squeeze] = &graph.nodes[..] else { panic!("no node came or went") };
        assert_eq!(graph.ints(&reshape.inputs[1]).unwrap(), [0, 320, 1, -1]);
        assert_eq!(graph.ints(&squeeze.inputs[1]).unwrap(), [2, 3]);
        assert_eq!(conv.attribute_ints("kernel_shape").unwrap(), [1, 3]);
        assert_eq!(conv.attribute_ints("pads").unwrap(), [0, 1, 0, 1]);
        assert_eq!(graph.dims("weight").unwrap(), [4, 2, 1, 3]);
        assert_eq!(graph.raw("weight", INT64).unwrap().1.len(), 24 * 8);
        assert_eq!(graph.outputs(), ["y"]);
    }

    #[test]
    fn a_graph_with_anything_else_in_it_is_left_alone() {
        for kind in ["Softmax", "AveragePool", "Transpose"] {
            let mut graph = graph(kind);
            let before = graph.bytes();
            assert!(!widen(&mut graph));
            assert_eq!(graph.bytes(), before, "{kind}");
        }
    }
}
