"""The shipped model behind Triton's Python backend, for a Triton without an ONNX backend. Needs numpy and onnxruntime.

SPEAKER_ONNX names the ONNX file.
"""

import os

import onnxruntime as ort
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = ort.InferenceSession(os.environ["SPEAKER_ONNX"], options, providers=["CPUExecutionProvider"])
        self.input = self.session.get_inputs()[0].name

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        features = pb.get_input_tensor_by_name(request, "feats").as_numpy()
        vectors = self.session.run(None, {self.input: features})[0]
        return pb.InferenceResponse([pb.Tensor("embs", vectors)])
