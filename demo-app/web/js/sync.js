/**
 * Keeps the book in step with the queue: own jobs by their `settled` events, the jobs of other tabs and of earlier page
 * loads by asking. It asks in proportion: the few that are sending or retrying at most twice a second, the visible rows
 * with them, and whole groups only when the counts show that something was missed.
 * @import { Queue } from "./queue.js"
 * @import { Book } from "./book.js"
 * @import { Job, View } from "./types.js"
 */
const TICK_MS = 500;
const FULL_MS = 4000;
const VISIBLE = 40;

export class Sync {
  #queue; #book; #visible;
  /** @type {View | null} */ #view = null;
  #running = false;
  #again = false;
  #fullAt = 0;
  #failed = 0;
  /** @type {Set<string>} ids that the queue has not accepted yet, and so cannot know */ #early = new Set();

  /** @param {Queue} queue @param {Book} book @param {() => number[]} visible the people on screen */
  constructor(queue, book, visible) {
    this.#queue = queue;
    this.#book = book;
    this.#visible = visible;
    queue.on("settled", (detail) => {
      const state = detail.state ?? detail.outcome;
      if (detail.id && state) book.settle(detail.id, { state, code: detail.code ?? detail.failure?.code ?? null, status: detail.status ?? detail.failure?.status ?? null });
    });
  }

  /** What an earlier page load, or another tab, left under way. */
  async rebuild() {
    for (const state of ["queued", "sending", "retry-wait", "failed"]) {
      for await (const page of this.#queue.pages({ state })) this.#book.learn(page);
    }
  }

  /**
   * Shows new jobs at once, and takes them back as failed if the queue does not accept them.
   * @param {Job[]} jobs @param {Promise<any>} accepted
   */
  async follow(jobs, accepted) {
    for (const job of jobs) this.#early.add(job.id);
    this.#book.learn(jobs);
    try {
      return await accepted;
    } catch (error) {
      const code = /** @type {{ code?: string }} */ (error)?.code ?? "not-connected";
      for (const job of jobs) this.#book.settle(job.id, { state: "failed", code });
      throw error;
    } finally {
      for (const job of jobs) this.#early.delete(job.id);
    }
  }

  /** @param {View} view */
  see(view) {
    this.#view = view;
    if (this.#running) this.#again = true;
    else void this.#run();
  }

  async #run() {
    this.#running = true;
    do {
      this.#again = false;
      const started = performance.now();
      try {
        await this.#tick();
      } catch (error) {
        console.warn("could not read the queue's jobs", error);
      }
      await new Promise((resolve) => setTimeout(resolve, Math.max(50, TICK_MS - (performance.now() - started))));
    } while (this.#again);
    this.#running = false;
  }

  async #tick() {
    const view = this.#view;
    if (!view || document.hidden) return;
    const active = view.sending > 0 || view.retrying > 0 ? await this.#active() : [];
    this.#book.learn(active);
    await this.#askVisible(new Set(active.map((job) => job.id)));
    if (view.failed !== this.#failed) {
      this.#failed = view.failed;
      for await (const page of this.#queue.pages({ state: "failed" })) this.#book.learn(page);
    }
    if (this.#missedSome(view)) await this.#askAll();
  }

  async #active() {
    const [sending, retrying] = await Promise.all([this.#queue.jobs({ state: "sending", limit: 100 }), this.#queue.jobs({ state: "retry-wait", limit: 200 })]);
    return [...sending, ...retrying];
  }

  /** @param {Set<string>} known ids that were just heard of */
  async #askVisible(known) {
    const open = this.#visible().filter((id) => this.#book.changesOf(id).some((c) => !known.has(c.id) && ["queued", "sending", "retry-wait"].includes(c.state)));
    const asked = open.filter((id) => this.#book.chip(id)?.state !== "waiting").concat(open).slice(0, VISIBLE);
    for (const jobs of await Promise.all([...new Set(asked)].map((id) => this.#queue.jobs({ key: `contact:${id}` })))) this.#book.learn(this.#news(jobs));
  }

  /** Settled jobs that the book never saw live are old news: no chip is due. @param {Job[]} jobs */
  #news(jobs) {
    return jobs.filter((job) => this.#book.has(job.id) || !["done", "cancelled"].includes(job.state));
  }

  /** @param {View} view */
  #missedSome(view) {
    const now = performance.now();
    if (now - this.#fullAt < FULL_MS) return false;
    const live = this.#book.live().length;
    return live !== view.waiting + view.sending;
  }

  async #askAll() {
    this.#fullAt = performance.now();
    /** @type {Set<string>} */
    const live = new Set();
    const before = this.#book.live().map((change) => change.id).filter((id) => !this.#early.has(id));
    for (const state of ["queued", "sending", "retry-wait"]) {
      for await (const page of this.#queue.pages({ state })) {
        for (const job of page) live.add(job.id);
        this.#book.learn(page);
      }
    }
    const gone = before.filter((id) => !live.has(id));
    if (gone.length === 0) return;
    for (const state of ["done", "cancelled", "failed"]) {
      for await (const page of this.#queue.pages({ state })) this.#book.learn(this.#news(page));
    }
    const open = new Set(this.#book.live().map((change) => change.id));
    this.#book.forget(gone.filter((id) => open.has(id)));
  }
}
