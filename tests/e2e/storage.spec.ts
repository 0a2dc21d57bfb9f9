// A host and its store: a full disk, lost connections, moved clocks, clean-up, and rest.
import type { CDPSession, Page } from "@playwright/test";
import type { Job } from "../../sw/paceline";
import type { Server } from "./support/server";
import type { Scenario } from "./support/strict";
import { expect, test } from "./support/test";

const SCENARIO: Scenario = {
  limits: [{ limit: 50, window_ms: 1_000, algorithm: "sliding-log" }],
  latency_ms: [5, 40],
  idempotency: true,
};

test.skip(({ browserName }) => browserName === "firefox", "Firefox has no debugger that reaches a worker, and none that sets a quota");

/** Connects a tab to a queue whose budget is the account. By HTTPS: over HTTP/1.1 browsers themselves repeat requests. */
async function connect(tab: Page, server: Server, account: string): Promise<string> {
  const api = `${server.https}/strict/${account}/api`;
  await tab.evaluate(async (api) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    window.queue = connect({
      budgets: [{ id: "api", match: [`${api}/*`], limits: ["50/1s"], idempotency: { header: "Idempotency-Key" } }],
    });
    await window.queue.ready;
  }, api);
  return api;
}

/** Hands in creates; resolves once they are accepted. `ends` tells what became of them. */
function begin(tab: Page, api: string, count: number): Promise<void> {
  return tab.evaluate(async ([api, count]) => {
    const jobs: Job[] = Array.from({ length: count }, (_, n) => ({ method: "POST", url: `${api}/notes`, body: { n }, timeoutMs: 1_000 }));
    window.kept = await window.queue.enqueueMany(jobs, { group: "bulk" });
  }, [api, count] as const);
}

function ends(tab: Page): Promise<{ done: number; failed: number; cancelled: number }> {
  return tab.evaluate(() => window.kept.settled);
}

test("a full disk refuses what is new, and with room again all that was accepted is done", async ({ openTabs, context, strict, account, server }) => {
  await strict.put(account, SCENARIO);
  const [tab] = await openTabs(1);
  const debug = await context.newCDPSession(tab!);
  await debug.send("Storage.overrideQuotaForOrigin", { origin: server.http, quotaSize: 8 << 20 });
  const api = await connect(tab!, server, account);
  await begin(tab!, api, 120);

  const seen = await tab!.evaluate(async (url) => {
    const told: string[] = [];
    window.queue.addEventListener("storage", ({ detail }: any) => told.push(detail.message));
    const jobs = () => Array.from({ length: 20 }, () => ({
      method: "POST", url, notBefore: Date.now() + 3_600_000, body: Array.from({ length: 1_400 }, () => crypto.randomUUID()).join(""),
    }));
    for (let bulks = 0; bulks < 40; bulks += 1) {
      const code = await window.queue.enqueueMany(jobs()).then(() => undefined, (error) => error.code);
      if (code !== undefined) return { bulks, code, told, waiting: (await window.queue.jobs({ state: "queued", limit: 1_000 })).length };
    }
    throw new Error("the disk never was full");
  }, `${api}/notes`);

  expect(seen.code).toBe("storage-full");
  expect(seen.told[0]).toContain("quota");
  expect(seen.waiting).toBeGreaterThanOrEqual(seen.bulks * 20);
  // Either there is room for the small records of the other jobs, or the queue is held and says so.
  const goesOnOrIsHeld = () => tab!.evaluate(() => {
    const { counts, held } = window.queue.snapshot();
    return counts.done === 120 || held.includes("storage");
  });
  await expect.poll(goesOnOrIsHeld).toBe(true);

  await debug.send("Storage.overrideQuotaForOrigin", { origin: server.http });
  await tab!.evaluate(() => window.queue.resume());
  expect(await ends(tab!)).toEqual({ done: 120, failed: 0, cancelled: 0 });
  expect(await strict.report(account)).toMatchObject({ applied: 120, duplicated: 0, rejected: 0 });
});

