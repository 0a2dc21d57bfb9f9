// From the outcome of a job to what its caller receives.

import { PacelineError } from "./errors.js";

/** @typedef {import("./wire.js").Outcome} Outcome */
/** @typedef {import("./wire.js").Answer} Answer */

const NULL_BODY = [101, 103, 204, 205, 304];
/** Failures that a server's answer, or the lack of one, brought about. */
const BY_SERVER = ["http", "key-reused", "retries-exhausted", "outcome-unknown"];

/** @type {Partial<Record<import("./paceline.js").Code, string>>} */
const TEXTS = {
  http: "the server refused it",
  "retries-exhausted": "it failed at every attempt",
  "outcome-unknown": "nobody knows whether the server carried it out",
  expired: "it waited longer than it may",
  cancelled: "it was cancelled",
  aborted: "its caller aborted it",
  "not-connected": "the queue was closed in this tab; the job itself goes on",
};

/**
 * Turns an outcome into what `job.done` gives.
 * @param {Outcome} outcome
 * @returns {Response}
 */
export function doneOf(outcome) {
  if (outcome.state === "done") return responseOf(outcome);
  throw errorOf(outcome);
}

/**
 * Turns an outcome into what `fetch` gives: any final answer is one.
 * @param {Outcome} outcome
 * @returns {Response}
 */
export function fetchedOf(outcome) {
  if (outcome.state === "done") return responseOf(outcome);
  const isByServer = outcome.code !== undefined && BY_SERVER.includes(outcome.code);
  if (isByServer && outcome.status) return responseOf(outcome);
  if (isByServer) throw new TypeError("failed to fetch", { cause: errorOf(outcome) });
  if (outcome.code === "aborted" && outcome.cause !== undefined) throw outcome.cause;
  throw errorOf(outcome);
}

/**
 * @param {Outcome} outcome
 */
function errorOf(outcome) {
  const { id, status, cause } = outcome;
  const code = outcome.code ?? (outcome.state === "cancelled" ? "cancelled" : "http");
  const text = outcome.message ?? TEXTS[code] ?? code;
  const response = status ? responseOf(outcome) : undefined;
  const details = { jobId: id, status, response, ...(cause === undefined ? {} : { cause }) };
  return new PacelineError(code, `job ${id}: ${text}${status ? ` (status ${status})` : ""}`, details);
}

/**
 * Rebuilds the Response in this tab. Where the host no longer has the answer, it has the status alone.
 * @param {Outcome} outcome
 */
function responseOf({ response, status, text, byCheck = false }) {
  const known = { status: status ?? 200, statusText: "", headers: [], url: "", redirected: false, body: text ?? null };
  return rebuild(response ?? known, byCheck);
}

/**
 * @param {Answer} answer
 * @param {boolean} byCheck
 * @returns {Response}
 */
function rebuild({ status, statusText, headers, url, redirected, body, truncated }, byCheck) {
  const isUsual = status >= 200 && status <= 599;
  const init = { status: isUsual ? status : 200, statusText, headers };
  const response = new Response(NULL_BODY.includes(status) ? null : body, init);
  return dress(response, { url, redirected, truncated: truncated ?? false, byCheck, ...(isUsual ? {} : { status, ok: false }) });
}

/**
 * Gives a Response, and its clones, properties that its constructor does not take.
 * @param {Response} response
 * @param {Record<string, unknown>} properties
 */
function dress(response, properties) {
  for (const [name, value] of Object.entries(properties)) Object.defineProperty(response, name, { value });
  Object.defineProperty(response, "clone", {
    value: () => dress(Response.prototype.clone.call(response), properties),
  });
  return response;
}
