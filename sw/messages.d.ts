// What travels between a tab and the host. Written by `UPDATE_TYPES=1 cargo test -p paceline-protocol`; do not edit.
// Opaque parts travel beside what is typed here: `body` and `meta` of a job, `response` of `settled`, and `url`, `method`
// and `meta` of `jobs`.

/** What a tab posts. */
export type ToHost = { paceline: 1, id: number } & Request;

/** What the host posts. */
export type FromHost = Stamp & HostMessage;

/** A request, by its `type`. */
export type Request = { "type": "hello" } & Hello | { "type": "enqueue" } & Enqueue | { "type": "enqueue-many" } & EnqueueMany | { "type": "cancel" } & Cancel | { "type": "retry" } & Retry | { "type": "prioritise" } & Prioritise | { "type": "hold" } & OneBudget | { "type": "resume" } & OneBudget | { "type": "subscribe" } | { "type": "unsubscribe" } | { "type": "snapshot" } | { "type": "jobs" } & Jobs | { "type": "estimate" } & StepMessage | { "type": "simulate" } & Simulate | { "type": "metrics" } & AskMetrics | { "type": "diagnose" } & OneBudget | { "type": "configure" } & Configure | { "type": "credentials" } & Credentials | { "type": "bye" };

/** The fields of `hello`. */
export type Hello = {
  /** The client's version, for people. */
  version?: string | null,
  /** The principal that is signed in; empty for none. */
  principal?: string | null,
  /** The budgets that the app declares; none keeps what the host has. */
  budgets?: Array<BudgetMessage> | null,
  /** Whether it answers `credentials-wanted`. */
  credentials?: boolean | null,
};

/** The fields of `enqueue`. */
export type Enqueue = {
  /** The job. */
  job: JobMessage,
  /** Whether a host before this one had accepted it: a job that has ended since is not made anew. */
  again?: boolean | null,
};

/** The fields of `enqueue-many`. */
export type EnqueueMany = {
  /** The jobs. */
  jobs: Array<JobMessage>,
  /** The bulk action that they belong to; the host makes a name where none is given. */
  group?: string | null,
  /** Whether a host before this one had accepted them: jobs that have ended since are not made anew. */
  again?: boolean | null,
};

/** The fields of `cancel`: `jobs` or `group`. */
export type Cancel = {
  /** Names of jobs. */
  jobs?: Array<string> | null,
  /** A group. */
  group?: string | null,
  /** Whether the caller's signal was aborted, so that the reason is `aborted`. */
  aborted?: boolean | null,
};

/** The fields of `retry`: `jobs` or `group`. */
export type Retry = {
  /** Names of jobs. */
  jobs?: Array<string> | null,
  /** A group. */
  group?: string | null,
  /** Whether an unknown outcome may be repeated although that is not safe. */
  force?: boolean | null,
};

/** The fields of `prioritise`: `jobs` or `group`, and the lane. */
export type Prioritise = {
  /** Names of jobs. */
  jobs?: Array<string> | null,
  /** A group. */
  group?: string | null,
  /** The lane that they are to run in. */
  lane: Lane,
};

/** The fields of `hold` and `resume`. */
export type OneBudget = {
  /** The budget; none for the whole queue. */
  budget?: string | null,
};

/** The fields of `jobs`. */
export type Jobs = {
  /** Which. */
  filter?: FilterMessage | null,
};

/** Which jobs a query asks for; each field narrows. */
export type FilterMessage = {
  /** The job's name. */
  id?: string | null,
  /** Its state. */
  state?: State | null,
  /** Its group. */
  group?: string | null,
  /** Its key. */
  key?: string | null,
  /** Its lane. */
  lane?: Lane | null,
  /** At most so many, up to 1000; 100 by default. */
  limit?: number | null,
  /** Only jobs accepted after the one with this cursor, as `jobs` returned it. */
  after?: number | null,
};

