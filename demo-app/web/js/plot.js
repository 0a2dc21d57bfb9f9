/**
 * The live plot: one bar a second for the last minute, taken below and refused on top, against the limit as it was then.
 * Owns the canvas and the counts of the last minute; it draws only while it can be seen.
 */
import { el, h } from "./dom.js";
import { count, plural } from "./format.js";

const SPAN = 60;
const TABLE_ROWS = 10;

/** @typedef {{ taken: number, refused: number }} Second */

export class Plot {
  #canvas = el("plot", HTMLCanvasElement);
  #rows = el("plot-rows", HTMLTableSectionElement);
  /** @type {Map<number, Second>} by whole second of the server's clock */ #seconds = new Map();
  /** @type {{ from: number, perSecond: number }[]} */ #limits = [];
  /** What the server's clock shows at performance.now() 0. */
  #offset = 0;
  #anchored = false;
  #visible = true;
  /** @type {Record<string, string>} */ #colors = {};
  #calm = matchMedia("(prefers-reduced-motion: reduce)");
  #spokenAt = 0;

  constructor() {
    new ResizeObserver(() => this.#fit()).observe(this.#canvas);
    new IntersectionObserver((entries) => { this.#visible = entries.at(-1)?.isIntersecting ?? true; }).observe(this.#canvas);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", () => this.#readColors());
    this.#readColors();
    this.#loop();
  }

  clear() {
    this.#seconds.clear();
    this.#limits = [];
    this.#anchored = false;
  }

  /** @param {number} nowMs the server's clock */
  setClock(nowMs) {
    const offset = nowMs - performance.now();
    // Answers take their time, so the largest offset seen is the nearest; only a real jump goes back.
    if (!this.#anchored || offset > this.#offset || this.#offset - offset > 1500) this.#offset = offset;
    this.#anchored = true;
  }

  /** @param {number} atMs @param {boolean} refused */
  add(atMs, refused) {
    const second = Math.floor(atMs / 1000);
    const entry = this.#seconds.get(second) ?? { taken: 0, refused: 0 };
    if (refused) entry.refused += 1;
    else entry.taken += 1;
    this.#seconds.set(second, entry);
  }

  /** @param {number} perSecond */
  setLimit(perSecond) {
    if (this.#limits.at(-1)?.perSecond === perSecond) return;
    this.#limits.push({ from: this.#limits.length === 0 ? -Infinity : this.#now() / 1000, perSecond });
    if (this.#limits.length > 100) this.#limits.shift();
  }

  /** The last full second, for the line of a collapsed panel. */
  latest() {
    return this.#seconds.get(Math.floor(this.#now() / 1000) - 1) ?? { taken: 0, refused: 0 };
  }

  #now() {
    return performance.now() + this.#offset;
  }

  #loop() {
    let last = 0;
    /** @param {number} at */
    const step = (at) => {
      if (at - last >= (this.#calm.matches ? 1000 : 40)) {
        last = at;
        if (this.#visible && this.#canvas.offsetWidth > 0) this.#draw();
        if (at - this.#spokenAt > 2000) this.#describe(at);
      }
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  #fit() {
    const ratio = devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.#canvas;
    this.#canvas.width = Math.round(clientWidth * ratio);
    this.#canvas.height = Math.round(clientHeight * ratio);
    if (clientWidth > 0) this.#draw();
  }

  #readColors() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ok", "no", "limit", "grid", "text"]) this.#colors[name] = style.getPropertyValue(`--plot-${name}`).trim();
    this.#colors["font"] = style.getPropertyValue("--font").trim();
  }

  /** @param {number} a first second @param {number} b last second */
  #top(a, b) {
    let most = 0;
    for (const [second, { taken, refused }] of this.#seconds) if (second >= a && second <= b) most = Math.max(most, taken + refused);
    for (const { perSecond } of this.#limits.slice(-3)) most = Math.max(most, perSecond * 1.15);
    return Math.max(4, Math.ceil(most * 1.12));
  }

  #draw() {
    const g = this.#canvas.getContext("2d");
    if (!g) return;
    const ratio = devicePixelRatio || 1;
    const width = this.#canvas.clientWidth;
    const height = this.#canvas.clientHeight;
    const color = this.#colors;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = `11px ${color["font"]}`;
    const area = { left: 26, right: width - 2, top: 8, bottom: height - 18 };
    const now = this.#calm.matches ? Math.floor(this.#now() / 1000) : this.#now() / 1000;
    const top = this.#top(Math.floor(now) - SPAN, Math.floor(now));
    /** @param {number} second */
    const x = (second) => area.right - ((now - second) / SPAN) * (area.right - area.left);
    /** @param {number} n */
    const y = (n) => area.bottom - (n / top) * (area.bottom - area.top);
    this.#drawAxes(g, area, x, y, now);
    g.save();
    g.beginPath();
    g.rect(area.left, 0, area.right - area.left, height);
    g.clip();
    this.#drawBars(g, x, y, now);
    this.#drawLimit(g, area, x, y, now);
    g.restore();
  }

  /** @typedef {{ left: number, right: number, top: number, bottom: number }} Area */
  /** @param {CanvasRenderingContext2D} g @param {Area} area @param {(s: number) => number} x @param {(n: number) => number} y @param {number} now */
  #drawAxes(g, area, x, y, now) {
    g.fillStyle = this.#colors["text"] ?? "";
    g.strokeStyle = this.#colors["grid"] ?? "";
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(area.left, Math.round(area.bottom) + 0.5);
    g.lineTo(area.right, Math.round(area.bottom) + 0.5);
    g.stroke();
    g.textBaseline = "middle";
    g.textAlign = "right";
    g.fillText("0", area.left - 6, area.bottom);
    const limit = this.#limits.at(-1)?.perSecond;
    if (limit !== undefined) g.fillText(limit < 10 && limit % 1 ? limit.toFixed(1) : count(Math.round(limit)), area.left - 6, y(limit));
    g.textBaseline = "alphabetic";
    for (const ago of [60, 45, 30, 15]) {
      g.textAlign = ago === 60 ? "left" : "center";
      g.fillText(`−${ago} s`, ago === 60 ? area.left : x(now - ago), area.bottom + 14);
    }
    g.textAlign = "right";
    g.fillText("now", area.right, area.bottom + 14);
  }

  /** @param {CanvasRenderingContext2D} g @param {(s: number) => number} x @param {(n: number) => number} y @param {number} now */
  #drawBars(g, x, y, now) {
    const step = x(1) - x(0);
    const wide = Math.max(2, step - 1.5);
    for (const [second, { taken, refused }] of this.#seconds) {
      if (second < now - SPAN - 1) {
        if (second < now - 2 * SPAN) this.#seconds.delete(second);
        continue;
      }
      const left = x(second);
      if (taken > 0) {
        g.fillStyle = this.#colors["ok"] ?? "";
        g.fillRect(left, y(taken), wide, y(0) - y(taken));
      }
      if (refused > 0) this.#drawRefused(g, left, wide, y(taken), y(taken + refused));
    }
  }

  /** Hollow, with a cross on top: not told by colour alone. @param {CanvasRenderingContext2D} g @param {number} left @param {number} wide @param {number} bottom @param {number} top */
  #drawRefused(g, left, wide, bottom, top) {
    g.strokeStyle = this.#colors["no"] ?? "";
    g.lineWidth = 1.5;
    g.strokeRect(left + 0.75, top, wide - 1.5, Math.max(1, bottom - top - 1));
    const cx = left + wide / 2;
    const cy = Math.max(5, top - 6);
    g.lineWidth = 1.75;
    g.beginPath();
    g.moveTo(cx - 3, cy - 3);
    g.lineTo(cx + 3, cy + 3);
    g.moveTo(cx + 3, cy - 3);
    g.lineTo(cx - 3, cy + 3);
    g.stroke();
  }

  /** @param {CanvasRenderingContext2D} g @param {Area} area @param {(s: number) => number} x @param {(n: number) => number} y @param {number} now */
  #drawLimit(g, area, x, y, now) {
    g.strokeStyle = this.#colors["limit"] ?? "";
    g.lineWidth = 1.5;
    g.setLineDash([5, 4]);
    g.beginPath();
    this.#limits.forEach(({ from, perSecond }, i) => {
      const until = this.#limits[i + 1]?.from ?? now;
      if (until < now - SPAN) return;
      const level = Math.round(y(perSecond)) + 0.5;
      const start = Math.max(area.left, x(from));
      if (i === 0 || start === area.left) g.moveTo(start, level);
      else g.lineTo(start, level);
      g.lineTo(x(until), level);
    });
    g.stroke();
    g.setLineDash([]);
  }

  /** The same in words. @param {number} at */
  #describe(at) {
    this.#spokenAt = at;
    const newest = Math.floor(this.#now() / 1000) - 1;
    let taken = 0;
    let refused = 0;
    let most = 0;
    for (const [second, entry] of this.#seconds) {
      if (second < newest - SPAN) continue;
      taken += entry.taken;
      refused += entry.refused;
      most = Math.max(most, entry.taken + entry.refused);
    }
    const limit = this.#limits.at(-1)?.perSecond;
    const label = taken + refused === 0 ? "No requests in the last minute."
      : `In the last minute ${plural(taken, "request")} taken and ${count(refused)} refused; at most ${count(most)} in one second${limit ? `, limit ${limit < 10 && limit % 1 ? limit.toFixed(1) : Math.round(limit)} a second` : ""}.`;
    if (this.#canvas.getAttribute("aria-label") !== label) this.#canvas.setAttribute("aria-label", label);
    if (!this.#rows.closest("details")?.open) return;
    const rows = Array.from({ length: TABLE_ROWS }, (_, i) => {
      const entry = this.#seconds.get(newest - i) ?? { taken: 0, refused: 0 };
      return h("tr", {}, h("td", {}, String(i + 1)), h("td", {}, count(entry.taken)), h("td", {}, count(entry.refused)));
    });
    this.#rows.replaceChildren(...rows);
  }
}
