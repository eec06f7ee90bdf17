"""Measures the ranges that the eight-bit CAM++ needs: campplus_ranges.py CAMPPLUS.onnx FOLDER > RANGES.json

FOLDER holds speech as WAV or FLAC at 16 kHz, mono, in any subfolders; what is committed as
crates/gpu-worker/install/campplus_ranges.json was measured on the demo's voices (.rollcall/voices, from
scripts/voices.sh). The first and the middle three seconds of each file are heard, clean and with noise at 10 dB, so that
the ranges hold for a room too. Needs numpy, onnx, onnxruntime and soundfile.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import soundfile

ROOT = pathlib.Path(__file__).parent.parent / "crates/gpu-worker"
sys.path += [str(ROOT / "install")]
import quantize_campplus  # noqa: E402

SECONDS, RATE = 3, 16000


def log_mel(wave: np.ndarray) -> np.ndarray:
    def mel(hertz):
        return 1127.0 * np.log(1.0 + hertz / 700.0)

    low, high = mel(20.0), mel(8000.0)
    step = (high - low) / 81
    bins = mel(np.arange(256) * RATE / 512)[None, :]
    bank = np.maximum(0, 1 - np.abs(bins - low - step * np.arange(1, 81)[:, None]) / step)
    frames = np.lib.stride_tricks.sliding_window_view(wave, 400)[::160]
    frames = frames - frames.mean(1, keepdims=True)
    before = np.concatenate([frames[:, :1], frames[:, :-1]], 1)
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)) ** 0.85
    power = np.abs(np.fft.rfft((frames - 0.97 * before) * window, 512, axis=1)) ** 2
    features = np.log(np.maximum(power[:, :256] @ bank.T, np.finfo(np.float32).eps))
    return (features - features.mean(0)).astype(np.float32)


def clips(folder: pathlib.Path):
    noise = np.random.default_rng(1)
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".wav", ".flac")):
        wave, rate = soundfile.read(path)
        if rate != RATE or wave.ndim > 1 or len(wave) < SECONDS * RATE:
            continue
        for start in sorted({0, (len(wave) - SECONDS * RATE) // 2}):
            clip = wave[start : start + SECONDS * RATE]
            yield clip
            yield clip + noise.standard_normal(len(clip)) * np.sqrt(np.mean(clip**2) / 10)


def main() -> None:
    model = onnx.load(sys.argv[1])
    names = quantize_campplus.quantized_tensors(model.graph)
    for name in names:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    ranges, heard = {}, 0
    for clip in clips(pathlib.Path(sys.argv[2])):
        features = log_mel(clip)[None]
        heard += 1
        for name, values in zip(names, session.run(names, {"x": features})):
            low, high = ranges.get(name, (0.0, 0.0))
            ranges[name] = (min(low, float(values.min())), max(high, float(values.max())))
    print(f"{heard} clips of {SECONDS} s", file=sys.stderr)
    assert heard, "there is no speech in that folder"
    rows = (f'"{name}":[{ranges[name][0]:.5g},{ranges[name][1]:.5g}]' for name in names)
    print("{\n" + ",\n".join(rows) + "\n}")


main()
