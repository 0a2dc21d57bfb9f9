/**
 * The only module that talks to Paceline. Owns the connection, the budget's settings and the translation between the
 * client's shapes and the page's (types.js), so that a field that is missing costs a detail and never the page.
 * @import { GroupView, Job, JobState, Patch, Told, View } from "./types.js"
 */

export const API = `${location.origin}/strict/demo/api`;
const PAGE = 1000;
const BUDGET = "crm";
const TOLD_KEY = "fairwind.told";
/** @type {Told} */
export const DEFAULT_TOLD = { limit: 10, windowMs: 1000, maxInFlight: 6 };
/** @type {readonly JobState[]} */
const STATES = ["queued", "sending", "retry-wait", "done", "failed", "cancelled"];

/** @returns {Told} what the client was told last, in this tab or another */
export function readTold() {
  try {
    const said = JSON.parse(localStorage.getItem(TOLD_KEY) ?? "null");
    if (said && said.limit > 0 && said.windowMs > 0 && said.maxInFlight > 0) return said;
  } catch { /* no storage, or not ours: the defaults hold */ }
  return DEFAULT_TOLD;
}

/** @param {Told} told */
function budget(told) {
  return {
    id: BUDGET, match: [`${API}/*`], limits: [`${told.limit}/${told.windowMs}ms`], maxInFlight: told.maxInFlight,
    idempotency: { header: "Idempotency-Key", ttlMs: 86400000 },
  };
}

/** An id that needs no secure context. */
function makeId() {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16).padStart(8, "0")).join("");
}

/** A group's id says what the change was, so that a page that was reloaded can still name it. @param {string} owner */
const groupId = (owner) => `owner:${owner}:${Date.now().toString(36)}`;

/** @param {string} group */
export function groupLabel(group) {
  const [kind, owner] = group.split(":");
  return kind === "owner" && owner ? `Owner to ${owner}` : group;
}

/** @param {unknown} value */
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
/** @param {unknown} value */
const numberOrNull = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);

/** @param {any} snapshot @returns {View} */
export function toView(snapshot) {
  const counts = snapshot?.counts ?? {};
  const crm = snapshot?.byBudget?.[BUDGET] ?? {};
  const held = [...(snapshot?.held ?? []), ...(crm.held ?? [])];
  return {
    waiting: number(counts.queued) + number(counts.retryWait),
    retrying: number(counts.retryWait), sending: number(counts.sending), saved: number(counts.done),
    failed: number(counts.failed), cancelled: number(counts.cancelled),
    pausedUntil: numberOrNull(crm.pausedUntil) ?? numberOrNull(snapshot?.pausedUntil),
    pauseIsEstimate: Boolean(crm.pauseIsEstimate),
    etaMs: numberOrNull(snapshot?.etaMs),
    held: held.map(String),
    groups: Object.entries(snapshot?.byGroup ?? {}).map(([id, group]) => toGroup(id, group)),
    host: snapshot?.host ? { kind: String(snapshot.host.kind ?? "unknown"), durable: snapshot.host.durable !== false } : null,
  };
}

/** @param {string} id @param {any} group @returns {GroupView} */
function toGroup(id, group) {
  return {
    id, total: number(group.total), waiting: number(group.queued) + number(group.retryWait), sending: number(group.sending),
    saved: number(group.done), failed: number(group.failed), cancelled: number(group.cancelled), etaMs: numberOrNull(group.etaMs),
  };
}

/** @param {any} raw @returns {Job | null} null for a job that is none of this page's */
export function toJob(raw) {
  const contact = Number(raw?.meta?.contact ?? /^contact:(\d+)$/.exec(raw?.key ?? "")?.[1]);
  if (!raw?.id || !STATES.includes(raw.state) || !Number.isInteger(contact)) return null;
  return {
    id: raw.id, state: raw.state, contact, group: raw.group ?? null, patch: raw.meta?.patch ?? {},
    code: raw.failure?.code ?? null, status: raw.failure?.status ?? null, until: numberOrNull(raw.until), cursor: numberOrNull(raw.cursor),
  };
}

