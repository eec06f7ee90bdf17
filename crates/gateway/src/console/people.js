// The people who are enrolled: the list that corrections choose from, and the view that searches and deletes.

import * as api from "./api.js";
import { toast } from "./announce.js";
import { confirmed } from "./dialog.js";
import { attributes, el, Keyed, text } from "./dom.js";
import { openEnrolment } from "./enrol.js";
import { count, duration, moment } from "./words.js";

export class People {
  constructor(root) {
    this.all = [];
    this.search = el("input", {
      type: "search",
      id: "people-search",
      placeholder: "Name or id",
      oninput: () => this.draw(),
    });
    this.found = el("p", { class: "hint", role: "status" });
    this.list = el("ul", { class: "people" });
    this.rows = new Keyed(this.list, () => row(this));
    const label = el("label", { class: "hidden", for: "people-search" }, "Search people");
    const head = el(
      "header",
      { class: "head" },
      el("h1", { class: "title" }, "People"),
      el("div", { class: "search" }, label, this.search),
    );
    root.replaceChildren(el("main", { class: "main", tabindex: "-1" }, head, this.found, this.list));
  }

  async refresh() {
    this.all = await api.people();
    this.all.sort((one, other) => other.owner - one.owner || one.name.localeCompare(other.name));
    this.draw();
  }

  nameOf(id) {
    return this.all.find((person) => person.id === id)?.name ?? id;
  }

  /** Whose name or id holds what was typed. */
  matching(wanted) {
    const typed = wanted.trim().toLowerCase();
    return this.all.filter((person) => `${person.name}\n${person.id}`.toLowerCase().includes(typed));
  }

  draw() {
    const found = this.matching(this.search.value);
    this.rows.update(found, (person) => person.id);
    text(this.found, told(this.all.length, found.length));
  }

  async remove(person) {
    const kept = count(person.samples, "sample");
    const question =
      `${kept} and the voiceprint are removed from the disk, and no conversation names ${person.name} ` +
      "any more. This cannot be undone.";
    if (!(await confirmed(`Delete ${person.name}?`, question, "Delete"))) return;
    try {
      await api.deletePerson(person.id);
      toast(`${person.name} was deleted.`);
      await this.refresh();
      this.search.focus();
    } catch (error) {
      toast(error.message, "bad");
    }
  }
}

function told(all, found) {
  if (all === 0) return "Nobody is enrolled yet. Enrol a voice, and it is named wherever it is heard.";
  return found === all ? count(all, "person", "people") : `${found} of ${count(all, "person", "people")}`;
}

function samples(person) {
  return `${count(person.samples, "sample")}, ${duration(person.seconds_of_speech)} of speech`;
}

function row(people) {
  const name = el("h2", { class: "person-name" });
  const owner = el("span", { class: "badge verdict" }, "Owner");
  const detail = el("p", { class: "reading" });
  const note = el("p", { class: "reading warn" });
  let person;
  const add = el(
    "button",
    { class: "button small", type: "button", onclick: () => openEnrolment(people, person) },
    "Add a sample",
  );
  const remove = el(
    "button",
    { class: "button small quiet danger", type: "button", onclick: () => people.remove(person) },
    "Delete",
  );
  const title = el("div", { class: "badges" }, name, owner);
  const who = el("div", { class: "person-text" }, title, detail, note);
  return {
    node: el("li", { class: "card person" }, who, el("div", { class: "voice-actions" }, add, remove)),
    update(told) {
      person = told;
      text(name, person.name);
      owner.hidden = !person.owner;
      text(detail, [person.id, samples(person), `changed ${moment(person.updated_at)}`].join(" · "));
      text(note, person.note ?? (person.enrolled ? "" : "No voiceprint yet: add a sample."));
      note.hidden = note.textContent === "";
      attributes(add, { "aria-label": `Add a sample of ${person.name}` });
      attributes(remove, { "aria-label": `Delete ${person.name}` });
    },
  };
}
