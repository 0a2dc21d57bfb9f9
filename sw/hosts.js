// The kinds of host that a tab can have, each as a way to open a port to it. A port posts and closes; what it hears, and that
// nobody is there, is told to the connection. A kind is chosen once per tab and left only by a named failure.

import { HubPort } from "./hub.js";
import { PROTOCOL } from "./protocol.js";

/** @typedef {{ postMessage: (message: any) => void, close: () => void }} Port */
/** @typedef {{ heard: (data: any) => void, missed: (cause?: unknown) => void }} Listener */
/**
 * @typedef {object} Kind
 * @property {string} name
 * @property {string} url of its script
 * @property {() => string | undefined} lacks what this context lacks for it
 * @property {(listener: Listener) => Port} open
 * @property {() => void} release gives up what would keep another tab from being the host; `open` asks for it again
 * @property {boolean} sleeps whether the browser stops such a host when it has nothing to do
 */

/** Whether the system kills SharedWorkers silently: on Android and iOS, iPads that say that they are Macs among them. */
function isMobile() {
  const { userAgentData, userAgent = "", maxTouchPoints = 0 } = /** @type {any} */ (globalThis.navigator ?? {});
  const isTouchMac = /Macintosh/.test(userAgent) && maxTouchPoints > 1;
  return userAgentData?.mobile ?? (/Android|iPhone|iPad|iPod/.test(userAgent) || isTouchMac);
}

const hasLocks = () => Boolean(globalThis.navigator?.locks);

/**
 * Names the kinds to try, in order.
 * @param {string} queue
 * @param {string} workerUrl
 * @param {import("./paceline.js").ConnectOptions} options
 * @returns {Kind[]}
 */
export function kindsOf(queue, workerUrl, { host = "auto", serviceWorker, sharedWorker }) {
  const shared = sharedWorkerKind(queue, workerUrl);
  const leader = leaderKind(queue, workerUrl);
  const service = serviceWorkerKind(queue, workerUrl, serviceWorker ?? {});
  if (host === "shared-worker") return [shared];
  if (host === "leader-tab") return [leader];
  if (host === "service-worker") return [service];
  const likesShared = sharedWorker ?? !isMobile();
  return [...(serviceWorker ? [service] : []), ...(likesShared ? [shared] : []), leader];
}

/** @param {string} queue @param {string} url @returns {Kind} */
function sharedWorkerKind(queue, url) {
  return {
    name: "shared-worker",
    url,
    sleeps: false,
    lacks: () => (typeof SharedWorker === "undefined" ? "SharedWorker" : hasLocks() ? undefined : "Web Locks"),
    release: () => {},
    open: ({ heard, missed }) => {
      // The one call of the constructor: URL, name and options are a SharedWorker's identity.
      const worker = new SharedWorker(url, { name: `paceline:${queue}`, type: "module" });
      worker.addEventListener("error", () => missed());
      worker.port.onmessage = ({ data }) => heard(data);
      return worker.port;
    },
  };
}

/**
 * One tab of the origin leads: it holds a lock, and its dedicated worker is the host. The page holds the lock, and not the
 * worker, so that a page that goes into the cache of pages can let go of it first.
 * @param {string} queue @param {string} url
 * @returns {Kind}
 */
function leaderKind(queue, url) {
  /** @type {AbortController | undefined} */ let candidacy;
  /** @type {Worker | undefined} */ let worker;
  /** @type {Listener["missed"]} */ let missed = () => {};

  const lead = () =>
    new Promise((resign) => {
      worker = new Worker(url, { name: `paceline:${queue}`, type: "module" });
      // One that cannot load makes room for the next tab.
      worker.addEventListener("error", ({ message }) => {
        missed(message ? new Error(message) : undefined);
        resign(undefined);
      });
      worker.addEventListener("message", ({ data }) => data?.ended === true && resign(undefined));
      candidacy?.signal.addEventListener("abort", () => resign(undefined));
    }).finally(() => {
      worker?.terminate();
      worker = undefined;
    });

  const stand = () => {
    const own = (candidacy = new AbortController());
    const name = `paceline-leader:${queue}`;
    // A worker that ended by itself left the lock free: this tab stands again, behind the others.
    navigator.locks.request(name, { signal: own.signal }, lead).then(() => own === candidacy && stand(), () => {});
  };

  const release = () => {
    const own = candidacy;
    candidacy = undefined;
    own?.abort();
  };

  return {
    name: "leader-tab",
    url,
    sleeps: false,
    lacks: () => (typeof Worker === "undefined" ? "Worker" : typeof BroadcastChannel === "undefined" ? "BroadcastChannel" : hasLocks() ? undefined : "Web Locks"),
    release,
    open: (listener) => {
      missed = listener.missed;
      if (!candidacy) stand();
      return new HubPort(queue, listener.heard);
    },
  };
}

/**
 * @param {string} queue @param {string} workerUrl
 * @param {{ url?: string | URL, scope?: string, type?: "module" | "classic" }} options
 * @returns {Kind}
 */
function serviceWorkerKind(queue, workerUrl, { url = new URL("./service-worker.js", import.meta.url), scope = "/", type = "module" }) {
  const script = new URL(url, globalThis.location?.href);
  for (const [name, value] of new URL(workerUrl).searchParams) script.searchParams.set(name, value);
  return {
    name: "service-worker",
    url: script.href,
    sleeps: true,
    lacks: () => (globalThis.navigator?.serviceWorker ? (hasLocks() ? undefined : "Web Locks") : "service workers"),
    release: () => {},
    open: ({ heard, missed }) => {
      const container = navigator.serviceWorker;
      const active = container.register(script, { scope, type }).then(activeOf);
      active.catch(missed);
      /** @param {MessageEvent} event */
      const listen = ({ data, source }) => {
        const from = /** @type {any} */ (source)?.scriptURL;
        // An older script of the same queue may be the active one still.
        if (data?.paceline === PROTOCOL && from && new URL(from).searchParams.get("queue") === queue) heard(data);
      };
      container.addEventListener("message", listen);
      container.startMessages();
      return {
        postMessage: (message) => {
          const copy = structuredClone(message);
          active.then((worker) => worker.postMessage(copy)).catch(() => {});
        },
        close: () => container.removeEventListener("message", listen),
      };
    },
  };
}

/**
 * Waits until a registration has a worker that takes messages.
 * @param {ServiceWorkerRegistration} registration
 * @returns {Promise<ServiceWorker>}
 */
function activeOf(registration) {
  const { active, waiting, installing } = registration;
  const coming = installing ?? waiting;
  if (active || !coming) return active ? Promise.resolve(active) : Promise.reject(new Error("no worker is registered"));
  return new Promise((resolve, reject) => {
    coming.addEventListener("statechange", () => {
      if (registration.active) resolve(registration.active);
      else if (coming.state === "redundant") reject(new Error("the service worker was refused"));
    });
  });
}
