"""Numbers as a reader wants them, and the marks of an axis."""

import math

SECONDS = [(1e-6, "µs"), (1e-3, "ms"), (1, "s"), (60, "min"), (3600, "h")]
BYTES = [(1, "B"), (2 ** 10, "KiB"), (2 ** 20, "MiB"), (2 ** 30, "GiB"), (2 ** 40, "TiB")]
COUNTS = [(1, ""), (1e3, " K"), (1e6, " Mil")]
SUFFIXES = {"ops": " ops/s", "reqps": " req/s"}


def plain(value, digits=3):
    """At most so many digits that say something, and none that say nothing."""
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{min(decimals, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def scaled(value, steps, between=""):
    size, name = max((step for step in steps if abs(value) >= step[0]), default=steps[0])
    return f"{plain(value / size)}{between if name else ''}{name}"


def number(value, unit, decimals=None):
    """A value with its unit, as Grafana calls units."""
    if unit == "percentunit":
        return f"{value * 100:.{decimals}f}%" if decimals is not None else f"{plain(value * 100)}%"
    if unit == "s":
        return scaled(value, SECONDS, " ") if value else "0 s"
    if unit == "bytes":
        return scaled(value, BYTES, " ") if value else "0 B"
    return (scaled(value, COUNTS) if abs(value) >= 1 else plain(value)) + SUFFIXES.get(unit, "")


def marks(low, high, wanted=5, is_binary=False):
    """Round values from below `low` to above `high`, about so many of them."""
    if high <= low:
        high = low + 1
    rough = (high - low) / wanted
    base = 2 if is_binary and rough >= 1 else 10
    size = base ** math.floor(math.log(rough, base))
    steps = (1, 2) if base == 2 else (1, 2, 2.5, 5, 10)
    step = next((size * part for part in steps if size * part >= rough * 0.999), size * base)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]
