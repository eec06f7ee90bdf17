//! What is exchanged in a graph so that it costs less and means the same: the three places where the CAM++ family wastes
//! the time of one core. docs/decisions/0012 has what each brings.
//!
//! ```text
//! Gather(mask, n / 100)                             ->  MatMul(mask, spread)      spread[s, n] = 1 where n / 100 = s
//! ReduceMean(y) + AveragePool(y, 100)               ->  MatMul(y, means)          means[n, s]  = spread / frames + 1 / T
//! Conv(Relu(BatchNormalization(x))), scale > 0      ->  Conv'(Max(x, floor))      floor = -shift / scale
//! ```
//! The first is exact, because all but one of the summands are zero. The other two differ by rounding, and are left
//! alone in a graph that rounds to eight bits: there rounding could tip a value over.

use std::collections::BTreeSet;

use super::{Floats, Graph, Node};

/// Before each name that is added; no converter writes it.
const OURS: &str = "rollcall.";

/// The same model, cheaper; nothing when there is nothing to exchange.
pub(crate) fn faster(model: &[u8]) -> Option<Vec<u8>> {
    let mut graph = Graph::parse(model)?;
    let rounds = graph.nodes.iter().any(|node| node.kind == "QuantizeLinear");
    let spread = Segments::find(&graph).is_some_and(|segments| segments.exchange(&mut graph, !rounds));
    let folded = !rounds && fold_norms(&mut graph);
    (spread || folded).then(|| graph.bytes())
}

/// Frames in segments of equal length: which segment each belongs to.
struct Segments {
    /// The tensor of segment numbers, one a frame.
    of_frame: String,
    /// How many frames there are.
    frames: String,
    /// Frames in a segment.
    length: u64,
}

impl Segments {
    fn find(graph: &Graph<'_>) -> Option<Self> {
        graph.nodes.iter().filter(|node| node.kind == "Div").find_map(|div| {
            let [range, length] = &div.inputs[..] else { return None };
            let range = graph.giver(range).filter(|node| node.kind == "Range")?;
            let [_, frames, _] = &range.inputs[..] else { return None };
            let length = u64::try_from(graph.int(length)?).ok()?;
            Some(Self { of_frame: div.output()?.to_owned(), frames: frames.clone(), length })
        })
    }

    fn exchange(&self, graph: &mut Graph<'_>, means_too: bool) -> bool {
        let nodes = graph.nodes.iter();
        let exchanged: Vec<_> = nodes
            .enumerate()
            .filter_map(|(at, node)| {
                let mask = self.spread_mask(graph, node).map(|mask| (mask, "spread"));
                let means = || self.means_of(graph, node).filter(|_| means_too).map(|frames| (frames, "means"));
                let (input, matrix) = mask.or_else(means)?;
                let matrix = format!("{OURS}{matrix}");
                Some((at, Node::new("MatMul", &[&input, &matrix], node.output()?)))
            })
            .collect();
        let any = !exchanged.is_empty();
        for (at, node) in exchanged {
            if let Some(place) = graph.nodes.get_mut(at) {
                *place = node;
            }
        }
        if any {
            self.add_matrices(graph);
            drop_unused(graph);
        }
        any
    }

    /// The mask that `node` spreads over the frames.
    fn spread_mask(&self, graph: &Graph<'_>, node: &Node<'_>) -> Option<String> {
        let [mask, index] = &node.inputs[..] else { return None };
        let along_frames = node.kind == "Gather" && *index == self.of_frame && node.attribute_int("axis") == Some(2);
        let sigmoid = graph.giver(mask).filter(|giver| along_frames && giver.kind == "Sigmoid")?;
        let conv = graph.giver(sigmoid.inputs.first()?)?;
        // A convolution over one axis: the frames are the last of three.
        (conv.kind == "Conv" && conv.attribute_ints("kernel_shape")?.len() == 1).then(|| mask.clone())
    }

