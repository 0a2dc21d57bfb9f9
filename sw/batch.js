// What needs bodies to send several jobs as one request: writing their bodies as its items, and reading the result of
// each out of its answer. The scheduler decides which jobs go together; it never sees a body.

/** @typedef {import("./wire.js").StoredRequest} StoredRequest */
/** @typedef {import("./wire.js").BatchForm} BatchForm */
/** @typedef {import("./wire.js").Answer} Answer */
/** @typedef {import("./wire.js").ItemResult} ItemResult */

/** The longest text of a failed item that is kept. */
const MAX_TEXT = 4 * 1024;

/**
 * Tells whether a stored body can be an item: JSON.
 * @param {StoredRequest["body"]} body
 */
export function isItem(body) {
  if (typeof body !== "string") return false;
  try {
    JSON.parse(body);
    return true;
  } catch {
    return false;
  }
}

/**
 * Writes the bodies of requests as the items of one. Its headers are those of the first; the others have the same.
 * @param {BatchForm} form
 * @param {StoredRequest[]} requests
 * @returns {StoredRequest}
 */
export function asItems({ url, method, items }, requests) {
  for (const { body } of requests) {
    if (typeof body !== "string") throw new TypeError("an item of a batch has no JSON");
  }
  const list = `[${requests.map(({ body }) => body).join(",")}]`;
  const body = items === "" ? list : `{${JSON.stringify(items)}:${list}}`;
  const first = /** @type {StoredRequest} */ (requests[0]);
  const hasType = Object.keys(first.headers).some((name) => name.toLowerCase() === "content-type");
  const headers = hasType ? first.headers : { ...first.headers, "content-type": "application/json" };
  return { ...first, url, method, headers, body };
}

/**
 * Reads what an answer says of each item, in the order of the request: nothing of those that it leaves out.
 * @param {BatchForm} form
 * @param {StoredRequest[]} requests
 * @param {Answer} answer
 * @returns {(ItemResult | null)[] | "unreadable" | undefined} nothing where the same is said of all
 */
export function resultsOf(form, requests, answer) {
  if (form.results === undefined || form.results === null || answer.status < 200 || answer.status > 299) return undefined;
  const results = listOf(form.results, answer);
  if (results === undefined) return "unreadable";
  if (form.matchBy === undefined || form.matchBy === null) {
    // One more or less, and nobody knows which result is whose.
    if (results.length !== requests.length) return "unreadable";
    return results.map((result) => itemOf(result, form, answer));
  }
  const { matchBy } = form;
  const byName = new Map(results.map((result) => [nameOf(result?.[matchBy]), result]));
  return requests.map(({ body }) => {
    const name = nameOf(JSON.parse(/** @type {string} */ (body))?.[matchBy]);
    return name === undefined ? null : itemOf(byName.get(name), form, answer);
  });
}

/**
 * @param {string} field
 * @param {Answer} answer
 * @returns {any[] | undefined}
 */
function listOf(field, { body, truncated }) {
  if (truncated || body === null) return undefined;
  try {
    const whole = JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body));
    const list = field === "" ? whole : whole?.[field];
    return Array.isArray(list) ? list : undefined;
  } catch {
    return undefined;
  }
}

/** The text of a name or number by which results are found. @param {unknown} name */
const nameOf = (name) => (typeof name === "string" || typeof name === "number" ? String(name) : undefined);

/**
 * @param {any} result
 * @param {BatchForm} form
 * @param {Answer} answer
 * @returns {ItemResult | null}
 */
function itemOf(result, form, { status: whole, url, redirected }) {
  if (result === undefined || result === null) return null;
  const said = typeof result === "object" ? result[form.status] ?? whole : result;
  const status = typeof said === "string" && /^[1-5]\d\d$/.test(said) ? Number(said) : said;
  if (!Number.isInteger(status) || status < 200 || status > 599) return null;
  const body = JSON.stringify(result);
  /** @type {[string, string][]} */
  const headers = [["content-type", "application/json"]];
  const response = { status, statusText: "", headers, url, redirected, body };
  return { status, response, ...(status < 400 ? {} : { text: body.slice(0, MAX_TEXT) }) };
}
