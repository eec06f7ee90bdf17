// Who waits, in the order of service, and why each stands where it does.

import { el, Keyed, text } from "./dom.js";
import { duration, sentence, shownName, voiceKey } from "./words.js";

export class Queue {
  constructor() {
    this.work = el("p", { class: "reading" });
    this.empty = el("p", { class: "reading" }, "Nobody waits.");
    const list = el("ol", { class: "queue-list" });
    this.rows = new Keyed(list, () => row());
    const title = el("h3", { class: "part-title" }, "Queue");
    this.node = el("section", { class: "card queue" }, title, this.work, this.empty, list);
  }

  /** `voices` has each voice of the lane by its key. */
  update(lane, voices) {
    const name = (waiting) => shownName(voices.get(voiceKey("", waiting)) ?? waiting);
    // A number is examined, not a voice: of several with one number the latest stands for all.
    const examined = lane.in_work.map((speaker) => latest(lane.voices, speaker)).filter(Boolean);
    text(this.work, examined.length > 0 ? `Being examined: ${examined.map(shownName).join(", ")}.` : "");
    this.empty.hidden = lane.queue.length > 0;
    this.rows.update(
      lane.queue.map((waiting, index) => ({ ...waiting, name: name(waiting), isNext: index === 0 })),
      (waiting) => voiceKey("", waiting),
    );
  }

  tick() {
    this.rows.parts.forEach((part) => part.tick());
  }
}

function latest(voices, speaker) {
  const own = voices.filter((voice) => voice.speaker === speaker);
  return own.reduce((one, other) => ((other.stream ?? 1) > (one.stream ?? 1) ? other : one), own[0]);
}

function row() {
  const name = el("span", { class: "queue-name" });
  const next = el("span", { class: "tag strong" }, "next");
  const age = el("span", { class: "queue-age" });
  const why = el("p", { class: "queue-why" });
  let told;
  let since = 0;
  const tick = () => text(age, `waits ${duration(told.age_seconds + (performance.now() - since) / 1000)}`);
  return {
    node: el("li", { class: "queue-row" }, el("p", { class: "queue-head" }, name, next, age), why),
    update(waiting) {
      told = waiting;
      since = performance.now();
      text(name, waiting.name);
      next.hidden = !waiting.isNext;
      text(why, `${sentence(waiting.why_text)} ${duration(waiting.pending_seconds)} of speech.`);
      tick();
    },
    tick,
  };
}
