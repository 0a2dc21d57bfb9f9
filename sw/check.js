// A job's check: what it may be, how it is sent, and what its answer tells. Bodies stay out of the engine, so that the
// answer is read here, and only one of three words goes on.

import { fieldError } from "./errors.js";
import { checkUrl } from "./job.js";

/** @typedef {import("./paceline.js").Check} Check */
/** @typedef {import("./wire.js").StoredRequest} StoredRequest */
/** @typedef {import("./wire.js").Found} Found */

const MAX_AFTER_MS = 600_000;
const MAX_POINTER = 1_024;
const MAX_STATUSES = 16;
/** The longest answer in which a pointer is looked up. */
const MAX_JSON = 1024 * 1024;

/**
 * Checks the check of a job, by the rules and in the words of the host's parser.
 * @param {any} check
 * @param {{ url: string, method: string }} job
 * @param {string} path
 * @returns {Check}
 */
export function readCheck(check, job, path) {
  if (typeof check !== "object" || check === null) throw fieldError(path, "an object", check);
  if (["GET", "HEAD"].includes(job.method)) throw fieldError(path, "none with GET and HEAD", "an object");
  const method = check.method ?? "GET";
  if (!["GET", "HEAD"].includes(method)) throw fieldError(`${path}.method`, "GET or HEAD", method);
  const url = checkUrl(check.url, `${path}.url`);
  if (new URL(url).origin !== new URL(job.url).origin) throw fieldError(`${path}.url`, "an absolute URL of the job's origin", url);
  const exists = readExists(check.exists, method, `${path}.exists`);
  const afterMs = check.afterMs ?? undefined;
  if (afterMs !== undefined && !(Number.isInteger(afterMs) && afterMs >= 0 && afterMs <= MAX_AFTER_MS)) {
    throw fieldError(`${path}.afterMs`, `a whole number from 0 to ${MAX_AFTER_MS}`, afterMs);
  }
  return { method, url, exists, ...(afterMs === undefined ? {} : { afterMs }) };
}

/**
 * @param {any} exists
 * @param {string} method
 * @param {string} path
 * @returns {Check["exists"]}
 */
function readExists(exists, method, path) {
  const { status = null, pointer = null, min = null } = exists ?? {};
  if ((status === null) === (pointer === null)) {
    throw fieldError(path, status === null ? "a status, or a pointer" : "either a status or a pointer", exists);
  }
  if (status !== null) {
    const isStatus = (/** @type {unknown} */ one) => Number.isInteger(one) && Number(one) >= 200 && Number(one) <= 499;
    if (!Array.isArray(status) || status.length < 1 || status.length > MAX_STATUSES || !status.every(isStatus)) {
      throw fieldError(`${path}.status`, "1 to 16 statuses from 200 to 499", status);
    }
    if (min !== null) throw fieldError(`${path}.min`, "none without a pointer", min);
    return { status };
  }
  if (method === "HEAD") throw fieldError(`${path}.pointer`, "none with HEAD", pointer);
  if (typeof pointer !== "string" || pointer.length > MAX_POINTER || !/^(\/([^~]|~[01])*)?$/s.test(pointer)) {
    throw fieldError(`${path}.pointer`, "a JSON pointer of up to 1024 bytes", pointer);
  }
  if (min !== null && !(Number.isSafeInteger(min) && min >= 1)) throw fieldError(`${path}.min`, "a whole number from 1", min);
  return min === null ? { pointer } : { pointer, min };
}

/**
 * The request of a job's check: it carries the job's headers, but for those that tell of a body.
 * @param {StoredRequest} request
 * @returns {StoredRequest}
 */
export function checkOf({ check, headers, credentials, redirect }) {
  if (!check) throw new Error("a job without a check");
  const own = Object.entries(headers ?? {}).filter(([name]) => !/^content-/i.test(name));
  return { url: String(check.url), method: check.method ?? "GET", headers: Object.fromEntries(own), credentials, redirect };
}

/**
 * Reads what the answer to a check tells.
 * @param {Check | undefined} check
 * @param {{ status: number, body: ArrayBuffer | null, truncated: boolean }} answer
 * @returns {Found}
 */
export function foundBy(check, { status, body, truncated }) {
  const exists = check?.exists;
  const isServed = status >= 200 && status <= 299;
  if (exists && "status" in exists) {
    if (exists.status.includes(status)) return "applied";
    return isServed || status === 404 || status === 410 ? "not-applied" : "unclear";
  }
  if (!exists || !isServed || !body || truncated || body.byteLength > MAX_JSON) return "unclear";
  const { pointer, min = 1 } = exists;
  const amount = amountAt(pointer, body);
  if (amount === undefined) return "unclear";
  return amount >= min ? "applied" : "not-applied";
}

/**
 * How much there is at a pointer: a number, or the length of an array. Nothing where there is neither: a shape that was not
 * expected says nothing.
 * @param {string} pointer
 * @param {ArrayBuffer} body
 */
function amountAt(pointer, body) {
  let value;
  try {
    value = JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    const isIn = Array.isArray(value) ? /^(0|[1-9]\d*)$/.test(name) : typeof value === "object" && value !== null;
    if (!isIn || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  if (Array.isArray(value)) return value.length;
  return typeof value === "number" ? value : undefined;
}
