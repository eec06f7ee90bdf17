"""CPU seconds that sherpa-onnx takes for one clip, the same model in one thread: peer_sherpa.py MODEL PCM ROUNDS.

PCM is a file of 16-bit samples at 16 kHz. The time includes its front end and, which cannot be told apart from that,
taking the samples over from Python. Prints the median; the caller treats every failure as "not installed".
"""

import array
import statistics
import sys
import time

import sherpa_onnx


def main() -> None:
    model, pcm, rounds = sys.argv[1:]
    samples = array.array("h")
    with open(pcm, "rb") as file:
        samples.frombytes(file.read())
    wave = [sample / 32768.0 for sample in samples]
    config = sherpa_onnx.SpeakerEmbeddingExtractorConfig(model=model, num_threads=1)
    extractor = sherpa_onnx.SpeakerEmbeddingExtractor(config)
    times = []
    for _ in range(int(rounds) + 2):
        stream = extractor.create_stream()
        started = time.process_time()
        stream.accept_waveform(16000, wave)
        stream.input_finished()
        extractor.compute(stream)
        times.append(time.process_time() - started)
    print(statistics.median(times[2:]))


main()
