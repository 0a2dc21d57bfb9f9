/** A rate-limited action queue for the browser. Importing it touches nothing of the browser; `connect` does. */

/** Connects this page to a queue. All pages of an origin that give the same name share it. */
export function connect(options?: ConnectOptions): Queue;

export interface ConnectOptions {
  /** The queue's name; `default` when absent. */
  name?: string;
  /** The signed-in user that jobs are sent for. */
  principal?: string;
  /** The kind of context that runs the scheduler. */
  host?: "auto" | "shared-worker" | "service-worker" | "leader-tab";
  /** Whether `auto` may take a SharedWorker; by default everywhere but on Android and iOS, which kill it silently. */
  sharedWorker?: boolean;
  /** Runs the scheduler in a service worker; `auto` then begins there. By default `service-worker.js` beside the client, for `/`. */
  serviceWorker?: { url?: string | URL; scope?: string; type?: "module" | "classic" };
  /** Where `worker.js` is served, on this origin, or a file of the app that imports `paceline/worker`. */
  workerUrl?: string | URL;
  /** Where the worker's wasm is served. */
  wasmUrl?: string | URL;
  budgets?: Budget[];
  /**
   * Gives the headers that a budget's requests need, when the scheduler has none or the server no longer takes them. They
   * are kept in memory only. Budgets that are declared beside it wait for them, unless they say `credentials: false`.
   */
  credentials?: CredentialsProvider;
}

/** Resolves with nothing where this page has no credentials for that budget. */
export type CredentialsProvider = (budget: string) => Promise<HeadersInit | null | undefined> | HeadersInit | null | undefined;

/** How a rule counts; `arrival-log` when absent. */
export type Algorithm =
  | "arrival-log" | "sliding-log" | "fixed-window" | "sliding-counter" | "token-bucket" | "leaky-bucket" | "leaky-queue"
  | "gcra" | "batch-rest";

