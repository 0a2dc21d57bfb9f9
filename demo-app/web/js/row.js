/**
 * One row of the table: its elements, and filling them for a person. Rows are recycled while the table scrolls, so
 * filling writes only what differs.
 * @import { Book } from "./book.js"
 * @import { Field } from "./types.js"
 */
import { FIELDS, initials, OWNERS } from "./contacts.js";
import { h, icon, setText } from "./dom.js";
import { reason } from "./format.js";

/** @typedef {"select" | Field | "change"} Column */
/** @type {readonly Column[]} */
export const COLUMNS = ["select", "name", "company", "email", "owner", "stage", "city", "change"];

/** @type {Record<string, { icon: string, text: string }>} */
const CHIPS = {
  waiting: { icon: "clock", text: "Waiting" },
  sending: { icon: "send", text: "Sending" },
  retrying: { icon: "retry", text: "Retrying" },
  saved: { icon: "check", text: "Saved" },
  failed: { icon: "fail", text: "Failed" },
};

export class Row {
  index = -1;
  contact = -1;
  /** @type {Column | null} */ editing = null;
  /** @type {Record<string, HTMLElement>} */ cells = {};
  #chip = "";

  constructor() {
    this.element = h("div", { role: "row", class: "row" });
    this.box = h("input", { type: "checkbox", tabindex: "-1" });
    this.avatar = h("span", { class: "avatar", "aria-hidden": "true" });
    this.owner = h("span", { class: "cell-text" });
    COLUMNS.forEach((column, i) => {
      const cell = h("div", { role: "gridcell", class: `cell cell-${column}`, "aria-colindex": String(i + 1), "data-column": column });
      if (column === "select") cell.append(this.box);
      else cell.tabIndex = -1;
      if (column === "owner") cell.append(this.avatar, this.owner);
      this.cells[column] = cell;
      this.element.append(cell);
    });
  }

  /** The element that takes the focus for a column. @param {Column} column @returns {HTMLElement} */
  target(column) {
    return column === "select" ? this.box : /** @type {HTMLElement} */ (this.cells[column]);
  }

  /** @param {number} index @param {number} contact @param {number} top */
  place(index, contact, top) {
    if (this.index !== index) {
      this.index = index;
      this.element.setAttribute("aria-rowindex", String(index + 2));
      this.element.style.transform = `translateY(${top}px)`;
    }
    this.contact = contact;
  }

  /** @param {Book} book @param {boolean} selected */
  fill(book, selected) {
    const id = this.contact;
    for (const { field } of FIELDS) {
      const cell = /** @type {HTMLElement} */ (this.cells[field]);
      const value = book.value(id, field);
      cell.classList.toggle("pending", book.isPending(id, field));
      if (this.editing === field) continue;
      if (field === "owner") this.#fillOwner(value);
      else setText(cell, value);
    }
    if (this.element.getAttribute("aria-selected") !== String(selected)) this.element.setAttribute("aria-selected", String(selected));
    this.box.checked = selected;
    const label = `Select ${book.value(id, "name")}`;
    if (this.box.getAttribute("aria-label") !== label) this.box.setAttribute("aria-label", label);
    this.#fillChip(book, id);
  }

  /** @param {string} value */
  #fillOwner(value) {
    if (this.owner.textContent === value) return;
    this.owner.textContent = value;
    this.avatar.textContent = initials(value);
    this.avatar.dataset["hue"] = String(OWNERS.indexOf(value));
  }

  /** @param {Book} book @param {number} id */
  #fillChip(book, id) {
    const chip = book.chip(id);
    const why = chip?.state === "failed" ? reason(chip.change.code, chip.change.status) : "";
    const sign = chip ? `${chip.state}/${chip.change.id}/${why}` : "";
    if (sign === this.#chip) return;
    this.#chip = sign;
    const cell = /** @type {HTMLElement} */ (this.cells["change"]);
    const look = chip && CHIPS[chip.state];
    if (!chip || !look) {
      cell.replaceChildren();
      cell.removeAttribute("title");
      return;
    }
    const parts = [h("span", { class: "chip", "data-state": chip.state }, icon(look.icon), h("span", {}, look.text))];
    if (chip.state === "failed") {
      const meant = Object.entries(chip.change.patch).map(([field, value]) => `${field} to ${value}`).join(", ");
      cell.title = `Not saved: ${meant}. ${why[0]?.toUpperCase()}${why.slice(1)}.`;
      parts[0]?.append(h("span", { class: "sr-only" }, `: ${meant}, ${why}`));
      const again = h("button", { type: "button", class: "chip-again", tabindex: "-1", "data-retry": chip.change.id }, icon("retry"), h("span", { class: "sr-only" }, "Try again"));
      cell.replaceChildren(...parts, again);
    } else {
      cell.removeAttribute("title");
      cell.replaceChildren(...parts);
    }
  }
}
