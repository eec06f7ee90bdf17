// One voice: who it is, in one sentence why, and its three instruments: distance, evidence, attempts.

import { attributes, el, text } from "./dom.js";
import { Bar, instrument, Pips, Scale } from "./scale.js";
import { distance, duration, isManual, ownName, shownName, status, verdict } from "./words.js";

export class VoiceCard {
  constructor(correct, explain) {
    this.number = el("span", { class: "number", "aria-hidden": "true" });
    this.name = el("span", { class: "name" });
    this.badge = el("span", { class: "badge verdict" });
    this.manual = el("span", { class: "tag" }, "by hand");
    this.alias = el("span", { class: "alias" });
    this.explainButton = button("Explain", () => explain(this.voice));
    this.correctButton = button("Correct", () => correct(this.voice));
    this.summary = el("p", { class: "summary" });
    this.scale = new Scale();
    this.near = el("p", { class: "reading" });
    this.lead = el("p", { class: "reading" });
    this.evidence = new Bar();
    this.heard = el("p", { class: "reading" });
    this.fresh = el("p", { class: "reading" });
    this.pips = new Pips();
    this.left = el("p", { class: "reading" });
    this.work = el("p", { class: "reading" });
    this.attempts = instrument("Attempts", this.pips.node, this.left, this.work);
    this.node = el("li", { class: "card voice" }, this.head(), this.summary, this.instruments());
  }

  head() {
    const title = el("h4", { class: "voice-title" }, this.name, this.alias);
    const who = el("div", { class: "who" }, title, el("div", { class: "badges" }, this.badge, this.manual));
    return el(
      "div",
      { class: "voice-head" },
      this.number,
      who,
      el("div", { class: "voice-actions" }, this.explainButton, this.correctButton),
    );
  }

  instruments() {
    return el(
      "div",
      { class: "instruments" },
      instrument("Distance", this.scale.node, this.near, this.lead),
      instrument("Evidence", this.evidence.node, this.heard, this.fresh),
      this.attempts,
    );
  }

  update({ voice, lane }) {
    this.voice = voice;
    const { word, tone } = status(voice);
    attributes(this.node, { "data-tone": tone, "data-speaker": voice.speaker, "data-ended": !lane.live });
    text(this.number, voice.speaker);
    text(this.name, shownName(voice));
    text(this.alias, shownName(voice) === ownName(voice) ? "" : ownName(voice));
    text(this.badge, word);
    this.manual.hidden = !isManual(voice);
    text(this.summary, voice.summary ?? verdict(voice));
    attributes(this.explainButton, { "aria-label": `Explain ${shownName(voice)}` });
    attributes(this.correctButton, { "aria-label": `Correct ${shownName(voice)}` });
    this.read(voice, lane.limits);
  }

  read(voice, limits) {
    this.scale.update(voice, limits);
    text(this.near, nearness(voice, limits));
    text(this.lead, lead(voice, limits));
    const needed = limits?.evidence_seconds;
    this.evidence.update(needed ? voice.evidence_seconds / needed : 1);
    text(
      this.heard,
      needed ? `${duration(voice.evidence_seconds)}, ${duration(needed)} needed` : duration(voice.evidence_seconds),
    );
    text(this.fresh, freshness(voice));
    const all = limits?.voice_attempts;
    this.pips.update(Math.min(voice.attempts, all ?? 0), all ?? 0);
    text(this.left, all ? `${Math.max(0, all - voice.attempts)} of ${all} left` : `${voice.attempts} spent`);
    text(this.work, work(voice));
  }
}

function button(name, act) {
  return el("button", { class: "button small", type: "button", onclick: act }, name);
}

function nearness(voice, limits) {
  if (voice.distance === undefined) return "Nothing compared yet";
  return limits ? `${distance(voice.distance)}, below ${distance(limits.threshold)} needed` : distance(voice.distance);
}

function lead(voice, limits) {
  const { distance: nearest, runner_up_distance: next } = voice;
  if (nearest === undefined || next === undefined) return "";
  const needed = limits ? `, ${distance(limits.margin)} needed` : "";
  return `${distance(Math.max(0, next - nearest))} before the next at ${distance(next)}${needed}`;
}

function freshness(voice) {
  if (voice.pending_seconds === undefined) return "";
  return `${duration(voice.pending_seconds)} fresh, next query at ${duration(voice.needed_seconds)}`;
}

function work(voice) {
  if (voice.in_work) return "Being examined now";
  if (voice.queued_seconds !== undefined) return `Waiting for ${duration(voice.queued_seconds)}`;
  return "";
}
