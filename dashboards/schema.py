#!/usr/bin/env python3
"""Reads the dashboard with Grafana's own types, writes it again, and names what was lost or changed on the way. Exit status 1 when anything was.

What Grafana does not know is silently left out by it: a misspelt option would show nowhere but in a panel that looks different. The
types are those of the package `grafana-foundation-sdk`, which must be importable (`check.sh` sees to it). Does not know what the
fields mean.
"""

import json
import pathlib
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

HERE = pathlib.Path(__file__).parent
# Fields of the Prometheus data source, which Grafana hands on to it without a type of its own.
UNTYPED = {"definition", "step", "titleFormat"}
# What is written out although it says the same as nothing.
NOTHING = (None, "", [], {}, False)


def differences(ours, theirs, path=""):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key in theirs:
                yield from differences(value, theirs[key], f"{path}.{key}")
            elif key not in UNTYPED and value not in NOTHING:
                yield f"{path}.{key} is nothing that Grafana knows"
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, pair in enumerate(zip(ours, theirs)):
            yield from differences(*pair, f"{path}[{index}]")
    elif ours != theirs:
        yield f"{path} is {json.dumps(ours)}, and {json.dumps(theirs)} once Grafana has read it"


def main():
    register_default_plugins()
    ours = json.loads((HERE / "rollcall.json").read_text())
    theirs = json.loads(JSONEncoder().encode(Dashboard.from_json(ours)))
    found = list(differences(ours, theirs))
    for difference in found:
        print(f"schema: {difference.removeprefix('.')}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