/** So many jobs of one kind for one budget. */
export type StepMessage = {
  /** The budget. */
  budget: string,
  /** How many jobs, up to 10,000,000. */
  count: number,
  /** Units that each costs, 1 by default. */
  cost?: number | null,
  /** Their lane, bulk by default. */
  lane?: Lane | null,
  /** Milliseconds between two of them, up to a day; all at once by default. `estimate` does not read it. */
  everyMs?: number | null,
};

/** The fields of `simulate`. */
export type Simulate = {
  /** The steps, 1 to 100. */
  plan: Array<StepMessage>,
};

/** The fields of `metrics`. */
export type AskMetrics = {
  /** Whether the tab is told again, as the event `metrics`, whenever something has changed, at most four times a second;
 * `false` ends that, and without it nothing of that changes. */
  follow?: boolean | null,
};

/** The fields of `configure`. */
export type Configure = {
  /** The budgets, whole. */
  budgets: Array<BudgetMessage>,
};

/** A job of `enqueue` or `enqueue-many`. Its `body` and `meta` are opaque and not read here. */
export type JobMessage = {
  /** The job's name; the host makes one where a raw client gives none. */
  id?: string | null,
  /** The absolute URL. */
  url?: string | null,
  /** The method, `GET` by default, or `POST` with a body. */
  method?: string | null,
  /** The headers to send. */
  headers?: { [key in string]: string } | null,
  /** The lane's name. */
  lane?: string | null,
  /** The ordering key. */
  key?: string | null,
  /** The group. */
  group?: string | null,
  /** The budget; else the longest pattern that matches. */
  budget?: string | null,
  /** `patch`, `replace`, `create`, `delete` or `custom`; by method when absent. */
  kind?: string | null,
  /** Whether it may go together with another one that waits: edits of one key as one request, identical requests once.
 * By default true. The worker says false where the body is none that could be merged. */
  merge?: boolean | null,
  /** A number up to 2^53-1 that equal bodies share; absent where that is not known. */
  bodyHash?: number | null,
  /** Whether a `delete` cancels the edits of its key that wait before it. */
  supersede?: boolean | null,
  /** What becomes of later jobs of its key when it fails: `continue` (the default), `hold-key` or `fail-later`. */
  onFailure?: string | null,
  /** The batch of its budget that it goes in, as one item of a request. */
  batch?: string | null,
  /** Units that one attempt uses; 1 by default. */
  cost?: number | null,
  /** The idempotency key, made by the client. */
  idempotencyKey?: string | null,
  /** Whether sending it twice is the same as once. */
  repeatable?: boolean | null,
  /** The longest wait for its first attempt, in milliseconds. */
  maxWaitMs?: number | null,
  /** The time-out of one attempt, in milliseconds. */
  timeoutMs?: number | null,
  /** The instant before which it does not start, in milliseconds since the epoch. */
  notBefore?: number | null,
  /** The signed-in user that it is sent for. */
  principal?: string | null,
  /** How it is found out whether a request of unknown outcome was carried out, where it may not be repeated. */
  check?: CheckMessage | null,
  /** Whether its request is kept in memory only (GET and HEAD through `fetch`). */
  ephemeral?: boolean | null,
  /** How its request carries cookies, as in fetch. */
  credentials?: string | null,
  /** Whether its request follows redirects, as in fetch. */
  redirect?: string | null,
};

/** A request that tells whether the job's own was carried out. */
export type CheckMessage = {
  /** `GET` (the default) or `HEAD`. */
  method?: string | null,
  /** An absolute URL of the job's origin. */
  url?: string | null,
  /** What tells that it was. */
  exists?: ExistsMessage | null,
  /** How long after the end of the attempt before it it is sent at the earliest, in milliseconds; 1000 by default. */
  afterMs?: number | null,
};

/** What tells that a request was carried out: `status`, or `pointer` and `min`. */
export type ExistsMessage = {
  /** The statuses of which the answer has one, 200 to 499. */
  status?: Array<number> | null,
  /** A JSON pointer (RFC 6901) to a number, or to an array whose length counts, in a served answer. */
  pointer?: string | null,
  /** How much there is at least; 1 by default. */
  min?: number | null,
};

