"""Chooses the demo's clips from unpacked voice prompts and composes its conversation.

Usage: voices.py SOUNDS OUT, run by voices.sh, which provides the G.722 decoder.

The choice is made by a hash of each file's name, so it is the same on every machine and in every year, and no utterance
that is enrolled is heard again in the conversation. Nothing is processed but the silence at both ends of a prompt.
"""

import array
import hashlib
import math
import pathlib
import sys
import wave

import G722

RATE = 16_000
FRAME = RATE // 50

# id, name, where the prompts lie, who speaks, licence. The first is the account's owner; the last is not enrolled.
VOICES = [
    ("allison", "Allison", "en_US_f_Allison", "Allison Smith", "CC BY-SA 3.0"),
    ("june", "June", "fr_CA_f_June", "June Wallack", "CC BY-SA 3.0"),
    ("carlo", "Carlo", "it_IT_m_Carlo", "Carlo Flora (carloflora.com)", "CC BY 3.0"),
    ("stranger", "a stranger", "ru_RU_f_IvrvoiceRU", "a voice of ivrvoice.ru, provided by Maxim Topal", "CC BY 3.0"),
]
STRANGERS = {"stranger"}

# Sounds among the prompts that are not speech.
NOT_SPEECH = {"beep", "beeperr", "ascending-2tone", "descending-2tone", "tt-monkeys", "silence"}

ENROL_SECONDS = 20.0
ENROL_CLIP = (2.5, 6.0)
TURN = (1.5, 6.0)
GAP_SECONDS = 0.3
CONVERSATION_SECONDS = 120.0


def decoded(path):
    """The prompt as 16 bit samples, without the silence at its ends."""
    pcm = array.array("h", G722.G722(RATE, 64_000).decode(path.read_bytes()))
    loud = [start for start in range(0, len(pcm), FRAME) if level(pcm[start : start + FRAME]) > 200.0]
    if not loud:
        return array.array("h")
    return pcm[loud[0] : loud[-1] + FRAME]


def level(frame):
    return math.sqrt(sum(sample * sample for sample in frame) / max(1, len(frame)))


def seconds(pcm):
    return len(pcm) / RATE


def shuffled(paths):
    return sorted(paths, key=lambda path: hashlib.sha256(path.stem.encode()).digest())


def utterances(folder, shortest, longest):
    """Every fitting prompt of one voice, in its fixed random order. Spelled letters and digits lie in folders below."""
    for path in shuffled(path for path in folder.glob("*.g722") if path.stem not in NOT_SPEECH):
        # A byte is two samples; what is too short before trimming need not be decoded.
        if path.stat().st_size * 2 < shortest * RATE:
            continue
        pcm = decoded(path)
        if shortest <= seconds(pcm) <= longest:
            yield path.stem, pcm


def write(path, pcm):
    path.parent.mkdir(parents=True, exist_ok=True)
    if sys.byteorder == "big":
        pcm.byteswap()
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(pcm.tobytes())


def enrol(folder, out):
    """Writes clips to enrol; returns the prompts used."""
    used, total = set(), 0.0
    for stem, pcm in utterances(folder, *ENROL_CLIP):
        write(out / f"{stem}.wav", pcm)
        used.add(stem)
        total += seconds(pcm)
        if total >= ENROL_SECONDS:
            break
    return used


def order(turn):
    """Who speaks: a rotation that starts elsewhere each round, so that everybody follows everybody."""
    round_, place = divmod(turn, len(VOICES))
    return (place * (1 if round_ % 2 == 0 else 3) + round_) % len(VOICES)


def compose(sounds, used):
    """The conversation and its turns: (start, seconds, id)."""
    sources = {
        who: (pcm for stem, pcm in utterances(sounds / folder, *TURN) if stem not in used.get(who, set()))
        for who, _, folder, _, _ in VOICES
    }
    pcm, turns, last = array.array("h", [0] * (RATE // 2)), [], None
    for turn in range(10_000):
        if seconds(pcm) >= CONVERSATION_SECONDS:
            break
        who = VOICES[order(turn)][0]
        if who == last:
            continue
        said = next(sources[who])
        turns.append((seconds(pcm), seconds(said), who))
        pcm.extend(said)
        pcm.extend([0] * int(GAP_SECONDS * RATE))
        last = who
    return pcm, turns


def rttm(turns, label):
    return "".join(
        f"SPEAKER conversation 1 {start:.3f} {length:.3f} <NA> <NA> {label(who)} <NA> <NA>\n"
        for start, length, who in turns
    )


def attribution():
    lines = ["The voices of the demo are prompts from Debian's asterisk-core-sounds packages, cut and put together anew:"]
    for _, name, folder, who, licence in VOICES:
        lines.append(f"  {name}: {who}, {licence} ({folder})")
    lines.append("The conversation made from them is under CC BY-SA 3.0.")
    return "\n".join(lines) + "\n"


def main(sounds, out):
    sounds, out = pathlib.Path(sounds), pathlib.Path(out)
    out.mkdir(parents=True)
    used = {}
    for who, _, folder, _, _ in VOICES:
        if who not in STRANGERS:
            used[who] = enrol(sounds / folder, out / "people" / who)
    pcm, turns = compose(sounds, used)
    write(out / "conversation.wav", pcm)
    heard = list(dict.fromkeys(who for _, _, who in turns))
    (out / "conversation.rttm").write_text(rttm(turns, lambda who: f"SPEAKER_{heard.index(who):02d}"))
    (out / "conversation.truth.rttm").write_text(rttm(turns, lambda who: who))
    (out / "ATTRIBUTION").write_text(attribution())


main(*sys.argv[1:])
