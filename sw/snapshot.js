/** @typedef {import("./paceline.js").Snapshot} Snapshot */

/** The snapshot of a tab that has heard none. @type {Snapshot} */
const EMPTY = {
  counts: { queued: 0, sending: 0, retryWait: 0, done: 0, failed: 0, cancelled: 0 },
  pausedUntil: null,
  etaMs: null,
  etaIsEstimate: false,
  nextWakeAt: null,
  held: [],
  host: { kind: "", durable: false, instance: "", epoch: 0 },
  byLane: {},
  byGroup: {},
  byBudget: {},
};

/** The snapshots that one tab hears. */
export class Snapshots {
  /** @type {Set<(snapshot: Snapshot) => void>} */ #listeners = new Set();
  /** @type {Set<(error: unknown) => void>} */ #waiters = new Set();
  /** @type {Promise<void> | undefined} */ #asking;
  #current = EMPTY;

  /** @param {(message: { type: string }) => Promise<any>} request */
  constructor(request) {
    this.request = request;
  }

  /** The newest one that was heard. */
  get current() {
    return this.#current;
  }

  /** Returns the newest one, at once. Without a subscription it asks for a newer one for the next time. */
  read() {
    if (this.#listeners.size === 0) this.#asking ??= this.#ask().catch(() => {}).finally(() => (this.#asking = undefined));
    return this.#current;
  }

  /**
   * Calls the listener with each snapshot, for the first time in a later microtask.
   * @param {(snapshot: Snapshot) => void} listener
   * @returns {() => void} ends it
   */
  subscribe(listener) {
    // The same function may subscribe twice.
    const own = (/** @type {Snapshot} */ snapshot) => listener(snapshot);
    this.#listeners.add(own);
    if (this.#listeners.size === 1) this.request({ type: "subscribe" }).catch(() => {});
    queueMicrotask(() => this.#current !== EMPTY && this.#tell(own));
    return () => {
      if (!this.#listeners.delete(own) || this.#listeners.size > 0) return;
      this.request({ type: "unsubscribe" }).catch(() => {});
    };
  }

  /** @param {Snapshot} next */
  hear(next) {
    const before = this.#current;
    this.#current = share(before, next);
    if (this.#current !== before) [...this.#listeners].forEach((listener) => this.#tell(listener));
  }

  /** Asks a host that does not know this tab; resolves when a snapshot has come, or cannot. */
  async restart() {
    if (this.#listeners.size > 0) this.request({ type: "subscribe" }).catch(() => {});
    await this.#ask().catch(() => {});
  }

  /** How many jobs wait or are on their way, as far as this tab has heard. */
  left() {
    return unsettled(this.#current);
  }

  /** Resolves once nothing waits and nothing is on its way, or the signal is aborted. @param {AbortSignal} [signal] */
  async untilIdle(signal) {
    await this.#ask();
    if (isIdle(this.#current) || signal?.aborted) return;
    /** @type {(() => void) | undefined} */ let stop;
    /** @type {((error: unknown) => void) | undefined} */ let waiter;
    const idle = new Promise((resolve, reject) => {
      stop = this.subscribe((snapshot) => isIdle(snapshot) && resolve(undefined));
      this.#waiters.add((waiter = reject));
      signal?.addEventListener("abort", resolve);
    });
    await idle.finally(() => {
      stop?.();
      if (waiter) this.#waiters.delete(waiter);
    });
  }

  /** Ends all waiting. @param {unknown} error */
  fail(error) {
    this.#waiters.forEach((reject) => reject(error));
    this.#waiters.clear();
  }

  async #ask() {
    this.hear((await this.request({ type: "snapshot" })).snapshot);
  }

  /** One listener's error is its own. @param {(snapshot: Snapshot) => void} listener */
  #tell(listener) {
    if (!this.#listeners.has(listener)) return;
    try {
      listener(this.#current);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

/**
 * Returns `next`, in which every part that equals the part of `before` is that part, so that a view that compares by
 * identity draws only what changed.
 * @template T
 * @param {any} before
 * @param {T} next
 * @returns {T}
 */
export function share(before, next) {
  if (typeof next !== "object" || next === null || typeof before !== "object" || before === null) return next;
  /** @type {any} */
  const parts = next;
  let isSame = Array.isArray(before) === Array.isArray(parts) && Object.keys(before).length === Object.keys(parts).length;
  for (const name of Object.keys(parts)) {
    parts[name] = share(before[name], parts[name]);
    isSame &&= name in before && Object.is(parts[name], before[name]);
  }
  return isSame ? before : next;
}

/** @param {Snapshot} snapshot */
const unsettled = ({ counts }) => counts.queued + counts.sending + counts.retryWait;

/**
 * Tells whether nothing waits and nothing is on its way.
 * @param {Snapshot} snapshot
 */
const isIdle = (snapshot) => unsettled(snapshot) === 0;
