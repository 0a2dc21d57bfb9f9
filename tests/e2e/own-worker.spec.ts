// A worker's file of the app's own, around the built engine: its functions read what a server says in bodies alone.
import type { Page } from "@playwright/test";
import type { Budget, ConnectOptions, Job } from "../../sw/paceline";
import { test as clientTest } from "./support/client";
import { startServer, type Server } from "./support/server";
import { Strict, type Scenario } from "./support/strict";
import { expect } from "./support/test";

/** Pages of the site that serves the app's files, and the strict server as another origin. */
const test = clientTest.extend<{ strict: Strict; api: (scenario: Scenario) => Promise<{ url: string; account: string }> }, { server: Server }>({
  server: [
    async ({}, use) => {
      const server = await startServer();
      await use(server);
      await server.close();
    },
    { scope: "worker" },
  ],
  strict: async ({ server }, use) => use(new Strict(server.http)),
  api: async ({ server, strict }, use, info) => {
    const account = `own-${info.testId.replace(/[^a-z0-9]/gi, "-")}`;
    await use(async (scenario) => {
      await strict.put(account, { dialect: "body", latency_ms: [10, 30], ...scenario });
      return { url: `${server.https}/strict/${account}/api`, account };
    });
  },
});

/** Connects a page to a queue whose host is a file of the app. */
async function connect(page: Page, file: string, budgets: Budget[], more: ConnectOptions = {}): Promise<void> {
  await page.evaluate(async ([file, budgets, more]) => {
    const client: string = "/built/client.js";
    const { connect } = await import(client);
    window.queue = connect({ workerUrl: file, budgets, ...more });
    window.kept = { paused: [], errors: [], crashed: [] };
    window.queue.addEventListener("paused", ({ detail }) => window.kept.paused.push(detail));
    window.queue.addEventListener("error", ({ detail: { code, field, got } }: any) => window.kept.errors.push({ code, field, got }));
    window.queue.addEventListener("host-crashed", ({ detail }) => window.kept.crashed.push(detail.message));
  }, [file, budgets, more] as const);
}

function budget(api: string, dialect: string): Budget {
  return { id: "own", match: [`${api}/*`], limits: ["100/1s"], maxInFlight: 4, dialect };
}

function bulk(page: Page, api: string, count: number) {
  return page.evaluate(async ([api, count]) => {
    const jobs: Job[] = Array.from({ length: count }, (_, n) => ({ method: "PUT", url: `${api}/notes/${n}`, body: { n }, merge: false }));
    const bulk = await window.queue.enqueueMany(jobs);
    return bulk.settled;
  }, [api, count] as const);
}

for (const host of ["shared-worker", "leader-tab"] as const) {
  test(`a budget slows down to what a function reads in bodies: ${host}`, async ({ openPage, api, strict }) => {
    const { url, account } = await api({ limits: [{ limit: 10, window_ms: 2_000, algorithm: "fixed-window" }] });
    const page = await openPage();
    // One at a time: each request knows what was said of the one before.
    await connect(page, "/app/dialects.js", [{ ...budget(url, "worker:mine"), maxInFlight: 1 }], { host });

    const settled = await bulk(page, url, 30);

    expect(settled).toEqual({ done: 30, failed: 0, cancelled: 0 });
    const report = await strict.report(account);
    expect(report).toMatchObject({ accepted: 30, rejected: 0, applied: 30, duplicated: 0 });
    // The limit was in the way: three windows of it, of a twentieth of what was believed.
    const starts = report.requests.map(({ arrived_ms }) => arrived_ms);
    expect(Math.max(...starts) - Math.min(...starts)).toBeGreaterThanOrEqual(2_000);
    expect(await page.evaluate(() => window.kept.errors)).toEqual([]);
  });
}

