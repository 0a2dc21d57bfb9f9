/**
 * Keeps the book in step with the queue. Jobs that this page handed in tell their end by `settled`; those of other tabs and
 * of earlier page loads are asked for, in proportion: what is sending or retrying at most twice a second, the visible rows
 * with it, and everything only when the counts show that something was missed.
 * @import { Queue } from "./queue.js"
 * @import { Book, Change } from "./book.js"
 * @import { Job, JobState, View } from "./types.js"
 */
const TICK_MS = 500;
const FULL_MS = 4000;
/** Jobs of one group that lie at most so far apart are asked for together. */
const GAP = 100;
const SINGLES = 50;
/** @type {readonly JobState[]} */
const OPEN = ["queued", "sending", "retry-wait"];

export class Sync {
  #queue; #book; #visible;
  /** @type {View | null} */ #view = null;
  #running = false;
  #again = false;
  #fullAt = 0;
  #failed = 0;
  /** @type {Set<string>} handed in by this page: their end is told */ #own = new Set();
  /** @type {Set<string>} not accepted yet, so the queue cannot know them */ #early = new Set();

  /** @param {Queue} queue @param {Book} book @param {() => number[]} visible the people on screen */
  constructor(queue, book, visible) {
    this.#queue = queue;
    this.#book = book;
    this.#visible = visible;
    queue.on("settled", (detail) => {
      this.#own.delete(detail.id);
      book.settle(detail.id, { state: detail.state, code: detail.code ?? null, status: detail.status ?? null });
    });
  }

  /** What an earlier page load, or another tab, left under way. */
  async rebuild() {
    for (const state of /** @type {JobState[]} */ ([...OPEN, "failed"])) {
      for await (const page of this.#queue.pages({ state })) this.#book.learn(page);
    }
  }

  /**
   * Shows new jobs at once, and as failed if the queue does not accept them.
   * @param {Job[]} jobs @param {Promise<any>} accepted
   */
  async follow(jobs, accepted) {
    for (const { id } of jobs) {
      this.#early.add(id);
      this.#own.add(id);
    }
    this.#book.learn(jobs);
    try {
      return await accepted;
    } catch (error) {
      const code = /** @type {{ code?: string }} */ (error)?.code ?? "not-connected";
      for (const { id } of jobs) this.#book.settle(id, { state: "failed", code });
      throw error;
    } finally {
      for (const { id } of jobs) this.#early.delete(id);
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
      await this.#tick().catch((error) => console.warn("could not read the queue's jobs", error));
      await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    } while (this.#again || this.#differs());
    this.#running = false;
  }

  async #tick() {
    const view = this.#view;
    if (!view || document.hidden) return;
    const active = await this.#askActive(view);
    const visible = this.#visible().flatMap((id) => this.#book.changesOf(id));
    const moved = this.#book.live().filter((change) => change.state !== "queued");
    await this.#askAbout(this.#foreign([...visible, ...moved]).filter((change) => !active.has(change.id)));
    if (view.failed !== this.#failed) {
      this.#failed = view.failed;
      for await (const page of this.#queue.pages({ state: "failed" })) this.#book.learn(page);
    }
    if (this.#differs() && performance.now() - this.#fullAt > FULL_MS) await this.#askAll();
  }

  /** What is on its way now, and of our own what no longer is. @param {View} view */
  async #askActive(view) {
    if (view.sending + view.retrying === 0) return new Set();
    const found = await Promise.all([this.#queue.jobs({ state: "sending", limit: 100 }), this.#queue.jobs({ state: "retry-wait", limit: 200 })]);
    const active = found.flat();
    this.#book.learn(active);
    const ids = new Set(active.map((job) => job.id));
    const back = this.#book.live().filter((change) => change.state === "retry-wait" && this.#own.has(change.id) && !ids.has(change.id));
    this.#book.learn(back.map((change) => ({ ...change, state: "queued", until: null })));
    return ids;
  }

  /** @param {readonly Change[]} changes those whose end nobody tells this page */
  #foreign(changes) {
    return [...new Set(changes)].filter((change) => OPEN.includes(change.state) && !this.#own.has(change.id) && !this.#early.has(change.id));
  }

  /** Whether the queue has other jobs under way than the book. */
  #differs() {
    const view = this.#view;
    return view !== null && this.#early.size === 0 && this.#book.live().length !== view.waiting + view.sending;
  }

  /** Asks for given jobs: those of a group by stretches of their order, the others one by one. @param {Change[]} changes */
  async #askAbout(changes) {
    const singles = changes.filter((change) => change.group === null || change.cursor === null).slice(0, SINGLES);
    const found = await Promise.all(singles.map((change) => this.#queue.jobs({ id: change.id })));
    this.#book.learn(this.#known(found.flat()));
    const groups = new Set(changes.map((change) => change.group).filter((group) => group !== null));
    for (const group of groups) {
      const cursors = changes.flatMap((change) => (change.group === group && change.cursor !== null ? [change.cursor] : [])).sort((a, b) => a - b);
      for (const [first, last] of stretches(cursors)) {
        for await (const page of this.#queue.pages({ group, ...(first > 0 ? { after: first - 1 } : {}) }, last)) this.#book.learn(this.#known(page));
      }
    }
  }

  /** Everything, once in a while: new jobs of other tabs, and what became of old ones. */
  async #askAll() {
    this.#fullAt = performance.now();
    for (const state of OPEN) for await (const page of this.#queue.pages({ state })) this.#book.learn(page);
    if (!this.#differs()) return;
    const open = this.#book.live().filter((change) => !this.#early.has(change.id));
    await this.#askAbout(open);
  }

  /** Settled jobs that the book never saw under way are old news: no chip is due. @param {Job[]} jobs */
  #known(jobs) {
    return jobs.filter((job) => this.#book.has(job.id) || OPEN.includes(job.state) || job.state === "failed");
  }
}

/** @param {number[]} cursors in order @returns {[number, number][]} */
function stretches(cursors) {
  /** @type {[number, number][]} */
  const list = [];
  for (const cursor of cursors) {
    const last = list.at(-1);
    if (last && cursor - last[1] <= GAP) last[1] = cursor;
    else list.push([cursor, cursor]);
  }
  return list;
}
