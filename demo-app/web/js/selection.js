/**
 * Which people are selected, and the anchor that a Shift range grows from. Knows ids, not rows on the screen.
 */
export class Selection extends EventTarget {
  /** @type {Set<number>} */ #ids = new Set();
  /** @type {number | null} */ #anchor = null;
  /** @type {Set<number>} */ #ranged = new Set();

  get size() {
    return this.#ids.size;
  }

  /** @param {number} id */
  has(id) {
    return this.#ids.has(id);
  }

  /** @returns {number[]} in id order */
  list() {
    return [...this.#ids].sort((a, b) => a - b);
  }

  /** @param {number} id */
  toggle(id) {
    if (!this.#ids.delete(id)) this.#ids.add(id);
    this.#anchor = id;
    this.#ranged.clear();
    this.#changed();
  }

  /** Selects from the anchor to `id` in the order shown, replacing the range that grew from the same anchor. @param {number} id @param {readonly number[]} order */
  rangeTo(id, order) {
    const from = this.#anchor === null ? -1 : order.indexOf(this.#anchor);
    const to = order.indexOf(id);
    if (to < 0) return;
    if (from < 0) this.#anchor = id;
    const start = from < 0 ? to : from;
    for (const old of this.#ranged) this.#ids.delete(old);
    this.#ranged = new Set(order.slice(Math.min(start, to), Math.max(start, to) + 1));
    for (const each of this.#ranged) this.#ids.add(each);
    this.#changed();
  }

  /** @param {readonly number[]} order */
  all(order) {
    for (const id of order) this.#ids.add(id);
    this.#ranged.clear();
    this.#changed();
  }

  /** @param {readonly number[]} order those to leave out; everybody when empty */
  none(order = []) {
    if (order.length === 0) this.#ids.clear();
    for (const id of order) this.#ids.delete(id);
    this.#ranged.clear();
    this.#changed();
  }

  /** @param {readonly number[]} order @returns {"none" | "some" | "all"} */
  extent(order) {
    if (this.#ids.size === 0) return "none";
    let inside = 0;
    for (const id of order) if (this.#ids.has(id)) inside += 1;
    if (inside === 0) return "none";
    return inside === order.length ? "all" : "some";
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
