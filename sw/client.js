// The queue as a page sees it. Importing this touches nothing of the browser; `connect` does.

import { Connection } from "./connection.js";
import { PacelineError, fieldError, fromWire } from "./errors.js";
import { jobOf } from "./fetch.js";
import { prepare, prepareAll, readForm } from "./job.js";
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

const HOSTS = ["auto", "shared-worker"];
const noop = () => {};

/**
 * Connects this page to a queue. All pages of an origin that give the same name share it.
 * @param {ConnectOptions} [options]
 * @returns {import("./paceline.js").Queue}
 */
export function connect(options = {}) {
  const { name = "default", host = "auto" } = options;
  if (typeof name !== "string" || name.length < 1 || name.length > 255) throw fieldError("name", "1 to 255 characters", name);
  if (!HOSTS.includes(host)) throw fieldError("host", HOSTS.join(" or "), host);
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
  /**
   * Requests whose acceptance is not known yet.
   * @type {Set<Promise<unknown>>}
   */
  #unaccepted = new Set();
  /**
   * The forms that are being read; later jobs wait for them, so that the order of calls is kept.
   * @type {Promise<unknown> | undefined}
   */
  #forms;
  #unsettled = new Unsettled();
  #first = deferred();
  #isClosed = false;
  #budgets;
  #connection;
  #snapshots;

  /** @param {string} name @param {ConnectOptions} options */
  constructor(name, options) {
    super();
    this.name = name;
    const { principal = "" } = options;
    this.#budgets = options.budgets;
    this.#connection = new Connection(name, urlOf(name, options), {
      hello: () => ({ version: VERSION, principal, budgets: this.#budgets }),
      welcomed: (welcome, isChanged) => this.#welcomed(welcome, isChanged),
      heard: (message) => this.#heard(message),
      failed: (error) => this.#failed(error),
    });
    this.#snapshots = new Snapshots((request) => this.#connection.request(request));
    this.ready = /** @type {Promise<Host>} */ (this.#first.promise);
    this.ready.catch(noop);
    this.#connection.open();
    globalThis.addEventListener?.("pagehide", this.#hide);
    globalThis.addEventListener?.("pageshow", this.#show);
  }

  /** @param {Job} job @param {{ signal?: AbortSignal }} [options] */
  async enqueue(job, { signal } = {}) {
    const { id, outcome } = await this.#submit(job, signal);
    const done = outcome.then(doneOf);
    done.catch(noop);
    return { id, done };
  }

  /** @param {Job[]} jobs @param {{ group?: string }} [options] */
  async enqueueMany(jobs, { group = uuid() } = {}) {
    if (typeof group !== "string" || !group || group.length > 255) throw fieldError("group", "1 to 255 characters", group);
    const read = Array.isArray(jobs) ? this.#readForms(jobs) : jobs;
    const messages = ofJob(prepareAll, read instanceof Promise ? await read : read).map(toMessage);
    const ids = messages.map(({ id }) => id);
    const total = ids.length;
    if (total === 0) return { group, ids, total, settled: Promise.resolve({ done: 0, failed: 0, cancelled: 0 }) };
    const message = { type: "enqueue-many", jobs: messages, group };
    const { promise: settled, resolve, reject } = deferred();
    settled.catch(noop);
    const bulk = { group, message, isAccepted: false, resolve, reject };
    this.#unsettled.addBulk(bulk);
    try {
      await this.#track(this.#connection.request(message).then(() => (bulk.isAccepted = true)));
    } catch (error) {
      this.#unsettled.removeBulk(bulk);
      throw error;
    }
    return { group, ids, total, settled };
  }

  /** @param {RequestInfo | URL} input @param {import("./paceline.js").FetchInit} [init] */
  async fetch(input, init) {
    const { job, signal } = await jobOf(input, init);
    const { outcome } = await this.#submit(job, signal).catch((error) => {
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
    const result = { retried: sum(replies, "retried"), needsForce: sum(replies, "needsForce") };
    if (result.retried > 0 || result.needsForce === 0) return result;
    const jobId = typeof target === "string" ? target : undefined;
    throw new PacelineError("needs-force", "the outcome is unknown, so a repeat may double it: pass force", { jobId });
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
    await this.#connection.request({ type: "configure", budgets });
    this.#budgets = budgets;
  }

  /** @param {import("./paceline.js").JobFilter} [filter] */
  async jobs(filter = {}) {
    const { jobs, next } = await this.#connection.request({ type: "jobs", filter });
    return Object.assign(jobs, { next: next ?? undefined });
  }

  snapshot() {
    return this.#snapshots.read();
  }

  /** @param {(snapshot: import("./paceline.js").Snapshot) => void} listener */
  subscribe(listener) {
    return this.#snapshots.subscribe(listener);
  }

  async idle() {
    await Promise.allSettled(this.#unaccepted);
    await this.#snapshots.untilIdle();
  }

  close() {
    this.#isClosed = true;
    globalThis.removeEventListener?.("pagehide", this.#hide);
    globalThis.removeEventListener?.("pageshow", this.#show);
    this.#connection.close(new PacelineError("not-connected", "the queue is closed in this tab; its jobs go on"));
  }

  /**
   * Hands in one job. Resolves once it is stored.
   * @param {unknown} given
   * @param {AbortSignal} [signal]
   * @returns {Promise<{ id: string, outcome: Promise<Outcome> }>}
   */
  async #submit(given, signal) {
    if (signal?.aborted) throw abortedBy(signal);
    const read = this.#readForms([given]);
    // Nothing is awaited without need: what a page hands in as it goes is posted in that same turn.
    const [job] = read instanceof Promise ? await read : read;
    if (signal?.aborted) throw abortedBy(signal);
    const message = toMessage(ofJob(prepare, job));
    const request = { type: "enqueue", job: message };
    const { id } = message;
    const { promise: outcome, resolve: settle } = deferred();
    const { promise: accepted, resolve: accept, reject: refuse } = deferred();
    let isAccepted = false;
    const asker = (/** @type {Outcome} */ result) => {
      signal?.removeEventListener("abort", abort);
      settle(result);
    };
    const abort = () => {
      const isLast = this.#unsettled.remove(id, asker);
      refuse(abortedBy(/** @type {AbortSignal} */ (signal), id));
      settle({ id, state: "cancelled", code: "aborted", cause: signal?.reason });
      if (isAccepted && isLast) this.#abandon(id);
    };
    signal?.addEventListener("abort", abort, { once: true });
    this.#unsettled.add(id, request, asker);
    this.#track(this.#connection.request(request)).then(
      (reply) => {
        isAccepted = true;
        if (!this.#unsettled.hasJob(id)) this.#abandon(id);
        this.#unsettled.accepted(reply.job);
        accept({ id, outcome });
      },
      (error) => {
        signal?.removeEventListener("abort", abort);
        this.#unsettled.remove(id, asker);
        refuse(Object.assign(error, { jobId: id }));
      },
    );
    return accepted;
  }

  /** Cancels a job that nobody in this tab wants any more. @param {string} id */
  #abandon(id) {
    this.#connection.request({ type: "cancel", jobs: [id], aborted: true }).catch(noop);
  }

  /** @template T @param {Promise<T>} request @returns {Promise<T>} */
  #track(request) {
    this.#unaccepted.add(request);
    const forget = () => this.#unaccepted.delete(request);
    request.then(forget, forget);
    return request;
  }

  /**
   * Reads the forms among the jobs' bodies.
   * @param {unknown[]} jobs
   * @returns {unknown[] | Promise<unknown[]>}
   */
  #readForms(jobs) {
    const reads = jobs.map(readForm);
    const before = this.#forms;
    if (!before && reads.every((read) => read === undefined)) return jobs;
    const all = Promise.all(reads.map((read, index) => read ?? jobs[index]));
    const turn = Promise.resolve(before).then(() => all);
    const forms = turn.then(noop, noop).then(() => {
      if (this.#forms === forms) this.#forms = undefined;
    });
    this.#forms = forms;
    return turn;
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
  #welcomed({ host, durable, version, epoch, instance }, isChanged) {
    const details = /** @type {Host} */ ({ host, durable, version, epoch, instance });
    this.#unsettled.askAgain((request) => this.#connection.request(request));
    const isKnown = this.#snapshots.restart();
    if (isChanged) this.#emit("host-changed", details);
    isKnown.then(() => {
      this.#first.resolve(details);
      this.#first.isOver ? (this.ready = Promise.resolve(details)) : (this.#first.isOver = true);
    });
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
    } else if (message.type === "error") {
      this.#emit("error", fromWire(/** @type {any} */ (message)));
    } else if (message.type === "event" && message.name && !OWN_EVENTS.includes(message.name)) {
      this.#emit(message.name, message.detail);
    }
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
const OWN_EVENTS = ["hosting", "stopped"];

/** @param {import("./wire.js").Prepared} prepared */
function toMessage({ job, request: { method, body, meta, credentials, redirect } }) {
  const isRead = method === "GET" || method === "HEAD";
  const idempotencyKey = job.idempotencyKey ?? (isRead ? undefined : uuid());
  return { ...job, id: job.id ?? uuid(), idempotencyKey, body, meta, credentials, redirect };
}

/**
 * Calls a check of jobs; its error names fields as the app knows them.
 * @template T
 * @param {(job: any) => T} check
 * @param {unknown} job
 */
function ofJob(check, job) {
  try {
    return check(job);
  } catch (error) {
    throw error instanceof PacelineError ? fromWire(error) : error;
  }
}

/** @param {AbortSignal} signal @param {string} [jobId] */
function abortedBy(signal, jobId) {
  return new PacelineError("aborted", "its caller aborted the job", { jobId, cause: signal.reason });
}

/** @param {any[]} replies @param {string} field @returns {number} */
const sum = (replies, field) => replies.reduce((total, reply) => total + reply[field], 0);

/** @returns {{ promise: Promise<any>, resolve: (value: any) => void, reject: (error: unknown) => void, isOver: boolean }} */
function deferred() {
  /** @type {any} */
  const parts = { isOver: false };
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}
