"""Scores `rollcall identify` on recordings whose speakers are known.

Usage: accuracy.py ROLLCALL VOICES [SPEECH], run by accuracy.sh. Each recording is heard with everybody enrolled, and once
more for each of its speakers with that one left out, who is then a stranger. Segments carry anonymous labels: who is
behind them is kept here. What is counted is a voice of a recording; "refused" is whatever gives no name. Exit status 1
when a run failed, whatever the scores are.
"""

import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

Turn = collections.namedtuple("Turn", "start seconds speaker")


@dataclasses.dataclass(frozen=True)
class Case:
    """One run: a recording against a gallery."""

    row: tuple  # where it counts: set, recording, who is enrolled
    audio: pathlib.Path
    turns: tuple  # empty: the whole recording is `alone`
    gallery: tuple  # (id, folder)
    owner: str | None
    alone: str | None = None


@dataclasses.dataclass
class Score:
    """Voices, seconds and queries."""

    right: int = 0
    wrong: int = 0
    refused: int = 0
    strangers_refused: int = 0
    strangers_named: int = 0
    seconds_right: float = 0.0
    seconds: float = 0.0
    queries: int = 0

    def add(self, other):
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def cells(self):
        share = 100 * self.seconds_right / self.seconds if self.seconds else 0.0
        return (
            self.right,
            self.wrong,
            self.refused,
            self.strangers_refused,
            self.strangers_named,
            f"{self.seconds_right:.1f} of {self.seconds:.1f} ({share:.1f} %)",
            self.queries,
        )


HEAD = (
    "recording",
    "enrolled",
    "right",
    "wrong name",
    "refused",
    "strangers refused",
    "strangers named",
    "seconds labelled right",
    "queries",
)


def turns(path):
    rows = (line.split() for line in path.read_text().splitlines() if line.startswith("SPEAKER"))
    return tuple(Turn(float(row[3]), float(row[4]), row[7]) for row in rows)


def conversation(name, audio, spoken, people):
    """The cases of one conversation: everybody enrolled, then each of its speakers left out in turn."""
    here = list(dict.fromkeys(turn.speaker for turn in spoken if turn.speaker in people))
    yield case((name, f"all {len(people)}"), audio, spoken, people, here)
    for absent in here:
        rest = {who: folder for who, folder in people.items() if who != absent}
        yield case((name, "each speaker left out in turn"), audio, spoken, rest, here)


def case(row, audio, spoken, people, here):
    """The account's owner is the first of its speakers who is enrolled."""
    owner = next((who for who in here if who in people), None)
    return Case(row, audio, spoken, tuple(sorted(people.items())), owner)


def demo(voices):
    people = {folder.name: folder for folder in sorted((voices / "people").iterdir())}
    yield from conversation("demo", voices / "conversation.wav", turns(voices / "conversation.truth.rttm"), people)


def corpus(speech):
    clips = json.loads((speech / "manifest.json").read_text())["clips"]
    people = {who: speech / "clips" / who for who in sorted(clips) if clips[who]["role"] == "enrol"}
    for truth in sorted((speech / "conversations").glob("*.rttm")):
        yield from conversation(truth.stem, truth.with_suffix(".flac"), turns(truth), people)
    for who in sorted(set(clips) - set(people)):
        for clip in sorted((speech / "clips" / who).iterdir()):
            row = ("one utterance each", f"all {len(people)}")
            yield Case(row, clip, (), tuple(people.items()), None, alone=who)


def labels(spoken):
    """An anonymous label for each speaker, in the order in which they are first heard."""
    heard = dict.fromkeys(turn.speaker for turn in spoken)
    return {who: f"SPEAKER_{index:02d}" for index, who in enumerate(heard)}


def identify(rollcall, case):
    """What the binary says, or what was wrong."""
    with tempfile.TemporaryDirectory() as work:
        people = pathlib.Path(work) / "people"
        people.mkdir()
        for who, folder in case.gallery:
            (people / who).symlink_to(folder.resolve())
        command = [rollcall, "identify", case.audio, "--people", people]
        if case.owner:
            command += ["--owner", case.owner]
        if case.turns:
            segments = pathlib.Path(work) / "segments.rttm"
            named = labels(case.turns)
            segments.write_text("".join(
                f"SPEAKER a 1 {turn.start:.3f} {turn.seconds:.3f} <NA> <NA> {named[turn.speaker]} <NA> <NA>\n"
                for turn in case.turns
            ))
            command += ["--segments", segments]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            sys.exit(f"accuracy: {case.audio}: status {run.returncode}: {run.stderr.strip()}")
        return json.loads(run.stdout)


def score(case, report):
    enrolled = {who for who, _ in case.gallery}
    behind = {label: who for who, label in labels(case.turns).items()}
    named = {behind.get(voice["label"], case.alone): voice.get("person_id") for voice in report["voices"]}
    result = Score(queries=report["budget"]["reserved"])
    # Over those who spoke and not over what was reported: a voice that is missing there was not named.
    for who in behind.values() or [case.alone]:
        name = named.get(who)
        if who in enrolled:
            result.right += name == who
            result.refused += name is None
            result.wrong += name not in (None, who)
        else:
            result.strangers_refused += name is None
            result.strangers_named += name is not None
    for segment in report["segments"]:
        who, seconds = behind.get(segment["label"], case.alone), segment["end"] - segment["start"]
        result.seconds += seconds
        if segment.get("person_id") == (who if who in enrolled else None):
            result.seconds_right += seconds
    return result


def print_table(rows):
    print("| " + " | ".join(HEAD) + " |")
    print("|---|---|" + "--:|" * (len(HEAD) - 2))
    total = Score()
    for (recording, enrolled), result in rows.items():
        total.add(result)
        print(f"| {recording} | {enrolled} | " + " | ".join(map(str, result.cells())) + " |")
    print("| **total** | | " + " | ".join(f"**{cell}**" for cell in total.cells()) + " |")


def main(rollcall, voices, speech=None):
    cases = list(demo(pathlib.Path(voices)))
    if speech:
        cases += corpus(pathlib.Path(speech))
    rows = {case.row: Score() for case in cases}
    # Runs share nothing, and their clock is the recording's: how many run at once changes no result.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = pool.map(lambda case: identify(rollcall, case), cases)
        for done, (case, report) in enumerate(zip(cases, reports), 1):
            rows[case.row].add(score(case, report))
            if sys.stderr.isatty():
                print(f"\raccuracy: {done} of {len(cases)} runs", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print_table(rows)


main(*sys.argv[1:])
