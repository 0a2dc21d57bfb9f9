// What this page knows of credentials: the app's own answer to a question of the host, and what it was told to use. In
// memory only.

import { PacelineError, fieldError } from "./errors.js";

/** @typedef {import("./paceline.js").Budget} Budget */
/** @typedef {import("./paceline.js").CredentialsProvider} CredentialsProvider */
/** @typedef {Record<string, string>} Headers */

/** The credentials of one page. */
export class Credentials {
  /** @type {Map<string, Headers>} */ #given = new Map();

  /** @param {CredentialsProvider} [provider] */
  constructor(provider) {
    if (provider !== undefined && typeof provider !== "function") throw fieldError("credentials", "a function", provider);
    this.provider = provider;
  }

  /** Whether this page has an answer when it is asked. */
  get canAnswer() {
    return this.provider !== undefined || this.#given.size > 0;
  }

  /**
   * Marks the budgets of which nothing shall be sent before their credentials are there.
   * @param {Budget[] | undefined} budgets
   * @returns {Budget[] | undefined}
   */
  mark(budgets) {
    if (!Array.isArray(budgets)) return budgets;
    const needs = (/** @type {Budget} */ budget) => this.provider !== undefined || this.#given.has(budget?.id);
    return budgets.map((budget) => (needs(budget) ? { credentials: true, ...budget } : budget));
  }

  /**
   * Keeps what the app gives, for the next host as well.
   * @param {string} budget
   * @param {unknown} headers
   * @returns {Headers}
   */
  keep(budget, headers) {
    const checked = check(headers);
    this.#given.set(budget, checked);
    return checked;
  }

  /**
   * Answers the host. What the app was not asked for anew is no answer when the host has had it already.
   * @param {string} budget
   * @param {string} wanted
   * @returns {Promise<Headers | null>} nothing when there is none
   */
  async answer(budget, wanted) {
    if (!this.provider) return wanted === "missing" ? (this.#given.get(budget) ?? null) : null;
    const headers = await this.provider(budget);
    return headers == null ? null : check(headers);
  }
}

/** @param {any} headers @returns {Headers} */
function check(headers) {
  if (typeof headers !== "object" || headers === null) throw new PacelineError("bad-job", "headers: expected an object of headers");
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  /** @type {Headers} */
  const checked = {};
  for (const [name, value] of pairs) {
    if (typeof value !== "string") throw new PacelineError("bad-job", `headers.${name}: expected a text`, { field: `headers.${name}` });
    checked[name] = value;
  }
  return checked;
}
