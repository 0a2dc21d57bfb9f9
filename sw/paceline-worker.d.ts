/** `paceline/worker`: imported by a file of the app, which is then the worker's script (`workerUrl` of `connect`). */

/**
 * Adds an app's functions to the worker. To be called once, in the first turn of the worker's file, after a static import.
 *
 * Throws a `PacelineError` whose `field` names what is not as expected (`dialects.mine`), and with code `protocol` when it
 * is called again, or later. A file that throws is no worker: `ready` rejects with `not-connected` and, where the browser tells
 * them to a page, with its words; every browser writes them to the console.
 */
export function definePaceline(definition: Definition): void;

export interface Definition {
  /**
   * Functions that read what an answer says of limits, by names of 1 to 64 letters, digits, `-`, `_` and `.`; at most 100. A
   * budget names one as `dialect: "worker:NAME"`; one that is not defined is refused with `bad-job`, field `budgets[i].dialect`.
   */
  dialects?: Record<string, DialectFunction>;
}

/**
 * Reads one answer of a budget that names it. It is called in the worker for every answer, errors and answers to checks too, and
 * answers at once: a promise is not waited for. What it throws, what is not of the form, and what is out of bounds counts as
 * absent: the field is told in an `error` event (code `bad-job`, `field` such as `dialects.mine.retryAfterMs`), once in a host's
 * life, and counted in `diagnose`. The answer goes on as it would without that value.
 */
export type DialectFunction = (answer: AnswerView) => Signals | null | undefined;

/** An answer, frozen. The request's own headers and body are not there. */
export interface AnswerView {
  readonly status: number;
  /** What a page of this origin may read, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The first 16 KiB of the body, decoded as UTF-8; empty where there is none. */
  readonly body: string;
  /** Of the request that was sent. */
  readonly url: string;
  readonly method: string;
  /** The instant by this device's clock, in milliseconds since the epoch. */
  readonly now: number;
}

/** What an answer says of limits; what is left out is not said. Waits are rounded up, units down. */
export interface Signals {
  /** Whether it is a refusal for a limit, whatever its status; when absent, 429 and 529 are. */
  isRateLimited?: boolean | null;
  /** How long to wait, in milliseconds, up to 366 days; when absent, `Retry-After` counts. A refusal waits at least 1 s. */
  retryAfterMs?: number | null;
  /** The limits that it names, up to 16. */
  budgets?: BudgetSignal[] | null;
  /** Units that the request has cost. */
  cost?: number | null;
  /** How many requests may be in flight at once, from 1. */
  concurrency?: number | null;
  /** Whether the same request may be sent again, where the status does not tell. */
  retryable?: boolean | null;
  /** Whether `retryAfterMs` is a guess, so that the pause is shown as an estimate. */
  estimated?: boolean | null;
}

export interface BudgetSignal {
  /** What the server calls it, up to 100 bytes; see `scopes` of a budget. */
  scope?: string | null;
  /** Units in a window, and units left, up to 10^12. */
  limit?: number | null;
  remaining?: number | null;
  /** How long until the window starts anew, in milliseconds, up to 366 days. */
  resetInMs?: number | null;
  /** The window, in milliseconds, from 1 to 31 days. */
  windowMs?: number | null;
}
