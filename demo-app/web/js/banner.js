/**
 * The banner over the table: the state of the whole queue, its counts, Hold, Cancel and Retry. Owns the countdown's tick,
 * which runs only while there is a pause to count down.
 * @import { Queue } from "./queue.js"
 * @import { Book } from "./book.js"
 * @import { View } from "./types.js"
 */
import { announce, toast } from "./announce.js";
import { ask } from "./ask.js";
import { el, icon, setText } from "./dom.js";
import { count, plural, reason } from "./format.js";
import { describe } from "./status-text.js";

export class Banner {
  #root = el("queue", HTMLElement);
  #hold = el("hold", HTMLButtonElement);
  #cancel = el("cancel-all", HTMLButtonElement);
  #retry = el("retry-failed", HTMLButtonElement);
  #queue; #book;
  /** @type {View | null} */ #view = null;
  #icon = "";
  #holdIcon = "";
  #spoken = "";
  /** @type {ReturnType<typeof setInterval> | undefined} */ #ticking;

  /** @param {Queue} queue @param {Book} book */
  constructor(queue, book) {
    this.#queue = queue;
    this.#book = book;
    this.#hold.addEventListener("click", () => void this.#toggleHold());
    this.#cancel.addEventListener("click", () => void this.#cancelAll());
    this.#retry.addEventListener("click", () => void this.#retryAll());
  }

  /** @param {View} view */
  show(view) {
    this.#view = view;
    for (const kind of /** @type {const} */ (["waiting", "sending", "saved", "failed"])) setText(el(`count-${kind}`, HTMLElement), count(view[kind]));
    el("counts", HTMLElement).dataset["failed"] = String(view.failed > 0);
    const live = view.waiting + view.sending;
    this.#showHold(view.held.length > 0);
    this.#cancel.disabled = live === 0;
    // One bulk change that owns every failure has its own button for them.
    this.#retry.hidden = view.failed === 0 || view.groups.some((group) => group.failed === view.failed);
    setText(el("retry-text", HTMLElement), `Retry ${count(view.failed)} failed`);
    this.#say();
    this.#tick(view.pausedUntil !== null && view.pausedUntil > Date.now());
  }

  /** @param {boolean} held */
  #showHold(held) {
    const sign = held ? "play" : "pause";
    if (this.#holdIcon !== sign) el("hold-icon", HTMLElement).replaceChildren(icon(sign));
    this.#holdIcon = sign;
    setText(el("hold-text", HTMLElement), held ? "Resume" : "Hold");
    this.#hold.classList.toggle("primary", held);
    this.#hold.disabled = false;
  }

  #say() {
    if (!this.#view) return;
    const status = describe(this.#view, Date.now(), this.#view.failed > 0 ? this.#why() : "");
    this.#root.dataset["tone"] = status.tone;
    setText(el("queue-title", HTMLElement), status.title);
    setText(el("queue-detail", HTMLElement), status.detail);
    if (status.icon !== this.#icon) el("queue-icon", HTMLElement).replaceChildren(icon(status.icon));
    this.#icon = status.icon;
    if (status.spoken && status.spoken !== this.#spoken && this.#spoken !== "") announce(status.spoken);
    this.#spoken = status.spoken || "-";
  }

  /** The most usual reason why changes failed. */
  #why() {
    /** @type {Map<string, number>} */
    const reasons = new Map();
    for (const { code, status } of this.#book.failed()) {
      const text = reason(code, status);
      reasons.set(text, (reasons.get(text) ?? 0) + 1);
    }
    return [...reasons].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
  }

  /** @param {boolean} on */
  #tick(on) {
    if (!on) {
      clearInterval(this.#ticking);
      this.#ticking = undefined;
    } else {
      this.#ticking ??= setInterval(() => {
        this.#say();
        if ((this.#view?.pausedUntil ?? 0) <= Date.now()) this.#tick(false);
      }, 250);
    }
  }

  async #toggleHold() {
    const held = (this.#view?.held.length ?? 0) > 0;
    await attempt(() => (held ? this.#queue.resume() : this.#queue.hold()));
  }

  async #cancelAll() {
    const view = this.#view;
    if (!view) return;
    const sure = await ask({
      title: `Cancel ${plural(view.waiting, "waiting change")}?`,
      text: `What is saved stays saved.${view.sending > 0 ? ` ${plural(view.sending, "change")} already on the way cannot be called back.` : ""}`,
      yes: "Cancel them", no: "Keep going",
    });
    if (!sure) return;
    const groups = view.groups.filter((group) => group.waiting + group.sending > 0).map((group) => ({ group: group.id }));
    const singles = this.#book.live().filter((change) => change.group === null).map((change) => change.id);
    await attempt(async () => {
      let cancelled = 0;
      for (const target of singles.length > 0 ? [...groups, singles] : groups) cancelled += (await this.#queue.cancel(target)).cancelled;
      this.#book.cancelled();
      toast(`${plural(cancelled, "change")} cancelled.`);
    });
  }

  async #retryAll() {
    const groups = (this.#view?.groups ?? []).filter((group) => group.failed > 0).map((group) => ({ group: group.id }));
    const singles = this.#book.failed().filter((change) => change.group === null).map((change) => change.id);
    await attempt(async () => {
      for (const target of singles.length > 0 ? [...groups, singles] : groups) await this.#queue.retry(target);
      this.#book.retried();
    });
  }
}

/** Runs what a button asked for; says so when it did not work. @param {() => Promise<unknown>} work */
export async function attempt(work) {
  try {
    await work();
  } catch (error) {
    toast(`That did not work: ${error instanceof Error ? error.message : String(error)}`);
  }
}
