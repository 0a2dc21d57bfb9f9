/**
 * "Change owner": whom to, and an honest word on how long it will take before anything is sent.
 * @import { View } from "./types.js"
 */
import { initials, OWNERS } from "./contacts.js";
import { el, h } from "./dom.js";
import { count, duration, plural, rate } from "./format.js";
import { readTold } from "./queue.js";

/** What a change took lately, which is more than the limit alone says: answers take their time too. */
let pace = { ms: 0, told: "" };

/** @param {View} view */
export function learnPace(view) {
  const live = view.waiting + view.sending;
  const isFlowing = view.held.length === 0 && view.pausedUntil === null;
  if (live >= 20 && isFlowing && view.etaMs !== null) pace = { ms: view.etaMs / live, told: JSON.stringify(readTold()) };
}

/** How long `n` more changes take, as far as the client can know. @param {number} n @param {View | null} view */
export function estimate(n, view) {
  const told = readTold();
  const limitMs = told.windowMs / told.limit;
  const isSlower = pace.told === JSON.stringify(told) && pace.ms > limitMs * 1.02;
  const ahead = view ? view.waiting + view.sending : 0;
  const pause = Math.max(0, (view?.pausedUntil ?? 0) - Date.now());
  const ms = (n + ahead) * (isSlower ? pace.ms : limitMs) + pause;
  const speed = isSlower ? `${(1000 / pace.ms).toFixed(1)} a second, the pace of late` : rate(told.limit, told.windowMs);
  const text = `${plural(n, "change")} at ${speed}: about ${duration(ms)}`;
  if (view && view.held.length > 0) return `${text} once the queue is resumed.`;
  return ahead > 0 ? `${text}, with the ${count(ahead)} already waiting.` : `${text}.`;
}

/** @param {number} people @param {string} first the name of one of them @param {View | null} view @returns {Promise<string | null>} the new owner */
export function chooseOwner(people, first, view) {
  const dialog = el("owner-dialog", HTMLDialogElement);
  const form = el("owner-form", HTMLFormElement);
  const list = el("owner-list", HTMLFieldSetElement);
  el("owner-who", HTMLElement).textContent = people === 1 ? first : `${first} and ${plural(people - 1, "other")}`;
  el("owner-title", HTMLElement).textContent = `Change owner of ${plural(people, "contact")}`;
  el("owner-go", HTMLElement).textContent = `Change ${plural(people, "contact")}`;
  const chosen = list.querySelector("input:checked");
  if (list.querySelector("input") === null) list.append(...OWNERS.map(option));
  if (!chosen) /** @type {HTMLInputElement} */ (list.querySelector("input")).checked = true;
  const say = () => { el("owner-estimate", HTMLElement).textContent = estimate(people, view); };
  say();
  el("owner-cancel", HTMLButtonElement).onclick = () => dialog.close("");
  dialog.returnValue = "";
  dialog.showModal();
  /** @type {HTMLInputElement | null} */ (list.querySelector("input:checked"))?.focus();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    const owner = new FormData(form).get("owner");
    resolve(dialog.returnValue === "go" && typeof owner === "string" ? owner : null);
  }, { once: true }));
}

/** @param {string} name @param {number} hue */
function option(name, hue) {
  return h("label", { class: "owner-option" },
    h("input", { type: "radio", name: "owner", value: name }),
    h("span", { class: "avatar", "aria-hidden": "true", "data-hue": String(hue) }, initials(name)),
    h("span", {}, name));
}
