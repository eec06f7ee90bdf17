"""The page: rows, panels in their places, legends, and panels that show numbers. Charts come from `charts`."""

import html

from drawing import charts
from drawing.units import number

WIDTH, MARGIN, GUTTER, UNIT = 1600, 16, 8, 38
HEADER, PADDING, LEGEND_LINE = 26, 8, 17
# What DejaVu Sans takes at the legend's size, on average; a line too many is only a little air.
LETTER = 6.4
STYLE = """
body { margin: 0; background: #111217; color: #ccccdc; font: 12px "DejaVu Sans", sans-serif; position: relative; }
svg { display: block; }
.panel, .row, header { position: absolute; box-sizing: border-box; }
header { left: 16px; right: 16px; top: 14px; }
header b { font-size: 20px; font-weight: 500; } header span { color: #8e9099; margin-left: 14px; }
.chip { float: right; border: 1px solid #34363d; border-radius: 2px; padding: 4px 10px; margin-left: 8px; color: #ccccdc; }
.row { font-size: 15px; font-weight: 500; padding-top: 9px; } .row::before { content: "▾ "; color: #8e9099; }
.panel { background: #181b1f; border: 1px solid #25272c; border-radius: 2px; overflow: hidden; padding: 0 8px; }
.title { height: 26px; line-height: 26px; font-weight: 500; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.legend { color: #aeb0ba; font-size: 11px; line-height: 17px; overflow: hidden; }
.legend i { display: inline-block; width: 13px; height: 3px; border-radius: 1px; margin: 0 5px 3px 0; }
.legend span { margin-right: 12px; white-space: nowrap; display: inline-block; }
.none { color: #6e7079; text-align: center; }
.tiles { display: flex; gap: 6px; } .tile { flex: 1; display: flex; flex-direction: column; align-items: center; justify-content: center; }
.tile small { color: #aeb0ba; font-size: 12px; margin-bottom: 4px; text-align: center; }
.bar { display: flex; align-items: center; gap: 10px; } .bar label { width: 96px; text-align: right; color: #ccccdc; }
.bar div { flex: 1; background: #22252b; height: 70%; } .bar div div { height: 100%; } .bar b { width: 70px; font-size: 16px; font-weight: 500; }
"""


def box(place, offset):
    column = (WIDTH - 2 * MARGIN + GUTTER) / 24
    return (round(MARGIN + place["x"] * column), offset + place["y"] * UNIT, round(place["w"] * column) - GUTTER,
            place["h"] * UNIT - GUTTER)


def legend(names, width):
    """The legend and its height, of three lines at most."""
    lines, left = 1, width
    for name in names:
        needed = len(name) * LETTER + 32
        if needed > left and left < width:
            lines, left = lines + 1, width
        left -= needed
    spans = "".join(f'<span><i style="background:{charts.colour(index)}"></i>{html.escape(name)}</span>'
                    for index, name in enumerate(names))
    height = min(lines, 3) * LEGEND_LINE
    return f'<div class="legend" style="height:{height}px">{spans}</div>', height


def threshold_colour(value, defaults):
    reached = [step for step in defaults["thresholds"]["steps"] if step["value"] is None or value >= step["value"]]
    return charts.NAMED[reached[-1]["color"]]


def tiles(size, panel, series):
    defaults = panel["fieldConfig"]["defaults"]
    made = []
    for name, points in series:
        value = points[-1][1]
        shown = number(value, defaults["unit"], defaults.get("decimals"))
        room = size[0] / max(1, len(series))
        font = max(15, min(38, room / (len(shown) + 1) * 1.5, size[1] * 0.42))
        made.append(f'<div class="tile"><small>{html.escape(name)}</small>'
                    f'<b style="font-size:{font:.0f}px;color:{threshold_colour(value, defaults)}">{shown}</b></div>')
    return f'<div class="tiles" style="height:{size[1]}px">{"".join(made)}</div>'


def bars(size, panel, series):
    most = max((points[-1][1] for _, points in series), default=1) or 1
    made = []
    for index, (name, points) in enumerate(series):
        value = points[-1][1]
        made.append(f'<div class="bar" style="height:{size[1] / len(series):.1f}px"><label>{html.escape(name)}</label><div>'
                    f'<div style="width:{value / most * 100:.1f}%;background:{charts.colour(index)}"></div></div>'
                    f'<b>{number(round(value), panel["fieldConfig"]["defaults"]["unit"])}</b></div>')
    return "".join(made)


def content(panel, data, size):
    """What a panel shows below its title, in so many pixels."""
    series = data["series"]
    if not series:
        return f'<div class="none" style="line-height:{size[1] - 30}px">No data</div>'
    if panel["type"] == "stat":
        return tiles(size, panel, series)
    if panel["type"] == "bargauge":
        return bars(size, panel, series)
    span, step = data["span"], data["step"]
    if panel["type"] == "heatmap":
        return charts.heatmap(size, span, panel, series)
    if panel["type"] == "state-timeline":
        return charts.timeline(size, span, step, panel, series)
    names, height = legend([name for name, _ in series], size[0])
    return charts.timeseries((size[0], size[1] - height), span, step, panel, series, data["dots"]) + names


def drawn(panel, data, offset):
    x, y, width, height = box(panel["gridPos"], offset)
    inside = content(panel, data, (width - 2 * PADDING, height - HEADER - PADDING))
    return (f'<div class="panel" style="left:{x}px;top:{y}px;width:{width}px;height:{height}px">'
            f'<div class="title">{html.escape(panel["title"])}</div>{inside}</div>')


def heading(panel, offset):
    x, y, width, height = box(panel["gridPos"], offset)
    return f'<div class="row" style="left:{x}px;top:{y}px;width:{width}px;height:{height}px">{html.escape(panel["title"])}</div>'


def page(model, told, panels, data):
    """HTML of some panels of a dashboard, and its height. `told` stands beside the title; `data` is by the panel's id."""
    offset = 62 - min(panel["gridPos"]["y"] for panel in panels) * UNIT
    body = [heading(panel, offset) if panel["type"] == "row" else drawn(panel, data[panel["id"]], offset) for panel in panels]
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) * UNIT + offset + MARGIN
    chips = f'<span class="chip">{told["range"]}</span>'
    return (f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style><body style="width:{WIDTH}px;height:{height}px"><header>{chips}'
            f'<b>{html.escape(model["title"])}</b><span>{html.escape(told["source"])}</span></header>{"".join(body)}</body>'), height
