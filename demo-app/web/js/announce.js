/**
 * What is said aloud and shown in passing: one live region and one toast, both used sparingly.
 */
import { el, setText } from "./dom.js";

const GAP_MS = 3000;
let lastAt = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let pending;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let fading;

/** Says `text` to screen readers; of several within three seconds only the newest is said. @param {string} text */
export function announce(text) {
  clearTimeout(pending);
  const wait = Math.max(0, lastAt + GAP_MS - Date.now());
  pending = setTimeout(() => {
    lastAt = Date.now();
    setText(el("live", HTMLParagraphElement), text);
  }, wait);
}

/** Shows `text` for some seconds and says it. @param {string} text */
export function toast(text) {
  const box = el("toast", HTMLDivElement);
  box.textContent = text;
  box.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { box.hidden = true; }, 6000);
  announce(text);
}
