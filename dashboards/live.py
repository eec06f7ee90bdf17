#!/usr/bin/env python3
"""Asks a real Prometheus everything that the dashboard asks, while it scrapes real servers under load.

Two servers of the scripted model, because a dashboard must not depend on a model: one computes in its process, with a budget so small
that voices are denied; one asks an extraction server that is not there. Tones stand for voices. Every query must return a
finite number at some moment, every rule must evaluate, and the alerts about bugs must be silent.
Usage: live.py PROMETHEUS ROLLCALL [--renew]; the last writes `metrics.txt` from the servers' pages instead of comparing it.
"""

import array
import contextlib
import json
import math
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import wave

HERE = pathlib.Path(__file__).parent
RATE_HZ = 16000
# Far enough apart for the scripted model to tell them apart; the last is enrolled nowhere.
PITCHES = {"anna": 200, "ben": 320, "stranger": 440}
TURN_SECONDS, TURNS = 4, 24
CLIENTS, SPEED = 4, 6
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 15
# Long enough for rates over the window below; the queries look back over the whole run.
SETTLE_SECONDS = 4
WINDOWS = {"$__rate_interval": "10s", "$__range": "1m", "$job": ".+", "$instance": ".+"}
BUGS = "RollcallBooksDiffer|RollcallInvariantBroken"
LOCAL = ["budget.voice_attempts=2", "budget.socket_burst=6", "extraction.model=scripted"]
# The discard port: nobody answers there.
REMOTE = ["extraction.model=scripted", "extraction.engine=remote", "remote.endpoints=http://127.0.0.1:9"]


def fail(message):
    print(f"live: {message}", file=sys.stderr)
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
def running(command, log):
    """A child that is told to end when the work is done, and made to when it does not."""
    with log.open("wb") as written, subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT) as child:
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


def serve(stack, rollcall, folder, name, settings):
    log = folder / f"{name}.log"
    sets = [part for setting in settings for part in ("--set", setting)]
    stack.enter_context(running([rollcall, "serve", "--listen", "127.0.0.1:0", "--data", str(folder / name), *sets], log))
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


def load(rollcall, folder, server):
    stream = [rollcall, "stream", str(folder / "talk.wav"), "--segments", str(folder / "talk.rttm"), "--server", server,
              "--speed", str(SPEED)]
    clients = [subprocess.Popen(stream, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(CLIENTS)]
    codes = [client.wait() for client in clients]
    if any(codes):
        fail(f"clients ended with {codes}")


def prometheus(stack, program, folder, servers):
    targets = json.dumps([server.removeprefix("http://") for server in servers])
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: [{json.dumps(str(HERE / 'rules.yml'))}]\n"
        f"scrape_configs: [{{job_name: rollcall, static_configs: [{{targets: {targets}}}]}}]\n")
    address = f"127.0.0.1:{free_port()}"
    stack.enter_context(running([program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
                                 f"--web.listen-address={address}"], folder / "prometheus.log"))
    eventually("Prometheus", lambda: fetch(f"http://{address}/-/ready"))
    return f"http://{address}/api/v1"


def query(api, expr, start, end):
    """The finite numbers of an expression over the run."""
    asked = urllib.parse.urlencode({"query": expr, "start": start, "end": end, "step": 1})
    result = json.loads(fetch(f"{api}/query_range?{asked}"))["data"]["result"]
    return [float(value) for one in result for _, value in one["values"] if math.isfinite(float(value))]


def questions():
    model = json.loads((HERE / "rollcall.json").read_text())
    for marks in model["annotations"]["list"]:
        yield marks["name"], marks["expr"]
    for panel in model["panels"]:
        yield from ((panel["title"], asked["expr"]) for asked in panel.get("targets", []))


def evaluate(api, start, end):
    count = 0
    for title, expr in questions():
        for name, value in WINDOWS.items():
            expr = expr.replace(name, value)
        count += 1
        try:
            numbers = query(api, expr, start, end)
        except urllib.error.HTTPError as refused:
            yield f"{title}: {refused.read().decode()[:300]}: {expr}"
            continue
        if not numbers:
            yield f"{title}: no data: {expr}"
    print(f"live: {count} queries asked")


def rules(api, start, end):
    for group in json.loads(fetch(f"{api}/rules"))["data"]["groups"]:
        for rule in group["rules"]:
            if rule["health"] != "ok":
                yield f"{rule['name']}: {rule.get('lastError') or rule['health']}"
            if rule["type"] == "recording" and not query(api, f"{rule['name']}{{slo={json.dumps(rule['labels']['slo'])}}}", start, end):
                yield f"{rule['name']}: nothing is recorded for {rule['labels']['slo']}"
    if query(api, f'ALERTS{{alertname=~"{BUGS}"}}', start, end):
        yield "an alert about a bug came up; it must be silent on a healthy server"


def pages(servers):
    """What the servers show, without what says when a counter began."""
    lines = [line for server in servers for line in fetch(f"{server}/metrics").splitlines() if line and not line.startswith("#")]
    return sorted(name for name in {re.split(r"[{ ]", line)[0] for line in lines} if not name.endswith("_created"))


def listed(names, renew):
    if renew:
        (HERE / "metrics.txt").write_text("\n".join(names) + "\n")
    written = (HERE / "metrics.txt").read_text().split()
    for name in sorted(set(written) ^ set(names)):
        yield f"metrics.txt and a server's page differ in {name}; live.py --renew writes it anew"


def main(program, rollcall, renew):
    with tempfile.TemporaryDirectory(prefix="rollcall-dashboards-") as made, contextlib.ExitStack() as stack:
        folder = pathlib.Path(made)
        servers = [serve(stack, rollcall, folder, "local", LOCAL), serve(stack, rollcall, folder, "remote", REMOTE)]
        enrol(rollcall, folder, servers[0])
        conversation(folder)
        start, api = time.time(), prometheus(stack, program, folder, servers)
        time.sleep(SETTLE_SECONDS)
        load(rollcall, folder, servers[0])
        time.sleep(SETTLE_SECONDS)
        end = time.time()
        found = [*listed(pages(servers), renew), *evaluate(api, start, end), *rules(api, start, end)]
    for fault in found:
        print(f"live: {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--renew"]
    if len(arguments) != 2:
        fail("usage: live.py PROMETHEUS ROLLCALL [--renew]")
    sys.exit(main(*arguments, renew="--renew" in sys.argv))
