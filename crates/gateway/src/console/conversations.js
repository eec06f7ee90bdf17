// The list at the side, in the server's order: live conversations first, then those that ended, newest first.

import { attributes, el, Keyed, text } from "./dom.js";
import { moment } from "./words.js";

export class Conversations {
  constructor(list, empty) {
    this.empty = empty;
    this.known = [];
    this.deleted = new Set();
    this.rows = new Keyed(list, row);
  }

  update(conversations) {
    // A list that was read before a deletion can come after it.
    this.known = conversations.filter((known) => known.live || !this.deleted.has(known.id));
    this.deleted = new Set(conversations.map(({ id }) => id).filter((id) => this.deleted.has(id)));
    this.isHeard = true;
    this.empty.hidden = this.known.length > 0;
    this.draw();
  }

  /** Takes out one that was deleted. */
  forget(id) {
    this.deleted.add(id);
    this.update(this.known);
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

  /**
   * What is shown where nobody chose: what is shown already until the feed says that it ended, and then the newest that
   * is live. Without one, what is shown stays as long as it is known.
   */
  newest(shown, isLive) {
    if (isLive || !this.isHeard) return shown;
    const first = this.known[0];
    const isKnown = this.known.some((known) => known.id === shown);
    return isKnown && !first.live ? shown : first?.id;
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
