// The strict server's scenario and report API, called from the test and never from a browser: the judge is not the accused.

export interface Limit {
  limit: number;
  window_ms: number;
  algorithm: string;
}

/** The fields of a scenario; those left out have the server's defaults. */
export interface Scenario {
  limits?: Limit[];
  max_in_flight?: number | null;
  dialect?: string;
  retry_after?: string;
  latency_ms?: [number, number];
  count_at?: "arrival" | "middle" | "answer";
  idempotency?: boolean;
  expose_headers?: boolean;
  cors_on_refusals?: boolean;
  clock_skew_ms?: number;
  outside_per_s?: number;
  cost?: Record<string, number>;
  faults?: Record<string, unknown>[];
  [field: string]: unknown;
}

export interface SeenRequest {
  at_ms: number;
  arrived_ms: number;
  method: string;
  path: string;
  status: number;
  idempotency_key: string | null;
  body: unknown;
  in_flight: number;
  rule?: unknown;
}

export interface Report {
  accepted: number;
  rejected: number;
  max_in_flight: number;
  windows: { limit: number; window_ms: number; max_seen: number; allowed: number }[];
  applied: number;
  duplicated: number;
  preflights: number;
  requests: SeenRequest[];
  [field: string]: unknown;
}

export interface UntilOptions {
  timeoutMs?: number;
  /** What is waited for, in words, for the error. */
  what?: string;
}

const POLL_MS = 50;

export class Strict {
  constructor(private readonly origin: string) {}

  /** Starts or resets an account. */
  async put(account: string, scenario: Scenario): Promise<void> {
    await this.send("PUT", `/strict/${account}`, scenario);
  }

  /** Changes the given fields and keeps counts and log. */
  async patch(account: string, scenario: Scenario): Promise<void> {
    await this.send("PATCH", `/strict/${account}`, scenario);
  }

  async report(account: string): Promise<Report> {
    return (await this.send("GET", `/strict/${account}/report`)).json() as Promise<Report>;
  }

  /** Asks for the report until the predicate holds, and returns that report. */
  async until(account: string, holds: (report: Report) => boolean, options: UntilOptions = {}): Promise<Report> {
    const { timeoutMs = 30_000, what = holds.toString() } = options;
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const report = await this.report(account);
      if (holds(report)) return report;
      if (Date.now() >= deadline) throw new Error(`not within ${timeoutMs} ms: ${what}; last seen: ${summary(report)}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  private async send(method: string, path: string, body?: unknown): Promise<Response> {
    const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    const response = await fetch(this.origin + path, { method, ...init });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response;
  }
}

function summary(report: Report): string {
  const { requests, ...counts } = report;
  return JSON.stringify({ ...counts, requests: requests.length });
}