    /// What `node` adds the mean over all frames to the means over the segments of.
    fn means_of(&self, graph: &Graph<'_>, node: &Node<'_>) -> Option<String> {
        let [whole, parts] = &node.inputs[..] else { return None };
        let whole = graph.giver(whole).filter(|giver| node.kind == "Add" && giver.kind == "ReduceMean")?;
        let parts = graph.giver(parts).filter(|giver| giver.kind == "AveragePool")?;
        let length = Some(vec![self.length]);
        let plain = whole.attribute_ints("axes") == Some(vec![u64::MAX])
            && whole.attribute_int("keepdims") == Some(1)
            && parts.attribute_ints("kernel_shape") == length
            && parts.attribute_ints("strides") == length
            && parts.attribute_int("ceil_mode") == Some(1)
            && parts.attribute_int("count_include_pad").unwrap_or(0) == 0
            && parts.attribute("pads").is_none();
        let frames = whole.inputs.first().filter(|frames| plain && parts.inputs.first() == Some(frames))?;
        Some(frames.clone())
    }

    /// Adds what computes both matrices, behind the segment numbers. It is a few thousand values, once a run.
    fn add_matrices(&self, graph: &mut Graph<'_>) {
        graph.set_ints("rollcall.zero", &[], &[0]);
        graph.set_ints("rollcall.one", &[], &[1]);
        graph.set_ints("rollcall.axis", &[1], &[1]);
        let (index, frames) = (&*self.of_frame, &*self.frames);
        let added = [
            Node::new("ReduceMax", &[index], "rollcall.last").with_int("keepdims", 0),
            Node::new("Add", &["rollcall.last", "rollcall.one"], "rollcall.count"),
            Node::new("Range", &["rollcall.zero", "rollcall.count", "rollcall.one"], "rollcall.numbers"),
            Node::new("Unsqueeze", &["rollcall.numbers", "rollcall.axis"], "rollcall.column"),
            Node::new("Equal", &["rollcall.column", index], "rollcall.within"),
            Node::new("Cast", &["rollcall.within"], "rollcall.spread").with_int("to", super::FLOAT32),
            Node::new("ReduceSum", &["rollcall.spread", "rollcall.axis"], "rollcall.sizes").with_int("keepdims", 1),
            Node::new("Div", &["rollcall.spread", "rollcall.sizes"], "rollcall.shares"),
            Node::new("Cast", &[frames], "rollcall.frames").with_int("to", super::FLOAT32),
            Node::new("Reciprocal", &["rollcall.frames"], "rollcall.share"),
            Node::new("Add", &["rollcall.shares", "rollcall.share"], "rollcall.rows"),
            Node::new("Transpose", &["rollcall.rows"], "rollcall.means"),
        ];
        let at = graph.nodes.iter().position(|node| node.output() == Some(index)).map_or(0, |at| at + 1);
        graph.nodes.splice(at..at, added);
    }
}

/// Drops nodes whose outputs nobody takes, and then those that only such nodes took.
fn drop_unused(graph: &mut Graph<'_>) {
    let given = graph.outputs();
    loop {
        let before = graph.nodes.len();
        let taken: BTreeSet<String> = graph.nodes.iter().flat_map(|node| node.inputs.clone()).collect();
        let wanted = |output: &String| taken.contains(output) || given.contains(output);
        graph.nodes.retain(|node| node.outputs.iter().any(wanted));
        if graph.nodes.len() == before {
            return;
        }
    }
}

/// Folds each batch normalisation before a rectifier and a convolution of width one into that convolution.
///
/// With a positive scale, relu(scale * x + shift) = scale * max(x, -shift / scale) + shift, and the convolution takes in
/// what is left of it: one pass over the values in place of two.
fn fold_norms(graph: &mut Graph<'_>) -> bool {
    let places: Vec<usize> = (0..graph.nodes.len())
        .filter(|at| graph.nodes.get(*at).is_some_and(|n| n.kind == "BatchNormalization"))
        .collect();
    let mut dropped = Vec::new();
    for at in places {
        dropped.extend(fold_norm(graph, at));
    }
    graph.nodes.retain(|node| !node.outputs.is_empty());
    !dropped.is_empty()
}

