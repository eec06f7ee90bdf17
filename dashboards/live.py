#!/usr/bin/env python3
"""Asks a real Prometheus everything that the dashboard asks, while it scrapes real servers under load.

Two servers of the scripted model, because a dashboard must not depend on a model: one computes in its process, with a budget so small
that voices are denied; one asks two extraction servers, of which one is not there. Tones stand for voices. Every query must return a
finite number at some moment, and exemplars where its panel shows them; every rule must evaluate, and the alerts about bugs must be silent.
Usage: live.py PROMETHEUS ROLLCALL [--renew]; the last writes `metrics.txt` from the servers' pages instead of comparing it.
"""

import contextlib
import json
import math
import pathlib
import re
import sys
import tempfile
import time
import urllib.error
import urllib.parse

import stage
from stage import fail, fetch

HERE = pathlib.Path(__file__).parent
CLIENTS, SPEED = 3, 6
# Long enough for rates over the window below; the queries look back over the whole run.
SETTLE_SECONDS = 4
WINDOWS = {"$__rate_interval": "10s", "$__range": "1m", "$job": ".+", "$instance": ".+"}
BUGS = "RollcallBooksDiffer|RollcallInvariantBroken"
SCRIPTED = ["extraction.model=scripted"]
TIGHT = ["budget.voice_attempts=2", "budget.socket_burst=6"]


def load(rollcall, folder, servers):
    clients = [stage.client(rollcall, folder, server, SPEED) for server in servers for _ in range(CLIENTS)]
    codes = [client.wait() for client in clients]
    if any(codes):
        fail(f"clients ended with {codes}")


def query(api, expr, start, end):
    """The finite numbers of an expression over the run."""
    asked = urllib.parse.urlencode({"query": expr, "start": start, "end": end, "step": 1})
    result = json.loads(fetch(f"{api}/query_range?{asked}"))["data"]["result"]
    return [float(value) for one in result for _, value in one["values"] if math.isfinite(float(value))]


def exemplars(api, expr, start, end):
    """How many dots an expression has."""
    asked = urllib.parse.urlencode({"query": expr, "start": start, "end": end})
    return sum(len(one["exemplars"]) for one in json.loads(fetch(f"{api}/query_exemplars?{asked}"))["data"])


def filled_in(expr):
    for name, value in WINDOWS.items():
        expr = expr.replace(name, value)
    return expr


def questions():
    """Title, expression, and whether its panel wants exemplars."""
    model = json.loads((HERE / "rollcall.json").read_text())
    for marks in model["annotations"]["list"]:
        yield marks["name"], filled_in(marks["expr"]), False
    for panel in model["panels"]:
        yield from ((panel["title"], filled_in(asked["expr"]), asked.get("exemplar", False)) for asked in panel.get("targets", []))


def evaluate(api, start, end):
    asked = list(questions())
    for title, expr, wants_exemplars in asked:
        try:
            if not query(api, expr, start, end):
                yield f"{title}: no data: {expr}"
            if wants_exemplars and not exemplars(api, expr, start, end):
                yield f"{title}: no exemplar: {expr}"
        except urllib.error.HTTPError as refused:
            yield f"{title}: {refused.read().decode()[:300]}: {expr}"
    print(f"live: {len(asked)} queries asked, {sum(wants for *_, wants in asked)} of them for exemplars too")


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
    lines = [line for server in servers.values() for line in fetch(f"{server}/metrics").splitlines() if line and not line.startswith("#")]
    return sorted(name for name in {re.split(r"[{ ]", line)[0] for line in lines} if not name.endswith("_created"))


def listed(names, renew):
    if renew:
        (HERE / "metrics.txt").write_text("\n".join(names) + "\n")
    written = (HERE / "metrics.txt").read_text().split()
    for name in sorted(set(written) ^ set(names)):
        yield f"metrics.txt and a server's page differ in {name}; live.py --renew writes it anew"


def main(program, rollcall, renew):
    with tempfile.TemporaryDirectory(prefix="rollcall-dashboards-") as made, contextlib.ExitStack() as ending:
        folder = pathlib.Path(made)
        servers = {"local": stage.serve(ending, rollcall, folder, "local", SCRIPTED + TIGHT, stage.sink(ending)),
                   "remote": stage.serve(ending, rollcall, folder, "remote", SCRIPTED + stage.remote(ending))}
        for server in servers.values():
            stage.enrol(rollcall, folder, server)
        stage.conversation(folder)
        start, api = time.time(), stage.prometheus(ending, program, folder, servers)
        time.sleep(SETTLE_SECONDS)
        load(rollcall, folder, servers.values())
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
