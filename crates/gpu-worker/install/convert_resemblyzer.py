"""Writes Resemblyzer's speaker model as an ONNX graph from its checkpoint: convert_resemblyzer.py CHECKPOINT OUT.

Three LSTM layers, of whose last one the final state goes through a linear layer, a ReLU and to unit length. As with the
other conversion, the same checkpoint always gives the same bytes.

Input `mels` [batch, frames, 40] (parts of 160 frames), output `embedding` [batch, 256] (of unit length).
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import checkpoint

OPSET, IR_VERSION = 17, 8
HIDDEN, LAYERS, DIMENSION = 256, 3, 256

METADATA = {
    "source": "PyPI Resemblyzer 0.1.4 resemblyzer/pretrained.pt",
    "license": "Apache-2.0",
    "sample_rate": "16000",
    "output_dim": str(DIMENSION),
}


class Graph:
    """Collects nodes and weights; every node gets a name from its type and a running number."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, array, name):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind, inputs, outputs=None, **attributes):
        name = f"{kind}_{len(self.nodes) + 1}"
        outputs = outputs or [name]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, **attributes))
        return outputs[0]


def gates(values):
    """PyTorch's order of the gates (input, forget, cell, output) to that of ONNX (input, output, forget, cell)."""
    i, f, c, o = np.split(values, 4)
    return np.concatenate([i, o, f, c])


def build(state):
    g = Graph()
    x = g.op("Transpose", ["mels"], perm=[1, 0, 2])
    directions, layers = g.weight(np.array([1], np.int64), "axis1"), g.weight(np.array([0], np.int64), "axis0")
    for layer in range(LAYERS):
        read = lambda part: gates(state[f"lstm.{part}_l{layer}"])  # noqa: E731
        inputs = [x, g.weight(read("weight_ih")[None], f"W{layer}"), g.weight(read("weight_hh")[None], f"R{layer}")]
        inputs.append(g.weight(np.concatenate([read("bias_ih"), read("bias_hh")])[None], f"B{layer}"))
        if layer < LAYERS - 1:
            x = g.op("Squeeze", [g.op("LSTM", inputs, [f"Y{layer}"], hidden_size=HIDDEN), directions])
        else:
            g.op("LSTM", inputs, ["", f"Yh{layer}"], hidden_size=HIDDEN)
    y = g.op("Squeeze", [f"Yh{LAYERS - 1}", layers])
    linear = [g.weight(state["linear.weight"], "linW"), g.weight(state["linear.bias"], "linB")]
    y = g.op("Relu", [g.op("Gemm", [y, *linear], transB=1)])
    length = g.op("ReduceL2", [y], axes=[1], keepdims=1)
    length = g.op("Max", [length, g.weight(np.array([1e-12], np.float32), "eps")])
    g.op("Div", [y, length], ["embedding"])
    return g


def save(g, path):
    inputs = [helper.make_tensor_value_info("mels", TensorProto.FLOAT, ["batch", "frames", 40])]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", DIMENSION])]
    graph = helper.make_graph(g.nodes, "resemblyzer_ge2e", inputs, outputs, g.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="build_onnx.py")
    model.ir_version = IR_VERSION
    for key, value in METADATA.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    source, out = sys.argv[1:]
    save(build(checkpoint.load(source)["model_state"]), out)


if __name__ == "__main__":
    main()
