// Making and changing nodes. Text is always set as text: nothing that a client named can become markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Properties that start with `on` are listeners, `class` and names with a dash are attributes. */
export function el(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** An SVG element; every property is an attribute. */
export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") node.toggleAttribute(name, value);
    else if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

/** Sets text only where it differs, so that a screen reader hears no news where there is none. */
export function text(node, value) {
  const told = String(value ?? "");
  if (node.textContent !== told) node.textContent = told;
}

/** Sets or removes attributes, only where they differ. */
export function attributes(node, values) {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === null || value === false) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? "" : value);
  }
}

/**
 * Keeps the children of `parent` in the order of `items`. A child lives as long as its key, so focus and open details
 * survive news; a child that must move loses its focus to the browser, and is given it back. `make(item)` gives
 * `{node, update(item)}`.
 */
export class Keyed {
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    this.parts = new Map();
  }

  update(items, keyOf) {
    const focused = document.activeElement;
    // What is gone goes first: the others then stand where they should, and are not moved.
    this.forget(new Set(items.map(keyOf)));
    let place = this.parent.firstChild;
    for (const item of items) {
      const part = this.part(keyOf(item), item);
      part.update(item);
      if (part.node === place) place = place.nextSibling;
      else this.parent.insertBefore(part.node, place);
    }
    if (focused !== document.activeElement && this.parent.contains(focused)) focused.focus({ preventScroll: true });
  }

  part(key, item) {
    let part = this.parts.get(key);
    if (!part) {
      part = this.make(item);
      this.parts.set(key, part);
    }
    return part;
  }

  forget(kept) {
    for (const [key, part] of this.parts) {
      if (kept.has(key)) continue;
      part.node.remove();
      this.parts.delete(key);
    }
  }
}
