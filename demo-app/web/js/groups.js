/**
 * The list of bulk changes in the banner: progress, time left, Cancel, Retry failed, Dismiss. A group is found again after
 * a reload from the snapshot alone, because its id says what it was.
 * @import { Queue } from "./queue.js"
 * @import { Book } from "./book.js"
 * @import { GroupView, View } from "./types.js"
 */
import { toast } from "./announce.js";
import { ask } from "./ask.js";
import { attempt } from "./banner.js";
import { el, h, icon, setText } from "./dom.js";
import { count, duration, plural } from "./format.js";
import { groupLabel } from "./queue.js";

const DISMISSED_KEY = "fairwind.dismissed";

/** @typedef {{ element: HTMLLIElement, label: HTMLElement, text: HTMLElement, bar: HTMLElement, saved: HTMLElement, lost: HTMLElement, cancel: HTMLButtonElement, retry: HTMLButtonElement, dismiss: HTMLButtonElement }} Line */

export class Groups {
  #list = el("groups", HTMLUListElement);
  #queue; #book;
  /** @type {Map<string, Line>} */ #lines = new Map();
  /** @type {Map<string, GroupView>} */ #latest = new Map();
  /** @type {Set<string>} seen running by this page */ #ran = new Set();
  /** @type {Set<string>} */ #dismissed = new Set(readDismissed());

  /** @param {Queue} queue @param {Book} book */
  constructor(queue, book) {
    this.#queue = queue;
    this.#book = book;
  }

  /** @param {View} view */
  show(view) {
    const still = view.held.length > 0 ? "on hold" : view.pausedUntil !== null && view.pausedUntil > Date.now() ? "paused" : "";
    const shown = view.groups.filter((group) => this.#isShown(group)).sort((a, b) => startOf(b.id) - startOf(a.id));
    const ids = new Set(shown.map((group) => group.id));
    for (const [id, line] of this.#lines) {
      if (ids.has(id)) continue;
      line.element.remove();
      this.#lines.delete(id);
    }
    shown.forEach((group, i) => {
      this.#latest.set(group.id, group);
      const line = this.#lines.get(group.id) ?? this.#add(group.id);
      if (this.#list.children[i] !== line.element) this.#list.insertBefore(line.element, this.#list.children[i] ?? null);
      fill(line, group, still);
    });
    this.#list.hidden = shown.length === 0;
  }

  /** @param {GroupView} group */
  #isShown(group) {
    const live = group.waiting + group.sending;
    if (live > 0) this.#ran.add(group.id);
    if (live > 0) return true;
    return !this.#dismissed.has(group.id) && (group.failed > 0 || this.#ran.has(group.id));
  }

  /** @param {string} id @returns {Line} */
  #add(id) {
    const label = h("strong", { class: "group-label" }, groupLabel(id));
    const text = h("span", { class: "group-text" });
    const saved = h("span", { class: "bar-saved" });
    const lost = h("span", { class: "bar-lost" });
    const bar = h("div", { class: "bar", role: "progressbar", "aria-label": groupLabel(id), "aria-valuemin": "0" }, saved, lost);
    const cancel = h("button", { type: "button", class: "button small quiet" }, "Cancel");
    const retry = h("button", { type: "button", class: "button small" }, "Retry failed");
    const dismiss = h("button", { type: "button", class: "button small quiet icon-only" }, icon("cancel"), h("span", { class: "sr-only" }, `Dismiss ${groupLabel(id)}`));
    cancel.append(h("span", { class: "sr-only" }, ` ${groupLabel(id)}`));
    const element = h("li", { class: "group" }, h("div", { class: "group-head" }, label, text), bar, h("div", { class: "group-actions" }, retry, cancel, dismiss));
    cancel.addEventListener("click", () => void this.#cancel(id));
    retry.addEventListener("click", () => void attempt(async () => {
      await this.#queue.retry({ group: id });
      this.#book.retried(id);
    }));
    dismiss.addEventListener("click", () => this.#dismiss(id));
    const line = { element, label, text, bar, saved, lost, cancel, retry, dismiss };
    this.#lines.set(id, line);
    return line;
  }

  /** @param {string} id */
  async #cancel(id) {
    const group = this.#latest.get(id);
    if (!group) return;
    const sure = await ask({
      title: `Cancel ${plural(group.waiting, "waiting change")}?`,
      text: `${plural(group.saved, "change")} of this bulk change already saved stay${group.saved === 1 ? "s" : ""} saved.`,
      yes: "Cancel them", no: "Keep going",
    });
    if (!sure) return;
    await attempt(async () => {
      const { cancelled, alreadySent } = await this.#queue.cancel({ group: id });
      this.#book.cancelled(id);
      toast(`${plural(cancelled, "change")} cancelled${alreadySent > 0 ? `, ${count(alreadySent)} already on the way` : ""}.`);
    });
  }

  dismissAll() {
    for (const id of [...this.#lines.keys()]) this.#dismiss(id);
  }

  /** @param {string} id */
  #dismiss(id) {
    this.#dismissed.add(id);
    try {
      localStorage.setItem(DISMISSED_KEY, JSON.stringify([...this.#dismissed].slice(-200)));
    } catch { /* then it is back after a reload, no more */ }
    this.#lines.get(id)?.element.remove();
    this.#lines.delete(id);
    this.#list.hidden = this.#lines.size === 0;
  }
}

/** @param {Line} line @param {GroupView} group @param {string} still */
function fill(line, group, still) {
  const live = group.waiting + group.sending;
  const parts = [`${count(group.saved)} of ${count(group.total)} saved`];
  if (group.failed > 0) parts.push(`${count(group.failed)} failed`);
  if (group.cancelled > 0) parts.push(`${count(group.cancelled)} cancelled`);
  if (live > 0) parts.push(still || (group.etaMs === null ? "time left not known" : `about ${duration(group.etaMs)} left`));
  setText(line.text, parts.join(" · "));
  line.bar.setAttribute("aria-valuemax", String(group.total));
  line.bar.setAttribute("aria-valuenow", String(group.saved));
  line.bar.setAttribute("aria-valuetext", parts.join(", "));
  line.saved.style.width = `${share(group.saved, group.total)}%`;
  line.lost.style.width = `${share(group.failed, group.total)}%`;
  line.element.classList.toggle("over", live === 0);
  line.cancel.hidden = live === 0;
  line.retry.hidden = group.failed === 0;
  line.dismiss.hidden = live > 0;
}

/** @param {number} part @param {number} whole */
const share = (part, whole) => (whole > 0 ? (100 * part) / whole : 0);

/** @param {string} id */
const startOf = (id) => parseInt(id.split(":")[2] ?? "0", 36) || 0;

function readDismissed() {
  try {
    return JSON.parse(localStorage.getItem(DISMISSED_KEY) ?? "[]");
  } catch {
    return [];
  }
}
