"""A peer that extracts the same clips with the same model: peers.py sherpa|python MODEL THREADS PCM...

Each PCM is a file of 16-bit samples at 16 kHz. When it is loaded it prints `ready VERSION`; then it reads commands from
standard input, and prints for each the seconds of CPU and of wall time that the extractions took:

    run I       clip I once, on one thread
    load I N    clip I N times, on THREADS threads with an extractor each

`sherpa` is sherpa-onnx, its own front end included (and taking the samples over from Python, which cannot be told apart
from that). `python` is onnxruntime behind kaldi-native-fbank, as Python services do it.
"""

import array
import sys
import time
from concurrent.futures import ThreadPoolExecutor


def sherpa(model):
    import sherpa_onnx

    config = sherpa_onnx.SpeakerEmbeddingExtractorConfig(model=model, num_threads=1)
    extractor = sherpa_onnx.SpeakerEmbeddingExtractor(config)

    def extract(samples):
        stream = extractor.create_stream()
        stream.accept_waveform(16000, samples)
        stream.input_finished()
        return extractor.compute(stream)

    return extract


def python(model):
    import kaldi_native_fbank
    import numpy
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.dither = 0
    options.frame_opts.samp_freq = 16000
    options.mel_opts.num_bins = 80

    def extract(samples):
        fbank = kaldi_native_fbank.OnlineFbank(options)
        fbank.accept_waveform(16000, samples)
        fbank.input_finished()
        rows = numpy.stack([fbank.get_frame(i) for i in range(fbank.num_frames_ready)])
        rows -= rows.mean(axis=0)
        return session.run(None, {name: rows[None]})

    return extract


def version_of(kind):
    from importlib.metadata import version

    return version({"sherpa": "sherpa-onnx", "python": "onnxruntime"}[kind])


def samples_of(path):
    samples = array.array("h")
    with open(path, "rb") as file:
        samples.frombytes(file.read())
    return [sample / 32768.0 for sample in samples]


def timed(work):
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    print(time.process_time() - cpu, time.perf_counter() - wall, flush=True)


def main():
    kind, model, threads, *paths = sys.argv[1:]
    make, threads = {"sherpa": sherpa, "python": python}[kind], int(threads)
    clips = [samples_of(path) for path in paths]
    extractors = [make(model) for _ in range(threads)]
    for extract in extractors:
        extract(clips[0])
    print("ready", version_of(kind), flush=True)
    with ThreadPoolExecutor(threads) as pool:

        def load(clip, times):
            # Each extractor takes what is left when it is free, as a worker does.
            left = list(range(times))

            def drain(extract):
                while True:
                    try:
                        left.pop()
                    except IndexError:
                        return
                    extract(clip)

            list(pool.map(drain, extractors))

        for line in sys.stdin:
            what, clip, *times = line.split()
            clip = clips[int(clip)]
            if what == "run":
                timed(lambda: extractors[0](clip))
            else:
                timed(lambda: load(clip, int(times[0])))


main()
