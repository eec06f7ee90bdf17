// The list at the side: live conversations first, then those that ended, newest first.

import { attributes, el, Keyed, text } from "./dom.js";
import { moment } from "./words.js";

export class Conversations {
  constructor(list, empty) {
    this.empty = empty;
    this.known = [];
    this.rows = new Keyed(list, row);
  }

  update(conversations) {
    const order = (one, other) => other.live - one.live || other.updated_at - one.updated_at;
    this.known = [...conversations].sort(order);
    this.empty.hidden = this.known.length > 0;
    this.draw();
  }

  /** Marks the one that is shown. */
  mark(id) {
    this.marked = id;
    this.draw();
  }

  draw() {
    this.rows.update(
      this.known.map((known) => ({ ...known, marked: known.id === this.marked })),
      (known) => known.id,
    );
  }

  /** What is shown where nobody chose: what is shown already while it is live, else the newest. */
  newest(shown) {
    const current = this.known.find((known) => known.id === shown);
    const first = this.known[0];
    return current?.live || !first?.live ? ((current ?? first)?.id ?? shown) : first.id;
  }
}

function row() {
  const name = el("span", { class: "list-name" });
  const when = el("span", { class: "list-when" });
  const dot = el("span", { class: "dot", "aria-hidden": "true" });
  const link = el("a", { class: "list-link" }, dot, name, when);
  return {
    node: el("li", {}, link),
    update(known) {
      attributes(link, {
        href: `#/conversations/${encodeURIComponent(known.id)}`,
        "aria-current": known.marked ? "true" : undefined,
        "data-live": known.live ? "yes" : "no",
      });
      text(name, known.id);
      text(when, known.live ? `Live since ${moment(known.started_at)}` : `Ended ${moment(known.updated_at)}`);
    },
  };
}
