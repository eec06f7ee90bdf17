// One recording of the conversation: its figures, its time line, its voices, and beside them budget and queue.

import { Budget } from "./budget.js";
import { openCorrection } from "./correct.js";
import { el, Keyed, text } from "./dom.js";
import { openExplanation, refreshExplanation } from "./explain.js";
import { Queue } from "./queue.js";
import { scaleKey } from "./scale.js";
import { Timeline } from "./timeline.js";
import { VoiceCard } from "./voice.js";
import { clock, voiceKey } from "./words.js";

export class Lane {
  /** `conversationId()` names the conversation, `reread()` asks for it again where no feed tells. */
  constructor(people, conversationId, reread) {
    this.timeline = new Timeline((segment, voice) => this.correct(voice, segment));
    this.budget = new Budget();
    this.queue = new Queue();
    this.correct = (voice, segment) =>
      openCorrection({ voice, segment, people, lane: this.lane, conversation: conversationId(), done: reread });
    const explain = (voice) => openExplanation({ voice, lane: this.lane, conversation: conversationId(), people });
    this.title = el("h2", { class: "lane-title" });
    this.figures = el("dl", { class: "figures" });
    const list = el("ul", { class: "voice-list" });
    this.voices = new Keyed(list, () => new VoiceCard((voice) => this.correct(voice), explain));
    this.nobody = el("p", { class: "empty" }, "No voice has been heard yet.");
    this.key = scaleKey();
    const head = el("div", { class: "part-head" }, el("h3", { class: "part-title" }, "Voices"), this.key);
    const voices = el("section", { class: "voices" }, head, this.nobody, list);
    this.beside = el("div", { class: "beside" }, this.budget.node, this.queue.node);
    const columns = el("div", { class: "columns" }, voices, this.beside);
    this.node = el("section", { class: "lane" }, this.title, this.figures, this.timeline.node, columns);
  }

  update(lane) {
    this.lane = lane;
    text(this.title, lane.recording_id ? `Recording ${lane.recording_id}` : "Recording");
    this.title.classList.toggle("hidden", lane.alone);
    this.node.setAttribute("aria-label", this.title.textContent);
    this.drawFigures(lane);
    this.timeline.update(lane);
    this.nobody.hidden = lane.voices.length > 0;
    this.key.hidden = lane.voices.length === 0 || !lane.live;
    const names = new Map(lane.voices.map((voice) => [voiceKey("", voice), voice]));
    this.voices.update(
      lane.voices.map((voice) => ({ voice, lane })),
      ({ voice }) => voiceKey("", voice),
    );
    this.beside.hidden = !lane.live;
    if (lane.live) {
      this.budget.update(lane);
      this.queue.update(lane, names);
    }
    refreshExplanation(lane);
  }

  tick() {
    if (!this.lane?.live) return;
    this.budget.tick();
    this.queue.tick();
  }

  drawFigures(lane) {
    const named = lane.voices.filter((voice) => voice.person_id).length;
    const books = lane.budget;
    const denied = books ? books.denied.voice + books.denied.socket + books.denied.both : 0;
    const figures = [
      ["Heard", clock(lane.heard_seconds)],
      ["Voices", lane.voices.length],
      ["Named", named],
      ["Queries", books ? books.reserved : attempts(lane.voices)],
      ...(books
        ? [
            ["Failed", books.failed],
            ["Denied", denied],
          ]
        : []),
    ];
    if (this.figures.childElementCount !== figures.length) {
      this.figures.replaceChildren(...figures.map(([name]) => el("div", {}, el("dt", {}, name), el("dd", {}))));
    }
    figures.forEach(([, value], index) => text(this.figures.children[index].lastChild, value));
  }
}

/** Attempts belong to a number: its voices of several provider streams each tell all of them. */
function attempts(voices) {
  const numbers = new Map();
  for (const { speaker, attempts } of voices) numbers.set(speaker, Math.max(numbers.get(speaker) ?? 0, attempts));
  return [...numbers.values()].reduce((sum, spent) => sum + spent, 0);
}
