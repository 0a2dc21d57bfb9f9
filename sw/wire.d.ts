/** What travels between client and host, as far as the JavaScript reads it. */

import type { Check, Code, JobView, Snapshot, State } from "./paceline.js";

export interface StoredRequest {
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: string | Blob | ArrayBuffer;
  meta?: unknown;
  credentials?: RequestCredentials;
  redirect?: "follow" | "error";
  check?: Check;
}

/** What a check's answer tells of the job. */
export type Found = "applied" | "not-applied" | "unclear";

/** The fields of a job that the scheduler reads. */
export interface WireJob {
  id?: string;
  url: string;
  method: string;
  headers: Record<string, string>;
  idempotencyKey?: string;
  [field: string]: unknown;
}

export interface Prepared {
  job: WireJob;
  request: StoredRequest;
  /** Bytes of the request. */
  size: number;
}

export interface Answer {
  status: number;
  statusText: string;
  headers: [string, string][];
  url: string;
  redirected: boolean;
  body: ArrayBuffer | string | null;
  truncated?: boolean;
  text?: string;
  found?: Found;
  told?: Told;
}

/** A value without functions, of bounded size. */
export type Plain = null | boolean | number | string | Plain[] | { [field: string]: Plain };

/** What a function of the app said of an answer, or why it said nothing. */
export type Told = { value: Plain } | { fault: string };

/** How the items of a batch are written, and its results read. */
export interface BatchForm {
  url: string;
  method: string;
  /** The field that holds the items; empty for the whole body. */
  items: string;
  /** The field that holds the results; empty for the whole body, none where there are none. */
  results?: string | null;
  /** The field that an item and its result share; none for their order. */
  matchBy?: string | null;
  /** The field that holds a result's status. */
  status: string;
}

/** What is said of one item. */
export interface ItemResult {
  status: number;
  text?: string;
  response: Answer;
}

export interface AcceptedJob {
  id: string;
  state: State;
  code?: Code;
  status?: number;
  byCheck?: boolean;
}

/** How a job ended. */
export interface Outcome {
  id: string;
  state: State;
  code?: Code;
  status?: number;
  byCheck?: boolean;
  text?: string;
  message?: string;
  cause?: unknown;
  response?: Answer;
}

export interface HostMessage {
  paceline: number;
  re?: number;
  type: string;
  instance?: string;
  epoch?: number;
  name?: string;
  detail?: any;
  host?: string;
  durable?: boolean;
  version?: string;
  /** When the database was made. */
  birth?: number;
  job?: Outcome;
  response?: Answer;
  snapshot?: Snapshot;
  jobs?: JobView[];
  next?: number;
}

export type Post = (message: any, transfer: Transferable[]) => void;
