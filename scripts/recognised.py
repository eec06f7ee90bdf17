"""Prints who was recognised when, against the truth, and what it cost.

Usage: rollcall stream … --speed SPEED | recognised.py VOICES URL SPEED. Reads the client's events, one JSON object a line, and prints the
verdicts as they come and a table when the conversation is over. Exit status 1 when somebody enrolled was not recognised,
a wrong person was named, or a stranger was given a name.
"""

import collections
import json
import pathlib
import sys
import time
import urllib.request

# The budget's counters, read back from the server's metrics.
PREFIX = "omi_speaker_id_"


def turns(path):
    """The labels of an RTTM file, one a turn, and the length of each turn."""
    rows = [line.split() for line in path.read_text().splitlines()]
    return [(row[7], float(row[4])) for row in rows]


def truth(voices):
    """Who hides behind each anonymous label: id and seconds of speech."""
    anonymous = turns(voices / "conversation.rttm")
    real = turns(voices / "conversation.truth.rttm")
    people = {}
    spoken = collections.Counter()
    for (label, _), (person, seconds) in zip(anonymous, real, strict=True):
        people[label] = person
        spoken[label] += seconds
    enrolled = {folder.name for folder in (voices / "people").iterdir()}
    return {label: (person if person in enrolled else None, spoken[label]) for label, person in people.items()}


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def name(voice):
    return voice.get("person_name") or voice.get("person_id") or "nobody"


def verdict_line(event, at):
    return (
        f"  at {at:5.1f} s  {event.get('label', event.get('speaker'))}: {event['status']:<9} {name(event):<10} "
        f"distance {number(event.get('distance'))}, evidence {number(event.get('evidence_seconds'), 1)} s"
    )


def judged(person, voice):
    named = voice.get("person_id")
    if person is None:
        return "right: a stranger" if named is None else "WRONG: a stranger"
    if named == person:
        return "right"
    return f"WRONG: {person}" if named else f"MISSED: {person}"


def table(expected, voices, told):
    """One row a voice; returns the rows and whether all of them are right. `told` is when the client heard of it."""
    heard = {voice.get("label"): voice for voice in voices}
    rows, all_right = [], True
    for label, (person, seconds) in sorted(expected.items()):
        voice = heard.get(label, {})
        verdict = judged(person, voice)
        all_right = all_right and verdict.startswith("right")
        rows.append((
            label,
            name(voice),
            voice.get("status", "unheard"),
            number(voice.get("decided_at", told.get(label)), 1),
            number(voice.get("distance")),
            number(voice.get("runner_up_distance")),
            str(voice.get("attempts", "-")),
            number(voice.get("evidence_seconds"), 1),
            number(seconds, 1),
            verdict,
        ))
    return rows, all_right


def print_table(rows):
    head = ("voice", "recognised", "status", "at s", "distance", "next", "queries", "evidence s", "spoken s", "truth")
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    for row in (head, *rows):
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def print_budget(budget):
    denied = budget.get("denied", {})
    caps = ", ".join(f"{cap} {denied.get(cap, 0)}" for cap in ("voice", "socket", "both"))
    print(
        f"Budget: {budget.get('reserved', 0)} queries reserved, {budget.get('succeeded', 0)} succeeded, "
        f"{budget.get('failed', 0)} failed; denied by cap: {caps}."
    )


def print_metrics(url):
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    print("The same from the server's metrics:")
    for line in lines:
        if line.startswith((f"{PREFIX}embedding_attempts_total", f"{PREFIX}budget_exits_total")):
            print(f"  {line}")


def listen(speed):
    """Prints verdicts as they come; returns the goodbye, and when the client was told of each voice's last verdict, in
    seconds of the conversation."""
    started, told = None, {}
    for line in sys.stdin:
        event = json.loads(line)
        kind = event["type"]
        if kind == "ready":
            started = time.monotonic()
        elif kind == "speaker":
            at = (time.monotonic() - started) * speed
            told[event.get("label")] = at
            print(verdict_line(event, at), flush=True)
        elif kind == "error":
            print(f"  error {event.get('code')}: {event.get('message')}", flush=True)
        elif kind == "goodbye":
            return event, told
    sys.exit("the stream ended without a goodbye")


def main(voices, url, speed):
    expected = truth(pathlib.Path(voices))
    goodbye, told = listen(float(speed))
    rows, all_right = table(expected, goodbye["voices"], told)
    print()
    print_table(rows)
    print()
    print_budget(goodbye.get("budget", {}))
    print_metrics(url)
    if not all_right:
        sys.exit("not everybody was recognised as they should be")


main(*sys.argv[1:])
