#!/usr/bin/env python3
"""Draws the committed dashboard from the data of real servers, and has Chromium write the pictures of docs/images.

Grafana itself is not needed, and this is not its picture: rows, places, units, thresholds, legends and queries are those of
`rollcall.json`, the drawing is ours. Two servers of the scripted model are scraped for some minutes while clients come and go. One has a small
budget, so that voices are denied; the other asks two extraction servers, of which one is away.
Usage: screenshots.py PROMETHEUS ROLLCALL CHROMIUM [--minutes N]
"""

import argparse
import contextlib
import json
import math
import pathlib
import random
import re
import subprocess
import tempfile
import time
import urllib.parse

import stage
from drawing import charts, page, png
from stage import fail, fetch

HERE = pathlib.Path(__file__).parent
IMAGES = HERE.parent / "docs" / "images"
# The same load each time, as far as a machine allows.
SEED = 7
CLIENTS_MAX, SPEEDS = 9, (3, 4, 6)
SCRIPTED = "extraction.model=scripted"
BUDGET = ["budget.voice_attempts=2", "budget.socket_burst=5", "budget.refill_per_hour=120"]
STEP_SECONDS = 2
RATE_WINDOW = "20s"
# Which rows are in which picture: the first is what a reader sees first.
PICTURES = {"dashboard": slice(0, 3), "dashboard-engine": slice(3, 5), "dashboard-process": slice(5, None)}
PICTURE_BYTES_MAX = 400_000
NOTE = "Drawn by dashboards/screenshots.py from what a real Prometheus scraped of two servers under load; not a picture of Grafana."


def load(rollcall, folder, servers, seconds):
    """Clients that come and go, more of them in the middle."""
    chance, alive, began = random.Random(SEED), [], time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        alive = [one for one in alive if one.poll() is None]
        wanted = 1 + round((CLIENTS_MAX - 1) * math.sin(math.pi * passed / seconds))
        if len(alive) < wanted:
            alive.append(stage.client(rollcall, folder, chance.choice(list(servers.values())), chance.choice(SPEEDS)))
        time.sleep(chance.uniform(0.3, 2))
    return alive


def finite(values):
    return [(float(at), float(value)) for at, value in values if math.isfinite(float(value))]


def named(pattern, labels):
    return re.sub(r"{{\s*(\w+)\s*}}", lambda match: labels.get(match[1], ""), pattern).strip()


def ask(api, expr, span, is_instant):
    path, times = ("query", {"time": span[1]}) if is_instant else ("query_range", {"start": span[0], "end": span[1], "step": STEP_SECONDS})
    result = json.loads(fetch(f"{api}/{path}?{urllib.parse.urlencode({'query': expr} | times)}"))["data"]["result"]
    return [(one["metric"], finite([one["value"]] if is_instant else one["values"])) for one in result]


def dots(api, expr, span):
    asked = urllib.parse.urlencode({"query": expr, "start": span[0], "end": span[1]})
    found = json.loads(fetch(f"{api}/query_exemplars?{asked}"))["data"]
    return [(one["timestamp"], float(one["value"])) for series in found for one in series["exemplars"]]


def answers(api, panel, span):
    """The series of a panel by their legends, and its exemplars."""
    series, marks = [], set()
    chosen = {"$__rate_interval": RATE_WINDOW, "$__range": f"{round(span[1] - span[0])}s", "$job": ".+", "$instance": ".+"}
    for target in panel.get("targets", []):
        expr = target["expr"]
        for name, value in chosen.items():
            expr = expr.replace(name, value)
        series += [(named(target["legendFormat"], labels), points) for labels, points in ask(api, expr, span, target["instant"]) if points]
        if target.get("exemplar"):
            marks.update(dots(api, expr, span))
    return {"series": series, "dots": sorted(marks), "span": span, "step": STEP_SECONDS}


def rows(model):
    made = []
    for panel in model["panels"]:
        if panel["type"] == "row":
            made.append([])
        made[-1].append(panel)
    return made


def photograph(chromium, folder, markup, height, picture):
    (folder / "page.html").write_text(markup)
    command = [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder / 'profile'}",
               f"--window-size={page.WIDTH},{height}", f"--screenshot={picture}", f"file://{folder / 'page.html'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or not picture.is_file():
        fail(f"chromium wrote no {picture.name}: {done.stderr.strip()[-500:]}")
    picture.write_bytes(png.with_palette(picture.read_bytes(), [*charts.PALETTE, *charts.NAMED.values(), *charts.HEAT]))
    if picture.stat().st_size > PICTURE_BYTES_MAX:
        fail(f"{picture.name} has {picture.stat().st_size} bytes, more than {PICTURE_BYTES_MAX}")
    print(f"screenshots: {picture.relative_to(HERE.parent)}, {picture.stat().st_size // 1000} kB")


def data(api, model, span):
    return {panel["id"]: answers(api, panel, span) for panel in model["panels"] if panel["type"] != "row"}


def main(options):
    model = json.loads((HERE / "rollcall.json").read_text())
    with tempfile.TemporaryDirectory(prefix="rollcall-pictures-") as made, contextlib.ExitStack() as ending:
        folder = pathlib.Path(made)
        environment = stage.sink(ending)
        settings = {"rollcall-1": [SCRIPTED, *BUDGET], "rollcall-2": [SCRIPTED, "extraction.workers=1", *stage.remote(ending)]}
        servers = {name: stage.serve(ending, options.rollcall, folder, name, sets, environment) for name, sets in settings.items()}
        stage.conversation(folder)
        for server in servers.values():
            stage.enrol(options.rollcall, folder, server)
        api, start = stage.prometheus(ending, options.prometheus, folder, servers), time.time()
        left = load(options.rollcall, folder, servers, options.minutes * 60)
        span = (start, time.time())
        drawn = data(api, model, span)
        for client in left:
            client.terminate()
            client.wait()
        told = {"source": NOTE, "range": f"Last {options.minutes:g} minutes"}
        IMAGES.mkdir(parents=True, exist_ok=True)
        for name, which in PICTURES.items():
            panels = [panel for row in rows(model)[which] for panel in row]
            markup, height = page.page(model, told, panels, drawn)
            photograph(options.chromium, folder, markup, height, IMAGES / f"{name}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for program in ("prometheus", "rollcall", "chromium"):
        parser.add_argument(program)
    parser.add_argument("--minutes", type=float, default=5)
    main(parser.parse_args())
