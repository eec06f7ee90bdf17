// Correcting a voice: the second of two clicks. Each choice is one message that the socket knows as well.

import * as api from "./api.js";
import { toast } from "./announce.js";
import { complaint, openDialog } from "./dialog.js";
import { attributes, el, Keyed, text } from "./dom.js";
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
  const choices = new Keyed(list, () => option((choice) => decide(asked, choice, dialog, error)));
  // The people are read again while the dialog is open; who is there already keeps their button, and its focus.
  const fill = () => {
    search.hidden = asked.people.all.length < SEARCH_FROM;
    choices.update(options(asked, search.value), ({ message }) => JSON.stringify(message));
  };
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
  fill();
  list.querySelector("button")?.focus();
  await asked.people.refresh().catch((problem) => text(error, problem.message));
  fill();
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

function option(choose) {
  let told;
  const name = el("span");
  const note = el("span", { class: "option-note" });
  const button = el("button", { type: "button", onclick: () => choose(told) }, name, " ", note);
  return {
    node: el("li", {}, button),
    update(choice) {
      told = choice;
      attributes(button, { class: choice.refuses ? "option refusal" : "option" });
      text(name, choice.name);
      text(note, choice.note);
    },
  };
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
