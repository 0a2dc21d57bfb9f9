/**
 * Keys and clicks in the table: moving, selecting, opening the editor. Owns no state of its own.
 * @import { Grid } from "./grid.js"
 * @import { Selection } from "./selection.js"
 * @import { Editor } from "./editor.js"
 * @import { Column } from "./row.js"
 */
import { el } from "./dom.js";

/** @param {Grid} grid @param {Selection} selection @param {Editor} editor @param {(jobId: string) => void} retry */
export function listen(grid, selection, editor, retry) {
  const root = el("grid", HTMLDivElement);
  root.addEventListener("keydown", (event) => {
    if (editor.open || !(event.target instanceof Element) || !grid.locate(event.target)) return;
    if (onKey(event, grid, selection, editor)) event.preventDefault();
  });
  root.addEventListener("focusin", (event) => {
    const at = event.target instanceof Element ? grid.locate(event.target) : null;
    if (at) grid.activate(at.row.index, at.column);
  });
  /** The cell that had the focus before a finger came down: a second tap on it edits. @type {Element | null} */
  let before = null;
  root.addEventListener("pointerdown", () => { before = document.activeElement; }, { capture: true });
  root.addEventListener("click", (event) => {
    if (!(event.target instanceof Element)) return;
    const again = event.target.closest("[data-retry]");
    if (again instanceof HTMLElement && again.dataset["retry"]) return retry(again.dataset["retry"]);
    const at = grid.locate(event.target);
    if (!at || editor.isIn(event.target)) return;
    grid.activate(at.row.index, at.column);
    if (at.column === "select") {
      if (event.shiftKey) selection.rangeTo(at.row.contact, grid.order);
      else selection.toggle(at.row.contact);
      at.row.box.checked = selection.has(at.row.contact);
    } else if (event.shiftKey) {
      selection.rangeTo(at.row.contact, grid.order);
      grid.focus(at.row.index, at.column);
    } else {
      const isSecondTap = event instanceof PointerEvent && event.pointerType === "touch" && before === at.row.target(at.column);
      grid.focus(at.row.index, at.column);
      if (isSecondTap) editor.start(at.row, at.column);
    }
  });
  root.addEventListener("dblclick", (event) => {
    const at = event.target instanceof Element ? grid.locate(event.target) : null;
    if (at && !(event.target instanceof Element && editor.isIn(event.target))) editor.start(at.row, at.column);
  });
  root.addEventListener("mousedown", (event) => {
    if (event.shiftKey && event.target instanceof Element && !editor.isIn(event.target)) event.preventDefault();
  });
}

/** @param {KeyboardEvent} event @param {Grid} grid @param {Selection} selection @param {Editor} editor @returns {boolean} whether the key was used */
function onKey(event, grid, selection, editor) {
  const { index, column } = grid.active;
  const control = event.ctrlKey || event.metaKey;
  const last = grid.order.length - 1;
  /** @param {number} to */
  const vertical = (to) => {
    const goal = Math.max(0, Math.min(to, last));
    if (event.shiftKey) extend(grid, selection, index, goal);
    grid.focus(goal, column);
    return true;
  };
  /** @param {number} step */
  const horizontal = (step) => {
    const columns = grid.columns();
    const at = Math.max(0, Math.min(columns.indexOf(column) + step, columns.length - 1));
    grid.focus(index, /** @type {Column} */ (columns[at]));
    return true;
  };
  switch (event.key) {
    case "ArrowDown": return vertical(control ? last : index + 1);
    case "ArrowUp": return vertical(control ? 0 : index - 1);
    case "PageDown": return vertical(index + grid.pageSize());
    case "PageUp": return vertical(index - grid.pageSize());
    case "ArrowRight": return horizontal(1);
    case "ArrowLeft": return horizontal(-1);
    case "Home": return control ? vertical(0) : horizontal(-99);
    case "End": return control ? vertical(last) : horizontal(99);
    case "Enter":
    case "F2": return edit(grid, editor);
    case " ": return select(event, grid, selection);
    case "a":
    case "A":
      if (!control) return false;
      selection.all(grid.order);
      return true;
    case "Escape":
      if (selection.size === 0) return false;
      selection.none();
      return true;
    default: return false;
  }
}

/** @param {Grid} grid @param {Selection} selection @param {number} from @param {number} to */
function extend(grid, selection, from, to) {
  const start = grid.order[from];
  const goal = grid.order[to];
  if (start === undefined || goal === undefined) return;
  if (!selection.has(start)) selection.toggle(start);
  selection.rangeTo(goal, grid.order);
}

/** @param {KeyboardEvent} event @param {Grid} grid @param {Selection} selection */
function select(event, grid, selection) {
  const id = grid.order[grid.active.index];
  if (id === undefined || (event.ctrlKey && event.shiftKey)) return false;
  if (event.shiftKey) selection.rangeTo(id, grid.order);
  else selection.toggle(id);
  return true;
}

/** @param {Grid} grid @param {Editor} editor */
function edit(grid, editor) {
  const row = grid.activeRow();
  if (!row) return false;
  const again = grid.active.column === "change" && row.element.querySelector("[data-retry]");
  if (again instanceof HTMLElement) {
    again.click();
    return true;
  }
  return editor.start(row, grid.active.column);
}
