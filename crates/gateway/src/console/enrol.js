// Enrolling: who, a recording or a file, and what the server says of the sample. A sample that is refused says why, and
// nothing is lost by trying again.

import * as api from "./api.js";
import { toast } from "./announce.js";
import { complaint, openDialog } from "./dialog.js";
import { attributes, el, text } from "./dom.js";
import { Recorder } from "./recorder.js";
import { Bar } from "./scale.js";
import { distance, duration, sentence } from "./words.js";

/** A sample needs two seconds of speech; ten make a good one. */
const GOOD_SECONDS = 10;
/** Longer recordings make no better voiceprint, and this one was perhaps forgotten. */
const RECORD_SECONDS_MAX = 60;
const IDS_TRIED_MAX = 20;

/** Opens the dialog, for a person who is there or for a new one. */
export function openEnrolment(people, person) {
  return new Enrolment(people, person);
}

class Enrolment {
  constructor(people, person) {
    this.people = people;
    this.person = person;
    this.error = complaint();
    this.result = el("div", { class: "result", role: "status" });
    const nodes = [this.who(), this.source(), this.preview(), this.error, this.result, this.actions()];
    const title = person ? `Add a sample of ${person.name}` : "Enrol a voice";
    this.dialog = openDialog(title, nodes, { kind: "enrolment", closed: () => this.leave() });
    this.offer(undefined);
    (person ? this.record : this.name).focus();
  }

  who() {
    if (this.person)
      return el(
        "p",
        { class: "hint" },
        "Another sample, from another day or another microphone, makes the voiceprint stronger.",
      );
    this.name = el("input", { type: "text", id: "enrol-name", maxlength: "100", autocomplete: "off", required: true });
    this.owner = el("input", { type: "checkbox", id: "enrol-owner" });
    const owner = el("label", { class: "check", for: "enrol-owner" }, this.owner, " This is the owner of the account");
    const isOwned = this.people.all.some((person) => person.owner);
    owner.hidden = isOwned;
    const consent = el(
      "p",
      { class: "hint" },
      "Enrol a person only with their consent. The audio is not kept, only the voiceprint.",
    );
    return el("div", { class: "field" }, el("label", { for: "enrol-name" }, "Name"), this.name, owner, consent);
  }

  source() {
    this.record = el("button", { class: "button", type: "button", onclick: () => this.toggle() }, "Record");
    this.file = el("input", {
      type: "file",
      id: "enrol-file",
      accept: "audio/*,.wav,.flac,.mp3,.ogg,.opus,.m4a",
      onchange: () => this.chosen(),
    });
    this.level = new Bar();
    this.level.node.classList.add("level");
    this.timer = el("p", { class: "reading" }, "Ten seconds of ordinary speech make a good sample; two are the least.");
    const file = el("label", { class: "button", for: "enrol-file" }, "Choose a file");
    const buttons = el("div", { class: "sources" }, this.record, el("span", { class: "file" }, this.file, file));
    return el("div", { class: "field" }, buttons, this.level.node, this.timer);
  }

  preview() {
    this.player = el("audio", { controls: true, "aria-label": "The sample" });
    return this.player;
  }

  actions() {
    this.send = el(
      "button",
      { class: "button primary", type: "button", onclick: () => this.enrol(false) },
      "Add the sample",
    );
    this.force = el(
      "button",
      { class: "button", type: "button", onclick: () => this.enrol(true) },
      "Take it all the same",
    );
    return el("div", { class: "dialog-actions" }, this.force, this.send);
  }

  /** The audio that would be sent. */
  offer(audio) {
    this.audio = audio;
    if (this.player.src) URL.revokeObjectURL(this.player.src);
    this.player.hidden = !audio;
    if (audio) this.player.src = URL.createObjectURL(audio);
    else this.player.removeAttribute("src");
    this.force.hidden = true;
    this.hold();
  }

  /** Does one thing at a time: the microphone opens and closes, and the server listens, each to its end. */
  async alone(work) {
    if (this.busy) return;
    this.busy = work();
    this.hold();
    try {
      await this.busy;
    } finally {
      this.busy = undefined;
      this.hold();
    }
  }

  /** What may be pressed now. */
  hold() {
    const isBusy = this.busy !== undefined;
    // The record button keeps the focus, and what is pressed meanwhile does nothing.
    attributes(this.record, { "aria-disabled": isBusy ? "true" : undefined });
    this.file.disabled = isBusy || this.recorder !== undefined;
    this.send.disabled = isBusy || !this.audio;
    this.force.disabled = isBusy;
  }

  toggle() {
    return this.alone(() => (this.recorder ? this.finish() : this.begin()));
  }