/** A budget of `connect` or `configure`. */
export type BudgetMessage = {
  /** The budget's name. */
  id: string,
  /** URL patterns; `*` stands for any text. The longest that matches wins. */
  match?: Array<string>,
  /** The rules, all of which must admit. */
  limits?: Array<LimitMessage>,
  /** The most requests in flight at once. */
  maxInFlight?: number | null,
  /** The share of each limit that is used, above 0 and up to 1. */
  share?: number | null,
  /** What requests cost by method and path, where a job names no cost; the first that fits counts. */
  costs?: Array<CostMessage> | null,
  /** A budget whose rules must admit too. */
  parent?: string | null,
  /** The budgets that its server's scopes stand for. */
  scopes?: { [key in string]: string } | null,
  /** How bulk and background jobs start: `auto` (the default), `burst` or `even`. */
  pace?: string | null,
  /** What bulk and background jobs leave for other lanes. */
  reserve?: ReserveMessage | null,
  /** How the server takes idempotency keys. */
  idempotency?: IdempotencyMessage | null,
  /** What is documented of an API, by name; fields that are given win over it. */
  preset?: string | null,
  /** The plan of the preset. */
  plan?: string | null,
  /** How the server writes what it says of limits: a dialect's name, `auto`, or which header says what. */
  dialect?: DialectMessage | null,
  /** What becomes of jobs where the server asks for a long wait. */
  longWait?: LongWaitMessage | null,
  /** Whether nothing is sent before it was given credentials; none keeps what was said before. */
  credentials?: boolean | null,
  /** What statuses mean for its jobs where this API means something else by them than others: `done`, `failed`, `retry`,
 * `refused` (the budget pauses) or `credentials`. */
  statuses?: { [key in string]: string } | null,
  /** Endpoints that take several jobs as one request, by the names that jobs give as their `batch`. */
  batches?: { [key in string]: BatchMessage } | null,
};

/** An endpoint that takes several jobs as one request. */
export type BatchMessage = {
  /** The absolute URL. */
  url: string,
  /** The method, `POST` by default. */
  method?: string | null,
  /** The most items of one request, up to 1000; what the preset of the budget documents of the endpoint by default. */
  max?: number | null,
  /** The most bytes of the stored requests of one, up to 16 MiB; that by default. */
  maxBytes?: number | null,
  /** The field of the request's body that holds the items, `items` by default; empty when the body is the array itself. */
  items?: string | null,
  /** The field of an answer's body that holds a result for each item; empty when the body is the array itself. Absent
 * when the status of the whole answer is that of each item. */
  results?: string | null,
  /** The field by which a result is found that an item has too; absent when results come in the order of the items. */
  matchBy?: string | null,
  /** The field of a result that holds its HTTP status, `status` by default. A result without it has the answer's. */
  status?: string | null,
  /** Units that one request uses, however many items it has; 1 by default. */
  cost?: number | null,
};

/** A rule: `"100/10s"`, or its parts. */
export type LimitMessage = string | {
  /** Units per window. */
  limit: number,
  /** The window as text (`"10s"`) or in milliseconds. */
  window: WindowMessage,
  /** The algorithm's name. */
  algorithm?: string | null,
  /** Where a fixed window begins: `first` (with its first request) or `clock`. */
  anchor?: string | null,
  /** Whether the numbers are a guess: what the server publishes may raise them. */
  learn?: boolean | null,
  /** Which requests it counts; all when absent. Two limits count the same requests, or such of other methods. */
  counts?: CountsMessage | null,
};

/** A known dialect by its name, a function of the app's worker as `worker:NAME`, or an app's own table. */
export type DialectMessage = string | OwnDialectMessage;

