// Why a voice has its name, or has none: what was heard, asked, answered, what is missing and what would change it. The
// sentences are the server's.

import * as api from "./api.js";
import { openDialog } from "./dialog.js";
import { el } from "./dom.js";
import { Bar } from "./scale.js";
import { distance, ownName, shownName, voiceKey } from "./words.js";

const PARTS = [
  ["heard", "What was heard"],
  ["asked", "What was asked of the model"],
  ["came_out", "What came out"],
  ["missing", "What is missing"],
  ["would_change", "What would change it"],
];
const LEVELS = { 3: "near", 2: "close", 1: "far", 0: "beyond" };
/** How often an open panel asks again at most: sentences that change faster cannot be read. */
const REFRESH_MS = 3000;
const DISTANCE_MAX = 1.2;

let open;

/** `asked` has `voice`, `lane`, `conversation` and `people`, who have the names. */
export function openExplanation(asked) {
  const content = el("div", { class: "explained" }, el("p", { class: "hint" }, "Asking …"));
  const closed = () => {
    clearTimeout(open?.later);
    open = undefined;
  };
  openDialog(`Why ${ownName(asked.voice)} is ${outcome(asked.voice)}`, [content], { kind: "sheet", closed });
  open = { ...asked, content, seen: seen(asked.voice, asked.lane), at: 0 };
  read(open);
}

/** Asks again, now or soon, when what the open panel tells has changed. */
export function refreshExplanation(lane) {
  if (!open || open.later || open.lane.recording_id !== lane.recording_id) return;
  const voice = lane.voices.find((voice) => voiceKey("", voice) === voiceKey("", open.voice));
  const told = voice && seen(voice, lane);
  if (!voice || told === open.seen) return;
  const asked = open;
  const again = () => {
    asked.later = undefined;
    asked.seen = told;
    read(asked);
  };
  asked.later = setTimeout(again, Math.max(0, asked.at + REFRESH_MS - performance.now()));
}

/** Whatever the sentences speak of: the voice with its fresh speech and its place in the queue, and the tokens. */
const seen = (voice, lane) => JSON.stringify([voice, lane.socket_tokens?.toFixed(1), lane.live]);

function outcome(voice) {
  return voice.person_id ? shownName(voice) : voice.status === "pending" ? "not decided yet" : "without a name";
}

async function read(asked) {
  asked.at = performance.now();
  try {
    const told = await api.explain(asked.conversation, asked.voice.speaker);
    if (asked === open) draw(asked, told);
  } catch (error) {
    asked.answer = undefined;
    if (asked === open) asked.content.replaceChildren(el("p", { class: "complaint" }, error.message));
  }
}

function draw(asked, told) {
  // Whoever reads or selects is not disturbed by the same again.
  const answer = JSON.stringify(told);
  if (asked.answer === answer) return;
  asked.answer = answer;
  const { content, voice, lane, people } = asked;
  const own = told.voices.filter((told) => voiceKey(told.recording_id, told) === voiceKey(lane.recording_id, voice));
  const shown = own.length > 0 ? own : told.voices;
  content.replaceChildren(...shown.flatMap((voice) => part(voice, people)));
}

function part(voice, people) {
  const { explanation, candidates = [] } = voice;
  const lists = PARTS.filter(([name]) => explanation?.[name]?.length > 0).map(([name, title]) =>
    section(title, explanation[name]),
  );
  return [
    el("p", { class: "lead" }, explanation?.summary ?? ""),
    ...lists,
    candidates.length > 0 ? nearest(candidates, people) : undefined,
  ].filter(Boolean);
}

function section(title, sentences) {
  const list = el("ul", { class: "sentences" }, ...sentences.map((sentence) => el("li", {}, sentence)));
  return el("section", {}, el("h3", { class: "part-title" }, title), list);
}

function nearest(candidates, people) {
  const rows = candidates.map((candidate) => {
    const bar = new Bar();
    bar.update(1 - candidate.distance / DISTANCE_MAX);
    const picture = el("td", { class: "picture" }, bar.node);
    const name = el("th", { scope: "row" }, candidate.person_name ?? people.nameOf(candidate.person_id));
    return el(
      "tr",
      {},
      name,
      el("td", {}, distance(candidate.distance)),
      picture,
      el("td", {}, LEVELS[candidate.level] ?? ""),
    );
  });
  const heads = ["Person", "Distance", "", "Level"].map((title) =>
    title ? el("th", { scope: "col" }, title) : el("td", { class: "picture" }),
  );
  const table = el("table", { class: "nearest" }, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows));
  return el("section", {}, el("h3", { class: "part-title" }, "Nearest people"), table);
}
