// The main job, end to end: bulk work of one or more tabs reaches a strict server exactly once and never above its limit.
import type { BrowserContext, Page } from "@playwright/test";
import type { Job, Queue } from "../../sw/paceline";
import type { Scenario } from "./support/strict";
import { expect, test } from "./support/test";

const SLIDING: Scenario = {
  limits: [{ limit: 50, window_ms: 1_000, algorithm: "sliding-log" }],
  latency_ms: [20, 120],
  idempotency: true,
};

interface Connection {
  api: string;
  limit?: string;
  maxInFlight?: number;
}

/** Connects a tab to the queue that all tests of one context share. */
async function connect(tab: Page, { api, limit = "50/1s", maxInFlight }: Connection): Promise<void> {
  await tab.evaluate(async ([api, limit, maxInFlight]) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    window.queue = connect({
      budgets: [{ id: "api", match: [`${api}/*`], limits: [limit], maxInFlight, idempotency: { header: "Idempotency-Key" } }],
    });
    await window.queue.ready;
  }, [api, limit, maxInFlight] as const);
}

/** Hands in `count` edits as one bulk action and returns how they ended. */
function bulk(tab: Page, api: string, count: number, group: string) {
  return tab.evaluate(async ([api, count, group]) => {
    const jobs: Job[] = Array.from({ length: count }, (_, n) => ({
      method: "PATCH", url: `${api}/contacts/${group}-${n}`, body: { owner: "Mira" }, key: `${group}:${n}`,
    }));
    const bulk = await window.queue.enqueueMany(jobs, { group });
    return bulk.settled;
  }, [api, count, group] as const);
}

test.describe("a bulk of one tab", () => {
  for (const [name, address] of [["HTTP/1.1", "http"], ["HTTP/2", "https"]] as const) {
    test(`is never refused over ${name}`, async ({ openTabs, strict, account, server }) => {
      await strict.put(account, SLIDING);
      const [tab] = await openTabs(1);
      const api = `${server[address]}/strict/${account}/api`;
      await connect(tab!, { api });

      const settled = await bulk(tab!, api, 300, "bulk");

      expect(settled).toEqual({ done: 300, failed: 0, cancelled: 0 });
      const report = await strict.report(account);
      expect(report).toMatchObject({ accepted: 300, rejected: 0, applied: 300, duplicated: 0 });
      expect(report.windows[0]!.max_seen).toBeLessThanOrEqual(50);
    });
  }
});

test("two tabs keep one limit and each hears of its own jobs", async ({ openTabs, strict, account, server }) => {
  await strict.put(account, SLIDING);
  const tabs = await openTabs(2);
  const api = `${server.https}/strict/${account}/api`;
  for (const tab of tabs) await connect(tab, { api });

  const settled = await Promise.all(tabs.map((tab, n) => bulk(tab, api, 250, `tab${n}`)));

  expect(settled).toEqual(Array(2).fill({ done: 250, failed: 0, cancelled: 0 }));
  const report = await strict.report(account);
  expect(report).toMatchObject({ accepted: 500, rejected: 0, applied: 500, duplicated: 0 });
  expect(report.windows[0]!.max_seen).toBeLessThanOrEqual(50);
});

test("an edit goes before what is left of a bulk, which can be cancelled", async ({ openTabs, strict, account, server }) => {
  const limit = 20;
  await strict.put(account, { ...SLIDING, limits: [{ limit, window_ms: 1_000, algorithm: "sliding-log" }] });
  const [tab] = await openTabs(1);
  const api = `${server.http}/strict/${account}/api`;
  await connect(tab!, { api, limit: `${limit}/1s` });
  const settled = bulk(tab!, api, 2_000, "bulk");
  const { arrivals } = await strict.until(account, ({ accepted }) => accepted >= 2 * limit);

  const status = await tab!.evaluate(async (api) => {
    const job = await window.queue.enqueue({ method: "PATCH", url: `${api}/edit`, body: { name: "Ada" }, key: "edit" });
    return (await job.done).status;
  }, api);
  const cancelled = await tab!.evaluate(() => window.queue.cancel("bulk"));

  expect(status).toBe(200);
  const { requests } = await strict.report(account);
  const position = requests.findIndex(({ path }) => path === "/edit");
  // No more go first than were on their way when it was handed in.
  expect(position - (arrivals as number)).toBeLessThanOrEqual(limit);
  const ended = await settled;
  expect(ended).toMatchObject({ failed: 0, cancelled: cancelled.cancelled });
  expect(ended.done + ended.cancelled).toBe(2_000);
});
