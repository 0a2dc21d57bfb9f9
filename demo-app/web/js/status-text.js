/**
 * What the banner says about the queue, in one title and one line. A view and an instant in, words out.
 * @import { View } from "./types.js"
 */
import { count, countdown, duration, plural } from "./format.js";

/** @typedef {{ tone: "idle" | "busy" | "paused" | "held" | "failed" | "done", icon: string, title: string, detail: string, spoken: string }} Status */

/** @type {Record<string, [title: string, detail: string]>} */
const HOLDS = {
  user: ["On hold", "Nothing is sent until you resume."],
  app: ["On hold", "The app holds the queue."],
  offline: ["You are offline", "Sending goes on when the connection is back."],
  credentials: ["Waiting for a sign-in", "Sending goes on after you sign in again."],
  refusing: ["The server keeps refusing", "Resume sends one request, to see."],
  "retry-budget": ["Too many tries are failing", "Sending has stopped so as not to make it worse."],
  storage: ["This device cannot store changes", "Sending has stopped until there is room again."],
};
const EDIT = matchMedia("(pointer: coarse)").matches ? "tap a cell twice" : "press Enter on a cell";
const HOLD_ORDER = ["offline", "credentials", "storage", "refusing", "retry-budget", "app", "user"];

/** @param {View} view @param {number} now epoch ms @param {string} why the usual reason of the failures @returns {Status} */
export function describe(view, now, why) {
  const live = view.waiting + view.sending;
  const hold = HOLD_ORDER.find((cause) => view.held.includes(cause)) ?? view.held[0];
  if (hold) {
    const [title, detail] = HOLDS[hold] ?? ["On hold", "Nothing is sent."];
    const kept = live > 0 ? ` ${plural(live, "change")} waiting, time left unknown.` : "";
    return { tone: "held", icon: hold === "offline" ? "offline" : "pause", title, detail: detail + kept, spoken: `${title}. ${detail}` };
  }
  if (view.pausedUntil !== null && view.pausedUntil > now && live > 0) return paused(view, view.pausedUntil - now);
  if (live > 0) return running(view, why);
  if (view.failed > 0) {
    const title = `${plural(view.failed, "change")} not saved`;
    return { tone: "failed", icon: "fail", title, detail: `${why ? `${why[0]?.toUpperCase()}${why.slice(1)}. ` : ""}Their rows show the server’s values.`, spoken: title };
  }
  if (view.saved > 0 || view.cancelled > 0) {
    const title = view.cancelled > 0 ? "No changes waiting" : "All changes saved";
    const off = view.cancelled > 0 ? `, ${plural(view.cancelled, "was", "were")} cancelled` : "";
    return { tone: "done", icon: "check", title, detail: `${plural(view.saved, "change")} reached the server${off}.`, spoken: title };
  }
  return { tone: "idle", icon: "check", title: "No changes waiting", detail: `Select people and change their owner, or ${EDIT} to edit it.`, spoken: "" };
}

/** @param {View} view @param {number} left */
function paused(view, left) {
  const title = view.pauseIsEstimate
    ? `The server refused: trying again in about ${countdown(left)}`
    : `The server asked us to wait: resumes in ${countdown(left)}`;
  const detail = `${plural(view.waiting + view.sending, "change")} waiting. ${time(view, "Time left unknown until it takes requests again.")}`;
  return { tone: /** @type {const} */ ("paused"), icon: "clock", title, detail, spoken: "The server asked us to wait. Sending pauses and resumes by itself." };
}

/** @param {View} view @param {string} why */
function running(view, why) {
  const title = `Saving ${plural(view.waiting + view.sending, "change")}`;
  const extra = view.retrying > 0 ? ` ${plural(view.retrying, "change")} will be tried again.` : "";
  const failed = view.failed > 0 ? ` ${count(view.failed)} not saved${why ? `: ${why}` : ""}.` : "";
  return { tone: /** @type {const} */ ("busy"), icon: "send", title, detail: `${time(view, "Time left not known yet.")}${extra}${failed}`, spoken: "Saving changes." };
}

/** @param {View} view @param {string} unknown */
function time(view, unknown) {
  if (view.etaMs === null) return unknown;
  return `About ${duration(view.etaMs)} left.`;
}
