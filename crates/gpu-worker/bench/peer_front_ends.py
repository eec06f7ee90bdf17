"""CPU seconds that other front ends take for one clip, in one thread: peer_front_ends.py PCM ROUNDS.

PCM is a file of 16-bit samples at 16 kHz. Prints one JSON object: the median of each package that is installed. What
each is given is what it takes (a list for kaldi-native-fbank, an array for librosa), made before the clock starts; taking
it over from Python, and reading kaldi-native-fbank's features out row by row, belongs to its cost.
"""

import array
import json
import os
import statistics
import sys
import time

for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{name}_NUM_THREADS"] = "1"


def kaldi_native_fbank(samples):
    import kaldi_native_fbank

    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.dither = 0
    options.mel_opts.num_bins, options.mel_opts.high_freq = 80, 0
    wave = [sample / 32768.0 for sample in samples]

    def run():
        fbank = kaldi_native_fbank.OnlineFbank(options)
        fbank.accept_waveform(16000, wave)
        return [fbank.get_frame(frame) for frame in range(fbank.num_frames_ready)]

    return run


def librosa(samples):
    import librosa
    import numpy

    wave = numpy.array(samples, numpy.float32) / 32768.0
    return lambda: librosa.feature.melspectrogram(y=wave, sr=16000, n_fft=400, hop_length=160, n_mels=40)


def main():
    pcm, rounds = sys.argv[1:]
    samples = array.array("h")
    with open(pcm, "rb") as file:
        samples.frombytes(file.read())
    medians = {}
    for peer in (kaldi_native_fbank, librosa):
        try:
            run = peer(samples)
        except ImportError:
            continue
        times = []
        # The first runs compile and allocate.
        for _ in range(int(rounds) + 3):
            started = time.process_time()
            run()
            times.append(time.process_time() - started)
        medians[peer.__name__] = statistics.median(times[3:])
    print(json.dumps(medians))


main()
