#!/usr/bin/env python3
"""Breaks every rule on purpose, one thing at a time, and says which broken rule the tests do not notice. Exit status 1 when there is one.

Each name of a metric is misspelt, each comparison turned round, each hold of an alert taken away. A broken rule stands alone with the
recorded ones that it reads, so that one mutant takes about a second.
Usage: mutants.py PROMTOOL
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from source import cases, rules
from source.text import yaml

NAME = re.compile(r"\b(?:omi|rollcall)[_:][a-z0-9_:]+\b|\bup\b")
COMPARISON = re.compile(r" (>=|>|<|==|!=) (?!0\))")
TURNED = {">": "<", ">=": "<", "<": ">", "==": "!=", "!=": "=="}


def replaced(rule, match, text, group=0):
    return rule | {"expr": rule["expr"][:match.start(group)] + text + rule["expr"][match.end(group):]}


def mutants(rule):
    for match in NAME.finditer(rule["expr"]):
        yield f"{match[0]} at {match.start()} is misspelt", replaced(rule, match, match[0] + "_misspelt")
    if "alert" in rule:
        for match in COMPARISON.finditer(rule["expr"]):
            yield f"{match[1]} at {match.start()} is turned round", replaced(rule, match, TURNED[match[1]], 1)
    if "for" in rule:
        yield "it does not hold", {key: value for key, value in rule.items() if key != "for"}


def proving(rule):
    """The tests that are about a rule, those that take least time first."""
    return [cases.document(cases.record_tests())] if "record" in rule else cases.alert_tests(rule["alert"])


def read_by(rule):
    """The recorded rules that stand beside a rule: those that it reads, or all others of its kind."""
    if "record" in rule:
        return [other for other in rules.recorded() if other != rule]
    return [other for other in rules.recorded() if other["record"] in rule["expr"]]


def passes(promtool, folder, test):
    (folder / "test.yml").write_text(yaml(test, "What must notice it."))
    done = subprocess.run([promtool, "test", "rules", str(folder / "test.yml")], capture_output=True, check=False)
    return done.returncode == 0


def notices(promtool, rule, mutant):
    """Whether a test passes a rule and not its mutant."""
    beside = {"name": "records", "rules": read_by(rule)}
    with tempfile.TemporaryDirectory(prefix="rollcall-mutants-") as made:
        folder = pathlib.Path(made)

        def keeps(kept, test):
            groups = [beside, {"name": "about", "rules": [kept]}]
            (folder / "rules.yml").write_text(yaml({"groups": groups}, "One rule, and what it reads."))
            return passes(promtool, folder, test)

        return any(not keeps(mutant, test) and keeps(rule, test) for test in proving(rule))


def main(promtool):
    written = [rule for group in rules.groups()["groups"] for rule in group["rules"]]
    every = [(rule, says, mutant) for rule in written for says, mutant in mutants(rule)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        noticed = list(pool.map(lambda one: notices(promtool, one[0], one[2]), every))
    for (rule, says, _), is_noticed in zip(every, noticed):
        if not is_noticed:
            print(f"mutants: nobody notices that in {named(rule)} {says}", file=sys.stderr)
    print(f"mutants: {sum(noticed)} of {len(every)} broken rules are noticed")
    return 0 if all(noticed) else 1


def named(rule):
    return rule.get("alert") or f"{rule['record']} of {rule['labels']['slo']}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: mutants.py PROMTOOL")
    sys.exit(main(sys.argv[1]))
