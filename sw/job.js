// What a job may be: checked by the client before it sends, and by the host, which trusts no tab. The rules and texts
// are those of the host's own parser; what is stored as the request is made here, because bodies stay out of it.

import { isItem } from "./batch.js";
import { readCheck } from "./check.js";
import { PacelineError, fieldError } from "./errors.js";

/** @typedef {import("./wire.js").WireJob} WireJob */
/** @typedef {import("./wire.js").StoredRequest} StoredRequest */
/** @typedef {import("./wire.js").Prepared} Prepared */

const MAX_JOBS = 100_000;

const MAX_URL = 8_192;
const MAX_NAME = 255;
const MAX_BODY = 16 * 1024 * 1024;
const MAX_META = 64 * 1024;
const MAX_INT = Number.MAX_SAFE_INTEGER;

const SECRETS = ["authorization", "cookie", "proxy-authorization", "set-cookie"];
/** @type {[string, string[]][]} */
const CHOICES = [
  ["method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]],
  ["lane", ["interactive", "bulk", "background"]],
  ["kind", ["patch", "replace", "create", "delete", "custom"]],
  ["onFailure", ["continue", "hold-key", "fail-later"]],
  ["credentials", ["omit", "same-origin", "include"]],
  ["redirect", ["follow", "error"]],
];
const NAMES = ["id", "group", "key", "budget", "batch"];
const FLAGS = ["repeatable", "ephemeral", "merge", "supersede"];
/** @type {[string, number, number][]} */
const NUMBERS = [
  ["maxWaitMs", 1, 3_652 * 86_400_000],
  ["notBefore", 0, 8.64e15],
  ["timeoutMs", 1, 600_000],
  ["cost", 1, 2 ** 32 - 1],
];

const ASCII = /^[\0-\x7f]*$/;

const encoder = new TextEncoder();

/**
 * Checks a job and takes it apart: what schedules it, the request that is stored, and the bytes of that. A form must
 * have been read before (`readForm`).
 * @param {any} job
 * @param {string} [path] where it stands in the message
 * @returns {Prepared}
 */
export function prepare(job, path = "job") {
  if (typeof job !== "object" || job === null) throw fieldError(path, "an object", job);
  const url = checkUrl(job.url, `${path}.url`);
  const hasBody = job.body !== undefined && job.body !== null;
  const method = job.method == null ? (hasBody ? "POST" : "GET") : upper(job.method);
  const headers = checkHeaders(job.headers, `${path}.headers`);
  /** @type {any} */
  const card = { url, method, headers };
  for (const [field, allowed] of CHOICES) {
    const value = card[field] ?? job[field];
    if (value == null) continue;
    if (!allowed.includes(value)) throw fieldError(`${path}.${field}`, list(allowed), job[field]);
    card[field] = value;
  }
  checkPlain(job, card, path);
  if (card.supersede && (card.kind ?? (method === "DELETE" ? "delete" : undefined)) !== "delete") {
    throw fieldError(`${path}.supersede`, "true with kind delete only", true);
  }
  const isRead = method === "GET" || method === "HEAD";
  if (isRead && hasBody) throw fieldError(`${path}.body`, `none with ${method}`, job.body);
  if (card.batch !== undefined && isRead) throw fieldError(`${path}.batch`, "none with GET and HEAD", card.batch);
  if (card.batch !== undefined && card.cost !== undefined) {
    throw fieldError(`${path}.cost`, "none with a batch, which has its own", card.cost);
  }
  const body = hasBody ? encodeBody(job.body, headers, `${path}.body`) : undefined;
  if (card.batch !== undefined && !isItem(body)) throw fieldError(`${path}.body`, "JSON, with a batch", job.body);
  const bytes = byteLength(body);
  if (bytes > MAX_BODY) throw fieldError(`${path}.body`, `at most ${MAX_BODY} bytes`, bytes);
  const meta = job.meta ?? undefined;
  const metaBytes = meta === undefined ? 0 : encodeJson(meta, `${path}.meta`).length;
  if (metaBytes > MAX_META) throw fieldError(`${path}.meta`, `at most ${MAX_META} characters as JSON`, metaBytes);
  const check = job.check == null ? undefined : readCheck(job.check, { url, method }, `${path}.check`);
  if (check && job.batch != null) throw fieldError(`${path}.check`, "none with a batch", "an object");
  if (check) card.check = check;
  const { credentials, redirect } = card;
  const size = Math.min(MAX_BODY, bytes + metaBytes + url.length + JSON.stringify({ headers, check }).length);
  return { job: card, request: { url, method, headers, body, meta, credentials, redirect, check }, size };
}

/**
 * Prepares the jobs of one request; the first bad one refuses all.
 * @param {any} jobs
 * @returns {Prepared[]}
 */
export function prepareAll(jobs) {
  if (!Array.isArray(jobs)) throw fieldError("jobs", "an array", jobs);
  if (jobs.length > MAX_JOBS) throw fieldError("jobs", `at most ${MAX_JOBS} jobs`, jobs.length);
  return jobs.map((job, index) => {
    try {
      return prepare(job, `jobs[${index}]`);
    } catch (error) {
      throw Object.assign(/** @type {PacelineError} */ (error), { index });
    }
  });
}

/**
 * Reads a job's form into a Blob, because a form cannot be sent to a worker nor stored.
 * @template T
 * @param {T} job
 * @returns {Promise<T> | undefined} nothing when the job's body is no form
 */
export function readForm(job) {
  const body = /** @type {any} */ (job)?.body;
  if (tag(body) !== "FormData") return undefined;
  const form = new Response(body);
  // The type is taken from the header: a Blob's own type is in lower case, and a boundary is not.
  const type = /** @type {string} */ (form.headers.get("content-type"));
  const { headers } = /** @type {any} */ (job);
  const others = pairs(headers).filter(([name]) => String(name).toLowerCase() !== "content-type");
  return form.blob().then((blob) => ({ ...job, body: blob, headers: [...others, ["content-type", type]] }));
}

/**
 * @param {unknown} value
 * @param {string} field
 */
export function checkUrl(value, field) {
  const expected = `an absolute http(s) URL of up to ${MAX_URL} bytes`;
  const text = value instanceof URL ? value.href : value;
  if (typeof text !== "string" || /\s/.test(text) || !/^https?:\/\/[^/?#]/i.test(text)) {
    throw fieldError(field, expected, value);
  }
  let url;
  try {
    url = new URL(text);
  } catch {
    throw fieldError(field, expected, value);
  }
  if (url.href.length > MAX_URL) throw fieldError(field, expected, value);
  if (url.username || url.password) throw fieldError(field, "no user and password", url.origin);
  return url.href;
}

/**
 * @param {any} headers
 * @param {string} path
 */
function checkHeaders(headers, path) {
  if (headers != null && typeof headers !== "object") throw fieldError(path, "an object", headers);
  /** @type {Map<string, string>} */
  const checked = new Map();
  for (const [name, given] of pairs(headers)) {
    const field = `${path}.${String(name)}`;
    if (typeof name !== "string" || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw fieldError(field, "a header name", name);
    if (SECRETS.includes(name.toLowerCase())) {
      throw fieldError(field, "no secret in a stored job (give credentials by budget)", name, "secret-header");
    }
    const value = typeof given === "number" ? String(given) : given;
    if (typeof value !== "string" || value.length > MAX_URL || /[\0\r\n\u0100-\uffff]/.test(value)) {
      throw fieldError(field, `a header value of up to ${MAX_URL} bytes`, "another value");
    }
    const before = checked.get(name);
    checked.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(checked);
}

/**
 * Checks the fields that are plain names, numbers and flags, and copies them to the card.
 * @param {any} job
 * @param {any} card
 * @param {string} path
 */
function checkPlain(job, card, path) {
  /** @type {(field: string, expected: string, isGood: (value: any) => boolean) => void} */
  const check = (field, expected, isGood) => {
    const value = job[field] ?? undefined;
    if (value !== undefined && !isGood(value)) throw fieldError(`${path}.${field}`, expected, value);
    if (value !== undefined) card[field] = value;
  };
  for (const field of NAMES) check(field, `1 to ${MAX_NAME} characters`, (value) => isName(value, 1));
  for (const [field, min, max] of NUMBERS) {
    const expected = max === MAX_INT ? `a whole number from ${min}` : `a whole number from ${min} to ${max}`;
    check(field, expected, (value) => Number.isInteger(value) && value >= min && value <= max);
  }
  for (const field of FLAGS) check(field, "true or false", (value) => typeof value === "boolean");
  check("principal", `up to ${MAX_NAME} characters`, (value) => isName(value, 0));
  const expected = `1 to ${MAX_NAME} visible ASCII characters`;
  check("idempotencyKey", expected, (value) => isName(value, 1) && /^[ -~]+$/.test(value));
}

/**
 * @param {any} body
 * @param {Record<string, string>} headers gets a content type where fetch would give another
 * @param {string} field
 * @returns {string | Blob | ArrayBuffer}
 */
function encodeBody(body, headers, field) {
  if (typeof body === "string") return body;
  switch (tag(body)) {
    case "Blob":
    case "File":
    case "ArrayBuffer":
      return body;
    case "URLSearchParams":
      addType(headers, "application/x-www-form-urlencoded;charset=UTF-8");
      return String(body);
    default:
  }
  // A view is copied, or its whole buffer would travel with it.
  if (ArrayBuffer.isView(body)) return new Uint8Array(new Uint8Array(body.buffer, body.byteOffset, body.byteLength)).buffer;
  if (typeof body !== "object") {
    throw fieldError(field, "an object, array, string, Blob, ArrayBuffer, URLSearchParams or FormData", body);
  }
  const text = encodeJson(body, field);
  addType(headers, "application/json");
  return text;
}

/**
 * Writes a value as JSON and refuses what JSON would silently drop or change.
 * @param {unknown} value
 * @param {string} field
 */
function encodeJson(value, field) {
  const expected = "data that can be written as JSON";
  try {
    return JSON.stringify(value, (_, part) => {
      const isData = typeof part === "object" ? part === null || /^(Object|Array|String|Number|Boolean)$/.test(tag(part))
        : !/^(function|symbol|bigint)$/.test(typeof part);
      if (!isData) throw fieldError(field, expected, typeof part === "bigint" ? "a bigint" : part);
      return part;
    });
  } catch (error) {
    if (error instanceof PacelineError) throw error;
    throw fieldError(field, expected, error instanceof Error ? error.message.split("\n")[0] : error);
  }
}

/**
 * @param {Record<string, string>} headers
 * @param {string} type
 */
function addType(headers, type) {
  if (!Object.keys(headers).some((name) => name.toLowerCase() === "content-type")) headers["content-type"] = type;
}

/** @param {string | Blob | ArrayBuffer | undefined} body */
function byteLength(body) {
  if (body === undefined) return 0;
  if (typeof body === "string") return ASCII.test(body) ? body.length : encoder.encode(body).length;
  return body instanceof ArrayBuffer ? body.byteLength : body.size;
}

/** @param {any} headers @returns {[any, any][]} */
function pairs(headers) {
  if (headers == null) return [];
  return Symbol.iterator in headers ? [...headers] : Object.entries(headers);
}

/**
 * Tells whether a value is a name. Half of a surrogate pair is none: on its way to the host it would become another name.
 * @param {unknown} text
 * @param {number} min
 */
export function isName(text, min) {
  if (typeof text !== "string" || /\p{Surrogate}/u.test(text)) return false;
  return text.length >= min && (text.length <= MAX_NAME || [...text].length <= MAX_NAME);
}

/** @param {any} text */
const upper = (text) => (typeof text === "string" ? text.toUpperCase() : text);

/** @param {string[]} words */
const list = (words) => `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;

/** @param {unknown} value */
const tag = (value) => Object.prototype.toString.call(value).slice(8, -1);
