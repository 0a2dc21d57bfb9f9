// When answers arrived. A worker that is busy sending hears of an answer late; the browser's own record of it, the
// resource timing, has the instant. A record is taken for an attempt only if it began inside that attempt's call of
// `fetch`: what cannot be told apart for certain counts as heard late, which is the careful side.

/** @typedef {{ from: number, to: number, end?: number }} Span */

/** The answers that one context waits for. */
export class Arrivals {
  /** @type {Map<string, Set<Span>>} */ #spans = new Map();
  /** @type {PerformanceObserver | undefined} */ #observer;

  constructor() {
    if (!globalThis.PerformanceObserver?.supportedEntryTypes?.includes("resource")) return;
    this.#observer = new PerformanceObserver((list) => this.#take(list.getEntries()));
    this.#observer.observe({ type: "resource" });
  }

  /**
   * Calls a fetch and notes from when to when the call took.
   * @template T
   * @param {string} url
   * @param {() => T} call
   * @returns {{ called: T, span: Span }}
   */
  watch(url, call) {
    const name = nameOf(url);
    const span = { from: performance.now(), to: Infinity };
    const spans = this.#spans.get(name) ?? new Set();
    this.#spans.set(name, spans.add(span));
    const called = call();
    span.to = performance.now();
    return { called, span };
  }

  /**
   * Returns when an answer arrived that was heard of at `heardAt`, in milliseconds of `performance.now()`.
   * @param {Span} span
   * @param {number} heardAt
   */
  arrivedAt(span, heardAt) {
    this.#take(this.#observer?.takeRecords() ?? []);
    return Math.min(heardAt, span.end ?? heardAt);
  }

  /** Forgets an attempt that is over. @param {string} url @param {Span} span */
  forget(url, span) {
    const spans = this.#spans.get(nameOf(url));
    spans?.delete(span);
    if (spans?.size === 0) this.#spans.delete(nameOf(url));
  }

  /** @param {PerformanceEntry[]} entries */
  #take(entries) {
    for (const entry of /** @type {PerformanceResourceTiming[]} */ (entries)) {
      for (const span of this.#spans.get(nameOf(entry.name)) ?? []) {
        const isOfSpan = entry.startTime >= span.from && entry.startTime <= span.to;
        if (isOfSpan && entry.responseEnd > entry.startTime) span.end = entry.responseEnd;
      }
    }
  }
}

/** @param {string} url */
const nameOf = (url) => url.split("#", 1)[0] ?? url;