/** Which header says what; names in any case. */
export type OwnDialectMessage = {
  /** Units in a window. */
  limit?: string | null,
  /** Units left. */
  remaining?: string | null,
  /** Units used. */
  used?: string | null,
  /** When the window starts anew. */
  reset?: TimedMessage | null,
  /** How long to wait after a refusal; wins over `Retry-After`. */
  retryAfter?: TimedMessage | null,
  /** What the request has cost. */
  cost?: string | null,
  /** The window. */
  window?: OwnWindowMessage | null,
  /** What the server calls the limit. */
  scope?: string | null,
};

/** A header that tells a time: its name, or that and how it is written. */
export type TimedMessage = string | {
  /** The name. */
  header: string,
  /** `delta-seconds`, `delta-ms`, `epoch-seconds`, `epoch-ms`, `http-date`, `iso-date`, `duration` or `auto`. */
  kind?: string | null,
};

/** A window: in a header, as text or in milliseconds. */
export type OwnWindowMessage = number | string | {
  /** Its name. */
  header: string,
  /** `delta-seconds`, `delta-ms` or `duration`. */
  kind?: string | null,
};

/** A window as text or in milliseconds. */
export type WindowMessage = number | string;

/** How the server takes idempotency keys. */
export type IdempotencyMessage = {
  /** The header's name. */
  header: string,
  /** How long the server honours a key, in milliseconds; a day by default. */
  ttlMs?: number | null,
};

/** What bulk and background jobs leave for other lanes. */
export type ReserveMessage = {
  /** The part of each limit that is kept for the interactive lane, from 0 to 0.9. */
  interactive?: number | null,
};

/** The fields of `credentials`. */
export type Credentials = {
  /** The budget. */
  budget: string,
  /** The headers to add to each of its requests; none if the tab has none. */
  headers?: Secrets | null,
};

/** Headers by name, as a tab gives them. Shows no value. */
export type Secrets = { [key in string]: string };

/** Who speaks: every message of a host carries it, so that a tab notices a new host. */
export type Stamp = {
  /** The protocol's version. */
  paceline: number,
  /** A random name of the host's life. */
  instance: string,
  /** Its epoch. */
  epoch: number,
  /** The tab's number of the request that this answers. */
  re?: number,
};

/** A message of the host. */
export type HostMessage = { "type": "welcome",
  /** The kind of host. */
  host: string,
  /** Whether jobs survive a restart. */
  durable: boolean,
  /** The host's version. */
  version: string,
  /** When the database was made, in milliseconds since the epoch; another one has lost what was accepted. */
  birth: number,
} | { "type": "accepted",
  /** The one job of an `enqueue`. */
  job?: AcceptedJob,
  /** The group of an `enqueue-many`. */
  group?: string,
  /** How many jobs the request held. */
  total: number,
  /** Jobs of an `enqueue-many` that were known before and are not queued. */
  known?: Array<AcceptedJob>,
} | { "type": "error" } & WireError | { "type": "cancelled",
  /** Jobs that ended cancelled. */
  cancelled: number,
  /** Jobs whose request had left. */
  alreadySent: number,
} | { "type": "retried",
  /** Jobs that wait again. */
  retried: number,
  /** Jobs that need `force`. */
  needsForce: number,
  /** Jobs of whose key a later one is done. */
  stale: number,
} | { "type": "prioritised",
  /** Jobs that wait in the lane now. */
  moved: number,
  /** Jobs whose request had left. */
  alreadySent: number,
} | { "type": "ok" } | { "type": "snapshot",
  /** The snapshot. */
  snapshot: SnapshotMessage,
} | { "type": "jobs",
  /** The jobs, in order of acceptance. Each gets its `url`, `method` and `meta` beside what is typed here. */
  jobs: Array<JobView>,
  /** The cursor to ask on with, none at the end. */
  next: number | null,
} | { "type": "estimate",
  /** The estimate. */
  estimate: EstimateMessage,
} | { "type": "simulation",
  /** The simulation. */
  simulation: SimulationMessage,
} | { "type": "metrics",
  /** What was counted. */
  metrics: MetricsMessage,
} | { "type": "diagnosis",
  /** What was seen, and what is wrong. */
  diagnosis: DiagnosisMessage,
} | { "type": "settled",
  /** The job. */
  job: SettledJob,
} | { "type": "group-settled",
  /** The group. */
  group: string,
  /** Jobs done. */
  done: number,
  /** Jobs failed. */
  failed: number,
  /** Jobs cancelled. */
  cancelled: number,
} | { "type": "credentials-wanted",
  /** The budget. */
  budget: string,
  /** `missing`, or `expired` when they worked before. */
  wanted: string,
} | { "type": "event" } & EventMessage;

