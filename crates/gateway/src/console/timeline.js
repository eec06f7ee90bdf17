// Who spoke when: one row a voice, one mark a segment, coloured by the voice's verdict, and a table that says the same.

import { attributes, el, Keyed, svg, text } from "./dom.js";
import { clock, shownName, status, voiceKey } from "./words.js";

const RECENT_SECONDS = 120;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
const AXIS = 22;
/** Below this width a voice's name stands above its row instead of before it. */
const NARROW = 560;
const NAME_LETTERS = 18;
/** The frame's height in the style sheet. */
const FRAME_MAX = 420;
/** The server shows so many segments of a live recording, the newest; an ended one has all of them. */
const LIVE_MAX = 128;
/** Rows of the table at first, and more with each click: a day of talk has a hundred thousand. */
const ROWS = 200;

export class Timeline {
  /** `correct(segment, voice)` corrects one segment alone. */
  constructor(correct) {
    this.correct = correct;
    this.axis = svg("g", { class: "axis" });
    this.names = svg("g", { class: "row-names" });
    this.marks = svg("g", { class: "marks" });
    this.head = svg("line", { class: "playhead", y1: AXIS - 6 });
    this.picture = svg("svg", { class: "timeline", role: "img" }, this.axis, this.names, this.marks, this.head);
    this.segments = new Keyed(this.marks, mark);
    this.frame = el("div", { class: "timeline-frame" }, this.picture);
    this.rows = el("tbody");
    this.extent = el("p", { class: "reading" });
    this.told = el("span", { class: "reading" });
    this.more = el("button", { class: "button small", type: "button", onclick: () => this.tellMore() }, "Show more");
    this.rest = el("p", { class: "rest" }, this.told, this.more);
    this.table = el(
      "details",
      { class: "as-table", ontoggle: () => this.tell() },
      el("summary", {}, "As a table"),
      table(this.rows),
      this.rest,
    );
    this.entries = new Keyed(this.rows, () => entry((segment, voice) => this.correct(segment, voice)));
    this.rowsShown = ROWS;
    this.buttons = [
      choice("Last 2 minutes", () => this.range("recent")),
      choice("Everything", () => this.range("all")),
    ];
    this.choices = el(
      "div",
      { class: "choices", role: "group", "aria-label": "Range of the time line" },
      ...this.buttons,
    );
    this.node = el("section", { class: "card timeline-card" }, this.top(), this.frame, this.extent, this.table);
    this.chosen = "recent";
    new ResizeObserver(() => this.draw()).observe(this.frame);
  }

  top() {
    return el("div", { class: "part-head" }, el("h3", { class: "part-title" }, "Time line"), this.choices);
  }

  range(chosen) {
    this.chosen = chosen;
    this.draw();
  }

  update(lane) {
    this.lane = lane;
    this.voices = lane.voices;
    this.places = new Map(lane.voices.map((voice, index) => [voiceKey("", voice), index]));
    this.draw();
    this.tell();
  }

  /** The seconds that are shown. */
  span() {
    const segments = this.lane.segments;
    const latest = segments.reduce((end, segment) => Math.max(end, segment.end), 0);
    const to = Math.max(this.lane.heard_seconds ?? 0, latest, 10);
    const first = segments.reduce((start, segment) => Math.min(start, segment.start), to);
    const isLong = to - first > RECENT_SECONDS;
    this.choices.hidden = !isLong || !this.lane.live;
    const isCut = this.lane.live && segments.length >= LIVE_MAX;
    text(this.buttons[1], isCut ? `Newest ${LIVE_MAX} segments` : "Everything");
    text(this.extent, isCut ? `The newest ${LIVE_MAX} segments of a live recording are shown; exports have all.` : "");
    const isRecent = isLong && this.lane.live && this.chosen === "recent";
    this.buttons.forEach((button, index) => attributes(button, { "aria-pressed": String((index === 0) === isRecent) }));
    return { from: isRecent ? to - RECENT_SECONDS : Math.min(first, Math.max(0, to - 10)), to };
  }

  draw() {
    const width = this.frame.clientWidth;
    if (!this.lane || width === 0) return;
    const shape = layout(width, this.voices.length, this.span());
    // What can be scrolled must be reached by keyboard as well.
    attributes(this.frame, { tabindex: shape.height > FRAME_MAX ? "0" : undefined });
    attributes(this.picture, {
      width,
      height: shape.height,
      viewBox: `0 0 ${width} ${shape.height}`,
      "aria-label": this.spoken(),
    });
    this.drawAxis(shape);
    this.drawNames(shape);
    const shown = this.lane.segments.filter(
      (segment) => segment.end > shape.from && this.places.has(voiceKey("", segment)),
    );
    this.segments.update(
      merged(shown.map((segment) => this.placed(segment, shape))),
      (placed) => `${placed.segment.scope ?? ""}/${placed.segment.segment_id}`,
    );
    const now = shape.x(this.lane.heard_seconds ?? 0);
    attributes(this.head, { x1: now, x2: now, y2: shape.height, visibility: this.lane.live ? undefined : "hidden" });
  }

  placed(segment, shape) {
    const place = this.places.get(voiceKey("", segment));
    const [left, right] = [shape.x(Math.max(segment.start, shape.from)), shape.x(segment.end)];
    return {
      segment,
      voice: this.ofSegment(segment, place),
      end: segment.end,
      count: 1,
      x: left,
      width: Math.max(right - left - 1, 2),
      y: shape.y(place),
    };
  }

