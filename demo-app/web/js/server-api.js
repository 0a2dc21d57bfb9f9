/**
 * The strict server's own interface: starting the account, changing its rules, reading its books.
 * Owns nothing but the shape of what comes back.
 * @import { Report, Seen } from "./types.js"
 */
const ACCOUNT = "/strict/demo";
/** Faults after which the change is made all the same. */
const APPLIED = new Set(["drop-after-apply", "truncate", "no-cors"]);

/** @typedef {{ kind: string, rate?: number, status?: number, on?: string, seed?: number }} Fault */
/**
 * @typedef {object} Rules
 * @property {{ limit: number, window_ms: number, algorithm: string }[]} limits
 * @property {number | null} max_in_flight
 * @property {string | null} retry_after
 * @property {[number, number]} latency_ms
 * @property {Fault[]} faults
 */

/** @type {Rules & { idempotency: boolean, dialect: string }} */
export const DEFAULT_RULES = {
  limits: [{ limit: 10, window_ms: 1000, algorithm: "sliding-log" }], max_in_flight: null, retry_after: "seconds",
  latency_ms: [80, 300], faults: [], idempotency: true, dialect: "ietf",
};

/** @param {string} path @param {string} method @param {unknown} [body] */
async function call(path, method, body) {
  const answer = await fetch(ACCOUNT + path, {
    method, cache: "no-store", ...(body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
  });
  if (answer.ok) return answer.status === 204 ? null : answer.json().catch(() => null);
  if (answer.status === 404) return undefined;
  const problem = await answer.json().catch(() => null);
  throw new Error(problem?.detail ?? problem?.message ?? `the server answered ${answer.status}`);
}

/** @param {any} raw @returns {Report} */
function toReport(raw) {
  return {
    accepted: raw.accepted ?? 0, rejected: raw.rejected ?? 0, applied: raw.applied ?? 0, duplicated: raw.duplicated ?? 0,
    maxInFlight: raw.max_in_flight ?? 0, windows: raw.windows ?? [],
    total: raw.total ?? raw.next ?? (raw.accepted ?? 0) + (raw.rejected ?? 0),
    nowMs: raw.now_ms ?? 0, requests: raw.requests ?? [],
  };
}

/** @param {number} since how many requests are known already @returns {Promise<Report | null>} null = no such account */
export async function readReport(since) {
  const raw = await call(`/report?since=${since}`, "GET");
  return raw ? toReport(raw) : null;
}

/** @returns {Promise<Partial<Rules>>} */
export async function readRules() {
  const raw = await call("", "GET").catch(() => null);
  return raw?.scenario ?? raw ?? {};
}

/** @param {Partial<Rules>} change */
export const changeRules = (change) => call("", "PATCH", change);

export const resetAccount = () => call("", "PUT", DEFAULT_RULES);

/** Starts the account unless there is one; two tabs that open at once must not reset each other's. */
export async function ensureAccount() {
  const ensure = async () => {
    if ((await readReport(0)) === null) await resetAccount();
  };
  if (navigator.locks) await navigator.locks.request("fairwind-account", ensure);
  else await ensure();
}

/** The person whose record a request changed, and how, if the server carried it out. @param {Seen} seen */
export function carriedOut(seen) {
  const contact = Number(/\/contacts\/(\d+)$/.exec(seen.path)?.[1]);
  if (!Number.isInteger(contact) || seen.method !== "PATCH") return null;
  const isApplied = seen.fault ? APPLIED.has(seen.fault) : (seen.status ?? 0) >= 200 && (seen.status ?? 0) < 300;
  if (!isApplied) return null;
  const body = typeof seen.body === "string" ? parse(seen.body) : seen.body;
  return body && typeof body === "object" ? { contact, patch: /** @type {Record<string, string>} */ (body) } : null;
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