/** A job as accepted. */
export type AcceptedJob = {
  /** Its name. */
  id: string,
  /** Its present state. */
  state: State,
  /** The code of its failure, when it has failed before. */
  code?: string,
  /** The status of its answer, when it has been answered before. */
  status?: number,
  /** `true` where that is the status of its check, which found the job done. */
  byCheck?: boolean,
};

/** A job as settled. */
export type SettledJob = {
  /** Its name. */
  id: string,
  /** `done`, `failed` or `cancelled`. */
  state: State,
  /** The code of its failure. */
  code?: string,
  /** The status of the last answer. */
  status?: number,
  /** `true` where the answer is that of its check, which found the job done. */
  byCheck?: boolean,
  /** The first 4 KiB of a refused answer. */
  text?: string,
  /** Its group. */
  group?: string,
  /** How many attempts were made. */
  attempts: number,
};

/** A job as a query shows it. */
export type JobView = {
  /** Its name. */
  id: string,
  /** Its place, to ask on with. */
  cursor: number,
  /** Its state. */
  state: State,
  /** The lane it runs in. */
  lane: Lane,
  /** Its ordering key. */
  key?: string,
  /** Its group. */
  group?: string,
  /** Its budget. */
  budget: string,
  /** How many attempts were made. */
  attempts: number,
  /** Why it waits. */
  cause?: string,
  /** Until when, in milliseconds since the epoch, where that is known. */
  until?: number,
  /** How it failed. */
  failure?: FailureView,
  /** How many later jobs were merged into it. */
  coalesced?: number,
  /** The job that it was merged into, whose state it has. */
  mergedInto?: string,
  /** When it settled. */
  settledAt?: number,
};

/** How a job failed. */
export type FailureView = {
  /** The code. */
  code: string,
  /** The status of the last answer. */
  status?: number,
  /** The first 4 KiB of it. */
  text?: string,
};

/** The queue at one instant, as one principal may see it. */
export type SnapshotMessage = {
  /** Jobs by state. */
  counts: Counts,
  /** The latest end of a pause, in milliseconds since the epoch. */
  pausedUntil: number | null,
  /** Milliseconds until all is sent, none while that cannot be known. */
  etaMs: number | null,
  /** Whether the ETA rests on a guess. */
  etaIsEstimate: boolean,
  /** When the scheduler acts next, in milliseconds since the epoch. */
  nextWakeAt: number | null,
  /** Holds of the whole queue. */
  held: Array<string>,
  /** The kind of host. */
  host: HostView,
  /** By lane. */
  byLane: { [key in string]: LaneView },
  /** By group. */
  byGroup: { [key in string]: GroupView },
  /** By budget. */
  byBudget: { [key in string]: BudgetView },
};

/** Jobs by state. */
export type Counts = {
  /** Waiting for their turn. */
  queued: number,
  /** An attempt is on its way. */
  sending: number,
  /** Waiting after a failed attempt. */
  retryWait: number,
  /** Done. */
  done: number,
  /** Failed. */
  failed: number,
  /** Cancelled. */
  cancelled: number,
};

