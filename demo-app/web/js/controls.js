/**
 * The knobs of the mock server, and what the client was told about it. Every change is sent at once; what the server
 * says it does is what the form shows.
 * @import { Queue } from "./queue.js"
 * @import { ServerPanel } from "./server-panel.js"
 * @import { Fault, Rules } from "./server-api.js"
 */
import { announce, toast } from "./announce.js";
import { el, setText } from "./dom.js";
import { rate } from "./format.js";
import { DEFAULT_TOLD, readTold } from "./queue.js";
import { changeRules, DEFAULT_RULES, readRules } from "./server-api.js";

/** @type {Record<string, { rules: Partial<Rules>, say: string }>} */
const PRESETS = {
  lower: { rules: { limits: [{ limit: 4, window_ms: 1000, algorithm: "sliding-log" }] }, say: "The server now takes 4 a second and told nobody." },
  flaky: { rules: { faults: faults(8, 4, 0) }, say: "Now 8 % of the requests fail with a 503, and 4 % are carried out but their answer is lost." },
  normal: { rules: { ...rulesOnly(), faults: [] }, say: "The server is back to normal." },
};

/** @returns {Partial<Rules>} */
function rulesOnly() {
  const { limits, latency_ms, max_in_flight, retry_after } = DEFAULT_RULES;
  return { limits, latency_ms, max_in_flight, retry_after };
}

/** @param {number} error @param {number} drop @param {number} hang percentages @returns {Fault[]} */
function faults(error, drop, hang) {
  /** @type {Fault[]} */
  const list = [
    { kind: "status", status: 503, rate: error / 100, on: "accepted", seed: 11 },
    { kind: "drop-after-apply", rate: drop / 100, on: "accepted", seed: 12 },
    { kind: "hang", rate: hang / 100, on: "accepted", seed: 13 },
  ];
  return list.filter((fault) => (fault.rate ?? 0) > 0);
}

export class Controls {
  #form = el("controls", HTMLFormElement);
  #state = el("controls-state", HTMLParagraphElement);
  /** @type {Rules} */ #rules = structuredClone(DEFAULT_RULES);
  #queue; #panel;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #soon;

