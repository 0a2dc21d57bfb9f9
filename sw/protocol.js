/** The version of the messages between tabs and host; the value of each message's `paceline` field. */
export const PROTOCOL = 1;

/** The version of this package. */
export const VERSION = "0.1.0";

/**
 * Tells whether one version comes after another, by their numbers.
 * @param {string} version @param {string} than
 */
export function isNewer(version, than) {
  const [left, right] = [version, than].map((text) => text.split(/[.-]/, 3).map(Number));
  const at = [0, 1, 2].find((part) => left?.[part] !== right?.[part]);
  return at !== undefined && Number(left?.[at]) > Number(right?.[at]);
}

/** The digits of a byte. */
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
/** Bytes for 64 names: one call for each byte's sake would cost a bulk of thousands dearly. */
const pool = new Uint8Array(1_024);
let used = pool.length;

/** Makes a random UUID (version 4). Insecure contexts have no `crypto.randomUUID`, but they have this. */
export function uuid() {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  let text = "";
  for (let at = 0; at < 16; at += 1) {
    const byte = /** @type {number} */ (pool[used + at]);
    const marked = at === 6 ? (byte & 0x0f) | 0x40 : at === 8 ? (byte & 0x3f) | 0x80 : byte;
    text += (at === 4 || at === 6 || at === 8 || at === 10 ? "-" : "") + HEX[marked];
  }
  used += 16;
  return text;
}