test("connections that close under the host cost nothing", async ({ openTabs, browser, strict, account, server }) => {
  await strict.put(account, SCENARIO);
  const [tab] = await openTabs(1);
  const api = await connect(tab!, server, account);
  const worker = await debugWorker(await browser.newBrowserCDPSession());
  await worker(`(() => {
    const begin = IDBDatabase.prototype.transaction;
    self.begun = 0;
    self.closed = 0;
    IDBDatabase.prototype.transaction = function (...options) {
      if (++begun % 5 === 0) { closed += 1; this.close(); }
      return begin.apply(this, options);
    };
  })()`);

  await begin(tab!, api, 150);

  expect(await ends(tab!)).toEqual({ done: 150, failed: 0, cancelled: 0 });
  expect(await worker("closed")).toBeGreaterThan(5);
  const report = await strict.report(account);
  expect(report).toMatchObject({ applied: 150, duplicated: 0, rejected: 0 });
  expect(report.windows[0]!.max_seen).toBeLessThanOrEqual(50);
});

test("a wall clock that jumps by hours breaks no limit and loses nothing", async ({ openTabs, browser, strict, account, server }) => {
  await strict.put(account, SCENARIO);
  const [tab] = await openTabs(1);
  const api = await connect(tab!, server, account);
  const worker = await debugWorker(await browser.newBrowserCDPSession());
  await worker("(() => { const now = Date.now; self.ahead = 0; Date.now = () => now() + ahead; })()");
  await begin(tab!, api, 300);

  for (const [hours, reached] of [[1, 40], [-1, 80], [0, 130], [8, 170], [0, 220]] as const) {
    await strict.until(account, ({ accepted }) => accepted >= reached);
    await worker(`ahead = ${hours} * 3_600_000`);
  }

  expect(await ends(tab!)).toEqual({ done: 300, failed: 0, cancelled: 0 });
  const report = await strict.report(account);
  expect(report).toMatchObject({ applied: 300, duplicated: 0, rejected: 0 });
  expect(report.windows[0]!.max_seen).toBeLessThanOrEqual(50);
});

test("done jobs are cleaned up after an hour, and their names are not sent again", async ({ openTabs, browser, strict, account, server }) => {
  await strict.put(account, SCENARIO);
  const [tab] = await openTabs(1);
  const api = await connect(tab!, server, account);
  const send = (id: string) => tab!.evaluate(async ([id, url]) => {
    const job = await window.queue.enqueue({ id, method: "POST", url, body: id });
    return (await job.done).status;
  }, [id, `${api}/notes`] as const);
  await begin(tab!, api, 40);
  expect(await ends(tab!)).toMatchObject({ done: 40 });
  await send("old");
  expect(await stored(tab!)).toMatchObject({ bodies: 2, cards: 2, records: 41, groups: 1, dropped: 0 });

  const worker = await debugWorker(await browser.newBrowserCDPSession());
  await worker("(() => { const now = Date.now; Date.now = () => now() + 2 * 3_600_000; })()");
  await send("new");
  await send("newer");

  expect(await stored(tab!)).toMatchObject({ bodies: 2, cards: 2, records: 2, groups: 0, dropped: 2 });
  expect(await send("old")).toBe(200);
  const { requests } = await strict.report(account);
  expect(requests.filter(({ body }) => body === "old").length).toBe(1);
});

test("an idle host has no timer", async ({ openTabs, browser, strict, account, server }) => {
  await strict.put(account, { ...SCENARIO, faults: [{ nth: 3, kind: "status", status: 503 }] });
  const [tab] = await openTabs(1);
  const api = await connect(tab!, server, account);
  const worker = await debugWorker(await browser.newBrowserCDPSession());
  await worker(`(() => {
    const set = setTimeout, clear = clearTimeout;
    self.timers = new Map();
    self.timersEver = 0;
    self.setTimeout = (work, ms) => {
      const id = set(() => { timers.delete(id); work(); }, ms);
      timers.set(id, ms);
      timersEver += 1;
      return id;
    };
    self.clearTimeout = (id) => { timers.delete(id); clear(id); };
  })()`);

  await tab!.evaluate(() => void window.queue.subscribe(() => {}));
  await begin(tab!, api, 150);
  expect(await ends(tab!)).toMatchObject({ done: 150 });
  await tab!.evaluate(() => window.queue.idle());

  expect(await worker("timersEver")).toBeGreaterThan(150);
  await expect.poll(() => worker("JSON.stringify([...timers.values()])")).toBe("[]");
  expect(await tab!.evaluate(() => window.queue.snapshot().nextWakeAt)).toBeNull();
});

