// From the arguments of `fetch` to a job.

import { fieldError } from "./errors.js";

const MAX_WAIT_MS = 30_000;

/**
 * Makes the job that `queue.fetch(input, init)` means.
 * @param {RequestInfo | URL} input
 * @param {import("./paceline.js").FetchInit} [init]
 * @returns {Promise<{ job: import("./paceline.js").Job & { ephemeral: boolean }, signal?: AbortSignal }>}
 */
export async function jobOf(input, init = {}) {
  const request = typeof Request !== "undefined" && input instanceof Request ? input : undefined;
  const { paceline = {}, ...given } = init;
  const mode = given.mode ?? request?.mode;
  if (mode === "no-cors") throw fieldError("mode", "cors or same-origin (an opaque answer tells nothing)", mode);
  const redirect = given.redirect ?? request?.redirect;
  if (redirect === "manual") throw fieldError("redirect", "follow or error", redirect);
  const method = (given.method ?? request?.method ?? "GET").toUpperCase();
  const isRead = method === "GET" || method === "HEAD";
  const job = {
    url: resolve(request?.url ?? String(input)),
    method,
    headers: given.headers ?? request?.headers,
    body: given.body ?? (request && !isRead ? await bodyOf(request) : undefined),
    credentials: given.credentials ?? request?.credentials,
    redirect: /** @type {"follow" | "error" | undefined} */ (redirect),
    ...(isRead ? { maxWaitMs: MAX_WAIT_MS } : {}),
    ...paceline,
    ephemeral: isRead,
  };
  const signal = given.signal ?? request?.signal ?? undefined;
  return /** @type {any} */ ({ job, signal });
}

/** @param {Request} request */
async function bodyOf(request) {
  const body = await request.arrayBuffer();
  return body.byteLength === 0 ? undefined : body;
}

/** Resolves a URL as fetch does; one that cannot be resolved is left for the job's own check. @param {string} url */
function resolve(url) {
  try {
    return new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  } catch {
    return url;
  }
}
