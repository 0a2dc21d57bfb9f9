// The JavaScript around the engine. It owns what must not die with a wasm instance: the tabs, the two Web Locks and the
// timer. It keeps what arrives before the engine is up. The engine is never called from inside one of its own callbacks,
// and never again once anything has been thrown out of it.

import init, { Engine } from "./paceline_sw.js";
import { dialectNames } from "./define.js";
import { PacelineError, fieldError } from "./errors.js";
import { prepare, prepareAll } from "./job.js";
import { Door, askToYield } from "./hub.js";
import { withLikeness } from "./merge.js";
import { PROTOCOL, VERSION, uuid } from "./protocol.js";

/** @typedef {import("./wire.js").Post} Post */
/** @typedef {{ tab: number, message: any, requests: object[], sizes: number[] }} Early */
/**
 * @typedef {object} Options
 * @property {string} queue
 * @property {string} wasmUrl
 * @property {"shared-worker" | "service-worker" | "leader-tab"} host
 * @property {(request: any, options: any) => Promise<object>} send
 * @property {() => void} [close] ends the context, so that another can start; a service worker cannot
 */

const MAX_TIMER_MS = 2 ** 31 - 1;
/** The most messages that are kept for an engine that is not up yet. */
const MAX_EARLY = 10_000;

/** How long an ended host stays for what it has said to arrive: a closed worker's messages may be lost. */
const LAST_WORDS_MS = 30;

