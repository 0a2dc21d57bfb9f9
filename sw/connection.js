// The way to the host: one kind of host, one port, the requests that are not answered yet, and what to do when the host
// dies. A worker dies without an event, so this waits for the Web Lock that every host holds for its life. A host that has
// to wait, because another kind or another script owns the queue, says so; this tab then speaks with the owner.

import { PacelineError, fromWire } from "./errors.js";
import { HubPort } from "./hub.js";
import { PROTOCOL, uuid } from "./protocol.js";

/** @typedef {import("./wire.js").HostMessage} HostMessage */
/**
 * @typedef {object} Handlers
 * @property {() => object} hello the fields of `hello`
 * @property {(welcome: HostMessage, isChanged: boolean) => void} welcomed requests made in here go out first
 * @property {(message: HostMessage) => void} heard what answers no request
 * @property {() => void} dozed the browser has stopped a host that had nothing to do for now
 * @property {(error: PacelineError) => void} failed no host can be had; everything that waits for one has to end
 */
/** @typedef {import("./hosts.js").Port} Port */
/** @typedef {import("./hosts.js").Kind} Kind */
/** @typedef {{ message: object, port?: Port, deaths: number, resolve: (reply: any) => void, reject: (error: unknown) => void }} Ask */

/** More deaths of hosts than this in `DEATHS_MS`, or attempts in a row that no host answers, and the connection gives up. */
const MAX_DEATHS = 3;
const DEATHS_MS = 10_000;
/** A worker says that it is there before its wasm has loaded; one that does not will not. Its files are known the second time. */
const SILENCE_MS = { first: 4_000, again: 2_000 };
/** Never at once: Firefox lets go of a closed worker a little after its locks, and would give that one again. */
const BACKOFF_MS = [50, 150, 500];

/** A connection of one tab to the host of one queue. */
export class Connection {
  /** @type {Map<number, Ask>} */ #asks = new Map();
  /** @type {Port | undefined} */ #port;
  /** The port of a host that waits, while this tab speaks with the owner. @type {Port | undefined} */ #standby;
  /** @type {string | undefined} */ #instance;
  /** @type {string | undefined} */ #welcomedBy;
  /** @type {PacelineError | undefined} */ #failure;
  /** @type {AbortController | undefined} */ #watch;
  /** @type {(() => void) | undefined} */ #leave;
  /** @type {number[]} */ #deaths = [];
  #failedAt = 0;
  /** @type {string | undefined} */ #lastWords;
  #misses = 0;
  #lastId = 0;
  #helloId = 0;
  #isWelcome = false;
  #isClosed = false;
  /** Whether the host sleeps: the next request wakes it. */
  #isDozing = false;

  /**
   * @param {string} queue
   * @param {Kind[]} kinds to try, in order
   * @param {Handlers} handlers
   */
  constructor(queue, kinds, handlers) {
    this.queue = queue;
    this.kinds = kinds;
    this.handlers = handlers;
  }

  /** Whether a request would be rejected at once. */
  get failure() {
    const isOver = Date.now() - this.#failedAt > DEATHS_MS;
    return this.#isClosed || !isOver ? this.#failure : undefined;
  }

