// Whatever dies, fails or talks nonsense: nothing is lost, nothing applied twice, no limit broken, no promise left open.
import type { Page } from "@playwright/test";
import type { Job } from "../../sw/paceline";
import type { Server } from "./support/server";
import type { Scenario } from "./support/strict";
import { expect, killSharedWorkers, test } from "./support/test";

const SCENARIO: Scenario = {
  limits: [{ limit: 100, window_ms: 1_000, algorithm: "sliding-log" }],
  latency_ms: [5, 40],
  idempotency: true,
};

/** Connects a tab to a queue whose budget is the account. By HTTPS: over HTTP/1.1 browsers themselves repeat requests. */
async function connect(tab: Page, server: Server, account: string, { keys = true } = {}): Promise<string> {
  const api = `${server.https}/strict/${account}/api`;
  const idempotency = keys ? { idempotency: { header: "Idempotency-Key" } } : {};
  await tab.evaluate(async (budgets) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    window.queue = connect({ budgets });
    await window.queue.ready;
  }, [{ id: "api", match: [`${api}/*`], limits: ["100/1s"], ...idempotency }]);
  return api;
}

/** Hands in creates and waits for nothing; `ends` tells what became of them. */
function begin(tab: Page, api: string, group: string, count: number): Promise<void> {
  return tab.evaluate(([api, group, count]) => {
    const jobs: Job[] = Array.from({ length: count }, (_, n) => ({
      method: "POST", url: `${api}/notes`, body: { group, n }, timeoutMs: 1_000,
    }));
    window.kept = { bulk: window.queue.enqueueMany(jobs, { group }) };
    window.kept.bulk.catch(() => {});
  }, [api, group, count] as const);
}

function ends(tab: Page): Promise<{ done: number; failed: number; cancelled: number }> {
  return tab.evaluate(async () => (await window.kept.bulk).settled);
}

/** When the worker is killed. */
const INSTANTS: [string, (tab: Page, seen: (count: number) => Promise<unknown>) => Promise<unknown>][] = [
  ["while it takes in a bulk", async () => {}],
  ["right after it accepted a bulk", (tab) => tab.evaluate(async () => void (await window.kept.bulk))],
  ["at the first requests of a bulk", (_, seen) => seen(1)],
  ["when a window of a bulk is spent", (_, seen) => seen(100)],
];

for (const [when, instant] of INSTANTS) {
  test(`a worker killed ${when} loses and doubles nothing`, async ({ openTabs, browser, browserName, server, strict, account }) => {
    test.skip(browserName === "firefox", "Firefox has no command that ends a worker");
    await strict.put(account, SCENARIO);
    const [tab] = await openTabs(1);
    const api = await connect(tab!, server, account);
    await begin(tab!, api, "bulk", 200);
    await instant(tab!, (count) => strict.until(account, ({ accepted }) => accepted >= count));

    expect(await killSharedWorkers(browser, "worker.js")).toBe(1);

    expect(await ends(tab!)).toEqual({ done: 200, failed: 0, cancelled: 0 });
    const report = await strict.report(account);
    expect(report).toMatchObject({ applied: 200, duplicated: 0, rejected: 0 });
    expect(report.windows[0]!.max_seen).toBeLessThanOrEqual(100);
  });
}

test("the crash of the tab that started the worker leaves all work whole", async ({ openTabs, context, browserName, server, strict, account }) => {
  test.skip(browserName === "firefox", "Firefox has no command that crashes a tab");
  await strict.put(account, SCENARIO);
  const [first, second] = await openTabs(2);
  const api = await connect(first!, server, account);
  await connect(second!, server, account);
  await begin(first!, api, "first", 120);
  await begin(second!, api, "second", 120);
  await strict.until(account, ({ accepted }) => accepted >= 40);

  const crashed = first!.waitForEvent("crash");
  const debug = await context.newCDPSession(first!);
  debug.send("Page.crash").catch(() => {});
  await crashed;

  expect(await ends(second!)).toEqual({ done: 120, failed: 0, cancelled: 0 });
  const report = await strict.until(account, ({ applied }) => applied >= 240);
  expect(report).toMatchObject({ applied: 240, duplicated: 0, rejected: 0 });
  expect(report.windows[0]!.max_seen).toBeLessThanOrEqual(100);
});

