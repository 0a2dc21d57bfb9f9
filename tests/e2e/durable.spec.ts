// Nothing is lost and nothing applied twice over reloads, kills and pauses.
import type { Page } from "@playwright/test";
import type { Job } from "../../sw/paceline";
import type { Server } from "./support/server";
import type { Scenario } from "./support/strict";
import { expect, killSharedWorkers, test } from "./support/test";

const SCENARIO: Scenario = {
  limits: [{ limit: 20, window_ms: 1_000, algorithm: "sliding-log" }],
  latency_ms: [20, 120],
  idempotency: true,
};

/** Opens a tab that is connected to the account's queue. */
async function connect(tab: Page, server: Server, account: string): Promise<string> {
  const api = `${server.http}/strict/${account}/api`;
  await tab.goto(`${server.http}/blank`);
  await tab.evaluate(async (api) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    window.queue = connect({
      budgets: [{ id: "api", match: [`${api}/*`], limits: ["20/1s"], idempotency: { header: "Idempotency-Key" } }],
    });
    await window.queue.ready;
  }, api);
  return api;
}

/** Hands in creates; resolves once they are accepted. */
function handIn(tab: Page, api: string, count: number, group: string): Promise<number> {
  return tab.evaluate(async ([api, count, group]) => {
    const jobs: Job[] = Array.from({ length: count }, (_, n) => ({
      method: "POST", url: `${api}/notes`, body: { note: `${group} ${n}` }, timeoutMs: 2_000,
    }));
    const bulk = await window.queue.enqueueMany(jobs, { group });
    return bulk.total;
  }, [api, count, group] as const);
}

/** The counts of a group, once none of its jobs is unsettled. */
function settled(tab: Page, group: string) {
  return tab.evaluate((group) => new Promise<{ done: number; failed: number; cancelled: number }>((resolve) => {
    const stop = window.queue.subscribe((snapshot) => {
      const counts = snapshot.byGroup[group];
      if (!counts || counts.done + counts.failed + counts.cancelled < counts.total) return;
      resolve({ done: counts.done, failed: counts.failed, cancelled: counts.cancelled });
      queueMicrotask(() => stop());
    });
  }), group);
}

test("a reload of the only tab in the middle loses nothing", async ({ page, server, strict, account }) => {
  await strict.put(account, SCENARIO);
  const api = await connect(page, server, account);
  await handIn(page, api, 100, "bulk");
  await strict.until(account, ({ accepted }) => accepted >= 30);

  await page.reload();
  await connect(page, server, account);

  expect(await settled(page, "bulk")).toEqual({ done: 100, failed: 0, cancelled: 0 });
  const report = await strict.report(account);
  expect(report).toMatchObject({ applied: 100, duplicated: 0, rejected: 0 });
  expect(report.windows[0]!.max_seen).toBeLessThanOrEqual(20);
  const [job] = await page.evaluate(() => window.queue.jobs({ group: "bulk", limit: 1 }));
  expect(job).toMatchObject({ state: "done", group: "bulk", method: "POST" });
});

test("a pause in force before a reload is still in force after it", async ({ page, server, strict, account }) => {
  await strict.put(account, { ...SCENARIO, faults: [{ nth: 5, kind: "status", status: 429, retry_after_s: 6 }] });
  const api = await connect(page, server, account);
  const paused = page.evaluate(() => new Promise<number>((resolve) => {
    window.queue.addEventListener("paused", (event: any) => resolve(event.detail.until), { once: true });
  }));
  await handIn(page, api, 40, "bulk");
  const until = await paused;

  await page.reload();
  await connect(page, server, account);
  const snapshot = await page.evaluate(() => new Promise<any>((resolve) => {
    const stop = window.queue.subscribe((snapshot) => {
      if (snapshot.byBudget.api) resolve(snapshot);
      queueMicrotask(() => stop());
    });
  }));

  expect(snapshot.pausedUntil).toBe(until);
  expect(await settled(page, "bulk")).toEqual({ done: 40, failed: 0, cancelled: 0 });
  const { requests } = await strict.report(account);
  const refused = requests.find(({ status }) => status === 429)!;
  const next = requests.filter(({ at_ms }) => at_ms > refused.at_ms + 500).map(({ at_ms }) => at_ms);
  expect(Math.min(...next)).toBeGreaterThanOrEqual(refused.at_ms + 5_900);
});

test("a killed worker is replaced and nothing is lost or doubled", async ({ page, browser, browserName, server, strict, account }) => {
  test.skip(browserName === "firefox", "Firefox has no command that ends a worker");
  await strict.put(account, SCENARIO);
  const api = await connect(page, server, account);
  const instance = await page.evaluate(async () => (await window.queue.ready).instance);
  const changed = page.evaluate(() => new Promise<string>((resolve) => {
    window.queue.addEventListener("host-changed", (event: any) => resolve(event.detail.instance), { once: true });
  }));
  await handIn(page, api, 80, "bulk");
  await strict.until(account, ({ accepted }) => accepted >= 25);

  await killSharedWorkers(browser, "worker.js");

  expect(await changed).not.toBe(instance);
  expect(await settled(page, "bulk")).toEqual({ done: 80, failed: 0, cancelled: 0 });
  expect(await strict.report(account)).toMatchObject({ applied: 80, duplicated: 0, rejected: 0 });
});

test("a browser killed twenty times loses nothing and applies nothing twice", async ({ profile, server, strict, account }) => {
  test.setTimeout(300_000);
  await strict.put(account, SCENARIO);
  let accepted = 0;
  for (let round = 0; round < 20; round += 1) {
    const context = await profile.launch();
    const tab = context.pages()[0] ?? (await context.newPage());
    const api = await connect(tab, server, account);
    const before = (await strict.report(account)).accepted;
    accepted += await handIn(tab, api, 15, `round${round}`);
    await strict.until(account, (report) => report.accepted > before);
    expect(await profile.kill()).toBeGreaterThan(0);
  }

  const tab = await (await profile.launch()).newPage();
  await connect(tab, server, account);
  for (let round = 0; round < 20; round += 1) {
    expect(await settled(tab, `round${round}`)).toEqual({ done: 15, failed: 0, cancelled: 0 });
  }

  const report = await strict.report(account);
  expect(report).toMatchObject({ applied: accepted, duplicated: 0 });
  expect(report.windows[0]!.max_seen).toBeLessThanOrEqual(20);
});