  async begin() {
    text(this.error, "");
    this.result.replaceChildren();
    this.offer(undefined);
    const recorder = new Recorder((seconds, level) => this.heard(seconds, level));
    try {
      await recorder.start();
    } catch (error) {
      await recorder.stop();
      text(this.error, sentence(error.message));
      return;
    }
    this.recorder = recorder;
    text(this.record, "Stop");
    attributes(this.record, { "data-recording": "yes" });
  }

  heard(seconds, level) {
    this.level.update(level);
    const goal = seconds < GOOD_SECONDS ? `, ${GOOD_SECONDS} s are good` : ", that is enough";
    text(this.timer, `${Math.floor(seconds)} s recorded${goal}`);
    if (seconds >= RECORD_SECONDS_MAX && this.recorder) this.toggle();
  }

  async finish() {
    text(this.error, "");
    const recorder = this.recorder;
    this.recorder = undefined;
    text(this.record, "Record again");
    attributes(this.record, { "data-recording": undefined });
    this.level.update(0);
    this.offer(await recorder.stop());
  }

  chosen() {
    const [file] = this.file.files;
    if (!file) return;
    text(this.error, "");
    this.result.replaceChildren();
    text(this.timer, file.name);
    this.offer(file);
  }

  async enrol(force) {
    await this.alone(() => this.sent(force));
    // A button that was disabled has lost the focus.
    if (document.activeElement === document.body) (this.send.disabled ? this.record : this.send).focus();
  }

  async sent(force) {
    text(this.error, "");
    this.result.replaceChildren(el("p", { class: "hint" }, "The server listens …"));
    // Whoever leaves meanwhile takes the offer back, and not what is on its way.
    const { audio } = this;
    try {
      if (!this.person) this.person = await this.create();
      this.tell(await api.addSample(this.person.id, audio, force));
      if (!this.dialog.open) toast(`The sample of ${this.person.name} is kept.`);
    } catch (error) {
      this.refused(error);
      if (!this.dialog.open) toast(error.message, "bad");
    }
    await this.people.refresh().catch(() => {});
  }

  /** Ids are made from names; a second Anna is `anna-2`. */
  async create() {
    const name = this.name.value.trim();
    if (!name) throw new Error("give a name");
    const plain =
      name
        .toLowerCase()
        .replace(/[^\p{L}\p{N}]+/gu, "-")
        .replace(/^-+|-+$/g, "") || "person";
    const taken = new Set(this.people.all.map((person) => person.id));
    const ids = [plain, ...Array.from({ length: IDS_TRIED_MAX }, (_, index) => `${plain}-${index + 2}`)];
    const person = await api.createPerson(ids.find((id) => !taken.has(id)) ?? plain, name, this.owner.checked);
    this.made = true;
    this.name.disabled = true;
    this.owner.disabled = true;
    return person;
  }

  tell(report) {
    this.made = false;
    this.result.replaceChildren(
      el("p", { class: "lead good" }, `The sample of ${this.person.name} is kept.`),
      reportRows(report),
    );
    this.offer(undefined);
    this.file.value = "";
    text(this.record, "Record another");
  }

  refused(error) {
    this.result.replaceChildren();
    text(this.error, sentence(error.message));
    const report = error.problem;
    if (report?.code !== "sample_refused") return;
    this.result.replaceChildren(reportRows(report));
    // Only a doubt about whose voice it is can be overruled; a bad recording stays one.
    this.force.hidden = report.cohesion === undefined || !report.reason?.includes("force");
    if (this.force.hidden) return;
    const doubt = `It does not sound like the earlier samples of ${this.person.name}: ${distance(report.cohesion)} away.`;
    text(this.error, `${doubt} Is it the same person?`);
  }

  /** Somebody who was made here and never got a sample goes again; what is under way is waited for. */
  async leave() {
    await this.busy;
    await this.recorder?.stop();
    this.recorder = undefined;
    this.offer(undefined);
    if (!this.made) return;
    await api.deletePerson(this.person.id).catch(() => {});
    await this.people.refresh().catch(() => {});
  }
}

function reportRows(report) {
  const rows = [
    ["Speech", `${duration(report.seconds_of_speech)} of ${duration(report.seconds)}`],
    ["Quality", `${Math.round(report.quality * 100)} of 100, ${grade(report.quality)}`],
  ];
  if (report.cohesion !== undefined) rows.push(["Distance to earlier samples", distance(report.cohesion)]);
  if (report.sounds_like) rows.push(["Resembles", `${report.sounds_like}: the two may be taken for each other`]);
  return el(
    "dl",
    { class: "rows" },
    ...rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
  );
}

function grade(quality) {
  if (quality >= 0.7) return "clean";
  return quality >= 0.4 ? "usable" : "poor";
}
