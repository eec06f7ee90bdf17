"""Writes the CAM++ graph with its large convolutions in eight bits: quantize_campplus.py CAMPPLUS.onnx RANGES.json OUT

Each of these convolutions gets its input and weights through QuantizeLinear and DequantizeLinear, which the runtime
fuses into one integer operation: activations unsigned with one scale a tensor, weights signed with one scale an output
channel. The activations' ranges were measured on speech and lie beside this script (scripts/campplus_ranges.py), so
nothing is run here and the same graph always gives the same bytes. A ReLU behind a convolution is dropped: the lower
end of its range is zero, so quantising its output cuts off the same values. The context convolutions and the last layer
stay as they are: they see a hundredth of the frames, and cost more to quantise than they save.
"""

import json
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper


SMALL = ("cam_layer.linear1", "cam_layer.linear2", "dense")


def is_large(node) -> bool:
    return node.op_type == "Conv" and not any(part in node.input[1] for part in SMALL)


def result_of(node, graph) -> str:
    """The tensor behind a convolution whose range counts: that behind its ReLU, where it has one."""
    after = [other for other in graph.node if node.output[0] in other.input]
    return after[0].output[0] if [other.op_type for other in after] == ["Relu"] else node.output[0]


def quantized_tensors(graph) -> list:
    """The activations that are quantised, in the order of the graph."""
    names = {}
    for node in filter(is_large, graph.node):
        names[node.input[0]] = names[result_of(node, graph)] = None
    return list(names)


def scale_of(low: float, high: float):
    """Scale and zero point that keep zero exact."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = np.float32((high - low) / 255)
    return scale, np.uint8(min(255, max(0, round(-low / scale))))


class Quantizer:
    def __init__(self, model, ranges):
        self.graph, self.ranges = model.graph, ranges
        self.weights = {tensor.name: tensor for tensor in model.graph.initializer}
        self.tensors, self.nodes = [], []

    def constant(self, name, value):
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, kind, inputs, output, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], name=name, **attributes))

    def pair(self, name, source):
        """The tensor `source` under the name `name`, there and back."""
        scale, zero = self.scales[name]
        parameters = [self.constant(f"{name}.scale", scale), self.constant(f"{name}.zero", zero)]
        self.node("QuantizeLinear", [source, *parameters], f"{name}.q", f"{name}.quantize")
        self.node("DequantizeLinear", [f"{name}.q", *parameters], f"{name}.dq", f"{name}.dequantize")

    def weight(self, node):
        """The weights of a convolution, a scale a channel, and its bias in the product's scale."""
        name = node.input[1]
        values = numpy_helper.to_array(self.weights[name])
        scales = np.abs(values).reshape(len(values), -1).max(1).astype(np.float32) / np.float32(127)
        scales = np.where(scales == 0, np.float32(1), scales)
        column = scales.reshape(-1, *[1] * (values.ndim - 1))
        parts = [(name, np.clip(np.rint(values / column), -127, 127).astype(np.int8), scales)]
        if len(node.input) > 2:
            product = scales * self.scales[node.input[0]][0]
            bias = np.rint(numpy_helper.to_array(self.weights[node.input[2]]) / product)
            parts.append((node.input[2], bias.astype(np.int32), product))
        for part, integers, by in parts:
            inputs = [self.constant(f"{part}.q", integers), self.constant(f"{part}.scale", by)]
            inputs.append(self.constant(f"{part}.zero", np.zeros(len(by), integers.dtype)))
            self.node("DequantizeLinear", inputs, f"{part}.dq", f"{part}.dequantize", axis=0)
            self.weights.pop(part)
        return [f"{part}.dq" for part, _, _ in parts]

    def run(self):
        names = quantized_tensors(self.graph)
        self.scales = {name: scale_of(*self.ranges[name]) for name in names}
        large = {node.output[0]: result_of(node, self.graph) for node in filter(is_large, self.graph.node)}
        for node in self.graph.node:
            if node.op_type == "Relu" and large.get(node.input[0]) == node.output[0]:
                continue
            if node.output[0] in large:
                node.input[:] = [f"{node.input[0]}.dq", *self.weight(node)]
                self.nodes.append(node)
                self.pair(large[node.output[0]], node.output[0])
                continue
            node.input[:] = [f"{name}.dq" if name in self.scales else name for name in node.input]
            self.nodes.append(node)
            if node.output[0] in self.scales:
                self.pair(node.output[0], node.output[0])
        del self.graph.node[:], self.graph.initializer[:]
        self.graph.node.extend(self.nodes)
        self.graph.initializer.extend(list(self.weights.values()) + self.tensors)


def main():
    source, ranges, out = sys.argv[1:]
    model = onnx.load(source)
    with open(ranges) as file:
        Quantizer(model, json.load(file)).run()
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, out)


if __name__ == "__main__":
    main()
