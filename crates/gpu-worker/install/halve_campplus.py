"""Writes the CAM++ graph in half precision, for devices: halve_campplus.py CAMPPLUS.onnx OUT

Weights and everything between the layers have sixteen bits; what goes in and comes out keeps its thirty-two. So do the
statistics over all frames and the last layer behind them, whose sums of squares grow with a clip's length. A batch
normalisation is written as the scale and shift that it amounts to: some variances are near 1e-5, which sixteen bits
cannot tell from the epsilon that is added to them. Nothing is run here, and the same graph always gives the same bytes.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# From here on in single precision.
STATISTICS = "ReduceMean"
EPSILON = 1e-5


class Halver:
    def __init__(self, model):
        self.graph = model.graph
        self.weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        known = onnx.shape_inference.infer_shapes(model).graph
        values = [*known.value_info, *known.input, *known.output]
        self.floats = {value.name for value in values if value.type.tensor_type.elem_type == TensorProto.FLOAT}
        self.nodes, self.made_half = [], set()

    def cast(self, source, to):
        """The tensor `source` in the precision `to`, under a name of its own, which is returned."""
        name = f"{source}.{'half' if to == TensorProto.FLOAT16 else 'single'}"
        if all(name not in node.output for node in self.nodes):
            self.nodes.append(helper.make_node("Cast", [source], [name], name=f"cast.{name}", to=to))
        return name

    def scale_and_shift(self, node):
        """A batch normalisation whose mean is zero and whose variance, with its epsilon, is one."""
        weight, bias, mean, variance = (self.weights[name].astype(np.float64) for name in node.input[1:])
        scale = weight / np.sqrt(variance + EPSILON)
        parameters = [scale, bias - mean * scale, np.zeros(len(scale)), np.full(len(scale), 1 - EPSILON)]
        self.weights.update((name, value.astype(np.float32)) for name, value in zip(node.input[1:], parameters))

    def run(self):
        names = [node.op_type for node in self.graph.node]
        first_single = len(names) - 1 - names[::-1].index(STATISTICS)
        given, half = self.graph.input[0].name, set()
        for index, node in enumerate(self.graph.node):
            if node.op_type == "BatchNormalization":
                self.scale_and_shift(node)
            is_half = index < first_single
            for place, name in enumerate(node.input):
                if is_half and name == given:
                    node.input[place] = self.cast(name, TensorProto.FLOAT16)
                elif is_half and name in self.weights:
                    half.add(name)
                elif not is_half and name in self.floats & self.made_half:
                    node.input[place] = self.cast(name, TensorProto.FLOAT)
            if is_half:
                self.made_half.update(node.output)
            self.nodes.append(node)
        self.write(half)

    def write(self, half):
        weights = {
            name: values.astype(np.float16) if name in half and values.dtype == np.float32 else values
            for name, values in self.weights.items()
        }
        del self.graph.node[:], self.graph.initializer[:], self.graph.value_info[:]
        self.graph.node.extend(self.nodes)
        self.graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in weights.items())


def main():
    source, out = sys.argv[1:]
    model = onnx.load(source)
    Halver(model).run()
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, out)


if __name__ == "__main__":
    main()
