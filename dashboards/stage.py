"""A stage for the checks: real servers, people, a conversation, clients, a Prometheus that scrapes, and a sink for traces.

Everything ends with the `ExitStack` that it was put on. Does not own what is asked of the Prometheus (see `live.py`).
"""

import array
import contextlib
import http.server
import json
import math
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import wave

HERE = pathlib.Path(__file__).parent
RATE_HZ = 16000
# Far enough apart for the scripted model to tell them apart; the last is enrolled nowhere.
PITCHES = {"anna": 200, "ben": 320, "stranger": 440}
TURN_SECONDS, TURNS = 4, 24
# Numbers of a voiceprint of the scripted model.
VECTOR = 192
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 15


# Whoever ends the check ends what it started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def fail(message):
    print(f"{pathlib.Path(sys.argv[0]).stem}: {message}", file=sys.stderr)
    sys.exit(1)


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def eventually(what, ask):
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if answer := ask():
                return answer
        time.sleep(0.1)
    fail(f"{what} did not come about in {START_SECONDS_MAX} s")


@contextlib.contextmanager
def running(command, log, environment=None):
    """A child that is told to end when the work is done, and made to when it does not."""
    with log.open("wb") as written, subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT,
                                                     env=os.environ | (environment or {})) as child:
        try:
            yield child
        finally:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                child.kill()


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def voice(pitch, seconds):
    """A tone with two harmonics that swells four times a second, as syllables do."""
    samples = array.array("h")
    for index in range(int(seconds * RATE_HZ)):
        at = 2 * math.pi * index / RATE_HZ
        tone = math.sin(pitch * at) + 0.3 * math.sin(2 * pitch * at) + 0.1 * math.sin(3 * pitch * at)
        samples.append(int(9000 * tone * (0.6 + 0.4 * math.sin(4 * at)) / 1.4))
    return samples


def write_wav(path, samples):
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE_HZ)
        out.writeframes(samples.tobytes())


def conversation(folder):
    """People who take turns, and who spoke when under names that say nothing."""
    spoken, rttm, turn = array.array("h"), [], {name: voice(pitch, TURN_SECONDS) for name, pitch in PITCHES.items()}
    for index in range(TURNS):
        number = index % len(PITCHES)
        spoken.extend(list(turn.values())[number])
        rttm.append(f"SPEAKER talk 1 {index * TURN_SECONDS} {TURN_SECONDS - 0.2:.1f} <NA> <NA> V{number} <NA> <NA>")
    write_wav(folder / "talk.wav", spoken)
    (folder / "talk.rttm").write_text("\n".join(rttm) + "\n")


class Extraction(http.server.BaseHTTPRequestHandler):
    """An extraction server for tones, in the protocol "embedding": WAV in, JSON vector out. It takes its time, as another machine does."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        pcm = array.array("h", body[body.index(b"data", body.index(b"WAVE")) + 8:body.rindex(b"\r\n--")])
        time.sleep(0.05 + len(pcm) / RATE_HZ * 0.03)
        crossings = sum((one < 0) != (other < 0) for one, other in zip(pcm, pcm[1:]))
        pitch = crossings / 2 / (len(pcm) / RATE_HZ)
        # One place a pitch: voices are themselves, or nothing alike.
        answer = json.dumps([1.0 if place == round(pitch / 40) else 0.0 for place in range(VECTOR)]).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Taken(http.server.BaseHTTPRequestHandler):
    """Takes whatever an exporter sends, and keeps nothing."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Answering(http.server.ThreadingHTTPServer):
    """Says nothing of a caller who gave up before the answer came."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def answering(stack, handler):
    """The URL of a small server on a thread of its own."""
    server = stack.enter_context(Answering(("127.0.0.1", 0), handler))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.shutdown)
    return f"http://127.0.0.1:{server.server_port}"


def sink(stack):
    """A collector that takes everything: with one, queries are traced, and latencies have exemplars."""
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": answering(stack, Taken)}


def remote(stack):
    """Settings of a server that asks two extraction servers, of which one is not there: nobody answers at the discard port."""
    endpoints = f"{answering(stack, Extraction)},http://127.0.0.1:9"
    return ["extraction.engine=remote", "remote.protocol=embedding", f"remote.endpoints={endpoints}"]


def serve(stack, rollcall, folder, name, settings, environment=None):
    """Starts a server and answers its URL."""
    log = folder / f"{name}.log"
    sets = [part for setting in settings for part in ("--set", setting)]
    stack.enter_context(running([rollcall, "serve", "--listen", "127.0.0.1:0", "--data", str(folder / name), *sets], log, environment))
    found = eventually(f"the {name} server", lambda: re.search(r"^listening on (http://\S+)", log.read_text(), re.MULTILINE))
    return found[1]


def enrol(rollcall, folder, server):
    for name in ("anna", "ben"):
        write_wav(folder / f"{name}.wav", voice(PITCHES[name], 6))
        owner = ["--owner"] if name == "anna" else []
        done = subprocess.run([rollcall, "enroll", "--person", name, *owner, "--server", server, str(folder / f"{name}.wav")],
                              capture_output=True, text=True)
        if done.returncode:
            fail(f"{name} could not be enrolled: {done.stderr.strip()}")


def client(rollcall, folder, server, speed):
    """A client that streams the conversation, so many times as fast as it was spoken."""
    stream = [rollcall, "stream", str(folder / "talk.wav"), "--segments", str(folder / "talk.rttm"), "--server", server,
              "--speed", str(speed)]
    return subprocess.Popen(stream, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def prometheus(stack, program, folder, servers):
    targets = json.dumps([{"targets": [url.removeprefix("http://")], "labels": {"instance": name}} for name, url in servers.items()])
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: [{json.dumps(str(HERE / 'rules.yml'))}]\n"
        f"scrape_configs: [{{job_name: rollcall, static_configs: {targets}}}]\n")
    address = f"127.0.0.1:{free_port()}"
    # A scrape asks for OpenMetrics by itself, and exemplars are kept only when it is told so.
    stack.enter_context(running([program, "--enable-feature=exemplar-storage", f"--config.file={folder / 'prometheus.yml'}",
                                 f"--storage.tsdb.path={folder / 'tsdb'}",
                                 f"--web.listen-address={address}"], folder / "prometheus.log"))
    eventually("Prometheus", lambda: fetch(f"http://{address}/-/ready"))
    return f"http://{address}/api/v1"


