// The chosen conversation: its head, and one part for each of its recordings. A live one is told by the feed; one that
// ended is read once, with its segments from the export.

import * as api from "./api.js";
import { toast, Verdicts } from "./announce.js";
import { confirmed } from "./dialog.js";
import { attributes, el, Keyed, text } from "./dom.js";
import { Lane } from "./lane.js";
import { Rulings } from "./rulings.js";
import { numbered } from "./streams.js";
import { count, moment } from "./words.js";

/** Tokens and ages move on between two pieces of news. */
const TICK_MS = 250;
const FORMATS = [
  ["rttm", "RTTM"],
  ["vtt", "WebVTT"],
  ["json", "JSON"],
];

export class Conversation {
  /** `deleted(id)` hears that it was deleted here. */
  constructor(root, people, deleted) {
    this.root = root;
    this.people = people;
    this.deleted = deleted;
    // Whether the feed tells; while it does not, nobody knows what became of ages and tokens.
    this.isFed = false;
    // Each reading has a turn; an answer that comes after the next has begun is dropped.
    this.turn = 0;
    this.showNothing();
    setInterval(() => this.isFed && this.lanes?.parts.forEach((lane) => lane.tick()), TICK_MS);
  }

  /** Whether what is shown goes on, as far as the feed has told. */
  get isLive() {
    return this.shown?.live ?? false;
  }

  show(id) {
    if (id === this.id) return;
    this.id = id;
    this.turn += 1;
    this.shown = undefined;
    this.rulings = undefined;
    this.decided = undefined;
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
    // Only what has ended can be deleted, and nothing yet says that it has.
    this.remove.hidden = true;
    this.read();
  }

  /** Reads the conversation once: at first, after its end, and after a correction. */
  read() {
    this.reading = this.readOnce();
    return this.reading;
  }

  async readOnce() {
    const id = this.id;
    this.turn += 1;
    const turn = this.turn;
    this.heard = undefined;
    try {
      const news = await api.readConversation(id);
      const segments = news.live ? [] : await api.readSegments(id);
      // What the feed told meanwhile is newer, and it does not tell the same twice.
      if (turn === this.turn && !this.heard) this.draw(news, segments);
    } catch (error) {
      if (turn === this.turn && !this.heard) this.fail(error);
    }
  }

  fail(error) {
    text(this.subtitle, error.message);
    if (error.status !== 404) return;
    // It is gone, and with it whatever was said of it.
    this.shown = undefined;
    text(this.badge, "");
  }

  /** News of the feed. */
  update(news) {
    if (news.conversation_id !== this.id) return;
    this.heard = news;
    this.isFed = true;
    this.draw(news, []);
  }

  draw(news, segments) {
    if (!this.lanes) return;
    this.shown = news;
    if (news.live) this.followRulings(news);
    const lanes = told(news, segments, this.rulings);
    const nth = (lane, place) => lanes.slice(0, place).filter((other) => other.recording_id === lane.recording_id).length;
    attributes(this.badge, { "data-live": news.live ? "yes" : "no" });
    text(this.badge, news.live ? "Live" : "Ended");
    this.remove.hidden = news.live;
    text(this.subtitle, subtitle(news, lanes));
    this.lanes.update(
      lanes.map((lane, place) => ({ ...lane, live: news.live, alone: lanes.length === 1, nth: nth(lane, place) })),
      (lane) => JSON.stringify([lane.recording_id, lane.nth]),
    );
    this.verdicts.update(lanes);
  }

  /** Reads what was decided about single segments again, when somebody has decided something, here or elsewhere. */
  async followRulings(news) {
    const generation = news.receipt_generation;
    if (generation === this.decided) return;
    this.decided = generation;
    const id = this.id;
    try {
      const rulings = generation > 0 ? new Rulings(await api.readLabels(id)) : undefined;
      if (id !== this.id || generation !== this.decided) return;
      this.rulings = rulings;
      if (rulings && this.isLive) this.draw(this.shown, []);
    } catch {
      // The next news asks again; until then the voices' own verdicts are shown.
      if (id === this.id && generation === this.decided) this.decided = undefined;
    }
  }

  /** The feed says so also of one that had ended before it was opened, which is being read already or has been. */
  async ended(id) {
    if (id !== this.id) return;
    await this.reading;
    if (id === this.id && (this.isLive || !this.shown)) await this.read();
  }

  async deleteIt() {
    const id = this.id;
    const question =
      "Its segments, its voices and what was decided about them are removed from the disk. This cannot be undone.";
    if (!(await confirmed(`Delete ${id}?`, question, "Delete"))) return;
    try {
      await api.deleteConversation(id);
      toast(`${id} was deleted.`);
      this.deleted(id);
    } catch (error) {
      toast(error.message, "bad");
    }
  }
}

/** The recordings, each with the segments of its voices. */
function told(news, segments, rulings) {
  const lanes = news.lanes.map((lane) => (news.live ? liveLane(lane, rulings) : endedLane(lane, segments)));
  return lanes.map(numbered);
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
