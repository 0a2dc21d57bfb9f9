/**
 * Numbers and times as people read them. Pure; no state.
 */

const integers = new Intl.NumberFormat("en");

/** @param {number} n */
export const count = (n) => integers.format(n);

/** @param {number} n @param {string} one @param {string} [many] */
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/**
 * A length of time, coarser the longer it is, because an estimate to the second over minutes would be a lie.
 * @param {number} ms
 */
export function duration(ms) {
  const s = Math.max(1, Math.ceil(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 600) {
    const rounded = Math.ceil(s / 5) * 5;
    const rest = rounded % 60;
    return rest === 0 ? `${rounded / 60} min` : `${Math.floor(rounded / 60)} min ${rest} s`;
  }
  const min = Math.ceil(s / 60);
  if (min < 60) return `${min} min`;
  return min % 60 === 0 ? `${min / 60} h` : `${Math.floor(min / 60)} h ${min % 60} min`;
}

/** A countdown, to the second. @param {number} ms */
export function countdown(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return s < 60 ? `${s} s` : `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
}

/** @param {number} limit @param {number} windowMs */
export function rate(limit, windowMs) {
  if (windowMs === 1000) return `${count(limit)} a second`;
  if (windowMs === 60000) return `${count(limit)} a minute`;
  return windowMs % 1000 === 0 ? `${count(limit)} per ${windowMs / 1000} s` : `${count(limit)} per ${windowMs} ms`;
}

/** Why a change was not saved, in words. @param {string | null} code @param {number | null} status */
export function reason(code, status) {
  switch (code) {
    case "http": return `the server said no (${status ?? "error"})`;
    case "retries-exhausted": return status ? `the server kept failing (${status})` : "no answer after several tries";
    case "outcome-unknown": return "no answer, so nobody knows whether it was made";
    case "expired": return "it waited too long";
    case "wait-too-long": return "the server asked for too long a wait";
    case "queue-full": return "the queue is full";
    case "storage":
    case "storage-full": return "this device could not store it";
    case "not-connected": return "the queue is not reachable";
    case "key-reused": return "its key was used for another change";
    default: return code ?? "unknown reason";
  }
}
