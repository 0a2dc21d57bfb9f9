// What this tab waits for: jobs and bulk actions that have not settled, with the messages that ask for them again.

/** @typedef {import("./wire.js").Outcome} Outcome */
/** @typedef {import("./paceline.js").GroupResult} GroupResult */
/** @typedef {{ type: string } & Record<string, unknown>} Request */
/** @typedef {{ message: Request, isAccepted: boolean, askers: Set<(outcome: Outcome) => void> }} Job */
/** @typedef {{ group: string, message: Request, isAccepted: boolean, resolve: (result: GroupResult) => void, reject: (error: unknown) => void }} Bulk */

const SETTLED = ["done", "failed", "cancelled"];

/** The unsettled jobs and bulk actions of one tab. */
export class Unsettled {
  /** @type {Map<string, Job>} */ #jobs = new Map();
  /** @type {Set<Bulk>} */ #bulks = new Set();

  get isEmpty() {
    return this.#jobs.size + this.#bulks.size === 0;
  }

  /** @param {string} id */
  hasJob(id) {
    return this.#jobs.has(id);
  }

  /** @param {string} group */
  hasGroup(group) {
    return [...this.#bulks].some((bulk) => bulk.group === group);
  }

  /**
   * Adds somebody who asks for a job. The same id is the same job.
   * @param {string} id
   * @param {Request} message
   * @param {(outcome: Outcome) => void} asker
   */
  add(id, message, asker) {
    const job = this.#jobs.get(id) ?? { message, isAccepted: false, askers: new Set() };
    job.askers.add(asker);
    this.#jobs.set(id, job);
  }

  /**
   * Detaches an asker.
   * @param {string} id
   * @param {(outcome: Outcome) => void} asker
   * @returns {boolean} whether nobody in this tab asks for the job any more
   */
  remove(id, asker) {
    const job = this.#jobs.get(id);
    job?.askers.delete(asker);
    if (job?.askers.size === 0) this.#jobs.delete(id);
    return !this.#jobs.has(id);
  }

  /** Notes an acceptance, which tells how the job ended when it ended before. @param {import("./wire.js").AcceptedJob} accepted */
  accepted(accepted) {
    const job = this.#jobs.get(accepted.id);
    if (job) job.isAccepted = true;
    if (SETTLED.includes(accepted.state)) this.settle(/** @type {Outcome} */ (accepted));
  }

  /** @param {Outcome} outcome */
  settle(outcome) {
    const job = this.#jobs.get(outcome.id);
    this.#jobs.delete(outcome.id);
    job?.askers.forEach((asker) => asker(outcome));
  }

  /** @param {Bulk} bulk */
  addBulk(bulk) {
    this.#bulks.add(bulk);
  }

  /** @param {Bulk} bulk */
  removeBulk(bulk) {
    this.#bulks.delete(bulk);
  }

  /** @param {{ group: string } & GroupResult} settled */
  settleGroup({ group, done, failed, cancelled }) {
    for (const bulk of this.#bulks) {
      if (bulk.group !== group || !bulk.isAccepted) continue;
      this.#bulks.delete(bulk);
      bulk.resolve({ done, failed, cancelled });
    }
  }

  /**
   * Asks another host for all that one before it had accepted. It knows the jobs by their ids and tells how they are; one
   * that it does not know has ended meanwhile, and is not to be made anew.
   * @param {(message: Request) => Promise<any>} request
   */
  askAgain(request) {
    for (const [id, job] of this.#jobs) {
      if (!job.isAccepted) continue;
      const failed = (/** @type {any} */ { code, message }) => this.settle({ id, state: "failed", code, message });
      request({ ...job.message, again: true }).then((reply) => this.accepted(reply.job), failed);
    }
    for (const bulk of this.#bulks) {
      if (!bulk.isAccepted) continue;
      request({ ...bulk.message, again: true }).catch((error) => this.#bulks.delete(bulk) && bulk.reject(error));
    }
  }

  /** Ends what a host had accepted; what it had not is still on its way. @param {import("./errors.js").PacelineError} error */
  lose(error) {
    const { code, message } = error;
    for (const [id, job] of [...this.#jobs]) {
      if (job.isAccepted) this.settle({ id, state: "failed", code, message, cause: error });
    }
    for (const bulk of [...this.#bulks]) {
      if (bulk.isAccepted && this.#bulks.delete(bulk)) bulk.reject(error);
    }
  }

  /** Ends all waiting in this tab. @param {import("./errors.js").PacelineError} error */
  failAll(error) {
    const { code, message } = error;
    for (const id of [...this.#jobs.keys()]) this.settle({ id, state: "failed", code, message, cause: error });
    for (const bulk of this.#bulks) bulk.reject(error);
    this.#bulks.clear();
  }
}
