// Correcting a voice: the second of two clicks. Each choice is one message that the socket knows as well.

import * as api from "./api.js";
import { toast } from "./announce.js";
import { complaint, openDialog } from "./dialog.js";
import { el, text } from "./dom.js";
import { clock, ownName, shownName } from "./words.js";

/** With more people than this, typing is quicker than looking. */
const SEARCH_FROM = 9;

/**
 * Asks who a voice is, or who one segment alone is.
 * `asked` has `voice`, `lane`, `conversation`, `people`, perhaps `segment`, and `done()` for what the feed does not tell.
 */
export async function openCorrection(asked) {
  const { voice, segment } = asked;
  const error = complaint();
  const list = el("ul", { class: "options" });
  const search = el("input", { type: "search", placeholder: "Search people", "aria-label": "Search people" });
  const choose = (choice) => decide(asked, choice, dialog, error);
  const fill = () => list.replaceChildren(...options(asked, search.value).map((choice) => option(choice, choose)));
  search.addEventListener("input", fill);
  const title = segment
    ? `Who speaks from ${clock(segment.start)} to ${clock(segment.end)}?`
    : `Who is ${ownName(voice)}?`;
  const hint = el(
    "p",
    { class: "hint" },
    segment ? "Only this segment is corrected." : "What you say holds for the whole voice, at once.",
  );
  const dialog = openDialog(title, [hint, search, list, error], { kind: "narrow" });
  search.hidden = asked.people.all.length < SEARCH_FROM;
  fill();
  list.querySelector("button")?.focus();
  await asked.people.refresh().catch((problem) => text(error, problem.message));
  if (!list.contains(document.activeElement)) return;
  const place = [...list.querySelectorAll("button")].indexOf(document.activeElement);
  fill();
  list.querySelectorAll("button")[Math.max(place, 0)]?.focus();
}

function options({ voice, people }, wanted) {
  const found = people.matching(wanted).map((person) => ({
    name: person.name,
    note:
      person.id === voice.person_id
        ? "as it is now"
        : person.owner
          ? "owner"
          : person.enrolled
            ? ""
            : "no voiceprint yet",
    message: { type: "label", person_id: person.id },
    told: `is ${person.name}`,
  }));
  return [...found, ...refusals(voice)];
}

function refusals(voice) {
  const isOwner = voice.status === "user";
  const notThem = voice.person_id && {
    name: `Not ${shownName(voice)}`,
    note: "somebody else, whoever it is",
    message: isOwner
      ? { type: "reject", kind: "not_me" }
      : { type: "reject", kind: "not_person", person_id: voice.person_id },
    told: `is not ${shownName(voice)}`,
    refuses: true,
  };
  const nobody = {
    name: "Nobody",
    note: "none of these people",
    message: { type: "label", person_id: null },
    told: "is nobody who is known",
    refuses: true,
  };
  const thing = {
    name: "Not a person",
    note: "a television, music, noise",
    message: { type: "reject", kind: "not_a_person" },
    told: "is not a person",
    refuses: true,
  };
  return [notThem, nobody, thing].filter(Boolean);
}

function option(choice, choose) {
  const kind = choice.refuses ? "option refusal" : "option";
  const button = el(
    "button",
    { class: kind, type: "button", onclick: () => choose(choice) },
    el("span", {}, choice.name),
  );
  if (choice.note) button.append(" ", el("span", { class: "option-note" }, choice.note));
  return el("li", {}, button);
}

async function decide({ voice, segment, lane, conversation, done }, { message, told }, dialog, error) {
  const place = { speaker: voice.speaker, scope: voice.scope, recording_id: lane.recording_id };
  const only = segment ? { segment_ids: [segment.segment_id], segment_only: true } : {};
  text(error, "");
  try {
    await api.correct(conversation, { ...message, ...place, ...only });
    dialog.close();
    toast(segment ? `This segment ${told}.` : `${ownName(voice)} ${told}.`);
    done();
  } catch (problem) {
    text(error, problem.message);
  }
}
