"""A picture with a palette: a browser writes three bytes a pixel, and a drawing has few colours. A third of the size, and no eye sees it."""

import struct
import zlib
from collections import Counter

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = 256


def chunks(data):
    at = len(SIGNATURE)
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + size]
        at += size + 12


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def paeth(left, above, corner):
    guess = left + above - corner
    return min((left, above, corner), key=lambda one: abs(guess - one))


def unfiltered(raw, stride, size):
    """The lines of an image as bytes: each was written as a difference from what is beside or above it."""
    before = bytearray(stride)
    for start in range(0, len(raw), stride + 1):
        kind, line = raw[start], bytearray(raw[start + 1:start + 1 + stride])
        if kind == 2:
            line = bytearray((one + other) & 255 for one, other in zip(line, before))
        elif kind:
            for at in range(stride):
                left, above = (line[at - size] if at >= size else 0), before[at]
                corner = before[at - size] if at >= size else 0
                line[at] = (line[at] + (left, 0, (left + above) // 2, paeth(left, above, corner))[kind - 1]) & 255
        yield line
        before = line


def palette(counts, wanted):
    """The wanted and then the commonest colours, and for each other one the place of the nearest."""
    kept = [colour for colour in wanted if colour in counts]
    kept += [colour for colour, _ in counts.most_common(COLOURS) if colour not in kept][:COLOURS - len(kept)]
    place = {colour: index for index, colour in enumerate(kept)}
    for colour in counts:
        if colour not in place:
            place[colour] = min(range(len(kept)), key=lambda index: sum((one - other) ** 2 for one, other in zip(kept[index], colour)))
    return kept, place


def with_palette(data, wanted=()):
    """The same picture, smaller. Wanted are colours ("#rrggbb") that must stay, however small what they paint. Pictures of another make than a
    browser's (8 bits, not interlaced, no palette) come back as they are.
    """
    parts = list(chunks(data))
    width, height, depth, kind, *_, interlaced = struct.unpack(">IIBBBBB", parts[0][1])
    size = {2: 3, 6: 4}.get(kind)
    if depth != 8 or size is None or interlaced:
        return data
    raw = zlib.decompress(b"".join(body for name, body in parts if name == b"IDAT"))
    lines = [[bytes(line[at:at + 3]) for at in range(0, len(line), size)] for line in unfiltered(raw, width * size, size)]
    counts = Counter(colour for line in lines for colour in line)
    kept, place = palette(counts, dict.fromkeys(bytes.fromhex(colour[1:]) for colour in wanted))
    packed = b"".join(b"\0" + bytes(place[colour] for colour in line) for line in lines)
    return (SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) + chunk(b"PLTE", b"".join(kept))
            + chunk(b"IDAT", zlib.compress(packed, 9)) + chunk(b"IEND", b""))
