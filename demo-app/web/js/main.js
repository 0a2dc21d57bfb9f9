/**
 * Puts the page together: the book of people, the table, the banner and the server's panel around one queue.
 * @import { Field, View } from "./types.js"
 */
import { announce, toast } from "./announce.js";
import { ask } from "./ask.js";
import { attempt, Banner } from "./banner.js";
import { Book } from "./book.js";
import { COUNT, FIELDS } from "./contacts.js";
import { Controls } from "./controls.js";
import { el, setText } from "./dom.js";
import { Editor } from "./editor.js";
import { count, plural } from "./format.js";
import { Grid } from "./grid.js";
import { listen } from "./grid-input.js";
import { Groups } from "./groups.js";
import { chooseOwner, learnPace } from "./owner-dialog.js";
import { DEFAULT_TOLD, groupLabel, openQueue } from "./queue.js";
import { Selection } from "./selection.js";
import { resetAccount } from "./server-api.js";
import { ServerPanel } from "./server-panel.js";
import { Sync } from "./sync.js";

const book = new Book();
const selection = new Selection();
const grid = new Grid(book, selection);
const everyone = Array.from({ length: COUNT }, (_, i) => i + 1);
const filter = el("filter", HTMLInputElement);
const show = el("show", HTMLSelectElement);
const panel = new ServerPanel(book);
/** @type {View | null} */
let view = null;

function shownPeople() {
  const words = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  return everyone.filter((id) => {
    const state = show.value === "all" ? null : book.chip(id)?.state;
    if (show.value === "failed" && state !== "failed") return false;
    if (show.value === "changing" && (!state || state === "failed")) return false;
    if (words.length === 0) return true;
    const text = FIELDS.map(({ field }) => book.value(id, field)).join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function refilter() {
  const order = shownPeople();
  grid.show(order);
  setText(el("row-count", HTMLElement), order.length === COUNT ? `${count(COUNT)} people` : `${count(order.length)} of ${count(COUNT)} people`);
  el("grid-empty", HTMLElement).hidden = order.length > 0;
}

function showSelection() {
  const n = selection.size;
  const text = el("selected-count", HTMLElement);
  text.hidden = n === 0;
  setText(text, `${count(n)} selected`);
  el("clear-selection", HTMLButtonElement).hidden = n === 0;
  el("change-owner", HTMLButtonElement).disabled = n === 0 || !queue;
}

/** @type {Awaited<ReturnType<typeof openQueue>> | null} */
let queue = null;

async function start() {
  refilter();
  const serverReady = panel.start().catch((error) => console.warn("the server's panel could not start", error));
  const opened = await openQueue();
  queue = opened;
  const banner = new Banner(opened, book);
  const groups = new Groups(opened, book);
  const sync = new Sync(opened, book, () => grid.visible());
  const controls = new Controls(opened, panel);
  const retry = (/** @type {string} */ id) => void attempt(async () => {
    await opened.retry([id]);
    book.settle(id, { state: "queued", code: null, status: null });
  });
  const editor = new Editor(grid, book, (contact, field, value) => edit(contact, field, value));
  listen(grid, selection, editor, retry);

  /** @param {number} contact @param {Field} field @param {string} value */
  function edit(contact, field, value) {
    const { job, accepted } = opened.edit(contact, { [field]: value });
    panel.wake();
    void attempt(() => sync.follow([job], accepted));
  }

  async function changeOwner() {
    const people = selection.list();
    const first = people[0];
    if (first === undefined) return;
    const owner = await chooseOwner(people.length, book.value(first, "name"), view);
    if (!owner) return;
    const { group, jobs, accepted } = opened.changeOwner(people, owner);
    selection.none();
    grid.focus(grid.active.index, grid.active.column);
    panel.wake();
    await attempt(async () => {
      await sync.follow(jobs, accepted);
      announce(`${groupLabel(group)}: ${plural(people.length, "change")} queued.`);
    });
  }

  async function startOver() {
    const sure = await ask({
      title: "Start over?", text: "What is waiting is cancelled, the server forgets what it saw, and everyone gets their first values back.",
      yes: "Start over", no: "Keep everything",
    });
    if (!sure) return;
    await attempt(async () => {
      for (const group of view?.groups ?? []) if (group.waiting + group.sending > 0) await opened.cancel({ group: group.id });
      const singles = book.live().filter((change) => change.group === null).map((change) => change.id);
      if (singles.length > 0) await opened.cancel(singles);
      await opened.clear();
      if (opened.canConfigure) await opened.tell(DEFAULT_TOLD);
      await resetAccount();
      groups.dismissAll();
      panel.reset();
      book.reset();
      await controls.load();
      toast("Everything is as at the start.");
    });
  }

  el("change-owner", HTMLButtonElement).addEventListener("click", () => void changeOwner());
  el("clear-selection", HTMLButtonElement).addEventListener("click", () => {
    selection.none();
    grid.focus(grid.active.index, grid.active.column);
  });
  el("start-over", HTMLButtonElement).addEventListener("click", () => void startOver());
  let stale = false;
  book.addEventListener("change", () => { stale = true; });
  setInterval(() => {
    book.sweep();
    if (stale && show.value !== "all" && !editor.open) refilter();
    stale = false;
  }, 1000);

  opened.on("host-crashed", () => toast("The queue’s worker stopped. It starts again by itself; nothing is lost."));
  opened.on("storage", (detail) => toast(`This device has trouble storing changes: ${detail.message ?? "unknown reason"}.`));
  opened.on("config-changed", () => void controls.load());
  opened.watch((next) => {
    view = next;
    learnPace(next);
    banner.show(next);
    groups.show(next);
    sync.see(next);
    if (next.host) showHost(next.host);
  });
  const info = await opened.ready();
  showHost({ kind: info?.host ?? "unknown", durable: info?.durable !== false });
  showSelection();
  await Promise.all([sync.rebuild(), serverReady.then(() => controls.load())]);
}

/** @param {{ kind: string, durable: boolean }} host */
function showHost(host) {
  const names = { "shared-worker": "Shared worker", "service-worker": "Service worker", "leader-tab": "Leader tab", memory: "This tab only" };
  const name = names[/** @type {keyof typeof names} */ (host.kind)] ?? host.kind;
  setText(el("host-text", HTMLElement), name);
  setText(el("host-more", HTMLElement), host.durable ? "· kept over reloads" : "· not kept over reloads");
  el("host", HTMLElement).dataset["state"] = host.durable ? "ok" : "weak";
}

filter.addEventListener("input", refilter);
show.addEventListener("change", refilter);
el("clear-filter", HTMLButtonElement).addEventListener("click", () => {
  filter.value = "";
  show.value = "all";
  refilter();
  filter.focus();
});
selection.addEventListener("change", showSelection);

start().catch((error) => {
  console.error(error);
  el("queue", HTMLElement).dataset["tone"] = "failed";
  setText(el("queue-title", HTMLElement), "The queue could not start");
  setText(el("queue-detail", HTMLElement), error instanceof Error ? error.message : String(error));
  setText(el("host-text", HTMLElement), "No queue");
});
