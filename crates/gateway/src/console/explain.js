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
const REFRESH_MS = 1500;
const DISTANCE_MAX = 1.2;

let open;

/** `asked` has `voice`, `lane`, `conversation` and `people`, who have the names. */
export function openExplanation(asked) {
  const content = el("div", { class: "explained" }, el("p", { class: "hint" }, "Asking …"));
  const closed = () => (open = undefined);
  openDialog(`Why ${ownName(asked.voice)} is ${outcome(asked.voice)}`, [content], { kind: "sheet", closed });
  open = { ...asked, content, seen: seen(asked.voice), at: 0 };
  read(open);
}

/** Asks again when the voice on the open panel has changed. */
export function refreshExplanation(lane) {
  if (!open || open.lane.recording_id !== lane.recording_id || performance.now() - open.at < REFRESH_MS) return;
  const voice = lane.voices.find((voice) => voiceKey("", voice) === voiceKey("", open.voice));
  if (!voice || seen(voice) === open.seen) return;
  open.seen = seen(voice);
  read(open);
}

const seen = (voice) => JSON.stringify([voice.status, voice.person_id, voice.attempts, voice.in_work, voice.last_exit]);

function outcome(voice) {
  return voice.person_id ? shownName(voice) : voice.status === "pending" ? "not decided yet" : "without a name";
}

async function read(asked) {
  asked.at = performance.now();
  try {
    const told = await api.explain(asked.conversation, asked.voice.speaker);
    if (asked === open) draw(asked, told);
  } catch (error) {
    if (asked === open) asked.content.replaceChildren(el("p", { class: "complaint" }, error.message));
  }
}

function draw({ content, voice, lane, people }, told) {
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