  /** A segment can have a truth of its own: all of a conversation that ended have, and those that were corrected alone. */
  ofSegment(segment, place) {
    const voice = this.voices[place];
    if (!segment.status) return voice;
    // A truth of nobody has no name at all, so the voice's own must not shine through.
    const nameless = { person_id: undefined, person_name: undefined, origin: undefined, source: undefined };
    return { ...voice, ...nameless, ...segment };
  }

  drawAxis(shape) {
    const step = STEPS.find((step) => (shape.to - shape.from) / step <= shape.ticks) ?? STEPS.at(-1);
    const first = Math.ceil(shape.from / step) * step;
    const ticks = [];
    for (let at = first; at <= shape.to; at += step) {
      const x = shape.x(at);
      const anchor = x > shape.width - 20 ? "end" : x < shape.left + 10 ? "start" : "middle";
      ticks.push(svg("line", { class: "tick", x1: x, x2: x, y1: AXIS, y2: shape.height }));
      ticks.push(svg("text", { class: "tick-name", x, y: AXIS - 9, "text-anchor": anchor }, clock(at)));
    }
    this.axis.replaceChildren(...ticks);
  }

  drawNames(shape) {
    const rows = this.voices.map((voice, place) => {
      const y = shape.y(place);
      const line = svg("line", { class: "row-line", x1: shape.left, x2: shape.width, y1: y + 8, y2: y + 8 });
      const name = svg(
        "text",
        { class: "row-name", x: 0, y: shape.isNarrow ? y - 6 : y + 12 },
        short(shownName(voice)),
      );
      return [line, name];
    });
    this.names.replaceChildren(...rows.flat());
  }

  spoken() {
    const names = this.voices.map((voice) => `${shownName(voice)}: ${status(voice).word}`).join("; ");
    return `Time line of ${clock(this.lane.heard_seconds)}. ${names || "No voice yet"}. The table below lists the segments.`;
  }

  /** The table is filled only while it is open. */
  tell() {
    if (!this.table.open || !this.lane) return;
    const known = this.lane.segments.filter((segment) => this.places.has(voiceKey("", segment)));
    const told = known
      .slice(-this.rowsShown)
      .map((segment) => ({ segment, voice: this.ofSegment(segment, this.places.get(voiceKey("", segment))) }))
      .reverse();
    this.entries.update(told, ({ segment }) => `${segment.scope ?? ""}/${segment.segment_id}`);
    text(this.told, `The newest ${told.length} of ${known.length} segments.`);
    this.rest.hidden = told.length === known.length;
  }

  tellMore() {
    this.rowsShown += ROWS;
    this.tell();
  }
}

function layout(width, voices, { from, to }) {
  const isNarrow = width < NARROW;
  const [left, row, inset] = isNarrow ? [0, 46, 24] : [132, 28, 6];
  const scale = (width - left - 2) / (to - from);
  return {
    width,
    left,
    from,
    to,
    isNarrow,
    ticks: Math.max(3, Math.floor((width - left) / 80)),
    height: AXIS + Math.max(voices, 1) * row + 6,
    x: (at) => Number((left + (at - from) * scale).toFixed(1)),
    y: (place) => AXIS + place * row + inset,
  };
}

/**
 * Marks of one row that lie on each other become one where they say the same, and one that lies within another is left
 * to the table; so a day of talk has no more marks than pixels.
 */
function merged(marks) {
  const rows = new Map();
  const kept = [];
  for (const mark of [...marks].sort((one, other) => one.segment.start - other.segment.start)) {
    const last = rows.get(mark.y);
    const right = last ? last.x + last.width : -Infinity;
    const isApart = mark.x >= right;
    if (!isApart && (sameTruth(mark.voice, last.voice) || mark.x + mark.width <= right)) {
      last.width = Math.max(right, mark.x + mark.width) - last.x;
      last.end = Math.max(last.end, mark.end);
      last.count += 1;
    } else {
      rows.set(mark.y, mark);
      kept.push(mark);
    }
  }
  return kept;
}

function sameTruth(one, other) {
  return one.status === other.status && one.person_id === other.person_id;
}

function mark() {
  const title = svg("title");
  const node = svg("rect", { class: "mark", height: 16, rx: 3 }, title);
  return {
    node,
    update({ segment, voice, end, count, x, width, y }) {
      attributes(node, { x, y, width, "data-tone": status(voice).tone });
      const many = count > 1 ? `, ${count} segments` : "";
      text(title, `${shownName(voice)}, ${clock(segment.start)} to ${clock(end)}, ${status(voice).word}${many}`);
    },
  };
}

function short(name) {
  return name.length > NAME_LETTERS ? `${name.slice(0, NAME_LETTERS - 1)}…` : name;
}

function choice(name, act) {
  return el("button", { class: "choice", type: "button", onclick: act }, name);
}

function table(rows) {
  const heads = ["From", "To", "Voice", "Verdict"].map((name) => el("th", { scope: "col" }, name));
  const action = el("th", { scope: "col" }, el("span", { class: "hidden" }, "Correction"));
  return el("div", { class: "table-frame" }, el("table", {}, el("thead", {}, el("tr", {}, ...heads, action)), rows));
}

function entry(correct) {
  const cells = Array.from({ length: 4 }, () => el("td"));
  let told;
  const act = el(
    "button",
    { class: "button small quiet", type: "button", onclick: () => correct(told.segment, told.voice) },
    "Only this one",
  );
  return {
    node: el("tr", {}, ...cells, el("td", { class: "action" }, act)),
    update({ segment, voice }) {
      told = { segment, voice };
      [clock(segment.start), clock(segment.end), shownName(voice), status(voice).word].forEach((value, index) =>
        text(cells[index], value),
      );
      attributes(act, {
        "aria-label": `Correct only the segment from ${clock(segment.start)} to ${clock(segment.end)}`,
      });
    },
  };
}
