/** One yes-or-no question at a time, in a native dialog (which keeps and gives back the focus). */
import { el } from "./dom.js";

/** @param {{ title: string, text: string, yes: string, no: string }} words @returns {Promise<boolean>} */
export function ask(words) {
  const dialog = el("ask-dialog", HTMLDialogElement);
  el("ask-title", HTMLElement).textContent = words.title;
  el("ask-text", HTMLElement).textContent = words.text;
  el("ask-yes", HTMLElement).textContent = words.yes;
  el("ask-no", HTMLElement).textContent = words.no;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}
