"""Makes the reference vectors in this folder: make_reference.py CAMPPLUS.onnx RESEMBLYZER.onnx

Needs numpy and onnxruntime 1.32.0. Where kaldi-native-fbank and librosa are installed too, the features made here are
held against theirs, and the largest difference is printed.

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
POVEY = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)) ** 0.85
HAMMING = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / 399)


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


def kaldi_mel(hertz):
    return 1127.0 * np.log(1.0 + hertz / 700.0)


def bank() -> np.ndarray:
    low, high = kaldi_mel(20.0), kaldi_mel(8000.0)
    step = (high - low) / 81
    centres = low + step * np.arange(1, 81)[:, None]
    bins = kaldi_mel(np.arange(256) * RATE / 512)[None, :]
    return np.maximum(0, 1 - np.abs(bins - centres) / step)


def log_mel(samples: np.ndarray, scale: float = 1.0, window: np.ndarray = POVEY) -> np.ndarray:
    """Kaldi's features, of samples whose full scale is `scale`."""
    wave = samples.astype(np.float64) / 32768.0 * scale
    frames = np.lib.stride_tricks.sliding_window_view(wave, 400)[::160]
    frames = frames - frames.mean(1, keepdims=True)
    before = np.concatenate([frames[:, :1], frames[:, :-1]], 1)
    power = np.abs(np.fft.rfft((frames - 0.97 * before) * window, 512, axis=1)) ** 2
    return np.log(np.maximum(power[:, :256] @ bank().T, np.finfo(np.float32).eps))


def slaney_bank() -> np.ndarray:
    """40 triangles of area one, on a scale that is linear to 1000 Hz and logarithmic above."""
    growth = math.log(6.4) / 27
    mels = np.linspace(0, 15 + math.log(8.0) / growth, 42)
    edges = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp(growth * (mels - 15)))
    bins = np.arange(201) * RATE / 400
    left, centre, right = (edges[i : i + 40, None] for i in range(3))
    height = np.maximum(0, np.minimum((bins - left) / (centre - left), (right - bins) / (right - centre)))
    return height * 2 / (right - left)


def mel(wave: np.ndarray) -> np.ndarray:
    """librosa.feature.melspectrogram(y=wave, sr=16000, n_fft=400, hop_length=160, n_mels=40).T"""
    padded = np.pad(wave, 200)
    frames = np.lib.stride_tricks.sliding_window_view(padded, 400)[::160]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    return np.abs(np.fft.rfft(frames * hann, axis=1)) ** 2 @ slaney_bank().T


def parts(samples: np.ndarray) -> np.ndarray:
    """The parts of 160 frames that Resemblyzer averages, at 1.3 parts a second, of the raised clip."""
    wave = samples.astype(np.float64) / 32768.0
    missing = -30 - 10 * math.log10(np.mean(wave**2))
    wave = wave * 10 ** (max(missing, 0) / 20)
    step = round(16000 / 1.3 / 160)
    starts = list(range(0, max(1, math.ceil((len(wave) + 1) / 160) - 160 + step + 1), step))
    if len(starts) > 1 and (len(wave) - starts[-1] * 160) / 25600 < 0.75:
        starts.pop()
    end = (starts[-1] + 160) * 160
    rows = mel(np.pad(wave, (0, max(0, end - len(wave)))))
    return np.stack([rows[start : start + 160] for start in starts])


def hold_against_originals(samples: np.ndarray) -> None:
    """Prints how far the features made here lie from those of the libraries they follow."""
    wave = samples.astype(np.float32) / 32768.0
    try:
        import kaldi_native_fbank
    except ImportError:
        print("kaldi-native-fbank is not installed")
    else:
        for scale, window, name in ((1.0, POVEY, "povey"), (32768.0, HAMMING, "hamming")):
            options = kaldi_native_fbank.FbankOptions()
            options.frame_opts.dither, options.frame_opts.window_type = 0, name
            options.mel_opts.num_bins, options.mel_opts.high_freq = 80, 0
            fbank = kaldi_native_fbank.OnlineFbank(options)
            fbank.accept_waveform(RATE, (wave * scale).tolist())
            theirs = np.stack([fbank.get_frame(i) for i in range(fbank.num_frames_ready)])
            print("kaldi-native-fbank", name, np.abs(theirs - log_mel(samples, scale, window)).max())
    try:
        import librosa
    except ImportError:
        print("librosa is not installed")
    else:
        theirs = librosa.feature.melspectrogram(y=wave, sr=RATE, n_fft=400, hop_length=160, n_mels=40).T
        print("librosa", np.abs(theirs - mel(wave.astype(np.float64))).max(), "of", theirs.max())


def session(path: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def save(name: str, values) -> None:
    np.asarray(values).astype("<f4").tofile(HERE / f"{name}.f32")


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def main() -> None:
    campplus, resemblyzer = (session(path) for path in sys.argv[1:])
    embeddings, speakers = [], []
    for name, seed, count in SIGNALS:
        samples = signal(seed, count)
        raw = log_mel(samples)
        features = raw - raw.mean(0, keepdims=True)
        cut = parts(samples)
        if name == "short":
            hold_against_originals(samples)
            save("short.log_mel", raw)
            save("short.features", features)
            wide = log_mel(samples, 32768.0, HAMMING)
            save("short.wespeaker", (wide - wide.mean(0, keepdims=True))[::EVERY])
        if name == "long_a":
            save("long_a.features", features[::EVERY])
            save("long_a.mel_parts", cut.reshape(-1, 40)[::EVERY])
            # So quiet that it is raised.
            save("quiet.mel_parts", parts(samples >> 6).reshape(-1, 40)[:: 4 * EVERY])
        embeddings.append(unit(campplus.run(None, {"x": features[None].astype(np.float32)})[0][0]))
        speakers.append(unit(resemblyzer.run(None, {"mels": cut.astype(np.float32)})[0].mean(0)))
    save("embeddings", embeddings)
    save("resemblyzer", speakers)
    for vectors in (np.array(embeddings), np.array(speakers)):
        print(np.round(1 - vectors @ vectors.T, 3))


main()
