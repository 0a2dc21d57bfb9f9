// The queue as a page sees it. Importing this touches nothing of the browser; `connect` does.

import { Connection } from "./connection.js";
import { Credentials } from "./credentials.js";
import { PacelineError, fieldError, fromWire } from "./errors.js";
import { jobOf } from "./fetch.js";
import { kindsOf } from "./hosts.js";
import { Intake, deferred } from "./intake.js";
import { VERSION, uuid } from "./protocol.js";
import { doneOf, fetchedOf } from "./response.js";
import { Snapshots } from "./snapshot.js";
import { Unsettled } from "./unsettled.js";

export { PacelineError } from "./errors.js";

/** @typedef {import("./paceline.js").ConnectOptions} ConnectOptions */
/** @typedef {import("./paceline.js").Snapshot} Snapshot */
/** @typedef {import("./paceline.js").Host} Host */
/** @typedef {import("./paceline.js").Job} Job */
/** @typedef {import("./paceline.js").Target} Target */
/** @typedef {import("./wire.js").Outcome} Outcome */
/** @typedef {import("./wire.js").HostMessage} HostMessage */

const HOSTS = ["auto", "shared-worker", "service-worker", "leader-tab"];
const LANES = ["interactive", "bulk", "background"];
const noop = () => {};
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Connects this page to a queue. All pages of an origin that give the same name share it.
 * @param {ConnectOptions} [options]
 * @returns {import("./paceline.js").Queue}
 */
export function connect(options = {}) {
  const { name = "default", host = "auto" } = options;
  if (typeof name !== "string" || name.length < 1 || name.length > 255) throw fieldError("name", "1 to 255 characters", name);
  if (!HOSTS.includes(host)) throw fieldError("host", HOSTS.join(", "), host);
  return /** @type {import("./paceline.js").Queue} */ (new Queue(name, options));
}

/** @param {string} name @param {ConnectOptions} options */
function urlOf(name, { workerUrl, wasmUrl }) {
  const base = globalThis.location?.href;
  const url = new URL(workerUrl ?? new URL("./worker.js", import.meta.url), base);
  url.searchParams.set("queue", name);
  if (wasmUrl) url.searchParams.set("wasm", new URL(wasmUrl, base).href);
  return url.href;
}

class Queue extends EventTarget {
  #unsettled = new Unsettled();
  #intake;
  #first = deferred();
  #isClosed = false;
  #followsMetrics = false;
  /** @type {Promise<void> | undefined} */ #asking;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #bell;
  /** @type {(() => void) | undefined} */ #follow;
  /** @type {number | undefined} */ #birth;
  #budgets;
  #credentials;
  #connection;
  #snapshots;

