// The recording's tokens, which drain with each query and come back one by one; between two pieces of news the page
// counts on by the refill rate itself.

import { attributes, el, svg, text } from "./dom.js";
import { duration } from "./words.js";

/** Beyond so many a cell is too thin to be seen, and one bar shows the share. */
const CELLS_MAX = 48;
const GAP = 0.8;

export class Budget {
  constructor() {
    this.now = el("span", { class: "big" });
    this.of = el("span", { class: "big-of" });
    this.cells = svg("svg", { class: "cells", height: 18, "aria-hidden": "true", focusable: "false" });
    this.next = el("p", { class: "reading" });
    this.rows = el("dl", { class: "rows" });
    const title = el("h3", { class: "part-title" }, "Budget");
    const reading = el("p", { class: "tokens" }, this.now, this.of);
    this.node = el("section", { class: "card budget" }, title, reading, this.cells, this.next, this.rows);
  }

  update(lane) {
    this.limits = lane.limits;
    this.tokens = lane.socket_tokens;
    this.since = performance.now();
    this.tick();
    const { reserved, succeeded, failed, denied } = lane.budget;
    this.tell([
      ["Queries reserved", reserved],
      ["Succeeded", succeeded],
      ["Failed", failed],
      ["Denied: voice spent", denied.voice],
      ["Denied: no token", denied.socket],
      ["Denied: both at once", denied.both],
    ]);
  }

  tell(rows) {
    if (this.rows.childElementCount !== rows.length) {
      this.rows.replaceChildren(...rows.map(([name]) => el("div", {}, el("dt", {}, name), el("dd", {}))));
    }
    rows.forEach(([, value], index) => text(this.rows.children[index].lastChild, value));
  }

  tick() {
    if (!this.limits) return;
    const { socket_burst: burst, refill_per_hour: hourly } = this.limits;
    const elapsed = (performance.now() - this.since) / 1000;
    const tokens = Math.min(burst, this.tokens + (elapsed * hourly) / 3600);
    text(this.now, tokens.toFixed(1));
    text(this.of, ` of ${burst} tokens`);
    this.draw(tokens, burst);
    text(this.next, refill(tokens, burst, hourly));
  }

  draw(tokens, burst) {
    const cells = burst <= CELLS_MAX ? burst : 1;
    if (this.cells.childElementCount !== 2 * cells) this.cells.replaceChildren(...blank(cells));
    const width = 100 / cells;
    const perCell = burst / cells;
    for (let index = 0; index < cells; index += 1) {
      const share = Math.min(Math.max(tokens / perCell - index, 0), 1);
      attributes(this.cells.children[2 * index + 1], { width: `${(share * (width - GAP)).toFixed(2)}%` });
    }
  }
}

function blank(cells) {
  const width = 100 / cells;
  return Array.from({ length: cells }, (_, index) => {
    const place = { x: `${(index * width).toFixed(2)}%`, height: 18, rx: 2 };
    return [
      svg("rect", { class: "cell", ...place, width: `${(width - GAP).toFixed(2)}%` }),
      svg("rect", { class: "cell-fill", ...place, width: 0 }),
    ];
  }).flat();
}

function refill(tokens, burst, hourly) {
  if (hourly <= 0) return "None comes back.";
  const each = 3600 / hourly;
  if (tokens >= burst) return `Full. One comes back every ${duration(each)}.`;
  const next = (1 - (tokens % 1)) * each;
  return `Next in ${Math.ceil(next)} s, one every ${duration(each)}.`;
}
