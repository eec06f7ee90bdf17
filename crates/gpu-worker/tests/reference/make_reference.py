"""Makes the reference vectors in this folder: make_reference.py MODEL.onnx (needs numpy and onnxruntime 1.32.0).

The signals are three chirps and seeded noise, made of integer arithmetic and of additions and multiplications of
doubles, so that the Rust test makes the same samples bit by bit. The noise keeps every mel band far above the rounding
of a single-precision transform. The front end here is written in matrix form with numpy, independently of the Rust one.
"""

import math
import pathlib
import sys

import numpy as np
import onnxruntime

HERE = pathlib.Path(__file__).parent
RATE = 16000
# Name, seed and samples of each signal. The last three have equal lengths, so they make a batch.
SIGNALS = [("short", 1, 24000), ("long_a", 2, 48000), ("long_b", 3, 48000), ("long_c", 4, 48000)]
# Rows kept of the longer signal's features.
EVERY = 8


def signal(seed: int, count: int) -> np.ndarray:
    state, samples = seed, np.zeros(count, np.int16)
    phases = [0.0, 0.0, 0.0]
    for n in range(count):
        value = 0.0
        for k in range(3):
            start, end = 90.0 * (k + 1) + 35.0 * seed, 700.0 * (k + 1) + 150.0 * seed
            phase = phases[k] + (start + (end - start) * (n / count)) / RATE
            phases[k] = phase - math.floor(phase)
            p = 2.0 * phases[k] - 1.0
            value += 0.6 * p * (1.0 - abs(p))
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        noise = ((state >> 48) - 32768) / 32768.0
        samples[n] = math.floor((value + 0.03 * noise) * 32767.0 + 0.5)
    return samples


def mel(hertz):
    return 1127.0 * np.log(1.0 + hertz / 700.0)


def bank() -> np.ndarray:
    low, high = mel(20.0), mel(8000.0)
    step = (high - low) / 81
    centres = low + step * np.arange(1, 81)[:, None]
    bins = mel(np.arange(256) * RATE / 512)[None, :]
    return np.maximum(0, 1 - np.abs(bins - centres) / step)


def log_mel(samples: np.ndarray) -> np.ndarray:
    wave = samples.astype(np.float64) / 32768.0
    frames = np.lib.stride_tricks.sliding_window_view(wave, 400)[::160]
    frames = frames - frames.mean(1, keepdims=True)
    before = np.concatenate([frames[:, :1], frames[:, :-1]], 1)
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)) ** 0.85
    power = np.abs(np.fft.rfft((frames - 0.97 * before) * window, 512, axis=1)) ** 2
    return np.log(np.maximum(power[:, :256] @ bank().T, np.finfo(np.float32).eps))


def main() -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
    embeddings = []
    for name, seed, count in SIGNALS:
        raw = log_mel(signal(seed, count))
        features = raw - raw.mean(0, keepdims=True)
        if name == "short":
            raw.astype("<f4").tofile(HERE / "short.log_mel.f32")
            features.astype("<f4").tofile(HERE / "short.features.f32")
        if name == "long_a":
            features[::EVERY].astype("<f4").tofile(HERE / "long_a.features.f32")
        vector = session.run(None, {"x": features[None].astype(np.float32)})[0][0]
        embeddings.append(vector / np.linalg.norm(vector))
    np.array(embeddings).astype("<f4").tofile(HERE / "embeddings.f32")
    print(np.round(1 - np.array(embeddings) @ np.array(embeddings).T, 3))


main()