/** The shell of one host. */
export class Shell {
  /** @type {Map<number, Post>} */ #tabs = new Map();
  /** @type {Early[]} */ #early = [];
  /** @type {Engine | undefined} */ #engine;
  /** @type {{ code: import("./paceline.js").Code, message: string } | undefined} */ #end;
  /** @type {number | undefined} */ #epoch;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  /** @type {(() => void)[]} */ #releases = [];
  /** @type {PacelineError | undefined} */ #busy;
  /** @type {Map<number, () => void>} */ #farewells = new Map();
  /** @type {Door} */ #door;
  #isWaiting = false;
  #isYielding = false;
  #lastTab = 0;
  #isHosting = false;
  #instance = uuid();

  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.#door = new Door(options.queue, VERSION, this);
  }

  /** Takes the locks and starts the engine. */
  async start() {
    const { queue, host, wasmUrl } = this.options;
    const loading = init({ module_or_path: wasmUrl });
    loading.catch(() => {});
    await this.#hold(`paceline-host:${queue}:${this.#instance}`);
    this.#isHosting = true;
    this.#tell({ type: "event", name: "hosting", detail: {} });
    const owned = this.#hold(`paceline:${queue}`);
    this.#lookWhetherBusy(owned).catch(() => {});
    await owned;
    this.#isWaiting = false;
    this.#door.open();
    try {
      await loading;
      if (this.#end) return;
      const options = { queue, instance: this.#instance, host, version: VERSION, dialects: dialectNames() };
      const engine = await Engine.start(options, this.#callbacks());
      if (!this.#end) this.#run(engine);
    } catch (error) {
      if (typeof (/** @type {any} */ (error)?.code) === "string") this.#refuse(/** @type {any} */ (error));
      else this.crash(error);
    }
  }

  /**
   * Takes in a tab and returns its number.
   * @param {Post} post
   * @param {() => void} [left] called when it is forgotten
   */
  join(post, left) {
    const tab = ++this.#lastTab;
    this.#tabs.set(tab, post);
    if (left) this.#farewells.set(tab, left);
    if (this.#isWaiting) this.#post(tab, { type: "event", name: "waiting", detail: {} });
    if (this.#end) this.#post(tab, { type: "event", name: "stopped", detail: { message: this.#end.message } });
    else if (this.#isHosting) this.#post(tab, { type: "event", name: "hosting", detail: {} });
    return tab;
  }

  /** Forgets a tab. @param {number} tab */
  leave(tab) {
    if (!this.#tabs.delete(tab)) return;
    this.#farewells.get(tab)?.();
    this.#farewells.delete(tab);
    this.#early = this.#early.filter((early) => early.tab !== tab || /^enqueue/.test(early.message.type));
    this.#call((engine) => engine.tab_left(tab));
  }

  /**
   * Takes what a tab sent, whatever it is.
   * @param {number} tab
   * @param {any} data
   */
  receive(tab, data) {
    // The tab asks the next host; where there will be none, it has to be told.
    if (this.#end && this.options.close) return;
    let early;
    try {
      if (this.#end) throw new PacelineError(this.#end.code, this.#end.message);
      check(data);
      if (data.type === "bye") return this.leave(tab);
      if (data.type === "alive") return this.#watch(tab, data.lock);
      early = { tab, ...takeApart(data) };
      if (!this.#engine && this.#busy) throw this.#busy;
      if (!this.#engine && this.#early.length >= MAX_EARLY) {
        throw new PacelineError("queue-full", `the host is starting and keeps at most ${MAX_EARLY} messages`);
      }
    } catch (error) {
      return this.#answerError(tab, data, error);
    }
    if (!this.#engine) return void this.#early.push(early);
    this.#call((engine) => engine.message(early.tab, early.message, early.requests, early.sizes));
  }

  /** Refuses what waits, and what comes, while another host owns the queue; goes on waiting for it. */
  refuseUntilUp() {
    if (this.#engine || this.#end) return;
    this.#busy = new PacelineError("not-connected", "another host owns the queue");
    for (const { tab, message } of this.#early.splice(0)) this.#answerError(tab, message, this.#busy);
  }

  /** Finishes what has left and ends, so that a host of a newer version can start. @param {string} version */
  yieldTo(version) {
    if (!this.#engine || this.#end || this.#isYielding) return;
    this.#isYielding = true;
    this.#tell({ type: "event", name: "upgrade-available", detail: { version } });
    this.#call((engine) => engine.retire());
  }

  /** Ends the host because of a trap or an exception out of the engine. @param {unknown} error */
  crash(error) {
    if (this.#end) return;
    const panic = /** @type {any} */ (globalThis).pacelinePanic;
    const message = String(panic ?? /** @type {any} */ (error)?.message ?? error) + hint(error);
    this.#tell({ type: "event", name: "host-crashed", detail: { message } });
    this.#stop({ code: "host-crashed", message });
  }

  /** @param {boolean} isOnline */
  online(isOnline) {
    this.#call((engine) => engine.online(isOnline));
  }

  /** @param {Engine} engine */
  #run(engine) {
    this.#engine = engine;
    if (globalThis.navigator?.onLine === false) this.online(false);
    for (const { tab, message, requests, sizes } of this.#early.splice(0)) {
      this.#call((engine) => engine.message(tab, message, requests, sizes));
    }
  }

  #callbacks() {
    return {
      /** @param {number} tab @param {object} message */
      post: (tab, message) => {
        if (!this.#end) this.#send(tab, message);
      },
      /** @param {number | undefined} ms */
      set_timer: (ms) => {
        clearTimeout(this.#timer);
        if (ms === undefined || this.#end) return;
        this.#timer = setTimeout(() => this.#call((engine) => engine.wake()), Math.min(ms, MAX_TIMER_MS));
      },
      /** @param {object} request @param {object} options */
      send: (request, options) => (this.#end ? new Promise(() => {}) : this.options.send(request, options)),
      /** @param {string} reason */
      stopped: (reason) => {
        this.#tell({ type: "event", name: "stopped", detail: { message: reason } });
        this.#stop({ code: "not-connected", message: reason });
      },
    };
  }

  /** The one way into the engine. @param {(engine: Engine) => void} work */
  #call(work) {
    if (!this.#engine) return;
    try {
      work(this.#engine);
    } catch (error) {
      this.crash(error);
    }
  }

  /**
   * Waits for a lock and holds it for the rest of the host's life. A rejected request means that it is lost.
   * @param {string} name
   * @returns {Promise<void>}
   */
  #hold(name) {
    return new Promise((held) => {
      const hold = () => {
        if (this.#end) return undefined;
        held();
        return new Promise((release) => this.#releases.push(() => release(undefined)));
      };
      navigator.locks.request(name, hold).catch((error) => {
        if (this.#end) return;
        this.#tell({ type: "event", name: "stopped", detail: { message: `lost the lock ${name}: ${error?.message}` } });
        this.#stop({ code: "not-connected", message: `lost the lock ${name}` });
      });
    });
  }

  /**
   * While another host owns the queue, the tabs of this one are told so, and that host is asked to yield if it is older.
   * @param {Promise<void>} owned
   */
  async #lookWhetherBusy(owned) {
    let isOwned = false;
    owned.then(() => (isOwned = true));
    const { held = [] } = await navigator.locks.query();
    // Only a query that came after our own request tells for certain.
    if (isOwned || this.#end || !held.some(({ name }) => name === `paceline:${this.options.queue}`)) return;
    this.#isWaiting = true;
    this.#tell({ type: "event", name: "waiting", detail: {} });
    askToYield(this.options.queue, VERSION);
  }

  /** Forgets a tab once the lock that it holds for its life is free. @param {number} tab @param {unknown} lock */
  #watch(tab, lock) {
    if (typeof lock !== "string" || !lock.startsWith(`paceline-tab:${this.options.queue}:`)) return;
    navigator.locks.request(lock, () => this.leave(tab)).catch(() => {});
  }

  /** Ends a host that could not start: the cause is told to each that asked. @param {{ code: any, message: string }} error */
  #refuse({ code, message }) {
    const error = new PacelineError(code, message);
    for (const early of this.#early.splice(0)) this.#answerError(early.tab, early.message, error);
    this.#stop({ code, message });
  }

  /** @param {{ code: import("./paceline.js").Code, message: string }} end */
  #stop(end) {
    if (this.#end) return;
    this.#end = end;
    this.#engine = undefined;
    this.#early = [];
    clearTimeout(this.#timer);
    setTimeout(() => {
      this.#door.close();
      if (this.options.close) this.options.close();
      else for (const release of this.#releases) release();
    }, LAST_WORDS_MS);
  }

  /** @param {number} tab @param {any} data @param {unknown} error */
  #answerError(tab, data, error) {
    const { code = "protocol", field, expected, got, index, message } = /** @type {PacelineError} */ (error);
    const re = typeof data?.id === "number" ? data.id : undefined;
    this.#post(tab, { re, type: "error", code, field, expected, got, index, message });
  }

  /** @param {object} message */
  #tell(message) {
    for (const tab of this.#tabs.keys()) this.#post(tab, message);
  }

  /** Posts a message of the shell's own. @param {number} tab @param {object} message */
  #post(tab, message) {
    this.#send(tab, { paceline: PROTOCOL, instance: this.#instance, epoch: this.#epoch, ...message });
  }

  /** @param {number} tab @param {any} message */
  #send(tab, message) {
    this.#epoch = message.epoch ?? this.#epoch;
    const body = message.response?.body;
    try {
      this.#tabs.get(tab)?.(message, body instanceof ArrayBuffer ? [body] : []);
    } catch (error) {
      console.error("paceline: a message cannot be posted", message.type, error);
    }
  }
}

/**
 * Refuses what is no message of this protocol.
 * @param {any} data
 */
function check(data) {
  /** @type {(field: string, expected: string, value: unknown) => PacelineError} */
  const wrong = (field, expected, value) => fieldError(field, expected, value, "protocol");
  if (typeof data !== "object" || data === null) throw wrong("message", "{ paceline, id, type }", data);
  if (data.paceline !== PROTOCOL) throw wrong("paceline", `${PROTOCOL}`, data.paceline);
  if (!Number.isFinite(data.id)) throw wrong("id", "a number", data.id);
  if (typeof data.type !== "string") throw wrong("type", "a text", data.type);
}

/**
 * Takes the requests, which are stored, out of a message, so that the engine reads only what it schedules by.
 * @param {any} message
 * @returns {{ message: any, requests: object[], sizes: number[] }}
 */
function takeApart(message) {
  if (message.type === "enqueue") {
    const prepared = prepare(message.job);
    return { message: { ...message, job: withLikeness(prepared) }, requests: [prepared.request], sizes: [prepared.size] };
  }
  if (message.type !== "enqueue-many") return { message, requests: [], sizes: [] };
  const prepared = prepareAll(message.jobs);
  return {
    message: { ...message, jobs: prepared.map(withLikeness) },
    requests: prepared.map(({ request }) => request),
    sizes: prepared.map(({ size }) => size),
  };
}

/** @param {unknown} error */
function hint(error) {
  return error instanceof WebAssembly.CompileError ? " (does the worker script's CSP allow 'wasm-unsafe-eval'?)" : "";
}