  /** @param {Queue} queue @param {ServerPanel} panel */
  constructor(queue, panel) {
    this.#queue = queue;
    this.#panel = panel;
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    this.#form.addEventListener("input", () => this.#edited());
    this.#form.addEventListener("click", (event) => {
      const preset = event.target instanceof HTMLElement ? PRESETS[event.target.dataset["preset"] ?? ""] : undefined;
      if (preset) void this.#send(preset.rules, preset.say);
    });
    el("tell", HTMLButtonElement).addEventListener("click", () => void this.#tell());
    addEventListener("storage", () => this.#showTold());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) void this.load(); });
  }

  /** Reads the server's rules, which another tab may have changed. */
  async load() {
    this.#rules = { ...structuredClone(DEFAULT_RULES), ...(await readRules()) };
    this.#show();
  }

  #edited() {
    this.#outputs();
    clearTimeout(this.#soon);
    this.#soon = setTimeout(() => {
      const change = this.#read();
      if (change) void this.#send(change, "");
    }, 400);
  }

  /** @returns {Partial<Rules> | null} null while a field is not valid */
  #read() {
    const data = new FormData(this.#form);
    /** @param {string} name */
    const n = (name) => Number(data.get(name));
    const [lo, hi] = [n("latency_lo"), n("latency_hi")];
    const upper = /** @type {HTMLInputElement} */ (this.#form.elements.namedItem("latency_hi"));
    upper.setCustomValidity(lo > hi ? "The longest time must not be below the shortest." : "");
    if (!this.#form.checkValidity()) {
      const bad = this.#form.querySelector("input:invalid");
      this.#say(bad instanceof HTMLInputElement ? bad.validationMessage : "Please check the values.", true);
      return null;
    }
    return {
      limits: [{ limit: n("limit"), window_ms: n("window_ms"), algorithm: String(data.get("algorithm")) }],
      latency_ms: [lo, hi], max_in_flight: data.get("max_in_flight") ? n("max_in_flight") : null,
      retry_after: String(data.get("retry_after")), faults: faults(n("rate_503"), n("rate_drop"), n("rate_hang")),
    };
  }

  /** @param {Partial<Rules>} change @param {string} say */
  async #send(change, say) {
    try {
      await changeRules(change);
      this.#rules = { ...this.#rules, ...change };
      this.#panel.wake();
      this.#say("Changed");
      if (say) {
        announce(say);
        this.#show();
      } else {
        this.#showTold();
      }
    } catch (error) {
      this.#say(error instanceof Error ? error.message : "The server did not accept this.", true);
    }
  }

  /** @param {string} text @param {boolean} [bad] */
  #say(text, bad = false) {
    setText(this.#state, text);
    this.#state.classList.toggle("bad", bad);
    if (!bad) setTimeout(() => { if (this.#state.textContent === text) setText(this.#state, ""); }, 2500);
  }

  #show() {
    const { limits, latency_ms: latency, max_in_flight: most, retry_after: retry, faults: list } = this.#rules;
    /** @param {string} name @param {unknown} value */
    const put = (name, value) => {
      const field = this.#form.elements.namedItem(name);
      if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) field.value = value === null || value === undefined ? "" : String(value);
    };
    /** @param {string} kind */
    const percent = (kind) => Math.round(100 * (list.find((fault) => fault.kind === kind)?.rate ?? 0));
    put("limit", limits[0]?.limit);
    put("window_ms", limits[0]?.window_ms);
    put("algorithm", limits[0]?.algorithm);
    put("latency_lo", latency[0]);
    put("latency_hi", latency[1]);
    put("max_in_flight", most);
    put("retry_after", retry ?? "seconds");
    put("rate_503", percent("status"));
    put("rate_drop", percent("drop-after-apply"));
    put("rate_hang", percent("hang"));
    this.#outputs();
    this.#showTold();
  }

  #outputs() {
    for (const [name, id] of [["rate_503", "o-503"], ["rate_drop", "o-drop"], ["rate_hang", "o-hang"]]) {
      const field = this.#form.elements.namedItem(name ?? "");
      if (field instanceof HTMLInputElement) setText(el(id ?? "", HTMLOutputElement), `${field.value} %`);
    }
  }

  #showTold() {
    const told = readTold();
    const [rule] = this.#rules.limits;
    setText(el("told-limit", HTMLElement), rate(told.limit, told.windowMs));
    setText(el("told-more", HTMLElement), `, ${told.maxInFlight} at once`);
    if (!rule) return;
    const same = rule.limit === told.limit && rule.window_ms === told.windowMs && (this.#rules.max_in_flight ?? DEFAULT_TOLD.maxInFlight) >= told.maxInFlight;
    const note = el("told-differs", HTMLParagraphElement);
    note.hidden = same;
    setText(note, `The server really takes ${rate(rule.limit, rule.window_ms)}${this.#rules.max_in_flight ? `, ${this.#rules.max_in_flight} at once` : ""}.`);
    el("tell", HTMLButtonElement).disabled = same || !this.#queue.canConfigure;
  }

  async #tell() {
    const [rule] = this.#rules.limits;
    if (!rule) return;
    try {
      await this.#queue.tell({ limit: rule.limit, windowMs: rule.window_ms, maxInFlight: Math.min(DEFAULT_TOLD.maxInFlight, this.#rules.max_in_flight ?? Infinity) });
      toast(`The client now keeps to ${rate(rule.limit, rule.window_ms)}.`);
      this.#showTold();
    } catch (error) {
      toast(error instanceof Error ? error.message : "The client did not take it.");
    }
  }
}
