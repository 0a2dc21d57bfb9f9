// What an app adds to the worker by a file of its own: functions, which cannot cross a message. They are found by name, so
// that what is stored or declared stays data. What they return comes from outside: it is taken out as plain values of
// bounded size, and read by the engine like what a server sends.

import { fieldError } from "./errors.js";

/** @typedef {import("./paceline-worker.js").Definition} Definition */
/** @typedef {import("./paceline-worker.js").DialectFunction} DialectFunction */
/** @typedef {import("./paceline-worker.js").AnswerView} AnswerView */
/** @typedef {import("./wire.js").Told} Told */

const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const MAX_DIALECTS = 100;
/** Bounds of what is taken out of a returned value; the engine names what it does not expect. */
const MAX_FIELDS = 32;
const MAX_TEXT = 200;
const DEPTH = 3;

/** @type {ReadonlyMap<string, DialectFunction> | undefined} */
let dialects;
let isFirstTurn = true;
queueMicrotask(() => (isFirstTurn = false));

/**
 * Adds an app's functions to the worker that it is called in.
 * @param {Definition} definition
 */
export function definePaceline(definition) {
  if (!isFirstTurn) throw fieldError("definePaceline", "a call in the first turn of the worker's file", "a later one", "protocol");
  if (dialects) throw fieldError("definePaceline", "one call", "another one", "protocol");
  if (typeof definition !== "object" || definition === null) throw fieldError("definition", "an object", definition);
  const unknown = Object.keys(definition).find((field) => field !== "dialects");
  if (unknown !== undefined) throw fieldError(unknown, "dialects", unknown);
  dialects = readDialects(definition.dialects ?? {});
}

/** Tells whether an app's file has defined something, and so shares the context. */
export const isShared = () => dialects !== undefined;

/** The names of the functions that read answers. */
export const dialectNames = () => [...(dialects?.keys() ?? [])];

/** @param {unknown} given */
function readDialects(given) {
  if (typeof given !== "object" || given === null) throw fieldError("dialects", "an object of functions", given);
  const entries = Object.entries(given);
  if (entries.length > MAX_DIALECTS) throw fieldError("dialects", `at most ${MAX_DIALECTS} functions`, entries.length);
  for (const [name, read] of entries) {
    if (!NAME.test(name)) throw fieldError("dialects", "names of 1 to 64 letters, digits, -, _ and .", name);
    if (typeof read !== "function") throw fieldError(`dialects.${name}`, "a function", read);
  }
  return new Map(entries);
}

/**
 * Asks a function of the app what an answer says of limits. Never throws, and waits for nothing.
 * @param {string} name
 * @param {AnswerView} answer
 * @returns {Told}
 */
export function toldBy(name, answer) {
  try {
    const read = dialects?.get(name);
    if (!read) return { fault: "no function" };
    const value = /** @type {any} */ (read(frozen(answer)));
    if (typeof value?.then !== "function") return { value: plain(value, DEPTH) };
    Promise.resolve(value).catch(() => {});
    return { fault: "a promise, which is not waited for" };
  } catch (error) {
    return { fault: `it threw: ${wordsOf(error)}`.slice(0, MAX_TEXT) };
  }
}

/** @param {AnswerView} answer */
function frozen(answer) {
  Object.freeze(answer.headers);
  return Object.freeze(answer);
}

/** @param {unknown} error */
function wordsOf(error) {
  try {
    return String(/** @type {any} */ (error)?.message ?? error);
  } catch {
    return "something without words";
  }
}

/**
 * Copies a value, as far as its form goes: what has no place in it becomes a word that is no value either.
 * @param {unknown} value
 * @param {number} depth
 * @returns {import("./wire.js").Plain}
 */
function plain(value, depth) {
  if (value === undefined || value === null) return null;
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "string") return value.slice(0, MAX_TEXT);
  if (typeof value !== "object" || depth === 0) return `a value of type ${typeof value}`;
  if (Array.isArray(value)) return value.slice(0, MAX_FIELDS).map((item) => plain(item, depth - 1));
  const fields = Object.entries(value).slice(0, MAX_FIELDS);
  return Object.fromEntries(fields.map(([name, field]) => [name.slice(0, MAX_TEXT), plain(field, depth - 1)]));
}