/** The host as a snapshot shows it. */
export type HostView = {
  /** The kind of host. */
  kind: string,
  /** Whether jobs survive a restart. */
  durable: boolean,
  /** A random name of the host's life. */
  instance: string,
  /** Its epoch. */
  epoch: number,
};

/** A lane as a snapshot shows it. */
export type LaneView = {
  /** Jobs that wait. */
  waiting: number,
  /** Jobs on their way. */
  sending: number,
};

/** A group as a snapshot shows it. */
export type GroupView = {
  /** Jobs accepted. */
  total: number,
  /** Milliseconds until its last job is sent, none while that cannot be known. */
  etaMs: number | null,
  /** Waiting for their turn. */
  queued: number,
  /** An attempt is on its way. */
  sending: number,
  /** Waiting after a failed attempt. */
  retryWait: number,
  /** Done. */
  done: number,
  /** Failed. */
  failed: number,
  /** Cancelled. */
  cancelled: number,
};

/** A budget as a snapshot shows it. */
export type BudgetView = {
  /** Jobs that wait. */
  waiting: number,
  /** Jobs on their way. */
  sending: number,
  /** The end of its pause, in milliseconds since the epoch. */
  pausedUntil: number | null,
  /** Whether that is our guess. */
  pauseIsEstimate: boolean,
  /** Its holds. */
  held: Array<string>,
  /** Why its next job waits. */
  cause: string | null,
  /** The rule that defers it, as text, when the cause is `rate`. */
  rule: string | null,
  /** The budget whose rule, pause or hold that is, where it is a parent. */
  by: string | null,
  /** Thousandths of its rules that are used: fewer than 1000 after refusals and lost connections. */
  usedPermille: number,
  /** Milliseconds until all its jobs are sent. */
  etaMs: number | null,
};

/** How long a step would take with what waits now. Instants are in milliseconds since the epoch. */
export type EstimateMessage = {
  /** Milliseconds until the last job is done; none while held. */
  etaMs: number | null,
  /** When the first job starts. */
  startsAt: number | null,
  /** When the last job is done. */
  doneAt: number | null,
  /** Whether a job has to wait for a window of a rule to turn. */
  crossesWindow: boolean,
  /** When the budget is used up for the first time. */
  usedUpAt: number | null,
  /** The rules that are used up, each with the instant when. */
  rules: Array<RuleUseMessage>,
  /** Whether it rests on a guess. */
  isEstimate: boolean,
  /** Whether what follows the first starts was reckoned by whole windows. */
  isExtrapolated: boolean,
};

/** What was seen since the host began, in memory only. */
export type DiagnosisMessage = {
  /** The budget. */
  budget: string,
  /** Requests that were answered. */
  answers: number,
  /** Requests that ended without an answer that a page may read. */
  lost: number,
  /** Answers that were refusals. */
  refusals: number,
  /** Values that were there and could not be read. */
  unreadable: number,
  /** Answers by their status. */
  statuses: { [key in number]: number },
  /** The dialects that answers were read in. */
  dialects: Array<string>,
  /** The headers that could be read, lower case. */
  visible: Array<string>,
  /** What is wrong; empty where nothing was seen to be. */
  findings: Array<FindingMessage>,
};

/** One thing that the server's owner should change. */
export type FindingMessage = {
  /** `nothing-seen`, `headers-hidden`, `wait-hidden`, `key-not-allowed`, `answers-hidden` or `unreadable`. */
  code: string,
  /** What was seen and what to change, for the server's owner. */
  message: string,
  /** The headers to expose or to allow. */
  headers: Array<string>,
};

/** When a rule is used up. */
export type RuleUseMessage = {
  /** Units that it grants in one window, as much as is used of them. */
  limit: number,
  /** Its window. */
  windowMs: number,
  /** When it defers a job for the first time. */
  usedUpAt: number,
};

