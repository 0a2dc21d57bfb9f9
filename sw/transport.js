// One attempt: a fetch with a time-out that covers its answer's body.

/** @typedef {import("./wire.js").StoredRequest} StoredRequest */
/** @typedef {import("./wire.js").Answer} Answer */
/** @typedef {import("./wire.js").BatchForm} BatchForm */
/** @typedef {import("./wire.js").ItemResult} ItemResult */
/** @typedef {"errors" | "graphql" | "all"} BodyNeed of errors, of what GraphQL endpoints answer too, or of all */

import { Arrivals } from "./arrivals.js";
import { asItems, resultsOf } from "./batch.js";
import { checkOf, foundBy } from "./check.js";
import { toldBy } from "./define.js";
import { layOver } from "./merge.js";

const MAX_BODY = 8 * 1024 * 1024;
const TEXT_BYTES = 16 * 1024;
const arrivals = new Arrivals();

const NULL_BODY = [101, 103, 204, 205, 304];

/**
 * Sends a request and reads its answer. Never rejects.
 * @param {StoredRequest} first
 * @param {{ timeoutMs: number, headers: [string, string][], later?: StoredRequest[], batch?: BatchForm, body?: BodyNeed, check?: boolean, dialect?: string }} options
 * headers to add for this attempt, requests whose bodies are laid over that of the first or are items beside it, of which
 * answers the beginning is wanted, whether the check of the first is sent in its place, and the app's function that reads it
 * @returns {Promise<({ kind: "answer", at: number, items?: (ItemResult | null)[] | "unreadable" } & Answer) | { kind: "none", cause: "network" | "timed-out" | "never-left", message: string }>}
 */
export async function send(first, { timeoutMs, headers, later = [], batch, body: need = "errors", check: isCheck = false, dialect }) {
  let request = first;
  try {
    if (isCheck) request = checkOf(first);
    else if (batch) request = asItems(batch, [first, ...later]);
    else if (later.length > 0) request = layOver(first, later);
  } catch (error) {
    return { kind: "none", cause: "never-left", message: String(error) };
  }
  const isRead = request.method === "GET" || request.method === "HEAD";
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), timeoutMs);
  /** @param {unknown} error */
  const none = (error) => {
    const message = error instanceof Error ? error.message : String(error);
    return /** @type {const} */ ({ kind: "none", cause: abort.signal.aborted ? "timed-out" : "network", message });
  };
  const init = prepare(request, isRead, headers, abort.signal);
  const { called, span } = arrivals.watch(request.url, () => fetch(request.url, init));
  try {
    let response;
    let heardAt;
    try {
      response = await called;
      // The server has counted the request by now; its body may take longer.
      heardAt = performance.now();
    } catch (error) {
      return isSendable(request.url, init) ? none(error) : { ...none(error), cause: "never-left" };
    }
    const { body, truncated, error } = await read(response, request.method);
    // What was read of a write's answer still tells its status; a read has nothing without its body.
    if (error !== undefined && isRead && response.ok) return none(error);
    const at = arrivals.arrivedAt(span, heardAt);
    const answer = { ...describe(response), body, truncated, ...textOf(response, body, isWanted(request.url, need)) };
    const items = batch && resultsOf(batch, [first, ...later], answer);
    const found = isCheck ? { found: foundBy(first.check, answer) } : {};
    const told = dialect === undefined ? {} : { told: toldBy(dialect, viewOf(request, response, answer.text)) };
    return { kind: "answer", at, ...answer, ...(items === undefined ? {} : { items }), ...found, ...told };
  } finally {
    arrivals.forget(request.url, span);
    clearTimeout(timer);
  }
}

/**
 * @param {StoredRequest} request
 * @param {boolean} isRead
 * @param {[string, string][]} added
 * @param {AbortSignal} signal
 */
function prepare(request, isRead, added, signal) {
  const names = added.map(([name]) => name.toLowerCase());
  const own = Object.entries(request.headers ?? {}).filter(([name]) => !names.includes(name.toLowerCase()));
  const headers = [...own, ...added];
  return /** @type {RequestInit} */ ({
    method: request.method,
    headers,
    body: request.body ?? null,
    credentials: request.credentials ?? "same-origin",
    // A browser follows a redirected write with another method or twice the effect; the app has to know instead.
    redirect: isRead ? (request.redirect ?? "follow") : "error",
    cache: "no-store",
    signal,
  });
}

/** Tells whether a fetch that failed can have left: what makes no Request never did. @param {string} url @param {RequestInit} init */
function isSendable(url, init) {
  try {
    return Boolean(new Request(url, { ...init, signal: null }));
  } catch {
    return false;
  }
}

/** @param {Response} response */
function describe({ status, statusText, headers, url, redirected }) {
  return { status, statusText, headers: /** @type {[string, string][]} */ ([...headers]), url, redirected };
}

/** An answer as an app's function sees it. @param {StoredRequest} request @param {Response} response @param {string} [text] */
function viewOf({ url, method }, { status, headers }, text = "") {
  return { status, headers: Object.fromEntries(headers), body: text, url, method, now: Date.now() };
}

/**
 * Reads a body up to the limit. A body that breaks gives what came of it, and the error.
 * @param {Response} response
 * @param {string} method
 * @returns {Promise<{ body: ArrayBuffer | null, truncated: boolean, error?: unknown }>}
 */
async function read(response, method) {
  if (!response.body || method === "HEAD" || NULL_BODY.includes(response.status)) return { body: null, truncated: false };
  const reader = response.body.getReader();
  /** @type {Uint8Array[]} */
  const chunks = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { body: join(chunks, length), truncated: false };
      chunks.push(value.subarray(0, MAX_BODY - length));
      length += value.length;
      if (length > MAX_BODY) break;
    }
    reader.cancel().catch(() => {});
    return { body: join(chunks, MAX_BODY), truncated: true };
  } catch (error) {
    return { body: join(chunks, length), truncated: true, error };
  }
}

/** @param {Uint8Array[]} chunks @param {number} length */
function join(chunks, length) {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole.buffer;
}

/** Tells whether a served answer's body may say something of limits. @param {string} url @param {BodyNeed} need */
function isWanted(url, need) {
  return need === "all" || (need === "graphql" && /\/graphql(\.json)?([?#]|$)/.test(url));
}

/** @param {Response} response @param {ArrayBuffer | null} body @param {boolean} isServedWanted */
function textOf({ status }, body, isServedWanted) {
  if (!body || (status < 400 && !isServedWanted)) return {};
  return { text: new TextDecoder().decode(body.slice(0, TEXT_BYTES)) };
}