/** @param {any} client what `connect` gave */
export function wrap(client) {
  /** @param {Record<string, unknown>} filter @returns {Promise<Job[]>} */
  const jobs = async (filter) => Array.from(await client.jobs(filter), toJob).filter((job) => job !== null);
  /** @param {number} contact @param {Patch} patch */
  const request = (contact, patch) => ({
    id: makeId(), method: "PATCH", url: `${API}/contacts/${contact}`, body: patch, key: `contact:${contact}`, meta: { contact, patch },
  });

  return {
    /** @returns {Promise<any>} */
    ready: () => Promise.resolve(client.ready),
    jobs,

    /**
     * Every job of one filter, page by page, up to a place in the queue's order if one is given.
     * @param {Record<string, unknown>} filter @param {number} [last]
     */
    async *pages(filter, last = Infinity) {
      let after = filter["after"];
      for (;;) {
        const limit = Number.isFinite(last) && typeof after === "number" ? Math.max(1, Math.min(PAGE, last - after)) : PAGE;
        const found = await client.jobs({ ...filter, limit, ...(after === undefined ? {} : { after }) });
        yield /** @type {Job[]} */ (Array.from(found, toJob).filter((job) => job !== null));
        if (typeof found.next !== "number" || found.next === after || found.length < limit || found.next >= last) return;
        after = found.next;
      }
    },

    /** @param {(view: View) => void} tell @returns {() => void} */
    watch: (tell) => client.subscribe((/** @type {any} */ snapshot) => tell(toView(snapshot))),

    /** @param {string} type @param {(detail: any) => void} tell */
    on(type, tell) {
      client.addEventListener?.(type, (/** @type {any} */ event) => tell(event.detail ?? {}));
    },

    /** One person, one change: the interactive lane. @param {number} contact @param {Patch} patch */
    edit(contact, patch) {
      const job = request(contact, patch);
      return { job: /** @type {Job} */ ({ ...base(job.id), contact, patch }), accepted: Promise.resolve(client.enqueue(job)) };
    },

    /** Many people, one new owner: the bulk lane, as one group. @param {number[]} contacts @param {string} owner */
    changeOwner(contacts, owner) {
      const group = groupId(owner);
      const list = contacts.map((contact) => request(contact, { owner }));
      return {
        group,
        jobs: list.map((job) => /** @type {Job} */ ({ ...base(job.id), group, contact: job.meta.contact, patch: job.meta.patch })),
        accepted: Promise.resolve(client.enqueueMany(list, { group })),
      };
    },

    /** @param {Target} target @returns {Promise<{ cancelled: number, alreadySent: number }>} */
    cancel: (target) => client.cancel(target),
    /** @param {Target} target @returns {Promise<{ retried: number, needsForce: number }>} */
    retry: (target) => client.retry(target),
    hold: () => client.hold(BUDGET),
    // Without a name all holds are lifted, those of the whole queue too.
    resume: () => client.resume(),

    canConfigure: typeof client.configure === "function",
    /** @param {Told} told */
    async tell(told) {
      await client.configure({ budgets: [budget(told)] });
      localStorage.setItem(TOLD_KEY, JSON.stringify(told));
    },
    /** Forgets everything, if this client can. */
    clear: async () => (typeof client.clear === "function" ? client.clear({}) : undefined),
  };
}

/** @typedef {{ group: string } | string[]} Target a bulk change, or single ones by id */

/** @param {string} id */
function base(id) {
  return { id, state: "queued", group: null, code: null, status: null, until: null, cursor: null };
}

/** @typedef {ReturnType<typeof wrap>} Queue */

/** @returns {Promise<Queue>} */
export async function openQueue() {
  /** @type {string} the server's own path, so that no checker looks for it on disk */
  const client = "/paceline/client.js";
  const { connect } = await import(client);
  return wrap(connect({ name: "demo", budgets: [budget(readTold())] }));
}
