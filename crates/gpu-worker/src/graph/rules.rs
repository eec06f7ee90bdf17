//! What is exchanged in a graph so that it costs less and means the same: the places where the CAM++ family wastes the time
//! of a core. docs/decisions/0012 has what each brings; [`wide`] has the third.
//!
//! ```text
//! Gather(mask, n / 100)                    ->  MatMul(mask, spread)     spread[s, n] = 1 where n / 100 = s
//! ReduceMean(y) + AveragePool(y, 100)      ->  MatMul(y, means)         means[n, s]  = spread / frames + 1 / T
//! convolutions over [N, C, T]              ->  over [N, C, 1, T]
//! ```
//! The first is exact, because all but one of the summands are zero. The other two differ by rounding, and are left
//! alone in a graph that rounds to eight bits: there rounding could tip a value over.

use std::collections::BTreeSet;

use super::{Graph, Node, wide};

/// Before each name that is added; no converter writes it.
const OURS: &str = "rollcall.";

/// The same model, cheaper; nothing when there is nothing to exchange.
pub(crate) fn faster(model: &[u8]) -> Option<Vec<u8>> {
    let mut graph = Graph::parse(model)?;
    let rounds = graph.nodes.iter().any(|node| node.kind == "QuantizeLinear");
    let spread = Segments::find(&graph).is_some_and(|segments| segments.exchange(&mut graph, !rounds));
    let widened = !rounds && wide::widen(&mut graph);
    (spread || widened).then(|| graph.bytes())
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
