// The chosen conversation: its head, and one part for each of its recordings. A live one is told by the feed; one that
// ended is read once, with its segments from the export.

import * as api from "./api.js";
import { toast, Verdicts } from "./announce.js";
import { confirmed } from "./dialog.js";
import { attributes, el, Keyed, text } from "./dom.js";
import { Lane } from "./lane.js";
import { Rulings } from "./rulings.js";
import { count, moment } from "./words.js";

/** Tokens and ages move on between two pieces of news. */
const TICK_MS = 250;
const FORMATS = [
  ["rttm", "RTTM"],
  ["vtt", "WebVTT"],
  ["json", "JSON"],
];

export class Conversation {
  constructor(root, people) {
    this.root = root;
    this.people = people;
    // Each reading has a turn; an answer that comes after the next has begun is dropped.
    this.turn = 0;
    this.showNothing();
    setInterval(() => this.lanes?.parts.forEach((lane) => lane.tick()), TICK_MS);
  }

  show(id) {
    if (id === this.id) return;
    this.id = id;
    this.turn += 1;
    this.rulings = undefined;
    if (id === undefined) this.showNothing();
    else this.build(id);
  }

  showNothing() {
    const address = location.origin;
    this.lanes = undefined;
    this.root.replaceChildren(
      el(
        "div",
        { class: "welcome" },
        el("h1", {}, "No conversation yet"),
        el("p", {}, "Enrol the people whose names you expect, then stream a conversation. It appears here by itself."),
        el("p", { class: "label" }, "With the demo’s voices, from a second terminal:"),
        el("pre", { class: "code", tabindex: "0" }, command(address)),
      ),
    );
  }

  build(id) {
    this.title = el("h1", { class: "title" }, id);
    this.badge = el("span", { class: "badge" });
    this.subtitle = el("p", { class: "subtitle" });
    this.remove = el(
      "button",
      { class: "button quiet danger", type: "button", onclick: () => this.deleteIt() },
      "Delete",
    );
    const links = FORMATS.map(([format, name]) =>
      el(
        "a",
        { class: "button quiet", href: api.exportPath(id, format), download: "", "aria-label": `Export as ${name}` },
        name,
      ),
    );
    const recordings = el("div", { class: "lanes" });
    this.lanes = new Keyed(
      recordings,
      () =>
        new Lane(
          this.people,
          () => this.id,
          () => this.read(),
        ),
    );
    this.verdicts = new Verdicts();
    this.root.replaceChildren(
      el(
        "header",
        { class: "head" },
        el("div", { class: "head-text" }, el("div", { class: "title-row" }, this.title, this.badge), this.subtitle),
        el("div", { class: "head-actions" }, el("span", {}, "Export"), ...links, this.remove),
      ),
      recordings,
    );
    text(this.subtitle, "Loading …");
    this.read();
  }

  /** Reads the conversation once: at first, after its end, and after a correction. */
  async read() {
    const id = this.id;
    this.turn += 1;
    const turn = this.turn;
    this.heard = undefined;
    try {
      const news = await api.readConversation(id);
      const segments = news.live ? [] : await api.readSegments(id);
      const rulings = news.live ? new Rulings(await api.readLabels(id)) : undefined;
      if (turn !== this.turn) return;
      this.rulings = rulings;
      // What the feed told meanwhile is newer, and it does not tell the same twice.
      this.draw(news.live ? (this.heard ?? news) : news, segments);
    } catch (error) {
      if (turn === this.turn) text(this.subtitle, error.message);
    }
  }

  /** News of the feed. */
  update(news) {
    if (news.conversation_id !== this.id) return;
    this.heard = news;
    this.draw(news, []);
  }

  draw(news, segments) {
    if (!this.lanes) return;
    const lanes = news.lanes.map((lane) => (news.live ? liveLane(lane, this.rulings) : endedLane(lane, segments)));
    attributes(this.badge, { "data-live": news.live ? "yes" : "no" });
    text(this.badge, news.live ? "Live" : "Ended");
    this.remove.hidden = news.live;
    text(this.subtitle, subtitle(news, lanes));
    this.lanes.update(
      lanes.map((lane) => ({ ...lane, live: news.live, alone: lanes.length === 1 })),
      (lane) => `${news.live}:${lane.lane ?? ""}:${lane.recording_id ?? ""}`,
    );
    this.verdicts.update(lanes);
  }

  ended(id) {
    if (id === this.id) this.read();
  }

  async deleteIt() {
    const id = this.id;
    const question =
      "Its segments, its voices and what was decided about them are removed from the disk. This cannot be undone.";
    if (!(await confirmed(`Delete ${id}?`, question, "Delete"))) return;
    try {
      await api.deleteConversation(id);
      toast(`${id} was deleted.`);
      location.hash = "#/";
      this.show(undefined);
    } catch (error) {
      toast(error.message, "bad");
    }
  }
}

/** The feed tells whose a segment is; what was decided about one segment alone comes from the labels. */
function liveLane(lane, rulings) {
  if (!rulings || rulings.isEmpty) return lane;
  const segments = lane.segments.map((segment) => ({ ...segment, ...rulings.of(lane.recording_id, segment) }));
  return { ...lane, segments };
}

function endedLane(lane, segments) {
  const own = segments.filter((segment) => segment.recording_id === lane.recording_id);
  const heard = own.reduce((latest, segment) => Math.max(latest, segment.end), 0);
  return { ...lane, segments: own, heard_seconds: heard, queue: [], in_work: [] };
}

function subtitle(news, lanes) {
  const alone = lanes.length === 1 && lanes[0].recording_id;
  const recordings = alone ? `Recording ${alone}` : count(lanes.length, "recording");
  if (news.live) return recordings;
  return `${recordings}, started ${moment(news.started_at)}, ended ${moment(news.updated_at)}`;
}

function command(address) {
  const folder = ".rollcall/voices";
  return [
    `rollcall enroll --person allison --owner --server ${address} ${folder}/people/allison/*.wav`,
    `rollcall stream ${folder}/conversation.wav --segments ${folder}/conversation.rttm --server ${address}`,
  ].join("\n");
}
