// Dialogs: the browser's own element, so that focus stays inside, Escape closes, and focus returns to where it was.

import { el } from "./dom.js";

let count = 0;

/** Opens a dialog of a title and nodes. `closed` hears when it is gone; `kind` is a class. */
export function openDialog(title, nodes, { kind = "", closed = () => {} } = {}) {
  count += 1;
  const id = `dialog-${count}`;
  const heading = el("h2", { class: "dialog-title", id }, title);
  const close = el(
    "button",
    { class: "button quiet close", type: "button", "aria-label": "Close", onclick: () => dialog.close() },
    "×",
  );
  const head = el("div", { class: "dialog-head" }, heading, close);
  const body = el("div", { class: "dialog-body" }, ...nodes);
  const dialog = el("dialog", { class: `dialog ${kind}`, "aria-labelledby": id }, head, body);
  dialog.addEventListener("close", () => {
    dialog.remove();
    closed();
  });
  // A click beside the dialog falls on the dialog itself.
  dialog.addEventListener("mousedown", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Asks before something that cannot be undone. */
export function confirmed(title, question, verb) {
  return new Promise((answer) => {
    let agreed = false;
    const agree = () => {
      agreed = true;
      dialog.close();
    };
    const keep = el(
      "button",
      { class: "button", type: "button", autofocus: true, onclick: () => dialog.close() },
      "Keep",
    );
    const go = el("button", { class: "button danger solid", type: "button", onclick: agree }, verb);
    const nodes = [el("p", {}, question), el("div", { class: "dialog-actions" }, keep, go)];
    const dialog = openDialog(title, nodes, { kind: "narrow", closed: () => answer(agreed) });
  });
}

/** The line in a dialog that says what went wrong; it is read aloud when it appears. */
export function complaint() {
  return el("p", { class: "complaint", role: "alert" });
}
