#!/usr/bin/env python3
"""Reads the dashboard and the rules as a careful reviewer would, and names what is wrong. Exit status 1 when anything is.

The rules are those of Grafana's dashboard linter, and ours: only metrics that a server really shows (`metrics.txt`), a unit and a help
text on every panel, a runbook and a test that fires for every alert, and no text that names a panel or a row that is not there. Does not
evaluate anything (see `live.py`).
"""

import json
import pathlib
import re
import sys

from source import cases, rules

HERE = pathlib.Path(__file__).parent
GUIDE = HERE.parent / "docs" / "operations.md"
NAME = re.compile(r"\b((?:omi|rollcall)[_:][a-z0-9_:]+|up)\b(?=[\s{\[)]|$)(\{[^}]*\})?")
WINDOW = re.compile(r"\[([^\]]+)\]")
COUNTER = re.compile(r"(?<!rate\()(?<!increase\()\b(?:omi|rollcall)_[a-z0-9_]+_(?:total|bucket|count|sum)\b")
# Shorter fixed windows hold too few scrapes at common intervals; the pace of drawing is what $__rate_interval is for.
FIXED_WINDOWS = {"1h", "1d"}
HELP_CHARS_MIN = 10
PANEL_WIDTH = 24
# Prometheus itself makes it for everything that it scrapes.
OF_PROMETHEUS = {"up"}


def shown():
    return set((HERE / "metrics.txt").read_text().split())


def recorded():
    return {rule["record"] for rule in rules.recorded()}


def names(expr):
    return {match[1] for match in NAME.finditer(expr)}


def expression(expr, known):
    for name in sorted(names(expr) - known):
        yield f"{name} is no metric of a server and not recorded"
    for match in NAME.finditer(expr):
        wanted = ['job=~"$job"'] if match[1].startswith("rollcall:") else ['job=~"$job"', 'instance=~"$instance"']
        for matcher in wanted:
            if matcher not in (match[2] or ""):
                yield f"{match[1]} lacks {matcher}"
    for window in WINDOW.findall(expr):
        if window not in FIXED_WINDOWS | {"$__rate_interval", "$__range"}:
            yield f"the window [{window}] is neither $__rate_interval nor one of {sorted(FIXED_WINDOWS)}"
    if "$__interval" in expr:
        yield "$__interval may be shorter than two scrapes; $__rate_interval is not"


def panel(found, known):
    if not found.get("title"):
        yield "it has no title"
    if len(found.get("description", "")) < HELP_CHARS_MIN:
        yield "it has no help text"
    if not found.get("fieldConfig", {}).get("defaults", {}).get("unit"):
        yield "it has no unit"
    if found.get("datasource", {}).get("uid") != "${datasource}":
        yield "its data source is not the chosen one"
    if not found.get("targets"):
        yield "it asks nothing"
    for asked in found.get("targets", []):
        yield from expression(asked["expr"], known)
        if found["type"] == "timeseries" and COUNTER.search(asked["expr"]):
            yield f"it draws a counter without rate or increase: {asked['expr']}"
        if not asked.get("legendFormat"):
            yield "a query has no legend"


def cells(found):
    at = found["gridPos"]
    return {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}


def layout(panels):
    if len({found["id"] for found in panels}) != len(panels):
        yield "two panels have one id"
    titles = [found["title"] for found in panels]
    yield from (f"two panels are called {title}" for title in sorted({title for title in titles if titles.count(title) > 1}))
    covered = set()
    for found in panels:
        taken = cells(found)
        if covered & taken or any(x >= PANEL_WIDTH for x, _ in taken):
            yield f"{found['title']}: it lies on another panel or beyond the edge"
        covered |= taken


def board(model, known):
    variables = {variable["name"]: variable for variable in model["templating"]["list"]}
    if variables.get("datasource", {}).get("type") != "datasource":
        yield "the data source cannot be chosen"
    for name in ("job", "instance"):
        if variables.get(name, {}).get("refresh") != 2:
            yield f"${name} does not exist, or is not asked for anew when the time range changes"
    if model.get("editable") is not False:
        yield "it can be edited in place, and would then differ from its source"
    yield from layout(model["panels"])
    for found in model["panels"]:
        if found["type"] != "row":
            yield from (f"{found['title']}: {fault}" for fault in panel(found, known))
    for marks in model["annotations"]["list"]:
        yield from (f"{marks['name']}: {fault}" for fault in expression(marks["expr"], known))


def alerts(known, headings):
    written = [rule for group in rules.groups()["groups"] for rule in group["rules"]]
    for rule in written:
        unknown = names(rule["expr"]) - known - OF_PROMETHEUS
        yield from (f"{rule.get('alert', rule.get('record'))}: {name} is no metric of a server and not recorded" for name in sorted(unknown))
    called = {rule["alert"]: rule for rule in written if "alert" in rule}
    for name, rule in called.items():
        if rule["labels"].get("severity") not in ("page", "ticket"):
            yield f"{name}: its severity is neither page nor ticket"
        if name not in headings or rule["annotations"].get("runbook_url") != f"dashboards/runbook.md#{name.lower()}":
            yield f"{name}: it has no section in runbook.md, or does not point to it"
        if name not in cases.fired():
            yield f"{name}: no test makes it fire"
    yield from (f"runbook.md: there is no alert {name}" for name in sorted(headings - called.keys()))


def unseen(model):
    """Metrics that nothing looks at: an operator would never see them move."""
    said = json.dumps(model) + json.dumps(rules.groups())
    for name in sorted(shown()):
        base = re.sub(r"_(bucket|count|sum)$", "", name)
        if base not in said:
            yield f"{name}: no panel and no rule looks at it"


def texts(model):
    """Panels that a text names in quotes with a capital, and rows that it names in brackets or asks questions of in a table."""
    titles = {kind: {found["title"] for found in model["panels"] if (found["type"] == "row") == kind} for kind in (True, False)}
    runbook, guide = (HERE / "runbook.md").read_text(), GUIDE.read_text()
    for name in sorted(set(re.findall(r'"([A-Z][^"]+)"', re.sub(r"\s+", " ", runbook))) - titles[False]):
        yield f"runbook.md: there is no panel {name}"
    for name in sorted(set(re.findall(r"(?<!\])\[([A-Z][^\]]+)\](?!\()", runbook)) - titles[True]):
        yield f"runbook.md: there is no row {name}"
    asked = re.findall(r"^\| ([A-Z][^|]+?) \| [^|]*\? *[^|]*\|$", guide, re.MULTILINE)
    if asked != [found["title"] for found in model["panels"] if found["type"] == "row"]:
        yield f"{GUIDE.name}: the rows that it tells are not the dashboard's: {asked}"


def faults():
    model, known = json.loads((HERE / "rollcall.json").read_text()), shown() | recorded()
    headings = set(re.findall(r"^## (\w+)$", (HERE / "runbook.md").read_text(), re.MULTILINE))
    yield from board(model, known)
    yield from alerts(known, headings)
    yield from unseen(model)
    yield from texts(model)


if __name__ == "__main__":
    found = list(faults())
    for fault in found:
        print(f"lint: {fault}", file=sys.stderr)
    sys.exit(1 if found else 0)
