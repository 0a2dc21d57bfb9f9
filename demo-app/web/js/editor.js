/**
 * Editing one cell in place. Owns the field while it is open; hands over a value only if it is valid and new.
 * @import { Book } from "./book.js"
 * @import { Grid } from "./grid.js"
 * @import { Column, Row } from "./row.js"
 * @import { Field } from "./types.js"
 */
import { FIELDS } from "./contacts.js";
import { h } from "./dom.js";
import { announce } from "./announce.js";

export class Editor {
  /** @type {{ row: Row, field: Field, input: HTMLInputElement | HTMLSelectElement, before: string } | null} */ #at = null;
  #grid; #book; #save;

  /** @param {Grid} grid @param {Book} book @param {(contact: number, field: Field, value: string) => void} save */
  constructor(grid, book, save) {
    this.#grid = grid;
    this.#book = book;
    this.#save = save;
  }

  get open() {
    return this.#at !== null;
  }

  /** @param {Element} node */
  isIn(node) {
    return this.#at !== null && this.#at.input.contains(node);
  }

  /** @param {Row} row @param {Column} column @returns {boolean} false for a column that cannot be edited */
  start(row, column) {
    const spec = FIELDS.find(({ field }) => field === column);
    if (!spec) return false;
    this.close("keep");
    this.#grid.activate(row.index, column);
    const before = this.#book.value(row.contact, spec.field);
    const label = `${spec.label} of ${this.#book.value(row.contact, "name")}`;
    const input = spec.choices
      ? h("select", { class: "cell-input", "aria-label": label }, ...spec.choices.map((choice) => h("option", {}, choice)))
      : h("input", { class: "cell-input", type: spec.kind === "email" ? "email" : "text", "aria-label": label, maxlength: "120", required: "", autocomplete: "off", spellcheck: "false" });
    input.value = before;
    row.editing = spec.field;
    this.#at = { row, field: spec.field, input, before };
    row.cells[spec.field]?.classList.add("editing");
    row.cells[spec.field]?.replaceChildren(input);
    input.addEventListener("keydown", (event) => this.#onKey(/** @type {KeyboardEvent} */ (event)));
    input.addEventListener("blur", () => this.close("keep"));
    input.focus();
    if (input instanceof HTMLInputElement) input.select();
    return true;
  }

  /** @param {"keep" | "drop"} what @returns {boolean} false when the value is not valid and the field stays open */
  close(what) {
    const at = this.#at;
    if (!at) return true;
    const value = at.input.value.trim();
    if (what === "keep" && value !== at.before && !(value !== "" && at.input.checkValidity())) {
      if (document.activeElement === at.input) {
        at.input.setAttribute("aria-invalid", "true");
        announce(value === "" ? "A value is needed." : "This is not an email address.");
        return false;
      }
      what = "drop";
    }
    this.#at = null;
    at.row.editing = null;
    const cell = at.row.cells[at.field];
    cell?.classList.remove("editing");
    if (at.field === "owner") cell?.replaceChildren(at.row.avatar, at.row.owner);
    else cell?.replaceChildren();
    if (what === "keep" && value !== at.before) this.#save(at.row.contact, at.field, value);
    this.#grid.flush();
    return true;
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const at = this.#at;
    if (!at) return;
    event.stopPropagation();
    if (event.key === "Escape") {
      event.preventDefault();
      this.close("drop");
      this.#grid.focus(at.row.index, at.field);
    } else if (event.key === "Enter" || event.key === "F2") {
      event.preventDefault();
      if (this.close("keep")) this.#grid.focus(at.row.index, at.field);
    } else if (event.key === "Tab") {
      event.preventDefault();
      if (!this.close("keep")) return;
      const columns = this.#grid.columns();
      const next = columns[columns.indexOf(at.field) + (event.shiftKey ? -1 : 1)] ?? at.field;
      this.#grid.focus(at.row.index, next);
    }
  }
}
