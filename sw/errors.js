/** @typedef {import("./paceline.js").Code} Code */
/** @typedef {import("./paceline.js").ErrorDetails} ErrorDetails */

const GOT_CHARS = 80;

/** Why the queue refused a request, or how a job failed. `code` is stable; the message is for people. */
export class PacelineError extends Error {
  /**
   * @param {Code} code
   * @param {string} message
   * @param {ErrorDetails} [details]
   */
  constructor(code, message, details = {}) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.name = "PacelineError";
    this.code = code;
    this.jobId = details.jobId;
    this.status = details.status;
    this.response = details.response;
    this.field = details.field;
    this.expected = details.expected;
    this.got = details.got;
    this.index = details.index;
  }
}

/**
 * Makes the error for a field that is not as expected.
 * @param {string} field as a path, such as `job.lane` or `jobs[3].url`
 * @param {string} expected
 * @param {unknown} value
 * @param {Code} [code]
 */
export function fieldError(field, expected, value, code = "bad-job") {
  const got = show(value);
  return new PacelineError(code, `${field}: expected ${expected}, got ${got}`, { field, expected, got });
}

/**
 * Makes an error of the client from one of the wire. The field loses the path of its request, as an app passes
 * `job`, not a message: `jobs[3].url` is `url` with index 3.
 * @param {{ code: Code, message: string } & ErrorDetails} wire
 * @param {string} [jobId]
 */
export function fromWire(wire, jobId) {
  const field = wire.field?.replace(/^jobs?(\[\d+\])?\./, "");
  return new PacelineError(wire.code, wire.message, { ...wire, field, jobId });
}

/**
 * Shows a value in a few characters.
 * @param {unknown} value
 */
function show(value) {
  if (value === undefined || value === null) return "nothing";
  if (typeof value === "symbol" || typeof value === "function") return `a ${typeof value}`;
  if (typeof value === "object") return Object.prototype.toString.call(value).slice(8, -1);
  return String(value).slice(0, GOT_CHARS);
}