test("five tabs that hand in at once and reload keep one limit and lose nothing accepted", async ({ openTabs, context, server, strict, account }) => {
  await strict.put(account, SCENARIO);
  const accepted: string[] = [];
  await context.exposeFunction("tell", (ids: string[]) => void accepted.push(...ids));
  const tabs = await openTabs(5);
  for (const tab of tabs) await connect(tab, server, account);

  const handed = tabs.map((tab, index) => tab.evaluate(async ([api, index]) => {
    for (let round = 0; round < 4; round += 1) {
      const ids = Array.from({ length: 12 }, (_, n) => `${index}-${round}-${n}`);
      await window.queue.enqueueMany(ids.map((id) => ({ id, method: "POST", url: `${api}/notes`, body: id, timeoutMs: 1_000 })));
      (window as any).tell(ids);
    }
  }, [`${server.https}/strict/${account}/api`, index] as const).catch(() => "its page was reloaded"));
  for (const tab of tabs.slice(0, 4)) {
    await tab.reload();
    await connect(tab, server, account);
  }
  await Promise.all(handed);

  expect(accepted.length).toBeGreaterThanOrEqual(48);
  await tabs[4]!.evaluate(() => window.queue.idle());
  const report = await strict.report(account);
  const arrived = new Set(report.requests.map(({ body }) => body));
  expect(accepted.filter((id) => !arrived.has(id))).toEqual([]);
  expect(report).toMatchObject({ duplicated: 0, rejected: 0 });
  expect(report.windows[0]!.max_seen).toBeLessThanOrEqual(100);
});

for (const kind of ["drop-before-apply", "drop-after-apply", "hang", "no-cors"]) {
  test(`without keys ${kind} doubles nothing, and the jobs say that nobody knows`, async ({ openTabs, browserName, strict, account, server }) => {
    test.skip(browserName === "firefox" && kind.startsWith("drop"), "Firefox itself sends again what was dropped");
    await strict.put(account, { ...SCENARIO, idempotency: false, faults: [{ every: 20, kind }] });
    const [tab] = await openTabs(1);
    const api = await connect(tab!, server, account, { keys: false });
    await begin(tab!, api, "bulk", 100);

    const { done, failed, cancelled } = await ends(tab!);

    const codes = await tab!.evaluate(async () => {
      const jobs = await window.queue.jobs({ state: "failed", limit: 100 });
      return jobs.map(({ failure }) => failure?.code);
    });
    expect([done + failed, cancelled]).toEqual([100, 0]);
    expect(failed).toBeGreaterThanOrEqual(5);
    expect(codes).toEqual(Array(failed).fill("outcome-unknown"));
    const report = await strict.report(account);
    expect(report.duplicated).toBe(0);
    expect(report.applied).toBeGreaterThanOrEqual(done);
    expect(report.windows[0]!.max_seen).toBeLessThanOrEqual(100);
  });
}

test("a limit lowered behind our back costs refusals and nothing else", async ({ openTabs, strict, account, server }) => {
  // With headers that tell of it, the change would be learned before the first refusal.
  await strict.put(account, { ...SCENARIO, retry_after: "garbage", dialect: "none" });
  const [tab] = await openTabs(1);
  const api = await connect(tab!, server, account);
  await begin(tab!, api, "bulk", 220);
  await strict.until(account, ({ accepted }) => accepted >= 100);

  await strict.patch(account, { limits: [{ limit: 60, window_ms: 1_000, algorithm: "sliding-log" }] });

  expect(await ends(tab!)).toEqual({ done: 220, failed: 0, cancelled: 0 });
  const report = await strict.report(account);
  expect(report).toMatchObject({ applied: 220, duplicated: 0 });
  expect(report.rejected).toBeGreaterThan(0);
});

