// Small instruments: the scale of distances, a bar, and a row of pips. All geometry is in per cent of their width, so
// they fit any card without measuring it.

import { attributes, el, svg } from "./dom.js";

/** Voices of different people lie around 0.8 to 1.0 with the shipped models; beyond 1.2 nothing is told apart. */
const DISTANCE_MAX = 1.2;
const BASE = 13;

const at = (value) => `${((Math.min(Math.max(value, 0), DISTANCE_MAX) / DISTANCE_MAX) * 100).toFixed(2)}%`;

/** Where the nearest person and the next lie, beside the threshold and the lead that a name needs. */
export class Scale {
  constructor() {
    this.accepted = svg("rect", { class: "scale-accepted", x: 0, y: BASE - 5, height: 10, rx: 2 });
    this.threshold = svg("line", { class: "scale-threshold", y1: BASE - 9, y2: BASE + 9 });
    this.lead = svg("line", { class: "scale-lead", y1: BASE, y2: BASE });
    this.needed = svg("line", { class: "scale-needed", y1: BASE - 5, y2: BASE + 5 });
    this.next = svg("circle", { class: "scale-next", cy: BASE, r: 4 });
    this.best = svg("circle", { class: "scale-best", cy: BASE, r: 5.5 });
    const track = svg("line", { class: "scale-track", x1: 0, x2: "100%", y1: BASE, y2: BASE });
    this.node = svg(
      "svg",
      { class: "scale", height: 26, "aria-hidden": "true", focusable: "false" },
      this.accepted,
      track,
      this.threshold,
      this.lead,
      this.needed,
      this.next,
      this.best,
    );
  }

  update({ distance, runner_up_distance: next }, limits) {
    const [hasBest, hasNext] = [distance !== undefined, next !== undefined];
    attributes(this.best, { cx: at(distance ?? 0), visibility: hasBest ? undefined : "hidden" });
    attributes(this.next, { cx: at(next ?? 0), visibility: hasNext ? undefined : "hidden" });
    attributes(this.lead, {
      x1: at(distance ?? 0),
      x2: at(next ?? 0),
      visibility: hasBest && hasNext ? undefined : "hidden",
    });
    const needed = (distance ?? 0) + (limits?.margin ?? 0);
    attributes(this.needed, {
      x1: at(needed),
      x2: at(needed),
      visibility: limits && hasBest && hasNext ? undefined : "hidden",
    });
    const bound = at(limits?.threshold ?? 0);
    attributes(this.accepted, { width: bound, visibility: limits ? undefined : "hidden" });
    attributes(this.threshold, { x1: bound, x2: bound, visibility: limits ? undefined : "hidden" });
  }
}

/** A share between nothing and all. */
export class Bar {
  constructor() {
    this.fill = svg("rect", { class: "bar-fill", height: 6, rx: 3 });
    const track = svg("rect", { class: "bar-track", width: "100%", height: 6, rx: 3 });
    this.node = svg("svg", { class: "bar", height: 6, "aria-hidden": "true", focusable: "false" }, track, this.fill);
  }

  update(share) {
    attributes(this.fill, { width: `${(Math.min(Math.max(share, 0), 1) * 100).toFixed(1)}%` });
  }
}

/** What was spent of a few. */
export class Pips {
  constructor() {
    this.node = el("span", { class: "pips", "aria-hidden": "true" });
  }

  update(spent, all) {
    if (this.node.childElementCount !== all) {
      this.node.replaceChildren(...Array.from({ length: all }, () => el("span", { class: "pip" })));
    }
    [...this.node.children].forEach((pip, index) => attributes(pip, { "data-spent": index < spent ? "yes" : "no" }));
  }
}

/** An instrument with its name above and its reading below. */
export function instrument(name, picture, ...readings) {
  return el("div", { class: "instrument" }, el("p", { class: "label" }, name), picture, ...readings);
}

/** What the marks on a scale mean. */
export function scaleKey() {
  const sign = (...marks) =>
    svg("svg", { viewBox: "0 0 14 14", "aria-hidden": "true", focusable: "false", "data-tone": "nobody" }, ...marks);
  const upright = (kind, from) => svg("line", { class: kind, x1: 7, x2: 7, y1: from, y2: 14 - from });
  const signs = [
    [sign(svg("circle", { class: "scale-best", cx: 7, cy: 7, r: 5.5 })), "nearest person"],
    [sign(svg("circle", { class: "scale-next", cx: 7, cy: 7, r: 4 })), "the next"],
    [sign(upright("scale-threshold", 0)), "threshold"],
    [sign(upright("scale-needed", 2)), "where the next may begin"],
  ];
  return el("p", { class: "key" }, ...signs.map(([picture, meaning]) => el("span", {}, picture, meaning)));
}
