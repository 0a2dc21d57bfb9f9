// How jobs are handed in: checked here with the host's own code, sent, and given back when their caller aborts.

import { PacelineError, fieldError, fromWire } from "./errors.js";
import { isName, prepare, prepareAll, readForm } from "./job.js";
import { uuid } from "./protocol.js";

/** @typedef {import("./wire.js").Outcome} Outcome */

const noop = () => {};

/** What one tab hands in. */
export class Intake {
  /**
   * Requests whose acceptance is not known yet.
   * @type {Set<Promise<unknown>>}
   */
  #unanswered = new Set();
  /**
   * The forms that are being read; later jobs wait for them, so that the order of calls is kept.
   * @type {Promise<unknown> | undefined}
   */
  #forms;

  /**
   * @param {(request: { type: string } & Record<string, unknown>) => Promise<any>} request
   * @param {import("./unsettled.js").Unsettled} unsettled
   */
  constructor(request, unsettled) {
    this.request = request;
    this.unsettled = unsettled;
  }

  /**
   * Hands in one job. Resolves once it is stored.
   * @param {unknown} given
   * @param {AbortSignal} [signal]
   * @returns {Promise<{ id: string, outcome: Promise<Outcome> }>}
   */
  async one(given, signal) {
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
    const asker = (/** @type {Outcome} */ result) => {
      signal?.removeEventListener("abort", abort);
      settle(result);
    };
    const abort = () => {
      const isLast = this.unsettled.remove(id, asker);
      refuse(abortedBy(/** @type {AbortSignal} */ (signal), id));
      settle({ id, state: "cancelled", code: "aborted", cause: signal?.reason });
      // Also before the acceptance, after which it may be on its way at once.
      if (isLast) this.#abandon(id);
    };
    signal?.addEventListener("abort", abort, { once: true });
    this.unsettled.add(id, request, asker);
    this.#track(this.request(request)).then(
      (reply) => {
        if (!this.unsettled.hasJob(id)) this.#abandon(id);
        this.unsettled.accepted(reply.job);
        accept({ id, outcome });
      },
      (error) => {
        signal?.removeEventListener("abort", abort);
        this.unsettled.remove(id, asker);
        refuse(fromWire(error, id));
      },
    );
    return accepted;
  }

  /**
   * Hands in many jobs, all or none. Resolves once they are stored.
   * @param {unknown[]} jobs
   * @param {string} group
   * @returns {Promise<import("./paceline.js").GroupHandle>}
   */
  async many(jobs, group) {
    if (!isName(group, 1)) throw fieldError("group", "1 to 255 characters", group);
    const read = Array.isArray(jobs) ? this.#readForms(jobs) : jobs;
    const messages = ofJob(prepareAll, read instanceof Promise ? await read : read).map(toMessage);
    const ids = messages.map(({ id }) => id);
    const total = ids.length;
    if (total === 0) return { group, ids, total, settled: Promise.resolve({ done: 0, failed: 0, cancelled: 0 }) };
    const message = { type: "enqueue-many", jobs: messages, group };
    const { promise: settled, resolve, reject } = deferred();
    settled.catch(noop);
    const bulk = { group, message, isAccepted: false, resolve, reject };
    this.unsettled.addBulk(bulk);
    try {
      await this.#track(this.request(message).then(() => (bulk.isAccepted = true)));
    } catch (error) {
      this.unsettled.removeBulk(bulk);
      throw error;
    }
    return { group, ids, total, settled };
  }

  /** Resolves once every request so far has been accepted or refused. */
  async isAnswered() {
    await Promise.allSettled(this.#unanswered);
  }

  /** Cancels a job that nobody in this tab wants any more. @param {string} id */
  #abandon(id) {
    this.request({ type: "cancel", jobs: [id], aborted: true }).catch(noop);
  }

  /** @template T @param {Promise<T>} request @returns {Promise<T>} */
  #track(request) {
    this.#unanswered.add(request);
    const forget = () => this.#unanswered.delete(request);
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
}

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

/**
 * A promise with what settles it.
 * @returns {{ promise: Promise<any>, resolve: (value: any) => void, reject: (error: unknown) => void, isOver: boolean }}
 */
export function deferred() {
  /** @type {any} */
  const parts = { isOver: false };
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}