/** What a plan would come to. Instants are in milliseconds since the epoch. */
export type SimulationMessage = {
  /** Now. */
  beginsAt: number,
  /** When the last job of all is done; none when a budget of the plan is held. */
  doneAt: number | null,
  /** Jobs of the plan. */
  jobs: number,
  /** Units that they cost. */
  units: number,
  /** The steps, in their order. */
  steps: Array<TimelineMessage>,
  /** How long jobs of the plan wait, by lane. */
  byLane: { [key in string]: WaitsMessage },
  /** The budgets of the plan. */
  byBudget: { [key in string]: BudgetUseMessage },
  /** Whether it rests on a guess. */
  isEstimate: boolean,
  /** Whether what follows the first starts was reckoned by whole windows. */
  isExtrapolated: boolean,
};

/** The course of one step. */
export type TimelineMessage = {
  /** When its first job starts. */
  startsAt: number | null,
  /** When its last job is done. */
  doneAt: number | null,
  /** From being handed in to the start. */
  wait: WaitsMessage,
  /** How many jobs are done by when, at most 32 points. */
  points: Array<PointMessage>,
};

/** A point of a timeline. */
export type PointMessage = {
  /** The instant. */
  at: number,
  /** Jobs that are done by then. */
  done: number,
};

/** Waits in milliseconds. Quantiles are at most a quarter above the truth, and never below it. */
export type WaitsMessage = {
  /** Jobs that were counted. */
  jobs: number,
  /** Half of them wait no longer. */
  p50Ms: number | null,
  /** Of twenty, nineteen wait no longer. */
  p95Ms: number | null,
  /** The longest. */
  maxMs: number | null,
};

/** What a plan takes of one budget. */
export type BudgetUseMessage = {
  /** Jobs of the plan. */
  jobs: number,
  /** Units that they cost. */
  units: number,
  /** When it is used up for the first time. */
  usedUpAt: number | null,
  /** The rules that are used up, each with the instant when. */
  rules: Array<RuleUseMessage>,
};

/** What was counted since a host became the owner. Nothing of it is stored: another owner counts anew. */
export type MetricsMessage = {
  /** When it became the owner, in milliseconds since the epoch. */
  since: number,
  /** Now. */
  at: number,
  /** The whole queue. */
  queue: MeterMessage,
  /** The jobs of the principal that asks; none when none were counted. */
  own: MeterMessage | null,
  /** By the budget that jobs were handed in for. */
  byBudget: { [key in string]: BudgetMetricsMessage },
};

/** Counts of jobs and their requests. */
export type MeterMessage = {
  /** Jobs that were stored, that an earlier owner left unsettled, or that a retry brought back. */
  accepted: number,
  /** Jobs done. */
  done: number,
  /** Jobs failed. */
  failed: number,
  /** Jobs cancelled. */
  cancelled: number,
  /** Jobs that wait, are on their way, or whose outcome is not stored yet. */
  live: number,
  /** `accepted` less those that settled and those that live: 0, or there is a bug. */
  unaccounted: number,
  /** Requests that left and came to an end. */
  requests: number,
  /** Those that the server refused unread for a limit. */
  refused: number,
  /** The same among a thousand requests, rounded up; none without requests. */
  refusedPer1000: number | null,
  /** Requests without an answer. */
  unanswered: number,
  /** Answers by status; those beyond 128 statuses as `other`. */
  answers: { [key in string]: number },
  /** Failed jobs by code and last status. */
  failures: Array<FailuresMessage>,
  /** Requests that settled jobs needed. */
  attempts: AttemptsMessage,
  /** From being handed in, or from `notBefore`, to the first request, by lane. */
  waits: { [key in string]: WaitsMessage },
};

/** How many jobs failed for one reason. */
export type FailuresMessage = {
  /** The code. */
  code: string,
  /** The status of the last answer. */
  status: number | null,
  /** How many. */
  jobs: number,
};

/** Requests a job. Quantiles are at most a quarter above the truth, and never below it. */
export type AttemptsMessage = {
  /** Settled jobs that were tried. */
  jobs: number,
  /** Half of them needed no more. */
  p50: number | null,
  /** Of twenty, nineteen needed no more. */
  p95: number | null,
  /** The most. */
  max: number | null,
};

