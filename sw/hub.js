// Ports over BroadcastChannel: how a tab speaks with a host of another kind, or of another script, that owns the queue, and
// how a newer version asks an older host to yield. The hub of a queue carries knocks and news only; each tab has a channel
// of its own for everything else. Nothing here is the only copy of anything: what is not answered is sent again.

import { VERSION, isNewer, uuid } from "./protocol.js";

/** @typedef {import("./wire.js").Post} Post */

/** The most tabs that one host serves by channels. */
const MAX_PORTS = 1_000;
const PORT = "paceline-port:";

/** @param {string} queue */
const openHub = (queue) => new BroadcastChannel(`paceline-hub:${queue}`);

/** The host's side: lets tabs in while the host owns the queue. */
export class Door {
  /** @type {BroadcastChannel | undefined} */ #hub;
  /** @type {Map<string, BroadcastChannel>} */ #ports = new Map();

  /**
   * @param {string} queue
   * @param {string} version of this host
   * @param {{ join: (post: Post, left: () => void) => number, receive: (tab: number, data: any) => void, yieldTo: (version: string) => void }} shell
   */
  constructor(queue, version, shell) {
    this.queue = queue;
    this.version = version;
    this.shell = shell;
  }

  /** Opens the hub and tells the tabs that wait for one. */
  open() {
    if (typeof BroadcastChannel === "undefined" || this.#hub) return;
    this.#hub = openHub(this.queue);
    this.#hub.onmessage = ({ data }) => {
      if (typeof data?.knock === "string") this.#letIn(data.knock);
      const { version } = data ?? {};
      if (typeof version === "string" && isNewer(version, this.version)) this.shell.yieldTo(version);
    };
    this.#hub.postMessage({ up: true });
  }

  /** Closes everything: what is posted from now on is heard by nobody. */
  close() {
    this.#hub?.close();
    for (const port of this.#ports.values()) port.close();
    this.#ports.clear();
  }

  /** @param {string} name */
  #letIn(name) {
    if (!name.startsWith(PORT) || this.#ports.has(name) || this.#ports.size >= MAX_PORTS) return;
    const port = new BroadcastChannel(name);
    this.#ports.set(name, port);
    const left = () => {
      port.close();
      this.#ports.delete(name);
    };
    const tab = this.shell.join((message) => port.postMessage(message), left);
    port.onmessage = ({ data }) => this.shell.receive(tab, data);
    port.postMessage({ isOpen: true });
  }
}

/** Asks an older host to finish what it has begun and to yield. @param {string} queue @param {string} version */
export function askToYield(queue, version) {
  if (typeof BroadcastChannel === "undefined") return;
  const hub = openHub(queue);
  hub.postMessage({ version });
  hub.close();
}

/** The tab's side: a port to whichever host owns the queue, now or once there is one. */
export class HubPort {
  /** @type {object[]} */ #unsent = [];
  #isOpen = false;

  /** @param {string} queue @param {(data: any) => void} heard */
  constructor(queue, heard) {
    this.name = `${PORT}${uuid()}`;
    this.channel = new BroadcastChannel(this.name);
    this.hub = openHub(queue);
    const knock = () => this.hub.postMessage({ knock: this.name, version: VERSION });
    this.hub.onmessage = ({ data }) => data?.up === true && knock();
    this.channel.onmessage = ({ data }) => {
      if (data?.isOpen !== true) return heard(data);
      this.#isOpen = true;
      for (const message of this.#unsent.splice(0)) this.channel.postMessage(message);
    };
    knock();
  }

  /** @param {object} message */
  postMessage(message) {
    if (this.#isOpen) this.channel.postMessage(message);
    else this.#unsent.push(structuredClone(message));
  }

  close() {
    this.hub.close();
    this.channel.close();
  }
}