fn fold_norm(graph: &mut Graph<'_>, at: usize) -> Option<()> {
    let norm = graph.nodes.get(at)?.clone();
    let relu = graph.only_taker(norm.output()?).filter(|node| node.kind == "Relu")?;
    let rectified = relu.output()?.to_owned();
    let conv = graph.only_taker(&rectified).filter(|node| node.kind == "Conv")?;
    let narrow = conv.attribute_ints("kernel_shape") == Some(vec![1]) && conv.attribute_int("group").unwrap_or(1) == 1;
    let plain = narrow && conv.attribute("pads").is_none() && conv.inputs.first() == Some(&rectified);
    let [x, parts @ ..] = &norm.inputs[..] else { return None };
    let (scale, shift) = affine(graph, parts, norm.attribute_float("epsilon").unwrap_or(1e-5))?;
    let weight = graph.floats(conv.inputs.get(1)?).filter(|_| plain && scale.iter().all(|scale| *scale > 0.0))?;
    let bias = conv.inputs.get(2).map(|name| graph.floats(name));
    let bias = bias.map_or_else(|| Some(Vec::new()), |bias| bias.map(|bias| bias.values))?;
    let conv_at = graph.nodes.iter().position(|node| node.inputs.first() == Some(&rectified))?;
    let relu_at = graph.nodes.iter().position(|node| node.output() == Some(&rectified))?;

    let (floor, name) = (format!("{OURS}floor.{at}"), [format!("{OURS}weight.{at}"), format!("{OURS}bias.{at}")]);
    let floors = scale.iter().zip(&shift).map(|(scale, shift)| -shift / scale).collect();
    graph.set_floats(&floor, &Floats { dims: vec![1, scale.len() as u64, 1], values: floors });
    let rows = weight.values.chunks_exact(scale.len());
    let own = bias.into_iter().chain(std::iter::repeat(0.0));
    let shifted = rows.zip(own).map(|(row, own)| own + row.iter().zip(&shift).map(|(w, shift)| w * shift).sum::<f64>());
    let shifted: Vec<f64> = shifted.collect();
    let scaled = weight.values.iter().zip(scale.iter().cycle()).map(|(w, scale)| w * scale).collect();
    graph.set_floats(&name[0], &Floats { dims: weight.dims, values: scaled });
    graph.set_floats(&name[1], &Floats { dims: vec![shifted.len() as u64], values: shifted });
    graph.nodes.get_mut(conv_at)?.inputs = [rectified.clone()].into_iter().chain(name).collect();
    // The rectifier goes: its output is the maximum's now.
    graph.nodes.get_mut(relu_at)?.outputs.clear();
    *graph.nodes.get_mut(at)? = Node::new("Max", &[x, &floor], &rectified);
    Some(())
}

/// What a batch normalisation multiplies each channel by and adds to it.
fn affine(graph: &Graph<'_>, parts: &[String], epsilon: f32) -> Option<(Vec<f64>, Vec<f64>)> {
    let [scale, shift, mean, variance] = parts else { return None };
    let of = |name: &String| graph.floats(name).map(|floats| floats.values);
    let (scale, shift, mean, variance) = (of(scale)?, of(shift)?, of(mean)?, of(variance)?);
    let alike = [&shift, &mean, &variance].iter().all(|values| values.len() == scale.len()) && !scale.is_empty();
    let factors = scale.iter().zip(&variance).map(|(scale, variance)| scale / (variance + f64::from(epsilon)).sqrt());
    let factors: Vec<f64> = factors.collect();
    let sums = factors.iter().zip(shift.iter().zip(&mean)).map(|(factor, (shift, mean))| shift - mean * factor);
    let sums = sums.collect();
    alike.then_some((factors, sums))
}