test("ten thousand messages of nonsense cost the other tab nothing", async ({ openTabs, strict, account, server }) => {
  await strict.put(account, SCENARIO);
  const [good, bad] = await openTabs(2);
  const api = await connect(good!, server, account);
  const instance = await good!.evaluate(async () => (await window.queue.ready).instance);

  const errors = await bad!.evaluate((url) => new Promise<number>((resolve) => {
    const { port } = new SharedWorker("/paceline/worker.js?queue=default", { name: "paceline:default", type: "module" });
    let errors = 0;
    port.onmessage = ({ data }) => {
      if (data.type === "error") errors += 1;
      if (data.re === 7) resolve(errors);
    };
    const circle: Record<string, unknown> = { paceline: 1, id: 1, type: "enqueue" };
    circle.job = circle;
    const head = { paceline: 1, id: 2 };
    const nonsense = [
      null, NaN, "x".repeat(100_000), [], new Map(), circle, head,
      { ...head, paceline: 2, type: "hello" },
      { ...head, id: NaN, type: "hello" },
      { ...head, type: "__proto__" },
      { ...head, type: "enqueue-many", jobs: {} },
      { ...head, type: "cancel", jobs: [{}] },
      { ...head, type: "hello", principal: "p".repeat(10_000) },
      { ...head, type: "enqueue", job: { url, lane: "constructor" } },
      { ...head, type: "jobs", filter: { limit: -1 } },
      { ...head, type: "configure", budgets: [null] },
    ];
    for (let n = 0; n < 10_000; n += 1) port.postMessage(nonsense[n % nonsense.length]);
    port.postMessage({ paceline: 1, id: 7, type: "snapshot" });
  }), `${api}/notes`);

  expect(errors).toBe(10_000);
  await begin(good!, api, "bulk", 20);
  expect(await ends(good!)).toEqual({ done: 20, failed: 0, cancelled: 0 });
  expect(await good!.evaluate(async () => (await window.queue.jobs()).length)).toBe(20);
  expect(await good!.evaluate(async () => (await window.queue.ready).instance)).toBe(instance);
});

test("an abort in the turn of the enqueue sends nothing, though a slot is free", async ({ openTabs, strict, account, server }) => {
  await strict.put(account, SCENARIO);
  const [tab] = await openTabs(1);
  const api = await connect(tab!, server, account);

  const codes = await tab!.evaluate(async (url) => {
    const codes = [];
    for (let n = 0; n < 10; n += 1) {
      const abort = new AbortController();
      const job = window.queue.enqueue({ method: "POST", url, body: `${n}` }, { signal: abort.signal });
      abort.abort();
      codes.push(await job.then(() => "accepted", ({ code }) => code));
    }
    await window.queue.idle();
    return codes;
  }, `${api}/notes`);

  expect(codes).toEqual(Array(10).fill("aborted"));
  expect((await strict.report(account)).requests).toEqual([]);
});

test("names of every kind settle, and half of a surrogate pair is no name", async ({ openTabs, strict, account, server }) => {
  await strict.put(account, SCENARIO);
  const [tab] = await openTabs(1);
  const api = await connect(tab!, server, account);

  const seen = await tab!.evaluate(async (url) => {
    const settled = [];
    for (const id of ["__proto__", "constructor", "עברית \u202e 🎉 \u0000", "é".repeat(255), "🎉".repeat(255)]) {
      const job = await window.queue.enqueue({ id, key: id, method: "PUT", url });
      const bulk = await window.queue.enqueueMany([{ method: "PUT", url }], { group: id });
      settled.push([(await job.done).status, (await bulk.settled).done]);
    }
    const refused = (promise: Promise<unknown>) => promise.then(() => "accepted", ({ code, field }) => `${code} ${field}`);
    const halves = [
      await refused(window.queue.enqueue({ id: "a\ud800", method: "PUT", url })),
      await refused(window.queue.enqueue({ key: "\udc00b", method: "PUT", url })),
      await refused(window.queue.enqueueMany([{ method: "PUT", url }], { group: "\ud83c" })),
    ];
    return { settled, halves };
  }, `${api}/notes`);

  expect(seen.settled).toEqual(Array(5).fill([200, 1]));
  expect(seen.halves).toEqual(["bad-job id", "bad-job key", "bad-job group"]);
});
