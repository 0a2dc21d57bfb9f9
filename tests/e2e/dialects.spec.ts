// What servers say of limits, in the dialects that the strict server speaks: a queue that was told twice of what is granted
// learns it and is hardly refused any more, and it ends its work too where a browser hides what the server says.
import type { Page } from "@playwright/test";
import type { Job } from "../../sw/paceline";
import type { Report, Scenario } from "./support/strict";
import { expect, test } from "./support/test";

const DIALECTS = ["github", "hubspot", "shopify", "ietf", "stripe"];

/** A server that grants so many in a second. */
function granting(limit: number, more: Scenario): Scenario {
  return { limits: [{ limit, window_ms: 1_000, algorithm: "sliding-log" }], latency_ms: [20, 60], ...more };
}

interface Believed {
  id: string;
  api: string;
  /** What it grants, as the app believes. */
  limit: string;
  dialect: string;
}

/** Connects a tab to one queue with these budgets. */
async function connect(tab: Page, believed: Believed[]): Promise<void> {
  await tab.evaluate(async (believed) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    const idempotency = { header: "Idempotency-Key" };
    const budgets = believed.map(({ id, api, limit, dialect }) => (
      { id, match: [`${api}/*`], limits: [limit], maxInFlight: 20, dialect, idempotency }
    ));
    window.queue = connect({ budgets });
    window.kept = { paused: [] };
    window.queue.addEventListener("paused", ({ detail }) => window.kept.paused.push(detail));
    await window.queue.ready;
  }, believed);
}

/** Hands in so many creations under one address, for which a browser asks leave once. */
function bulk(tab: Page, api: string, count: number) {
  return tab.evaluate(async ([api, count]) => {
    const jobs: Job[] = Array.from({ length: count }, (_, n) => ({ method: "POST", url: `${api}/notes`, body: { n } }));
    const bulk = await window.queue.enqueueMany(jobs);
    return bulk.settled;
  }, [api, count] as const);
}

/** Of the requests that were counted once so many had been admitted: how many there were, and how many were refused. */
function after({ requests }: Report, admitted: number): { all: number; refused: number } {
  let before = 0;
  const later = requests.filter(({ status }) => before >= admitted || (status === 200 && (before += 1) > admitted));
  return { all: later.length, refused: later.filter(({ status }) => status === 429).length };
}

// The engine that reads is the same wasm in every browser; what differs is which headers a page may read.
test.describe("a run of 1,000 under half of what the app believes", () => {
  test.skip(({ browserName }) => browserName !== "chromium", "the words are read by the same code everywhere");

  for (const dialect of DIALECTS) {
    test(`ends, and is hardly refused after the first 200: ${dialect}`, async ({ openTabs, strict, account, server }) => {
      await strict.put(account, granting(150, { dialect }));
      const [tab] = await openTabs(1);
      // The page is of the API's origin: it may read all headers.
      await tab!.goto(`${server.https}/blank`);
      const api = `${server.https}/strict/${account}/api`;
      await connect(tab!, [{ id: "api", api, limit: "300/1s", dialect }]);

      const settled = await bulk(tab!, api, 1_000);

      expect(settled).toEqual({ done: 1_000, failed: 0, cancelled: 0 });
      const report = await strict.report(account);
      expect(report).toMatchObject({ accepted: 1_000, applied: 1_000, duplicated: 0 });
      const { all, refused } = after(report, 200);
      expect(all).toBeGreaterThanOrEqual(800);
      expect(refused * 1_000).toBeLessThanOrEqual(all);
    });
  }
});

test("refusals that a browser hides close the budget by guesses that double, and all is done", async ({ openTabs, strict, account, server }) => {
  // An edge refuses before the API is asked: without CORS headers a page sees a lost connection.
  const few = { limit: 5, window_ms: 60_000, algorithm: "sliding-log" };
  await strict.put(account, { limits: [few], latency_ms: [20, 60], dialect: "none", cors_on_refusals: false });
  const [tab] = await openTabs(1);
  const api = `${server.https}/strict/${account}/api`;
  await connect(tab!, [{ id: "edge", api, limit: "40/1s", dialect: "auto" }]);
  await tab!.evaluate(() => {
    const kept = Object.assign(window.kept, { closings: 0, isClosed: false, shown: [] });
    window.queue.addEventListener("paused", () => {
      if (!kept.isClosed) kept.closings += 1;
      kept.isClosed = true;
    });
    window.queue.addEventListener("resumed", () => (kept.isClosed = false));
    window.queue.subscribe(({ byBudget }) => kept.shown.push(byBudget.edge));
  });
  const settled = bulk(tab!, api, 40);

  await tab!.waitForFunction(() => window.kept.closings >= 3, null, { timeout: 60_000 });
  await strict.patch(account, { limits: [{ ...few, limit: 1_000 }] });

  expect(await settled).toEqual({ done: 40, failed: 0, cancelled: 0 });
  const { paused, shown } = await tab!.evaluate(() => window.kept);
  expect(paused.every(({ isEstimate }: { isEstimate: boolean }) => isEstimate)).toBe(true);
  expect(shown).toContainEqual(expect.objectContaining({ cause: "paused", pauseIsEstimate: true, pausedUntil: expect.any(Number) }));
  const report = await strict.report(account);
  expect(report).toMatchObject({ applied: 40, duplicated: 0 });
  // A refusal arrives before it is heard, and the next request after the pause: the server sees each wait whole.
  const starts = report.requests.map(({ arrived_ms }) => arrived_ms).sort((one, other) => one - other);
  const waits = starts.slice(1).map((start, index) => start - starts[index]!).filter((wait) => wait >= 1_000);
  expect(waits.length).toBeGreaterThanOrEqual(3);
  [1_000, 2_000, 4_000].forEach((guess, index) => expect(waits[index]).toBeGreaterThanOrEqual(guess));
});

test("all is done where another origin may read no header", async ({ openTabs, strict, account, server }) => {
  const accounts = DIALECTS.map((dialect) => ({ dialect, name: `${account}-${dialect}` }));
  // So little that any machine is faster: else it is the machine that paces, and no limit is in the way.
  for (const { dialect, name } of accounts) await strict.put(name, granting(10, { dialect, expose_headers: false }));
  const [tab] = await openTabs(1);
  const apiOf = (name: string) => `${server.https}/strict/${name}/api`;
  await connect(tab!, accounts.map(({ dialect, name }) => ({ id: dialect, api: apiOf(name), limit: "20/1s", dialect })));

  const settled = await Promise.all(accounts.map(({ name }) => bulk(tab!, apiOf(name), 60)));

  expect(settled).toEqual(Array(DIALECTS.length).fill({ done: 60, failed: 0, cancelled: 0 }));
  for (const { name } of accounts) {
    const report = await strict.report(name);
    // It was another origin, and the limit was really in the way.
    expect(report.preflights).toBeGreaterThan(0);
    expect(report.rejected).toBeGreaterThan(0);
    expect(report).toMatchObject({ accepted: 60, applied: 60, duplicated: 0 });
  }
});