/** A limit by its parts. */
export interface Limit {
  /** Units in a window. */
  limit: number;
  /** Text such as `"10s"`, or milliseconds. */
  window: string | number;
  algorithm?: Algorithm;
  anchor?: "first" | "clock";
  /** Whether the figure is a guess: what the server publishes may raise it. */
  learn?: boolean;
  /**
   * Which requests it counts; all when absent. `*` stands for any text in a path, and a path has no query. What it does not
   * count is not held up behind what it does. Two limits of a budget count the same, or requests of other methods. What
   * is counted waits in a part of the budget, shown in `byBudget` under a name such as `github#PATCH,POST`; hold, resume
   * and a server's pause of the budget mean its parts too.
   */
  counts?: { methods?: ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE")[]; paths?: string[] };
}

/** One set of limits that a server counts together. */
export interface Budget {
  id: string;
  /** URL patterns; `*` stands for any text. The longest that matches wins. */
  match?: string[];
  /** All of them must admit: `"100/10s"`, or its parts. */
  limits?: (string | Limit)[];
  maxInFlight?: number;
  /**
   * What becomes of jobs where the server asks for a wait of more than `aboveMs` (an hour when absent), which is never
   * shortened: they wait as `parked`, or fail as `wait-too-long`, those too that are handed in while it lasts.
   */
  longWait?: { aboveMs?: number; then?: "park" | "fail" };
  /** The share of each limit that is used, above 0 and up to 1. */
  share?: number;
  /** What requests cost by method and path (`*` stands for any text), where a job names no cost; the first that fits counts. */
  costs?: { method?: string; path?: string; cost: number }[];
  /** A budget whose rules must admit too; what its server calls global pauses all under it. */
  parent?: string;
  /** The budgets that its server's scopes stand for; one that is not named here makes a budget of its own. */
  scopes?: Record<string, string>;
  /**
   * How bulk and background jobs start. `auto` (the default): evenly over windows longer than a second, small bulks at once;
   * `burst`: as fast as the limits admit; `even`: evenly over every window.
   */
  pace?: "auto" | "burst" | "even";
  /** The part of each limit that bulk and background jobs leave for the interactive lane, from 0 to 0.9. */
  reserve?: { interactive?: number };
  /** How the server takes idempotency keys. */
  idempotency?: { header: string; ttlMs?: number };
  /** What is documented of an API, by name, as in crates/signals/presets.json; fields that are given win over it. */
  preset?: string;
  /** The plan of the preset, where limits depend on one. */
  plan?: string;
  /**
   * How the server writes what it says of limits: a dialect's name, which header says what, or `worker:NAME` for a function of
   * the app's worker (see `definePaceline`); `auto` if absent.
   */
  dialect?: string | OwnDialect;
  /** Whether nothing is sent before it was given credentials. */
  credentials?: boolean;
  /**
   * What a status means where this API means something else by it than others: the job is done, has failed, is tried again
   * (as after a 503, so only if it is repeatable), was refused unread (the budget pauses), or wants other credentials.
   */
  statuses?: Record<number, "done" | "failed" | "retry" | "refused" | "credentials">;
  /** Endpoints that take several jobs as one request, by the names that jobs give as their `batch`. */
  batches?: Record<string, BatchOptions>;
}

/** An endpoint that takes several jobs as one request: their bodies are its items. */
export interface BatchOptions {
  url: string;
  /** `POST` when absent. */
  method?: "POST" | "PUT" | "PATCH";
  /**
   * The most items of one request, up to 1,000. A batch takes what waits when its turn comes; it does not wait for more.
   * May be left out where the budget's preset knows the endpoint.
   */
  max?: number;
  /** The most bytes of the stored requests of one, up to 16 MiB. */
  maxBytes?: number;
  /** The field of the request's body that holds the items, `items` when absent; empty when the body is the array itself. */
  items?: string;
  /**
   * The field of an answer's body that holds a result for each item; empty when the body is the array itself. When absent,
   * the answer's status is that of each item.
   */
  results?: string;
  /** The field by which the result of an item is found, which both have; when absent, results come in the items' order. */
  matchBy?: string;
  /** The field of a result that holds its HTTP status, `status` when absent. A result without it has the answer's. */
  status?: string;
  /**
   * Units that one request uses, however many items it has; 1 when absent, or what a full one costs where the budget's
   * preset says that each item of this endpoint counts.
   */
  cost?: number;
}

/** How a header writes an instant or a wait. `auto`: told by shape and magnitude. */
export type TimeKind = "auto" | "delta-seconds" | "delta-ms" | "epoch-seconds" | "epoch-ms" | "http-date" | "iso-date" | "duration";

/**
 * A server's own way to say what is left: the names of its headers. Another origin reads only those that the server
 * exposes; `queue.diagnose` tells which it does not.
 */
export interface OwnDialect {
  /** Units in a window, units left, units used. */
  limit?: string;
  remaining?: string;
  used?: string;
  /** When the window starts anew. */
  reset?: string | { header: string; kind?: TimeKind };
  /** How long to wait after a refusal; wins over `Retry-After`. */
  retryAfter?: string | { header: string; kind?: TimeKind };
  /** What the request has cost. */
  cost?: string;
  /** The window of the limit: `"1m"`, milliseconds, or a header. */
  window?: string | number | { header: string; kind?: "delta-seconds" | "delta-ms" | "duration" };
  /** What the server calls the limit. */
  scope?: string;
}

/** What was seen of a budget's server. */
export interface Diagnosis {
  budget: string;
  /** Requests that were answered, that ended without an answer a page may read, and that were refused. */
  answers: number;
  lost: number;
  refusals: number;
  /** Values that tell of limits and could not be read. */
  unreadable: number;
  statuses: Record<number, number>;
  /** The dialects that answers were read in; `own` for a table of headers, `worker` for a function of the app. */
  dialects: string[];
  /** The headers that could be read, lower case. */
  visible: string[];
  findings: {
    code: "nothing-seen" | "headers-hidden" | "wait-hidden" | "key-not-allowed" | "answers-hidden" | "unreadable";
    /** What was seen and what to change. */
    message: string;
    /** The headers to expose or to allow. */
    headers: string[];
  }[];
}

/** What a connected page has. Events carry their news in `detail`. */
export interface Queue extends EventTarget {
  readonly name: string;
  /** The host, once it has welcomed this page; after a change, the newest. */
  readonly ready: Promise<Host>;
  /** Hands in one job, in the interactive lane. Resolves once it is stored. */
  enqueue(job: Job, options?: { signal?: AbortSignal }): Promise<JobHandle>;
  /** Hands in many jobs, in the bulk lane, all or none. Resolves once they are stored. */
  enqueueMany(jobs: Job[], options?: { group?: string }): Promise<GroupHandle>;
  /** Like the page's own fetch, but paced. GET and HEAD are not stored. */
  fetch(input: RequestInfo | URL, init?: FetchInit): Promise<Response>;
  /** Cancels what has not left. */
  cancel(target: Target): Promise<{ cancelled: number; alreadySent: number }>;
  /**
   * Sends failed jobs again. Rejects with `needs-force` when none can go without that, and with `stale` when a later job of
   * the key is done in each case.
   */
  retry(target: Target, options?: { force?: boolean }): Promise<{ retried: number; needsForce: number; stale: number }>;
  /** Gives what has not left another lane; what was merged moves as one. */
  prioritise(target: Target, lane: Lane): Promise<{ moved: number; alreadySent: number }>;
  /** Closes a budget, or all of them, until `resume`. */
  hold(budget?: string): Promise<void>;
  resume(budget?: string): Promise<void>;
  /** Calls the listener with each snapshot, for the first time in a later microtask. Returns what ends it. */
  subscribe(listener: (snapshot: Snapshot) => void): () => void;
  /** The newest snapshot that this page has heard; without a subscription it asks for a newer one for the next call. */
  snapshot(): Snapshot;
  /** Jobs in the order of their acceptance; `next` is the `after` to ask on with. */
  jobs(filter?: JobFilter): Promise<JobView[] & { next?: number }>;
  /** How long so many more jobs would take, handed in now, behind what waits. Nothing is changed by asking. */
  estimate(question: Question): Promise<Estimate>;
  /** What a plan of up to 100 steps would come to. Nothing is changed by asking. */
  simulate(plan: PlanStep[]): Promise<Simulation>;
  /** What the present host has counted since it took the queue over. Nothing of it is stored: another host counts anew. */
  metrics(): Promise<Metrics>;
  /** What was seen of a budget's server since the host began, and what its owner should change, in words to send to them. */
  diagnose(budget: string): Promise<Diagnosis>;
  /** Resolves once nothing waits and nothing is on its way. */
  idle(): Promise<void>;
  /**
   * Resolves once nothing waits and nothing is on its way, or `timeoutMs` is over, with the number of jobs that are left.
   * They go on.
   */
  drain(options?: { timeoutMs?: number }): Promise<{ left: number }>;
  /**
   * Gives the headers to add to each request of a budget, in memory only. A budget that waits for credentials goes on with
   * one request. Those of the page that connected last with its principal count.
   */
  setCredentials(budget: string, headers: HeadersInit): Promise<void>;
  /** Changes the budgets; what they have consumed is kept. */
  configure(config: { budgets: Budget[] }): Promise<void>;
  /** Leaves the queue, which works on. What waits in this page rejects with `not-connected`. */
  close(): void;

