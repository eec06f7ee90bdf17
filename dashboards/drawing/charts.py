"""Charts as SVG: lines over time, cells by time and size, bands of a state. Does not own legends, frames and numbers (see `page`)."""

import html
import time

from drawing.units import marks, number

PALETTE = ["#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#e0b400", "#37872d", "#fa6400", "#ca95e5",
           "#96d98d", "#3274d9", "#ffcb7d"]
NAMED = {"green": "#73bf69", "orange": "#ff9830", "red": "#f2495c", "blue": "#5794f2"}
GRID, TEXT, DOT = "#2a2c31", "#8e9099", "#ccccdc"
BOTTOM, TOP, RIGHT = 20, 6, 10
# What a letter takes at the size of an axis, and the least that stands left of one.
LETTER, LEFT_MIN = 6.3, 40
HEAT = ["#1d1a17", "#4a2a10", "#7f3b08", "#b35806", "#e08214", "#fdb863", "#fee0b6"]


def colour(index):
    return PALETTE[index % len(PALETTE)]


def text(x, y, words, anchor="end"):
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{TEXT}" font-size="11" text-anchor="{anchor}">{html.escape(words)}</text>'


def line(x1, y1, x2, y2, stroke=GRID, more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" {more}/>'


class Plane:
    """A rectangle with time from left to right, and values from bottom to top."""

    def __init__(self, size, span, values, labels):
        self.width, self.height = size
        self.span, self.values = span, values
        self.left = max([LEFT_MIN] + [len(label) * LETTER + 12 for label in labels])

    def x(self, at):
        start, end = self.span
        return self.left + (at - start) / (end - start) * (self.width - self.left - RIGHT)

    def y(self, value):
        low, high = self.values
        return self.height - BOTTOM - (value - low) / (high - low) * (self.height - BOTTOM - TOP)

    def svg(self, parts):
        return (f'<svg width="{self.width}" height="{self.height}" xmlns="http://www.w3.org/2000/svg">' + "".join(parts) + "</svg>")

    def times(self, grid=True):
        start, end = self.span
        # A mark a minute, or more seldom where they would touch.
        step = 60 * max(1, round((end - start) / 60 / max(2, (self.width - self.left) // 80)))
        for at in range(int(start // step + 1) * step, int(end) + 1, step):
            if grid:
                yield line(self.x(at), TOP, self.x(at), self.height - BOTTOM)
            if self.left < self.x(at) < self.width - 20:
                yield text(self.x(at), self.height - 5, time.strftime("%H:%M", time.gmtime(at)), "middle")


def stacked(series):
    """Each series on top of those before it: (bottom, top) by time."""
    ground, bands = {}, []
    for _, points in series:
        band = [(at, ground.get(at, 0), ground.get(at, 0) + value) for at, value in points]
        ground.update((at, top) for at, _, top in band)
        bands.append(band)
    return bands


def runs(band, step):
    """Stretches without a gap."""
    made = []
    for point in band:
        if not made or point[0] - made[-1][-1][0] > step * 1.5:
            made.append([])
        made[-1].append(point)
    return made


def curve(plane, band, stroke, step):
    for run in runs(band, step):
        top = [(plane.x(at), plane.y(high)) for at, _, high in run]
        bottom = [(plane.x(at), plane.y(low)) for at, low, _ in run]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in top)
        if len(run) == 1:
            yield f'<circle cx="{top[0][0]:.1f}" cy="{top[0][1]:.1f}" r="1.5" fill="{stroke}"/>'
        area = path + " " + " ".join(f"{x:.1f},{y:.1f}" for x, y in reversed(bottom))
        yield f'<polygon points="{area}" fill="{stroke}" fill-opacity="0.12"/>'
        yield f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="1.4" stroke-linejoin="round"/>'


def timeseries(size, span, step, panel, series, dots=()):
    """Lines, with the panel's thresholds across and exemplars as dots."""
    defaults = panel["fieldConfig"]["defaults"]
    drawn = defaults["custom"]
    is_stacked = "stacking" in drawn
    low = defaults.get("min", min((value for _, points in series for _, value in points), default=0))
    bands = stacked(series) if is_stacked else [[(at, low, value) for at, value in points] for _, points in series]
    high = max([top for band in bands for *_, top in band] + [value for _, value in dots], default=1)
    across = [step for step in defaults["thresholds"]["steps"] if step["value"] is not None]
    if drawn["thresholdsStyle"]["mode"] == "off":
        across = []
    # A threshold above everything stays beyond the edge, as in Grafana: it would press the data flat.
    top = defaults.get("max", high if high > low else low + 1)
    scale = marks(low, top, max(2, size[1] // 40), defaults["unit"] == "bytes")
    labels = [number(mark, defaults["unit"]) for mark in scale]
    plane = Plane(size, span, (scale[0], scale[-1]), labels)
    parts = list(plane.times())
    for mark, label in zip(scale, labels):
        parts += [line(plane.left, plane.y(mark), size[0] - RIGHT, plane.y(mark)), text(plane.left - 6, plane.y(mark) + 4, label)]
    for index, band in enumerate(bands):
        parts += curve(plane, band, colour(index), step)
    for limit in across:
        if scale[0] < limit["value"] <= scale[-1]:
            at = plane.y(limit["value"])
            parts.append(line(plane.left, at, size[0] - RIGHT, at, NAMED[limit["color"]], 'stroke-dasharray="6 4"'))
    for at, value in dots:
        if scale[0] <= value <= scale[-1]:
            x, y = plane.x(at), plane.y(value)
            parts.append(f'<path d="M{x:.1f},{y - 3:.1f} l3,3 l-3,3 l-3,-3 z" fill="{DOT}" fill-opacity="0.7"/>')
    return plane.svg(parts)


def heatmap(size, span, panel, series):
    """Cumulative buckets become cells: what fell between a bound and the one below it."""
    rows = sorted((float(bound.replace("+Inf", "inf")), dict(points)) for bound, points in series)
    unit = panel["fieldConfig"]["defaults"]["unit"]
    labels = ["+Inf" if bound == float("inf") else number(bound, unit) for bound, _ in rows]
    plane = Plane(size, span, (0, max(1, len(rows))), labels)
    moments = sorted({at for _, points in rows for at in points})
    width = (plane.x(moments[1]) - plane.x(moments[0])) if len(moments) > 1 else 4
    cells = []
    for index, (_, points) in enumerate(rows):
        below = rows[index - 1][1] if index else {}
        cells += [(at, index, value - below.get(at, 0)) for at, value in points.items() if value - below.get(at, 0) > 1e-9]
    most = max((count for *_, count in cells), default=1)
    parts = list(plane.times(grid=False))
    for at, index, count in cells:
        shade = HEAT[min(len(HEAT) - 1, 1 + int((count / most) ** 0.5 * (len(HEAT) - 1.001)))]
        parts.append(f'<rect x="{plane.x(at):.1f}" y="{plane.y(index + 1) + 0.5:.1f}" width="{max(1, width - 0.7):.1f}" '
                     f'height="{plane.y(index) - plane.y(index + 1) - 1:.1f}" fill="{shade}"/>')
    every = max(1, round(14 * len(rows) / (size[1] - BOTTOM)))
    parts += [text(plane.left - 6, plane.y(index + 0.5) + 4, labels[index]) for index in range(0, len(rows), every)]
    parts.append(line(plane.left, size[1] - BOTTOM, size[0] - RIGHT, size[1] - BOTTOM))
    return plane.svg(parts)


def timeline(size, span, step, panel, series):
    """A band a series, coloured by its state."""
    said = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    plane = Plane(size, span, (0, max(1, len(series))), [name for name, _ in series])
    parts = list(plane.times(grid=False))
    for index, (name, points) in enumerate(reversed(series)):
        top, bottom = plane.y(index + 0.85), plane.y(index + 0.15)
        parts.append(text(plane.left - 6, (top + bottom) / 2 + 4, name))
        for state, stretch in stretches(points):
            x, width = plane.x(stretch[0]), plane.x(min(stretch[-1] + step, span[1])) - plane.x(stretch[0])
            means = said[state]
            parts.append(f'<rect x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{bottom - top:.1f}" '
                         f'fill="{NAMED[means["color"]]}" fill-opacity="0.75"/>')
            if width > 60:
                parts.append(f'<text x="{x + 6:.1f}" y="{(top + bottom) / 2 + 4:.1f}" font-size="11" fill="#111217">{means["text"]}</text>')
    return plane.svg(parts)


def stretches(points):
    made = []
    for at, value in points:
        state = str(int(value))
        if not made or made[-1][0] != state:
            made.append((state, []))
        made[-1][1].append(at)
    return made
