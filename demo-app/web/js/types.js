/**
 * Shapes that several modules share. Types only; nothing runs here.
 *
 * @typedef {"name" | "company" | "email" | "owner" | "stage" | "city"} Field
 * @typedef {{ id: number, name: string, company: string, email: string, owner: string, stage: string, city: string }} Contact
 * @typedef {Partial<Record<Field, string>>} Patch
 *
 * @typedef {"queued" | "sending" | "retry-wait" | "done" | "failed" | "cancelled"} JobState
 *
 * @typedef {object} Job  One change as the queue knows it.
 * @property {string} id
 * @property {JobState} state
 * @property {string | null} group
 * @property {number} contact
 * @property {Patch} patch
 * @property {string | null} code  why it failed
 * @property {number | null} status  the HTTP status, if there was an answer
 * @property {number | null} until  epoch ms at which it is tried again
 * @property {number | null} cursor  its place in the queue's order of acceptance
 *
 * @typedef {object} GroupView  One bulk change in a snapshot.
 * @property {string} id
 * @property {number} total
 * @property {number} waiting
 * @property {number} sending
 * @property {number} saved
 * @property {number} failed
 * @property {number} cancelled
 * @property {number | null} etaMs
 *
 * @typedef {object} View  A snapshot in the page's own words.
 * @property {number} waiting
 * @property {number} retrying
 * @property {number} sending
 * @property {number} saved
 * @property {number} failed
 * @property {number} cancelled
 * @property {number | null} pausedUntil
 * @property {boolean} pauseIsEstimate
 * @property {number | null} etaMs
 * @property {string[]} held  causes of a hold; empty when nothing holds
 * @property {GroupView[]} groups
 * @property {{ kind: string, durable: boolean } | null} host
 *
 * @typedef {{ limit: number, windowMs: number, maxInFlight: number }} Told
 *
 * @typedef {{ at_ms: number, method: string, path: string, status: number | null, body: unknown, fault?: string, rule?: string }} Seen
 *
 * @typedef {object} Report
 * @property {number} accepted
 * @property {number} rejected
 * @property {number} applied
 * @property {number} duplicated
 * @property {number} maxInFlight
 * @property {{ limit: number, window_ms: number, max_seen: number, allowed: number }[]} windows
 * @property {number} total  requests so far
 * @property {number} nowMs  the server's clock, in the unit of at_ms
 * @property {Seen[]} requests  those after the one asked for
 */
export {};
