/**
 * "What the server saw": reads the report while somebody looks, feeds the plot and the totals, and tells the book which
 * changes the server has carried out (the mock server has no list of people to read them back from).
 * @import { Book } from "./book.js"
 * @import { Report } from "./types.js"
 */
import { el, setText } from "./dom.js";
import { count } from "./format.js";
import { Plot } from "./plot.js";
import { carriedOut, ensureAccount, readReport } from "./server-api.js";

const POLL_MS = 500;
const IDLE_MS = 1500;

export class ServerPanel {
  #plot = new Plot();
  #book;
  #since = 0;
  #quiet = 0;
  /** @type {(report: Report) => void} */ onReport = () => {};

  /** @param {Book} book */
  constructor(book) {
    this.#book = book;
    this.#foldable();
  }

  async start() {
    await ensureAccount();
    await this.poll();
    const next = () => setTimeout(async () => {
      if (!document.hidden) await this.poll();
      next();
    }, this.#quiet > 20 ? IDLE_MS : POLL_MS);
    next();
  }

  /** Something is about to happen: look often again. */
  wake() {
    this.#quiet = 0;
  }

  reset() {
    this.#since = 0;
    this.#plot.clear();
  }

  async poll() {
    try {
      const report = await readReport(this.#since);
      if (report === null) return await ensureAccount();
      if (report.total < this.#since) {
        this.reset();
        this.#book.reset();
        return;
      }
      this.#take(report);
    } catch (error) {
      console.warn("could not read the server's report", error);
    }
  }

  /** @param {Report} report */
  #take(report) {
    this.#quiet = report.requests.length > 0 ? 0 : this.#quiet + 1;
    this.#since = report.total;
    this.#plot.setClock(report.nowMs || (report.requests.at(-1)?.at_ms ?? 0));
    for (const seen of report.requests) {
      if (seen.method === "OPTIONS") continue;
      this.#plot.add(seen.at_ms, seen.rule !== undefined || seen.status === 429);
      const done = carriedOut(seen);
      if (done) this.#book.serve(done.contact, done.patch);
    }
    this.#totals(report);
    this.onReport(report);
  }

  /** @param {Report} report */
  #totals(report) {
    /** @param {string} id @param {string} text */
    const put = (id, text) => setText(el(id, HTMLElement), text);
    const [rule] = report.windows;
    if (rule) this.#plot.setLimit((rule.limit * 1000) / rule.window_ms);
    put("total-accepted", count(report.accepted));
    put("total-refused", count(report.rejected));
    put("total-applied", count(report.applied));
    put("total-duplicated", count(report.duplicated));
    put("total-flight", count(report.maxInFlight));
    if (rule) put("total-window-label", `Most in ${rule.window_ms % 1000 === 0 ? `${rule.window_ms / 1000} s` : `${rule.window_ms} ms`}`);
    put("total-window", rule ? `${count(rule.max_seen)} of ${count(rule.allowed ?? rule.limit)}` : "0");
    const { taken, refused } = this.#plot.latest();
    put("server-glance", `${count(taken + refused)}/s · ${count(report.rejected)} refused`);
  }

  /** On a phone the panel is a drawer; on a desk it is always open. */
  #foldable() {
    const panel = el("server", HTMLElement);
    const toggle = el("server-toggle", HTMLButtonElement);
    const narrow = matchMedia("(max-width: 899px)");
    /** @param {boolean} open */
    const set = (open) => {
      panel.classList.toggle("open", open);
      toggle.setAttribute("aria-expanded", String(open));
    };
    toggle.addEventListener("click", () => set(!panel.classList.contains("open")));
    const fit = () => set(!narrow.matches);
    narrow.addEventListener("change", fit);
    fit();
    panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && narrow.matches && panel.classList.contains("open")) {
        set(false);
        toggle.focus();
      }
    });
  }
}
