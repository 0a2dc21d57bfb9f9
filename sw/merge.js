// What needs a job's body to let jobs go together: whether it can be merged, what equal ones share, and laying the
// bodies of patches over one another. The scheduler decides which jobs go together; it never sees a body.

/** @typedef {import("./wire.js").WireJob} WireJob */
/** @typedef {import("./wire.js").StoredRequest} StoredRequest */
/** @typedef {import("./wire.js").Prepared} Prepared */

/** Larger bodies are not compared: finding their number would cost more than the request that it may save. */
const MAX_HASHED = 64 * 1024;

/**
 * Adds to a job what the scheduler is to know of its body.
 * @param {Prepared} prepared
 * @returns {WireJob}
 */
export function withLikeness({ job, request }) {
  if (job.merge === false || job.ephemeral === true || job.batch !== undefined) return job;
  if (isPatch(job) && job.key !== undefined && !isJsonObject(request.body)) return { ...job, merge: false };
  const mayRepeat = job.repeatable ?? (job.method !== "POST" || job.kind === "patch" || job.kind === "replace");
  const bodyHash = mayRepeat ? hashOf(request.body) : undefined;
  return bodyHash === undefined ? job : { ...job, bodyHash };
}

/**
 * Lays the bodies of later patches over that of the first.
 * @param {StoredRequest} request
 * @param {StoredRequest[]} later
 * @returns {StoredRequest}
 */
export function layOver(request, later) {
  const bodies = [request, ...later].map(({ body }) => JSON.parse(/** @type {string} */ (body)));
  // Spread, not assigned: a field named `__proto__` is a field like any other.
  const body = JSON.stringify(bodies.reduce((below, above) => ({ ...below, ...above })));
  return { ...request, body };
}

/** @param {WireJob} job */
const isPatch = ({ kind, method }) => (kind === undefined ? method === "PATCH" : kind === "patch");

/** @param {StoredRequest["body"]} body */
function isJsonObject(body) {
  if (typeof body !== "string" || !/^\s*\{/.test(body)) return false;
  try {
    JSON.parse(body);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns a number of 53 bits that equal bodies share, and others as good as never do (cyrb53).
 * @param {StoredRequest["body"]} body
 * @returns {number | undefined} nothing where that would take too long
 */
function hashOf(body) {
  if (body === undefined) return 0;
  if (typeof body === "string") return body.length > MAX_HASHED ? undefined : hash(body.length, (at) => body.charCodeAt(at), 1);
  if (!(body instanceof ArrayBuffer) || body.byteLength > MAX_HASHED) return undefined;
  const bytes = new Uint8Array(body);
  return hash(bytes.length, (at) => /** @type {number} */ (bytes[at]), 2);
}

/** @param {number} length @param {(at: number) => number} read @param {number} seed */
function hash(length, read, seed) {
  let low = 0xdeadbeef ^ seed;
  let high = 0x41c6ce57 ^ seed;
  for (let at = 0; at < length; at += 1) {
    const unit = read(at);
    low = Math.imul(low ^ unit, 2654435761);
    high = Math.imul(high ^ unit, 1597334677);
  }
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  return 4294967296 * (2097151 & high) + (low >>> 0);
}
