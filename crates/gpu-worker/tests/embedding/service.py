"""An embedding service as others run it: service.py MODEL.onnx. A WAV file comes in as the multipart field `file`, and the
vector goes out as JSON: POST /v2/embedding answers with a bare array, POST /v2/embedding/named with an object.

Nothing in it is Rollcall's: Starlette behind uvicorn, kaldi-native-fbank, onnxruntime. It takes a free port and prints
it; it ends with its standard input, so that no test leaves it behind.
"""

import io
import os
import socket
import sys
import threading
import wave

import kaldi_native_fbank
import numpy
import onnxruntime
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

RATE = 16000
SECONDS_MIN = 0.5


def open_session(path):
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])


SESSION = open_session(sys.argv[1])


def read(data):
    """The samples at the model's rate, or what is wrong with the file."""
    with wave.open(io.BytesIO(data)) as file:
        if (file.getnchannels(), file.getsampwidth()) != (1, 2):
            raise ValueError("the file must have one channel of 16 bits")
        rate, count = file.getframerate(), file.getnframes()
        samples = numpy.frombuffer(file.readframes(count), "<i2").astype(numpy.float32) / 32768
    if count < SECONDS_MIN * rate:
        raise ValueError(f"the file must have at least {SECONDS_MIN} s")
    if rate == RATE:
        return samples
    # All of a clip is there, so its spectrum can be cut or continued with zeros.
    wanted = count * RATE // rate
    return numpy.fft.irfft(numpy.fft.rfft(samples), wanted)[:wanted] * (wanted / count)


def embed(samples):
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.dither = 0
    options.frame_opts.samp_freq = RATE
    options.mel_opts.num_bins = 80
    fbank = kaldi_native_fbank.OnlineFbank(options)
    fbank.accept_waveform(RATE, samples.tolist())
    fbank.input_finished()
    rows = numpy.stack([fbank.get_frame(index) for index in range(fbank.num_frames_ready)])
    rows -= rows.mean(axis=0)
    return SESSION.run(None, {SESSION.get_inputs()[0].name: rows[None]})[0][0].tolist()


async def answer(request):
    async with request.form() as form:
        upload = form.get("file")
        if upload is None or isinstance(upload, str):
            return JSONResponse({"detail": "the field `file` is missing"}, 422)
        data = await upload.read()
    try:
        vector = embed(read(data))
    except (ValueError, wave.Error, EOFError) as error:
        return JSONResponse({"detail": str(error)}, 422)
    return JSONResponse({"embedding": vector} if request.url.path.endswith("/named") else vector)


def end_with_standard_input():
    sys.stdin.read()
    os._exit(0)


def main():
    threading.Thread(target=end_with_standard_input, daemon=True).start()
    routes = [Route(path, answer, methods=["POST"]) for path in ("/v2/embedding", "/v2/embedding/named")]
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning")).run(sockets=[listener])


main()
