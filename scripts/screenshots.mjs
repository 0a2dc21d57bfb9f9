// Takes the pictures of the README: starts the demo, drives a real Chromium through it, writes docs/img/*.png.
//
//   node scripts/screenshots.mjs              those of the README
//   node scripts/screenshots.mjs held done    only these
//   node scripts/screenshots.mjs all          every state, to look at
//
// DEMO_URL names a demo that already runs; else `cargo run --release` starts one. CHROMIUM or PACELINE_CHROMIUM names the
// browser; else the one that `cargo xtask setup` found, else the first in PATH.
import { spawn } from "node:child_process";
import { accessSync, constants, mkdirSync, readFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "@playwright/test";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const OUT = join(ROOT, "docs/img");
const START_MS = 15 * 60_000;
const DESK = { viewport: { width: 1440, height: 900 } };
const PHONE = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

/** Each picture: the kind of screen, and what is done before it is taken. @type {Record<string, { screen: object, scene: (s: Scene) => Promise<void> }>} */
const PICTURES = {
  empty: { screen: DESK, scene: async () => {} },
  confirm: { screen: DESK, scene: (s) => s.openDialog() },
  running: { screen: DESK, scene: (s) => s.runUntil(320) },
  held: { screen: DESK, scene: async (s) => { await s.runUntil(30); await s.hold(); } },
  paused: { screen: DESK, scene: async (s) => { await s.runUntil(60); await s.lowerLimit(); } },
  failed: { screen: DESK, scene: (s) => s.failSome() },
  done: { screen: DESK, scene: (s) => s.finish() },
  dark: { screen: { ...DESK, colorScheme: "dark" }, scene: (s) => s.runUntil(60) },
  phone: { screen: PHONE, scene: (s) => s.runUntil(25) },
  "phone-server": { screen: PHONE, scene: async (s) => { await s.runUntil(60); await s.openPanel(); } },
};

const README = ["running", "paused", "dark", "phone"];

class Scene {
  /** @param {import("@playwright/test").Page} page */
  constructor(page) {
    this.page = page;
  }

  /** Opens a page on a fresh account. @param {string} url */
  async start(url) {
    await this.page.goto(url);
    await this.page.locator("#host[data-state]").waitFor();
    await this.page.locator("#change-owner").waitFor({ state: "attached" });
  }

  async openDialog() {
    await this.page.getByRole("checkbox", { name: "Select everyone shown" }).check();
    await this.page.getByRole("button", { name: "Change owner" }).click();
    await this.page.getByRole("radio", { name: "Elin Sund" }).check();
  }

  /** @param {number} saved */
  async runUntil(saved) {
    await this.openDialog();
    await this.page.getByRole("button", { name: /^Change [\d,]+ contacts?$/ }).click();
    await this.waitSaved(saved);
    await this.scrollTo(saved - 1);
  }

  /** @param {number} n */
  async waitSaved(n) {
    await this.page.waitForFunction((least) => Number(document.getElementById("count-saved")?.textContent?.replace(/\D/g, "")) >= least, n, { timeout: 120_000 });
  }

  /** @param {number} row */
  async scrollTo(row) {
    await this.page.locator("#grid").evaluate((grid, to) => {
      grid.scrollTop = to * parseFloat(getComputedStyle(grid).getPropertyValue("--row-height"));
    }, Math.max(0, row));
    await this.settle();
  }

  async hold() {
    await this.page.getByRole("button", { name: "Hold" }).click();
    await this.page.getByText("On hold", { exact: true }).waitFor();
    await this.settle();
  }

  async lowerLimit() {
    await this.page.getByRole("button", { name: "Lower the limit" }).click();
    await this.page.getByText(/resumes in|trying again in/).waitFor({ timeout: 30_000 });
    await this.settle(300);
  }

  /** Some changes are refused for good by a server that says 422 to every fifth. */
  async failSome() {
    await this.page.evaluate(() => fetch("/strict/demo", {
      method: "PATCH", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ faults: [{ kind: "status", status: 422, every: 5 }] }),
    }));
    await this.runUntil(30);
    await this.scrollTo(18);
    await this.settle(1200);
  }

  async finish() {
    for (const name of ["Karim Schmidt", "Adaeze Lefevre", "Jonas Ivanova"]) await this.page.getByRole("checkbox", { name: `Select ${name}` }).first().check();
    await this.page.getByRole("button", { name: "Change owner" }).click();
    await this.page.getByRole("radio", { name: "Grace Kim" }).check();
    await this.page.getByRole("button", { name: "Change 3 contacts" }).click();
    await this.page.getByText("All changes saved").waitFor();
    await this.settle();
  }

  async openPanel() {
    await this.page.getByRole("button", { name: /What the server saw/ }).click();
    await this.settle();
  }

  /** Lets the polling and the drawing catch up: a picture needs no exact instant. */
  async settle(ms = 700) {
    await this.page.waitForTimeout(ms);
  }
}

function browserPath() {
  const named = process.env["CHROMIUM"] ?? process.env["PACELINE_CHROMIUM"];
  if (named) return named;
  try {
    return JSON.parse(readFileSync(join(ROOT, "target/browsers.json"), "utf8")).chromium;
  } catch { /* not set up by xtask: look in PATH */ }
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  for (const name of ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]) {
    for (const folder of folders) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch { /* the next */ }
    }
  }
  return undefined; // Playwright's own, if it has one
}

/** @returns {Promise<{ url: string, stop: () => void }>} */
async function startDemo() {
  if (process.env["DEMO_URL"]) return { url: process.env["DEMO_URL"], stop() {} };
  const args = ["run", "--release", "--", "--serve-only", "--addr", "127.0.0.1:0", "--tls-addr", "127.0.0.1:0"];
  const demo = spawn("cargo", args, { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => {
    demo.kill();
    process.exit(1);
  });
  const url = await new Promise((done, fail) => {
    let text = "";
    const late = setTimeout(() => fail(new Error("the demo did not start in time")), START_MS);
    demo.on("error", fail);
    demo.on("exit", (code) => fail(new Error(`the demo ended with code ${code}`)));
    demo.stdout.on("data", (chunk) => {
      text += chunk;
      const found = /listening (http:\/\/\S+)/.exec(text);
      if (!found) return;
      clearTimeout(late);
      done(found[1]);
    });
  });
  return { url, stop: () => demo.kill() };
}

/** @param {string} url @param {string} name */
async function take(url, name) {
  const picture = /** @type {NonNullable<typeof PICTURES[string]>} */ (PICTURES[name]);
  await fetch(new URL("/strict/demo", url), { method: "DELETE" });
  const browser = await chromium.launch({
    executablePath: browserPath(),
    args: ["--disable-background-networking", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])],
  });
  try {
    const page = await browser.newPage(picture.screen);
    const scene = new Scene(page);
    await scene.start(url);
    await picture.scene(scene);
    await page.mouse.move(0, 0);
    await page.screenshot({ path: join(OUT, `${name}.png`) });
    console.log(`docs/img/${name}.png`);
  } finally {
    await browser.close();
  }
}

const asked = process.argv.slice(2);
const names = asked.length === 0 ? README : asked[0] === "all" ? Object.keys(PICTURES) : asked;
const unknown = names.find((name) => !PICTURES[name]);
if (unknown) throw new Error(`there is no picture ${unknown}; known are ${Object.keys(PICTURES).join(", ")}`);

mkdirSync(OUT, { recursive: true });
const demo = await startDemo();
try {
  for (const name of names) await take(demo.url, name);
} finally {
  demo.stop();
}
