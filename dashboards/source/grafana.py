"""Grafana's JSON model: how rows and panels become a dashboard. Does not own what they show (see `board`)."""

import re

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Raw series carry job and instance; recorded ones are sums over the instances of a job.
RAW = re.compile(r"\b((?:omi|rollcall)_[a-z0-9_]+)(?:\{([^}]*)\})?")
RECORDED = re.compile(r"\b(rollcall:[a-z0-9_:]+)(?:\{([^}]*)\})?")
WIDTH = 24


def choose(expr):
    """The expression with the chosen jobs and instances put into every selector."""

    def with_matchers(own):
        return lambda match: f"{match[1]}{{{own}{', ' + match[2] if match[2] else ''}}}"

    expr = RAW.sub(with_matchers('job=~"$job", instance=~"$instance"'), expr)
    return RECORDED.sub(with_matchers('job=~"$job"'), expr)


def panel(title, help_text, unit, *targets, kind="timeseries", width=8, lines=(), **more):
    """One panel. A target is (expression, legend); `lines` are values to draw across, the first in orange, others in red. More:
    `exemplars` for dots that lead to traces, `says` for what 0 and 1 mean, `min`, `max`, `decimals`, `stacked`, `height`."""
    return {"title": title, "help": help_text, "unit": unit, "targets": targets, "kind": kind, "width": width,
            "lines": lines} | more


# What shows one number a series, asked for the end of the chosen time.
INSTANT = ("stat", "bargauge")


def target(index, expr, legend, spec):
    is_instant = spec["kind"] in INSTANT
    made = {"refId": chr(ord("A") + index), "datasource": DATASOURCE, "editorMode": "code", "expr": choose(expr),
            "legendFormat": legend, "range": not is_instant, "instant": is_instant}
    if spec["kind"] == "heatmap":
        made["format"] = "heatmap"
    # Only an expression over buckets has any.
    if spec.get("exemplars") and "_bucket" in expr:
        made["exemplar"] = True
    return made


def thresholds(lines):
    colours = ["orange"] + ["red"] * len(lines)
    steps = [{"color": "green", "value": None}]
    return {"mode": "absolute", "steps": steps + [{"color": c, "value": v} for c, v in zip(colours, lines)]}


def field_config(spec):
    defaults = {"unit": spec["unit"], "thresholds": thresholds(spec["lines"])}
    # Quantities start at 0; None leaves the axis to the data.
    if spec.get("min", 0) is not None:
        defaults["min"] = 0
    if "max" in spec:
        defaults["max"] = spec["max"]
    if "decimals" in spec:
        defaults["decimals"] = spec["decimals"]
    if spec["kind"] == "timeseries":
        drawn = {"lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": False,
                 "thresholdsStyle": {"mode": "line" if spec["lines"] else "off"}}
        if spec.get("stacked"):
            drawn["stacking"] = {"mode": "normal", "group": "A"}
        defaults["custom"] = drawn
    if spec["kind"] == "state-timeline":
        no, yes = spec["says"]
        said = {"0": {"text": no, "color": "red", "index": 0}, "1": {"text": yes, "color": "green", "index": 1}}
        defaults["mappings"] = [{"type": "value", "options": said}]
    return {"defaults": defaults, "overrides": []}


def options(kind, unit):
    if kind == "bargauge":
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "orientation": "horizontal", "displayMode": "basic", "valueMode": "color"}
    if kind == "stat":
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "none", "textMode": "value_and_name"}
    if kind == "heatmap":
        return {"calculate": False, "cellGap": 1, "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
                "yAxis": {"unit": unit}, "tooltip": {"show": True}}
    if kind == "state-timeline":
        return {"showValue": "auto", "mergeValues": True}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}


def render(number, spec, x, y):
    height = spec.get("height", 8)
    return {"id": number, "type": spec["kind"], "title": spec["title"], "description": spec["help"], "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": spec["width"], "h": height}, "fieldConfig": field_config(spec),
            "options": options(spec["kind"], spec["unit"]),
            "targets": [target(i, expr, legend, spec) for i, (expr, legend) in enumerate(spec["targets"])]}


def place(rows):
    """Every row's heading, then its panels from left to right and on into the next line."""
    placed, number, y = [], 0, 0
    for title, panels in rows:
        number += 1
        placed.append({"id": number, "type": "row", "title": title, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}})
        x, y, tallest = 0, y + 1, 0
        for spec in panels:
            if x + spec["width"] > WIDTH:
                x, y, tallest = 0, y + tallest, 0
            number += 1
            placed.append(render(number, spec, x, y))
            x, tallest = x + spec["width"], max(tallest, placed[-1]["gridPos"]["h"])
        y += tallest
    return placed


def variable(name, query):
    return {"name": name, "label": name, "type": "query", "datasource": DATASOURCE, "definition": query,
            "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1, "multi": True, "includeAll": True,
            "allValue": ".+", "current": {"text": "All", "value": "$__all"}, "options": []}


def dashboard(rows, deploys):
    """The whole model. `deploys` is the expression whose series mark a version's first minutes."""
    source = {"name": "datasource", "label": "data source", "type": "datasource", "query": "prometheus", "refresh": 1,
              "current": {}, "options": []}
    marks = {"name": "A version starts", "datasource": DATASOURCE, "enable": True, "iconColor": "blue", "expr": choose(deploys),
             "step": "60s", "titleFormat": "Rollcall {{version}}", "useValueForTime": False}
    return {"uid": "rollcall", "title": "Rollcall", "description": "Who is named, who is not and why, and what it costs.",
            "tags": ["rollcall"], "editable": False, "graphTooltip": 1, "schemaVersion": 38, "version": 1, "timezone": "browser",
            "refresh": "30s", "time": {"from": "now-6h", "to": "now"}, "annotations": {"list": [marks]}, "links": [],
            "templating": {"list": [source, variable("job", "label_values(rollcall_build_info, job)"),
                                    variable("instance", 'label_values(rollcall_build_info{job=~"$job"}, instance)')]},
            "panels": place(rows)}
