// News for people who hear the page instead of seeing it, and short messages for both.

import { el, text } from "./dom.js";
import { verdict, voiceKey } from "./words.js";

/** Verdicts come in bursts; said together they are one sentence after another and do not cut each other off. */
const GATHER_MS = 1200;
const TOAST_MS = 6000;

const announcer = document.getElementById("announcer");
const toasts = document.getElementById("toasts");
/** The newest sentence about each voice. */
const waiting = new Map();

function say(key, sentence) {
  if (waiting.size === 0) setTimeout(speak, GATHER_MS);
  waiting.set(key, sentence);
}

/** Behind an open dialog nobody hears the page; what would be said waits until it closes. */
function speak() {
  if (document.querySelector("dialog[open]")) {
    setTimeout(speak, GATHER_MS);
    return;
  }
  text(announcer, [...waiting.values()].join(" "));
  waiting.clear();
}

/** Tells what became of a command. */
export function toast(message, tone = "good") {
  const node = el("p", { class: `toast ${tone}` }, message);
  toasts.append(node);
  setTimeout(() => node.remove(), TOAST_MS);
}

/** Says each verdict once, when it changes. What was known when a conversation was opened is no news. */
export class Verdicts {
  constructor() {
    this.known = undefined;
  }

  update(lanes) {
    const now = new Map();
    for (const lane of lanes) {
      for (const voice of lane.voices) {
        const key = voiceKey(lane.recording_id, voice);
        const told = verdict(voice);
        now.set(key, told);
        if (this.known && this.known.get(key) !== told && (this.known.has(key) || voice.status !== "pending"))
          say(key, told);
      }
    }
    this.known = now;
  }
}