  addEventListener<Name extends keyof QueueEvents>(
    name: Name,
    listener: (event: CustomEvent<QueueEvents[Name]>) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    name: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

export interface QueueEvents {
  settled: SettledJob;
  /** `isLong`: for longer than its `longWait.aboveMs`; its jobs are parked, or fail as `wait-too-long`. */
  paused: { budget: string; until: number; isEstimate: boolean; isLong: boolean };
  resumed: { budget: string };
  refused: { budget: string; job: string; status: number; believedFree: number; retryAfterMs?: number | null };
  held: { budget?: string | null; cause: string };
  /** A budget waits, and no page has credentials that the server takes: sign in, then `setCredentials` or `resume`. */
  "credentials-needed": { budget: string; wanted: "missing" | "expired" | "refused" };
  storage: { message: string };
  "host-changed": Host;
  "host-crashed": { message: string };
  "config-changed": undefined;
  /** Comes to pages that listen for it: at once, and when something has changed, at most four times a second. */
  metrics: Metrics;
  error: PacelineError | { message: string };
}

export interface Host {
  host: string;
  /** Whether jobs survive a restart. */
  durable: boolean;
  version: string;
  epoch: number;
  /** A random name of the host's life. */
  instance: string;
}

export type Lane = "interactive" | "bulk" | "background";
export type State = "queued" | "sending" | "retry-wait" | "done" | "failed" | "cancelled";

export interface Job {
  /** Its name; the same name twice is the same job. Made when absent. */
  id?: string;
  /** Absolute. */
  url: string | URL;
  /** `GET`, or `POST` with a body, when absent. */
  method?: string;
  headers?: Record<string, string | number> | Iterable<[string, string]>;
  /** Objects and arrays are sent as JSON. At most 16 MB. */
  body?: object | string | Blob | BufferSource | URLSearchParams | FormData | null;
  lane?: Lane;
  /** Jobs with one key run in order, one at a time. */
  key?: string;
  group?: string;
  budget?: string;
  kind?: "patch" | "replace" | "create" | "delete" | "custom";
  /**
   * Whether it may go together with another job that nobody has tried to send: patches of one key (JSON objects) are
   * merged, of replacements the last is sent, identical requests are sent once. True when absent.
   */
  merge?: boolean;
  /**
   * The batch of its budget that it goes in: its body, which must be JSON, is one item of a request. It ends by itself; its
   * `done` gives its own result. Such jobs have no `cost`, and are not merged.
   */
  batch?: string;
  /** With kind `delete`: cancels the edits of its key that wait before it, as `superseded`. */
  supersede?: boolean;
  /**
   * What becomes of the later jobs of its key when it fails: they go on, wait until it is retried or cancelled or the
   * queue is resumed, or fail as `key-failed`. `continue` when absent.
   */
  onFailure?: "continue" | "hold-key" | "fail-later";
  /** Units that one attempt uses. */
  cost?: number;
  idempotencyKey?: string;
  /** Whether sending it twice is the same as once. */
  repeatable?: boolean;
  /**
   * Tells whether a write was carried out whose answer was lost, where it may not be repeated. It is sent before the write
   * is sent again, and costs what the job costs.
   */
  check?: Check;
  /** The longest wait for its first attempt. */
  maxWaitMs?: number;
  /** The time-out of one attempt. */
  timeoutMs?: number;
  /** The instant before which it does not start, in milliseconds since the epoch. */
  notBefore?: number;
  principal?: string;
  credentials?: RequestCredentials;
  /** `follow` holds for GET and HEAD only; a redirected write is an error. */
  redirect?: "follow" | "error";
  /** Anything that JSON can hold; `jobs` gives it back. */
  meta?: unknown;
}

/** A request beside a job's own: does what the job makes exist? */
export interface Check {
  /** `GET` when absent. */
  method?: "GET" | "HEAD";
  /** Of the job's origin; the job's headers and its budget's credentials go with it. */
  url: string | URL;
  /**
   * By `status`: the answer has one of these (200 to 499); 404, 410 and any other success say that it does not. By `pointer`
   * (RFC 6901) into a JSON answer: there is a number of at least `min`, or an array of at least so many, 1 when absent. Any
   * other answer does not tell, and the job fails as `outcome-unknown`.
   */
  exists: { status: number[] } | { pointer: string; min?: number };
  /**
   * How long after the attempt before it is over it is sent at the earliest, up to 600000; 1000 when absent. Name more where
   * the API shows new records late: a check that comes too early sees nothing, and the write is done twice.
   */
  afterMs?: number;
}

export type FetchInit = RequestInit & { paceline?: Omit<Job, "url" | "method" | "headers" | "body"> };

export interface JobHandle {
  readonly id: string;
  /** The answer; rejects with PacelineError for a job that failed or was cancelled. Never reported as unhandled. */
  readonly done: Promise<PacelineResponse>;
}

export interface PacelineResponse extends Response {
  /** Whether the body is not whole: it was above 8 MB, or the connection broke. */
  readonly truncated?: boolean;
  /** Whether it is the answer to the job's check, which found the job done: that of the write was lost. */
  readonly byCheck?: boolean;
}

export interface GroupHandle {
  readonly group: string;
  readonly ids: string[];
  readonly total: number;
  readonly settled: Promise<GroupResult>;
}

export interface GroupResult {
  done: number;
  failed: number;
  cancelled: number;
}

/** A job, a bulk action, or the id of either; or several jobs. */
export type Target = string | { id: string } | { group: string } | (string | { id: string })[];

export interface JobFilter {
  id?: string;
  state?: State;
  group?: string;
  key?: string;
  lane?: Lane;
  /** At most 1000; 100 when absent. */
  limit?: number;
  after?: number;
}

export interface JobView {
  id: string;
  cursor: number;
  url: string;
  method: string;
  meta?: unknown;
  state: State;
  lane: Lane;
  key?: string;
  group?: string;
  budget: string;
  attempts: number;
  /** Why it waits. */
  cause?: string;
  until?: number;
  /** How many later jobs were merged into it. */
  coalesced?: number;
  /** The job that it was merged into; it has that job's state and ends with it. */
  mergedInto?: string;
  failure?: { code: Code; status?: number; text?: string };
  settledAt?: number;
}

export interface SettledJob {
  id: string;
  state: State;
  code?: Code;
  status?: number;
  /** Whether its check found it done. */
  byCheck?: boolean;
  text?: string;
  group?: string;
  attempts: number;
}

/** Times are in milliseconds since the epoch. */
export interface Snapshot {
  counts: Counts;
  pausedUntil?: number | null;
  /** Until all is sent; null while that cannot be known. */
  etaMs?: number | null;
  etaIsEstimate: boolean;
  nextWakeAt?: number | null;
  held: string[];
  host: { kind: string; durable: boolean; instance: string; epoch: number };
  byLane: Record<string, { waiting: number; sending: number }>;
  byGroup: Record<string, Counts & { total: number; etaMs?: number | null }>;
  byBudget: Record<string, BudgetView>;
}

export interface Counts {
  queued: number;
  sending: number;
  retryWait: number;
  done: number;
  failed: number;
  cancelled: number;
}

export interface BudgetView {
  waiting: number;
  sending: number;
  pausedUntil?: number | null;
  pauseIsEstimate: boolean;
  held: string[];
  cause?: string | null;
  rule?: string | null;
  /** The budget whose rule, pause or hold that is, where it is a parent. */
  by?: string | null;
  /** Thousandths of its rules that are used: fewer than 1000 after refusals and lost connections. */
  usedPermille: number;
  etaMs?: number | null;
}

/** So many jobs of one kind. */
export interface Question {
  budget: string;
  /** 1 to 10,000,000. */
  count: number;
  /** Units that each costs, 1 when absent. */
  cost?: number;
  /** `bulk` when absent. */
  lane?: Lane;
}

export interface PlanStep extends Question {
  /** Milliseconds between two of them, up to a day; all at once when absent. */
  everyMs?: number;
}

/**
 * Instants are in milliseconds since the epoch; all are null while the budget or the queue is held. Assumed is that
 * every request is answered with success after the usual time, and that nothing else is handed in.
 */
export interface Estimate {
  /** Milliseconds until the last job is done. */
  etaMs: number | null;
  startsAt: number | null;
  doneAt: number | null;
  /** Whether a job has to wait for a window of a rule to turn. */
  crossesWindow: boolean;
  /** When the budget is used up for the first time. */
  usedUpAt: number | null;
  rules: RuleUse[];
  /** Whether it rests on a guess: of a pause's end, of how long answers take, or because it is extrapolated. */
  isEstimate: boolean;
  /**
   * Whether what follows the first 2,048 starts (of all budgets together) was reckoned by whole windows of each rule,
   * which errs late, by up to one window of the rule that binds.
   */
  isExtrapolated: boolean;
}

/** A rule that is used up: it defers a job for the first time at `usedUpAt`. */
export interface RuleUse {
  limit: number;
  windowMs: number;
  usedUpAt: number;
}

export interface Simulation {
  beginsAt: number;
  doneAt: number | null;
  jobs: number;
  units: number;
  steps: Timeline[];
  byLane: Record<string, Waits>;
  byBudget: Record<string, { jobs: number; units: number; usedUpAt: number | null; rules: RuleUse[] }>;
  isEstimate: boolean;
  isExtrapolated: boolean;
}

export interface Timeline {
  startsAt: number | null;
  doneAt: number | null;
  /** Of the jobs whose start was run, not reckoned. */
  wait: Waits;
  /** How many jobs are done by when, at most 32 points. */
  points: { at: number; done: number }[];
}

/** From being handed in to the first start. Quantiles are at most a quarter above the truth, and never below it. */
export interface Waits {
  jobs: number;
  p50Ms: number | null;
  p95Ms: number | null;
  maxMs: number | null;
}

/** Counts since a host became the owner, at `since`; instants are in milliseconds since the epoch. */
export interface Metrics {
  since: number;
  at: number;
  queue: Meter;
  /** The jobs of this page's principal; null when none were counted. */
  own: Meter | null;
  /** By the budget that jobs were handed in for. */
  byBudget: Record<string, BudgetMetrics>;
}

export interface Meter {
  /** Jobs that were stored, that an earlier host left unsettled, or that a retry brought back. */
  accepted: number;
  done: number;
  failed: number;
  cancelled: number;
  /** Jobs that wait, are on their way, or whose outcome is not stored yet. */
  live: number;
  /** `accepted` less those that settled and those that live: 0, or there is a bug, and an `error` event. */
  unaccounted: number;
  /** Requests that left and came to an end. */
  requests: number;
  /** Those that the server refused unread for a limit. */
  refused: number;
  /** The same among a thousand requests, rounded up; null without requests. */
  refusedPer1000: number | null;
  unanswered: number;
  /** Answers by status; those beyond 128 statuses as `other`. */
  answers: Record<string, number>;
  failures: { code: Code; status: number | null; jobs: number }[];
  /** Requests that settled jobs needed. */
  attempts: { jobs: number; p50: number | null; p95: number | null; max: number | null };
  /** From being handed in, or from `notBefore`, to the first request. */
  waits: Record<string, Waits>;
}

export interface BudgetMetrics extends Meter {
  /** How long something waited for it that nobody's wish held up, here or in budgets under it. */
  busyMs: number;
  /** Units of the requests that started in that time. */
  units: number;
  /** Units that its limit allowed in that time; null without limits. */
  allowed: number | null;
  /** Thousandths of the limit that were used while something had to wait; null when nothing had. */
  achievedPermille: number | null;
}

export type Code =
  | "bad-job" | "unknown-budget" | "secret-header" | "never-fits" | "queue-full" | "storage-full" | "storage"
  | "expired" | "cancelled" | "aborted" | "cleared" | "superseded" | "cancelled-out" | "http" | "retries-exhausted"
  | "outcome-unknown" | "key-reused" | "key-failed" | "needs-force" | "wait-too-long" | "stale" | "not-connected"
  | "protocol" | "host-crashed";

export interface ErrorDetails {
  jobId?: string;
  /** The status of the last answer. */
  status?: number;
  response?: PacelineResponse;
  cause?: unknown;
  /** The field of the job or option that is not as expected; for `queue-full` the bound: `maxQueue.jobs` or `maxQueue.bytes`. */
  field?: string;
  expected?: string;
  got?: string;
  /** The index of the job in `enqueueMany`. */
  index?: number;
}

export class PacelineError extends Error implements ErrorDetails {
  constructor(code: Code, message: string, details?: ErrorDetails);
  readonly code: Code;
  jobId?: string;
  status?: number;
  response?: PacelineResponse;
  field?: string;
  expected?: string;
  got?: string;
  index?: number;
}