/** Counts the records of each store. */
function stored(tab: Page): Promise<Record<string, number>> {
  return tab.evaluate(() => new Promise((resolve, reject) => {
    const open = indexedDB.open("paceline:default");
    open.onerror = () => reject(open.error);
    open.onsuccess = () => {
      const database = open.result;
      const counts: Record<string, number> = {};
      const reading = database.transaction([...database.objectStoreNames]);
      for (const name of database.objectStoreNames) {
        const count = reading.objectStore(name).count();
        count.onsuccess = () => (counts[name] = count.result);
      }
      reading.oncomplete = () => {
        database.close();
        resolve(counts);
      };
    };
  }));
}

/** Returns what evaluates in the one SharedWorker of a Chromium. */
async function debugWorker(session: CDPSession): Promise<(expression: string) => Promise<unknown>> {
  const { targetInfos } = await session.send("Target.getTargets");
  const workers = targetInfos.filter(({ type, url }) => type === "shared_worker" && url.includes("worker.js"));
  if (workers.length !== 1) throw new Error(`expected one worker to debug, there are ${workers.length}`);
  const { sessionId } = await session.send("Target.attachToTarget", { targetId: workers[0]!.targetId, flatten: false });
  let last = 0;
  return (expression) => new Promise((resolve, reject) => {
    const id = (last += 1);
    const listen = (event: { sessionId: string; message: string }) => {
      const answer = JSON.parse(event.message);
      if (event.sessionId !== sessionId || answer.id !== id) return;
      session.off("Target.receivedMessageFromTarget", listen);
      const { result, exceptionDetails } = answer.result;
      if (exceptionDetails) reject(new Error(exceptionDetails.text));
      else resolve(result.value);
    };
    session.on("Target.receivedMessageFromTarget", listen);
    const message = JSON.stringify({ id, method: "Runtime.evaluate", params: { expression, returnByValue: true } });
    session.send("Target.sendMessageToTarget", { sessionId, message }).catch(reject);
  });
}

test("what a deleted database held is told as lost and not sent again", async ({ openTabs, strict, account, server }) => {
  await strict.put(account, { limits: [{ limit: 20, window_ms: 1_000, algorithm: "sliding-log" }], idempotency: false });
  const [tab, other] = await openTabs(2);
  const api = `${server.https}/strict/${account}/api`;
  await tab!.evaluate(async (api) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    window.queue = connect({ budgets: [{ id: "api", match: [`${api}/*`], limits: ["20/1s"] }] });
    await window.queue.ready;
    const jobs = Array.from({ length: 60 }, (_, n) => ({ method: "POST", url: `${api}/notes`, body: { n } }));
    const bulk = await window.queue.enqueueMany(jobs, { group: "bulk" });
    window.kept = { ended: bulk.settled.then(() => "settled", ({ code }) => code) };
  }, api);
  await strict.until(account, ({ applied }) => applied >= 25);

  await other!.evaluate(() => new Promise<void>((resolve, reject) => {
    const request = indexedDB.deleteDatabase("paceline:default");
    request.onsuccess = () => resolve();
    request.onerror = () => reject(request.error);
  }));

  expect(await tab!.evaluate(() => window.kept.ended)).toBe("storage");
  const { applied, duplicated } = await strict.report(account);
  expect(duplicated).toBe(0);
  expect(applied).toBeLessThan(60);
});
