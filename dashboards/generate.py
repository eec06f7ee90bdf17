#!/usr/bin/env python3
"""Writes the dashboard, the rules and the rules' tests into this folder, or into the one that is named.

Usage: generate.py [FOLDER]. The same source gives the same bytes.
"""

import json
import pathlib
import sys

from source import board, cases, rules
from source.text import yaml

HEADING = "Written by generate.py; change source/ and run it."


def files():
    return {"rollcall.json": json.dumps(board.model(), indent=2, ensure_ascii=False) + "\n",
            "rules.yml": yaml(rules.groups(), HEADING),
            "rules_test.yml": yaml(cases.tests(), HEADING),
            "rules_hours_test.yml": yaml(cases.long_tests(), HEADING)}


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for name, text in files().items():
        (folder / name).write_text(text)
