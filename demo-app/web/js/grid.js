/**
 * The table of people: a virtual list of recycled rows inside an ARIA grid.
 * Owns which rows exist, the scroll position and the active cell (one tab stop, focus kept while rows recycle).
 * Invariant: the row with the active cell is never recycled, so the focus is never lost to scrolling.
 * @import { Book } from "./book.js"
 * @import { Selection } from "./selection.js"
 * @import { Column } from "./row.js"
 */
import { FIELDS } from "./contacts.js";
import { el, h, perFrame } from "./dom.js";
import { COLUMNS, Row } from "./row.js";

const OVERSCAN = 6;
/** @type {Record<string, string>} */
const HEADS = { select: "", change: "Change", ...Object.fromEntries(FIELDS.map(({ field, label }) => [field, label])) };

export class Grid extends EventTarget {
  /** @type {number[]} ids in the order shown */ order = [];
  /** @type {{ index: number, column: Column }} */ active = { index: 0, column: "name" };
  #root = el("grid", HTMLDivElement);
  #body = el("grid-body", HTMLDivElement);
  #selectAll = h("input", { type: "checkbox", "aria-label": "Select everyone shown" });
  /** @type {Map<number, Row>} */ #rows = new Map();
  /** @type {Row[]} */ #spare = [];
  #rowHeight = 44;
  #book; #selection;
  #draw = perFrame(() => this.#render());

  /** @param {Book} book @param {Selection} selection */
  constructor(book, selection) {
    super();
    this.#book = book;
    this.#selection = selection;
    this.#buildHead();
    this.#root.setAttribute("aria-colcount", String(COLUMNS.length));
    this.#root.addEventListener("scroll", this.#draw, { passive: true });
    new ResizeObserver(() => this.#measure()).observe(this.#root);
    book.addEventListener("change", this.#draw);
    selection.addEventListener("change", this.#draw);
    this.#selectAll.addEventListener("change", () => {
      if (this.#selectAll.checked) selection.all(this.order);
      else selection.none(this.order);
    });
  }

  /** @param {number[]} order */
  show(order) {
    const keep = this.order[this.active.index];
    this.order = order;
    const at = keep === undefined ? -1 : order.indexOf(keep);
    this.active.index = Math.max(0, Math.min(at >= 0 ? at : this.active.index, order.length - 1));
    this.#root.setAttribute("aria-rowcount", String(order.length + 1));
    this.#body.style.height = `${order.length * this.#rowHeight}px`;
    this.#draw();
  }

  /** The people on screen, for those who want to know about them first. */
  visible() {
    const [first, last] = this.#window(0);
    return this.order.slice(first, last + 1);
  }

  /** @param {Element | null} node @returns {{ row: Row, column: Column } | null} */
  locate(node) {
    const cell = node?.closest("[data-column]");
    const element = cell?.closest(".row");
    if (!(cell instanceof HTMLElement) || !element) return null;
    for (const row of this.#rows.values()) if (row.element === element) return { row, column: /** @type {Column} */ (cell.dataset["column"]) };
    return null;
  }

  /** The columns that this width shows. @returns {Column[]} */
  columns() {
    const row = this.#rows.values().next().value;
    return row ? COLUMNS.filter((column) => row.cells[column]?.offsetWidth) : [...COLUMNS];
  }

  /** How many rows a page key moves. */
  pageSize() {
    return Math.max(1, Math.floor(this.#root.clientHeight / this.#rowHeight) - 2);
  }

  /** @param {number} index @param {Column} column */
  focus(index, column) {
    this.active = { index: Math.max(0, Math.min(index, this.order.length - 1)), column };
    this.#reveal(this.active.index);
    this.#render();
    this.activeRow()?.target(column).focus({ preventScroll: true });
  }

  /** Makes a cell the tab stop without moving the focus. @param {number} index @param {Column} column */
  activate(index, column) {
    this.active = { index, column };
    this.#draw();
  }

  activeRow() {
    return this.#rows.get(this.active.index);
  }

  /** Draws now instead of in the next frame. */
  flush() {
    this.#render();
  }

  #buildHead() {
    const head = h("div", { role: "row", class: "row head", "aria-rowindex": "1" });
    COLUMNS.forEach((column, i) => {
      const cell = h("div", { role: "columnheader", class: `cell cell-${column}`, "aria-colindex": String(i + 1) });
      if (column === "select") cell.append(this.#selectAll);
      else cell.textContent = HEADS[column] ?? "";
      head.append(cell);
    });
    el("grid-head", HTMLDivElement).append(head);
  }

  #measure() {
    const height = parseFloat(getComputedStyle(this.#root).getPropertyValue("--row-height")) || 44;
    if (height !== this.#rowHeight) {
      const first = this.#root.scrollTop / this.#rowHeight;
      this.#rowHeight = height;
      for (const row of this.#rows.values()) row.index = -1;
      this.#body.style.height = `${this.order.length * height}px`;
      this.#root.scrollTop = first * height;
    }
    this.#draw();
  }

  /** @param {number} extra @returns {[number, number]} */
  #window(extra) {
    const head = this.#body.offsetTop;
    const top = Math.max(0, this.#root.scrollTop);
    const first = Math.floor(top / this.#rowHeight) - extra;
    const last = Math.ceil((top + this.#root.clientHeight - head) / this.#rowHeight) + extra;
    return [Math.max(0, first), Math.min(this.order.length - 1, last)];
  }

  /** @param {number} index */
  #reveal(index) {
    const top = index * this.#rowHeight;
    const room = this.#root.clientHeight - this.#body.offsetTop;
    if (top < this.#root.scrollTop) this.#root.scrollTop = top;
    else if (top + this.#rowHeight > this.#root.scrollTop + room) this.#root.scrollTop = top + this.#rowHeight - room;
  }

  #render() {
    const [first, last] = this.#window(OVERSCAN);
    const pinned = this.active.index;
    for (const [index, row] of this.#rows) {
      if ((index < first || index > last) && (index !== pinned || index >= this.order.length)) {
        this.#rows.delete(index);
        row.element.remove();
        row.index = -1;
        this.#spare.push(row);
      }
    }
    for (let index = first; index <= last; index += 1) this.#fill(index);
    if (pinned < this.order.length) this.#fill(pinned);
    this.#spare.length = Math.min(this.#spare.length, 2 * OVERSCAN);
    const extent = this.#selection.extent(this.order);
    this.#selectAll.checked = extent === "all";
    this.#selectAll.indeterminate = extent === "some";
  }

  /** @param {number} index */
  #fill(index) {
    const id = this.order[index];
    if (id === undefined) return;
    let row = this.#rows.get(index);
    if (!row) {
      row = this.#spare.pop() ?? new Row();
      this.#rows.set(index, row);
      this.#insert(row, index);
    }
    row.place(index, id, index * this.#rowHeight);
    row.fill(this.#book, this.#selection.has(id));
    for (const column of COLUMNS) {
      const stop = index === this.active.index && column === this.active.column ? 0 : -1;
      const target = row.target(column);
      if (target.tabIndex !== stop) target.tabIndex = stop;
    }
  }

  /** Keeps the rows in reading order for assistive technology. @param {Row} row @param {number} index */
  #insert(row, index) {
    let next = null;
    let least = Infinity;
    for (const [other, { element }] of this.#rows) {
      if (other > index && other < least && element.parentNode) {
        least = other;
        next = element;
      }
    }
    this.#body.insertBefore(row.element, next);
  }
}