  /** Opens the worker and says hello. */
  open() {
    if (this.#isClosed) return;
    this.#failure = undefined;
    this.#lastWords = undefined;
    this.#isDozing = false;
    const lacks = this.kinds.map((kind) => kind.lacks());
    const able = lacks.findIndex((lack) => lack === undefined);
    const kind = this.kinds[able];
    if (!kind) {
      const missing = [...new Set(lacks)].join(", ");
      this.#fail(new PacelineError("not-connected", `this context has no ${missing}`, { field: "host" }));
      return;
    }
    this.kinds.splice(0, able);
    let isHeard = false;
    /** @type {Port | undefined} */
    let port;
    // Once the host has spoken, an error is news of it and not its death. Of a script that does not load, a browser may
    // tell one page and not the next.
    const missed = (/** @type {unknown} */ cause) => {
      if (!isHeard && port === this.#port) this.#missed(kind, cause);
    };
    const heard = (/** @type {any} */ data) => {
      isHeard = true;
      this.#misses = 0;
      if (data?.paceline !== PROTOCOL) return;
      if (port === this.#port) this.#receive(data);
    };
    try {
      port = kind.open({ heard, missed });
    } catch (cause) {
      this.#fail(new PacelineError("not-connected", `a ${kind.name} host cannot be opened`, { cause }));
      return;
    }
    setTimeout(missed, this.#welcomedBy ? SILENCE_MS.again : SILENCE_MS.first);
    this.#use(port);
  }

  /** Speaks through a port from now on. @param {Port} port */
  #use(port) {
    this.#leave?.();
    this.#leave = undefined;
    this.#port = port;
    this.#sayHello();
    this.#showPresence(port);
  }

  /** The own host waits: speaks with the one that owns the queue, until that dies. */
  #speakWithOwner() {
    if (this.#isWelcome || this.#standby || typeof BroadcastChannel === "undefined") return;
    this.#watch?.abort();
    this.#instance = undefined;
    this.#standby = this.#port;
    const port = new HubPort(this.queue, (data) => {
      if (data?.paceline === PROTOCOL && port === this.#port) this.#receive(data);
    });
    this.#use(port);
  }

  /**
   * Sends a request, now or once a host has welcomed this tab; again to the next host while it is not answered.
   * @param {{ type: string } & Record<string, unknown>} request
   * @returns {Promise<any>} the answer
   */
  request(request) {
    if (this.failure) return Promise.reject(this.failure);
    const isDown = this.#failure !== undefined;
    const id = ++this.#lastId;
    const answer = new Promise((resolve, reject) => {
      this.#asks.set(id, { message: { paceline: PROTOCOL, id, ...request }, deaths: 0, resolve, reject });
    });
    if (isDown || this.#isDozing) this.open();
    if (this.#isWelcome) this.#flush();
    return answer;
  }

  /** Leaves the host, for good or until `open`. Unanswered requests stay. */
  leave() {
    this.#post({ paceline: PROTOCOL, id: ++this.#lastId, type: "bye" });
    this.#disconnect();
    for (const kind of this.kinds) kind.release();
  }

  /** Wakes a host that sleeps. */
  wake() {
    if (this.#isDozing) this.open();
  }

  /** @param {PacelineError} error for what is still waiting */
  close(error) {
    if (this.#isClosed) return;
    this.leave();
    this.#isClosed = true;
    this.#fail(error);
  }

  #sayHello() {
    this.#helloId = ++this.#lastId;
    this.#isWelcome = false;
    const error = this.#post({ paceline: PROTOCOL, id: this.#helloId, type: "hello", ...this.handlers.hello() });
    if (error) this.#fail(error);
  }

  /** Holds a lock by which the host sees this tab die. @param {Port} port */
  #showPresence(port) {
    const lock = `paceline-tab:${this.queue}:${uuid()}`;
    const hold = () => {
      if (port !== this.#port) return undefined;
      this.#post({ paceline: PROTOCOL, id: ++this.#lastId, type: "alive", lock });
      return new Promise((resolve) => (this.#leave = () => resolve(undefined)));
    };
    navigator.locks.request(lock, hold).catch(() => {});
  }

  /** @param {HostMessage} message */
  #receive(message) {
    if (message.instance && message.instance !== this.#instance) this.#meet(message.instance);
    if (message.type === "event" && (message.name === "host-crashed" || message.name === "stopped")) {
      this.#lastWords = message.detail?.message;
    }
    if (message.type === "event" && message.name === "waiting") return this.#speakWithOwner();
    if (message.re !== undefined && message.re === this.#helloId) return this.#greeted(message);
    const ask = message.re === undefined ? undefined : this.#asks.get(message.re);
    if (!ask) return this.handlers.heard(message);
    this.#asks.delete(/** @type {number} */ (message.re));
    if (message.type === "error") ask.reject(fromWire(/** @type {any} */ (message)));
    else ask.resolve(message);
  }

  /** Notes a host that was not known; one that took over a live port does not know this tab. @param {string} instance */
  #meet(instance) {
    this.#instance = instance;
    if (this.#isWelcome) {
      for (const ask of this.#asks.values()) ask.port = undefined;
      this.#sayHello();
    }
    this.#watch?.abort();
    const watch = (this.#watch = new AbortController());
    const options = { mode: /** @type {"shared"} */ ("shared"), signal: watch.signal };
    const died = () => {
      if (watch === this.#watch) this.#died();
    };
    navigator.locks.request(`paceline-host:${this.queue}:${instance}`, options, died).catch(() => {});
  }

  /** @param {HostMessage} message */
  #greeted(message) {
    if (message.type === "error") return this.#fail(fromWire(/** @type {any} */ (message)));
    const isChanged = this.#welcomedBy !== undefined && this.#welcomedBy !== message.instance;
    this.#welcomedBy = message.instance;
    this.#isWelcome = true;
    this.handlers.welcomed(message, isChanged);
    this.#flush();
  }

  /** Posts every request that this port has not carried yet. */
  #flush() {
    for (const [id, ask] of this.#asks) {
      if (ask.port === this.#port) continue;
      ask.port = this.#port;
      const error = this.#post(ask.message);
      if (!error) continue;
      this.#asks.delete(id);
      ask.reject(error);
    }
  }

  /** @param {object} message */
  #post(message) {
    try {
      this.#port?.postMessage(message);
      return undefined;
    } catch (cause) {
      return new PacelineError("bad-job", "expected data that can be cloned", { cause });
    }
  }

  /** @param {Kind} kind @param {unknown} cause */
  #missed(kind, cause) {
    this.#misses += 1;
    if (this.#misses > MAX_DEATHS && this.kinds.length > 1) {
      // Never are two kinds' resources held at once.
      kind.release();
      this.kinds.shift();
      this.#misses = 1;
    }
    const why = cause instanceof Error ? `: ${cause.message}` : "";
    this.#openAgain(this.#misses, new PacelineError("not-connected", `the ${kind.name} host cannot be loaded: ${kind.url}${why}`, { cause }));
  }

  #died() {
    if (this.kinds[0]?.sleeps && !this.#standby && ![...this.#asks.values()].some((ask) => ask.port === this.#port)) {
      this.#disconnect();
      this.#isDozing = true;
      return this.handlers.dozed();
    }
    const now = Date.now();
    this.#deaths = [...this.#deaths.filter((at) => now - at < DEATHS_MS), now];
    const error = new PacelineError("host-crashed", this.#lastWords ?? "the host died");
    for (const [id, ask] of this.#asks) {
      if (ask.port !== this.#port || ++ask.deaths < MAX_DEATHS) continue;
      // It may be what kills them: the others shall have a host again.
      this.#asks.delete(id);
      ask.reject(error);
    }
    this.#openAgain(this.#deaths.length, error);
  }

  /** @param {number} failures @param {PacelineError} error */
  #openAgain(failures, error) {
    this.#disconnect();
    if (failures > MAX_DEATHS) return this.#fail(error);
    setTimeout(() => this.#port ?? this.open(), BACKOFF_MS[failures - 1]);
  }

  #disconnect() {
    this.#watch?.abort();
    this.#watch = undefined;
    this.#leave?.();
    this.#leave = undefined;
    this.#port?.close();
    this.#standby?.close();
    this.#standby = undefined;
    this.#port = undefined;
    this.#instance = undefined;
    this.#isWelcome = false;
  }

  /** @param {PacelineError} error */
  #fail(error) {
    this.#disconnect();
    this.#failure = error;
    this.#failedAt = Date.now();
    this.#deaths = [];
    this.#misses = 0;
    const asks = [...this.#asks.values()];
    this.#asks.clear();
    for (const ask of asks) ask.reject(error);
    this.handlers.failed(error);
  }
}