/** Counts of one budget, and how much of its limit was used. */
export type BudgetMetricsMessage = {
  /** How long something waited for it that nobody's wish held up, here or in budgets under it. */
  busyMs: number,
  /** Units of the requests that started in that time. */
  units: number,
  /** Units that its limit allowed in that time; none without rules. */
  allowed: number | null,
  /** The thousandths of the limit that were used; none when nothing had to wait. */
  achievedPermille: number | null,
  /** Jobs that were stored, that an earlier owner left unsettled, or that a retry brought back. */
  accepted: number,
  /** Jobs done. */
  done: number,
  /** Jobs failed. */
  failed: number,
  /** Jobs cancelled. */
  cancelled: number,
  /** Jobs that wait, are on their way, or whose outcome is not stored yet. */
  live: number,
  /** `accepted` less those that settled and those that live: 0, or there is a bug. */
  unaccounted: number,
  /** Requests that left and came to an end. */
  requests: number,
  /** Those that the server refused unread for a limit. */
  refused: number,
  /** The same among a thousand requests, rounded up; none without requests. */
  refusedPer1000: number | null,
  /** Requests without an answer. */
  unanswered: number,
  /** Answers by status; those beyond 128 statuses as `other`. */
  answers: { [key in string]: number },
  /** Failed jobs by code and last status. */
  failures: Array<FailuresMessage>,
  /** Requests that settled jobs needed. */
  attempts: AttemptsMessage,
  /** From being handed in, or from `notBefore`, to the first request, by lane. */
  waits: { [key in string]: WaitsMessage },
};

/** An event, by its `name`. */
export type EventMessage = { "name": "paused", "detail": {
  /** The budget. */
  budget: string,
  /** Until when, in milliseconds since the epoch. */
  until: number,
  /** Whether that is our guess. */
  isEstimate: boolean,
  /** Whether it is longer than what the budget calls long: its jobs are parked, or fail. */
  isLong: boolean,
} } | { "name": "resumed", "detail": {
  /** The budget. */
  budget: string,
} } | { "name": "refused", "detail": {
  /** The budget. */
  budget: string,
  /** The job. */
  job: string,
  /** The status. */
  status: number,
  /** Units that the limiter believed to be free. */
  believedFree: number,
  /** What the server said, in milliseconds. */
  retryAfterMs: number | null,
} } | { "name": "held", "detail": {
  /** The budget; none for the whole queue. */
  budget: string | null,
  /** Why. */
  cause: string,
} } | { "name": "credentials-needed", "detail": {
  /** The budget. */
  budget: string,
  /** `missing`, `expired`, or `refused` when fresh ones were. */
  wanted: string,
} } | { "name": "metrics", "detail": MetricsMessage } | { "name": "config-changed" } | { "name": "storage", "detail": {
  /** What happened, for people. */
  message: string,
} } | { "name": "error", "detail": {
  /** What, for people. */
  message: string,
} };

/** Why a request was refused, as sent to the tab. */
export type WireError = {
  /** The code. */
  code: Code,
  /** The field, as a path in the message: `job.lane`, `jobs[3].url`. For `queue-full` the bound: `maxQueue.jobs` or
 * `maxQueue.bytes`. */
  field?: string,
  /** What was expected there. */
  expected?: string,
  /** What came, shortened. */
  got?: string,
  /** The index of the job in its request. */
  index?: number,
  /** All of this as one sentence. */
  message: string,
};

/** A stable code of the public contract. */
export type Code = "bad-job" | "unknown-budget" | "secret-header" | "never-fits" | "queue-full" | "storage-full" | "storage" | "cleared" | "protocol";

/** The state of a job. */
export type State = "queued" | "sending" | "retry-wait" | "done" | "failed" | "cancelled";

/** The priority class of a job. */
export type Lane = "interactive" | "bulk" | "background";