  /** @param {string} name @param {ConnectOptions} options */
  constructor(name, options) {
    super();
    this.name = name;
    const { principal = "" } = options;
    this.#budgets = options.budgets;
    this.#credentials = new Credentials(options.credentials);
    this.#connection = new Connection(name, kindsOf(name, urlOf(name, options), options), {
      hello: () => ({
        version: VERSION, principal, budgets: this.#credentials.mark(this.#budgets), credentials: this.#credentials.canAnswer,
      }),
      welcomed: (welcome, isChanged) => this.#welcomed(welcome, isChanged),
      heard: (message) => this.#heard(message),
      dozed: () => this.#setBell(),
      failed: (error) => this.#failed(error),
    });
    this.#intake = new Intake((request) => this.#connection.request(request), this.#unsettled);
    this.#snapshots = new Snapshots((request) => this.#connection.request(request));
    this.ready = /** @type {Promise<Host>} */ (this.#first.promise);
    this.ready.catch(noop);
    this.#connection.open();
    globalThis.addEventListener?.("pagehide", this.#hide);
    globalThis.addEventListener?.("pageshow", this.#show);
  }

  /** @param {Job} job @param {{ signal?: AbortSignal }} [options] */
  async enqueue(job, { signal } = {}) {
    const { id, outcome } = await this.#intake.one(job, signal);
    const done = outcome.then(doneOf);
    done.catch(noop);
    return { id, done };
  }

  /** @param {Job[]} jobs @param {{ group?: string }} [options] */
  enqueueMany(jobs, { group = uuid() } = {}) {
    return this.#intake.many(jobs, group);
  }

  /** @param {RequestInfo | URL} input @param {import("./paceline.js").FetchInit} [init] */
  async fetch(input, init) {
    const { job, signal } = await jobOf(input, init);
    const { outcome } = await this.#intake.one(job, signal).catch((error) => {
      throw error.code === "aborted" ? error.cause : error;
    });
    return outcome.then(fetchedOf);
  }

  /** @param {Target} target */
  async cancel(target) {
    const replies = await this.#ask("cancel", target);
    return { cancelled: sum(replies, "cancelled"), alreadySent: sum(replies, "alreadySent") };
  }

  /** @param {Target} target @param {{ force?: boolean }} [options] */
  async retry(target, { force = false } = {}) {
    const replies = await this.#ask("retry", target, { force });
    const result = { retried: sum(replies, "retried"), needsForce: sum(replies, "needsForce"), stale: sum(replies, "stale") };
    if (result.retried > 0 || result.needsForce + result.stale === 0) return result;
    const jobId = typeof target === "string" ? target : undefined;
    if (result.needsForce === 0) throw new PacelineError("stale", "a later job of its key is done: a repeat would undo it", { jobId });
    throw new PacelineError("needs-force", "the outcome is unknown, so a repeat may double it: pass force", { jobId });
  }

  /** @param {Target} target @param {import("./paceline.js").Lane} lane */
  async prioritise(target, lane) {
    if (!LANES.includes(lane)) throw fieldError("lane", "interactive, bulk or background", lane);
    const replies = await this.#ask("prioritise", target, { lane });
    return { moved: sum(replies, "moved"), alreadySent: sum(replies, "alreadySent") };
  }

  /** @param {string} [budget] */
  async hold(budget) {
    await this.#connection.request({ type: "hold", budget });
  }

  /** @param {string} [budget] */
  async resume(budget) {
    await this.#connection.request({ type: "resume", budget });
  }

  /** @param {{ budgets: import("./paceline.js").Budget[] }} config */
  async configure({ budgets }) {
    await this.#connection.request({ type: "configure", budgets: this.#credentials.mark(budgets) });
    this.#budgets = budgets;
  }

  /** @param {string} budget @param {HeadersInit} headers */
  async setCredentials(budget, headers) {
    await this.#connection.request({ type: "credentials", budget, headers: this.#credentials.keep(budget, headers) });
  }

  /** @param {import("./paceline.js").JobFilter} [filter] */
  async jobs(filter = {}) {
    const { jobs, next } = await this.#connection.request({ type: "jobs", filter });
    return Object.assign(jobs, { next: next ?? undefined });
  }

  /** @param {import("./paceline.js").Question} question */
  async estimate(question) {
    const { budget, count, cost, lane } = question ?? {};
    return (await this.#connection.request({ type: "estimate", budget, count, cost, lane })).estimate;
  }

  /** @param {import("./paceline.js").PlanStep[]} plan */
  async simulate(plan) {
    return (await this.#connection.request({ type: "simulate", plan })).simulation;
  }

  async metrics() {
    return (await this.#connection.request({ type: "metrics" })).metrics;
  }

  /**
   * The host tells a page of its counts only once that has a listener for them.
   * @param {string} name @param {any} listener @param {boolean | AddEventListenerOptions} [options]
   */
  addEventListener(name, listener, options) {
    super.addEventListener(name, listener, options);
    if (name !== "metrics" || this.#followsMetrics) return;
    this.#followsMetrics = true;
    this.#followMetrics();
  }

  /** @param {string} budget */
  async diagnose(budget) {
    return (await this.#connection.request({ type: "diagnose", budget })).diagnosis;
  }

  snapshot() {
    return this.#snapshots.read();
  }

  /** @param {(snapshot: import("./paceline.js").Snapshot) => void} listener */
  subscribe(listener) {
    return this.#snapshots.subscribe(listener);
  }

  async idle() {
    await this.#settled();
  }

  /** @param {{ timeoutMs?: number }} [options] */
  async drain({ timeoutMs } = {}) {
    if (timeoutMs !== undefined && !(timeoutMs >= 0 && timeoutMs <= MAX_TIMER_MS)) {
      throw fieldError("timeoutMs", `0 to ${MAX_TIMER_MS}`, timeoutMs);
    }
    /** @type {ReturnType<typeof setTimeout> | undefined} */ let timer;
    const isOver = timeoutMs === undefined ? new Promise(noop) : new Promise((resolve) => (timer = setTimeout(resolve, timeoutMs)));
    const stop = new AbortController();
    try {
      await Promise.race([this.#settled(stop.signal), isOver]);
    } finally {
      clearTimeout(timer);
      stop.abort();
    }
    return { left: this.#snapshots.left() };
  }

  /** @param {AbortSignal} [stop] */
  async #settled(stop) {
    await this.#intake.isAnswered();
    await this.#snapshots.untilIdle(stop);
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#bell);
    globalThis.removeEventListener?.("pagehide", this.#hide);
    globalThis.removeEventListener?.("pageshow", this.#show);
    this.#connection.close(new PacelineError("not-connected", "the queue is closed in this tab; its jobs go on"));
  }

  /**
   * Asks about jobs or a group. A text that this tab does not know may name either.
   * @param {string} type
   * @param {any} target
   * @param {object} [more]
   */
  #ask(type, target, more = {}) {
    /** @type {object[]} */
    let targets;
    if (Array.isArray(target)) targets = [{ jobs: target.map((one) => one?.id ?? one) }];
    else if (target?.group !== undefined) targets = [{ group: target.group }];
    else if (target?.id !== undefined) targets = [{ jobs: [target.id] }];
    else if (typeof target !== "string") throw fieldError("target", "a job, a group, an id or an array of ids", target);
    else if (this.#unsettled.hasGroup(target)) targets = [{ group: target }];
    else if (this.#unsettled.hasJob(target)) targets = [{ jobs: [target] }];
    else targets = [{ jobs: [target] }, { group: target }];
    return Promise.all(targets.map((which) => this.#connection.request({ type, ...which, ...more })));
  }

  /** @param {HostMessage} welcome @param {boolean} isChanged */
  #welcomed({ host, durable, version, epoch, instance, birth }, isChanged) {
    const details = /** @type {Host} */ ({ host, durable, version, epoch, instance });
    if (this.#birth !== undefined && birth !== this.#birth) this.#lost();
    this.#birth = birth;
    this.#unsettled.askAgain((request) => this.#connection.request(request));
    const isKnown = this.#snapshots.restart();
    if (this.#followsMetrics) this.#followMetrics();
    // A host that sleeps is woken by what its last snapshot said.
    if (host === "service-worker") this.#follow ??= this.#snapshots.subscribe(noop);
    if (isChanged) this.#emit("host-changed", details);
    isKnown.then(() => {
      this.#first.resolve(details);
      this.#first.isOver ? (this.ready = Promise.resolve(details)) : (this.#first.isOver = true);
    });
  }

  /** Rings a sleeping host when it has something to do next; at once while something is on its way. */
  #setBell() {
    clearTimeout(this.#bell);
    const { nextWakeAt } = this.#snapshots.current;
    const hasWork = !this.#unsettled.isEmpty || this.#snapshots.left() > 0;
    if (!hasWork || this.#isClosed) return;
    const wait = nextWakeAt == null ? 0 : Math.max(0, nextWakeAt - Date.now());
    this.#bell = setTimeout(() => this.#connection.wake(), Math.min(wait, MAX_TIMER_MS));
  }

  /** The database is another one: whether what it held was sent, nobody knows, so none of it is asked for again. */
  #lost() {
    const message = "the browser's storage was cleared, and what it held with it";
    this.#unsettled.lose(new PacelineError("storage", message));
    this.#emit("storage", { message });
  }

  /** Its answer is the first event: how it stands. A request that is open goes to the next host by itself. */
  #followMetrics() {
    const ask = () => this.#connection.request({ type: "metrics", follow: true });
    this.#asking ??= ask().then(({ metrics }) => this.#emit("metrics", metrics), noop).finally(() => (this.#asking = undefined));
  }

  /** @param {HostMessage} message */
  #heard(message) {
    if (message.type === "settled" && message.job) {
      this.#unsettled.settle({ ...message.job, response: message.response });
      this.#emit("settled", message.job);
    } else if (message.type === "group-settled") {
      this.#unsettled.settleGroup(/** @type {any} */ (message));
    } else if (message.type === "snapshot" && message.snapshot) {
      this.#snapshots.hear(message.snapshot);
    } else if (message.type === "credentials-wanted") {
      this.#answerCredentials(/** @type {any} */ (message));
    } else if (message.type === "error") {
      this.#emit("error", fromWire(/** @type {any} */ (message)));
    } else if (message.type === "event" && message.name && !OWN_EVENTS.includes(message.name)) {
      this.#emit(message.name, message.detail);
    }
  }

  /** @param {{ budget: string, wanted: string }} message */
  async #answerCredentials({ budget, wanted }) {
    const answer = this.#credentials.answer(budget, wanted);
    const headers = await answer.catch((cause) => {
      this.#emit("error", new PacelineError("bad-job", `no credentials for ${budget}: ${cause?.message ?? cause}`, { cause }));
      return null;
    });
    const given = this.#connection.request({ type: "credentials", budget, headers });
    await given.catch((error) => this.#isClosed || this.#emit("error", error));
  }

  /** @param {PacelineError} error */
  #failed(error) {
    this.#first.reject(error);
    this.#first.isOver = true;
    this.#snapshots.fail(error);
    this.#unsettled.failAll(error);
    if (!this.#isClosed) this.#emit("error", error);
  }

  /** @param {string} name @param {unknown} detail */
  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  /** A page that goes, perhaps into the cache of pages, must not be spoken to: that would evict it. */
  #hide = () => this.#connection.leave();

  /** @param {Event} event */
  #show = (event) => /** @type {PageTransitionEvent} */ (event).persisted && this.#connection.open();
}

/** Events that only the connection needs. */
const OWN_EVENTS = ["hosting", "stopped", "waiting"];

/** @param {any[]} replies @param {string} field @returns {number} */
const sum = (replies, field) => replies.reduce((total, reply) => total + (reply[field] ?? 0), 0);
