// The entry of a host, as a SharedWorker and as a service worker, by itself or imported by a file of the app. Its listeners
// are registered in its first turn, before the wasm loads: what arrives meanwhile is kept.

import { isShared } from "./define.js";
import { Shell } from "./shell.js";
import { send } from "./transport.js";

export { definePaceline } from "./define.js";

const scope = /** @type {any} */ (globalThis);
const parameters = new URL(scope.location.href).searchParams;
const queue = parameters.get("queue") || "default";
const wasmUrl = parameters.get("wasm") || new URL("./paceline_sw_bg.wasm", import.meta.url).href;

if ("registration" in scope) serveServiceWorker();
else if ("onconnect" in scope) serveSharedWorker();
else serveLeader();

/** The worker of the tab that leads. Its tabs come through the hub, its own page too. */
function serveLeader() {
  const close = () => {
    scope.postMessage({ ended: true });
    scope.close();
  };
  const shell = new Shell({ queue, wasmUrl, host: "leader-tab", send, close });
  startAlone(shell);
}

function serveSharedWorker() {
  const shell = new Shell({ queue, wasmUrl, host: "shared-worker", send, close: () => scope.close() });
  /** @param {MessagePort} port */
  const connect = (port) => {
    const tab = shell.join((message, transfer) => port.postMessage(message, transfer));
    // Assigned, not added: a restarted worker may be given a port that it had before.
    port.onmessage = ({ data }) => shell.receive(tab, data);
    port.onmessageerror = () => shell.receive(tab, undefined);
    port.addEventListener("close", () => shell.leave(tab));
  };
  scope.addEventListener("connect", (/** @type {MessageEvent} */ event) => event.ports.forEach(connect));
  startAlone(shell);
}

/** A trap in the engine, which ends it, and no error of the app. @param {unknown} error */
const isTrap = (error) => error instanceof WebAssembly.RuntimeError;

/**
 * Starts a shell whose context is its own: every error in it is the host's, unless a file of the app has defined something.
 * @param {Shell} shell
 */
function startAlone(shell) {
  const isOurs = (/** @type {unknown} */ error) => !isShared() || isTrap(error);
  scope.addEventListener("error", (/** @type {ErrorEvent} */ { error, message }) => isOurs(error) && shell.crash(error ?? message));
  scope.addEventListener("unhandledrejection", (/** @type {PromiseRejectionEvent} */ { reason }) => isOurs(reason) && shell.crash(reason));
  listenToNetwork(shell);
  shell.start();
}

/** The context is the app's as well: its errors are no crash of ours, a trap is. */
function serveServiceWorker() {
  /** How long a message waits for a host of another kind to let go of the queue. */
  const patienceMs = 5_000;
  /** @type {Map<string, number>} */
  const tabs = new Map();
  /** @type {Map<string, () => void>} */
  const unanswered = new Map();
  /** @type {(() => void)[]} */
  const idle = [];
  let inFlight = 0;
  let isStarted = false;

  const shell = new Shell({
    queue,
    wasmUrl,
    host: "service-worker",
    send: async (request, options) => {
      inFlight += 1;
      try {
        return await send(request, options);
      } finally {
        inFlight -= 1;
        if (inFlight === 0) idle.splice(0).forEach((resolve) => resolve());
      }
    },
  });

  /** @param {{ id: string, postMessage: import("./wire.js").Post }} client */
  const tabOf = (client) => {
    const known = tabs.get(client.id);
    if (known !== undefined) return known;
    const tab = shell.join((message, transfer) => {
      client.postMessage(message, transfer);
      unanswered.get(`${tab} ${message.re}`)?.();
    });
    tabs.set(client.id, tab);
    return tab;
  };

  /** @param {number} tab @param {any} data */
  const serve = async (tab, data) => {
    const answered = new Promise((resolve) => unanswered.set(`${tab} ${data?.id}`, () => resolve(undefined)));
    shell.receive(tab, data);
    const isSilent = data?.type === "bye" || data?.type === "alive" || typeof data?.id !== "number";
    if (!isSilent) await answered;
    unanswered.delete(`${tab} ${data?.id}`);
    if (inFlight > 0) await new Promise((resolve) => idle.push(() => resolve(undefined)));
    await forgetClosed();
  };

  const forgetClosed = async () => {
    const open = new Set((await scope.clients.matchAll({ includeUncontrolled: true })).map((/** @type {{ id: string }} */ { id }) => id));
    for (const [id, tab] of tabs) {
      if (open.has(id)) continue;
      tabs.delete(id);
      shell.leave(tab);
    }
  };

  scope.addEventListener("message", (/** @type {any} */ event) => {
    if (event.source?.id === undefined || event.data?.paceline === undefined) return;
    if (!isStarted) {
      isStarted = true;
      shell.start();
      setTimeout(() => shell.refuseUntilUp(), patienceMs);
    }
    event.waitUntil(serve(tabOf(event.source), event.data));
  });
  scope.addEventListener("error", (/** @type {ErrorEvent} */ { error }) => isTrap(error) && shell.crash(error));
  scope.addEventListener("unhandledrejection", (/** @type {PromiseRejectionEvent} */ { reason }) => isTrap(reason) && shell.crash(reason));
  listenToNetwork(shell);
}

/** @param {Shell} shell */
function listenToNetwork(shell) {
  scope.addEventListener("online", () => shell.online(true));
  scope.addEventListener("offline", () => shell.online(false));
}
