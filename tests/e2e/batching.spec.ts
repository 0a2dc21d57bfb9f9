// Many jobs as few requests: each item ends by itself, and none is carried out twice.
import type { Page } from "@playwright/test";
import type { Job } from "../../sw/paceline";
import type { Server } from "./support/server";
import type { Report, Scenario } from "./support/strict";
import { expect, test } from "./support/test";

const PATH = "/contacts/batch";
const SCENARIO: Scenario = {
  limits: [{ limit: 4, window_ms: 1_000, algorithm: "sliding-log" }],
  latency_ms: [20, 120],
  idempotency: true,
};

/** Opens a tab that is connected to the account's queue, whose budget has a batch of up to 20 items. */
async function connect(tab: Page, server: Server, account: string): Promise<string> {
  const api = `${server.http}/strict/${account}/api`;
  await tab.goto(`${server.http}/blank`);
  await tab.evaluate(async ([api, path]) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    window.queue = connect({
      budgets: [{
        id: "api", match: [`${api}/*`], limits: ["4/1s"], idempotency: { header: "Idempotency-Key" },
        batches: { contacts: { url: `${api}${path}`, max: 20, results: "results", matchBy: "id" } },
      }],
    });
    await window.queue.ready;
  }, [api, PATH] as const);
  return api;
}

function handIn(tab: Page, api: string, method: string, count: number): Promise<number> {
  return tab.evaluate(async ([api, method, count]) => {
    const jobs: Job[] = Array.from({ length: count }, (_, id) => ({
      method, url: `${api}/contacts/${id}`, body: { id, owner: "Ada" }, key: `contact:${id}`, batch: "contacts",
    }));
    const bulk = await window.queue.enqueueMany(jobs, { group: "owners" });
    return bulk.total;
  }, [api, method, count] as const);
}

/** The counts of the group, once none of its jobs is unsettled. */
function settled(tab: Page) {
  return tab.evaluate(() => new Promise<{ done: number; failed: number; cancelled: number }>((resolve) => {
    const stop = window.queue.subscribe((snapshot) => {
      const counts = snapshot.byGroup.owners;
      if (!counts || counts.done + counts.failed + counts.cancelled < counts.total) return;
      resolve({ done: counts.done, failed: counts.failed, cancelled: counts.cancelled });
      queueMicrotask(() => stop());
    });
  }));
}

/** The ids of the items of each request. */
const itemsOf = ({ requests }: Report) =>
  requests.map(({ body }) => (JSON.parse(String(body)).items as { id: number }[]).map(({ id }) => id));

test("200 jobs go in batches of 20, over a reload, and items that fail once are sent again", async ({ page, server, strict, account }) => {
  await strict.put(account, { ...SCENARIO, batch: { path: PATH, max: 20, fails: [{ every: 9, status: 503 }] } });
  const api = await connect(page, server, account);
  await handIn(page, api, "PATCH", 200);
  await strict.until(account, ({ accepted }) => accepted >= 3);

  await connect(page, server, account);

  expect(await settled(page)).toEqual({ done: 200, failed: 0, cancelled: 0 });
  const report = await strict.report(account);
  expect(report).toMatchObject({ applied: 200, duplicated: 0, rejected: 0 });
  expect(report.windows[0]!.max_seen).toBeLessThanOrEqual(4);
  const items = itemsOf(report);
  expect(Math.max(...items.map(({ length }) => length))).toBe(20);
  expect(items.slice(0, 3).map(({ length }) => length)).toEqual([20, 20, 20]);
  // A request that the reload left open comes again, under its key.
  const distinct = new Map(report.requests.map(({ idempotency_key }, at) => [idempotency_key, items[at]!]));
  const sent = [...distinct.values()].flat();
  expect(new Set(sent).size).toBe(200);
  expect(sent).toHaveLength(200 + 22);
  // Ten for all of them once; what failed goes again in company, at the worst alone.
  expect(distinct.size).toBeLessThanOrEqual(10 + 22);
});

test("creates whose answer was lost go again as the same request", async ({ page, server, strict, account }) => {
  const faults = [{ nth: 2, kind: "drop-after-apply" }];
  await strict.put(account, { ...SCENARIO, batch: { path: PATH, max: 20 }, faults });
  const api = await connect(page, server, account);
  await handIn(page, api, "POST", 60);

  expect(await settled(page)).toEqual({ done: 60, failed: 0, cancelled: 0 });
  const report = await strict.report(account);
  expect(report).toMatchObject({ applied: 60, duplicated: 0, faults: { "drop-after-apply": 1 } });
  const lost = report.requests.find((request) => (request as any).n === 2)!;
  const again = report.requests.filter(({ idempotency_key }) => idempotency_key === lost.idempotency_key);
  expect(again.length).toBeGreaterThanOrEqual(2);
  expect(new Set(again.map(({ body }) => body)).size).toBe(1);
});

test("each job's promise gives the result of its own item", async ({ page, server, strict, account }) => {
  await strict.put(account, { ...SCENARIO, batch: { path: PATH, max: 20, fails: [{ every: 2, status: 422 }] } });
  const api = await connect(page, server, account);

  const ends = await page.evaluate(async (api) => {
    await window.queue.hold();
    const jobs = await Promise.all([1, 2, 3].map((id) => window.queue.enqueue({
      method: "PATCH", url: `${api}/contacts/${id}`, body: { id }, batch: "contacts",
    })));
    await window.queue.resume();
    return Promise.all(jobs.map(async (job) => {
      try {
        const response = await job.done;
        return { status: response.status, ...(await response.json()) };
      } catch (error: any) {
        return { code: error.code, status: error.status, ...(await error.response.json()) };
      }
    }));
  }, api);

  expect(ends).toEqual([{ id: 1, status: 200 }, { code: "http", id: 2, status: 422 }, { id: 3, status: 200 }]);
  expect((await strict.report(account)).requests).toHaveLength(1);
});

test("what cannot be an item is refused before it is stored", async ({ page, server, account }) => {
  const api = await connect(page, server, account);

  const fields = await page.evaluate((api) => {
    const url = `${api}/contacts/1`;
    const wrong: Job[] = [
      { method: "PATCH", url, body: "plain text", batch: "contacts" },
      { method: "PATCH", url, batch: "contacts" },
      { method: "GET", url, batch: "contacts" },
      { method: "PATCH", url, body: {}, batch: "contacts", cost: 2 },
      { method: "PATCH", url, body: {}, batch: "deals" },
    ];
    return Promise.all(wrong.map((job) => window.queue.enqueue(job).then(() => "taken", ({ field }) => field)));
  }, api);

  expect(fields).toEqual(["body", "body", "batch", "cost", "batch"]);
});