test("a budget pauses for as long as a function reads in a refusal", async ({ openPage, api, strict }) => {
  const { url, account } = await api({ limits: [{ limit: 1, window_ms: 3_000, algorithm: "sliding-log" }] });
  const page = await openPage();
  await connect(page, "/app/dialects.js", [{ ...budget(url, "worker:waits"), maxInFlight: 1 }]);

  const settled = await bulk(page, url, 2);

  expect(settled).toEqual({ done: 2, failed: 0, cancelled: 0 });
  // A guess would be a second, and be refused again.
  expect(await strict.report(account)).toMatchObject({ accepted: 2, rejected: 1, applied: 2, duplicated: 0 });
  const paused = await page.evaluate(() => window.kept.paused);
  expect(paused).toMatchObject([{ budget: "own", until: expect.any(Number), isEstimate: false }]);
});

test("a function that fails costs nothing but what it would have said", async ({ openPage, api, strict }) => {
  const { url, account } = await api({ limits: [] });
  const page = await openPage();
  await connect(page, "/app/dialects.js", [budget(url, "worker:broken")]);

  const settled = await bulk(page, url, 21);

  expect(settled).toEqual({ done: 21, failed: 0, cancelled: 0 });
  expect(await strict.report(account)).toMatchObject({ accepted: 21, rejected: 0, applied: 21, duplicated: 0 });
  const { errors, crashed, paused } = await page.evaluate(() => window.kept);
  expect({ crashed, paused }).toEqual({ crashed: [], paused: [] });
  const fields = errors.map(({ field }: { field: string }) => field).sort();
  expect(fields).toEqual([
    "dialects.broken", "dialects.broken.budgets[0].remaining", "dialects.broken.budgets[0].resetInMs",
    "dialects.broken.cost", "dialects.broken.retryAfterMs",
  ]);
  expect(errors.every(({ code }: { code: string }) => code === "bad-job")).toBe(true);
  const diagnosis = await page.evaluate(() => window.queue.diagnose("own"));
  expect(diagnosis.unreadable).toBe(27);
  expect(diagnosis.dialects).toEqual(["worker"]);
});

test("a function is given a frozen description of an answer", async ({ openPage, api }) => {
  const { url } = await api({ limits: [] });
  const page = await openPage();
  await connect(page, "/app/dialects.js", [budget(url, "worker:looks")]);

  await bulk(page, url, 1);

  const [{ got }] = await page.evaluate(() => window.kept.errors);
  // It threw what it saw; a warning repeats the first 80 characters.
  expect(got).toBe("it threw: 200 PUT 0 number application/json {\"method\":\"PUT\",\"n\":1 true");
});

test("a function that nobody defined is refused with the names of those that are", async ({ openPage }) => {
  const page = await openPage();
  await connect(page, "/app/dialects.js", [budget("https://api.test", "worker:yours")]);

  const error = await page.evaluate(() => thrown(window.queue.ready));

  expect(error).toMatchObject({
    code: "bad-job", field: "budgets[0].dialect", expected: "a function of the worker: broken, looks, mine, waits", got: "worker:yours",
  });
});

test("the plain worker says that it defines no function", async ({ openPage }) => {
  const page = await openPage();
  await connect(page, "/built/worker.js", [budget("https://api.test", "worker:mine")]);

  const error = await page.evaluate(() => thrown(window.queue.ready));

  expect(error).toMatchObject({ code: "bad-job", field: "budgets[0].dialect" });
  expect(error.expected).toContain("which defines none");
});

test("what is defined after the first turn is refused, and the host works on", async ({ openPage, api }) => {
  const { url } = await api({ limits: [] });
  const page = await openPage();
  const late = page.evaluate(() => new Promise((heard) => (new BroadcastChannel("late").onmessage = ({ data }) => heard(data))));
  await connect(page, "/app/late.js", [budget(url, "auto")]);

  expect(await late).toEqual({
    code: "protocol", message: "definePaceline: expected a call in the first turn of the worker's file, got a later one",
  });
  expect(await bulk(page, url, 1)).toEqual({ done: 1, failed: 0, cancelled: 0 });
});

test("a file with a field that nobody knows says so to its page", async ({ openPage }) => {
  const page = await openPage();
  await connect(page, "/app/misspelt.js", []);

  const error = await page.evaluate(() => thrown(window.queue.ready));

  expect(error).toMatchObject({ code: "not-connected", message: expect.stringContaining("dialect: expected dialects, got dialect") });
});
