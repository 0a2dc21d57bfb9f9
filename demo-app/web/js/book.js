/**
 * What the page believes about each person: the server's values, and over them the changes that are under way.
 * Owns every change the page knows of, by job id and by person. A change that failed or was cancelled is not shown as a
 * value any more: the cell falls back to what the server has, and the chip says why.
 * @import { Contact, Field, Job, JobState, Patch } from "./types.js"
 */
import { generateContacts } from "./contacts.js";

/** How long "Saved" stays on a row. */
export const SAVED_MS = 8000;
const LIVE = new Set(["queued", "sending", "retry-wait"]);

/** @typedef {Job & { at: number }} Change `at` is when its state was learned, by performance.now() */
/** @typedef {"waiting" | "sending" | "retrying" | "saved" | "failed"} ChipState */

export class Book extends EventTarget {
  /** @type {Contact[]} */ #people = generateContacts();
  /** @type {Map<string, Change>} */ #changes = new Map();
  /** @type {Map<number, Change[]>} */ #byContact = new Map();

  /** @param {number} id @returns {Contact} the server's values */
  served(id) {
    return /** @type {Contact} */ (this.#people[id - 1]);
  }

  /** @param {number} id @param {Field} field the value to show: served, with the live changes over it in their order */
  value(id, field) {
    let value = this.served(id)[field];
    for (const change of this.#byContact.get(id) ?? []) {
      const meant = change.patch[field];
      if (meant !== undefined && LIVE.has(change.state)) value = meant;
    }
    return value;
  }

  /** @param {number} id @param {Field} field */
  isPending(id, field) {
    return (this.#byContact.get(id) ?? []).some((change) => LIVE.has(change.state) && change.patch[field] !== undefined);
  }

  /** The one state that a row's chip shows, the most active first. @param {number} id @returns {{ state: ChipState, change: Change } | null} */
  chip(id) {
    const changes = this.#byContact.get(id);
    if (!changes) return null;
    /** @param {JobState} state */
    const find = (state) => changes.findLast((change) => change.state === state);
    const sending = find("sending");
    if (sending) return { state: "sending", change: sending };
    const retrying = find("retry-wait");
    if (retrying) return { state: "retrying", change: retrying };
    const waiting = find("queued");
    if (waiting) return { state: "waiting", change: waiting };
    const failed = find("failed");
    if (failed) return { state: "failed", change: failed };
    const saved = find("done");
    return saved ? { state: "saved", change: saved } : null;
  }

  /** @param {string} id */
  has(id) {
    return this.#changes.has(id);
  }

  /** Every change that is not settled, or only those of one group. @param {string} [group] */
  live(group) {
    return [...this.#changes.values()].filter((change) => LIVE.has(change.state) && (group === undefined || change.group === group));
  }

  failed() {
    return [...this.#changes.values()].filter((change) => change.state === "failed");
  }

  /** Waiting changes that are called off. @param {string} [group] only those of one group */
  cancelled(group) {
    const off = this.live(group).filter((change) => change.state !== "sending");
    this.learn(off.map((change) => ({ ...change, state: "cancelled" })));
  }

  /** Failed changes that are tried again. @param {string} [group] only those of one group */
  retried(group) {
    const again = this.failed().filter((change) => group === undefined || change.group === group);
    this.learn(again.map((change) => ({ ...change, state: "queued", code: null, status: null })));
  }

  /** @param {number} id */
  changesOf(id) {
    return this.#byContact.get(id) ?? [];
  }

  /**
   * Takes in what the queue says of some jobs. A settled job never goes back, save a failed one that is tried again.
   * @param {readonly Job[]} jobs
   */
  learn(jobs) {
    const touched = new Set();
    for (const job of jobs) {
      const known = this.#changes.get(job.id);
      if (known ? this.#update(known, job) : this.#add(job)) touched.add(job.contact);
    }
    this.#tell(touched);
  }

  /** @param {string} id @param {Partial<Job>} news */
  settle(id, news) {
    const known = this.#changes.get(id);
    if (known && this.#update(known, { ...known, ...news })) this.#tell(new Set([known.contact]));
  }

  /** Forgets changes, as when the queue no longer knows them. @param {readonly string[]} ids */
  forget(ids) {
    const touched = new Set();
    for (const id of ids) {
      const change = this.#changes.get(id);
      if (change) touched.add(change.contact);
      if (change) this.#drop(change);
    }
    this.#tell(touched);
  }

  /** The server's own words: a change that it took. @param {number} id @param {Patch} patch */
  serve(id, patch) {
    const person = this.#people[id - 1];
    if (!person) return;
    Object.assign(person, patch);
    this.#tell(new Set([id]));
  }

  /** Lets old "Saved" chips go. */
  sweep(now = performance.now()) {
    const old = [...this.#changes.values()].filter((c) => c.state === "cancelled" || (c.state === "done" && now - c.at > SAVED_MS));
    if (old.length > 0) this.forget(old.map((change) => change.id));
  }

  reset() {
    this.#people = generateContacts();
    this.#changes.clear();
    this.#byContact.clear();
    this.#tell(null);
  }

  /** @param {Job} job */
  #add(job) {
    const change = { ...job, at: performance.now() };
    this.#changes.set(job.id, change);
    const list = this.#byContact.get(job.contact);
    if (list) list.push(change);
    else this.#byContact.set(job.contact, [change]);
    if (job.state === "done") this.#keep(change);
    return true;
  }

  /** @param {Change} known @param {Job} job */
  #update(known, job) {
    if (known.state === "done" || known.state === "cancelled") return false;
    known.cursor ??= job.cursor;
    if (known.state === job.state && known.code === job.code && known.until === job.until) return false;
    Object.assign(known, { state: job.state, code: job.code, status: job.status, until: job.until, at: performance.now() });
    if (Object.keys(known.patch).length === 0) known.patch = job.patch;
    if (job.state === "done") this.#keep(known);
    return true;
  }

  /** @param {Change} change */
  #keep(change) {
    Object.assign(this.served(change.contact), change.patch);
    const older = this.changesOf(change.contact).filter((other) => other !== change && (other.state === "failed" || other.state === "done"));
    for (const other of older) if (Object.keys(other.patch).every((field) => field in change.patch)) this.#drop(other);
  }

  /** @param {Change} change */
  #drop(change) {
    this.#changes.delete(change.id);
    const rest = this.changesOf(change.contact).filter((other) => other !== change);
    if (rest.length > 0) this.#byContact.set(change.contact, rest);
    else this.#byContact.delete(change.contact);
  }

  /** @param {Set<number> | null} contacts null = everybody */
  #tell(contacts) {
    if (contacts === null || contacts.size > 0) this.dispatchEvent(new CustomEvent("change", { detail: contacts }));
  }
}
